// The ONE edge rule: which rows are anchors, and which rows a window shows. Host and device code.
//
// All rows are absolute. An episode is what windows may not leave: a whole trajectory, or in a
// stream the run between two ends (the whole stream when windows cross ends). engine/README.md,
// "Windows", says the same in words with examples.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/philox.h"  // GEARDB_HOST_DEVICE

namespace geardb {

/// What happens where a window reaches over an edge of its episode. In stored schemas: frozen.
enum class EdgeRule : uint8_t {
  kRequire = 0,  ///< Such rows are no anchors.
  kClip = 1,     ///< The window is shorter; lengths say by how much.
  kPad = 2,      ///< A value (zero by default) where there is no row; the valid mask is 0 there.
  kRepeat = 3,   ///< The edge row again.
  kShift = 4,    ///< The window moves inward; what still does not fit is clipped.
};

/// Rows promised around an anchor a: [a - before, a + length + after).
struct Extent {
  int64_t before = 0;
  int64_t length = 1;
  int64_t after = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// The window rule of a priority table.
struct WindowRule {
  Extent extent = {};
  /// Anchors lie at rows k * stride, or, with `stride_from_end`, at (last step) - k * stride of an
  /// episode that has ended.
  int64_t stride = 1;
  bool stride_from_end = false;
  EdgeRule left = EdgeRule::kRepeat;
  EdgeRule right = EdgeRule::kClip;
  /// Streams: windows may contain ends. Final rows are then shown like others; never anchors.
  bool cross_ends = false;

  friend bool operator==(const WindowRule&, const WindowRule&) = default;
};

/// An episode as windows of one priority table see it.
struct Episode {
  int64_t begin = 0;          ///< Oldest row that may be shown.
  int64_t steps_end = 0;      ///< One past the last step (rows that may be anchors).
  int64_t rows_end = 0;       ///< One past the last row: steps_end, or one more with a final row.
  bool head_missing = false;  ///< Rows before `begin` were trimmed: the left side is required.
  bool open = false;          ///< Still growing: the right side is required.
};

/// Is row `a` an anchor of `rule` in `episode`?
GEARDB_HOST_DEVICE constexpr bool IsAnchor(const WindowRule& rule, const Episode& episode,
                                           int64_t a) {
  const Extent& extent = rule.extent;
  if (a < episode.begin || a >= episode.steps_end) return false;
  if (rule.stride_from_end) {
    if (episode.open || (episode.steps_end - 1 - a) % rule.stride != 0) return false;
  } else if (a % rule.stride != 0) {
    return false;
  }
  const bool left_required = rule.left == EdgeRule::kRequire || episode.head_missing;
  if (left_required && a - extent.before < episode.begin) return false;
  const bool right_required = rule.right == EdgeRule::kRequire || episode.open;
  if (right_required && (a + extent.length > episode.steps_end ||
                         a + extent.length + extent.after > episode.rows_end)) {
    return false;
  }
  return true;
}

/// A window laid out in its episode.
struct PlacedWindow {
  int64_t anchor = 0;  ///< The item's row, moved inward where a side has kShift.
  int64_t steps = 0;   ///< Steps of the length part that exist: 1…length.
};

/// Lays the window of anchor `a` out. `a` satisfies IsAnchor.
GEARDB_HOST_DEVICE constexpr PlacedWindow PlaceWindow(const WindowRule& rule,
                                                      const Episode& episode, int64_t a) {
  const Extent& extent = rule.extent;
  int64_t anchor = a;
  if (rule.right == EdgeRule::kShift) {
    const int64_t last = std::min(episode.steps_end - extent.length,
                                  episode.rows_end - extent.length - extent.after);
    anchor = std::max(std::min(anchor, last), episode.begin);
  }
  if (rule.left == EdgeRule::kShift && anchor - extent.before < episode.begin) {
    anchor = std::min(episode.begin + extent.before, episode.steps_end - 1);
  }
  return PlacedWindow{anchor, std::min(extent.length, episode.steps_end - anchor)};
}

/// What an entry of a view shows.
enum class EntryKind : uint8_t {
  kRow = 0,     ///< A row of the episode at its own place.
  kRepeat = 1,  ///< The edge row again.
  kPad = 2,     ///< The padding value.
  kAbsent = 3,  ///< Nothing: clipped away.
};

struct Entry {
  EntryKind kind = EntryKind::kAbsent;
  int64_t row = 0;  ///< Absolute row for kRow and kRepeat.
};

/// The entry at `relative` rows from the anchor, in a view that reaches `over` rows beyond the
/// length part (max(0, largest relative row + 1 - length)). Where fewer steps exist than `length`,
/// what follows the last step moves up: a view of [1, length] over 3 steps shows 3 next rows.
GEARDB_HOST_DEVICE constexpr Entry ResolveEntry(const WindowRule& rule, const Episode& episode,
                                                const PlacedWindow& window, int64_t over,
                                                int64_t relative) {
  const int64_t row = window.anchor + relative;
  const int64_t end = std::min(episode.rows_end, window.anchor + window.steps + over);
  if (row < episode.begin) {
    switch (rule.left) {
      case EdgeRule::kPad:
        return Entry{EntryKind::kPad, 0};
      case EdgeRule::kRepeat:
        return Entry{EntryKind::kRepeat, episode.begin};
      default:
        return Entry{EntryKind::kAbsent, 0};
    }
  }
  if (row >= end) {
    switch (rule.right) {
      case EdgeRule::kPad:
        return Entry{EntryKind::kPad, 0};
      case EdgeRule::kRepeat:
        return Entry{EntryKind::kRepeat, std::max(end - 1, episode.begin)};
      default:
        return Entry{EntryKind::kAbsent, 0};
    }
  }
  return Entry{EntryKind::kRow, row};
}

}  // namespace geardb
