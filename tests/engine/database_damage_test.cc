// A flipped byte in what the log holds costs what it belongs to, by name, and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/testing/files.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseDamageTest : public StoreTest {
 protected:
  /// Flips a bit of the first place in a segment that holds these bytes, and opens the database.
  /// It was opened before: below its start the ring does not mend.
  template <typename T>
  void OpenWithDamageIn(const std::vector<T>& content) {
    Reopen();
    Close();
    const auto* bytes = reinterpret_cast<const char*>(content.data());
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(dir_->File("log"))) {
      if (found || entry.path().filename().string().rfind("segment-", 0) != 0) continue;
      std::string file = testing::ReadBytes(entry.path());
      const auto at =
          std::search(file.begin(), file.end(), bytes, bytes + content.size() * sizeof(T));
      if (at == file.end()) continue;
      found = true;
      *at = static_cast<char>(*at ^ 1);
      testing::WriteBytes(entry.path(), file);
    }
    ASSERT_TRUE(found);
    Open();
  }
};

TEST_F(DatabaseDamageTest, ASegmentWhoseFirstRecordIsDamagedIsNamed) {
  options_.segment_bytes = uint64_t{64} << 10;
  OpenEmpty();
  Create(StepSpec());
  for (int i = 0; i < 10; ++i) AppendClosed(0, 1000);
  Reopen();
  Close();
  // The segment from LSN 65536 on; which file has it, its first record alone says.
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(dir_->File("log"))) {
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    uint64_t header[2] = {};
    file.read(reinterpret_cast<char*>(header), sizeof(header));
    if (header[1] != options_.segment_bytes || entry.path().filename() == "ring") continue;
    path = entry.path();
    header[0] ^= 1;
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(header), sizeof(header));
  }
  const auto opened = Database::Open(dir_->path(), options_);
  EXPECT_STATUS(kCorruption, opened, "damaged at LSN 65536, ");
  EXPECT_STATUS(kCorruption, opened, "the first record is damaged of " + path);
  std::filesystem::remove(path);
  EXPECT_STATUS(kCorruption, Database::Open(dir_->path(), options_),
                "no file holds that segment): no valid record there");
}

// NotFound would mean that there is no database.
TEST_F(DatabaseDamageTest, ALostRingIsCorruption) {
  Create(StepSpec());
  AppendClosed(0, 10);
  Close();
  std::filesystem::remove(dir_->File("log/ring"));
  EXPECT_STATUS(kCorruption, Database::Open(dir_->path(), options_),
                dir_->File("log/ring") + " is missing");
  options_.read_only = true;
  EXPECT_STATUS(kCorruption, Database::Open(dir_->path(), options_),
                dir_->File("log/ring") + " is missing");
  std::filesystem::remove_all(dir_->File("log"));
  EXPECT_STATUS(kCorruption, Database::Open(dir_->path(), options_),
                dir_->File("log") + " is missing");
}

TEST_F(DatabaseDamageTest, AStreamsLostPageLeavesThePrioritiesOfOthersWhereTheyWere) {
  TableSpec spec = StepSpec(/*final_row=*/true);
  spec.stream = true;
  spec.priority_tables = {WindowSpec("per", {.before = 0, .length = 1, .after = 1})};
  Create(spec, {.lanes = 2});
  // Stream 1 has ends in its pages: which rows are items follows from them.
  for (int64_t episode = 0; episode < 4; ++episode) {
    Append(1000 + 10 * episode, 5, episode % 2 == 0 ? End::kTerminated : End::kCut, 0);
  }
  Append(5000, 20, End::kGo, 1);
  std::vector<float> priorities(priority("per")->Count());
  for (size_t i = 0; i < priorities.size(); ++i) priorities[i] = static_cast<float>(i + 1);
  ASSERT_OK(priority("per")->SetAll(priorities));
  const auto of_stream_2 = [&] {
    std::vector<float> found;
    for (const RowId& item : priority("per")->Items()) {
      if (item.id == 2) found.push_back(*priority("per")->Priority(item));
    }
    return found;
  };
  const std::vector<float> expected = of_stream_2();
  OpenWithDamageIn(std::vector<float>{1013 / 4.0f, 1014 / 4.0f});
  EXPECT_EQ(database_->recovery().damaged_pages, 1u);
  OpenAgain(spec.name, {.lanes = 2});
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_EQ(of_stream_2(), expected);
}

class DatabaseDamagedPrioritiesTest : public DatabaseDamageTest {
 protected:
  /// Sets every priority, from 1, damages that of row 5,000 in the log, and looks at what is left.
  void LoseSome(const std::function<Status(PriorityTable*, std::span<const float>)>& set) {
    options_.ring_bytes = uint64_t{64} << 10;  // The records hold far fewer of them.
    options_.segment_bytes = uint64_t{1} << 20;
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 64;
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    constexpr int64_t kItems = 10'000;
    for (int64_t row = 0; row < kItems; row += 500) Append(row, 500);
    // No column holds an eighth.
    std::vector<float> priorities(kItems);
    for (size_t i = 0; i < priorities.size(); ++i) priorities[i] = 2.125f + static_cast<float>(i);
    ASSERT_OK(set(priority("per"), priorities));
    OpenWithDamageIn(std::vector<float>{priorities[5000]});
    const RecoveryReport& recovery = database_->recovery();
    EXPECT_EQ(recovery.damaged_pages, 0u);
    EXPECT_GT(recovery.damaged_priorities, 0u);
    EXPECT_LT(recovery.damaged_priorities, 2'500u);
    EXPECT_NE(recovery.note.find("priorities in damaged pieces"), std::string::npos);
    OpenAgain(spec.name);
    uint64_t kept = 0;
    for (const RowId& item : priority("per")->Items()) {
      const float now = *priority("per")->Priority(item);
      kept += now == 1 ? 1 : 0;
      if (now != 1) {
        EXPECT_EQ(now, priorities[static_cast<size_t>(item.row)]);
      }
    }
    EXPECT_EQ(kept, recovery.damaged_priorities);
    EXPECT_EQ(*priority("per")->Priority({1, 5000}), 1);
  }
};

TEST_F(DatabaseDamagedPrioritiesTest, OfASetAllStayAsTheyWere) {
  LoseSome([](PriorityTable* per, std::span<const float> priorities) {
    return per->SetAll(priorities).status();
  });
}

TEST_F(DatabaseDamagedPrioritiesTest, OfASetStayAsTheyWere) {
  LoseSome([](PriorityTable* per, std::span<const float> priorities) {
    return per->Set(per->Items(), priorities).status();
  });
}

TEST_F(DatabaseDamageTest, ATagWithoutItsBlobSaysSo) {
  std::vector<uint32_t> blob(5000);
  for (uint32_t i = 0; i < blob.size(); ++i) blob[i] = 77'000 + i;
  ASSERT_OK(database_->WriteTag("policy", std::as_bytes(std::span(blob))));
  const char other[] = "whole";
  ASSERT_OK(database_->WriteTag("other", std::as_bytes(std::span(other))));
  OpenWithDamageIn(std::vector<uint32_t>{blob[100], blob[101], blob[102]});
  EXPECT_EQ(database_->recovery().damaged_tags, 1u);
  EXPECT_STATUS(kCorruption, database_->LastTag("policy"), "tag 'policy'");
  ASSERT_OK_AND_ASSIGN(const Tag tag, database_->LastTag("other"));
  EXPECT_EQ(tag.blob.size(), sizeof(other));
  // A new one takes its place.
  ASSERT_OK(database_->WriteTag("policy", std::as_bytes(std::span(blob))));
  EXPECT_OK(database_->LastTag("policy"));
  Reopen();
  EXPECT_EQ(database_->recovery().damaged_tags, 0u);
  EXPECT_OK(database_->LastTag("policy"));
}

}  // namespace
}  // namespace geardb
