// What the seeds of the engine's fuzzers come to, so that neither goes blind: logs of real stores
// (store-*) are taken up to their last record, all other seeds are refused. A store that uses every
// operation is taken up, too; with GEARDB_WRITE_SEED=path its records are written there as a seed.
// What a patch must not say is made here, from one that is right; with GEARDB_WRITE_HOSTILE=folder
// each such log is written there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "engine/internal/record_body.h"
#include "tests/fuzz/record_feed.h"
#include "tests/testing/files.h"
#include "tests/testing/store_fixture.h"

namespace geardb::fuzzing {
namespace {

namespace fb = engine::fb;

constexpr size_t kRecordsMax = 1000;

std::vector<std::string> SeedsOf(const std::string& fuzzer) {
  std::vector<std::string> paths;
  const std::filesystem::path folder = std::filesystem::path(GEARDB_FUZZ_CORPUS) / fuzzer;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool IsRealStore(const std::string& path) {
  return std::filesystem::path(path).filename().string().starts_with("store-");
}

std::vector<InputRecord> ReadSeed(const std::string& path) {
  const std::string bytes = testing::ReadBytes(path);
  const auto records =
      ParseRecords({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, kRecordsMax);
  if (!IsRealStore(path)) return records;
  std::vector<uint8_t> again;
  WriteRecords(records, &again);
  EXPECT_EQ(again.size(), bytes.size()) << path << " does not end with a record";
  return records;
}

/// Feeds records until one is refused.
Status FeedAll(RecordFeed* feed, const std::vector<InputRecord>& records) {
  for (size_t i = 0; i < records.size(); ++i) {
    const Status status = feed->Feed(records[i]);
    if (!status.ok()) return status.WithContext("record " + std::to_string(i));
  }
  return feed->Finish();
}

uint64_t RowsIn(RecordFeed* feed) {
  uint64_t rows = 0;
  for (const auto& table : feed->core().AllTables()) {
    MutexLock lock(&table->state->mutex);
    rows += table->state->rows();
  }
  return rows;
}

TEST(CorpusTest, RealStoresAreTakenUpToTheirLastRecord) {
  size_t stores = 0;
  for (const std::string& path : SeedsOf("operations")) {
    if (!IsRealStore(path)) continue;
    ++stores;
    RecordFeed feed;
    ASSERT_TRUE(feed.ready());
    EXPECT_OK(FeedAll(&feed, ReadSeed(path))) << path;
    EXPECT_GT(RowsIn(&feed), 0u) << path;
  }
  EXPECT_GE(stores, 5u);
}

TEST(CorpusTest, RealStoresOpenWithAllTheirRecords) {
  size_t stores = 0;
  for (const std::string& path : SeedsOf("recovery")) {
    if (!IsRealStore(path)) continue;
    ++stores;
    const std::vector<InputRecord> records = ReadSeed(path);
    testing::FaultEnv env(1);
    ASSERT_EQ(WriteLog(&env, records), records.size()) << path;
    auto database = Database::Open(kStoreDirectory, FeedOptions(&env));
    ASSERT_OK(database) << path;
    EXPECT_GE((*database)->recovery().records, records.size()) << path;
    EXPECT_OK((*database)->Close()) << path;
  }
  EXPECT_GE(stores, 5u);
}

TEST(CorpusTest, HostileSeedsAreRefusedWithTheirLsn) {
  size_t hostile = 0;
  for (const std::string& path : SeedsOf("operations")) {
    if (IsRealStore(path)) continue;
    ++hostile;
    RecordFeed feed;
    ASSERT_TRUE(feed.ready());
    const Status status = FeedAll(&feed, ReadSeed(path));
    EXPECT_STATUS(kCorruption, status, "the record at LSN ") << path;
  }
  EXPECT_GE(hostile, 2u);
}

// ---- A store that uses every operation.

class StoreRecordsTest : public testing::StoreTest {
 protected:
  /// Every record of the closed store, in order; pieces become full of zeros.
  std::vector<InputRecord> Records() {
    std::vector<InputRecord> records;
    const auto opened = wal::OpenLog(
        Env::Posix(), dir_->path(), {.log = {}, .read_only = true}, [&](const wal::RecordView& r) {
          InputRecord record;
          for (const wal::PieceView& piece : r.pieces) {
            record.piece_bytes.push_back(static_cast<uint16_t>(piece.bytes.size()));
          }
          record.body_bytes = r.body.size();
          record.body_words.resize((r.body.size() + 7) / 8);
          std::memcpy(record.body_words.data(), r.body.data(), r.body.size());
          records.push_back(std::move(record));
          return Status::Ok();
        });
    EXPECT_OK(opened);
    return records;
  }
};

class EveryOperationTest : public StoreRecordsTest {
 protected:
  void CreateTables() {
    TableSpec spec = testing::StepSpec(/*final_row=*/true);
    spec.groups = {{.name = "late", .late = true}, {.name = "apart"}};
    spec.columns[1].group = "apart";
    spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
    spec.priority_tables = {testing::WindowSpec("per", {1, 1, 1}), testing::WindowSpec("pairs"),
                            testing::WindowSpec("whole"), testing::WindowSpec("epochs"),
                            testing::WindowSpec("groups")};
    spec.priority_tables[4].item = ItemKind::kGroup;
    spec.priority_tables[4].window = {};
    spec.priority_tables[4].group = {.key = "version", .count = 3};
    spec.priority_tables[3].selector = SelectorKind::kEpoch;
    spec.priority_tables[1].selector = SelectorKind::kUniform;
    spec.priority_tables[2].item = ItemKind::kTrajectory;
    spec.priority_tables[2].initial = InitialPriority::kColumn;
    spec.priority_tables[2].initial_priority_column = "score";
    Create(spec, {.lanes = 2});
    TableSpec stream = testing::StepSpec(/*final_row=*/true);
    stream.name = "stream";
    stream.stream = true;
    stream.steps_max = 24;
    stream.trajectories_max = 3;
    stream.priority_tables = {testing::WindowSpec("per", {1, 2, 1})};
    ASSERT_OK_AND_ASSIGN(stream_, database_->CreateTable(stream));
    TableSpec dropped = testing::StepSpec();
    dropped.name = "dropped";
    ASSERT_OK(database_->CreateTable(dropped));
    ASSERT_OK(database_->DropTable("dropped"));
  }

  void FillStream() {
    ASSERT_OK_AND_ASSIGN(auto writer, stream_->NewWriter({.lanes = 2}));
    for (int64_t k = 0; k < 60; k += 3) {
      const testing::Rows rows(k, 3);
      const End end = k % 9 == 0 ? End::kTruncated : k % 5 == 0 ? End::kCut : End::kGo;
      AppendOptions options{.lane = static_cast<uint32_t>(k % 2), .end = end};
      if (end == End::kTruncated) options.final = rows.final_row();
      ASSERT_OK(writer->AppendSteps(rows.many(), options));
    }
    ASSERT_OK(writer->Cut(0));
  }

  /// A batch over two tables, and the hand-over of an audited sampler.
  void WriteTogether() {
    ASSERT_OK_AND_ASSIGN(const auto stream, database_->OpenTable("stream"));
    ASSERT_OK_AND_ASSIGN(const auto stream_writer, stream->NewWriter({}));
    const testing::Rows rows(70, 3);
    const std::shared_ptr<PriorityTable> per = table_->priority_table("per");
    const std::vector<RowId> items = per->Items();
    ASSERT_GE(items.size(), 2u);
    const float priority[1] = {6};
    const TrajectoryId old[1] = {items[0].id};
    WriteBatch batch;
    batch.Set(per, {&items[1], 1}, priority);
    batch.Delete(per, {&items[0], 1});
    batch.Remove(table_, old);
    batch.AppendSteps(stream_writer.get(), rows.many());
    batch.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kCut});
    batch.WriteTag("together", {});
    ASSERT_OK(database_->Write(batch));
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         per->NewSampler({.batch = 2, .audit = true, .name = "seed"}));
    ASSERT_OK(sampler->Next());
  }

  /// Columns come, of which some are given by a writer, patched and set, and leave.
  void ChangeColumns(TrajectoryId patched) {
    const std::vector<ColumnGroup> groups = {{.name = "more"}, {.name = "filled", .late = true}};
    ASSERT_OK(table_->AddColumns(
        std::vector<Column>{{.name = "a", .group = "more", .default_value = 2},
                            {.name = "b", .dtype = DType::kU8, .shape = {3}, .group = "more"},
                            {.name = "c", .group = "filled"},
                            {.name = "d", .kind = ColumnKind::kPerTrajectory}},
        groups));
    const float value[] = {4};
    const ColumnValue c[] = {{"c", TensorView::Of(std::span<const float>(value))}};
    const ColumnValue a[] = {{"a", c[0].value}};
    const RowSpan span[] = {{patched, 0, 1}};
    ASSERT_OK(table_->Patch(span, c));
    ASSERT_OK(table_->Patch(span, a));
    Append(70, 3, End::kGo, 1);  // By a writer that does not know them.
    const std::string_view dropped[] = {"b", "c"};
    ASSERT_OK(table_->DropColumns(dropped));
    ASSERT_OK_AND_ASSIGN(auto writer, table_->NewWriter({}));
    const testing::Rows rows(80, 1);
    std::vector<ColumnValue> row = rows.one();
    row.push_back({"a", TensorView::Scalar(value[0])});
    const ColumnValue d[] = {{"d", TensorView::Scalar(value[0])}};
    ASSERT_OK(writer->Append(row, {.trajectory = d}));
    const std::string_view last[] = {"a"};
    ASSERT_OK(table_->DropColumns(last));
  }

  void ChangePriorities() {
    PriorityTable* per = priority("per");
    const std::vector<RowId> items = per->Items();
    ASSERT_GE(items.size(), 2u);
    const float large[1] = {1e30f};
    ASSERT_OK(per->Set({items.data(), 1}, large));  // Logs a rescale first.
    const std::vector<RowId> many(460, items[0]);   // More than a record's body holds.
    ASSERT_OK(per->Set(many, std::vector<float>(many.size(), 3.0f)));
    std::vector<float> each(items.size());
    for (size_t i = 0; i < each.size(); ++i) each[i] = 0.5f + static_cast<float>(i);
    ASSERT_OK(per->SetAll(each));
    const float all[1] = {2};
    ASSERT_OK(priority("whole")->SetAll(all));
    ASSERT_OK_AND_ASSIGN(auto sampler, per->NewSampler({.batch = 4,
                                                        .views = {{.column = "obs"}},
                                                        .seed = 3,
                                                        .restart_draw = 5,
                                                        .timeout_ms = 0}));
    ASSERT_OK(sampler->Next());
    const std::vector<SamplerPart> parts = {
        {.priority_table = table_->priority_table("pairs")},
        {.priority_table = stream_->priority_table("per"), .share = ShareKind::kFixed, .count = 1}};
    ASSERT_OK_AND_ASSIGN(auto mixed, database_->NewSampler(parts, {.batch = 3, .timeout_ms = 0}));
    ASSERT_OK(mixed->Next());
    ASSERT_OK(per->Configure({.limiter = {.min_size = 2}, .max_times_sampled = 9}));
    ASSERT_OK(per->Delete({items.data() + 1, 1}));
    ASSERT_OK(per->SetFilter("length > 1 && !(version in {7, 9})"));
    ASSERT_OK(priority("groups")->SealGroup(0));
    ASSERT_OK_AND_ASSIGN(auto groups,
                         priority("groups")->NewSampler({.batch = 2, .timeout_ms = 0}));
    ASSERT_OK(groups->Next());
    ASSERT_OK(priority("epochs")->BeginEpoch());
    ASSERT_OK_AND_ASSIGN(auto epochs, priority("epochs")->NewSampler(
                                          {.batch = 4, .drop_last = true, .timeout_ms = 0}));
    Status next;
    while (next.ok()) next = epochs->Next().status();
    ASSERT_EQ(next.code(), StatusCode::kOutOfRange);  // Behind a rest that is left out.
  }

  std::shared_ptr<Table> stream_;
};

TEST_F(EveryOperationTest, ALogWithEveryOperationIsTakenUp) {
  options_.ring_bytes = uint64_t{32} << 10;
  OpenEmpty();
  CreateTables();
  const TrajectoryId first = AppendClosed(0, 5);
  AppendClosed(10, 9, End::kTruncated);
  AppendClosed(20, 6, End::kCut);
  const TrajectoryId open = Append(40, 6).id;
  Append(50, 3, End::kGo, 1);
  ASSERT_OK(writer_->Cut(1));
  FillStream();
  const float score = 3;
  const ColumnValue column[1] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(first, column));
  ASSERT_OK(table_->CreatePriorityTable(testing::WindowSpec("late")));
  const std::vector<float> targets = {1, 2, 3, 4, 5};
  const ColumnValue target[1] = {{"target", TensorView::Of(std::span<const float>(targets))}};
  const RowSpan spans[2] = {{first, 0, 3}, {open, 0, 2}};
  ASSERT_OK(table_->Patch(spans, target));
  const ColumnValue reward[1] = {{"reward", target[0].value}};
  ASSERT_OK(table_->Patch(spans, reward));
  ChangePriorities();
  ASSERT_OK(database_->WriteTag("tag", std::as_bytes(std::span(column[0].column))));
  ASSERT_OK(table_->Truncate(open, 5));
  ChangeColumns(first);
  stream_.reset();
  Reopen();
  OpenAgain("steps");
  ASSERT_OK(writer_->Resume(open));
  Append(60, 5, End::kTerminated);
  ASSERT_OK(table_->Remove({&first, 1}));
  WriteTogether();
  Close();

  const std::vector<InputRecord> records = Records();
  std::set<fb::Change> seen;
  size_t batches = 0;
  size_t sets_in_pieces = 0;
  for (const InputRecord& record : records) {
    ASSERT_OK_AND_ASSIGN(const fb::Body* body, engine::ReadBody(record.body()));
    const auto& operations = *body->operations();
    batches +=
        operations.size() > 1 && operations.Get(0)->change_type() == fb::Change::SetPriorities ? 1u
                                                                                               : 0u;
    for (const fb::Operation* operation : operations) {
      seen.insert(operation->change_type());
      const auto* set = operation->change_as_SetPriorities();
      if (set != nullptr && set->in_pieces()) ++sets_in_pieces;
    }
  }
  EXPECT_EQ(sets_in_pieces, 1u);
  EXPECT_EQ(batches, 1u);
  for (int change = 1; change <= static_cast<int>(fb::Change::MAX); ++change) {
    EXPECT_EQ(seen.count(static_cast<fb::Change>(change)), 1u)
        << fb::EnumNameChange(static_cast<fb::Change>(change));
  }
  RecordFeed feed;
  ASSERT_TRUE(feed.ready());
  EXPECT_OK(FeedAll(&feed, records));
  EXPECT_GT(RowsIn(&feed), 0u);
  if (const char* path = std::getenv("GEARDB_WRITE_SEED")) {
    std::vector<uint8_t> seed;
    WriteRecords(records, &seed);
    testing::WriteBytes(path, {reinterpret_cast<const char*>(seed.data()), seed.size()});
  }
}

// ---- Patches that no store writes.

class HostilePatchTest : public StoreRecordsTest {
 protected:
  /// Trajectories of 6, 3 and 2 rows in pages of 4. One record fills the late group of the first
  /// two: it names two groups of trajectories and three pages.
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = testing::StepSpec();
    spec.groups = {{.name = "late", .late = true}, {.name = "cache", .is_volatile = true}};
    spec.columns[1].group = "cache";
    spec.columns.push_back({.name = "target", .group = "late"});
    PriorityTableSpec waits = testing::WindowSpec("waits");
    waits.required = {"late"};
    spec.priority_tables = {waits};
    Create(spec);
    const RowSpan spans[2] = {{AppendClosed(0, 6), 0, 6}, {AppendClosed(10, 3), 0, 3}};
    AppendClosed(20, 2);
    const std::vector<float> values(9, 1);
    const ColumnValue target[1] = {{"target", TensorView::Of(std::span<const float>(values))}};
    ASSERT_OK(table_->Patch(spans, target));
    Close();
    records_ = Records();
    for (size_t i = 0; i < records_.size(); ++i) {
      if (PatchOf(records_[i]) != nullptr) records_.resize(i + 1);
    }
    const fb::Patch* patch = PatchOf(records_.back());
    ASSERT_NE(patch, nullptr);
    ASSERT_EQ(patch->patched()->size(), 2u);
    ASSERT_EQ(patch->pieces()->size(), 3u);
  }

  static const fb::Patch* PatchOf(const InputRecord& record) {
    const auto body = engine::ReadBody(record.body());
    if (!body.ok()) return nullptr;
    for (const fb::Operation* operation : *(*body)->operations()) {
      if (operation->change_as_Patch() != nullptr) return operation->change_as_Patch();
    }
    return nullptr;
  }
  template <typename T>
  static T* At(const flatbuffers::Vector<const T*>* entries, uint32_t i) {
    return const_cast<T*>(entries->Get(i));
  }

  /// Feeds the log with its patch changed; the status of that.
  template <typename Edit>
  Status Feed(const std::string& name, Edit&& edit) {
    std::vector<InputRecord> records = records_;
    InputRecord& last = records.back();
    const fb::Patch* patch = PatchOf(last);
    edit(&last, patch->patched(), patch->pieces());
    if (const char* folder = std::getenv("GEARDB_WRITE_HOSTILE")) {
      std::vector<uint8_t> seed;
      WriteRecords(records, &seed);
      testing::WriteBytes(std::string(folder) + "/" + name,
                          {reinterpret_cast<const char*>(seed.data()), seed.size()});
    }
    RecordFeed feed;
    EXPECT_TRUE(feed.ready());
    const Status status = FeedAll(&feed, records);
    rows_ = RowsIn(&feed);
    damaged_pages_ = feed.recovery().damaged_pages();
    damaged_ = 0;
    for (const auto& [table, slots] : feed.recovery().damaged()) damaged_ += slots.size();
    return status;
  }

  std::vector<InputRecord> records_;
  uint64_t rows_ = 0;
  uint64_t damaged_pages_ = 0;
  uint64_t damaged_ = 0;  // Trajectories.
};

using PatchedEntries = const flatbuffers::Vector<const fb::Patched*>*;
using PieceEntries = const flatbuffers::Vector<const fb::PieceRows*>*;

TEST_F(HostilePatchTest, WhatAPatchMustNotSayIsRefused) {
  EXPECT_OK(Feed("store-patch", [](InputRecord*, PatchedEntries, PieceEntries) {}));
  EXPECT_EQ(rows_, 11u);
  EXPECT_EQ(damaged_, 0u);
  const auto patched = [](const fb::Patched& p, uint64_t filled, uint32_t generation,
                          uint16_t group) {
    return fb::Patched(filled, p.slot(), generation, group);
  };
  const auto piece = [](const fb::PieceRows& p, uint16_t first, uint16_t count, uint16_t group) {
    return fb::PieceRows(p.previous_lsn(), p.lpn(), p.generation(), first, count, group);
  };
  struct Case {
    const char* name;
    std::function<void(InputRecord*, fb::Patched*, fb::PieceRows*)> edit;  // Their first entries.
    const char* says;
  };
  const std::vector<Case> cases = {
      {"patch_piece_in_other_group", [&](auto*, auto*, auto* p) { *p = piece(*p, 0, 4, 0); },
       "which it does not name"},
      {"patch_group_beyond_table",
       [&](auto*, auto* g, auto*) { *g = patched(*g, 6, g->generation(), 9); }, "group 9"},
      {"patch_of_volatile_group",
       [&](auto*, auto* g, auto*) { *g = patched(*g, 6, g->generation(), 2); }, "group 2"},
      {"patch_filled_beyond_end",
       [&](auto*, auto* g, auto*) { *g = patched(*g, 7, g->generation(), 1); }, "of 6"},
      {"patch_filled_behind_pieces",
       [&](auto*, auto* g, auto*) { *g = patched(*g, 5, g->generation(), 1); }, "has 2 rows"},
      {"patch_filled_ahead_of_pieces",
       [&](auto*, auto* g, auto* p) {
         *g = patched(*g, 3, g->generation(), 1);
         *p = piece(*p, 0, 4, 1);
       },
       "has 4 rows"},
      {"patch_of_gone_trajectory",
       [&](auto*, auto* g, auto*) { *g = patched(*g, 6, g->generation() + 1, 1); }, "not there"},
      {"patch_groups_out_of_order", [&](auto*, auto* g, auto*) { std::swap(g[0], g[1]); },
       "not in order"},
      {"patch_group_twice", [&](auto*, auto* g, auto*) { g[1] = g[0]; }, "not in order"},
      {"patch_page_twice",
       [&](InputRecord* record, auto*, auto* p) {
         p[1] = p[0];
         record->piece_bytes[1] = record->piece_bytes[0];
       },
       "a page twice"},
      {"patch_page_not_there",
       [&](auto*, auto*, auto* p) {
         *p = fb::PieceRows(p->previous_lsn(), p->lpn() + 77, p->generation(), 0, 4, 1);
       },
       "which is not there"},
      {"patch_piece_of_no_rows", [&](auto*, auto*, auto* p) { *p = piece(*p, 0, 0, 1); },
       "has 0 rows"},
      {"patch_piece_not_from_first", [&](auto*, auto*, auto* p) { *p = piece(*p, 1, 4, 1); },
       "rows from 1"},
      {"patch_piece_too_long",
       [&](InputRecord* record, auto*, auto*) { record->piece_bytes[0] += 4; }, "rows take 16"},
      {"patch_piece_missing",
       [&](InputRecord* record, auto*, auto*) { record->piece_bytes.pop_back(); }, "3 pieces"},
  };
  for (const Case& one : cases) {
    const Status status = Feed(one.name, [&](InputRecord* r, PatchedEntries g, PieceEntries p) {
      one.edit(r, At(g, 0), At(p, 0));
    });
    EXPECT_STATUS(kCorruption, status, one.says) << one.name;
    EXPECT_STATUS(kCorruption, status, "the record at LSN ") << one.name;
  }
}

TEST_F(HostilePatchTest, ADamagedPieceCostsItsTrajectoriesAlone) {
  EXPECT_OK(Feed("store-patch-damaged",
                 [](InputRecord* record, PatchedEntries, PieceEntries) { record->flags |= 1; }));
  EXPECT_EQ(damaged_pages_, 3u);
  EXPECT_EQ(damaged_, 2u) << "the third was not patched";
}

}  // namespace
}  // namespace geardb::fuzzing
