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
constexpr uint64_t kLinesAhead = 96;
/// Of one run so many lines are prefetched; the hardware sees the rest coming.
constexpr uint64_t kLinesOfRunMax = 16;

struct Bytes16 {
  uint64_t v[2];
};

template <typename Block>
inline Block Load(const std::byte* source) {
  Block block;
  std::memcpy(&block, source, sizeof(Block));
  return block;
}

template <typename Block>
inline void Store(std::byte* destination, const Block& block) {
  std::memcpy(destination, &block, sizeof(Block));
}

/// Copies [Block, 2 * Block] bytes as the first and the last Block.
template <typename Block>
inline void CopyTwo(std::byte* destination, const std::byte* source, uint64_t bytes) {
  const uint64_t last = bytes - sizeof(Block);
  const auto head = Load<Block>(source);
  const auto tail = Load<Block>(source + last);
  Store(destination, head);
  Store(destination + last, tail);
}

inline void Copy64(std::byte* destination, const std::byte* source) {
  const auto a = Load<Bytes16>(source);
  const auto b = Load<Bytes16>(source + 16);
  const auto c = Load<Bytes16>(source + 32);
  const auto d = Load<Bytes16>(source + 48);
  Store(destination, a);
  Store(destination + 16, b);
  Store(destination + 32, c);
  Store(destination + 48, d);
}

/// A size known at compile time: one block.
template <uint64_t kBytes>
struct CopyExactly {
  static constexpr bool kOneLine = kBytes <= 16;  // Rows of such sizes are aligned to them.
  void operator()(std::byte* destination, const std::byte* source) const {
    std::memcpy(destination, source, kBytes);
  }
};

/// Any other size up to 256: the smallest number of overlapping blocks, never beyond `bytes`.
struct CopySmall {
  static constexpr bool kOneLine = false;
  uint64_t bytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    if (bytes >= 64) {
      const uint64_t last = bytes - 64;
      for (uint64_t at = 0; at < last; at += 64) Copy64(destination + at, source + at);
      Copy64(destination + last, source + last);
    } else if (bytes > 32) {
      CopyTwo<Bytes16>(destination, source, 32);
      CopyTwo<Bytes16>(destination + bytes - 32, source + bytes - 32, 32);
    } else if (bytes >= 16) {
      CopyTwo<Bytes16>(destination, source, bytes);
    } else if (bytes >= 8) {
      CopyTwo<uint64_t>(destination, source, bytes);
    } else if (bytes >= 4) {
      CopyTwo<uint32_t>(destination, source, bytes);
    } else if (bytes >= 2) {
      CopyTwo<uint16_t>(destination, source, bytes);
    } else if (bytes == 1) {
      *destination = *source;
    }
  }
};

struct CopyLarge {
  static constexpr bool kOneLine = false;
  uint64_t bytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    std::memcpy(destination, source, bytes);
  }
};

/// Converts elements on their way.
struct CopyConverted {
  static constexpr bool kOneLine = false;
  DType stored;
  uint64_t elements;
  void operator()(std::byte* destination, const std::byte* source) const {
    ConvertToFloat(stored, source, elements, reinterpret_cast<float*>(destination));
  }
};

/// Inlined by force: g++ 12 takes a function that only prefetches for one without effects, and
/// removes the call.
template <bool kOneLine>
__attribute__((always_inline)) inline void PrefetchRun(const GatherRun& run,
                                                       const ArenaBases& arenas) {
  const std::byte* const source = arenas.Resolve(run.source);
  __builtin_prefetch(source);
  if constexpr (kOneLine) return;
  if (run.bytes > kLineBytes + 1) {
    const uint64_t bytes = std::min(run.bytes, kLinesOfRunMax * kLineBytes);
    for (uint64_t at = kLineBytes; at < bytes; at += kLineBytes) __builtin_prefetch(source + at);
  }
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
      if (index + ahead_ < runs_.size())
        PrefetchRun<Copy::kOneLine>(runs_[index + ahead_], arenas_);
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

uint64_t CopyOfSize(const RunCursor& runs, uint64_t index, uint64_t end, std::byte* destination) {
  const uint64_t bytes = runs[index].bytes;
  switch (bytes) {
    case 1:
      return runs.CopyAlike(index, end, destination, CopyExactly<1>());
    case 2:
      return runs.CopyAlike(index, end, destination, CopyExactly<2>());
    case 4:
      return runs.CopyAlike(index, end, destination, CopyExactly<4>());
    case 8:
      return runs.CopyAlike(index, end, destination, CopyExactly<8>());
    case 16:
      return runs.CopyAlike(index, end, destination, CopyExactly<16>());
    case 32:
      return runs.CopyAlike(index, end, destination, CopyExactly<32>());
    case 64:
      return runs.CopyAlike(index, end, destination, CopyExactly<64>());
    default:
      break;
  }
  if (bytes <= 256) return runs.CopyAlike(index, end, destination, CopySmall{bytes});
  return runs.CopyAlike(index, end, destination, CopyLarge{bytes});
}

/// How many runs ahead of its copy a run is prefetched, from the sizes of a few of them.
uint64_t RunsAhead(std::span<const GatherRun> runs) {
  constexpr uint64_t kProbes = 8;
  if (runs.empty()) return 1;
  uint64_t lines = 0;
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    const GatherRun& run = runs[runs.size() * probe / kProbes];
    lines += std::min(run.bytes / kLineBytes + 1, kLinesOfRunMax);
  }
  return std::clamp(kLinesAhead * kProbes / lines, uint64_t{2}, uint64_t{32});
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
        index = CopyOfSize(runs, index, end, output.destination);
      } else {
        const CopyConverted copy{output.stored, runs[index].bytes / element_bytes};
        index = runs.CopyAlike(index, end, output.destination, copy);
      }
    }
    FillOutput(output, plan.fills.subspan(output.first_fill, output.fill_count));
  }
}

}  // namespace geardb
