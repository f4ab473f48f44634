// RowDraws: the rows of views that are drawn for each item (RowDraw): which they are, and what a
// batch says of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "engine/internal/batch_rep.h"
#include "engine/internal/episode.h"
#include "engine/sampler.h"

namespace geardb::engine {

/// Outputs of a RowDraw.
inline constexpr size_t kRowDrawOutputs = 2;
inline constexpr const char* kRowDrawSuffixes[kRowDrawOutputs] = {".row", ".drawn"};

/// Of all drawn rows of an item.
inline constexpr int64_t kDrawnRowsMax = 65'536;

/// A RowDraw, checked.
struct CompiledRowDraw {
  std::string name;
  RowDrawKind kind = RowDrawKind::kFuture;
  /// Drawn where 32 random bits are below it: 0…2^32.
  uint64_t threshold = 0;
  int64_t nearest = 1;
  double gamma = 0;
  int64_t count = 1;
  int64_t first = 0;  ///< Place of its rows among all drawn rows of an item.
};

/// InvalidArgument, naming the draw and what is wrong with it; `of` says whose it is.
Result<std::vector<CompiledRowDraw>> CompileRowDraws(std::span<const RowDraw> draws,
                                                     std::string_view of);

/// Which random numbers an item takes: its place in the order of draws. It is the item's own,
/// whatever batch shows it.
struct DrawKey {
  uint64_t seed = 0;
  uint64_t draw_number = 0;
  uint32_t row = 0;
};

struct DrawnRow {
  int64_t row = 0;
  bool drawn = false;

  friend bool operator==(const DrawnRow&, const DrawnRow&) = default;
};

/// The row that `draw` takes of `episode` around row `anchor`.
DrawnRow TakeRow(const CompiledRowDraw& draw, const Episode& episode, int64_t anchor,
                 const PhiloxBlock& random);

class RowDraws {
 public:
  /// `stack` is the largest of the views that show drawn rows.
  RowDraws(const std::vector<CompiledRowDraw>* draws, int64_t stack);

  bool empty() const { return draws_->empty(); }
  const std::vector<CompiledRowDraw>& draws() const { return *draws_; }
  /// What an item takes here.
  uint64_t item_bytes() const {
    return empty() ? 0 : sizeof(Episode) + static_cast<uint64_t>(rows_each_) * sizeof(DrawnRow);
  }

  /// Begins a batch.
  void Clear();
  /// The next item: a window of `rule` that stands at `anchor`, or with no rule a trajectory.
  void Add(const WindowRule* rule, RowCursor* cursor, int64_t anchor, const DrawKey& key);

  /// Row k of a draw for an item.
  const DrawnRow& row(size_t draw, size_t item, int64_t k) const {
    return rows_[item * static_cast<size_t>(rows_each_) +
                 static_cast<size_t>((*draws_)[draw].first + k)];
  }
  /// That an item's rows are of.
  const Episode& episode(size_t item) const { return episodes_[item]; }

  /// Fills a draw's outputs.
  Status Write(size_t draw, BatchLayout layout, const BatchBudget& budget,
               std::span<BatchOutput, kRowDrawOutputs> outputs) const;

 private:
  const std::vector<CompiledRowDraw>* draws_;
  int64_t rows_each_ = 0;
  Reach reach_;  // Of what an item's draws, and the stacks of its views, see of its episode.
  std::vector<Episode> episodes_;
  std::vector<DrawnRow> rows_;
};

}  // namespace geardb::engine
