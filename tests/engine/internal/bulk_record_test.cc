#include "engine/internal/bulk_record.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
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
    {
      ChangeScope scope(core_.get(), nullptr, {.type = wal::RecordType::kTag});
      ASSERT_OK(record.Reserve(&scope, blob));
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

TEST_F(BulkRecordTest, NoBytes) { Write(0); }
TEST_F(BulkRecordTest, BytesThatFitOneRecord) { Write(100'000); }
TEST_F(BulkRecordTest, BytesThatNeedParts) { Write(1'000'003); }

// Its last record names every part, and there may be too many for it: none is written then.
TEST_F(BulkRecordTest, MorePartsThanARecordNamesAreRefusedBeforeTheFirst) {
  options_.ring_bytes = uint64_t{32} << 10;
  OpenEmpty();
  const Lsn end = database_->Stats().log_end;
  const uint64_t record_max = options_.ring_bytes / 4;
  const std::vector<std::byte> blob(record_max * record_max / 48);
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag("large", blob),
                "at most 8192 go into one record of this log");
  EXPECT_EQ(database_->Stats().log_end, end);
  EXPECT_OK(database_->WriteTag("large", std::span(blob).first(blob.size() * 9 / 10)));
  Reopen();
  EXPECT_EQ(database_->LastTag("large")->blob.size(), blob.size() * 9 / 10);
}

}  // namespace
}  // namespace geardb::engine
