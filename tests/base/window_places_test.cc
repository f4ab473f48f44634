// Which places of a view have an entry: in constant time what a walk over all of them finds.
#include <gtest/gtest.h>

#include "base/window.h"

namespace geardb {
namespace {

constexpr EdgeRule kAll[] = {EdgeRule::kRequire, EdgeRule::kClip, EdgeRule::kPad, EdgeRule::kRepeat,
                             EdgeRule::kShift};

PlaceRange Walk(const WindowRule& rule, const Episode& episode, const PlacedWindow& window,
                int64_t over, const ViewRange& rows) {
  PlaceRange there;
  for (int64_t k = 0; k < rows.count; ++k) {
    const int64_t relative = rows.begin + k * rows.stride;
    if (ResolveEntry(rule, episode, window, over, relative).kind == EntryKind::kAbsent) continue;
    if (there.end == 0) there.begin = k;
    EXPECT_TRUE(there.end == 0 || there.end == k) << "a gap before " << k;
    there.end = k + 1;
  }
  return there;
}

TEST(WindowPlacesTest, PresentPlacesAreThoseThatAWalkFinds) {
  constexpr Episode kEpisode{.begin = 10, .steps_end = 16, .rows_end = 17};
  for (const EdgeRule left : kAll) {
    for (const EdgeRule right : kAll) {
      WindowRule rule{.extent = {4, 5, 3}, .left = left, .right = right};
      for (int64_t a = 10; a < 16; ++a) {
        if (!IsAnchor(rule, kEpisode, a)) continue;
        const PlacedWindow window = PlaceWindow(rule, kEpisode, a);
        for (const int64_t stride : {1, 2, 3, 7, -1, -2, -5}) {
          for (int64_t begin = -4; begin < 8; ++begin) {
            for (int64_t count = 1; count < 13; ++count) {
              for (int64_t over = 0; over <= 3; ++over) {
                const ViewRange rows{begin, stride, count};
                const PlaceRange walked = Walk(rule, kEpisode, window, over, rows);
                const PlaceRange found = PresentPlaces(rule, kEpisode, window, over, rows);
                ASSERT_EQ(found.end - found.begin, walked.end - walked.begin)
                    << a << ", begin " << begin << ", stride " << stride << ", count " << count;
                if (walked.end == 0) continue;
                ASSERT_EQ(found.begin, walked.begin);
                ASSERT_EQ(found.end, walked.end);
              }
            }
          }
        }
      }
    }
  }
}

TEST(WindowPlacesTest, AbsentPlacesAreNotWalked) {
  // A trillion places: a walk would not come back.
  constexpr int64_t kMany = int64_t{1} << 40;
  constexpr Episode kEpisode{.begin = 0, .steps_end = 3, .rows_end = 3};
  WindowRule rule{.extent = {kMany, kMany, 0}, .left = EdgeRule::kClip, .right = EdgeRule::kClip};
  const PlacedWindow window = PlaceWindow(rule, kEpisode, 1);
  const PlaceRange clipped = PresentPlaces(rule, kEpisode, window, 0, {-kMany, 1, 2 * kMany});
  EXPECT_EQ(clipped.begin, kMany - 1);
  EXPECT_EQ(clipped.end, kMany + 2);
  rule.left = EdgeRule::kPad;
  EXPECT_EQ(PresentPlaces(rule, kEpisode, window, 0, {-kMany, 1, 2 * kMany}).begin, 0);
}

}  // namespace
}  // namespace geardb
