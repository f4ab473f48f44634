// The gather on one CPU thread. Rows lie at random places of a memory larger than any cache, so
// the time goes into waiting for lines: runs are prefetched well before their copy, and small
// copies are a few overlapping loads and stores without a call or a loop.
#include <algorithm>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/gather.h"

namespace geardb {
namespace {

constexpr uint64_t kLineBytes = 64;
/// Lines that are asked for before their copy begins.
constexpr uint64_t kLinesAhead = 160;
/// Of one run so many lines are prefetched; the hardware sees the rest coming.
constexpr uint64_t kLinesOfRunMax = 16;

// Each way to copy says how many lines of a run are prefetched before the one with its last byte;
// 0: what its size says. A number known here is worth a tenth at 100 to 256 bytes.

/// A size known at compile time.
template <uint64_t kBytes>
struct CopyExactly {
  static constexpr bool kOneLine = kBytes <= 16;  // Rows of such sizes are aligned to them.
  static constexpr uint64_t kLines = (kBytes + kLineBytes - 1) / kLineBytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    std::memcpy(destination, source, kBytes);
  }
};

/// kHalf to 2 * kHalf bytes: the first and the last kHalf, which may overlap. No loop, and nothing
/// is written beyond `bytes`.
template <uint64_t kHalf>
struct CopyHalves {
  static constexpr bool kOneLine = false;
  static constexpr uint64_t kLines = (2 * kHalf + kLineBytes - 1) / kLineBytes;
  uint64_t bytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    const uint64_t last = bytes - kHalf;
    std::memcpy(destination, source, kHalf);
    std::memcpy(destination + last, source + last, kHalf);
  }
};

struct CopyLarge {
  static constexpr bool kOneLine = false;
  static constexpr uint64_t kLines = 0;
  uint64_t bytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    std::memcpy(destination, source, bytes);
  }
};

/// Converts elements on their way.
struct CopyConverted {
  static constexpr bool kOneLine = false;
  static constexpr uint64_t kLines = 0;
  DType stored;
  uint64_t elements;
  void operator()(std::byte* destination, const std::byte* source) const {
    ConvertToFloat(stored, source, elements, reinterpret_cast<float*>(destination));
  }
};

/// Inlined by force: g++ 12 takes a function that only prefetches for one without effects, and
/// removes the call.
template <typename Copy>
__attribute__((always_inline)) inline void PrefetchRun(const GatherRun& run,
                                                       const ArenaBases& arenas) {
  const std::byte* const source = arenas.Resolve(run.source);
  __builtin_prefetch(source);
  if constexpr (Copy::kOneLine) return;
  const uint64_t bytes = Copy::kLines > 0 ? Copy::kLines * kLineBytes
                                          : std::min(run.bytes, kLinesOfRunMax * kLineBytes);
  for (uint64_t at = kLineBytes; at < bytes; at += kLineBytes) __builtin_prefetch(source + at);
  __builtin_prefetch(source + run.bytes - 1);
}

/// The runs of one call of GatherCpu, and where it stands in them.
class RunCursor {
 public:
  RunCursor(std::span<const GatherRun> runs, uint64_t ahead, const ArenaBases& arenas)
      : runs_(runs), ahead_(ahead), arenas_(arenas) {}

  const GatherRun& operator[](uint64_t index) const { return runs_[index]; }

  /// Copies runs from `index` on, up to `end` or the first of another size, and returns where it
  /// stopped. The size decides how to copy: it is looked at once for all of them.
  template <typename Copy>
  uint64_t CopyAlike(uint64_t index, uint64_t end, std::byte* destination, const Copy& copy) const {
    const uint64_t bytes = runs_[index].bytes;
    do {
      // Beyond the output's own runs are those of the next.
      if (index + ahead_ < runs_.size()) PrefetchRun<Copy>(runs_[index + ahead_], arenas_);
      const GatherRun& run = runs_[index];
      copy(destination + run.destination_offset, arenas_.Resolve(run.source));
    } while (++index < end && runs_[index].bytes == bytes);
    return index;
  }

 private:
  std::span<const GatherRun> runs_;
  uint64_t ahead_;
  const ArenaBases& arenas_;
};

/// As RunCursor::CopyAlike, by the way to copy that fits the size of run `index`.
uint64_t CopyBySize(const RunCursor& runs, uint64_t index, uint64_t end, std::byte* destination) {
  const uint64_t bytes = runs[index].bytes;
  const auto copy = [&](const auto& how) { return runs.CopyAlike(index, end, destination, how); };
  switch (bytes) {
    case 0:
      return index + 1;
    case 1:
      return copy(CopyExactly<1>());
    case 2:
      return copy(CopyExactly<2>());
    case 4:
      return copy(CopyExactly<4>());
    case 8:
      return copy(CopyExactly<8>());
    case 16:
      return copy(CopyExactly<16>());
    case 32:
      return copy(CopyExactly<32>());
    case 64:
      return copy(CopyExactly<64>());
    case 128:
      return copy(CopyExactly<128>());
    default:
      break;
  }
  if (bytes > 256) return copy(CopyLarge{bytes});
  if (bytes >= 128) return copy(CopyHalves<128>{bytes});
  if (bytes >= 64) return copy(CopyHalves<64>{bytes});
  if (bytes >= 32) return copy(CopyHalves<32>{bytes});
  if (bytes >= 16) return copy(CopyHalves<16>{bytes});
  if (bytes >= 8) return copy(CopyHalves<8>{bytes});
  if (bytes >= 4) return copy(CopyHalves<4>{bytes});
  return copy(CopyHalves<2>{bytes});
}

/// How many runs ahead of its copy a run is prefetched, from the sizes of a few of them.
uint64_t RunsAhead(std::span<const GatherRun> runs) {
  constexpr uint64_t kProbes = 8;
  if (runs.empty()) return 1;
  uint64_t lines = 0;
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    const GatherRun& run = runs[runs.size() * probe / kProbes];
    lines += std::min((run.bytes + kLineBytes - 1) / kLineBytes, kLinesOfRunMax);
  }
  return std::clamp(kLinesAhead * kProbes / std::max<uint64_t>(lines, 1), uint64_t{2},
                    uint64_t{96});
}

void FillOutput(const GatherOutput& output, std::span<const FillRun> fills) {
  for (const FillRun& fill : fills) {
    if (fill.bytes == 0) continue;
    std::byte* const destination = output.destination + fill.destination_offset;
    if (output.pattern == 0) {
      std::memset(destination, 0, fill.bytes);
      continue;
    }
    // Doubles what is filled already.
    uint64_t filled = std::min<uint64_t>(output.pattern_bytes, fill.bytes);
    std::memcpy(destination, &output.pattern, filled);
    while (filled < fill.bytes) {
      const uint64_t more = std::min({filled, fill.bytes - filled, uint64_t{4096}});
      std::memcpy(destination + filled, destination, more);
      filled += more;
    }
  }
}

}  // namespace

void GatherCpu(const GatherPlan& plan, const ArenaBases& arenas) {
  const RunCursor runs(plan.runs, RunsAhead(plan.runs), arenas);
  for (const GatherOutput& output : plan.outputs) {
    const uint64_t element_bytes = DTypeBytes(output.stored);
    const uint64_t end = output.first_run + output.run_count;
    uint64_t index = output.first_run;
    while (index < end) {
      if (output.convert == GatherConvert::kCopy) {
        index = CopyBySize(runs, index, end, output.destination);
      } else {
        const CopyConverted copy{output.stored, runs[index].bytes / element_bytes};
        index = runs.CopyAlike(index, end, output.destination, copy);
      }
    }
    FillOutput(output, plan.fills.subspan(output.first_fill, output.fill_count));
  }
}

}  // namespace geardb
