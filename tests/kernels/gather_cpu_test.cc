// GatherCpu against the most naive copy there is.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "base/page_view.h"
#include "kernels/convert.h"
#include "kernels/gather.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

constexpr std::byte kUntouched{0xA5};

/// One run, as a test thinks of it.
struct NaiveRun {
  FrameRef source;
  uint64_t destination_offset = 0;
  uint64_t bytes = 0;
};

/// Runs as groups: as long ones as there are, or each alone.
struct Groups {
  void Add(const NaiveRun& run, bool may_join) {
    sources.push_back(run.source);
    if (may_join && !groups.empty() && groups.back().bytes == run.bytes) {
      RunGroup& last = groups.back();
      const uint64_t distance = run.destination_offset - last.destination_offset;
      if (last.count == 1) last.stride = distance;
      if (distance == last.count * last.stride) {
        ++last.count;
        return;
      }
    }
    groups.push_back({.first_source = sources.size() - 1,
                      .count = 1,
                      .bytes = run.bytes,
                      .destination_offset = run.destination_offset});
  }

  std::vector<RunGroup> groups;
  std::vector<FrameRef> sources;
};

/// Two arenas of random bytes behind the numbers 3 and 200.
class GatherTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kArenaBytes = uint64_t{1} << 20;

  GatherTest() {
    for (auto& arena : arenas_) {
      arena.resize(kArenaBytes);
      for (std::byte& byte : arena) byte = static_cast<std::byte>(random_() & 0xFF);
    }
    bases_.base[kNumbers[0]] = arenas_[0].data();
    bases_.base[kNumbers[1]] = arenas_[1].data();
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  /// A run of `bytes` from anywhere.
  NaiveRun RandomRun(uint64_t destination_offset, uint64_t bytes) {
    const uint64_t frame = AlignDown(Below(kArenaBytes - bytes), kFrameAlignment);
    const uint64_t offset = Below(kArenaBytes - bytes - frame + 1);
    const uint8_t arena = kNumbers[Below(2)];
    return NaiveRun{AdvanceInFrame(FrameRef::Make(arena, frame), offset), destination_offset,
                    bytes};
  }

  std::byte SourceByte(const NaiveRun& run, uint64_t at) const {
    const auto& arena = run.source.arena() == kNumbers[0] ? arenas_[0] : arenas_[1];
    return arena[run.source.offset() + at];
  }

  static constexpr std::array<uint8_t, 2> kNumbers = {3, 200};
  std::mt19937_64 random_{20};
  std::array<std::vector<std::byte>, 2> arenas_;
  ArenaBases bases_;
};

TEST_F(GatherTest, EmptyPlanDoesNothing) {
  GatherCpu(GatherPlan{}, bases_);
  const GatherOutput nothing;
  GatherCpu(GatherPlan{{&nothing, 1}, {}, {}, {}}, ArenaBases{});
}

TEST_F(GatherTest, EverySizeIsCopiedExactly) {
  for (uint64_t bytes = 0; bytes <= 700; ++bytes) {
    for (uint64_t shift = 0; shift < 3; ++shift) {
      std::vector<std::byte> got(bytes + 64, kUntouched);
      const NaiveRun run = RandomRun(16 + shift, bytes);
      Groups plan;
      plan.Add(run, false);
      const GatherOutput output{.destination = got.data(), .group_count = 1};
      GatherCpu(GatherPlan{{&output, 1}, plan.groups, plan.sources, {}}, bases_);
      for (uint64_t i = 0; i < got.size(); ++i) {
        const bool inside = i >= 16 + shift && i < 16 + shift + bytes;
        ASSERT_EQ(got[i], inside ? SourceByte(run, i - 16 - shift) : kUntouched)
            << bytes << " bytes, byte " << i;
      }
    }
  }
}

TEST_F(GatherTest, GroupsOfEverySizeAndStrideAreCopiedExactly) {
  for (uint64_t bytes = 0; bytes <= 300; ++bytes) {
    const uint64_t stride = bytes + Below(3) * Below(20);
    const uint64_t count = 1 + Below(220);  // Fewer and more than are prefetched ahead.
    std::vector<std::byte> want(8 + count * stride + 16, kUntouched);
    std::vector<std::byte> got = want;
    std::vector<FrameRef> sources(3);  // Those of nobody.
    for (uint64_t i = 0; i < count; ++i) {
      const NaiveRun run = RandomRun(8 + i * stride, bytes);
      sources.push_back(run.source);
      for (uint64_t b = 0; b < bytes; ++b) want[run.destination_offset + b] = SourceByte(run, b);
    }
    for (FrameRef& source : std::span(sources).first(3)) source = sources[3];
    const RunGroup group{3, count, bytes, 8, stride};
    const GatherOutput output{.destination = got.data(), .group_count = 1};
    GatherCpu(GatherPlan{{&output, 1}, {&group, 1}, sources, {}}, bases_);
    ASSERT_EQ(got, want) << count << " runs of " << bytes << " bytes, " << stride << " apart";
  }
}

TEST_F(GatherTest, RandomPlansEqualNaiveCopies) {
  for (uint64_t round = 0; round < testing::ShareOf(200); ++round) {
    std::vector<GatherOutput> outputs(1 + Below(5));
    Groups plan;
    std::vector<FillRun> fills;
    std::vector<std::vector<std::byte>> got(outputs.size());
    std::vector<std::vector<std::byte>> want(outputs.size());
    for (size_t o = 0; o < outputs.size(); ++o) {
      GatherOutput& output = outputs[o];
      output.pattern_bytes = uint32_t{1} << Below(4);
      output.pattern = Below(3) == 0 ? 0 : random_();
      output.first_group = plan.groups.size();
      std::vector<NaiveRun> runs;
      output.first_fill = fills.size();
      const uint64_t row_bytes = (1 + Below(Below(4) == 0 ? 5000 : 40)) * output.pattern_bytes;
      for (uint64_t left = Below(60); left > 0; --left) {
        const uint64_t bytes = row_bytes * (Below(3) == 0 ? 1 + Below(9) : 1);
        const uint64_t at = want[o].size();
        want[o].resize(at + bytes);
        if (Below(5) == 0) {
          fills.push_back(FillRun{at, bytes});
          for (uint64_t i = 0; i < bytes; ++i) {
            const uint64_t shift = 8 * (i % output.pattern_bytes);
            want[o][at + i] = static_cast<std::byte>((output.pattern >> shift) & 0xFF);
          }
        } else {
          const bool repeated = !runs.empty() && Below(4) == 0 && runs.back().bytes == bytes;
          runs.push_back(repeated ? NaiveRun{runs.back().source, at, bytes} : RandomRun(at, bytes));
          plan.Add(runs.back(), runs.size() > 1 && Below(8) > 0);
          for (uint64_t i = 0; i < bytes; ++i) want[o][at + i] = SourceByte(runs.back(), i);
        }
      }
      output.group_count = plan.groups.size() - output.first_group;
      output.fill_count = fills.size() - output.first_fill;
      got[o].assign(want[o].size() + 16, kUntouched);
      want[o].resize(want[o].size() + 16, kUntouched);
      output.destination = got[o].data();
    }
    GatherCpu(GatherPlan{outputs, plan.groups, plan.sources, fills}, bases_);
    for (size_t o = 0; o < outputs.size(); ++o) {
      ASSERT_EQ(got[o], want[o]) << "round " << round << ", output " << o;
    }
  }
}

TEST_F(GatherTest, GroupsOfAnOutputMayComeInAnyOrder) {
  std::vector<NaiveRun> runs;
  Groups plan;
  for (uint64_t i = 0; i < 100; ++i) {
    runs.push_back(RandomRun((99 - i) * 12, 12));
    plan.Add(runs.back(), false);
  }
  std::vector<std::byte> got(1200, kUntouched);
  const GatherOutput output{.destination = got.data(), .group_count = plan.groups.size()};
  GatherCpu(GatherPlan{{&output, 1}, plan.groups, plan.sources, {}}, bases_);
  for (const NaiveRun& run : runs) {
    for (uint64_t i = 0; i < 12; ++i) {
      ASSERT_EQ(got[run.destination_offset + i], SourceByte(run, i));
    }
  }
}

TEST_F(GatherTest, ConvertedRunsAreWhatTheElementsSay) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto stored = static_cast<DType>(type);
    const uint64_t element_bytes = DTypeBytes(stored);
    std::vector<NaiveRun> runs;
    Groups plan;
    uint64_t elements = 0;
    uint64_t count = 0;
    for (int i = 0; i < 20; ++i) {
      if (Below(3) == 0) count = Below(70);
      runs.push_back(RandomRun(elements * sizeof(float), count * element_bytes));
      plan.Add(runs.back(), true);
      elements += count;
    }
    const FillRun fill{elements * sizeof(float), 3 * sizeof(float)};
    std::vector<float> got(elements + 3, -1.0f);
    const GatherOutput output{.destination = reinterpret_cast<std::byte*>(got.data()),
                              .group_count = plan.groups.size(),
                              .fill_count = 1,
                              .pattern = ElementBits(DType::kF32, 2.5),
                              .pattern_bytes = 4,
                              .convert = GatherConvert::kToF32,
                              .stored = stored};
    GatherCpu(GatherPlan{{&output, 1}, plan.groups, plan.sources, {&fill, 1}}, bases_);

    size_t at = 0;
    for (const NaiveRun& run : runs) {
      for (uint64_t i = 0; i < run.bytes; i += element_bytes, ++at) {
        std::array<std::byte, 8> element{};
        for (uint64_t b = 0; b < element_bytes; ++b) element[b] = SourceByte(run, i + b);
        float want = 0;
        ConvertToFloat(stored, element.data(), 1, &want);  // Checked in convert_test.cc.
        ASSERT_EQ(std::bit_cast<uint32_t>(got[at]), std::bit_cast<uint32_t>(want))
            << DTypeName(stored) << ", element " << at;
      }
    }
    for (; at < got.size(); ++at) ASSERT_EQ(got[at], 2.5f);
  }
}

/// Address space without memory behind it: only what is touched takes any.
class SparseBytes {
 public:
  explicit SparseBytes(uint64_t bytes) : bytes_(bytes) {
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) base_ = static_cast<std::byte*>(mapped);
  }
  ~SparseBytes() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  SparseBytes(const SparseBytes&) = delete;
  SparseBytes& operator=(const SparseBytes&) = delete;
  std::byte* base() const { return base_; }

 private:
  std::byte* base_ = nullptr;
  uint64_t bytes_;
};

TEST_F(GatherTest, OffsetsGoBeyond32Bits) {
  constexpr uint64_t kFar = (uint64_t{1} << 32) + 4096;
  const SparseBytes arena(2 * kFar);
  const SparseBytes destination(2 * kFar);
  if (arena.base() == nullptr || destination.base() == nullptr) {
    GTEST_SKIP() << "the system gives no 16 GiB of address space";
  }
  bases_.base[9] = arena.base();
  std::memcpy(arena.base() + kFar, "far away", 8);
  std::memcpy(arena.base() + (uint64_t{1} << 31) + 5, "half far", 8);
  Groups plan;
  plan.Add({AdvanceInFrame(FrameRef::Make(9, kFar - 128), 128), kFar + 1, 8}, false);
  plan.Add({FrameRef::Make(9, (uint64_t{1} << 31) + 5), (uint64_t{1} << 31) + 7, 8}, false);
  plan.Add({FrameRef::Make(9, kFar), 3, 8}, false);
  const FillRun fill{kFar + 64, 6};
  const GatherOutput output{.destination = destination.base(),
                            .group_count = plan.groups.size(),
                            .fill_count = 1,
                            .pattern = 0x6261,
                            .pattern_bytes = 2};
  GatherCpu(GatherPlan{{&output, 1}, plan.groups, plan.sources, {&fill, 1}}, bases_);
  const auto text = [&destination](uint64_t at, uint64_t bytes) {
    return std::string(reinterpret_cast<const char*>(destination.base()) + at, bytes);
  };
  EXPECT_EQ(text(kFar, 10), std::string("\0far away\0", 10));
  EXPECT_EQ(text((uint64_t{1} << 31) + 7, 8), "half far");
  EXPECT_EQ(text(3, 8), "far away");
  EXPECT_EQ(text(kFar + 63, 8), std::string("\0ababab\0", 8));
}

}  // namespace
}  // namespace geardb
