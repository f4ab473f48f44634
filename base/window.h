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
  /// The window moves inward; what still does not fit is clipped. Where the other side is required
  /// nothing is: rows whose window does not fit are no anchors.
  kShift = 4,
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

/// Must the left (right) part of every window be there, whatever the rule says? Rows that are not
/// there any more, or not yet, can neither be replaced by others nor be moved away from.
GEARDB_HOST_DEVICE constexpr bool LeftRequired(const WindowRule& rule, const Episode& episode) {
  return rule.left == EdgeRule::kRequire || episode.head_missing;
}
GEARDB_HOST_DEVICE constexpr bool RightRequired(const WindowRule& rule, const Episode& episode) {
  return rule.right == EdgeRule::kRequire || episode.open;
}

/// The last row at which a window's length part and `after` lie inside the episode. Before `begin`
/// if there is none.
GEARDB_HOST_DEVICE constexpr int64_t LastWholeAnchor(const WindowRule& rule,
                                                     const Episode& episode) {
  const Extent& extent = rule.extent;
  return std::min(episode.steps_end - extent.length,
                  episode.rows_end - extent.length - extent.after);
}

/// Where row `a`'s window stands once each side that shifts has moved it inward, the left one last;
/// it may lie outside the episode. A side that is required does not shift.
GEARDB_HOST_DEVICE constexpr int64_t ShiftedAnchor(const WindowRule& rule, const Episode& episode,
                                                   int64_t a) {
  int64_t anchor = a;
  if (rule.right == EdgeRule::kShift && !RightRequired(rule, episode)) {
    anchor = std::min(anchor, LastWholeAnchor(rule, episode));
  }
  if (rule.left == EdgeRule::kShift && !LeftRequired(rule, episode)) {
    anchor = std::max(anchor, episode.begin + rule.extent.before);
  }
  return anchor;
}

/// What a priority table promises: the part of the window on each side that is required is there
/// where the window stands, `shifted` by ShiftedAnchor. Where one side is required and the other
/// one shifts, the window is whole: an episode shorter than the extent has no anchors.
GEARDB_HOST_DEVICE constexpr bool KeepsPromise(const WindowRule& rule, const Episode& episode,
                                               int64_t shifted) {
  if (LeftRequired(rule, episode) && shifted - rule.extent.before < episode.begin) return false;
  return !RightRequired(rule, episode) || shifted <= LastWholeAnchor(rule, episode);
}

/// Is row `a` an anchor of `rule` in `episode`?
GEARDB_HOST_DEVICE constexpr bool IsAnchor(const WindowRule& rule, const Episode& episode,
                                           int64_t a) {
  if (a < episode.begin || a >= episode.steps_end) return false;
  if (rule.stride_from_end) {
    if (episode.open || (episode.steps_end - 1 - a) % rule.stride != 0) return false;
  } else if (a % rule.stride != 0) {
    return false;
  }
  return KeepsPromise(rule, episode, ShiftedAnchor(rule, episode, a));
}

/// The first row whose window stands at `standing` or behind it, while the right side is required:
/// rows before it stay what they are when windows there get their right side, or lose it.
GEARDB_HOST_DEVICE constexpr int64_t FirstRowStandingAt(const WindowRule& rule,
                                                        const Episode& episode, int64_t standing) {
  const bool shifts = rule.left == EdgeRule::kShift && !LeftRequired(rule, episode);
  if (shifts && standing <= episode.begin + rule.extent.before) return episode.begin;
  return std::max(standing, episode.begin);
}

/// A window laid out in its episode.
struct PlacedWindow {
  int64_t anchor = 0;  ///< The item's row, moved inward where a side has kShift.
  int64_t steps = 0;   ///< Steps of the length part that exist: 1…length.
};

/// Lays the window of anchor `a` out. `a` satisfies IsAnchor. A window that is shifted as far as it
/// must, and still reaches over an edge, stays within the episode's steps and is clipped.
GEARDB_HOST_DEVICE constexpr PlacedWindow PlaceWindow(const WindowRule& rule,
                                                      const Episode& episode, int64_t a) {
  const int64_t shifted = ShiftedAnchor(rule, episode, a);
  const int64_t anchor = std::min(std::max(shifted, episode.begin), episode.steps_end - 1);
  return PlacedWindow{anchor, std::min(rule.extent.length, episode.steps_end - anchor)};
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

/// One past the last row that is shown at its own place by a view that reaches `over` rows beyond
/// the length part (max(0, largest relative row + 1 - length)). Where fewer steps exist than
/// `length`, what follows the last step moves up: a view of [1, length] over 3 steps shows 3 next
/// rows.
GEARDB_HOST_DEVICE constexpr int64_t ShownEnd(const Episode& episode, const PlacedWindow& window,
                                              int64_t over) {
  return std::min(episode.rows_end, window.anchor + window.steps + over);
}

/// The entry at `relative` rows from the anchor, in a view that reaches `over` rows beyond the
/// length part.
GEARDB_HOST_DEVICE constexpr Entry ResolveEntry(const WindowRule& rule, const Episode& episode,
                                                const PlacedWindow& window, int64_t over,
                                                int64_t relative) {
  const int64_t row = window.anchor + relative;
  const int64_t end = ShownEnd(episode, window, over);
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

/// Rows of a view relative to the anchor: begin + k * stride at the places k of [0, count).
struct ViewRange {
  int64_t begin = 0;
  int64_t stride = 1;  ///< Not 0.
  int64_t count = 0;
};

/// Places [begin, end) of a view.
struct PlaceRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// How many places at the beginning of a view whose rows grow by `stride` lie before row `limit`.
GEARDB_HOST_DEVICE constexpr int64_t PlacesBefore(const ViewRange& rows, int64_t limit) {
  if (limit <= rows.begin) return 0;
  return std::min(rows.count, (limit - rows.begin - 1) / rows.stride + 1);
}

/// The places whose entry is not kAbsent: where a side's rule shows nothing beyond the edge, those
/// at that end of the view are absent. In constant time.
GEARDB_HOST_DEVICE constexpr PlaceRange PresentPlaces(const WindowRule& rule,
                                                      const Episode& episode,
                                                      const PlacedWindow& window, int64_t over,
                                                      const ViewRange& range) {
  const bool left_shown = rule.left == EdgeRule::kPad || rule.left == EdgeRule::kRepeat;
  const bool right_shown = rule.right == EdgeRule::kPad || rule.right == EdgeRule::kRepeat;
  const int64_t first = window.anchor + range.begin;
  const int64_t end = ShownEnd(episode, window, over);
  if (range.stride > 0) {
    const ViewRange rows{first, range.stride, range.count};
    return PlaceRange{left_shown ? 0 : PlacesBefore(rows, episode.begin),
                      right_shown ? range.count : PlacesBefore(rows, end)};
  }
  // Mirrored: the negated rows grow.
  const ViewRange rows{-first, -range.stride, range.count};
  return PlaceRange{right_shown ? 0 : PlacesBefore(rows, 1 - end),
                    left_shown ? range.count : PlacesBefore(rows, 1 - episode.begin)};
}

}  // namespace geardb
