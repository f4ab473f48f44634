#include "index/draw_points.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/philox.h"

namespace geardb::index {
namespace {

uint64_t PointOf(const DrawRequest& request, uint64_t total, uint32_t row) {
  return MulHi64(PhiloxRandom64(request.seed, request.draw_number, row, PhiloxPurpose::kItem),
                 total);
}

#if defined(__x86_64__)

/// Four blocks of Philox4x32 side by side: each vector holds one word of each block, in 64 bits of
/// which the upper half is not looked at.
struct Blocks {
  __m256i v[4];
};

__attribute__((target("avx2"))) inline __m256i Broadcast(uint64_t value) {
  return _mm256_set1_epi64x(static_cast<long long>(value));
}

__attribute__((target("avx2"))) inline Blocks Philox(uint64_t key, Blocks c) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  const __m256i m0 = Broadcast(0xD2511F53u);
  const __m256i m1 = Broadcast(0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(m0, c.v[0]);
    const __m256i p1 = _mm256_mul_epu32(m1, c.v[2]);
    c = Blocks{
        {_mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c.v[1]), Broadcast(k0)), p1,
         _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c.v[3]), Broadcast(k1)), p0}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// Twice four rows from `row` on.
__attribute__((target("avx2"))) void EightPoints(const DrawRequest& request, uint64_t total,
                                                 uint32_t row, uint64_t* points) {
  const __m256i low = Broadcast(0xFFFFFFFFu);
  const __m256i purpose = Broadcast(static_cast<uint32_t>(PhiloxPurpose::kItem));
  const __m256i draw0 = Broadcast(static_cast<uint32_t>(request.draw_number));
  const __m256i draw1 = Broadcast(request.draw_number >> 32);
  alignas(32) uint64_t randoms[8];
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t first = row + 4 * half;
    const __m256i rows = _mm256_set_epi64x(first + 3, first + 2, first + 1, first);
    const Blocks blocks = Philox(request.seed, Blocks{{draw0, draw1, rows, purpose}});
    const __m256i random =
        _mm256_or_si256(_mm256_and_si256(blocks.v[0], low), _mm256_slli_epi64(blocks.v[1], 32));
    _mm256_store_si256(reinterpret_cast<__m256i*>(randoms + 4 * half), random);
  }
  for (int i = 0; i < 8; ++i) points[i] = MulHi64(randoms[i], total);
}

#endif

}  // namespace

void internal::DrawPointsPlain(const DrawRequest& request, uint64_t total,
                               std::span<uint64_t> points) {
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = PointOf(request, total, request.first_row + static_cast<uint32_t>(i));
  }
}

void DrawPoints(const DrawRequest& request, uint64_t total, std::span<uint64_t> points) {
  DrawRequest rest = request;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    for (; points.size() >= 8; points = points.subspan(8)) {
      EightPoints(rest, total, rest.first_row, points.data());
      rest.first_row += 8;
    }
  }
#endif
  internal::DrawPointsPlain(rest, total, points);
}

}  // namespace geardb::index
