#include "engine/internal/table_image.h"

#include "tests/engine/internal/image_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

class TableImageTest : public ImageFixture {
 protected:
  void ExpectSame(const ImageChunks& image) {
    ImageCore loaded;
    ASSERT_OK(loaded.Load(image, lsn_));
    EXPECT_EQ(loaded.Dump(), testing::DumpIndex(*testing::CoreOf(*database_)));
    ImageChunks again;
    ASSERT_OK(loaded.Save(lsn_, &again));
    EXPECT_EQ(again.chunks, image.chunks);
  }
};

TEST_F(TableImageTest, ATableWithoutAnythingComesBack) {
  Create(testing::StepSpec());
  const ImageChunks empty = Take();
  EXPECT_LT(empty.bytes(), 1000u);
  ExpectSame(empty);
  AppendClosed(0, 3);
  const ImageChunks image = Take();
  EXPECT_LT(image.bytes(), empty.bytes() + 200);
  ExpectSame(image);
  EXPECT_EQ(image.CountOf(ImageKind::kItems), 0u) << "it has no priority table";
}

/// A table of 100,000 trajectories of a row each.
class ManyTrajectoriesTest : public TableImageTest {
 protected:
  static constexpr uint32_t kLanes = 1000;
  static constexpr int64_t kCalls = 100;

  void SetUp() override {
    TableImageTest::SetUp();
    options_.ring_bytes = uint64_t{8} << 20;
    options_.segment_bytes = uint64_t{16} << 20;
    OpenEmpty();
    TableSpec spec = testing::StepSpec();
    spec.steps_per_page = 1;
    for (const SelectorKind selector : {SelectorKind::kUniform, SelectorKind::kPrioritized,
                                        SelectorKind::kFifo, SelectorKind::kMinHeap}) {
      PriorityTableSpec priority =
          testing::WindowSpec("p" + std::to_string(spec.priority_tables.size()));
      priority.selector = selector;
      if (selector == SelectorKind::kMinHeap) priority.max_times_sampled = 2;
      spec.priority_tables.push_back(priority);
    }
    Create(spec, {.lanes = kLanes});
    const std::vector<End> ends(kLanes, End::kTerminated);
    for (int64_t call = 0; call < kCalls; ++call) {
      const testing::Rows rows(call * kLanes, kLanes);
      ASSERT_OK(writer_->AppendLanes(rows.many(), {.ends = ends}));
    }
  }
};

TEST_F(ManyTrajectoriesTest, TheyTakeSeveralChunksAndFreePlacesNone) {
  const ImageChunks full = Take();
  EXPECT_GE(full.CountOf(ImageKind::kTrajectories), 8u);
  EXPECT_GE(full.CountOf(ImageKind::kPages), 4u);
  EXPECT_GE(full.CountOf(ImageKind::kItems), 1u + 1 + 1 + 2);
  for (const auto& [chunk, bytes] : full.chunks) {
    EXPECT_LE(bytes.size(), kImageChunkBytes + kImageChunkBytes / 8) << NameOf(chunk);
  }
  ExpectSame(full);
  std::vector<TrajectoryId> gone;
  for (TrajectoryId id = 1; id <= kLanes * kCalls; ++id) {
    if (id % 1000 != 7) gone.push_back(id);
  }
  ASSERT_OK(table_->Remove(gone));
  const ImageChunks sparse = Take();
  EXPECT_EQ(sparse.chunks.size(), full.chunks.size());
  EXPECT_LT(sparse.bytes(), full.bytes() / 200);
  ExpectSame(sparse);
}

TEST_F(ManyTrajectoriesTest, ChunksThatChangeMeanwhileAreCopiedOnceAndGivenAsTheyWere) {
  const ImageChunks before = Take();
  const auto core = testing::CoreOf(*database_);
  TableState& state = *core->AllTables()[0]->state;
  std::unique_ptr<TableImage> image;
  {
    MutexLock lock(&core->commit);
    MutexLock state_lock(&state.mutex);
    image = std::make_unique<TableImage>(&state, NumbersOf(*core->AllTables()[0]->plan), lsn_);
  }
  const auto kept = [&] {
    MutexLock lock(&state.mutex);
    return image->kept();
  };
  EXPECT_EQ(kept(), 0u);
  const std::vector<RowId> items = priority("p1")->Items();
  const float three[1] = {3};
  ASSERT_OK(priority("p1")->Set({items.data(), 1}, three));
  EXPECT_EQ(kept(), 1u);
  ASSERT_OK(priority("p1")->Set({items.data() + 1, 1}, three));
  EXPECT_EQ(kept(), 1u) << "it is there already";
  const float score = 2;
  const ColumnValue column[1] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(TrajectoryId{9}, column));
  EXPECT_EQ(kept(), 2u);

  testing::ImageChunks taken;
  TrajectoryId gone = 100'000;
  for (int64_t chunk = 0; !image->done(); ++chunk) {
    ASSERT_OK(image->GiveNext(taken.sink()));
    if (chunk % 10 != 0) continue;
    const int64_t row = chunk / 10;
    // In chunks that were given, and in others.
    ASSERT_OK(table_->Remove({&gone, 1}));
    gone -= 2'000;
    const testing::Rows rows(row * kLanes, kLanes);
    const std::vector<End> ends(kLanes, End::kTruncated);
    ASSERT_OK(writer_->AppendLanes(rows.many(), {.ends = ends}));
    if (row == 3) {
      ASSERT_OK(priority("p3")->SetAll({three, 1}));
    }
    if (row == 4) {
      ASSERT_OK_AND_ASSIGN(
          auto sampler, priority("p3")->NewSampler({.batch = 500, .views = {{.column = "obs"}}}));
      ASSERT_OK(sampler->Next());
    }
    if (row == 5) {
      ASSERT_OK(priority("p3")->Configure(
          {.limiter = {.kind = LimiterKind::kQueue, .capacity = 1'000'000},
           .remove_when_exhausted = false}));
    }
  }
  EXPECT_EQ(kept(), 0u);
  image.reset();
  for (const auto& [chunk, bytes] : before.chunks) {
    if (chunk.table == 0) continue;
    EXPECT_TRUE(taken.chunks[chunk] == bytes) << NameOf(chunk);
  }
  ExpectSame(Take());
}

/// A chunk of the first version of all chunks of a kind: those have a count, and then the arrays of
/// entries of so many bytes each.
std::string Merged(const ImageChunks& image, ImageKind kind, std::span<const size_t> entry_bytes) {
  std::string merged;
  uint32_t count = 0;
  std::vector<std::string> arrays(entry_bytes.size());
  for (const auto& [chunk, bytes] : image.chunks) {
    if (chunk.kind != kind) continue;
    if (merged.empty()) merged = bytes.substr(0, kImageChunkHeaderBytes);
    uint32_t here = 0;
    std::memcpy(&here, bytes.data() + kImageChunkHeaderBytes, sizeof(here));
    size_t at = kImageChunkHeaderBytes + sizeof(here);
    for (size_t i = 0; i < entry_bytes.size(); ++i) {
      arrays[i] += bytes.substr(at, entry_bytes[i] * here);
      at += entry_bytes[i] * here;
    }
    EXPECT_EQ(at, bytes.size()) << NameOf(chunk);
    count += here;
  }
  merged.append(reinterpret_cast<const char*>(&count), sizeof(count));
  for (const std::string& array : arrays) merged += array;
  return merged;
}

TEST_F(TableImageTest, AnImageOfTheFirstVersionIsLoadedAndSavedAsOneOfThis) {
  TableSpec spec = testing::StepSpec();
  spec.steps_per_page = 1;
  spec.priority_tables = {testing::WindowSpec("per")};
  Create(spec, {.lanes = 100});
  const std::vector<End> ends(100, End::kTerminated);
  for (int64_t call = 0; call < 15; ++call) {
    ASSERT_OK(writer_->AppendLanes(testing::Rows(call * 100, 100).many(), {.ends = ends}));
  }
  const ImageChunks image = Take();
  ImageChunks first;
  for (const auto& [chunk, bytes] : image.chunks) {
    if (chunk.kind == ImageKind::kTrajectories || chunk.kind == ImageKind::kPages) continue;
    first.chunks.emplace(chunk, bytes);
  }
  // Two columns of 4 bytes behind the record's fields, one group behind the page's.
  const size_t slot[] = {4, 4, 8, 8, 8, 8, 8, 8, 8, 4, 4, 1, 1, 1, 4, 4};
  const size_t page[] = {4, 4, 4, 4, 8, 8, 8, 4, 2, 1, 1};
  first.chunks[{1, ImageKind::kTrajectories, 0}] = Merged(image, ImageKind::kTrajectories, slot);
  first.chunks[{1, ImageKind::kPages, 0}] = Merged(image, ImageKind::kPages, page);
  EXPECT_LT(first.chunks.size(), image.chunks.size());
  for (auto& [chunk, bytes] : first.chunks) bytes[0] = 1;
  ImageCore loaded;
  ASSERT_OK(loaded.Load(first, lsn_));
  EXPECT_EQ(loaded.Dump(), testing::DumpIndex(*testing::CoreOf(*database_)));
  ImageChunks again;
  ASSERT_OK(loaded.Save(lsn_, &again));
  EXPECT_EQ(again.chunks, image.chunks);
  for (auto& [chunk, bytes] : first.chunks) bytes[0] = 2;
  ImageCore mixed;
  EXPECT_STATUS(kCorruption, mixed.Load(first, lsn_), "slot 512 is out of place");
}

TEST_F(TableImageTest, ChunksOfWideRecordsHaveFewer) {
  TableSpec spec = testing::StepSpec();
  const uint64_t narrow = ImageShape(TableLayout(spec, 1)).slots_per_chunk;
  for (int i = 0; i < 200; ++i) {
    spec.columns.push_back({.name = "c" + std::to_string(i),
                            .dtype = DType::kF64,
                            .shape = {8},
                            .kind = ColumnKind::kPerTrajectory});
  }
  const uint64_t wide = ImageShape(TableLayout(spec, 1)).slots_per_chunk;
  EXPECT_EQ(narrow, 512u);
  EXPECT_EQ(wide, 4u);
}

TEST_F(TableImageTest, APromiseThatIsNotSyncedYetCounts) {
  Create(testing::StepSpec());
  const auto core = testing::CoreOf(*database_);
  MutexLock lock(&core->commit);
  TablePlan& plan = *core->AllTables()[0]->plan;
  const PlanNumbers before = NumbersOf(plan);
  EXPECT_EQ(before.ids_end, plan.ids_end);
  plan.promised_ids_end = before.ids_end + 5;
  plan.promised_generations_end = before.generations_end + 6;
  EXPECT_EQ(NumbersOf(plan).ids_end, before.ids_end + 5);
  EXPECT_EQ(NumbersOf(plan).generations_end, before.generations_end + 6);
}

TEST_F(TableImageTest, WhatIsReservedIsInNoImage) {
  TableSpec spec = testing::StepSpec();
  PriorityTableSpec priority = testing::WindowSpec("per");
  priority.max_times_sampled = 1;
  spec.priority_tables = {priority};
  Create(spec);
  AppendClosed(0, 8);
  const ImageChunks before = Take();
  ASSERT_OK_AND_ASSIGN(
      auto sampler,
      this->priority("per")->NewSampler({.batch = 2, .views = {{.column = "obs"}}, .prefetch = 3}));
  const auto core = testing::CoreOf(*database_);
  TableState& state = *core->AllTables()[0]->state;
  std::vector<uint64_t> leaves(2);
  {
    MutexLock lock(&state.mutex);
    state.priority(0).DrawReserved({}, leaves, {});
    EXPECT_TRUE(state.priority(0).selector().IsHidden(leaves[0]));
  }
  ImageChunks now;
  ASSERT_OK(SaveTable(&state, NumbersOf(*core->AllTables()[0]->plan), lsn_, now.sink()));
  ImageChunks table;
  for (const auto& [chunk, bytes] : before.chunks) {
    if (chunk.table != 0) table.chunks[chunk] = bytes;
  }
  EXPECT_EQ(now.chunks, table.chunks);
  MutexLock lock(&state.mutex);
  state.priority(0).CancelReserved(2, leaves, {});
}

}  // namespace
}  // namespace geardb::engine
