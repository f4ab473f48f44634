// A whole log of hostile records with good checksums: it opens or says why not; what has opened can
// be read, drawn from, changed, closed and opened again.
#include <string>

#include "engine/database.h"
#include "tests/fuzz/record_feed.h"
#include "tests/fuzz/record_mutator.h"

namespace geardb {
namespace {

constexpr size_t kRecordsMax = 100;
void Append(Table* table) {
  auto writer = table->NewWriter({.lanes = 1, .ack = {}, .admission_timeout_ms = 0});
  if (!writer.ok()) return;
  const TableSpec spec = table->spec();
  uint64_t bytes = 0;
  for (const Column& column : spec.columns) {
    bytes = std::max<uint64_t>(
        bytes, static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype));
  }
  const std::vector<std::byte> zeros(bytes);
  std::vector<ColumnValue> row;
  for (const Column& column : spec.columns) {
    if (column.kind != ColumnKind::kPerStep) continue;
    row.push_back({column.name, TensorView(zeros.data(), column.dtype, column.shape)});
  }
  (void)(*writer)->Append(row, {.end = End::kGo});
  for (const TrajectoryRecord& record : table->Scan({.state = TrajectoryState::kOrphaned})) {
    if (!(*writer)->Resume(record.id).ok()) continue;
    (void)(*writer)->Append(row, {.end = End::kGo});
    break;
  }
  (void)(*writer)->Cut();
}

void Use(Table* table) {
  const std::vector<TrajectoryRecord> records = table->Scan({});
  for (const TrajectoryRecord& record : records) (void)table->Read(record.id, {}, {});
  for (const char* name : {"per", "pairs", "whole"}) {
    auto priorities = table->priority_table(name);
    if (priorities == nullptr) continue;
    const std::vector<RowId> items = priorities->Items();
    for (const RowId& item : items) (void)priorities->Priority(item);
    const float one = 1;
    if (!items.empty()) (void)priorities->Set({items.data(), 1}, {&one, 1});
    // Every row that an item promises, with what its flags say.
    View all{.column = "obs", .masks = true};
    if (priorities->spec().item == ItemKind::kWindow) {
      const Extent& extent = priorities->spec().window.extent;
      all.rows = {.begin = -extent.before, .count = extent.before + extent.length + extent.after};
    }
    auto sampler = priorities->NewSampler(
        {.batch = 8, .views = {all}, .layout = BatchLayout::kPacked, .timeout_ms = 0});
    if (sampler.ok()) (void)(*sampler)->Next();
  }
  Append(table);
  if (!records.empty()) {
    (void)table->Truncate(records.back().id, records.back().first_row + 1);
    (void)table->Remove({&records.front().id, 1});
  }
}

}  // namespace
}  // namespace geardb

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace geardb;  // NOLINT: the whole program is one function.
  testing::FaultEnv env(1);
  fuzzing::WriteLog(&env, fuzzing::ParseRecords({input, size}, kRecordsMax));
  for (int open = 0; open < 2; ++open) {
    auto database = Database::Open(fuzzing::kStoreDirectory, fuzzing::FeedOptions(&env));
    if (!database.ok()) return 0;
    for (const std::string& name : (*database)->Tables()) {
      auto table = (*database)->OpenTable(name);
      if (table.ok()) Use(table->get());
    }
    (void)(*database)->Close();
  }
  return 0;
}
