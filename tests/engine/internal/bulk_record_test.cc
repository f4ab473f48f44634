#include "engine/internal/bulk_record.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/log_end.h"
#include "tests/testing/named_number.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class BulkRecordTest : public testing::StoreTest {
 protected:
  void TearDown() override {
    core_.reset();
    Close();
  }
  /// A tag written by hand: what a reopen finds of it.
  void Write(size_t bytes) {
    core_ = testing::CoreOf(*database_);
    std::vector<std::byte> blob(bytes);
    for (size_t i = 0; i < bytes; ++i) blob[i] = static_cast<std::byte>(i * 7 >> 3);
    Lsn applied_at = 0;
    FunctionChange change([&](Lsn lsn, Lsn) { applied_at = lsn; });
    const auto name = change.body.CreateString("bulk");
    change.FinishBody({}, fb::Change::WriteTag,
                      fb::CreateWriteTag(change.body, name, 0, 1, true).Union());
    BulkRecord record(core_.get(), &change);
    record.AddBytes(blob);
    {
      ChangeScope scope(core_.get(), nullptr, {.type = wal::RecordType::kTag});
      ASSERT_OK(record.Reserve(&scope));
    }
    EXPECT_EQ(applied_at, 0u);
    record.Finish();
    ASSERT_OK(core_->Acknowledge(record.end(), Ack::kSync));
    EXPECT_EQ(applied_at, record.lsn());
    core_.reset();
    Reopen();
    const auto tag = database_->LastTag("bulk");
    ASSERT_OK(tag);
    EXPECT_TRUE(tag->blob == blob);
  }
  std::shared_ptr<DatabaseCore> core_;
};

TEST(SplitIntoPartsTest, EachPartIsAsLongAsMayBe) {
  std::mt19937_64 random(1);
  for (int program = 0; program < 300; ++program) {
    std::vector<uint64_t> bytes(random() % 200);
    for (uint64_t& piece : bytes) piece = 1 + random() % 2000;
    const uint64_t most = 256 + random() % (program % 2 == 0 ? 4'000 : 100'000);
    const auto total = [&](size_t first, size_t count) {
      return wal::RecordSize::For(0, std::span(bytes).subspan(first, count)).total();
    };
    size_t done = 0;
    for (const PartOfPieces& part : SplitIntoParts(bytes, most)) {
      ASSERT_EQ(part.first, done);
      ASSERT_GE(part.count, 1u);
      done += part.count;
      ASSERT_LE(done, bytes.size());
      EXPECT_EQ(part.size.total(), total(part.first, part.count));
      EXPECT_TRUE(part.count == 1 || part.size.total() <= most);
      EXPECT_TRUE(done == bytes.size() || total(part.first, part.count + 1) > most);
    }
    EXPECT_EQ(done, bytes.size());
  }
}

TEST_F(BulkRecordTest, NoBytes) { Write(0); }
TEST_F(BulkRecordTest, BytesThatFitOneRecord) { Write(100'000); }
TEST_F(BulkRecordTest, BytesThatNeedParts) { Write(1'000'003); }

// Its last record names every part, and there may be too many for it: none is written then.
class BulkRecordBoundTest : public BulkRecordTest {
 protected:
  void OpenWith(uint64_t ring_bytes, uint64_t segment_bytes) {
    options_.ring_bytes = ring_bytes;
    options_.segment_bytes = segment_bytes;
    options_.background = false;  // No seal of an idle log comes between two looks at its end.
    OpenEmpty();
  }
  /// What `refused` says that there may be.
  static uint64_t AtMost(const Status& refused) {
    return testing::NumberBehind("at most ", refused).value_or(0);
  }
};

TEST_F(BulkRecordBoundTest, ATagThatIsTooLargeIsRefusedBeforeItsFirstPart) {
  OpenWith(32 << 10, 1 << 20);
  const Lsn end = database_->Stats().log_end;
  const std::vector<std::byte> blob(8192 * 8192 / 48);
  const Status refused = database_->WriteTag("large", blob).status();
  ASSERT_STATUS(kInvalidArgument, refused,
                "tag 'large': 1398101 bytes are too many for one change: at most ");
  EXPECT_STATUS(kInvalidArgument, refused,
                " fit a log with ring_bytes 32768 and segment_bytes 1048576; use a larger "
                "ring_bytes");
  testing::ExpectNothingWritten(*database_, end);
  const uint64_t most = AtMost(refused);
  ASSERT_GT(most, blob.size() * 9 / 10);
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag("large", std::span(blob).first(most + 1)),
                "tag 'large': " + std::to_string(most + 1) + " bytes");
  testing::ExpectNothingWritten(*database_, end);
  EXPECT_OK(database_->WriteTag("large", std::span(blob).first(most)));
  Reopen();
  EXPECT_EQ(database_->LastTag("large")->blob.size(), most);
}

TEST_F(BulkRecordBoundTest, WhatBoundsIsNamed) {
  const std::vector<std::byte> blob(size_t{32768} * 32768 / 48);
  const auto refused = [&](uint64_t ring_bytes, uint64_t segment_bytes) {
    OpenWith(ring_bytes, segment_bytes);
    return std::string(database_->WriteTag("large", blob).status().message());
  };
  EXPECT_TRUE(refused(32 << 10, 64 << 10).ends_with("; use a larger ring_bytes"));
  EXPECT_TRUE(refused(256 << 10, 64 << 10).ends_with("; use a larger segment_bytes"));
  EXPECT_TRUE(
      refused(128 << 10, 64 << 10).ends_with("; use a larger ring_bytes and segment_bytes"));
}

TEST_F(BulkRecordBoundTest, ASetThatIsTooLargeCountsItsItems) {
  OpenWith(32 << 10, 1 << 20);
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("per")};
  Create(spec);
  Append(0, 3, End::kTerminated);
  const Lsn end = database_->Stats().log_end;
  const size_t count = 8192 * 8192 / 48 / 16;
  const std::vector<ItemHandle> handles(count);
  const std::vector<float> priorities(count, 1.0f);
  const Status refused = priority("per")->Set(handles, priorities).status();
  ASSERT_STATUS(kInvalidArgument, refused,
                "Set of priority table 'per' of table 'steps': 87381 items are too many for one "
                "change: at most ");
  testing::ExpectNothingWritten(*database_, end);
  const uint64_t most = AtMost(refused);
  ASSERT_GT(most, count * 9 / 10);
  const auto outcome =
      priority("per")->Set(std::span(handles).first(most), std::span(priorities).first(most));
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied + outcome->stale, most);
}

TEST_F(BulkRecordBoundTest, ASetAllThatIsTooLargeCountsItsPriorities) {
  OpenWith(32 << 10, 1 << 20);
  TableSpec spec = testing::StepSpec();
  spec.steps_per_page = 256;
  spec.priority_tables = {testing::WindowSpec("per")};
  Create(spec);
  const size_t count = 8192 * 8192 / 48 / 4;
  constexpr int64_t kRows = 5000;
  for (int64_t first = 0; first < static_cast<int64_t>(count); first += kRows) {
    Append(first, kRows, End::kTerminated);
  }
  const Lsn end = database_->Stats().log_end;
  const std::vector<float> priorities(priority("per")->Count(), 1.0f);
  EXPECT_STATUS(
      kInvalidArgument, priority("per")->SetAll(priorities),
      "SetAll of priority table 'per' of table 'steps': " + std::to_string(priorities.size()) +
          " priorities are too many for one change: at most ");
  testing::ExpectNothingWritten(*database_, end);
  EXPECT_OK(priority("per")->SetAll(std::span(priorities).first(1)));
}

}  // namespace
}  // namespace geardb::engine
