// The rules, the reading half of the model (rules 11 to 13, steps a to c of an open), and the
// writer's arithmetic.
#include "tests/wal/protocol_model.h"

#include <algorithm>

namespace geardb::wal::model {
namespace {

constexpr RuleSwitch kRules[] = {
    {"admit_by_block", &Rules::admit_by_block},
    {"admit_by_record", &Rules::admit_by_record},
    {"publish_in_order", &Rules::publish_in_order},
    {"drain_published_only", &Rules::drain_published_only},
    {"sync_target_before", &Rules::sync_target_before},
    {"sync_all_segments", &Rules::sync_all_segments},
    {"sync_at_record_end", &Rules::sync_at_record_end},
    {"header_says_synced", &Rules::header_says_synced},
    {"syncs_end_in_order", &Rules::syncs_end_in_order},
    {"syncs_take_in_order", &Rules::syncs_take_in_order},
    {"error_is_of_all_after", &Rules::error_is_of_all_after},
    {"chunks_after_sync", &Rules::chunks_after_sync},
    {"recycle_after_flush", &Rules::recycle_after_flush},
    {"equal_epoch_from_start", &Rules::equal_epoch_from_start},
    {"epochs_only_grow", &Rules::epochs_only_grow},
    {"end_at_cut", &Rules::end_at_cut},
    {"check_pieces", &Rules::check_pieces},
    {"bad_piece_is_no_end", &Rules::bad_piece_is_no_end},
    {"scan_for_vouchers", &Rules::scan_for_vouchers},
    {"start_vouches", &Rules::start_vouches},
    {"only_epoch_vouches", &Rules::only_epoch_vouches},
    {"later_epoch_is_damage", &Rules::later_epoch_is_damage},
    {"highest_epoch_wins", &Rules::highest_epoch_wins},
    {"read_ring", &Rules::read_ring},
    {"cut_before_drain", &Rules::cut_before_drain},
    {"cut_even_if_there", &Rules::cut_even_if_there},
    {"drain_at_open", &Rules::drain_at_open},
    {"sync_at_open", &Rules::sync_at_open},
    {"sync_what_was_read", &Rules::sync_what_was_read},
    {"raise_epoch", &Rules::raise_epoch},
    {"sync_epoch", &Rules::sync_epoch},
    {"prepare_ring", &Rules::prepare_ring},
};

class Reader {
 public:
  explicit Reader(const ReadInput& input)
      : in_(input), records_(*input.records), segment_(input.geometry.segment) {}

  Reading Read() {
    MapSegments();
    int at = in_.from;
    out_.segments_end = at;
    while (const std::optional<int> record = Next(at)) {
      out_.chain.push_back(*record);
      at = Of(*record).end();
      last_epoch_ = Of(*record).epoch;
      if (out_.ring_records == 0) out_.segments_end = at;
    }
    out_.end = at;
    Judge();
    return std::move(out_);
  }

 private:
  const Record& Of(int record) const { return records_[static_cast<size_t>(record)]; }

  // Step a, rule 13.
  void MapSegments() {
    std::map<int, int> epochs;
    for (int file = 0; file < in_.disk->files(); ++file) {
      const int record = in_.disk->SegmentHeader(file, 0);
      if (record < 0 || Of(record).type != Type::kSegment) continue;
      const Record& first = Of(record);
      if (first.lsn + segment_ <= in_.from || first.epoch > in_.manifest.epoch) continue;
      if (in_.rules.equal_epoch_from_start && first.lsn >= in_.manifest.start &&
          first.epoch != in_.manifest.epoch) {
        continue;
      }
      const auto known = epochs.find(first.lsn);
      const bool lost =
          known != epochs.end() && (in_.rules.highest_epoch_wins ? known->second >= first.epoch
                                                                 : known->second <= first.epoch);
      if (lost) continue;
      epochs[first.lsn] = first.epoch;
      out_.segments[first.lsn] = file;
    }
  }

  int FileOf(int lsn) const {
    const auto it = out_.segments.find(lsn / segment_ * segment_);
    return it == out_.segments.end() ? -1 : it->second;
  }

  int HeaderInSegment(int lsn) const {
    const int file = FileOf(lsn);
    const int record = file < 0 ? -1 : in_.disk->SegmentHeader(file, lsn % segment_);
    return record >= 0 && Of(record).lsn == lsn && EpochFits(Of(record)) ? record : -1;
  }

  // Rule 11, but for the pieces.
  bool EpochFits(const Record& record) const {
    if (record.epoch > in_.manifest.epoch) return false;
    if (in_.rules.end_at_cut && record.lsn >= in_.manifest.cut) return false;
    if (record.lsn < in_.manifest.start) {
      return !in_.rules.epochs_only_grow || record.epoch >= last_epoch_;
    }
    return !in_.rules.equal_epoch_from_start || record.epoch == in_.manifest.epoch;
  }

  // Step b: the valid record at `at`. Once the ring was needed, it is not left again.
  std::optional<int> Next(int at) {
    if (!in_ring_) {
      const int record = HeaderInSegment(at);
      if (record >= 0 &&
          (!in_.rules.check_pieces || in_.disk->SegmentPiecesGood(FileOf(at), record))) {
        return record;
      }
      in_ring_ = true;
    }
    const bool below_start =
        in_.rules.equal_epoch_from_start && in_.rules.drain_at_open && at < in_.manifest.start;
    if (!in_.rules.read_ring || below_start) return std::nullopt;
    const int record = in_.disk->RingHeader(at % in_.geometry.ring);
    if (record < 0 || Of(record).lsn != at || !EpochFits(Of(record))) return std::nullopt;
    if (in_.rules.check_pieces && !in_.disk->RingPiecesGood(record)) return std::nullopt;
    ++out_.ring_records;
    return record;
  }

  // Step c, rule 12.
  void Judge() {
    if (!in_.rules.scan_for_vouchers) return;
    const bool start_vouches = in_.rules.equal_epoch_from_start && in_.rules.start_vouches;
    int vouched = start_vouches ? in_.manifest.start : 0;
    bool later_epoch = false;
    const auto consider = [&](int record) {
      if (record < 0 || Of(record).lsn < out_.end) return;
      const int epoch = Of(record).epoch;
      if (epoch > in_.manifest.epoch) later_epoch = true;
      if (epoch > in_.manifest.epoch || Of(record).lsn == out_.end) return;
      const bool old = epoch != in_.manifest.epoch;
      if (in_.rules.equal_epoch_from_start && in_.rules.only_epoch_vouches && old) return;
      vouched = std::max(vouched, Of(record).synced);
    };
    for (int file = 0; file < in_.disk->files(); ++file) {
      for (int offset = 0; offset < segment_; ++offset) {
        consider(in_.disk->SegmentHeader(file, offset));
      }
    }
    for (int offset = 0; offset < in_.geometry.ring; ++offset) {
      consider(in_.disk->RingHeader(offset));
    }
    if (later_epoch && in_.rules.later_epoch_is_damage) {
      out_.verdict = Verdict::kCorruption;
      return;
    }
    if (vouched <= out_.end) return;
    const bool only_a_piece = HeaderInSegment(out_.end) >= 0 && out_.ring_records == 0;
    if (only_a_piece && !in_.rules.bad_piece_is_no_end) return;
    out_.verdict = only_a_piece ? Verdict::kPageDamage : Verdict::kCorruption;
  }

  const ReadInput& in_;
  const std::vector<Record>& records_;
  const int segment_;
  bool in_ring_ = false;
  int last_epoch_ = 0;
  Reading out_;
};

}  // namespace

std::span<const RuleSwitch> AllRules() { return kRules; }

Reading ReadLog(const ReadInput& input) { return Reader(input).Read(); }

WriterState::Place WriterState::PlaceFor(int length) const {
  Place place{.lsn = next};
  const int left = geometry.segment - next % geometry.segment;
  if (left == geometry.segment) {
    place.new_segment = true;
  } else if (length > left) {
    place.new_segment = true;
    place.pad = left;
  }
  if (place.new_segment) place.lsn += place.pad + geometry.segment_record;
  place.end = place.lsn + length;
  return place;
}

int WriterState::RecordFloor(int lsn) const {
  const auto it = std::upper_bound(ends.begin(), ends.end(), lsn);
  return it == ends.begin() ? 0 : *std::prev(it);
}

bool WriterState::Admits(const Place& place) const {
  int kept = rules.admit_by_record ? std::min(drained, RecordFloor(drained)) : drained;
  if (rules.admit_by_block) kept = geometry.BlockFloor(kept);
  return place.end - geometry.ring <= kept;
}

void WriterState::Begin(int end) {
  next = published = drained = synced = end;
  while (!ends.empty() && ends.back() > end) ends.pop_back();
}

}  // namespace geardb::wal::model
