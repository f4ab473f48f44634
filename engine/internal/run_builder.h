// RunBuilder: turns rows into the runs of a gather, joining rows that follow one another both in
// their page and in the output.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/internal/episode.h"
#include "kernels/gather.h"

namespace geardb::engine {

/// The runs of all outputs of one gather; outputs are begun one after the other. Valid while the
/// table's mutex is held; the runs stay good as long as the caller's epoch guard.
class RunBuilder {
 public:
  void Clear() {
    outputs_.clear();
    runs_.clear();
    fills_.clear();
  }

  /// Begins an output. Its destination may be set later (SetDestination), before Plan.
  void BeginOutput(const GatherOutput& output) {
    outputs_.push_back(output);
    outputs_.back().first_run = runs_.size();
    outputs_.back().first_fill = fills_.size();
  }

  /// `run.bytes` of a frame to the output, where they take `destination_bytes`.
  void Copy(const GatherRun& run, uint64_t destination_bytes) {
    GatherOutput& output = outputs_.back();
    if (output.run_count > 0) {
      GatherRun& last = runs_.back();
      if (AdvanceInFrame(last.source, last.bytes) == run.source &&
          destination_end_ == run.destination_offset) {
        last.bytes += run.bytes;
        destination_end_ += destination_bytes;
        return;
      }
    }
    runs_.push_back(run);
    ++output.run_count;
    destination_end_ = run.destination_offset + destination_bytes;
  }

  /// Padding.
  void Fill(uint64_t destination_offset, uint64_t bytes) {
    if (bytes == 0) return;
    GatherOutput& output = outputs_.back();
    if (output.fill_count > 0) {
      FillRun& last = fills_.back();
      if (last.destination_offset + last.bytes == destination_offset) {
        last.bytes += bytes;
        return;
      }
    }
    fills_.push_back({destination_offset, bytes});
    ++output.fill_count;
  }

  size_t output_count() const { return outputs_.size(); }
  void SetDestination(size_t output, std::byte* destination) {
    outputs_[output].destination = destination;
  }
  GatherPlan Plan() const { return {outputs_, runs_, fills_}; }

 private:
  std::vector<GatherOutput> outputs_;
  std::vector<GatherRun> runs_;
  std::vector<FillRun> fills_;
  uint64_t destination_end_ = 0;
};

/// The arena bases of this process.
inline ArenaBases BasesOf(const HostArena& arena) {
  ArenaBases bases;
  bases.base[kHostArena] = arena.base();
  return bases;
}

}  // namespace geardb::engine
