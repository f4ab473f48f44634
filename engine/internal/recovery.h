// Recovery: from a directory to the state at the end of its log. One pass over the records in LSN
// order: each is checked against the state, its pieces are copied into frames, then it is applied,
// by the same code as when it was live. engine/README.md, "Recovery".
//
// Invariant: an operation is checked as a whole (recovery_check.h, recovery_append_check.h) before
// anything of it is applied; what is applied fails for want of memory alone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/internal/core.h"
#include "engine/internal/index_budget.h"
#include "engine/internal/recovery_append_check.h"
#include "wal/log_reader.h"

namespace geardb::engine {

class Recovery {
 public:
  explicit Recovery(DatabaseCore* core) : core_(core) {}

  /// Applies one record. Corruption, naming the LSN, for a body that does not fit the state; the
  /// state is of no use after an error.
  Status Visit(const wal::RecordView& record);
  /// After the last record: sums, orphans, plans.
  Status Finish();

  uint64_t orphaned() const { return orphaned_; }
  /// Of trajectories that are there at the log's end.
  uint64_t damaged_pages() const { return damaged_pages_; }
  uint64_t damaged_priorities() const { return damaged_priorities_; }
  /// Whether it failed for want of a frame once it had come to the ring: pages that the ring alone
  /// has keep theirs.
  bool lacks_frames() const { return lacks_frames_ && met_ring_; }
  /// Trajectories that lost a page, by table: to be removed once the database can write.
  const std::map<TableId, std::set<std::pair<Slot, uint32_t>>>& damaged() const { return damaged_; }

 private:
  Status Apply(const fb::Operation& operation, const wal::RecordView& record);
  Status ApplyToTable(const fb::Operation& operation, const wal::RecordView& record,
                      TableCore* table);
  Status ApplyToPriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                              TableCore* table);
  Status SetFilter(const fb::SetFilter& set, const wal::RecordView& record, TableState* state,
                   size_t number);
  Status CreateTable(const fb::Operation& operation, const wal::RecordView& record);
  Status CreatePriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                             TableCore* table);
  /// AddColumns or DropColumns. Without the state's mutex.
  Status ChangeColumns(const fb::Operation& operation, const wal::RecordView& record,
                       const std::shared_ptr<TableCore>& table);
  /// What of `after` is in tables of its own: they come and leave.
  Status ChangeCompanions(const TableHistory& after, const wal::RecordView& record,
                          const std::shared_ptr<TableCore>& table);
  Status Append(const fb::Append& append, const wal::RecordView& record, TableCore* table);
  Result<FrameRef> TakeFrame(TableCore* table, size_t group);
  /// Likewise, and it shows the group's defaults.
  Result<FrameRef> TakeUnwrittenFrame(TableCore* table, size_t group);
  /// Keeps in mind that there is none, and says so.
  Result<FrameRef> NoteLack(Result<FrameRef> frame);
  /// Drops pages for a frame or some.
  void MakeRoom(TableState* state, size_t group);
  /// Drops all that may go, and packs what stays.
  void MakeAllRoom(const TableState* held);
  /// What `attempt`, which wants frames of its own, comes to; where it lacks some, once more with
  /// all the room that can be made. No table's mutex is held.
  template <typename Attempt>
  auto WithAllRoom(const Attempt& attempt) {
    auto made = attempt();
    if (made.status().code() != StatusCode::kResourceExhausted) return made;
    MakeAllRoom(nullptr);
    made = attempt();
    lacks_frames_ |= !made.ok() && !IsOfIndexBudget(made.status());
    return made;
  }
  /// Pages lie elsewhere than when they were written, perhaps in more slabs: puts them into as few
  /// as they need.
  void PackFrames();
  /// As of DatabaseCore; of a companion, with whose it is.
  Result<std::shared_ptr<TableCore>> MakeTable(const TableSpec& spec, TableId id,
                                               const TableCore* owner = nullptr);
  /// An append to a table, by a writer that knew this layout.
  struct AppendOf {
    TableCore* table = nullptr;
    const TableLayout* layout = nullptr;
  };
  /// Copies an append's pieces into frames: new ones, in `frames` (PageFrames), or those of pages
  /// that go on. `places` likewise.
  Status TakePageFrames(const fb::Append& append, const wal::RecordView& record, const AppendOf& of,
                        std::vector<FrameRef>* frames, std::vector<wal::PiecePlace>* places);
  /// A piece of an append, of `rows`.
  struct PieceOf {
    TableCore* table = nullptr;
    const fb::Rows* rows = nullptr;
    const fb::PieceRows* where = nullptr;
    const wal::PieceView* piece = nullptr;
  };
  /// The frame of a page that has rows already.
  Result<FrameRef> FrameThatGoesOn(const PieceOf& of);
  /// `*fresh` is set where the page has no frame of its own in that group yet.
  Status CopyPiece(const PieceOf& of, FrameRef* fresh);
  /// A page of a column group.
  struct PageOfGroup {
    Lpn lpn = kNoLpn;
    uint32_t generation = 0;
    uint32_t group = 0;
    auto operator<=>(const PageOfGroup&) const = default;
  };
  static PageOfGroup PageOf(const fb::PieceRows& piece) {
    return {piece.lpn(), piece.generation(), piece.group()};
  }
  /// Bytes of the page are bad. It may leave yet, or be written whole by a patch: what that costs
  /// is known at the log's end.
  void NoteBadPage(const TableState& state, const PageOfGroup& page) {
    bad_pages_[state.layout().id()].insert(page);
  }
  void CountDamage();
  Status Patch(const fb::Patch& patch, const wal::RecordView& record, TableCore* table);
  void CopyPatchedPage(const wal::PieceView& piece, const TableState& state,
                       const PatchedPage& page);
  Status SetPriorities(const fb::Operation& operation, const wal::RecordView& record,
                       TableCore* table);
  Status SetAll(const fb::Operation& operation, const wal::RecordView& record, TableCore* table);
  Status WriteTag(const fb::WriteTag& tag, const wal::RecordView& record);
  /// OK, or Corruption that names the record and says what is wrong with it.
  Status Fits(const wal::RecordView& record, const Status& check) const;
  template <typename... Parts>
  Status BadRecord(const wal::RecordView& record, const Parts&... why) const {
    return Status::Corruption("the record at LSN ", record.lsn, " of '", core_->directory,
                              "' does not fit the state before it: ", why...);
  }

  DatabaseCore* const core_;
  AppendCheck append_check_;
  /// Pages that go on, of the append that is copied: what makes room for the next piece would take
  /// a frame whose new rows no log can give back before they are applied.
  std::vector<PageOfGroup> going_on_;
  std::map<TableId, std::set<PageOfGroup>> bad_pages_;
  std::map<TableId, std::set<std::pair<Slot, uint32_t>>> damaged_;
  bool lacks_frames_ = false;
  bool met_ring_ = false;
  uint64_t orphaned_ = 0;
  uint64_t damaged_pages_ = 0;
  uint64_t damaged_priorities_ = 0;
};

}  // namespace geardb::engine
