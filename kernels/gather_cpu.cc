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
constexpr uint64_t kRunsAheadMax = 64;
/// Of one run so many lines are prefetched; the hardware sees the rest coming.
constexpr uint64_t kLinesOfRunMax = 16;

// Each way to copy says how many lines of a run are prefetched before the one with its last byte;
// 0: what its size says. A number known here is worth a tenth at 100 to 256 bytes.

/// A size known at compile time.
template <uint64_t kBytes>
struct CopyExactly {
  static constexpr bool kOneLine = kBytes <= 16;  // Rows of such sizes are aligned to them.
  static constexpr bool kWholeLines = kBytes % kLineBytes == 0;
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
  static constexpr bool kWholeLines = false;
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
  static constexpr bool kWholeLines = false;
  static constexpr uint64_t kLines = 0;
  uint64_t bytes;
  void operator()(std::byte* destination, const std::byte* source) const {
    std::memcpy(destination, source, bytes);
  }
};

/// Converts elements on their way.
struct CopyConverted {
  static constexpr bool kOneLine = false;
  static constexpr bool kWholeLines = false;
  static constexpr uint64_t kLines = 0;
  DType stored;
  uint64_t elements;
  void operator()(std::byte* destination, const std::byte* source) const {
    ConvertToFloat(stored, source, elements, reinterpret_cast<float*>(destination));
  }
};

/// Runs of `bytes` that are asked for before the copy of one.
uint64_t RunsAhead(uint64_t bytes) {
  const uint64_t lines = std::min((bytes + kLineBytes - 1) / kLineBytes, kLinesOfRunMax);
  return std::clamp(kLinesAhead / std::max<uint64_t>(lines, 1), uint64_t{2}, kRunsAheadMax);
}

/// The sources of one call of GatherCpu, and how many of them have been prefetched.
class Sources {
 public:
  Sources(std::span<const FrameRef> sources, const ArenaBases& arenas)
      : sources_(sources), arenas_(arenas) {}

  template <typename Copy>
  void CopyGroup(const RunGroup& group, std::byte* destination, const Copy& copy) {
    const uint64_t ahead = RunsAhead(group.bytes);
    const uint64_t end = group.first_source + group.count;
    // Behind the group's own sources are those of the next one, whose runs are mostly alike.
    const uint64_t known = sources_.size();
    const uint64_t begun = std::min(group.first_source + ahead, known);
    while (prefetched_ < begun) Prefetch<Copy>(prefetched_++, group.bytes);
    destination += group.destination_offset;
    for (uint64_t i = group.first_source; i < end; ++i, destination += group.stride) {
      if (i + ahead < known) Prefetch<Copy>(i + ahead, group.bytes);
      copy(destination, arenas_.Resolve(sources_[i]));
    }
    prefetched_ = std::max(prefetched_, std::min(end + ahead, known));
  }

 private:
  /// Inlined by force: g++ 12 takes a function that only prefetches for one without effects, and
  /// removes the call.
  template <typename Copy>
  __attribute__((always_inline)) inline void Prefetch(uint64_t index, uint64_t bytes) const {
    const std::byte* const source = arenas_.Resolve(sources_[index]);
    __builtin_prefetch(source);
    if constexpr (Copy::kOneLine) return;
    const uint64_t until =
        Copy::kLines > 0 ? Copy::kLines * kLineBytes : std::min(bytes, kLinesOfRunMax * kLineBytes);
    for (uint64_t at = kLineBytes; at < until; at += kLineBytes) __builtin_prefetch(source + at);
    // Rows of whole lines mostly begin with one, and then have no other at their end.
    if (Copy::kWholeLines && reinterpret_cast<uintptr_t>(source) % kLineBytes == 0) return;
    __builtin_prefetch(source + bytes - 1);
  }

  const std::span<const FrameRef> sources_;
  const ArenaBases& arenas_;
  uint64_t prefetched_ = 0;
};

/// Copies the runs of `group` in the way that fits their size: it is looked at once for all.
void CopyBySize(const RunGroup& group, std::byte* destination, Sources* sources) {
  const uint64_t bytes = group.bytes;
  const auto copy = [&](const auto& how) { sources->CopyGroup(group, destination, how); };
  switch (bytes) {
    case 0:
      return;
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
    case 256:
      return copy(CopyExactly<256>());
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
  Sources sources(plan.sources, arenas);
  for (const GatherOutput& output : plan.outputs) {
    for (const RunGroup& group : plan.groups.subspan(output.first_group, output.group_count)) {
      if (output.convert == GatherConvert::kCopy) {
        CopyBySize(group, output.destination, &sources);
      } else if (group.bytes > 0) {
        const uint64_t elements = group.bytes / DTypeBytes(output.stored);
        sources.CopyGroup(group, output.destination, CopyConverted{output.stored, elements});
      }
    }
    FillOutput(output, plan.fills.subspan(output.first_fill, output.fill_count));
  }
}

}  // namespace geardb
