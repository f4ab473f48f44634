// Appending in batches: what the rows of append_memory.cc and append_log.cc share.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/bench/ceilings.h"
#include "tools/bench/row.h"
#include "tools/bench/store.h"

namespace geardb::bench {

/// How a row appends.
struct AppendKind {
  uint64_t payload_bytes = 0;       ///< Of a step.
  uint64_t batch_bytes = 1 << 20;   ///< Of a call; at least one step.
  uint64_t burst_bytes = 24 << 20;  ///< Of a repetition.
  Ack ack = Ack::kLog;
  bool prioritized = false;  ///< Steps are items of a prioritized priority table.
};

/// A store, rows to append, and the bare loops over memory of the same extent.
class Appending {
 public:
  /// The table holds 256 MiB and lets the oldest go; `ring_bytes` is the log's.
  static Result<std::unique_ptr<Appending>> Make(const Settings& settings, const AppendKind& kind);

  /// Appends `burst_bytes` in calls of whole trajectories; returns bytes per second.
  Result<double> Append();
  /// Until everything is on disk; not timed.
  Status Settle() { return store_->db->Sync(); }

  int64_t steps_of_call() const { return steps_; }
  uint64_t call_bytes() const { return static_cast<uint64_t>(steps_) * kind_.payload_bytes; }
  std::span<const std::byte> rows() const { return {source_.get(), call_bytes()}; }
  CopyLoops* loops() { return &loops_; }
  Store* store() { return store_.get(); }
  const AppendKind& kind() const { return kind_; }

 private:
  explicit Appending(const AppendKind& kind);

  const AppendKind kind_;
  const int64_t steps_;
  Memory source_;
  CopyLoops loops_;
  std::shared_ptr<Store> store_;
};

/// "100 B", "64 KiB".
std::string BytesText(uint64_t bytes);

}  // namespace geardb::bench
