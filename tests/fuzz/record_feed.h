// Records of a fuzzer's input into the engine: straight into Recovery, or as a log that a database
// opens. Shared by the fuzzers and by corpus_test.cc, which says what the seeds come to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/internal/recovery.h"
#include "tests/fuzz/record_input.h"
#include "tests/testing/fault_env.h"
#include "wal/open_log.h"

namespace geardb::fuzzing {

/// Frames for eight pools: each takes a slab of its own. Less would end most inputs early.
inline constexpr uint64_t kFrameBytes = 8 * kSlabBytes;
inline constexpr uint64_t kIndexBytes = 8 << 20;

/// An empty database, without a log, that takes records up as at recovery.
class RecordFeed {
 public:
  RecordFeed() {
    core_.directory = "fuzz";
    auto arena = engine::HostArena::Create({.budget_bytes = kFrameBytes}, &core_.epochs);
    auto memory = index::IndexMemory::Create({.budget_bytes = kIndexBytes, .name = "fuzz"});
    if (!arena.ok() || !memory.ok()) return;
    core_.arena = std::move(*arena);
    core_.index_memory = std::move(*memory);
    recovery_ = std::make_unique<engine::Recovery>(&core_);
  }

  bool ready() const { return recovery_ != nullptr; }
  engine::DatabaseCore& core() { return core_; }
  const engine::Recovery& recovery() const { return *recovery_; }
  Status Finish() { return recovery_->Finish(); }

  /// Its pieces are all full of one byte.
  Status Feed(const InputRecord& input) {
    const std::vector<std::byte> fill(UINT16_MAX, input.piece_fill());
    std::vector<wal::PieceView> pieces;
    uint32_t offset = 0;
    for (const uint16_t bytes : input.piece_bytes) {
      pieces.push_back({.lsn = lsn_,
                        .offset = offset,
                        .good = !input.pieces_damaged(),
                        .bytes = std::span(fill).first(bytes),
                        .checksum = 0});
      offset += bytes;
    }
    return Feed(input.body(), pieces);
  }
  Status Feed(std::span<const std::byte> body, std::span<const wal::PieceView> pieces) {
    wal::RecordView record;
    record.lsn = lsn_;
    record.end = lsn_ + 64;
    record.body = body;
    record.pieces = pieces;
    lsn_ += 64;
    return recovery_->Visit(record);
  }

 private:
  engine::DatabaseCore core_{DatabaseOptions{}};
  std::unique_ptr<engine::Recovery> recovery_;
  Lsn lsn_ = 128;
};

inline constexpr const char* kStoreDirectory = "store";

/// How a database opens what WriteLog has written.
inline DatabaseOptions FeedOptions(Env* env) {
  DatabaseOptions options;
  options.create_if_missing = false;
  options.budgets.frames_bytes = kFrameBytes;
  options.budgets.index_bytes = kIndexBytes;
  options.budgets.batch_bytes = 4 << 20;
  options.background = false;
  options.env = env;
  return options;
}

/// The records as the log of a store, with checksums that fit. Returns how many it holds: those
/// that are larger than a record may be are left out.
inline size_t WriteLog(Env* env, const std::vector<InputRecord>& records) {
  const wal::LogOptions log{.segment_bytes = 64 << 10, .ring_bytes = 32 << 10, .background = false};
  if (!wal::CreateLog(env, kStoreDirectory, log).ok()) return 0;
  auto opened = wal::OpenLog(env, kStoreDirectory, {.log = log},
                             [](const wal::RecordView&) { return Status::Ok(); });
  if (!opened.ok()) return 0;
  size_t written = 0;
  for (const InputRecord& record : records) {
    const std::vector<std::byte> fill(UINT16_MAX, record.piece_fill());
    std::vector<uint64_t> bytes(record.piece_bytes.begin(), record.piece_bytes.end());
    std::vector<std::span<const std::byte>> runs;
    for (const uint16_t piece : record.piece_bytes) runs.push_back(std::span(fill).first(piece));
    std::vector<wal::PieceSource> pieces;
    for (const auto& run : runs) pieces.push_back({.runs = {&run, 1}});
    const wal::RecordSize size = wal::RecordSize::For(record.body_bytes, bytes);
    const Status room =
        opened->writer->WaitForRoom(size, wal::Urgency::kAppend, Deadline::Infinite());
    if (!room.ok()) continue;
    const wal::Reservation reservation = opened->writer->Reserve({.size = size});
    opened->writer->Fill(reservation, {.body = record.body(), .pieces = pieces});
    opened->writer->Publish(reservation, nullptr);
    ++written;
  }
  return opened->writer->Close().ok() ? written : 0;
}

}  // namespace geardb::fuzzing
