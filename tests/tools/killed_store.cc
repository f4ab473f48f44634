// Makes a database or opens it again, appends to it, and dies by SIGKILL: what the second reader
// of the formats (format_test.py) reads. Segments and ring are small, so that there are several
// segments, the ring has gone round, and one append takes several parts.
//   killed_store DIRECTORY

#include <signal.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "engine/database.h"

namespace geardb {
namespace {

/// A whole episode, or with End::kGo the front of one that stays open. Each value is another one.
Status AppendEpisode(Writer* writer, int64_t steps, End end) {
  static float next = 0;
  std::vector<float> obs(static_cast<size_t>(steps) * 4);
  std::vector<float> reward(static_cast<size_t>(steps));
  std::vector<float> last(4);
  for (std::vector<float>* values : {&obs, &reward, &last}) {
    std::iota(values->begin(), values->end(), next);
    next += static_cast<float>(values->size());
  }
  const std::vector<ColumnValue> rows = {{"obs", TensorView::Of<float>(obs, {steps, 4})},
                                         {"reward", TensorView::Of<float>(reward)}};
  const ColumnValue final{"obs", TensorView::Of<float>(last)};
  AppendOptions options{.end = end};
  if (end == End::kTerminated) options.final = {&final, 1};
  return writer->AppendTrajectory(rows, options).status();
}

Status AppendAndDie(const std::string& directory) {
  DatabaseOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{32} << 10;
  options.background = false;
  GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(directory, options));
  TableSpec spec{.name = "replay", .final_row = true, .steps_per_page = 16};
  spec.columns = {{.name = "obs", .shape = {4}, .in_final_row = true}, {.name = "reward"}};
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenOrCreateTable(spec));
  GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
  for (int episode = 0; episode < 20; ++episode) {
    GEARDB_RETURN_IF_ERROR(AppendEpisode(writer.get(), 30 + episode, End::kTerminated));
  }
  GEARDB_RETURN_IF_ERROR(AppendEpisode(writer.get(), 1500, End::kTerminated));
  for (int episode = 0; episode < 20; ++episode) {
    GEARDB_RETURN_IF_ERROR(AppendEpisode(writer.get(), 1 + 3 * episode, End::kTerminated));
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
