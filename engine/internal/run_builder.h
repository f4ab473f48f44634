// RunBuilder: turns rows into the plan of a gather, joining rows that follow one another both in
// their page and in the output to runs, and runs of one size to groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/episode.h"
#include "engine/internal/page_loader.h"
#include "kernels/gather.h"

namespace geardb::engine {

/// A run whose page has no frame.
struct AsideRun {
  size_t output = 0;
  FrameRef source;  ///< As PageWaits::AddAside has given it.
  uint64_t bytes = 0;
  uint64_t destination_offset = 0;
};

/// The runs of all outputs of one gather; outputs are begun one after the other. Valid while the
/// table's mutex is held; the runs stay good as long as the caller's epoch guard.
class RunBuilder {
 public:
  void Clear() {
    outputs_.clear();
    groups_.clear();
    sources_.clear();
    fills_.clear();
    aside_.clear();
    run_ = {};
    bytes_ = 0;
  }

  /// Begins an output. Its destination may be set later (SetDestination), before Plan.
  void BeginOutput(const GatherOutput& output) {
    EndRun();
    outputs_.push_back(output);
    outputs_.back().first_group = groups_.size();
    outputs_.back().first_fill = fills_.size();
  }

  /// `bytes` of a frame to the output, where they take `destination_bytes`.
  void Copy(FrameRef source, uint64_t bytes, uint64_t destination_offset,
            uint64_t destination_bytes) {
    if (run_.bytes > 0 && AdvanceInFrame(run_.source, run_.bytes) == source &&
        run_.destination_end == destination_offset) {
      run_.bytes += bytes;
      run_.destination_end += destination_bytes;
      return;
    }
    EndRun();
    run_ = {source, bytes, destination_offset, destination_offset + destination_bytes};
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
  /// What has frames. Until the next change.
  GatherPlan Plan() {
    EndRun();
    return {outputs_, groups_, sources_, fills_};
  }
  /// Of what has frames, in these.
  uint64_t bytes() {
    EndRun();
    return bytes_;
  }
  /// The rest, in the order in which it was asked for. Until the next change.
  std::span<const AsideRun> aside() {
    EndRun();
    return aside_;
  }

 private:
  /// The run that the next row may lengthen; none while bytes is 0.
  struct OpenRun {
    FrameRef source;
    uint64_t bytes = 0;
    uint64_t destination_offset = 0;
    uint64_t destination_end = 0;
  };

  void EndRun() {
    if (run_.bytes == 0) return;
    if (IsAside(run_.source)) {
      aside_.push_back({outputs_.size() - 1, run_.source, run_.bytes, run_.destination_offset});
      run_ = {};
      return;
    }
    if (!JoinGroup()) {
      groups_.push_back({.first_source = sources_.size(),
                         .count = 1,
                         .bytes = run_.bytes,
                         .destination_offset = run_.destination_offset});
      ++outputs_.back().group_count;
    }
    sources_.push_back(run_.source);
    bytes_ += run_.bytes;
    run_ = {};
  }

  /// Makes the open run the next of the output's last group, if it is: the second run of a group
  /// says how far apart they are.
  bool JoinGroup() {
    if (outputs_.back().group_count == 0) return false;
    RunGroup& group = groups_.back();
    if (group.bytes != run_.bytes || run_.destination_offset < group.destination_offset) {
      return false;
    }
    const uint64_t distance = run_.destination_offset - group.destination_offset;
    if (group.count == 1) group.stride = distance;
    if (distance != group.count * group.stride) return false;
    ++group.count;
    return true;
  }

  std::vector<GatherOutput> outputs_;
  std::vector<RunGroup> groups_;
  std::vector<FrameRef> sources_;
  std::vector<FillRun> fills_;
  std::vector<AsideRun> aside_;
  OpenRun run_;
  uint64_t bytes_ = 0;
};

/// The arena bases of this process.
inline ArenaBases BasesOf(const HostArena& arena) {
  ArenaBases bases;
  bases.base[kHostArena] = arena.base();
  bases.base[kProcessMemory] = nullptr;
  return bases;
}

}  // namespace geardb::engine
