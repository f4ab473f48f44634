#include "engine/internal/audit.h"

#include "base/break.h"
#include "engine/internal/priority_state.h"

namespace geardb::engine {
namespace {

/// What an audit has besides its rows: its name, and what FlatBuffers puts around it.
constexpr uint64_t kAuditBytes = 256 + kNameLengthMax;
static_assert(sizeof(fb::AuditedRow) == 32);

}  // namespace

AuditedDraw AuditDraw(const AuditedPart& part) {
  AuditedDraw draw;
  const PriorityState& priority = part.source->priority();
  draw.rows.reserve(part.leaves.size());
  for (size_t i = 0; i < part.leaves.size(); ++i) {
    const DrawnLeaf& leaf = part.leaves[i];
    draw.rows.emplace_back(part.ids[i], part.anchors[i],
                           part.probabilities[kBreak.audit_first_row ? 0 : i],
                           priority.raw_priority(leaf.leaf), leaf.key.row);
  }
  draw.seed = priority.seed;
  if (!part.leaves.empty()) {
    draw.seed = part.leaves[0].key.seed;
    draw.first_draw = part.leaves[0].key.draw_number;
  }
  return draw;
}

flatbuffers::Offset<fb::Audit> EncodeAudit(flatbuffers::FlatBufferBuilder* builder,
                                           const AuditedDraw& draw,
                                           const AuditedHandOver& hand_over) {
  const auto rows = builder->CreateVectorOfStructs(draw.rows);
  const auto sampler = hand_over.sampler.empty() ? 0 : builder->CreateString(hand_over.sampler);
  return fb::CreateAudit(*builder, rows, sampler, draw.seed, hand_over.drawn_lsn,
                         hand_over.handed_us, draw.first_draw);
}

uint64_t AuditBytesMax(uint64_t rows) { return kAuditBytes + rows * sizeof(fb::AuditedRow); }

Status CheckAudit(const fb::HandOver& hand_over) {
  const fb::Audit* audit = hand_over.audit();
  if (audit == nullptr) return Status::Ok();
  if (audit->sampler() != nullptr && audit->sampler()->size() > kNameLengthMax) {
    return Status::Corruption("a sampler's name has ", audit->sampler()->size(),
                              " characters; expected at most ", kNameLengthMax);
  }
  const uint32_t rows = audit->rows() != nullptr ? audit->rows()->size() : 0;
  for (uint32_t i = 0; i < rows; ++i) {
    const fb::AuditedRow& row = *audit->rows()->Get(i);
    if (!index::ValidPriority(row.priority()) || !(row.probability() >= 0) ||
        row.probability() > 1) {
      return Status::Corruption("row ", i, " of a batch was drawn by priority ", row.priority(),
                                " with probability ", row.probability());
    }
  }
  return Status::Ok();
}

}  // namespace geardb::engine
