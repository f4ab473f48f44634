#include "index/tree_descent.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "index/limits.h"

namespace geardb::index {
namespace {

/// A level of so many nodes, or fewer, is searched at once by a chunk of at least so many points.
constexpr uint64_t kSearchedNodes = 1024;
constexpr size_t kSearchingPoints = 64;

/// The lowest level whose first node is the total: above it there is nothing to choose.
int TopLevel(const TreeView& view) {
  const uint64_t total = view.total();
  int level = view.shape.level_count - 1;
  while (level > 1 && view.nodes(level - 1)[0] == total) --level;
  return level;
}

/// What a step down through one level needs.
struct NodeLevel {
  const uint64_t* nodes = nullptr;
  const std::byte* below = nullptr;  ///< Entries of the level below: of their groups…
  uint64_t group_bytes = 0;          ///< …each has so many bytes.
};
using StepThroughNodes = void (*)(const NodeLevel& level, std::span<TreeHit> hits);
using StepThroughLeaves = void (*)(const uint32_t* leaves, std::span<TreeHit> hits);

/// Inlined by force: g++ 12 may take a function that only prefetches for one without effects, and
/// remove the call.
__attribute__((always_inline)) inline void PrefetchGroup(const NodeLevel& level, uint64_t group) {
  const std::byte* const bytes = level.below + group * level.group_bytes;
  for (uint64_t line = 0; line < level.group_bytes; line += 64) __builtin_prefetch(bytes + line);
}

NodeLevel LevelOf(const TreeView& view, int level) {
  if (level == 1) return {view.nodes(1), view.base, kTreeFanOut * sizeof(uint32_t)};
  return {view.nodes(level), reinterpret_cast<const std::byte*>(view.nodes(level - 1)),
          kTreeFanOut * sizeof(uint64_t)};
}

/// The steps from the root through `level` in one: a binary search among where its nodes begin.
/// Those of 320 nodes are summed up in the time of some ten points' steps.
void SearchLevel(const NodeLevel& level, uint64_t count, std::span<TreeHit> hits) {
  std::array<uint64_t, kSearchedNodes> begins;
  const uint64_t size = std::bit_ceil(count);
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    begins[i] = begin;
    begin += level.nodes[i];
  }
  std::fill(begins.begin() + static_cast<ptrdiff_t>(count),
            begins.begin() + static_cast<ptrdiff_t>(size), UINT64_MAX);
  for (TreeHit& hit : hits) {
    // The last node that begins at or before the point; of several there, all but it are empty.
    uint64_t node = 0;
    for (uint64_t step = size / 2; step > 0; step /= 2) {
      node += begins[node + step] <= hit.remainder ? step : 0;
    }
    hit.leaf = node;
    hit.remainder -= begins[node];
    PrefetchGroup(level, node);
  }
}

void DescendChunk(const TreeView& view, std::span<TreeHit> hits, StepThroughNodes nodes,
                  StepThroughLeaves leaves) {
  int level = TopLevel(view) - 1;
  if (hits.size() >= kSearchingPoints) {
    int searched = level;
    while (searched > 1 && view.shape.level_entries[searched - 1] <= kSearchedNodes) --searched;
    if (searched >= 1 && view.shape.level_entries[searched] <= kSearchedNodes) {
      SearchLevel(LevelOf(view, searched), view.shape.level_entries[searched], hits);
      level = searched - 1;
    }
  }
  for (; level >= 1; --level) nodes(LevelOf(view, level), hits);
  leaves(view.leaves(), hits);
}

void Descend(const TreeView& view, std::span<const uint64_t> points, std::span<TreeHit> hits,
             std::pair<StepThroughNodes, StepThroughLeaves> steps) {
  for (size_t start = 0; start < points.size(); start += kChunk) {
    const size_t count = std::min(kChunk, points.size() - start);
    for (size_t i = start; i < start + count; ++i) hits[i] = TreeHit{0, 0, points[i]};
    DescendChunk(view, hits.subspan(start, count), steps.first, steps.second);
  }
}

// ---- Any machine.

/// Which of 32 entries `point` falls in; `point` becomes what is left of it there. As the loop of
/// TreeView::Descend, but in two steps of 4 and 8 that count instead of branching, so that the
/// descents of a batch overlap.
template <typename Entry>
inline uint64_t ChooseChild(const Entry* entries, uint64_t* point) {
  uint64_t block_begin[4];
  block_begin[0] = 0;
#pragma GCC unroll 3
  for (uint64_t block = 0; block < 3; ++block) {
    const Entry* e = entries + 8 * block;
    block_begin[block + 1] =
        block_begin[block] + (((uint64_t{e[0]} + e[1]) + (uint64_t{e[2]} + e[3])) +
                              ((uint64_t{e[4]} + e[5]) + (uint64_t{e[6]} + e[7])));
  }
  uint64_t block = 0;
#pragma GCC unroll 3
  for (uint64_t i = 1; i < 4; ++i) block += *point >= block_begin[i] ? 1 : 0;
  const Entry* e = entries + 8 * block;
  const uint64_t in_block = *point - block_begin[block];
  uint64_t entry_begin[8];
  entry_begin[0] = 0;
#pragma GCC unroll 7
  for (uint64_t i = 0; i < 7; ++i) entry_begin[i + 1] = entry_begin[i] + e[i];
  uint64_t child = 0;
#pragma GCC unroll 7
  for (uint64_t i = 1; i < 8; ++i) child += in_block >= entry_begin[i] ? 1 : 0;
  *point = in_block - entry_begin[child];
  return block * 8 + child;
}

void NodesPlain(const NodeLevel& level, std::span<TreeHit> hits) {
  for (TreeHit& hit : hits) {
    const uint64_t* const group = level.nodes + hit.leaf * kTreeFanOut;
    hit.leaf = hit.leaf * kTreeFanOut + ChooseChild(group, &hit.remainder);
    PrefetchGroup(level, hit.leaf);
  }
}

void LeavesPlain(const uint32_t* leaves, std::span<TreeHit> hits) {
  for (TreeHit& hit : hits) {
    const uint32_t* const group = leaves + hit.leaf * kTreeFanOut;
    const uint64_t child = ChooseChild(group, &hit.remainder);
    hit.leaf = hit.leaf * kTreeFanOut + child;
    hit.weight = group[child];
  }
}

#if defined(__x86_64__)

// ---- Four entries at a time.

#define GEARDB_AVX2 __attribute__((target("avx2"), always_inline))

GEARDB_AVX2 inline __m256i LoadFour(const uint64_t* entries) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(entries));
}
GEARDB_AVX2 inline __m256i LoadFour(const uint32_t* entries) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries)));
}

/// Sums of the lanes of `a` and of `b`.
GEARDB_AVX2 inline __m128i SumsOf(__m256i a, __m256i b) {
  const __m256i pairs = _mm256_add_epi64(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  return _mm_add_epi64(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

/// [a, a + b, a + b + c, a + b + c + d].
GEARDB_AVX2 inline __m256i PrefixSums(__m256i v) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i by_one =
      _mm256_blend_epi32(_mm256_permute4x64_epi64(v, _MM_SHUFFLE(2, 1, 0, 0)), zero, 0x03);
  v = _mm256_add_epi64(v, by_one);
  const __m256i by_two = _mm256_permute2x128_si256(v, v, 0x08);
  return _mm256_add_epi64(v, by_two);
}

template <typename Entry>
GEARDB_AVX2 inline __m256i AddEight(const Entry* entries) {
  return _mm256_add_epi64(LoadFour(entries), LoadFour(entries + 4));
}

/// As ChooseChild.
template <typename Entry>
GEARDB_AVX2 inline uint64_t ChooseChildAvx2(const Entry* entries, uint64_t* point) {
  const __m256i third = AddEight(entries + 16);
  const __m128i first_two = SumsOf(AddEight(entries), AddEight(entries + 8));
  const auto begin1 = static_cast<uint64_t>(_mm_cvtsi128_si64(first_two));
  const uint64_t begin2 = begin1 + static_cast<uint64_t>(_mm_extract_epi64(first_two, 1));
  const uint64_t begin3 = begin2 + static_cast<uint64_t>(_mm_cvtsi128_si64(SumsOf(third, third)));
  const uint64_t at = *point;
  uint64_t begin = at >= begin1 ? begin1 : 0;
  begin = at >= begin2 ? begin2 : begin;
  begin = at >= begin3 ? begin3 : begin;
  const uint64_t block = uint64_t{at >= begin1} + uint64_t{at >= begin2} + uint64_t{at >= begin3};

  const Entry* const e = entries + 8 * block;
  const uint64_t in_block = at - begin;
  const __m256i low = PrefixSums(LoadFour(e));
  const __m256i half = _mm256_permute4x64_epi64(low, _MM_SHUFFLE(3, 3, 3, 3));
  const __m256i high = _mm256_add_epi64(PrefixSums(LoadFour(e + 4)), half);
  alignas(32) uint64_t ends[12];
  ends[3] = 0;
  _mm256_store_si256(reinterpret_cast<__m256i*>(ends + 4), low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(ends + 8), high);
  // Unsigned comparison: both sides with their sign bit turned.
  const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
  const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(in_block ^ (uint64_t{1} << 63)));
  const int beyond_low = _mm256_movemask_pd(
      _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_xor_si256(low, sign), wanted)));
  const int beyond_high = _mm256_movemask_pd(
      _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_xor_si256(high, sign), wanted)));
  // The first entry whose end lies beyond the point; the last one where none does.
  const auto child = static_cast<uint64_t>(
      __builtin_ctz(static_cast<unsigned>(beyond_low | beyond_high << 4) | 0x80u));
  *point = in_block - ends[3 + child];
  return block * 8 + child;
}

__attribute__((target("avx2"))) void NodesAvx2(const NodeLevel& level, std::span<TreeHit> hits) {
  for (TreeHit& hit : hits) {
    const uint64_t* const group = level.nodes + hit.leaf * kTreeFanOut;
    hit.leaf = hit.leaf * kTreeFanOut + ChooseChildAvx2(group, &hit.remainder);
    PrefetchGroup(level, hit.leaf);
  }
}

__attribute__((target("avx2"))) void LeavesAvx2(const uint32_t* leaves, std::span<TreeHit> hits) {
  for (TreeHit& hit : hits) {
    const uint32_t* const group = leaves + hit.leaf * kTreeFanOut;
    const uint64_t child = ChooseChildAvx2(group, &hit.remainder);
    hit.leaf = hit.leaf * kTreeFanOut + child;
    hit.weight = group[child];
  }
}

#undef GEARDB_AVX2
#endif

}  // namespace

void internal::DescendBatchPlain(const TreeView& view, std::span<const uint64_t> points,
                                 std::span<TreeHit> hits) {
  Descend(view, points, hits, {NodesPlain, LeavesPlain});
}

void DescendBatch(const TreeView& view, std::span<const uint64_t> points, std::span<TreeHit> hits) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    Descend(view, points, hits, {NodesAvx2, LeavesAvx2});
    return;
  }
#endif
  internal::DescendBatchPlain(view, points, hits);
}

}  // namespace geardb::index
