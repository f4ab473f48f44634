// RowReporter: from Google Benchmark's runs to the table of figures and a file of results.
//
// Invariants: a row is printed once, when its last repetition is there; the file names neither the
// machine nor a path.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/machine.h"
#include "tools/bench/row.h"
#include "tools/bench/spread.h"

namespace geardb::bench {

/// What the repetitions of a row came to.
struct RowResult {
  const Row* row = nullptr;
  int repetitions = 0;
  Spread value;
  Spread ceiling;
  Spread ratio;                        ///< value / ceiling of each repetition.
  std::map<std::string, double> more;  ///< Medians.
  std::optional<double> peer;          ///< In the row's unit.
  /// Times the value at the smallest size; of logarithmic rows at larger ones.
  std::optional<double> growth;
  double load = 0;
  bool is_void = false;  ///< A compiler was running.
  std::string note;
  std::string error;
};

/// Whether a result reaches its row's target; nothing where the row has none, or it failed.
std::optional<bool> Reached(const RowResult& result);
/// How many times the first of `before` with the same row's name a result of a logarithmic row came
/// to; nothing where there is none.
std::optional<double> GrowthOf(const std::vector<RowResult>& before, const RowResult& result);
/// Grows as no logarithm does.
bool Flagged(const RowResult& result);
/// "ratio >= 95 %", "<= 20 us"; "reported" where the row has none.
std::string TargetText(const Row& row);
/// A figure with its unit: "12.3 GB/s".
std::string FigureText(Unit unit, double value);

/// Prints rows to stdout as they are done, and keeps them for the file.
class RowReporter final : public benchmark::BenchmarkReporter {
 public:
  RowReporter(Bench* bench, const std::map<std::string, const Row*>* rows)
      : bench_(bench), rows_(rows) {}

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

  const std::vector<RowResult>& results() const { return results_; }
  /// The results as JSON.
  std::string Json(const Machine& machine) const;

 private:
  void Print(const RowResult& result);

  Bench* const bench_;
  const std::map<std::string, const Row*>* const rows_;
  std::vector<RowResult> results_;
  std::string family_;
};

}  // namespace geardb::bench
