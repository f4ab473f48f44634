// Batch: the drawn items of one Next, as arrays and tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/tensor.h"

namespace geardb {

/// What was drawn. Its memory stays valid until Release or destruction, and does not change when
/// the table does: a batch is a copy. Movable; may outlive its sampler.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// Items; of draw groups rows.
  int64_t size() const;

  // One entry per item; of draw groups one per row, that is per member (or window within a group),
  // one group's behind each other. What is the item's own (handle, probability, weight) is then
  // that of the group, repeated: a Set with these handles needs a priority for each row, the last
  // of a group wins; with handles()[group_offsets()[g]] alone it needs one for each group.
  /// The length of a handle is that of lengths(), of a group how many members it has.
  std::span<const ItemHandle> handles() const;
  std::span<const TrajectoryId> trajectory_ids() const;
  /// The item's row (a window's anchor before any shift; 0-based and absolute; for a trajectory its
  /// first row).
  std::span<const int64_t> anchors() const;
  /// Steps of the item's length part that exist.
  std::span<const int64_t> lengths() const;
  /// Steps of the item's trajectory so far.
  std::span<const int64_t> trajectory_lengths() const;
  /// How its trajectory ended, go while it is open.
  std::span<const End> trajectory_ends() const;
  /// Of its trajectory, as of the draw: rows of batches handed over by then that came from it. Of a
  /// batch drawn ahead, hand-overs between its draw and its own are not counted.
  std::span<const uint64_t> times_sampled() const;
  std::span<const double> probabilities() const;  ///< q / total when it was drawn.
  std::span<const float> weights() const;         ///< Importance weights; 1 where none weigh.
  std::span<const uint32_t> sources() const;      ///< Which part of a mixed sampler, else 0.

  // Of draw groups; else empty.

  int64_t group_count() const;  ///< Groups drawn; one that came twice counts twice.
  /// [size()] Which of them a row is of, from 0 on.
  std::span<const int64_t> groups() const;
  /// [group_count() + 1] Rows group_offsets()[g] up to group_offsets()[g + 1] are group g's.
  std::span<const int64_t> group_offsets() const;
  /// [group_count()] The key that its members share.
  std::span<const int64_t> group_keys() const;

  /// The batch saw exactly what the log says of its tables before this.
  Lsn lsn() const;
  uint64_t draw_number() const;  ///< Of a mixed sampler: that of its first part.

  /// An output by name: a view, a mask of one, or one of "nstep.*". NotFound names those there are.
  Result<TensorView> Find(std::string_view name) const;
  /// As Find; an empty view (null bytes) when there is no such output.
  TensorView operator[](std::string_view name) const;
  /// Entries of each item in a view: [n].
  Result<std::span<const int64_t>> ViewLengths(std::string_view name) const;
  /// Packed: [n + 1] offsets of the items in a view.
  Result<std::span<const int64_t>> CuSeqlens(std::string_view name) const;
  /// Of a view of a ragged column or a blob, whose tensor is [total rows, ...]: entry i (of a
  /// ragged column as a view of another column has them, padding included; of a blob one for each
  /// item) has rows [offsets[i], offsets[i + 1]). Empty for other outputs.
  Result<std::span<const int64_t>> Offsets(std::string_view name) const;
  std::vector<std::string_view> OutputNames() const;

  /// Gives the buffers back to the sampler; the batch is empty then.
  void Release();

  struct Rep;  ///< Defined in engine/internal.

 private:
  friend class Sampler;
  explicit Batch(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace geardb
