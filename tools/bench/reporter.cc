#include "tools/bench/reporter.h"

#include <cmath>
#include <sstream>

#include "tools/bench/peers.h"

namespace geardb::bench {
namespace {

std::string Rounded(double value) {
  char text[32];
  const int digits = std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

/// "12.3 G" and so on, in powers of 1000.
std::string WithPrefix(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  int prefix = 0;
  while (std::abs(value) >= 1000 && prefix < 4) {
    value /= 1000;
    ++prefix;
  }
  return Rounded(value) + " " + kPrefixes[prefix];
}

std::string Percent(double ratio) { return Rounded(ratio * 100) + " %"; }

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

const char* UnitName(Unit unit) {
  switch (unit) {
    case Unit::kBytesPerSecond:
      return "B/s";
    case Unit::kPerSecond:
      return "1/s";
    case Unit::kMicroseconds:
      return "us";
    case Unit::kNanoseconds:
      return "ns";
    case Unit::kBytes:
      return "B";
    case Unit::kTimes:
      return "x";
  }
  return "";
}

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", std::isfinite(value) ? value : 0.0);
  return text;
}

std::string Json(const Spread& spread) {
  return "{\"median\": " + Number(spread.median) + ", \"quartiles\": [" + Number(spread.low) +
         ", " + Number(spread.high) + "]}";
}

std::string Json(const RowResult& result) {
  const Row& row = *result.row;
  std::ostringstream out;
  out << "    {\"row\": " << Quoted(row.name) << ", \"size\": " << row.size
      << ", \"size_of\": " << Quoted(row.size_of) << ", \"what\": " << Quoted(row.what);
  if (!result.error.empty()) {
    out << ", \"error\": " << Quoted(result.error) << "}";
    return out.str();
  }
  out << ",\n     \"unit\": \"" << UnitName(row.unit) << "\", \"value\": " << Json(result.value);
  if (!row.ceiling.empty()) {
    out << ",\n     \"ceiling_is\": " << Quoted(row.ceiling)
        << ", \"ceiling\": " << Json(result.ceiling) << ", \"ratio\": " << Json(result.ratio);
  }
  out << ",\n     \"target\": " << Quoted(TargetText(row));
  if (const auto reached = Reached(result))
    out << ", \"reached\": " << (*reached ? "true" : "false");
  if (result.peer) out << ", " << Quoted(row.peer.name) << ": " << Number(*result.peer);
  out << ", \"repetitions\": " << result.repetitions << ", \"load\": " << Number(result.load)
      << ", \"void\": " << (result.is_void ? "true" : "false");
  for (const auto& [name, value] : result.more)
    out << ", " << Quoted(name) << ": " << Number(value);
  if (row.told) out << ", \"told\": true";
  if (result.growth) out << ", \"growth\": " << Number(*result.growth);
  if (Flagged(result)) out << ", \"flag\": " << Quoted(kGrowthFlag);
  if (!result.note.empty()) out << ", \"note\": " << Quoted(result.note);
  out << "}";
  return out.str();
}

}  // namespace

std::optional<bool> Reached(const RowResult& result) {
  if (!result.error.empty()) return std::nullopt;
  const Target& target = result.row->target;
  switch (target.kind) {
    case Target::Kind::kReported:
      return std::nullopt;
    case Target::Kind::kRatioAtLeast:
      return result.ratio.median >= target.bound;
    case Target::Kind::kRatioAtMost:
      return result.ratio.median <= target.bound;
    case Target::Kind::kValueAtMost:
      return result.value.median <= target.bound;
    case Target::Kind::kTimesPeerAtLeast:
      if (result.ratio.median >= target.ratio) return true;
      if (!result.peer) return std::nullopt;
      return result.value.median >= target.bound * *result.peer;
  }
  return std::nullopt;
}

std::optional<double> GrowthOf(const std::vector<RowResult>& before, const RowResult& result) {
  if (!result.row->logarithmic || !result.error.empty()) return std::nullopt;
  for (const RowResult& first : before) {
    if (first.row->name != result.row->name || !first.error.empty()) continue;
    if (first.value.median > 0) return result.value.median / first.value.median;
    break;
  }
  return std::nullopt;
}

bool Flagged(const RowResult& result) { return result.growth && *result.growth > kGrowthMax; }

std::string FigureText(Unit unit, double value) {
  if (unit == Unit::kBytesPerSecond) return WithPrefix(value) + UnitName(unit);
  if (unit == Unit::kPerSecond) return WithPrefix(value) + "/s";
  return Rounded(value) + " " + UnitName(unit);
}

std::string TargetText(const Row& row) {
  switch (row.target.kind) {
    case Target::Kind::kReported:
      return "reported";
    case Target::Kind::kRatioAtLeast:
      return ">= " + Percent(row.target.bound);
    case Target::Kind::kRatioAtMost:
      return "<= " + Rounded(row.target.bound) + " x";
    case Target::Kind::kValueAtMost:
      return "<= " + FigureText(row.unit, row.target.bound);
    case Target::Kind::kTimesPeerAtLeast:
      return ">= " + Rounded(row.target.bound) + " x " + row.peer.name + " or " +
             Percent(row.target.ratio);
  }
  return "";
}

bool RowReporter::ReportContext(const Context&) {
  std::printf("%-34s %10s  %12s %12s  %24s  %10s  %12s  %s\n", "row", "size", "GearDB", "ceiling",
              "value / ceiling", "target", "peer", "load");
  return true;
}

void RowReporter::ReportRuns(const std::vector<Run>& runs) {
  // Google Benchmark's own aggregates come in a call of their own.
  if (runs.empty() || runs.front().run_type != Run::RT_Iteration) return;
  RowResult result;
  result.row = rows_->at(runs.front().run_name.function_name);
  std::vector<double> values;
  std::vector<double> ceilings;
  std::vector<double> ratios;
  std::map<std::string, std::vector<double>> more;
  for (const Run& run : runs) {
    if (run.error_occurred) {
      result.error = run.error_message;
      break;
    }
    ++result.repetitions;
    for (const auto& [name, counter] : run.counters) {
      if (name == "value") {
        values.push_back(counter.value);
      } else if (name == "ceiling") {
        ceilings.push_back(counter.value);
      } else if (name == "ratio") {
        ratios.push_back(counter.value);
      } else if (name == "busy") {
        result.is_void |= counter.value != 0;
      } else if (name == "load") {
        result.load = std::max(result.load, counter.value);
      } else {
        more[name].push_back(counter.value);
      }
    }
    result.note = run.report_label;
  }
  result.value = SpreadOf(std::move(values));
  result.ceiling = SpreadOf(std::move(ceilings));
  result.ratio = SpreadOf(std::move(ratios));
  for (auto& [name, figures] : more) result.more[name] = Median(std::move(figures));
  if (result.error.empty()) result.peer = MeasurePeer(bench_->settings, *result.row, &result.note);
  result.growth = GrowthOf(results_, result);
  Print(result);
  results_.push_back(std::move(result));
}

void RowReporter::Print(const RowResult& result) {
  const Row& row = *result.row;
  if (family_ != row.name) {
    family_ = row.name;
    std::printf("\n%s: %s\n", row.name.c_str(), row.what.c_str());
    if (!row.ceiling.empty()) std::printf("  ceiling: %s\n", row.ceiling.c_str());
  }
  if (!result.error.empty()) {
    std::printf("%-34s %10lld  not measured: %s\n", row.name.c_str(),
                static_cast<long long>(row.size), result.error.c_str());
    std::fflush(stdout);
    return;
  }
  std::string ratio;
  if (!row.ceiling.empty()) {
    ratio = Percent(result.ratio.median) + " [" + Percent(result.ratio.low) + ", " +
            Percent(result.ratio.high) + "]";
  }
  const auto reached = Reached(result);
  std::printf("%-34s %10lld  %12s %12s  %24s  %10s  %12s  %.1f%s%s%s%s\n", row.name.c_str(),
              static_cast<long long>(row.size), FigureText(row.unit, result.value.median).c_str(),
              row.ceiling.empty() ? "" : FigureText(row.unit, result.ceiling.median).c_str(),
              ratio.c_str(), TargetText(row).c_str(),
              result.peer ? FigureText(row.unit, *result.peer).c_str() : "", result.load,
              !reached ? "" : (*reached ? "  reached" : "  MISSED"), Flagged(result) ? "  " : "",
              Flagged(result) ? kGrowthFlag : "",
              result.is_void ? "  VOID: beside a compiler" : "");
  for (const auto& [name, value] : result.more) {
    std::printf("%48s %s\n", name.c_str(), WithPrefix(value).c_str());
  }
  if (!result.note.empty()) std::printf("    note: %s\n", result.note.c_str());
  std::fflush(stdout);
}

std::string RowReporter::Json(const Machine& machine) const {
  std::ostringstream out;
  out << "{\n  \"machine\": {\"processor\": " << Quoted(machine.processor)
      << ", \"processors\": " << machine.processors
      << ", \"memory_bytes\": " << machine.memory_bytes
      << ",\n    \"kernel\": " << Quoted(machine.kernel)
      << ", \"file_system\": " << Quoted(machine.file_system)
      << ", \"shared_huge_pages\": " << Quoted(machine.shared_huge_pages)
      << ",\n    \"compiler\": " << Quoted(machine.compiler)
      << "},\n  \"tiny\": " << (bench_->settings.tiny ? "true" : "false") << ",\n  \"rows\": [\n";
  for (size_t i = 0; i < results_.size(); ++i) {
    out << bench::Json(results_[i]) << (i + 1 < results_.size() ? ",\n" : "\n");
  }
  out << "  ]\n}\n";
  return std::move(out).str();
}

}  // namespace geardb::bench
