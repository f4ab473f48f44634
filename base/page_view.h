// The layout of a page, written once: where the bytes of a row of a column are, in a frame and in a
// piece of the log. Plain structs, for host and device code.
//
// A page holds S consecutive steps (S = steps_per_page, a power of two) of one column group of one
// trajectory, column by column. In a frame every column has a region of S rows; regions start at
// multiples of 16 bytes (128 when a row is at least 1 KiB), and a frame has a multiple of 128. A
// reader may load 16 bytes at any row: behind a frame is the next one, and behind an arena's last
// kArenaSpareBytes that belong to none.
//
// In a piece (rows [k, k + n) of a page as one append wrote them) the columns follow one another
// without gaps: n rows of column 0, n rows of column 1, ...
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"  // GEARDB_HOST_DEVICE
#include "base/types.h"

namespace geardb {

inline constexpr uint64_t kFrameAlignment = 128;
/// Readable bytes behind an arena's last frame.
inline constexpr uint64_t kArenaSpareBytes = 16;
inline constexpr uint32_t kStepsPerPageMax = 256;
/// Frames are handed out from slabs of this size, each of one table.
inline constexpr uint64_t kSlabBytes = uint64_t{2} << 20;

/// Where one column's region lies in a frame.
struct ColumnRegion {
  uint64_t offset = 0;     ///< Bytes from the frame's start.
  uint64_t row_bytes = 0;  ///< Bytes of one row.
};

/// The layout of the pages of one column group of a table. Immutable once made.
class PageLayout {
 public:
  PageLayout() = default;
  /// `row_bytes[c]` is the size of one row of column c; `steps_per_page` a power of two in
  /// 1…kStepsPerPageMax.
  PageLayout(std::span<const uint64_t> row_bytes, uint32_t steps_per_page)
      : steps_per_page_(steps_per_page),
        steps_shift_(static_cast<uint32_t>(std::countr_zero(steps_per_page))) {
    uint64_t end = 0;
    for (const uint64_t bytes : row_bytes) {
      const uint64_t start = AlignUp(end, bytes >= 1024 ? 128 : 16);
      regions_.push_back(ColumnRegion{start, bytes});
      end = start + bytes * steps_per_page;
      bytes_per_step_ += bytes;
    }
    frame_bytes_ = AlignUp(end, kFrameAlignment);
  }

  uint32_t steps_per_page() const { return steps_per_page_; }
  /// log2(steps_per_page).
  uint32_t steps_shift() const { return steps_shift_; }
  size_t column_count() const { return regions_.size(); }
  const ColumnRegion& region(size_t column) const { return regions_[column]; }
  std::span<const ColumnRegion> regions() const { return regions_; }
  /// Bytes of a frame, a multiple of 128.
  uint64_t frame_bytes() const { return frame_bytes_; }
  /// Bytes of one step in a piece: the sum of the row sizes.
  uint64_t bytes_per_step() const { return bytes_per_step_; }

  /// Offset in a frame of row `offset_in_page` of `column`.
  uint64_t FrameOffset(size_t column, uint32_t offset_in_page) const {
    return regions_[column].offset + regions_[column].row_bytes * offset_in_page;
  }

 private:
  std::vector<ColumnRegion> regions_;
  uint64_t frame_bytes_ = 0;
  uint64_t bytes_per_step_ = 0;
  uint32_t steps_per_page_ = 1;
  uint32_t steps_shift_ = 0;
};

/// Reads the column-by-column bytes of a piece of `steps` rows.
class PieceColumns {
 public:
  PieceColumns(const PageLayout& layout, uint64_t steps) : layout_(&layout), steps_(steps) {}

  /// Bytes of the whole piece.
  uint64_t bytes() const { return layout_->bytes_per_step() * steps_; }
  /// Calls `visit(column, offset_in_piece, byte_count)` for every column in order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    uint64_t offset = 0;
    for (size_t column = 0; column < layout_->column_count(); ++column) {
      const uint64_t bytes = layout_->region(column).row_bytes * steps_;
      visit(column, offset, bytes);
      offset += bytes;
    }
  }

 private:
  const PageLayout* layout_;
  uint64_t steps_;
};

}  // namespace geardb
