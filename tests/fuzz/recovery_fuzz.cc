// A whole log of hostile records with good checksums: it opens or says why not; what has opened can
// be read, drawn from, changed, closed and opened again.
#include <string>

#include "engine/database.h"
#include "tests/fuzz/record_input.h"
#include "tests/testing/fault_env.h"
#include "wal/open_log.h"

namespace geardb {
namespace {

constexpr size_t kRecordsMax = 100;
constexpr const char* kDirectory = "store";

wal::LogOptions SmallLog() {
  return {.segment_bytes = 64 << 10, .ring_bytes = 32 << 10, .background = false};
}

void WriteLog(Env* env, const std::vector<fuzzing::InputRecord>& records) {
  if (!wal::CreateLog(env, kDirectory, SmallLog()).ok()) return;
  auto opened = wal::OpenLog(env, kDirectory, {.log = SmallLog()},
                             [](const wal::RecordView&) { return Status::Ok(); });
  if (!opened.ok()) return;
  for (const fuzzing::InputRecord& record : records) {
    const std::vector<std::byte> fill(UINT16_MAX, record.piece_fill());
    std::vector<uint64_t> bytes(record.piece_bytes.begin(), record.piece_bytes.end());
    std::vector<std::span<const std::byte>> runs;
    for (const uint16_t piece : record.piece_bytes) runs.push_back(std::span(fill).first(piece));
    std::vector<wal::PieceSource> pieces;
    for (const auto& run : runs) pieces.push_back({.runs = {&run, 1}});
    const wal::RecordSize size = wal::RecordSize::For(record.body_bytes, bytes);
    if (!opened->writer->WaitForRoom(size, wal::Urgency::kAppend, Deadline::Infinite()).ok()) {
      continue;
    }
    const wal::Reservation reservation = opened->writer->Reserve({.size = size});
    opened->writer->Fill(reservation, {.body = record.body(), .pieces = pieces});
    opened->writer->Publish(reservation, nullptr);
  }
  (void)opened->writer->Close();
}

void Append(Table* table) {
  auto writer = table->NewWriter({.lanes = 1, .ack = {}, .admission_timeout_ms = 0});
  if (!writer.ok()) return;
  uint64_t bytes = 0;
  for (const Column& column : table->spec().columns) {
    bytes = std::max<uint64_t>(
        bytes, static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype));
  }
  const std::vector<std::byte> zeros(bytes);
  std::vector<ColumnValue> row;
  for (const Column& column : table->spec().columns) {
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
    auto sampler = priorities->NewSampler({.batch = 8,
                                           .views = {{.column = "obs"}},
                                           .layout = BatchLayout::kPacked,
                                           .timeout_ms = 0});
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

extern "C" size_t LLVMFuzzerMutate(uint8_t* input, size_t size, size_t size_max);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* input, size_t size, size_t size_max,
                                          unsigned int seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(input, size, size_max);
  return geardb::fuzzing::MutateRecords(input, size, size_max, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace geardb;  // NOLINT: the whole program is one function.
  testing::FaultEnv env(1);
  WriteLog(&env, fuzzing::ParseRecords({input, size}, kRecordsMax));
  DatabaseOptions options;
  options.create_if_missing = false;
  options.budgets.frames_bytes = 4 << 20;
  options.budgets.index_bytes = 4 << 20;
  options.background = false;
  options.env = &env;
  for (int open = 0; open < 2; ++open) {
    auto database = Database::Open(kDirectory, options);
    if (!database.ok()) return 0;
    for (const std::string& name : (*database)->Tables()) {
      auto table = (*database)->OpenTable(name);
      if (table.ok()) Use(table->get());
    }
    (void)(*database)->Close();
  }
  return 0;
}
