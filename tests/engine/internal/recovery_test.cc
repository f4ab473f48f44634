#include "engine/internal/recovery.h"

#include <array>
#include <cmath>
#include <string>

#include "tests/engine/internal/recovery_fixture.h"

namespace geardb::engine {
namespace {

using testing::StepSpec;
using testing::WindowSpec;

class RecoveryTest : public RecoveryFixture {
 protected:
  using RecoveryFixture::Feed;
  Status Ranges(uint64_t ids_end, TableId table = kSteps) {
    return Feed(fb::Change::Ranges, fb::CreateRanges(builder_, ids_end, UINT32_MAX), table);
  }
  Status Drop(TableId table) {
    return Feed(fb::Change::DropTable, fb::CreateDropTable(builder_), table);
  }
  Status WriteTag(const std::string& name, std::span<const wal::PieceView> pieces) {
    const auto tag = fb::CreateWriteTag(builder_, builder_.CreateString(name), 0, 0, true);
    const auto operation = fb::CreateOperation(builder_, 0, 0, fb::Change::WriteTag, tag.Union());
    return FeedOperations({operation}, pieces);
  }
};

TEST_F(RecoveryTest, TablesAreCreatedOnceInOrderOfTheirNumbers) {
  TableSpec other = StepSpec();
  other.name = "other";
  EXPECT_STATUS(kCorruption, CreateTable(StepSpec(), 0), "the record at LSN ");
  EXPECT_STATUS(kCorruption, CreateTable(StepSpec(), UINT32_MAX), "table 4294967295 is created");
  ASSERT_OK(CreateTable(StepSpec(), 5));
  EXPECT_STATUS(kCorruption, CreateTable(other, 5), "table 5 is created after table 5");
  EXPECT_STATUS(kCorruption, CreateTable(other, 4), "table 4 is created after table 5");
  EXPECT_STATUS(kCorruption, CreateTable(StepSpec(), 6), "a table 'steps' already");
  ASSERT_OK(CreateTable(other, 6));
  ASSERT_OK(Drop(6));
  EXPECT_STATUS(kCorruption, CreateTable(other, 6), "table 6 is created after table 6");
  EXPECT_OK(CreateTable(other, 7));
}

TEST_F(RecoveryTest, ASchemaThatIsNotValidIsRefusedWithTheLsn) {
  TableSpec spec = StepSpec();
  spec.steps_per_page = 3;
  EXPECT_STATUS(kCorruption, CreateTable(spec), "steps_per_page 3");
  spec = StepSpec();
  spec.columns[0].shape = Shape({int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_STATUS(kCorruption, CreateTable(spec), "the record at LSN ");
  spec.columns[0].shape = Shape({-1});
  EXPECT_STATUS(kCorruption, CreateTable(spec), "column 'obs'");
  spec = StepSpec();
  spec.columns[1].dtype = static_cast<DType>(200);
  EXPECT_STATUS(kCorruption, CreateTable(spec), "unknown dtype 200");
  spec = StepSpec();
  spec.name = std::string(5000, 'x');
  EXPECT_STATUS(kCorruption, CreateTable(spec), "a name of 5000 characters");
  spec = StepSpec();
  spec.columns.resize(2000, spec.columns[0]);
  EXPECT_STATUS(kCorruption, CreateTable(spec), "2000 columns");
  spec = StepSpec();
  spec.columns[0].name = std::string(5000, 'x');
  EXPECT_STATUS(kCorruption, CreateTable(spec), "a column that is none");
  EXPECT_EQ(feed_.core().AllTables().size(), 0u);
}

TEST_F(RecoveryTest, BytesOfABoolThatAreNeitherZeroNorOneAreTakenAsOne) {
  ASSERT_OK(CreateTable(
      {.name = "steps",
       .columns =
           {{.name = "b", .dtype = DType::kBool, .shape = {3}},
            {.name = "s", .dtype = DType::kBool, .shape = {2}, .kind = ColumnKind::kPerTrajectory}},
       .steps_per_page = 4}));
  AppendParts parts = Begins(1, 0, 2);
  const auto stored = std::to_array<uint8_t>({0, 7, 1, 255, 0, 2});
  parts.sets = {fb::ColumnSet(0, 0)};
  parts.values = {9, 0};
  parts.piece = std::as_bytes(std::span(stored));
  ASSERT_OK(Feed(parts));
  MutexLock lock(&steps().mutex);
  const std::byte* frame = feed_.core().arena->Resolve(steps().pages().group_page(0, 0).frame);
  const auto expected = std::to_array<uint8_t>({0, 1, 1, 1, 0, 1});
  EXPECT_EQ(std::memcmp(frame, expected.data(), expected.size()), 0);
  const auto set = steps().trajectories().column(0, 0);
  EXPECT_EQ(set[0], std::byte{1});
  EXPECT_EQ(set[1], std::byte{0});
}

TEST_F(RecoveryTest, PriorityTablesAreCreatedOnceInOrder) {
  ASSERT_OK(CreateTable(StepSpec()));
  EXPECT_STATUS(kCorruption, CreatePriorityTable(WindowSpec("per"), 1), "as number 1 after 0");
  ASSERT_OK(CreatePriorityTable(WindowSpec("per")));
  EXPECT_STATUS(kCorruption, CreatePriorityTable(WindowSpec("per"), 1), "'per' already");
  EXPECT_STATUS(kCorruption, CreatePriorityTable(WindowSpec("other"), 1, std::nanf("")),
                "begins with priority");
  PriorityTableSpec spec = WindowSpec("other", {.before = INT64_MAX, .length = 1, .after = 0});
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "the record at LSN ");
  spec = WindowSpec("other", {.before = 0, .length = 0, .after = 0});
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "length 0");
  spec = WindowSpec("other");
  spec.window.stride = 0;
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "stride 0");
  spec = WindowSpec("other");
  spec.alpha = std::nan("");
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "alpha nan");
  spec = WindowSpec("other");
  spec.initial = InitialPriority::kColumn;
  spec.initial_priority_column = std::string(5000, 'x');
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "a name of more than");
  EXPECT_OK(CreatePriorityTable(WindowSpec("other"), 1));
}

TEST_F(RecoveryTest, SeveralOperationsAreATableAndItsPriorityTables) {
  const auto create = [&](TableId id) {
    const auto stored = EncodeTableSpec(&builder_, StepSpec());
    const auto table = fb::CreateCreateTable(builder_, stored, 1000, 1000);
    return fb::CreateOperation(builder_, id, 0, fb::Change::CreateTable, table.Union());
  };
  const auto priority = [&](TableId id, const char* name, uint32_t number) {
    const auto stored = EncodePriorityTableSpec(&builder_, WindowSpec(name));
    const auto table = fb::CreateCreatePriorityTable(builder_, stored, 1);
    return fb::CreateOperation(builder_, id, number, fb::Change::CreatePriorityTable,
                               table.Union());
  };
  EXPECT_STATUS(kCorruption, FeedOperations({create(1), create(2)}), "operation 1 of 2");
  EXPECT_STATUS(kCorruption, FeedOperations({create(1), priority(2, "per", 0)}),
                "operation 1 of 2");
  EXPECT_OK(FeedOperations({create(1), priority(1, "per", 0), priority(1, "other", 1)}));
  // The same operation named often would cost its time often.
  const auto rescale = fb::CreateRescale(builder_, 1);
  const auto operation = fb::CreateOperation(builder_, 1, 0, fb::Change::Rescale, rescale.Union());
  EXPECT_STATUS(kCorruption, FeedOperations({operation, operation, operation}), "operation 1 of 3");
}

TEST_F(RecoveryTest, ARecordOfATableThatIsNotThereIsLeftOutOnlyIfItWas) {
  EXPECT_STATUS(kCorruption, Ranges(10), "table 1 does not exist");
  ASSERT_OK(CreateTable(StepSpec()));
  ASSERT_OK(Ranges(10));
  ASSERT_OK(Drop(kSteps));
  EXPECT_OK(Ranges(10));  // Its call was under way.
  EXPECT_STATUS(kCorruption, Ranges(10, 0), "table 0 does not exist");
  EXPECT_STATUS(kCorruption, Ranges(10, 2), "table 2 does not exist");
}

TEST_F(RecoveryTest, IdsArePromisedOnlyWhereThereAreSome) {
  EXPECT_STATUS(kCorruption, CreateTable(StepSpec(), kSteps, UINT64_MAX), "ids up to");
  ASSERT_OK(CreateTable(StepSpec(), kSteps, kIdsEnd));
  EXPECT_STATUS(kCorruption, Ranges(kIdsEnd + 1), "ids up to");
  EXPECT_OK(Ranges(kIdsEnd));
}

TEST_F(RecoveryTest, AnOperationOfALaterVersionIsUnsupported) {
  CreateSteps();
  const auto later = static_cast<fb::Change>(static_cast<int>(fb::Change::MAX) + 1);
  EXPECT_STATUS(kUnsupported, Feed(later, fb::CreateDropTable(builder_)),
                "written by a newer GearDB: the record at LSN");
}

TEST_F(RecoveryTest, PartitionsOfALaterVersionAreUnsupported) {
  const auto create = [&](uint32_t partitions) {
    const auto columns = builder_.CreateVector<flatbuffers::Offset<fb::Column>>(
        {fb::CreateColumn(builder_, builder_.CreateString("reward"), 10)});
    const auto name = builder_.CreateString("t");
    const auto spec =
        fb::CreateTableSpec(builder_, name, columns, false, false, 4, 10, 0, 0, 0, 0, partitions);
    return Feed(fb::Change::CreateTable, fb::CreateCreateTable(builder_, spec, 1000, 1000));
  };
  EXPECT_STATUS(kUnsupported, create(4), "written by a newer GearDB: table 't' has 4 partitions");
  EXPECT_STATUS(kCorruption, create(0), "table 't' is stored with 0 partitions");
  ASSERT_OK(create(1));
  const auto ranges = fb::CreateRanges(builder_, 1000, 1000);
  EXPECT_STATUS(kUnsupported,
                FeedOperations({fb::CreateOperation(builder_, kSteps, 0, fb::Change::Ranges,
                                                    ranges.Union(), /*partition=*/3)}),
                "changes partition 3 of table 1");
}

TEST_F(RecoveryTest, SelectorsOfALaterVersionAreUnsupported) {
  CreateSteps();
  PriorityTableSpec spec = WindowSpec("later");
  spec.selector = static_cast<SelectorKind>(static_cast<int>(kSelectorKindLast) + 1);
  const auto create = [&] {
    const auto stored = EncodePriorityTableSpec(&builder_, spec);
    const auto table = fb::CreateCreatePriorityTable(builder_, stored, 1);
    const auto operation =
        fb::CreateOperation(builder_, kSteps, 1, fb::Change::CreatePriorityTable, table.Union());
    return FeedOperations({operation});
  };
  EXPECT_STATUS(kUnsupported, create(),
                "written by a newer GearDB: priority table 'later' has selector 8");
  spec.selector = kSelectorKindLast;
  EXPECT_OK(create());
}

TEST_F(RecoveryTest, EpochsAreOfPriorityTablesThatHaveSome) {
  CreateSteps();
  PriorityTableSpec epochs = WindowSpec("epochs");
  epochs.selector = SelectorKind::kEpoch;
  epochs.epoch.passes = 2;
  ASSERT_OK(CreatePriorityTable(epochs, 1));
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const auto begin = [&](uint32_t number) {
    return Feed(fb::Change::BeginEpoch, fb::CreateBeginEpoch(builder_), kSteps, number);
  };
  const auto end = [&](uint32_t number, uint64_t epoch, uint64_t pass) {
    return Feed(fb::Change::EndPass, fb::CreateEndPass(builder_, epoch, pass), kSteps, number);
  };
  EXPECT_STATUS(kCorruption, begin(0), "an epoch of priority table 'per', which has none");
  EXPECT_STATUS(kCorruption, end(0, 1, 1), "an epoch of priority table 'per', which has none");
  // Passes that are not, or are over, say nothing.
  EXPECT_OK(end(1, 0, 0));
  EXPECT_OK(begin(1));
  EXPECT_OK(end(1, UINT64_MAX, UINT64_MAX));
  EXPECT_OK(end(1, 1, 1));
  EXPECT_OK(end(1, 1, 1));
  const fb::Handed items[] = {fb::Handed(0, 21), fb::Handed(1, 21)};
  const fb::Sampled sampled(0, 11, 2);
  const auto hand_over = [&](uint64_t pass) {
    const auto shown = builder_.CreateVectorOfStructs(&sampled, 1);
    const auto handed = builder_.CreateVectorOfStructs(items, 2);
    return Feed(fb::Change::HandOver,
                fb::CreateHandOver(builder_, 1, shown, handed, /*epoch=*/1, pass), kSteps, 1);
  };
  EXPECT_OK(hand_over(1));
  EXPECT_OK(hand_over(2));
  EXPECT_OK(hand_over(2));
  EXPECT_OK(feed_.Finish());
  MutexLock lock(&feed_.core().TableById(kSteps)->state->mutex);
  const EpochStats stats = feed_.core().TableById(kSteps)->state->priority(1).epoch()->Stats();
  EXPECT_EQ(stats.pass, 2u);
  EXPECT_EQ(stats.remaining, 1u);
}

TEST_F(RecoveryTest, SealsAreOfPriorityTablesThatHaveGroups) {
  CreateSteps();
  PriorityTableSpec spec = WindowSpec("groups");
  spec.item = ItemKind::kGroup;
  spec.window = {};
  spec.group = {.key = "version", .count = 3, .at_least = 2, .deadline_ms = 1};
  ASSERT_OK(CreatePriorityTable(spec, 1));
  AppendParts parts = Begins(1, 0, 3);
  parts.rows = {fb::Rows(0, 11, 0, 3, static_cast<uint8_t>(End::kTerminated), false, true)};
  ASSERT_OK(Feed(parts));
  const auto seal = [&](uint32_t number, std::vector<fb::Handed> groups, bool by_deadline) {
    const auto offset = builder_.CreateVectorOfStructs(groups);
    return Feed(fb::Change::SealGroups, fb::CreateSealGroups(builder_, offset, by_deadline), kSteps,
                number);
  };
  EXPECT_STATUS(kCorruption, seal(0, {}, false), "'per', which has none");
  EXPECT_STATUS(kCorruption, seal(7, {}, false), "priority table 7 of table 1 does not exist");
  // What is not there, is another's, or has too few members, says nothing.
  EXPECT_OK(Feed(fb::Change::SealGroups, fb::CreateSealGroups(builder_), kSteps, 1));
  EXPECT_OK(seal(1, {fb::Handed(UINT64_MAX, 11), fb::Handed(1, 11), fb::Handed(0, 12)}, false));
  EXPECT_OK(seal(1, {fb::Handed(0, 11)}, true));
  const auto items = [&] {
    MutexLock lock(&steps().mutex);
    return steps().priority(1).selector().count();
  };
  EXPECT_EQ(items(), 0u);
  EXPECT_OK(seal(1, {fb::Handed(0, 11), fb::Handed(0, 11)}, false));
  EXPECT_EQ(items(), 1u);
  // A batch has a row, or more, of each member.
  const auto hand_over = [&](uint32_t rows, size_t groups) {
    const fb::Sampled sampled(0, 11, rows);
    const std::vector<fb::Handed> handed(groups, fb::Handed(0, 11));
    const auto shown = builder_.CreateVectorOfStructs(&sampled, 1);
    const auto named = builder_.CreateVectorOfStructs(handed);
    return Feed(fb::Change::HandOver, fb::CreateHandOver(builder_, 1, shown, named), kSteps, 1);
  };
  EXPECT_OK(hand_over(3, 2));
  EXPECT_STATUS(kCorruption, hand_over(1, 2), "a batch of 1 rows shows 2 items");
  EXPECT_OK(feed_.Finish());
}

TEST_F(RecoveryTest, ItemsThatAreDeletedMayBeAnyItems) {
  CreateSteps();
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const std::vector<fb::Handed> items = {fb::Handed(0, 21), fb::Handed(0, 21), fb::Handed(1, 20),
                                         fb::Handed(UINT64_MAX, 21),
                                         fb::Handed(uint64_t{1} << 41, 0)};
  const auto offset = builder_.CreateVectorOfStructs(items);
  EXPECT_OK(Feed(fb::Change::DeleteItems, fb::CreateDeleteItems(builder_, offset)));
  EXPECT_OK(Feed(fb::Change::DeleteItems, fb::CreateDeleteItems(builder_)));
  EXPECT_OK(feed_.Finish());
  MutexLock lock(&feed_.core().TableById(kSteps)->state->mutex);
  EXPECT_EQ(feed_.core().TableById(kSteps)->state->priority(0).selector().count(), 2u);
}

TEST_F(RecoveryTest, ARemoverByPriorityNeedsItsPriorityTable) {
  TableSpec spec = StepSpec();
  spec.remover = Remover::kMinHeap;
  spec.remover_priority_table = "per";
  spec.steps_max = 10;
  ASSERT_OK(CreateTable(spec));
  EXPECT_STATUS(kCorruption, feed_.Finish(), "a remover by priority in 'per', which is no");
}

TEST_F(RecoveryTest, APriorityTableThatIsNotThereIsRefused) {
  ASSERT_OK(CreateTable(StepSpec()));
  EXPECT_STATUS(kCorruption, Feed(fb::Change::HandOver, fb::CreateHandOver(builder_, 1), kSteps, 0),
                "priority table 0 of table 1 does not exist");
}

TEST_F(RecoveryTest, DrawNumbersAndSampledTrajectoriesMayBeAnyNumbers) {
  CreateSteps();
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const fb::Sampled sampled[2] = {fb::Sampled(0, 11, UINT32_MAX), fb::Sampled(kNoSlot, 0, 1)};
  const auto offset = builder_.CreateVectorOfStructs(sampled, 2);
  EXPECT_OK(Feed(fb::Change::HandOver, fb::CreateHandOver(builder_, UINT64_MAX, offset)));
  EXPECT_OK(Feed(fb::Change::RestartDraws, fb::CreateRestartDraws(builder_, 1, UINT64_MAX)));
  EXPECT_OK(feed_.Finish());
}

TEST_F(RecoveryTest, ABatchOfSeveralPriorityTablesIsHandedOverTogether) {
  CreateSteps();
  ASSERT_OK(CreatePriorityTable(WindowSpec("second"), 1));
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const auto hand_over = [&](uint32_t priority_table, uint64_t draw_number) {
    const fb::Sampled sampled[1] = {fb::Sampled(0, 11, 1 + priority_table)};
    const auto offset = builder_.CreateVectorOfStructs(sampled, 1);
    return fb::CreateOperation(builder_, kSteps, priority_table, fb::Change::HandOver,
                               fb::CreateHandOver(builder_, draw_number, offset).Union());
  };
  const auto rescale = [&] {
    return fb::CreateOperation(builder_, kSteps, 1, fb::Change::Rescale,
                               fb::CreateRescale(builder_, 1).Union());
  };
  EXPECT_STATUS(kCorruption, FeedOperations({hand_over(0, 0), rescale()}),
                "operation 1 of 2 is no hand-over, as the first one is");
  EXPECT_STATUS(kCorruption, FeedOperations({rescale(), hand_over(0, 0)}), "operation 1 of 2");
  EXPECT_STATUS(kCorruption, FeedOperations({hand_over(0, 0), hand_over(1, 0), hand_over(0, 1)}),
                "operation 2 of 3 hands over of priority table 0 of table 1 again");
  EXPECT_STATUS(kCorruption, FeedOperations({hand_over(0, 0), hand_over(2, 0)}),
                "priority table 2 of table 1 does not exist");
  EXPECT_OK(FeedOperations({hand_over(0, 4), hand_over(1, 6)}));
  EXPECT_OK(feed_.Finish());
  MutexLock lock(&steps().mutex);
  EXPECT_EQ(steps().priority(0).next_draw, 5u);
  EXPECT_EQ(steps().priority(1).next_draw, 7u);
  EXPECT_EQ(steps().priority(1).limiter().state().samples, 2u);
}

TEST_F(RecoveryTest, ABatchShowsAsManyItemsAsRows) {
  CreateSteps();
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const auto hand_over = [&](const std::vector<fb::Handed>& items, uint32_t rows) {
    const fb::Sampled sampled[1] = {fb::Sampled(0, 11, rows)};
    const auto sampled_offset = builder_.CreateVectorOfStructs(sampled, 1);
    const auto items_offset = builder_.CreateVectorOfStructs(items);
    return Feed(fb::Change::HandOver,
                fb::CreateHandOver(builder_, 0, sampled_offset, items_offset));
  };
  EXPECT_STATUS(kCorruption, hand_over({fb::Handed(0, 21)}, 2), "2 rows shows 1 items");
  EXPECT_STATUS(kCorruption, hand_over({fb::Handed(uint64_t{1} << 50, 21)}, 1),
                "shows the item of leaf 1125899906842624");
  // Of an item that is gone, or where nobody counts.
  EXPECT_OK(hand_over({fb::Handed(0, 21), fb::Handed(1, 99)}, 2));
}

TEST_F(RecoveryTest, OtherLimitsAreCheckedBeforeTheyCount) {
  CreateSteps();
  const auto configure = [&](flatbuffers::Offset<fb::Limits> limits) {
    return Feed(fb::Change::Configure, fb::CreateConfigure(builder_, limits));
  };
  EXPECT_STATUS(kUnsupported, configure(fb::CreateLimits(builder_, 4)), "limiter of kind 4");
  EXPECT_STATUS(kCorruption, configure(fb::CreateLimits(builder_, 2)), "the capacity of a queue");
  EXPECT_STATUS(kCorruption, configure(fb::CreateLimits(builder_, 0, 1, 1, 0, 0, 65'535)),
                "max_times_sampled 65535");
  ASSERT_OK(configure(fb::CreateLimits(builder_, 2, 1, 1, 0, 2)));
  ASSERT_OK(Feed(Begins(1, 0, 3)));
  const fb::Sampled sampled[1] = {fb::Sampled(0, 11, 1)};
  const fb::Handed items[1] = {fb::Handed(1, 21)};
  const auto sampled_offset = builder_.CreateVectorOfStructs(sampled, 1);
  const auto items_offset = builder_.CreateVectorOfStructs(items, 1);
  ASSERT_OK(
      Feed(fb::Change::HandOver, fb::CreateHandOver(builder_, 0, sampled_offset, items_offset)));
  EXPECT_OK(feed_.Finish());
  MutexLock lock(&steps().mutex);
  const PriorityState& priority = steps().priority(0);
  EXPECT_TRUE(priority.IsExhausted(1));
  EXPECT_EQ(priority.selector().drawable(), 2u);
  EXPECT_EQ(priority.limiter().state().samples, 1u);
}

TEST_F(RecoveryTest, TagsHaveNamesAndBlobs) {
  EXPECT_STATUS(kCorruption, WriteTag("", {}), "a tag's name has 0 characters");
  EXPECT_STATUS(kCorruption, WriteTag(std::string(257, 'x'), {}), "has 257 characters");
  std::vector<wal::PieceView> pieces = Pieces({8, 8}, /*damaged=*/true);
  EXPECT_OK(WriteTag("tag", pieces));
  EXPECT_TRUE(feed_.core().Tags().at(0).damaged);
  EXPECT_EQ(feed_.core().Tags().at(0).blob.size(), 0u);
  pieces = Pieces({8, 8});
  EXPECT_OK(WriteTag("tag", pieces));
  pieces[1].offset = 0;
  EXPECT_STATUS(kCorruption, WriteTag("tag", pieces), "piece 1 does not lie behind");
  ASSERT_EQ(feed_.core().Tags().size(), 1u);
  EXPECT_EQ(feed_.core().Tags()[0].blob.size(), 16u);
}

}  // namespace
}  // namespace geardb::engine
