// Makes a database or opens it again, appends to it, and dies by SIGKILL: what the second reader
// of the formats (format_test.py) reads. Segments and ring are small, so that there are several
// segments, the ring has gone round, and one append and one patch take several parts.
//   killed_store DIRECTORY

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "engine/database.h"

namespace geardb {
namespace {

float next_value = 0;

/// Another value for each.
std::vector<float> Values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), next_value);
  next_value += static_cast<float>(count);
  return values;
}

/// Steps to the end of what a lane has open; with End::kGo it stays open.
Result<TrajectoryId> AppendSteps(Writer* writer, int64_t steps, End end) {
  const std::vector<float> obs = Values(steps * 4);
  const std::vector<float> reward = Values(steps);
  const std::vector<float> last = Values(4);
  const std::vector<float> random = Values(steps);
  const std::vector<int32_t> note(random.begin(), random.end());
  const ColumnValue rows[] = {{"obs", TensorView::Of<float>(obs, {steps, 4})},
                              {"reward", TensorView::Of<float>(reward)},
                              {"note", TensorView::Of<int32_t>(note)},
                              {"scratch", TensorView::Of<float>(random)}};
  const ColumnValue final{"obs", TensorView::Of<float>(last)};
  AppendOptions options{.end = end};
  if (end == End::kTerminated) options.final = {&final, 1};
  GEARDB_ASSIGN_OR_RETURN(const Appended appended, writer->AppendSteps(rows, options));
  return appended.id;
}

Status Patch(Table* table, std::string_view column, const std::vector<RowSpan>& spans) {
  int64_t rows = 0;
  for (const RowSpan& span : spans) rows += span.rows;
  const std::vector<float> values = Values(rows * (column == "target" ? 8 : 1));
  ColumnValue value{column, TensorView::Of<float>(values)};
  if (column == "target") value.value = TensorView::Of<float>(values, {rows, 8});
  return table->Patch(spans, {&value, 1}).status();
}

/// Late groups filled, whole and in part and again; rows rewritten, also of what is still open.
Status PatchSome(Table* table, Writer* writer, const std::vector<TrajectoryId>& ids) {
  std::vector<RowSpan> all;
  for (size_t i = 0; i < 15; ++i) all.push_back({ids[i], 0, 20 + static_cast<int64_t>(i)});
  GEARDB_RETURN_IF_ERROR(Patch(table, "target", all));  // More than fit one record.
  GEARDB_RETURN_IF_ERROR(Patch(table, "target", {{ids[3], 23, 5}, {ids[5], 2, 30}}));
  GEARDB_RETURN_IF_ERROR(Patch(table, "reward", {{ids[3], 10, 9}, {ids[4], -1, 1}}));
  GEARDB_RETURN_IF_ERROR(Patch(table, "scratch", {{ids[1], 0, 9}}));  // Not in the log.
  GEARDB_RETURN_IF_ERROR(Patch(table, "guess", {{ids[1], 0, 9}}));    // Nor this.
  GEARDB_ASSIGN_OR_RETURN(const TrajectoryId open, AppendSteps(writer, 20, End::kGo));
  GEARDB_RETURN_IF_ERROR(Patch(table, "reward", {{open, 14, 5}}));
  GEARDB_RETURN_IF_ERROR(Patch(table, "target", {{open, 0, 18}}));
  GEARDB_RETURN_IF_ERROR(AppendSteps(writer, 5, End::kGo).status());
  GEARDB_RETURN_IF_ERROR(Patch(table, "target", {{open, 18, 6}}));
  return AppendSteps(writer, 15, End::kTerminated).status();
}

TableSpec LevelSpec() {
  TableSpec spec{.name = "levels", .steps_per_page = 16};
  spec.columns = {{.name = "x", .shape = {2}, .compression = Compression::kXorDelta},
                  {.name = "y", .dtype = DType::kI32, .compression = Compression::kZstd}};
  spec.priority_tables = {{.name = "per", .seed = 11}};
  return spec;
}

/// Rows of one writer and another's, priorities and a tag, in one record; of one that takes parts.
Status WriteTogether(Database* database, Writer* writer, int64_t steps) {
  GEARDB_ASSIGN_OR_RETURN(const auto levels, database->OpenOrCreateTable(LevelSpec()));
  GEARDB_ASSIGN_OR_RETURN(const auto level_writer, levels->NewWriter({.lanes = 2}));
  const auto per = levels->priority_table("per");
  const std::vector<float> obs = Values(steps * 4);
  const std::vector<float> single = Values(steps);
  const std::vector<float> last = Values(4);
  const std::vector<float> x = Values(steps * 2);
  const std::vector<int32_t> whole(single.begin(), single.end());
  const ColumnValue final{"obs", TensorView::Of<float>(last)};
  const std::vector<ColumnValue> level = {{"x", TensorView::Of<float>(x, {steps, 2})},
                                          {"y", TensorView::Of<int32_t>(whole)}};
  WriteBatch batch;
  batch.AppendSteps(level_writer.get(), level, {.lane = 1, .end = End::kTerminated});
  batch.AppendTrajectory(writer,
                         {{"obs", TensorView::Of<float>(obs, {steps, 4})},
                          {"reward", TensorView::Of<float>(single)},
                          {"note", TensorView::Of<int32_t>(whole)},
                          {"scratch", TensorView::Of<float>(single)}},
                         {.end = End::kTerminated, .final = {&final, 1}});
  batch.AppendSteps(level_writer.get(), level, {.lane = 0, .end = End::kTruncated});
  std::vector<RowId> items = per->Items();
  items.resize(std::min<size_t>(items.size(), 50));
  const std::vector<float> priorities(items.size(), 3);
  batch.Set(per, items, priorities);
  batch.WriteTag("together", std::as_bytes(std::span(last)));
  GEARDB_RETURN_IF_ERROR(database->Write(batch).status());
  GEARDB_ASSIGN_OR_RETURN(
      const auto sampler,
      per->NewSampler({.batch = 5, .prefetch = 2, .audit = true, .name = "second"}));
  for (int i = 0; i < 3; ++i) GEARDB_RETURN_IF_ERROR(sampler->Next().status());
  return Status::Ok();
}

/// Columns come and leave, some with rows of writers that know them; all have left in the end but
/// one, of which the last writers know nothing.
Status ChangeColumns(Table* table, const std::vector<TrajectoryId>& ids) {
  const Column added[] = {
      {.name = "extra", .shape = {2}, .in_final_row = true, .group = "more", .default_value = 1.5},
      {.name = "spare", .dtype = DType::kU8, .group = "more", .default_value = 9},
      {.name = "mark", .group = "marks", .default_value = -3}};
  const ColumnGroup groups[] = {{.name = "more"}, {.name = "marks", .late = true}};
  GEARDB_RETURN_IF_ERROR(table->AddColumns(added, groups));
  const Column lasting[] = {{.name = "lasting", .default_value = 0.125}};
  GEARDB_RETURN_IF_ERROR(table->AddColumns(lasting));
  GEARDB_RETURN_IF_ERROR(Patch(table, "mark", {{ids[2], 0, 11}}));
  GEARDB_RETURN_IF_ERROR(Patch(table, "lasting", {{ids[6], 3, 18}}));
  GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
  const std::vector<float> obs = Values(21 * 4);
  const std::vector<float> extra = Values(21 * 2);
  const std::vector<float> reward = Values(21);
  const std::vector<int32_t> note(21, 5);
  const std::vector<uint8_t> spare(21, 6);
  std::vector<ColumnValue> rows = {{"obs", TensorView::Of<float>(obs, {21, 4})},
                                   {"reward", TensorView::Of<float>(reward)},
                                   {"note", TensorView::Of<int32_t>(note)},
                                   {"scratch", TensorView::Of<float>(reward)},
                                   {"lasting", TensorView::Of<float>(reward)},
                                   {"extra", TensorView::Of<float>(extra, {21, 2})},
                                   {"spare", TensorView::Of<uint8_t>(spare)}};
  const ColumnValue last[] = {{"obs", TensorView::Of<float>(std::span(obs).first(4))},
                              {"extra", TensorView::Of<float>(std::span(extra).first(2))}};
  GEARDB_RETURN_IF_ERROR(
      writer->AppendSteps(rows, {.end = End::kTerminated, .final = last}).status());
  const std::string_view spare_name[] = {"spare"};
  GEARDB_RETURN_IF_ERROR(table->DropColumns(spare_name));
  // By the writer that knows it, and by one that does not, whose group has it all the same.
  GEARDB_RETURN_IF_ERROR(
      writer->AppendSteps(rows, {.end = End::kTerminated, .final = last}).status());
  rows.pop_back();
  GEARDB_ASSIGN_OR_RETURN(const auto newer, table->NewWriter({}));
  GEARDB_RETURN_IF_ERROR(
      newer->AppendSteps(rows, {.end = End::kTerminated, .final = last}).status());
  const std::string_view all[] = {"extra", "mark"};
  GEARDB_RETURN_IF_ERROR(table->DropColumns(all));
  rows.pop_back();
  GEARDB_ASSIGN_OR_RETURN(const auto newest, table->NewWriter({}));
  return newest->AppendSteps(rows, {.end = End::kTerminated, .final = {last, 1}}).status();
}

Status AppendAndDie(const std::string& directory) {
  DatabaseOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{32} << 10;
  options.background = false;
  GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(directory, options));
  TableSpec spec{.name = "replay", .final_row = true, .steps_per_page = 16};
  spec.columns = {{.name = "obs", .shape = {4}, .in_final_row = true},
                  {.name = "target", .shape = {8}, .group = "later", .default_value = -0.5},
                  {.name = "scratch", .group = "scratch", .default_value = 2},
                  {.name = "reward"},
                  {.name = "note", .dtype = DType::kI32, .group = "wide", .default_value = -7},
                  {.name = "guess", .group = "guess", .default_value = 0.25}};
  spec.groups = {{.name = "later", .late = true},
                 {.name = "scratch", .is_volatile = true},
                 {.name = "wide"},
                 {.name = "guess", .late = true, .is_volatile = true}};
  // In the second life the column that the first has added is there.
  const auto known = database->OpenTable(spec.name);
  if (known.ok()) {
    const std::string_view lasting[] = {"lasting"};
    GEARDB_RETURN_IF_ERROR((*known)->DropColumns(lasting));
  }
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenOrCreateTable(spec));
  GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
  std::vector<TrajectoryId> ids;
  for (int episode = 0; episode < 20; ++episode) {
    GEARDB_ASSIGN_OR_RETURN(const TrajectoryId id,
                            AppendSteps(writer.get(), 30 + episode, End::kTerminated));
    ids.push_back(id);
  }
  GEARDB_RETURN_IF_ERROR(AppendSteps(writer.get(), 700, End::kTerminated).status());
  GEARDB_RETURN_IF_ERROR(PatchSome(table.get(), writer.get(), ids));
  GEARDB_RETURN_IF_ERROR(WriteTogether(database.get(), writer.get(), 9));
  GEARDB_RETURN_IF_ERROR(WriteTogether(database.get(), writer.get(), 120));
  GEARDB_RETURN_IF_ERROR(ChangeColumns(table.get(), ids));
  for (int episode = 0; episode < 20; ++episode) {
    GEARDB_RETURN_IF_ERROR(AppendSteps(writer.get(), 1 + 3 * episode, End::kTerminated).status());
  }
  ::raise(SIGKILL);
  return Status::Internal("SIGKILL did not kill");
}

}  // namespace
}  // namespace geardb

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::fprintf(stderr, "%s\n", geardb::AppendAndDie(argv[1]).ToString().c_str());
  return 1;
}
