#include "engine/internal/row_draw.h"

#include <algorithm>
#include <cmath>

#include "base/break.h"
#include "base/fixed_math.h"

namespace geardb::engine {
namespace {

constexpr int64_t kNearestMax = int64_t{1} << 24;
constexpr int64_t kNoLimit = int64_t{1} << 62;

Status CheckDraw(const RowDraw& draw, const std::string& where) {
  if (draw.kind > RowDrawKind::kAny) {
    return Status::InvalidArgument(where, " has kind ", static_cast<int>(draw.kind),
                                   "; expected 0 (future), 1 (geometric), 2 (last) or 3 (any)");
  }
  if (!(draw.probability >= 0 && draw.probability <= 1)) {
    return Status::InvalidArgument(where, " has probability ", draw.probability,
                                   "; expected 0 to 1");
  }
  if (draw.nearest < 0 || draw.nearest > kNearestMax) {
    return Status::InvalidArgument(where, " has nearest ", draw.nearest, "; expected 0 to ",
                                   kNearestMax);
  }
  if (!(draw.gamma >= 0 && draw.gamma < 1)) {
    return Status::InvalidArgument(where, " has gamma ", draw.gamma,
                                   "; expected at least 0 and less than 1");
  }
  if (draw.count < 1 || draw.count > kDrawnRowsMax) {
    return Status::InvalidArgument(where, " has count ", draw.count, "; expected 1 to ",
                                   kDrawnRowsMax);
  }
  return Status::Ok();
}

/// d of [0, rows) with a probability in proportion to γ^d, by the inverse of the distribution
/// function: the least d for which 1 - γ^(d + 1) > u · (1 - γ^rows).
int64_t GeometricDistance(double gamma, int64_t rows, uint64_t random) {
  // Log2 takes normal numbers; where γ is smaller, or 0, nothing but the nearest row ever comes.
  if (gamma < 0x1p-64 || rows == 1) return 0;
  const double log_gamma = Log2(gamma);
  const double u = static_cast<double>(random >> 11) * 0x1p-53;
  const double left = 1.0 - u * (1.0 - Exp2(static_cast<double>(rows) * log_gamma));
  // Of γ next to 1 a short episode's rows are all as likely.
  const double distance = Log2(std::max(left, 0x1p-64)) / log_gamma;
  return std::clamp(static_cast<int64_t>(distance), int64_t{0}, rows - 1);
}

}  // namespace

Result<std::vector<CompiledRowDraw>> CompileRowDraws(std::span<const RowDraw> draws,
                                                     std::string_view of) {
  std::vector<CompiledRowDraw> compiled;
  int64_t first = 0;
  for (const RowDraw& draw : draws) {
    const std::string where = "row draw '" + draw.name + "' of " + std::string(of);
    if (draw.name.empty() || draw.name == "nstep") {
      return Status::InvalidArgument(
          where, draw.name.empty() ? " has no name" : " has a name that belongs to n_step");
    }
    GEARDB_RETURN_IF_ERROR(CheckDraw(draw, where));
    for (const CompiledRowDraw& other : compiled) {
      if (other.name != draw.name) continue;
      return Status::InvalidArgument(of, ": two row draws are named '", draw.name, "'");
    }
    compiled.push_back({.name = draw.name,
                        .kind = draw.kind,
                        .threshold = static_cast<uint64_t>(std::round(draw.probability * 0x1p32)),
                        .nearest = draw.nearest,
                        .gamma = draw.gamma,
                        .count = draw.count,
                        .first = first});
    first += draw.count;
    if (first <= kDrawnRowsMax) continue;
    return Status::InvalidArgument(of, " draws ", first, " rows for each item, with '", draw.name,
                                   "'; expected at most ", kDrawnRowsMax, " together");
  }
  return compiled;
}

DrawnRow TakeRow(const CompiledRowDraw& draw, const Episode& episode, int64_t anchor,
                 const PhiloxBlock& random) {
  const DrawnRow own{anchor, false};
  if (random.v[2] >= draw.threshold) return own;
  const uint64_t bits = random.v[0] | (uint64_t{random.v[1]} << 32);
  if (draw.kind == RowDrawKind::kLast) return {episode.rows_end - 1, true};
  const bool any = draw.kind == RowDrawKind::kAny;
  const int64_t begin = any || kBreak.goal_from_past ? episode.begin : anchor + draw.nearest;
  const int64_t rows = episode.rows_end - begin;
  if (rows <= 0) return own;
  if (draw.kind == RowDrawKind::kGeometric) {
    return {begin + GeometricDistance(draw.gamma, rows, bits), true};
  }
  return {begin + static_cast<int64_t>(MulHi64(bits, static_cast<uint64_t>(rows))), true};
}

RowDraws::RowDraws(const std::vector<CompiledRowDraw>* draws, int64_t stack)
    : draws_(draws), reach_{stack, kNoLimit} {
  for (const CompiledRowDraw& draw : *draws) {
    rows_each_ += draw.count;
    if (draw.kind == RowDrawKind::kAny) reach_.left = kNoLimit;
  }
}

void RowDraws::Clear() {
  episodes_.clear();
  rows_.clear();
}

void RowDraws::Add(const WindowRule* rule, RowCursor* cursor, int64_t anchor, const DrawKey& key) {
  if (empty()) return;
  Episode episode;
  if (rule != nullptr) {
    // Windows may cross ends; what is drawn for them does not.
    WindowRule within = *rule;
    within.cross_ends = false;
    episode = FindEpisode(cursor, within, anchor, reach_);
  } else {
    episode = TrajectoryEpisode(cursor->state(), cursor->record());
  }
  episodes_.push_back(episode);
  for (const CompiledRowDraw& draw : *draws_) {
    for (int64_t k = 0; k < draw.count; ++k) {
      const auto stream = static_cast<uint32_t>(draw.first + k);
      rows_.push_back(TakeRow(
          draw, episode, anchor,
          PhiloxRandom128(key.seed, key.draw_number, key.row, PhiloxPurpose::kViewRow, stream)));
    }
  }
}

Status RowDraws::Write(size_t draw, BatchLayout layout, const BatchBudget& budget,
                       std::span<BatchOutput, kRowDrawOutputs> outputs) const {
  const int64_t count = (*draws_)[draw].count;
  const auto n = static_cast<int64_t>(episodes_.size());
  const auto entries = static_cast<uint64_t>(n * count);
  for (size_t o = 0; o < kRowDrawOutputs; ++o) {
    BatchOutput& output = outputs[o];
    output.dtype = o == 0 ? DType::kI64 : DType::kBool;
    output.shape =
        layout == BatchLayout::kPacked || count == 1 ? Shape({n * count}) : Shape({n, count});
    output.lengths.assign(static_cast<size_t>(n), count);
    output.cu_seqlens.clear();
    for (int64_t i = 0; layout == BatchLayout::kPacked && i <= n; ++i) {
      output.cu_seqlens.push_back(i * count);
    }
    GEARDB_RETURN_IF_ERROR(output.buffer.Resize(entries * DTypeBytes(output.dtype) + 8, budget));
  }
  auto* rows = reinterpret_cast<int64_t*>(outputs[0].buffer.get());
  std::byte* drawn = outputs[1].buffer.get();
  for (size_t i = 0; i < episodes_.size(); ++i) {
    for (int64_t k = 0; k < count; ++k) {
      const DrawnRow& taken = row(draw, i, k);
      *rows++ = taken.row;
      *drawn++ = std::byte{taken.drawn};
    }
  }
  return Status::Ok();
}

}  // namespace geardb::engine
