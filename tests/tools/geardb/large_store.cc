#include "tests/tools/geardb/large_store.h"

#include <cstring>
#include <string_view>

#include "tests/testing/store_fixture.h"
#include "tests/tools/geardb/must.h"

namespace geardb::testing {
namespace {

constexpr int64_t kRowBytes = 4096;
constexpr int64_t kRowsOfAPage = 4;

uint64_t RowsOf(TrajectoryId id) { return 1 + id % 14; }

}  // namespace

DatabaseOptions LargeStoreOptions() {
  DatabaseOptions options = SmallOptions();
  options.budgets.frames_bytes = 6 << 20;
  options.log_bytes_max = 8 << 20;
  options.background = false;
  return options;
}

std::vector<uint8_t> LargeStoreBytes(TrajectoryId id) {
  std::vector<uint8_t> bytes;
  for (uint64_t row = 0; row < RowsOf(id); ++row) {
    bytes.insert(bytes.end(), kRowBytes, static_cast<uint8_t>(id * 131 + row * 17 + 5));
  }
  return bytes;
}

bool HasBytes(const TensorView& tensor, const std::vector<uint8_t>& bytes) {
  const auto values = tensor.values<uint8_t>();
  return values.size() == bytes.size() &&
         std::memcmp(values.data(), bytes.data(), bytes.size()) == 0;
}

LargeStore MakeLargeStore(const std::string& directory) {
  const auto database = Must(Database::Open(directory, LargeStoreOptions()));
  TableSpec spec;
  spec.name = "frames";
  spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kRowBytes}}};
  spec.steps_per_page = static_cast<uint32_t>(kRowsOfAPage);
  spec.priority_tables = {WindowSpec("all")};
  const auto table = Must(database->CreateTable(spec));
  LargeStore made;
  {
    const auto writer = Must(table->NewWriter({}));
    for (TrajectoryId id = 1; id <= 600; ++id) {
      const auto rows = static_cast<int64_t>(RowsOf(id));
      const std::vector<uint8_t> bytes = LargeStoreBytes(id);
      const auto appended = Must(writer->AppendTrajectory(
          {{"frame", TensorView(bytes.data(), DType::kU8, Shape({rows, kRowBytes}))}},
          {.end = End::kTerminated}));
      if (appended.id != id) CheckFailed("ids begin at 1", __FILE__, __LINE__);
      ++made.trajectories;
      made.pages += static_cast<uint64_t>((rows + kRowsOfAPage - 1) / kRowsOfAPage);
    }
  }
  // From the last, which are in the log, and out of the frames by the time all were read.
  for (int pass = 0; pass < 2; ++pass) {
    for (TrajectoryId id = made.trajectories; id >= 1; --id) {
      const std::string_view column = "frame";
      const auto rows = Must(table->Read(id, {&column, 1}, {}));
      if (!HasBytes(rows[0].view(), LargeStoreBytes(id))) {
        CheckFailed("a row is not what was appended", __FILE__, __LINE__);
      }
    }
  }
  made.frames = table->Stats().frames;
  made.stats = database->Stats();
  const Status closed = database->Close();
  if (!closed.ok()) CheckFailed(closed.ToString().c_str(), __FILE__, __LINE__);
  return made;
}

}  // namespace geardb::testing
