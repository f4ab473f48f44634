// Batches over several tables against the same changes made call by call, in the order that
// Database::Write promises, in another database: everything that can be seen is the same after each
// of them, live and after both were opened again.
#include "engine/write_batch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/conformance/random_choice.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::conformance {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

constexpr uint32_t kLanes = 3;

/// A full table with a remover of its own, a full stream, and one with all selectors.
std::vector<TableSpec> Specs() {
  TableSpec full = StepSpec(/*final_row=*/true);
  full.name = "full";
  full.trajectories_max = 9;
  full.remover = Remover::kLifo;
  full.priority_tables = {WindowSpec("per"), WindowSpec("whole")};
  full.priority_tables[1].item = ItemKind::kTrajectory;
  TableSpec stream = StepSpec();
  stream.name = "stream";
  stream.stream = true;
  stream.steps_max = 70;
  stream.priority_tables = {WindowSpec("per", {1, 2, 1})};
  TableSpec many = StepSpec();
  many.name = "many";
  many.groups = {{.name = "apart"}, {.name = "cache", .is_volatile = true}};
  many.columns[1].group = "apart";
  many.columns[2].group = "cache";
  for (const SelectorKind selector : {SelectorKind::kFifo, SelectorKind::kMaxHeap,
                                      SelectorKind::kUniform, SelectorKind::kWithoutReplacement}) {
    many.priority_tables.push_back(
        WindowSpec("s" + std::to_string(static_cast<int>(selector)), {.length = 2}));
    many.priority_tables.back().selector = selector;
  }
  many.priority_tables[1].initial = InitialPriority::kColumn;
  many.priority_tables[1].initial_priority_column = "score";
  return {full, stream, many};
}

/// One of the two databases.
struct Store {
  testing::TempDir directory;
  std::unique_ptr<Database> database;
  std::vector<std::shared_ptr<Table>> tables;
  std::vector<std::unique_ptr<Writer>> writers;

  void Open() {
    ASSERT_OK_AND_ASSIGN(database, Database::Open(directory.path(), testing::SmallOptions()));
    for (const TableSpec& spec : Specs()) {
      ASSERT_OK_AND_ASSIGN(tables.emplace_back(), database->OpenOrCreateTable(spec));
      ASSERT_OK_AND_ASSIGN(writers.emplace_back(), tables.back()->NewWriter({.lanes = kLanes}));
    }
  }
  void Reopen() {
    writers.clear();
    tables.clear();
    ASSERT_OK(database->Close());
    database.reset();
    Open();
  }
  /// All that can be seen.
  std::string Seen() const {
    std::ostringstream out;
    for (const auto& table : tables) {
      out << table->spec().name << '\n';
      for (const TrajectoryRecord& record : table->Scan({})) {
        out << ' ' << record.id << " rows " << record.first_row << " to " << record.rows_end
            << " state " << static_cast<int>(record.state) << " end "
            << static_cast<int>(record.end) << " sampled " << record.times_sampled << ':';
        const auto rows = table->Read(record.id, {}, {});
        EXPECT_OK(rows);
        if (!rows.ok()) continue;
        for (const ColumnRows& column : *rows) {
          const auto view = column.view();
          const auto* bytes = static_cast<const uint8_t*>(view.bytes);
          for (size_t i = 0; i < view.byte_count(); ++i) out << std::hex << int{bytes[i]};
          out << std::dec << ';';
        }
        out << '\n';
      }
      for (const std::string& name : table->PriorityTables())
        See(*table->priority_table(name), &out);
    }
    for (const Tag& tag : database->Tags()) out << tag.name << ' ' << tag.blob.size() << '\n';
    return out.str();
  }
  static void See(PriorityTable& table, std::ostream* out) {
    const PriorityTableStats stats = table.Stats();
    *out << ' ' << table.spec().name << " max " << table.MaxPriority() << " drawable "
         << table.DrawableCount() << " inserts " << stats.limiter.inserts << " deletes "
         << stats.limiter.deletes << ':';
    for (const RowId& row : table.Items()) {
      *out << ' ' << row.id << ':' << row.row << " p " << *table.Priority(row) << " P "
           << *table.Probability(row);
    }
    const auto sampler =
        table.NewSampler({.batch = 3, .observer = true, .seed = 4, .timeout_ms = 0});
    EXPECT_OK(sampler);
    const auto batch = (*sampler)->Next();
    for (int64_t i = 0; batch.ok() && i < batch->size(); ++i) {
      const auto at = static_cast<size_t>(i);
      *out << " drawn " << batch->trajectory_ids()[at] << ':' << batch->anchors()[at];
    }
    *out << '\n';
  }
};

class WriteBatchConformance {
 public:
  explicit WriteBatchConformance(uint64_t seed) : choice_(seed) {
    together_.Open();
    apart_.Open();
  }

  void Step() {
    WriteBatch batch;
    // As it is before the batch.
    for (size_t t = 0; t < 3; ++t) AddItems(t, &batch);
    for (size_t t = 0; t < 3; ++t) {
      ChooseRemoved(t);
      if (choice_.Percent(60)) AddAppends(t, &batch);
      if (!removed_.empty()) {
        batch.Remove(together_.tables[t], removed_);
        std::vector<TrajectoryId> ids = removed_;
        after_deletes_.insert(after_deletes_.begin() + static_cast<ptrdiff_t>(removals_++),
                              [this, t, ids] { EXPECT_OK(apart_.tables[t]->Remove(ids)); });
      }
    }
    if (choice_.Percent(20)) {
      const std::string name = "tag" + std::to_string(choice_.Below(3));
      blob_.resize(choice_.Below(300));
      batch.WriteTag(name, blob_);
      after_deletes_.push_back([this, name] { EXPECT_OK(apart_.database->WriteTag(name, blob_)); });
    }
    const auto outcome = together_.database->Write(batch);
    ASSERT_OK(outcome);
    Run(&sets_);
    Run(&deletes_);
    Run(&after_deletes_);
    removals_ = 0;
    for (const auto& [operation, expected] : expected_) {
      EXPECT_EQ(outcome->operations[operation].applied, expected.applied);
      EXPECT_EQ(outcome->operations[operation].stale, expected.stale);
    }
    expected_.clear();
    for (const auto& [operation, expected] : appended_) {
      const Appended& appended = outcome->operations[operation].appended[0];
      EXPECT_EQ(appended.id, expected.id);
      EXPECT_EQ(appended.first_row, expected.first_row);
      EXPECT_EQ(appended.rows, expected.rows);
    }
    appended_.clear();
    operations_ += batch.size();
    rows_.clear();
    removed_.clear();
  }
  void Draw() {
    for (Store* store : {&together_, &apart_}) {
      const auto sampler =
          store->tables[0]->priority_table("per")->NewSampler({.batch = 4, .timeout_ms = 0});
      ASSERT_OK(sampler);
      (void)(*sampler)->Next().ok();
    }
  }
  void Reopen() {
    together_.Reopen();
    apart_.Reopen();
  }
  void Check() {
    if (choice_.Percent(30)) testing::DropFrames(*together_.database);
    EXPECT_EQ(together_.Seen(), apart_.Seen());
  }
  uint64_t operations() const { return operations_; }

 private:
  using Calls = std::vector<std::function<void()>>;

  static void Run(Calls* calls) {
    for (const auto& call : *calls) call();
    calls->clear();
  }

  /// Priorities set and items deleted.
  void AddItems(size_t t, WriteBatch* batch) {
    for (const std::string& name : together_.tables[t]->PriorityTables()) {
      const auto together = together_.tables[t]->priority_table(name);
      const auto apart = apart_.tables[t]->priority_table(name);
      for (uint64_t again = choice_.Below(3); again > 0; --again) {
        const std::vector<RowId> rows = SomeItems(*together);
        if (choice_.Percent(25)) {
          const size_t operation = batch->Delete(together, rows);
          deletes_.push_back([this, apart, rows, operation] {
            const auto outcome = apart->Delete(rows);
            ASSERT_OK(outcome);
            expected_[operation] = *outcome;
          });
          continue;
        }
        std::vector<float> priorities;
        for (size_t i = 0; i < rows.size(); ++i) {
          priorities.push_back(choice_.Percent(3) ? 1e20f
                                                  : static_cast<float>(choice_.Below(40)) / 4);
        }
        const size_t operation = batch->Set(together, rows, priorities);
        sets_.push_back([this, apart, rows, priorities, operation] {
          const auto outcome = apart->Set(rows, priorities);
          ASSERT_OK(outcome);
          expected_[operation] = *outcome;
        });
      }
    }
  }
  std::vector<RowId> SomeItems(PriorityTable& table) {
    const std::vector<RowId> items = table.Items();
    std::vector<RowId> rows;
    for (uint64_t i = choice_.Below(4); i > 0; --i) {
      const bool unknown = items.empty() || choice_.Percent(15);
      rows.push_back(unknown ? RowId{999'999, 0} : choice_.Of(items));
    }
    return rows;
  }
  void ChooseRemoved(size_t t) {
    removed_.clear();
    for (const TrajectoryRecord& record : together_.tables[t]->Scan({})) {
      bool open = false;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        open |= together_.writers[t]->open_trajectory(lane) == record.id;
      }
      if (!open && choice_.Percent(8)) removed_.push_back(record.id);
    }
  }
  void AddAppends(size_t t, WriteBatch* batch) {
    const TableSpec spec = Specs()[t];
    Writer* together = together_.writers[t].get();
    Writer* apart = apart_.writers[t].get();
    const End end = choice_.Of({End::kGo, End::kGo, End::kTerminated, End::kTruncated, End::kCut});
    const bool final = spec.final_row && (end == End::kTerminated || end == End::kTruncated);
    const int64_t first = next_;
    const bool one_lane = choice_.Percent(60);
    if (one_lane) {
      const auto lane = static_cast<uint32_t>(choice_.Below(kLanes));
      const Rows& rows = *rows_.emplace_back(std::make_unique<Rows>(first, choice_.Between(1, 9)));
      next_ += 20;
      AppendOptions options{.lane = lane, .end = end};
      if (final) options.final = rows.final_row();
      const size_t operation = batch->AppendSteps(together, rows.many(), options);
      after_deletes_.push_back([this, apart, &rows, options, operation] {
        const auto appended = apart->AppendSteps(rows.many(), options);
        ASSERT_OK(appended);
        appended_[operation] = *appended;
      });
      return;
    }
    // A row for each lane: as operations of their own, and by one call.
    const Rows& all = *rows_.emplace_back(std::make_unique<Rows>(first, int64_t{kLanes}));
    next_ += 20;
    auto ends = std::make_shared<std::vector<End>>(kLanes, End::kGo);
    (*ends)[choice_.Below(kLanes)] = final ? End::kGo : end;
    (*ends)[choice_.Below(kLanes)] = End::kSkip;
    auto value = std::make_shared<float>(static_cast<float>(choice_.Between(1, 30)));
    auto given = std::make_shared<std::vector<InitialPriorities>>();
    if (choice_.Percent(50)) {
      given->push_back({together_.tables[t]->PriorityTables()[0], {value.get(), 1}});
      names_.push_back(std::make_unique<std::string>(together_.tables[t]->PriorityTables()[0]));
      given->back().priority_table = *names_.back();
    }
    std::vector<size_t> operations;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((*ends)[lane] == End::kSkip) continue;
      const Rows& row = *rows_.emplace_back(std::make_unique<Rows>(first + lane, 1));
      operations.push_back(batch->Append(
          together, row.one(), {.lane = lane, .end = (*ends)[lane], .priorities = *given}));
    }
    after_deletes_.push_back([this, apart, &all, ends, given, value, operations] {
      const auto appended = apart->AppendLanes(all.many(), {.ends = *ends, .priorities = *given});
      ASSERT_OK(appended);
      size_t i = 0;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        if ((*ends)[lane] != End::kSkip) appended_[operations[i++]] = (*appended)[lane];
      }
    });
  }

  RandomChoice choice_;
  Store together_;
  Store apart_;
  int64_t next_ = 0;
  uint64_t operations_ = 0;
  std::vector<TrajectoryId> removed_;
  std::vector<std::byte> blob_;
  std::vector<std::unique_ptr<Rows>> rows_;
  std::vector<std::unique_ptr<std::string>> names_;
  Calls sets_, deletes_, after_deletes_;
  size_t removals_ = 0;
  std::map<size_t, SetOutcome> expected_;  // By operation.
  std::map<size_t, Appended> appended_;
};

TEST(WriteBatchConformanceTest, ABatchIsItsCallsOneByOne) {
  uint64_t operations = 0;
  for (uint64_t seed = 1; seed <= testing::ShareOf(24); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WriteBatchConformance stores(seed);
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      stores.Step();
      if (step % 7 == 3) stores.Draw();
      if (step % 4 == 0) stores.Check();
      if (step % 20 == 15) {
        stores.Reopen();
        stores.Check();
      }
      if (::testing::Test::HasFailure()) return;
    }
    operations += stores.operations();
  }
  EXPECT_GT(operations, testing::ShareOf(24) * 300);
}

}  // namespace
}  // namespace geardb::conformance
