// What a hand-over says of its batch where the sampler is audited (SamplerOptions::audit): in its
// record, for people and other programs. Nothing that a database does depends on it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/internal/part_draw.h"

namespace geardb::engine {

/// The rows of one part of a batch, and what is known of them when they are drawn.
struct AuditedPart {
  const SamplerSource* source = nullptr;
  std::span<const DrawnLeaf> leaves;
  // Of the batch, likewise.
  std::span<const TrajectoryId> ids;
  std::span<const int64_t> anchors;
  std::span<const double> probabilities;
};
/// As of the draw: the mutex of the part's table is held.
AuditedDraw AuditDraw(const AuditedPart& part);

/// The rest, as of the hand-over.
struct AuditedHandOver {
  std::string_view sampler = {};
  Lsn drawn_lsn = 0;
  int64_t handed_us = 0;
};
flatbuffers::Offset<fb::Audit> EncodeAudit(flatbuffers::FlatBufferBuilder* builder,
                                           const AuditedDraw& draw,
                                           const AuditedHandOver& hand_over);

/// Bytes that an audit of so many rows takes at most, besides those of a record without one.
uint64_t AuditBytesMax(uint64_t rows);

/// What a record may say: Corruption for numbers that no draw comes to.
Status CheckAudit(const fb::HandOver& hand_over);

}  // namespace geardb::engine
