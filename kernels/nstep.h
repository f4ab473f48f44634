// n-step returns over rows that were gathered to contiguous f32 arrays.
//
// Source of the formula: Sutton & Barto, "Reinforcement Learning", 2nd ed., section 7.1; which rows
// count is in engine/README.md, "n-step".
#pragma once

#include <cstdint>
#include <span>

#include "base/philox.h"  // GEARDB_HOST_DEVICE

namespace geardb {

/// Where the rows of one output entry lie in the flat arrays of an NStepBatch.
struct NStepEntry {
  uint64_t first = 0;  ///< Index of row i.
  uint64_t rows = 0;   ///< min(n, rows from i up to the last step that may count); 0: padding.
};

/// What one entry yields.
struct NStepResult {
  float value = 0;     ///< Sum of the discounted rewards.
  float discount = 0;  ///< Product of the discounts of the rows that counted.
  float mask = 0;      ///< 0 when the last row that counted is terminal, else 1.
  uint64_t steps = 0;  ///< m, the rows that counted: the bootstrap row is i + m, or the last row.
};

/// One entry, in f32, in step order: rows are counted up to the first terminal one (inclusive).
/// `discounts` null: `gamma` in every row. No rows: all zero.
GEARDB_HOST_DEVICE inline NStepResult NStepReturn(const float* rewards, const float* discounts,
                                                  float gamma, const uint8_t* terminals,
                                                  uint64_t rows) {
  if (rows == 0) return NStepResult{};
  NStepResult result{0.0f, 1.0f, 1.0f, 0};
  while (result.steps < rows) {
    const uint64_t row = result.steps++;
    result.value += result.discount * rewards[row];
    result.discount *= discounts == nullptr ? gamma : discounts[row];
    if (terminals[row] != 0) {
      result.mask = 0.0f;
      break;
    }
  }
  return result;
}

/// A batch of entries. Entries may share rows: with every row of a window as an entry, the window's
/// rows are gathered once. Owns nothing.
struct NStepBatch {
  std::span<const NStepEntry> entries;
  // Flat rows, of one length.
  std::span<const float> rewards;
  std::span<const float> discounts;    ///< Empty: `gamma`.
  std::span<const uint8_t> terminals;  ///< Non-zero: the row terminated, or lost a life.
  float gamma = 1.0f;
  // Outputs, one per entry.
  std::span<float> returns;
  std::span<float> products;  ///< Of the discounts.
  std::span<float> masks;
  std::span<uint64_t> steps;
};

/// Computes all entries of `batch` on the calling thread.
inline void NStepCpu(const NStepBatch& batch) {
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    const NStepEntry& entry = batch.entries[i];
    const float* discounts =
        batch.discounts.empty() ? nullptr : batch.discounts.data() + entry.first;
    const NStepResult result =
        NStepReturn(batch.rewards.data() + entry.first, discounts, batch.gamma,
                    batch.terminals.data() + entry.first, entry.rows);
    batch.returns[i] = result.value;
    batch.products[i] = result.discount;
    batch.masks[i] = result.mask;
    batch.steps[i] = result.steps;
  }
}

}  // namespace geardb
