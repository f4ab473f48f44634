#include "tools/bench/store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>

#include "base/philox.h"

namespace geardb::bench {

Result<std::shared_ptr<ScratchDirectory>> ScratchDirectory::Make(const Settings& settings) {
  static std::atomic<int> made{0};
  const std::filesystem::path path =
      std::filesystem::path(settings.directory) /
      ("bench-" + std::to_string(::getpid()) + "-" + std::to_string(made.fetch_add(1)));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Status::IoError("making '", path.string(), "': ", error.message());
  return std::shared_ptr<ScratchDirectory>(new ScratchDirectory(path.string()));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

DatabaseOptions RoomyOptions(uint64_t frames_bytes, uint64_t index_bytes) {
  DatabaseOptions options;
  options.log_bytes_max = uint64_t{64} << 30;
  options.budgets.frames_bytes = frames_bytes;
  options.budgets.index_bytes = index_bytes;
  options.prefault = true;
  return options;
}

Result<std::shared_ptr<Store>> MakeStore(const Settings& settings, const DatabaseOptions& options,
                                         const TableSpec& spec) {
  auto store = std::make_shared<Store>();
  GEARDB_ASSIGN_OR_RETURN(store->directory, ScratchDirectory::Make(settings));
  GEARDB_ASSIGN_OR_RETURN(store->db, Database::Open(store->directory->path(), options));
  GEARDB_ASSIGN_OR_RETURN(store->table, store->db->CreateTable(spec));
  GEARDB_ASSIGN_OR_RETURN(store->writer, store->table->NewWriter({.admission_timeout_ms = 60'000}));
  return store;
}

TableSpec PlainTable(uint64_t row_bytes, uint64_t expected_steps) {
  TableSpec spec;
  spec.name = "replay";
  spec.expected_steps = expected_steps;
  Column obs;
  obs.name = "obs";
  if (row_bytes != 4) {
    obs.dtype = DType::kU8;
    obs.shape = Shape({static_cast<int64_t>(row_bytes)});
  }
  spec.columns = {obs};
  return spec;
}

const char* SelectorName(SelectorKind selector) {
  return selector == SelectorKind::kUniform ? "uniform" : "prioritized";
}

PriorityTableSpec WindowsOf(int64_t length, SelectorKind selector) {
  PriorityTableSpec spec;
  spec.name = SelectorName(selector);
  spec.selector = selector;
  spec.window.extent.length = length;
  spec.window.right = EdgeRule::kRequire;
  spec.seed = 42;
  return spec;
}

TensorView RowsOver(const TableSpec& spec, const void* memory, int64_t count) {
  const Column& column = spec.columns[0];
  return TensorView(memory, column.dtype, column.shape.WithOuter({count}));
}

Status FillWithSteps(Store* store, int64_t steps, int64_t length) {
  const TableSpec spec = store->table->spec();
  const auto row_bytes =
      static_cast<size_t>(spec.columns[0].shape.elements()) * DTypeBytes(spec.columns[0].dtype);
  const std::vector<std::byte> rows(static_cast<size_t>(length) * row_bytes, std::byte{1});
  const bool prioritized = store->table->priority_table("prioritized") != nullptr;
  uint32_t trajectory = 0;
  for (int64_t done = 0; done < steps; ++trajectory) {
    const int64_t count = std::min(length, steps - done);
    const uint64_t random = PhiloxRandom64(1, 0, trajectory, PhiloxPurpose::kItem);
    const float priority = static_cast<float>((random >> 40) + 1) / 16777216.0f;
    const InitialPriorities priorities[] = {{"prioritized", {&priority, 1}}};
    AppendOptions options{.end = End::kTerminated, .ack = Ack::kMemory};
    if (prioritized) options.priorities = priorities;
    GEARDB_RETURN_IF_ERROR(
        store->writer->AppendTrajectory({{"obs", RowsOver(spec, rows.data(), count)}}, options)
            .status());
    done += count;
  }
  // What was appended last is published, and nothing is left to be written to disk.
  return store->db->Sync();
}

}  // namespace geardb::bench
