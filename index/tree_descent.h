// DescendBatch: many descents through a weight tree at once.
#pragma once

#include <cstdint>
#include <span>

#include "base/tree_view.h"

namespace geardb::index {

/// Leaf, weight and remainder for each of `points`, each in [0, view.total()). The same as
/// view.Descend one by one, but level by level with prefetch, so that misses overlap.
void DescendBatch(const TreeView& view, std::span<const uint64_t> points, std::span<TreeHit> hits);

namespace internal {
/// The same without the wide instructions that not every machine has. For tests.
void DescendBatchPlain(const TreeView& view, std::span<const uint64_t> points,
                       std::span<TreeHit> hits);
}  // namespace internal

}  // namespace geardb::index
