// Bodies of records with good checksums and hostile content, into an empty database: each fits the
// state before it or is Corruption.
#include "engine/internal/recovery.h"
#include "tests/fuzz/record_input.h"

namespace {

constexpr size_t kRecordsMax = 200;

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* input, size_t size, size_t size_max);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* input, size_t size, size_t size_max,
                                          unsigned int seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(input, size, size_max);
  return geardb::fuzzing::MutateRecords(input, size, size_max, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace geardb;  // NOLINT: the whole program is one function.
  engine::DatabaseCore core{DatabaseOptions{}};
  core.directory = "fuzz";
  auto arena = engine::HostArena::Create({.budget_bytes = 4 << 20}, &core.epochs);
  auto memory = index::IndexMemory::Create({.budget_bytes = 4 << 20, .name = "fuzz"});
  if (!arena.ok() || !memory.ok()) return 0;
  core.arena = std::move(*arena);
  core.index_memory = std::move(*memory);
  engine::Recovery recovery(&core);
  Lsn lsn = 128;
  for (const auto& input_record : fuzzing::ParseRecords({input, size}, kRecordsMax)) {
    const std::vector<std::byte> fill(UINT16_MAX, input_record.piece_fill());
    std::vector<wal::PieceView> pieces;
    for (const uint16_t bytes : input_record.piece_bytes) {
      pieces.push_back({.lsn = lsn,
                        .offset = 0,
                        .good = !input_record.pieces_damaged(),
                        .bytes = std::span(fill).first(bytes),
                        .checksum = 0});
    }
    wal::RecordView record;
    record.lsn = lsn;
    record.end = lsn + 64;
    record.body = input_record.body();
    record.pieces = pieces;
    if (!recovery.Visit(record).ok()) return 0;
    lsn += 64;
  }
  (void)recovery.Finish();
  return 0;
}
