// The CPU gather beside a bare prefetching loop over the same addresses, and beside memcpy.
#include "kernels/gather.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/philox.h"
#include "tools/bench/ceilings.h"
#include "tools/bench/row.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Where the runs of a batch come from, in a memory far larger than the caches.
struct Frames {
  explicit Frames(const Settings& settings)
      : source(settings.tiny ? 64 * kMiB : 1024 * kMiB), batch(settings.tiny ? kMiB : 16 * kMiB) {}
  Memory source;
  Memory batch;
};

class GatherScene : public Scene {
 public:
  GatherScene(std::shared_ptr<Frames> frames, uint64_t run_bytes) : frames_(std::move(frames)) {
    // Frames begin at multiples of 128, rows in them at multiples of their own size.
    const uint64_t places = (frames_->source.size() - run_bytes) / 128;
    group_ = {.count = frames_->batch.size() / run_bytes, .bytes = run_bytes, .stride = run_bytes};
    for (uint64_t i = 0; i < group_.count; ++i) {
      const uint64_t random = PhiloxRandom64(7, 0, static_cast<uint32_t>(i), PhiloxPurpose::kItem);
      sources_.push_back(FrameRef::Make(0, MulHi64(random, places) * 128));
    }
    output_ = {.destination = frames_->batch.get(), .group_count = 1};
    arenas_.base[0] = frames_->source.get();
  }

 protected:
  double bytes() const { return static_cast<double>(group_.count * group_.bytes); }

  /// Bytes per second of GatherCpu.
  double Gather() {
    const Stopwatch watch;
    GatherCpu({.outputs = {&output_, 1}, .groups = {&group_, 1}, .sources = sources_, .fills = {}},
              arenas_);
    return bytes() / watch.seconds();
  }

  std::shared_ptr<Frames> frames_;
  RunGroup group_;
  std::vector<FrameRef> sources_;
  GatherOutput output_;
  ArenaBases arenas_;
};

/// A loop that knows everything beforehand: pointers, one size at compile time, and a distance of
/// prefetching that was tried out.
template <uint64_t kBytes>
void BareLoop(std::span<const std::byte* const> sources, std::byte* to, uint64_t ahead) {
  constexpr uint64_t kLinesMax = 16;
  constexpr uint64_t kLines = std::min<uint64_t>((kBytes + 63) / 64, kLinesMax);
  for (uint64_t i = 0; i < sources.size(); ++i, to += kBytes) {
    if (i + ahead < sources.size()) {
      for (uint64_t line = 0; line < kLines; ++line) {
        __builtin_prefetch(sources[i + ahead] + line * 64);
      }
    }
    std::memcpy(to, sources[i], kBytes);
  }
}

using Loop = void (*)(std::span<const std::byte* const>, std::byte*, uint64_t);

template <uint64_t kBytes>
class AgainstLoop final : public GatherScene {
 public:
  explicit AgainstLoop(std::shared_ptr<Frames> frames) : GatherScene(std::move(frames), kBytes) {
    for (const FrameRef source : sources_) pointers_.push_back(arenas_.Resolve(source));
    double best = 0;
    for (const uint64_t ahead : {2u, 4u, 8u, 16u, 32u, 64u}) {
      Bare(ahead);
      const double rate = std::max(Bare(ahead), Bare(ahead));
      if (rate > best) {
        best = rate;
        ahead_ = ahead;
      }
    }
  }

  Result<Figure> Measure() override {
    // Two of each, in turns; the faster ones: what another process takes is not the loop's.
    double gather = 0;
    double bare = 0;
    for (int turn = 0; turn < 2; ++turn) {
      gather = std::max(gather, Gather());
      bare = std::max(bare, Bare(ahead_));
    }
    return Figure{gather, bare, {{"runs", static_cast<double>(group_.count)}}};
  }

 private:
  double Bare(uint64_t ahead) {
    const Stopwatch watch;
    BareLoop<kBytes>(pointers_, frames_->batch.get(), ahead);
    return bytes() / watch.seconds();
  }

  std::vector<const std::byte*> pointers_;
  uint64_t ahead_ = 8;
};

class AgainstMemcpy final : public GatherScene {
 public:
  using GatherScene::GatherScene;

  Result<Figure> Measure() override {
    const double gather = Gather();
    const Stopwatch watch;
    std::memcpy(frames_->batch.get(), frames_->source.get() + at_, static_cast<size_t>(bytes()));
    const double copy = bytes() / watch.seconds();
    // Another part of the source each time, so that no cache has it.
    at_ += frames_->batch.size();
    if (at_ + frames_->batch.size() > frames_->source.size()) at_ = 0;
    return Figure{gather, copy, {{"runs", static_cast<double>(group_.count)}}};
  }

 private:
  uint64_t at_ = 0;
};

Result<std::shared_ptr<Frames>> FramesOf(Bench* bench) {
  return bench->keeper.Get<Frames>("gather frames", [bench]() -> Result<std::shared_ptr<Frames>> {
    return std::make_shared<Frames>(bench->settings);
  });
}

template <uint64_t kBytes>
Row LoopRow() {
  return {.name = "gather.loop",
          .size = kBytes,
          .size_of = "bytes a run",
          .what = "GatherCpu, 16 MiB of output from runs at random places of 1 GiB, one thread",
          .ceiling =
              "a loop over the same addresses, its size known to the compiler, its "
              "prefetch distance the best of six",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.95},
          .make = [](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(auto frames, FramesOf(bench));
            return std::unique_ptr<Scene>(std::make_unique<AgainstLoop<kBytes>>(frames));
          },
          .keeps = true};
}

Row MemcpyRow(uint64_t run_bytes) {
  return {.name = "gather.memcpy",
          .size = static_cast<int64_t>(run_bytes),
          .size_of = "bytes a run",
          .what = "GatherCpu, 16 MiB of output from runs at random places of 1 GiB, one thread",
          .ceiling = "one memcpy of 16 MiB that no cache holds",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.70},
          .make = [run_bytes](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(auto frames, FramesOf(bench));
            return std::unique_ptr<Scene>(std::make_unique<AgainstMemcpy>(frames, run_bytes));
          },
          .keeps = true};
}

}  // namespace

std::vector<Row> GatherRows(const Settings&) {
  return {LoopRow<4>(),      LoopRow<16>(),    LoopRow<25>(),       LoopRow<64>(),
          LoopRow<100>(),    LoopRow<256>(),   LoopRow<1024>(),     LoopRow<4096>(),
          LoopRow<16384>(),  LoopRow<65536>(), MemcpyRow(64 << 10), MemcpyRow(256 << 10),
          MemcpyRow(1 << 20)};
}

}  // namespace geardb::bench
