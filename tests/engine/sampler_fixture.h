// Samplers under test, and batches of items that a test chooses.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb::testing {

/// Between the seeds of a mixed sampler's parts.
inline constexpr uint64_t kPartSeeds = 0x9E37'79B9'7F4A'7C15;

/// A table with one priority table, of whose items a test makes one drawable.
class SamplerFixture : public StoreTest {
 protected:
  void CreateWith(const PriorityTableSpec& priority_spec, bool final_row = false) {
    TableSpec spec = StepSpec(final_row);
    spec.priority_tables = {priority_spec};
    Create(spec);
  }
  PriorityTableSpec Window(Extent extent, EdgeRule left, EdgeRule right) {
    PriorityTableSpec spec = WindowSpec("per", extent);
    spec.window.left = left;
    spec.window.right = right;
    return spec;
  }
  std::unique_ptr<Sampler> Sample(SamplerOptions options) {
    auto sampler = priority("per")->NewSampler(options);
    EXPECT_OK(sampler);
    return sampler.ok() ? std::move(*sampler) : nullptr;
  }
  /// Only these items can be drawn, each as likely.
  void DrawOnly(const std::vector<RowId>& rows) {
    const float zero[] = {0};
    ASSERT_OK(priority("per")->SetAll(zero));
    const std::vector<float> ones(rows.size(), 1.0f);
    const auto outcome = priority("per")->Set(rows, ones);
    ASSERT_OK(outcome);
    ASSERT_EQ(outcome->applied, rows.size());
  }
  /// The batch of one item.
  Result<Batch> DrawOne(const RowId& row, SamplerOptions options) {
    DrawOnly({row});
    options.batch = 1;
    auto sampler = Sample(options);
    return sampler->Next();
  }
  template <typename T>
  static std::vector<T> Values(const Batch& batch, std::string_view name) {
    const auto view = batch.Find(name);
    EXPECT_OK(view);
    if (!view.ok()) return {};
    const auto values = view->values<T>();
    return {values.begin(), values.end()};
  }
  using Ints = std::vector<int32_t>;
  using Bools = std::vector<bool>;
};

}  // namespace geardb::testing
