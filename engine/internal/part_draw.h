// PartDraw: the rows of one part of a batch: which they are, by the selector and the options of the
// sampler, and what they reserve.
//
// Everything here happens under the mutex of the part's table. What is not enough for a batch
// leaves nothing behind.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/internal/batch_items.h"
#include "engine/internal/core.h"

namespace geardb::engine {

/// A priority table that a sampler draws from.
struct SamplerSource {
  std::shared_ptr<PriorityTable::Impl> priority_table;
  PriorityTableSpec items;  ///< As its spec, but for windows within.
  ViewPlan plan;
  const TableLayout* layout = nullptr;  ///< That the plan is for.
  SamplerPart share = {};

  TableState* state() const { return priority_table->table->state.get(); }
  PriorityState& priority() const { return priority_table->state(); }
  /// "priority table 'per' of table 'replay'".
  std::string Name() const;
};

/// An item that did not fit the token budget of the batch that it was drawn for.
struct CarriedItem {
  DrawnLeaf leaf;
  uint32_t generation = 0;
  double probability = 0;
  DrawReservation reservation = {};
};

/// What a part has drawn, for the record of the hand-over of an audited sampler.
struct AuditedDraw {
  std::vector<fb::AuditedRow> rows = {};
  uint64_t seed = 0;
  uint64_t first_draw = 0;
};

/// The rows of one part of one batch. Kept from batch to batch for its buffers (Clear).
struct PartRows {
  uint64_t draw_number = 0;
  std::vector<DrawnLeaf> leaves;  ///< Of each row of the batch.
  std::vector<double> probabilities;
  DrawReservation reservation;
  std::vector<fb::Sampled> sampled = {};
  std::optional<CarriedItem> carried = {};  ///< For the next batch.
  AuditedDraw audit = {};                   ///< Where the sampler is audited.
  // As of before the draw.
  uint64_t drawable = 0;
  double smallest_probability = 0;
  // Of the selector's draw, and not for others.
  std::vector<uint64_t> drawn_leaves = {};
  std::vector<double> drawn_probabilities = {};

  /// As new, but for the memory.
  void Clear();
};

/// How the rows of a part are drawn.
struct PartRequest {
  const SamplerSource* source = nullptr;
  const BatchPart* part = nullptr;
  uint32_t number = 0;  ///< Of the part.
  const SamplerOptions* options = nullptr;
  DrawKey key;                           ///< Its row is 0.
  uint64_t rows = 0;                     ///< Items; with tokens_max at most.
  bool explain = false;                  ///< See RowsWanted.
  const CarriedItem* carried = nullptr;  ///< From the batch before; it is there.
};

/// Draws, and reserves but for observers. DeadlineExceeded with a text that says what there is,
/// where that is not enough; InvalidArgument where it never will be (by the limiter); OutOfRange at
/// the end of an epoch; FailedPrecondition, naming the item, for one that is larger than the token
/// budget.
Status DrawPart(const PartRequest& request, PartRows* rows);

/// Rows that a part can be drawn now, at most `most`.
uint64_t AvailableRows(const SamplerSource& source, bool observer, uint64_t most);

/// What an epoch says of a part that has too few rows: OutOfRange where it is exhausted, or none
/// has begun; DeadlineExceeded where the rest of the pass is with other samplers; else OK.
/// engine/internal/sampler_epoch.cc.
Status EpochStatus(const SamplerSource& source);

/// What there is not enough for.
struct RowsWanted {
  uint64_t rows = 0;
  bool observer = false;
  /// Somebody is told: what hides items is looked for, by a pass over them.
  bool explain = false;
};
Status NotEnough(const SamplerSource& source, const RowsWanted& wanted);

}  // namespace geardb::engine
