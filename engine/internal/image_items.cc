#include "engine/internal/image_items.h"

#include <algorithm>
#include <bit>

#include "engine/internal/core.h"
#include "engine/internal/priority_limits.h"

namespace geardb::engine {
namespace {

/// Leaves whose words of 64 have one mask.
constexpr uint64_t kGroupLeaves = 64 * 64;
/// Half of a chunk's bytes are their bits then.
constexpr uint64_t kLeavesPerByteMax = 4;
/// No count of a limiter comes near.
constexpr uint64_t kCountMax = uint64_t{1} << 62;

/// A mask of 64 words each, saying which have a bit; then these words.
void PutMembers(std::span<const uint64_t> words, ChunkWriter* writer) {
  while (!words.empty() && words.back() == 0) words = words.first(words.size() - 1);
  const size_t groups = (words.size() + 63) / 64;
  writer->Put(static_cast<uint32_t>(groups));
  writer->PutArray<uint64_t>(groups, [&](size_t group) {
    uint64_t mask = 0;
    const auto here = words.subspan(group * 64, std::min<size_t>(64, words.size() - group * 64));
    for (size_t w = 0; w < here.size(); ++w) mask |= uint64_t{here[w] != 0} << w;
    return mask;
  });
  for (const uint64_t word : words) {
    if (word != 0) writer->Put(word);
  }
}

uint64_t CountBits(const ChunkArray<uint64_t>& words) {
  uint64_t bits = 0;
  for (size_t i = 0; i < words.size(); ++i) bits += static_cast<uint64_t>(std::popcount(words[i]));
  return bits;
}

}  // namespace

/// What a chunk has of each of its members, as far as there is such a thing.
struct ItemsImage::Members {
  ChunkArray<float> raw;
  ChunkArray<uint32_t> short_sequences;
  ChunkArray<uint64_t> sequences;
  ChunkArray<uint16_t> sampled;
  size_t next = 0;
};

/// Leaves of a chunk as bits: what PutMembers has written.
struct ItemsImage::LeafBits {
  ChunkArray<uint64_t> masks;
  ChunkArray<uint64_t> words;
  uint64_t first = 0;  ///< Leaf of the chunk.
  uint64_t end = 0;    ///< That are reserved.

  Status Read(const ItemsShape& shape, uint64_t chunk, ChunkReader* reader) {
    const auto groups = reader->Get<uint32_t>();
    const uint64_t groups_max = shape.leaves_per_chunk / kGroupLeaves;
    if (groups > groups_max) {
      return BadChunk(reader->chunk(), groups, " groups of leaves; it has at most ", groups_max);
    }
    masks = reader->Array<uint64_t>(groups);
    words = reader->Array<uint64_t>(CountBits(masks));
    first = chunk * shape.leaves_per_chunk;
    end = shape.leaves;
    return Status::Ok();
  }
  uint64_t count() const { return CountBits(words); }

  /// Calls `visit(leaves)` for each group with a leaf, as long as that is OK.
  template <typename Visit>
  Status ForEachGroup(const ImageChunk& chunk, const Visit& visit) const {
    if (masks.size() > 0 && masks[masks.size() - 1] == 0) {
      return BadChunk(chunk, "it ends empty");
    }
    std::vector<uint64_t> leaves;
    size_t word = 0;
    for (size_t group = 0; group < masks.size(); ++group) {
      leaves.clear();
      for (uint64_t mask = masks[group]; mask != 0; mask &= mask - 1) {
        const uint64_t begin =
            first + group * kGroupLeaves + 64 * static_cast<uint64_t>(std::countr_zero(mask));
        uint64_t bits = words[word++];
        if (bits == 0) return BadChunk(chunk, "a word without items");
        for (; bits != 0; bits &= bits - 1) {
          leaves.push_back(begin + static_cast<uint64_t>(std::countr_zero(bits)));
        }
      }
      if (leaves.empty()) continue;
      if (leaves.back() >= end) {
        return BadChunk(chunk, "an item at leaf ", leaves.back(), " of ", end);
      }
      GEARDB_RETURN_IF_ERROR(visit(leaves));
    }
    return Status::Ok();
  }
};

ItemsShape::ItemsShape(const PriorityState& priority, uint64_t chunk_bytes)
    : leaves(priority.selector().reserved()),
      order(OrderOf(priority.spec().selector)),
      raw(HasPriorities(priority.spec().selector)),
      sampled(ItemsImage::CountsTimes(priority)),
      deleted(priority.has_deleted()),
      epoch(priority.epoch() != nullptr) {
  if (order) sequence_bytes = index::OrdersByPriority(*order) ? 4 : 8;
  const uint64_t bytes = (raw ? 4 : 0) + sequence_bytes + (sampled ? 2 : 0);
  leaves_per_chunk = kLeavesPerByteMax * chunk_bytes;
  if (bytes > 0) leaves_per_chunk = std::min(std::bit_floor(chunk_bytes / bytes), leaves_per_chunk);
}

// ---- Saving.

flatbuffers::Offset<fb::PriorityTableHead> ItemsImage::SaveHead(
    flatbuffers::FlatBufferBuilder* builder, const PriorityState& priority) {
  const auto spec = EncodePriorityTableSpec(builder, priority.spec());
  const index::RateLimiterState& counts = priority.limiter_.state();
  const fb::LimiterCounts limiter(counts.inserts, counts.samples, counts.deletes,
                                  counts.deleted_unsampled, counts.inserts_from,
                                  counts.samples_from);
  fb::PriorityTableHeadBuilder head(*builder);
  head.add_spec(spec);
  head.add_items(priority.selector().count());
  head.add_seed(priority.seed);
  head.add_next_draw(priority.next_draw);
  head.add_limiter(&limiter);
  head.add_counts_times(priority.counts_ != nullptr);
  head.add_max_priority(priority.max_priority());
  if (priority.prioritized_ != nullptr) {
    const index::PrioritizedSelector::WeightScale scale = priority.prioritized_->scale();
    head.add_shift(scale.shift);
    head.add_saturated(scale.saturated);
    head.add_changed(scale.changed);
  }
  if (priority.ordered_ != nullptr) head.add_next_sequence(priority.ordered_->next_sequence());
  if (priority.deleted_ != nullptr) head.add_deleted(priority.deleted_->count());
  head.add_epoch(priority.epoch_mark().epoch);
  head.add_pass(priority.epoch_mark().pass);
  if (priority.groups() != nullptr) {
    head.add_groups(priority.groups()->count());
    head.add_group_members(priority.groups()->member_count());
  }
  return head.Finish();
}

ItemsCopy ItemsImage::Copy(const PriorityState& priority, const ItemsShape& shape, uint64_t chunk) {
  const uint64_t begin = chunk * shape.leaves_per_chunk;
  const uint64_t end = std::min(begin + shape.leaves_per_chunk, shape.leaves);
  ItemsCopy copy;
  copy.chunk = chunk;
  const auto copy_bits = [begin, end](const index::Membership& from, std::vector<uint64_t>* to) {
    const uint64_t* words = from.BucketWords(0);
    to->assign(words + begin / 64, words + index::Membership::Bytes(end) / 8);
  };
  copy_bits(priority.selector().members(), &copy.words);
  if (shape.deleted) copy_bits(priority.deleted_->members(), &copy.deleted);
  if (shape.epoch) {
    const EpochState& epoch = *priority.epoch_;
    copy_bits(epoch.selector().cut_members(), &copy.cut);
    copy_bits(epoch.selector().remaining_members(), &copy.remaining);
    const auto& reserved = epoch.reserved_leaves();
    for (auto at = reserved.lower_bound(begin); at != reserved.end() && *at < end; ++at) {
      copy.remaining[(*at - begin) / 64] |= uint64_t{1} << (*at % 64);
    }
  }
  if (priority.prioritized_ != nullptr) {
    const float* raw = priority.prioritized_->view().raw_priorities();
    copy.raw.assign(raw + begin, raw + end);
  }
  if (priority.ordered_ != nullptr) {
    const uint64_t* keys = priority.ordered_->view().keys();
    copy.keys.assign(keys + begin, keys + end);
  }
  if (shape.sampled) {
    const index::ItemCount* counts = &priority.counts_->view().count(begin);
    copy.counts.assign(counts, counts + (end - begin));
  }
  return copy;
}

uint64_t ItemsImage::NextSequence(const PriorityState& priority) {
  return priority.ordered_ != nullptr ? priority.ordered_->next_sequence() : 0;
}

bool ItemsImage::CountsTimes(const PriorityState& priority) { return priority.counts_ != nullptr; }

Status ItemsImage::Give(const ItemsShape& shape, const ItemsCopy& copy, Lsn lsn,
                        const ImageSink& sink) const {
  ChunkWriter writer(Chunk(copy.chunk), lsn);
  PutMembers(copy.words, &writer);
  std::vector<uint32_t> members;  // Places in the copy.
  if (shape.raw || shape.sequence_bytes > 0 || shape.sampled) {
    for (size_t word = 0; word < copy.words.size(); ++word) {
      for (uint64_t bits = copy.words[word]; bits != 0; bits &= bits - 1) {
        members.push_back(
            static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
      }
    }
  }
  if (shape.raw) {
    writer.PutArray<float>(members.size(), [&](size_t i) {
      if (!shape.order) return copy.raw[members[i]];
      return index::RawPriorityOfKey(*shape.order, copy.keys[members[i]]);
    });
  }
  const auto sequence = [&](size_t i) {
    return index::SequenceOfKey(*shape.order, copy.keys[members[i]]);
  };
  if (shape.sequence_bytes == 8) writer.PutArray<uint64_t>(members.size(), sequence);
  if (shape.sequence_bytes == 4) {
    writer.PutArray<uint32_t>(members.size(),
                              [&](size_t i) { return static_cast<uint32_t>(sequence(i)); });
  }
  if (shape.sampled) {
    writer.PutArray<uint16_t>(members.size(),
                              [&](size_t i) { return copy.counts[members[i]].sampled; });
  }
  if (shape.deleted) PutMembers(copy.deleted, &writer);
  if (shape.epoch) {
    PutMembers(copy.cut, &writer);
    PutMembers(copy.remaining, &writer);
  }
  return writer.GiveTo(sink);
}

// ---- Loading.

Status ItemsImage::Load(const fb::PriorityTableHead& head, Lsn lsn, const ImageSource& source,
                        PriorityState* priority) {
  deleted_ = head.deleted() > 0;
  GEARDB_RETURN_IF_ERROR(Prepare(head, priority));
  next_sequence_ = head.next_sequence();
  const uint64_t chunks = ItemsShape(*priority, chunk_bytes_).chunks();
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source, Chunk(chunk), lsn));
    GEARDB_RETURN_IF_ERROR(LoadChunk(&reader, chunk, priority));
  }
  return Finish(head, priority);
}

Status ItemsImage::Prepare(const fb::PriorityTableHead& head, PriorityState* priority) const {
  const bool counts_times = head.counts_times();
  if (!counts_times && priority->counts_ != nullptr) {
    return BadHead(*priority, "it has a maximum of times and does not count them");
  }
  // Counted on, though there is no maximum any more.
  if (counts_times) GEARDB_RETURN_IF_ERROR(priority->PrepareLimits({.max_times_sampled = 1}));
  if (deleted_) GEARDB_RETURN_IF_ERROR(priority->PrepareDelete());
  if (!index::ValidPriority(head.max_priority()) || head.max_priority() < 1.0f) {
    return BadHead(*priority, "its largest priority is ", head.max_priority());
  }
  if (head.limiter() == nullptr) return BadHead(*priority, "its limiter has no counts");
  const fb::LimiterCounts& limiter = *head.limiter();
  const bool possible =
      limiter.inserts() < kCountMax && limiter.samples() < kCountMax &&
      limiter.deletes() <= limiter.inserts() && limiter.deleted_unsampled() <= limiter.deletes() &&
      limiter.inserts_from() <= limiter.inserts() && limiter.samples_from() <= limiter.samples();
  if (!possible || limiter.inserts() - limiter.deletes() != head.items()) {
    return BadHead(*priority, "its limiter has counted ", limiter.inserts(), " inserts, ",
                   limiter.deletes(), " deletes, ", limiter.samples(), " samples, for ",
                   head.items(), " items");
  }
  if (priority->prioritized_ != nullptr) {
    if (head.shift() < index::kShiftMin || head.shift() > index::kShiftMax) {
      return BadHead(*priority, "the shift of its weights is ", head.shift());
    }
    priority->prioritized_->Rescale(head.shift());
  }
  if (priority->ordered_ != nullptr &&
      head.next_sequence() > index::SequenceLimit(priority->ordered_->order())) {
    return BadHead(*priority, "its next item is number ", head.next_sequence());
  }
  return Status::Ok();
}

Status ItemsImage::LoadChunk(ChunkReader* reader, uint64_t chunk, PriorityState* priority) {
  ItemsShape parts(*priority, chunk_bytes_);
  parts.deleted = deleted_;
  LeafBits bits;
  GEARDB_RETURN_IF_ERROR(bits.Read(parts, chunk, reader));
  const uint64_t members = bits.count();
  Members arrays;
  arrays.raw = reader->Array<float>(parts.raw ? members : 0);
  arrays.short_sequences = reader->Array<uint32_t>(parts.sequence_bytes == 4 ? members : 0);
  arrays.sequences = reader->Array<uint64_t>(parts.sequence_bytes == 8 ? members : 0);
  arrays.sampled = reader->Array<uint16_t>(parts.sampled ? members : 0);
  LeafBits deleted;
  LeafBits cut;
  LeafBits remaining;
  if (parts.deleted) GEARDB_RETURN_IF_ERROR(deleted.Read(parts, chunk, reader));
  if (parts.epoch) {
    GEARDB_RETURN_IF_ERROR(cut.Read(parts, chunk, reader));
    GEARDB_RETURN_IF_ERROR(remaining.Read(parts, chunk, reader));
  }
  GEARDB_RETURN_IF_ERROR(reader->CheckEnd());
  GEARDB_RETURN_IF_ERROR(bits.ForEachGroup(reader->chunk(), [&](std::span<const uint64_t> leaves) {
    return AddItems(reader->chunk(), leaves, &arrays, priority);
  }));
  GEARDB_RETURN_IF_ERROR(AddDeleted(reader->chunk(), deleted, priority));
  return AddEpoch(reader->chunk(), cut, remaining, priority);
}

Status ItemsImage::AddDeleted(const ImageChunk& chunk, const LeafBits& deleted,
                              PriorityState* priority) {
  return deleted.ForEachGroup(chunk, [&](std::span<const uint64_t> leaves) {
    for (const uint64_t leaf : leaves) {
      if (priority->selector().Contains(leaf)) {
        return BadChunk(chunk, "the item at leaf ", leaf, " is deleted");
      }
      priority->deleted_->Add(leaf);
    }
    return Status::Ok();
  });
}

Status ItemsImage::AddEpoch(const ImageChunk& chunk, const LeafBits& cut, const LeafBits& remaining,
                            PriorityState* priority) {
  if (priority->epoch_ == nullptr) return Status::Ok();
  auto* const selector = static_cast<index::EpochSelector*>(priority->selector_.get());
  GEARDB_RETURN_IF_ERROR(cut.ForEachGroup(chunk, [&](std::span<const uint64_t> leaves) {
    for (const uint64_t leaf : leaves) {
      if (selector->Contains(leaf)) continue;
      return BadChunk(chunk, "leaf ", leaf, " is in the epoch and is no item");
    }
    selector->RestoreCut(leaves);
    return Status::Ok();
  }));
  return remaining.ForEachGroup(chunk, [&](std::span<const uint64_t> leaves) {
    for (const uint64_t leaf : leaves) {
      if (selector->InCut(leaf)) continue;
      return BadChunk(chunk, "leaf ", leaf, " remains in the pass and is not in the epoch");
    }
    selector->GiveBack(leaves);
    return Status::Ok();
  });
}

Status ItemsImage::AddItems(const ImageChunk& chunk, std::span<const uint64_t> leaves,
                            Members* members, PriorityState* priority) {
  std::vector<float> raw(leaves.size(), 1.0f);
  std::vector<uint64_t> sequences;
  std::vector<uint64_t> hidden;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const size_t member = members->next++;
    if (members->raw.size() > 0) raw[i] = members->raw[member];
    if (!index::ValidPriority(raw[i])) {
      return BadChunk(chunk, "the item at leaf ", leaves[i], " has priority ", raw[i]);
    }
    largest_ = std::max(largest_, raw[i]);
    if (members->short_sequences.size() > 0) sequences.push_back(members->short_sequences[member]);
    if (members->sequences.size() > 0) sequences.push_back(members->sequences[member]);
    if (!sequences.empty() && sequences.back() >= next_sequence_) {
      return BadChunk(chunk, "the item at leaf ", leaves[i], " is number ", sequences.back(),
                      " in the order, of ", next_sequence_);
    }
    if (members->sampled.size() == 0) continue;
    priority->counts_->Restore(leaves[i], members->sampled[member]);
    if (priority->IsExhausted(leaves[i])) hidden.push_back(leaves[i]);
  }
  if (priority->ordered_ != nullptr) {
    priority->ordered_->Restore(leaves, raw, sequences);
    sequences_.insert(sequences_.end(), sequences.begin(), sequences.end());
  } else {
    priority->selector_->Insert(leaves, raw);
  }
  priority->selector_->Hide(hidden);
  return Status::Ok();
}

Status ItemsImage::CheckSequences() {
  if (sequences_.empty()) return Status::Ok();
  const auto [least, most] = std::minmax_element(sequences_.begin(), sequences_.end());
  const uint64_t first = *least;
  const uint64_t numbers = *most - first + 1;
  bool twice = false;
  if (numbers / 64 <= sequences_.size()) {
    std::vector<bool> seen(numbers);
    for (const uint64_t sequence : sequences_) {
      twice |= seen[sequence - first];
      seen[sequence - first] = true;
    }
  } else {
    std::sort(sequences_.begin(), sequences_.end());
    twice = std::adjacent_find(sequences_.begin(), sequences_.end()) != sequences_.end();
  }
  if (!twice) return Status::Ok();
  return BadChunk(Chunk(0),
                  "it, or one behind it, has an item at the place of another in the order");
}

Status ItemsImage::FinishEpoch(const fb::PriorityTableHead& head, PriorityState* priority) const {
  uint64_t cut = 0;
  uint64_t remaining = 0;
  bool fits = head.epoch() == 0 && head.pass() == 0;
  if (priority->epoch_ != nullptr) {
    auto* const selector = static_cast<index::EpochSelector*>(priority->selector_.get());
    cut = selector->cut();
    remaining = selector->remaining();
    const uint64_t passes = priority->spec().epoch.passes;
    if (head.epoch() == 0) {
      fits = head.pass() == 0 && cut == 0;
    } else {
      // Where all is covered the next pass has begun.
      fits = head.epoch() < kCountMax && head.pass() >= 1 && head.pass() <= passes &&
             (remaining > 0 || cut == 0 || head.pass() == passes);
    }
    if (fits) selector->RestoreNumbers(head.epoch(), head.pass());
  }
  if (fits) return Status::Ok();
  return BadHead(*priority, "its epoch is ", head.epoch(), ", in pass ", head.pass(), ", with ",
                 remaining, " of ", cut, " items left");
}

Status ItemsImage::Finish(const fb::PriorityTableHead& head, PriorityState* priority) {
  const uint64_t items = priority->selector().count();
  const uint64_t deleted = priority->deleted_ == nullptr ? 0 : priority->deleted_->count();
  if (deleted != head.deleted()) {
    return BadHead(*priority, "it says ", head.deleted(), " deleted leaves; its chunks have ",
                   deleted);
  }
  GEARDB_RETURN_IF_ERROR(FinishEpoch(head, priority));
  if (items != head.items()) {
    return BadHead(*priority, "it says ", head.items(), " items; its chunks have ", items);
  }
  GEARDB_RETURN_IF_ERROR(CheckSequences());
  if (head.max_priority() < largest_) {
    return BadHead(*priority, "its largest priority is ", head.max_priority(),
                   "; that of an item is ", largest_);
  }
  if (priority->prioritized_ != nullptr) {
    if (priority->prioritized_->saturated() && !head.saturated()) {
      return BadHead(*priority, "a weight does not fit its scale, and it does not say so");
    }
    priority->prioritized_->RestoreScale({.shift = head.shift(),
                                          .max_priority = head.max_priority(),
                                          .saturated = head.saturated(),
                                          .changed = head.changed()});
  } else if (priority->ordered_ != nullptr) {
    priority->ordered_->RestoreEnd(head.next_sequence(), head.max_priority());
  }
  priority->seed = head.seed();
  priority->next_draw = head.next_draw();
  priority->next_ahead = head.next_draw();
  const fb::LimiterCounts& limiter = *head.limiter();
  priority->limiter_ = index::RateLimiter(priority->limiter_.spec(),
                                          {.inserts = limiter.inserts(),
                                           .samples = limiter.samples(),
                                           .deletes = limiter.deletes(),
                                           .deleted_unsampled = limiter.deleted_unsampled(),
                                           .inserts_from = limiter.inserts_from(),
                                           .samples_from = limiter.samples_from()});
  return Status::Ok();
}

}  // namespace geardb::engine
