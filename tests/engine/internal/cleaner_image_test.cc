// What changes between an image of the index and the last pages that are moved for it: the image
// shows rows of a page that the cold store never gets, because the page has left, or lies in the
// log anew.
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "base/crash_point.h"
#include "tests/engine/internal/cleaner_fixture.h"

namespace geardb {
namespace {

// A hook is a plain function.
std::function<void(std::string_view)>* at_point = nullptr;

void CallAtPoint(const char* name) { (*at_point)(name); }

class CleanerImageTest : public CleanerStoreTest {
 protected:
  void SetUp() override {
    options_.background = false;
    CleanerStoreTest::SetUp();
    // One row in the log's first segment, and the trajectory is open.
    id_ = AddRows(0, 0, 1, End::kGo, 1);
    numbers_[id_] = 0;
    next_ = 1;
    for (int i = 0; i < 100; ++i) Add(8, 8);
  }
  /// A pass of the cleaner. A second row comes before its image, a third one after it, and then
  /// `change`. The store is opened again as it was when the pass had ended.
  void OpenAfterPassWith(const std::function<void()>& change) {
    std::unique_ptr<testing::TempDir> copy;
    std::function<void(std::string_view)> hook = [&](std::string_view name) {
      if (name == "index_chunk") AddRows(0, 1, 1, End::kGo, 1);
      if (name == "image_taken") {
        AddRows(0, 2, 1, End::kGo, 1);
        change();
      }
      if (name == "recycle") copy = CopyAtRest();
    };
    at_point = &hook;
    SetCrashHook(&CallAtPoint);
    EXPECT_OK(CleanAll());
    SetCrashHook(nullptr);
    Close();
    dir_ = std::move(copy);
    Open();
    OpenAgain("frames", {.lanes = 2});
    EXPECT_GT(database_->recovery().image, 0u);
    EXPECT_EQ(database_->recovery().damaged_pages, 0u);
    EXPECT_TRUE(database_->recovery().damaged_trajectories.empty());
  }

  /// Likewise, as it was when a pass had put pages and `change` was made, and its image was not yet
  /// the store's.
  void OpenInMidPass(const std::function<void()>& change) {
    std::unique_ptr<testing::TempDir> copy;
    std::function<void(std::string_view)> hook = [&](std::string_view name) {
      if (name != "image_taken" || copy != nullptr) return;
      change();
      ASSERT_OK(testing::CoreOf(*database_)->cold->if_open()->Flush());
      copy = CopyAtRest();
    };
    at_point = &hook;
    SetCrashHook(&CallAtPoint);
    EXPECT_OK(CleanAll());
    SetCrashHook(nullptr);
    ASSERT_NE(copy, nullptr);
    Close();
    dir_ = std::move(copy);
    Open();
    OpenAgain("frames", {.lanes = 2});
  }
  /// So nothing of them leaves by a range.
  std::vector<TrajectoryId> AllButTheOldest() const {
    std::vector<TrajectoryId> ids;
    for (const auto& [id, number] : numbers_) {
      if (id != id_) ids.push_back(id);
    }
    return ids;
  }
  void ExpectLittleInColdStore() {
    for (int pass = 0; pass < 3; ++pass) {
      Add(8, 8);
      ASSERT_OK(CleanAll());
    }
    EXPECT_LT(database_->Stats().cold.live_bytes, uint64_t{1} << 20);
  }

  /// Once RocksDB's own compactions have ended: their files come and leave.
  std::unique_ptr<testing::TempDir> CopyAtRest() {
    while (database_->Stats().cold.compacting) std::this_thread::yield();
    return testing::CopyOpenStore(dir_->path());
  }

  TrajectoryId id_ = 0;
};

TEST_F(CleanerImageTest, APageOfATrajectoryThatWasRemovedIsNoDamage) {
  OpenAfterPassWith([&] { ASSERT_OK(table_->Remove(std::span(&id_, 1))); });
  numbers_.erase(id_);
  EXPECT_EQ(table_->Count(), numbers_.size());
  ExpectAll();
}

// Neither the image nor the log says that a pass which died had put their pages: they stayed in the
// cold store for good.
TEST_F(CleanerImageTest, WhatAPassHadPutBeforeItDiedLeavesTheDisk) {
  OpenInMidPass([] {});
  ASSERT_OK(table_->Remove(AllButTheOldest()));
  ExpectLittleInColdStore();
}

TEST_F(CleanerImageTest, AlsoOfWhatHadLeftBefore) {
  OpenInMidPass([&] { ASSERT_OK(table_->Remove(AllButTheOldest())); });
  ExpectLittleInColdStore();
}

TEST_F(CleanerImageTest, APageThatWasTrimmedCostsNothing) {
  OpenAfterPassWith([&] {
    AddRows(0, 3, 3, End::kGo, 1);
    ASSERT_OK(table_->Truncate(id_, kPageRows));
  });
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id_, {}, {}));
  const auto bytes = rows[0].view().values<uint8_t>();
  ASSERT_EQ(bytes.size(), 2u * kFrameBytes);
  ExpectRow(id_, kPageRows, bytes.data());
}

TEST_F(CleanerImageTest, APageThatWasPatchedCostsNothing) {
  OpenAfterPassWith([&] {
    std::vector<uint8_t> bytes(kFrameBytes);
    for (int64_t at = 0; at < kFrameBytes; ++at) {
      bytes[static_cast<size_t>(at)] = ByteOf(0, 1, at);
    }
    const RowSpan row{id_, 1, 1};
    const ColumnValue frame{"frame", TensorView(bytes.data(), DType::kU8, Shape({1, kFrameBytes}))};
    ASSERT_OK(table_->Patch({&row, 1}, {&frame, 1}));
  });
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id_, {}, {}));
  EXPECT_EQ(rows[0].view().values<uint8_t>().size(), 3u * kFrameBytes);
  ExpectAll();
}

}  // namespace
}  // namespace geardb
