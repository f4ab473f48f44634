// Damage that the cleaner meets in a page which has left by the time it says so.
#include <string_view>
#include <utility>
#include <vector>

#include "engine/internal/clean_reads.h"
#include "tests/engine/internal/cleaner_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace cleaner_damage_internal {

using engine::Cleaner, engine::CleanReads, engine::ColdWork, engine::TableCore;

// As the door of live_core.h.
template <auto Member>
struct Door {
  friend Status PutBehind(Cleaner* cleaner, const std::shared_ptr<TableCore>& table,
                          std::vector<ColdWork>* work, CleanReads* read,
                          EpochRegistry::Guard guard) {
    return (cleaner->*Member)(table, work, read, std::move(guard));
  }
};
Status PutBehind(Cleaner* cleaner, const std::shared_ptr<TableCore>& table,
                 std::vector<ColdWork>* work, CleanReads* read, EpochRegistry::Guard guard);
template struct Door<&Cleaner::PutSome>;

}  // namespace cleaner_damage_internal

namespace {

class CleanerDamageTest : public CleanerStoreTest {
 protected:
  void SetUp() override {
    options_.background = false;
    CleanerStoreTest::SetUp();
    id_ = Add(8, 8);
    ASSERT_GT(DropAll(), 0u);
    std::string row(64, '\0');  // The beginning of its first.
    for (int64_t at = 0; at < 64; ++at)
      row[static_cast<size_t>(at)] = static_cast<char>(ByteOf(0, 0, at));
    int found = 0;
    for (const auto& [path, bytes] : testing::FilesOf(dir_->path() + "/log")) {
      const size_t at = bytes.find(row);
      if (path.find("segment-") == std::string::npos || at == std::string::npos) continue;
      testing::FlipByte(path, at);
      ++found;
    }
    ASSERT_EQ(found, 1);
  }
  /// The cleaner has read the pages when `change` is called, and then puts them.
  template <typename Change>
  void PutBeside(const Change& change) {
    const auto core = testing::CoreOf(*database_);
    ASSERT_OK(core->cold->Store());
    const auto table = core->AllTables()[0];
    std::vector<engine::ColdWork> work;
    engine::CleanReads read(core.get(), *table->state);
    EpochRegistry::Guard guard;
    {
      MutexLock lock(&table->state->mutex);
      guard = core->epochs.Enter();
      Lpn next = 0;
      table->state->frames().CollectForCold(
          {.group = 0, .log_start = core->log->end(), .looks = 100, .pages = 100}, &next, &work);
    }
    ASSERT_EQ(work.size(), 2u);
    read.Begin(work);
    change();
    ASSERT_OK(cleaner_damage_internal::PutBehind(core->cleaner.get(), table, &work, &read,
                                                 std::move(guard)));
  }
  TrajectoryId id_ = 0;
};

TEST_F(CleanerDamageTest, APageThatIsThereCostsItsTrajectory) {
  PutBeside([] {});
  EXPECT_STATUS(kNotFound, table_->Find(id_), "");
}

// The whole trajectory was removed, though what was left of it was good.
TEST_F(CleanerDamageTest, APageThatIsTrimmedMeanwhileCostsNothing) {
  PutBeside([this] { EXPECT_OK(table_->Truncate(id_, 4)); });
  EXPECT_OK(table_->Find(id_));
  EXPECT_EQ(table_->Stats().removed_by[static_cast<size_t>(RemovalReason::kDamaged)], 0u);
}

}  // namespace
}  // namespace geardb
