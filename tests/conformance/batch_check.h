// BatchCheck: every byte of a batch against the model.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/sampler.h"
#include "tests/conformance/random_sampler.h"
#include "tests/conformance/store_twin.h"

namespace geardb::conformance {

/// Compares the batches of one sampler. The table must not change meanwhile.
class BatchCheck {
 public:
  BatchCheck(StoreTwin* twin, DrawnTable* drawn, RandomSampler sampler);

  /// Failures are GoogleTest failures. Counts the batch in the twin's times_sampled.
  void Check(const Batch& batch);
  /// Items that were drawn so far.
  const std::set<ModelItem>& seen() const { return seen_; }
  /// The last batch's items, as its handles.
  const std::vector<ModelItem>& items() const { return items_; }

 private:
  /// What the model shows of one item.
  struct Expected {
    int64_t length = 0;
    double probability = 0;
    std::vector<ShownView> views;
    ShownNStep n_step;
  };
  /// One output over all items of the batch: for each its elements' bytes, and its padding.
  struct Output {
    std::string name;
    DType dtype = DType::kF32;
    Shape inner;  ///< Of one entry.
    size_t entry_bytes = 0;
    Bytes pad;  ///< Of one entry.
    bool single = false;
    std::optional<int64_t> entries;
    std::vector<Bytes> items;
  };

  const Expected& ExpectedOf(const ModelItem& item);
  void CheckItems(const Batch& batch);
  void CheckOrder();
  void CheckWeights(const Batch& batch);
  void CheckView(const Batch& batch, size_t view);
  void CheckTrajectoryColumn(const Batch& batch, size_t view);
  void CheckNStep(const Batch& batch);
  /// The rows are some that may be drawn; takes them up for the views.
  void CheckRowDraw(const Batch& batch);
  void CheckOutput(const Batch& batch, const Output& output);
  std::string NameOf(size_t view) const;

  StoreTwin* twin_;
  DrawnTable* drawn_;
  RandomSampler sampler_;
  std::map<ModelItem, Expected> expected_;
  std::set<ModelItem> seen_;
  std::vector<ModelItem> items_;
  std::vector<std::vector<int64_t>> drawn_rows_;  ///< Of each of them.
  std::optional<uint64_t> last_draw_;
  /// Times sampled as the next batches see them: a prefetched one does not see those between.
  std::deque<std::map<TrajectoryId, uint64_t>> times_sampled_;
};

}  // namespace geardb::conformance
