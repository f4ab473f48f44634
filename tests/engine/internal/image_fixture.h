// A small store with tables of every kind, and images of it, to be changed by a test before they
// are loaded.
#pragma once

#include <set>

#include "engine/internal/table_image.h"
#include "engine/internal/table_image_load.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/image_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {

class ImageFixture : public testing::StoreTest {
 protected:
  /// Table 1, "steps": late, volatile and plain groups, items of all kinds.
  TableSpec StepsSpec() {
    TableSpec spec = testing::StepSpec(/*final_row=*/true);
    spec.groups = {{.name = "late", .late = true}, {.name = "cache", .is_volatile = true}};
    spec.columns[1].group = "cache";
    spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
    const auto add = [&](const char* name, SelectorKind selector, ItemKind item) {
      PriorityTableSpec priority =
          testing::WindowSpec(name, {.before = 0, .length = 2, .after = 1});
      priority.selector = selector;
      priority.item = item;
      priority.remove_when_exhausted = false;
      if (item == ItemKind::kTrajectory) priority.window = {};
      spec.priority_tables.push_back(priority);
    };
    add("per", SelectorKind::kPrioritized, ItemKind::kWindow);
    add("uniform", SelectorKind::kUniform, ItemKind::kWindow);
    add("heap", SelectorKind::kMaxHeap, ItemKind::kTrajectory);
    add("queue", SelectorKind::kFifo, ItemKind::kWindow);
    spec.priority_tables.back().limiter = {.kind = LimiterKind::kQueue, .capacity = 1000};
    spec.priority_tables.back().window.left = EdgeRule::kRequire;
    spec.priority_tables.back().window.extent.before = 1;
    add("waits", SelectorKind::kWithoutReplacement, ItemKind::kWindow);
    spec.priority_tables.back().required = {"late", "score"};
    add("epochs", SelectorKind::kEpoch, ItemKind::kWindow);
    spec.priority_tables.back().epoch.passes = 2;
    return spec;
  }
  /// Table 2, "stream".
  TableSpec StreamSpec() {
    TableSpec spec = testing::StepSpec(/*final_row=*/true);
    spec.name = "stream";
    spec.stream = true;
    spec.priority_tables = {testing::WindowSpec("per", {.before = 1, .length = 2, .after = 1})};
    spec.priority_tables[0].window.stride_from_end = true;
    return spec;
  }

  void Fill() {
    Create(StepsSpec(), {.lanes = 2});
    const TrajectoryId first = AppendClosed(0, 5);
    AppendClosed(10, 9, End::kTruncated);
    AppendClosed(20, 6, End::kCut);
    const TrajectoryId gone = AppendClosed(30, 6);
    const TrajectoryId open = Append(40, 6).id;
    Append(50, 9, End::kGo, 1);
    ASSERT_OK(writer_->Cut(1));
    ASSERT_OK(table_->Truncate(open, 4));
    ASSERT_OK(table_->Remove({&gone, 1}));
    const std::vector<RowId> of_epochs = priority("epochs")->Items();
    ASSERT_OK(priority("epochs")->Delete({of_epochs.data(), 2}));
    ASSERT_OK(priority("epochs")->BeginEpoch());
    Append(60, 2, End::kTerminated, 1);  // Takes the slot, and some LPNs.
    const float score = 3;
    const ColumnValue column[1] = {{"score", TensorView::Scalar(score)}};
    ASSERT_OK(table_->SetColumns(first, column));
    const std::vector<float> targets = {1, 2, 3, 4, 5};
    const ColumnValue target[1] = {{"target", TensorView::Of(std::span<const float>(targets))}};
    const RowSpan span{first, 0, 5};
    ASSERT_OK(table_->Patch({&span, 1}, target));
    const std::vector<RowId> items = priority("per")->Items();
    const float priorities[2] = {0, 7};
    ASSERT_OK(priority("per")->Set({items.data(), 2}, priorities));
    ASSERT_OK_AND_ASSIGN(auto sampler,
                         priority("queue")->NewSampler({.batch = 3, .views = {{.column = "obs"}}}));
    ASSERT_OK(sampler->Next());
    ASSERT_OK_AND_ASSIGN(
        sampler, priority("epochs")->NewSampler({.batch = 3, .views = {{.column = "obs"}}}));
    ASSERT_OK(sampler->Next());
    const std::string tag = "blob";
    ASSERT_OK(database_->WriteTag("tag", std::as_bytes(std::span(tag))));
    ASSERT_OK(database_->CreateTable(StreamSpec()));
    FillStream();
  }

  void FillStream() {
    ASSERT_OK_AND_ASSIGN(const auto stream, database_->OpenTable("stream"));
    ASSERT_OK_AND_ASSIGN(auto writer, stream->NewWriter({.lanes = 2}));
    for (int64_t k = 0; k < 36; k += 3) {
      const testing::Rows rows(k, 3);
      const End end = k % 9 == 0 ? End::kTruncated : k % 5 == 0 ? End::kCut : End::kGo;
      AppendOptions options{.lane = static_cast<uint32_t>(k % 2), .end = end};
      if (end == End::kTruncated) options.final = rows.final_row();
      ASSERT_OK(writer->AppendSteps(rows.many(), options));
    }
    ASSERT_OK(stream->Truncate(1, 3));
    ASSERT_OK(writer->Cut(1));
  }

  /// An image of the store as it is.
  testing::ImageChunks Take() {
    testing::ImageChunks image;
    const auto core = testing::CoreOf(*database_);
    MutexLock lock(&core->commit);
    EXPECT_OK(core->CatchUp());
    lsn_ = core->log->end();
    EXPECT_OK(SaveDatabase(core.get(), lsn_, image.sink()));
    return image;
  }

  /// Loads a table into memory that all loads share, which has room for one at a time.
  Result<LoadedTable> LoadInto(testing::ImageCore* core, const testing::ImageChunks& image,
                               TableId table) {
    return LoadTable({.index = core->core().index_memory.get(),
                      .arena = core->core().arena.get(),
                      .kept = Kept::kTaken},
                     table, lsn_, image.source());
  }
  /// What a loaded table can be asked, and that its image is the same one.
  void UseLoaded(testing::ImageCore* core, LoadedTable* table, TableId id) {
    testing::ImageChunks image;
    std::string dump;
    {
      MutexLock lock(&table->state->mutex);
      table->state->EndBulk();
      dump = testing::DumpTable(table->state.get());
    }
    ASSERT_OK(SaveTable(table->state.get(), NumbersOf(*table->plan), lsn_, image.sink()));
    ASSERT_OK_AND_ASSIGN(LoadedTable again, LoadInto(core, image, id));
    MutexLock lock(&again.state->mutex);
    again.state->EndBulk();
    ASSERT_EQ(testing::DumpTable(again.state.get()), dump);
  }

  Lsn lsn_ = 0;
};

}  // namespace geardb::engine
