// The records of a WriteCall: how large they are, which of them go ahead of its own, and the room
// that they wait for. engine/internal/write_call.h has the steps.
//
// As in write_decide.cc, the analysis of locks does not see that the databases of writers are the
// call's own.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "engine/internal/write_call.h"

namespace geardb::engine {

namespace {

/// What FlatBuffers puts around an operation and its vectors.
constexpr uint64_t kOperationBytes = 256;

}  // namespace

Status WriteCall::AwaitRoom(ChangeScope* scope, bool* again) {
  const uint64_t body_bytes = BodyMax();
  if (recorded_.empty()) return Status::Ok();
  const std::vector<wal::RecordSize> records = Records(body_bytes);
  const uint64_t record_max = database_->log->record_bytes_max();
  if (records.back().total() > record_max) {
    const std::string what =
        alone_ || batch_.operations.empty()
            ? "the call"
            : "a batch of " + std::to_string(batch_.operations.size()) + " operations";
    return Status::InvalidArgument(what, " needs a log record of ", records.back().total(),
                                   " bytes", in_parts_ ? " without its rows" : "", "; at most ",
                                   record_max, " fit the ring (a quarter of it)");
  }
  std::vector<wal::RecordSize> all = RemovalsAhead();
  if (!in_parts_) {
    GEARDB_RETURN_IF_ERROR(scope->AwaitRoom({records.data(), 1}, scope->how(), again));
    if (*again || all.empty()) return Status::Ok();
  }
  // In the order in which they are written: its own is the last.
  all.insert(all.begin(), records.begin(), records.end() - 1);
  all.push_back(records.back());
  return scope->PrepareFor(all, scope->how().urgency);
}

uint64_t WriteCall::ItemBytesMax() const {
  uint64_t bytes = 0;
  for (const ItemSet& set : sets_) bytes += set.given->items.size() * sizeof(fb::Item);
  for (const ItemDelete& deleted : deletes_) {
    bytes += deleted.given->items.size() * sizeof(fb::Handed);
  }
  // Which slots these are is not known yet.
  for (const TableRemoval& removal : removals_) bytes += removal.ids.size() * sizeof(fb::Removed);
  for (const TableAppend& append : appends_) {
    std::map<std::string_view, uint64_t> values;
    for (const AppendPart& part : append.parts) {
      for (const InitialPriorities& given : part.given) {
        values[given.priority_table] += given.values.size();
      }
    }
    // One for all items of a part may become one for each.
    for (const auto& [name, count] : values) {
      bytes += std::max(count, append.plan.growth.rows) * sizeof(float);
    }
  }
  return bytes;
}

uint64_t WriteCall::BodyMax() {
  using Kind = Recorded::Kind;
  recorded_.clear();
  uint64_t bytes = 1024;
  const auto add = [&](Kind kind, size_t index, uint64_t operation_bytes) {
    recorded_.push_back({kind, index});
    bytes += kOperationBytes + operation_bytes;
  };
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (!sets_[i].items.empty()) add(Kind::kSet, i, sets_[i].items.size() * sizeof(fb::Item));
  }
  for (size_t i = 0; i < deletes_.size(); ++i) {
    if (deletes_[i].items.empty()) continue;
    add(Kind::kDelete, i, deletes_[i].items.size() * sizeof(fb::Handed));
  }
  for (size_t i = 0; i < removals_.size(); ++i) {
    if (removals_[i].with_append) continue;
    add(Kind::kRemove, i, removals_[i].slots.size() * sizeof(fb::Removed));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].setting.columns.empty()) continue;
    add(Kind::kColumns, i, ColumnsBytesMax(columns_[i]));
  }
  for (size_t i = 0; i < appends_.size(); ++i) {
    const TableAppend& append = appends_[i];
    add(Kind::kAppend, i,
        append.writer->BodyMax(append.given, append.plan, EvictedInRecordMax(append)));
  }
  if (tag_ != nullptr) add(Kind::kTag, 0, tag_->name.size() + tag_->blob.size());
  return bytes;
}

std::vector<wal::RecordSize> WriteCall::Records(uint64_t body_bytes) const {
  std::vector<wal::RecordSize> records;
  if (!in_parts_) return {wal::RecordSize::For(body_bytes, piece_bytes_)};
  for (const PartOfPieces& part :
       SplitIntoParts(piece_bytes_, database_->log->record_bytes_max())) {
    records.push_back(part.size);
  }
  records.push_back(wal::RecordSize::For(body_bytes, {}, pieces_.size()));
  return records;
}

size_t WriteCall::EvictedInRecordMax(const TableAppend& append) const
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  const size_t most = std::max(append.writer->RemovedInRecordMax() / appends_.size(), size_t{1});
  return append.plan.with_record + most;
}

std::vector<wal::RecordSize> WriteCall::RemovalsAhead() const
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  std::vector<wal::RecordSize> sizes;
  for (const TableAppend& append : appends_) {
    const std::vector<wal::RecordSize> ahead =
        append.writer->RemovalsAhead(append.plan.eviction, EvictedInRecordMax(append));
    sizes.insert(sizes.end(), ahead.begin(), ahead.end());
  }
  return sizes;
}

void WriteCall::CollectPieces() {
  pieces_.clear();
  piece_bytes_.clear();
  for (const TableAppend& append : appends_) {
    const AppendPlan& plan = append.plan;
    pieces_.insert(pieces_.end(), plan.pieces.begin(), plan.pieces.end());
    piece_bytes_.insert(piece_bytes_.end(), plan.piece_bytes.begin(), plan.piece_bytes.end());
  }
}

Status WriteCall::WriteParts(ChangeScope* scope)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  CommitOptions how = scope->how();
  for (TableAppend& append : appends_) {
    append.plan.in_parts = false;  // None is written yet: pieces may still come from other frames.
    append.writer->FollowPatches(append.calls, &append.plan);
    append.plan.in_parts = true;
  }
  CollectPieces();
  for (const PartOfPieces& part :
       SplitIntoParts(piece_bytes_, database_->log->record_bytes_max())) {
    GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(part.size, how));
    const wal::Reservation at = scope->Reserve({.type = wal::RecordType::kPart,
                                                .size = part.size,
                                                .part = parts_++,
                                                .group_lsn = group_lsn_});
    const auto pieces = std::span(pieces_).subspan(part.first, part.count);
    database_->Finish(at, pieces, nullptr);
    how.deadline = Deadline::Infinite();  // What has begun is finished.
    group_lsn_ = at.group_lsn;
    NamePieces(at.lsn, database_->manifest.Seed(), pieces);
  }
  return scope->AwaitRoomHolding(Records(BodyMax()).back(), how);
}

Status WriteCall::WriteRemovalsAhead(ChangeScope* scope)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  if (RemovalsAhead().empty()) return Status::Ok();
  for (TableAppend& append : appends_) {
    GEARDB_RETURN_IF_ERROR(
        append.writer->LogRemovalsAhead(EvictedInRecordMax(append), scope, &append.plan));
  }
  return scope->AwaitRoomHolding(Records(BodyMax()).back(), {.type = scope->how().type});
}

}  // namespace geardb::engine
