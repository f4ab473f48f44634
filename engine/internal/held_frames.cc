#include "engine/internal/held_frames.h"

#include <algorithm>

#include "engine/internal/frame_room.h"

namespace geardb::engine {
namespace {

/// Another may take the frames that a change has made room for, between two steps. Where they were
/// there so often, it is index memory that it lacks.
constexpr int kTriesWithRoom = 64;

}  // namespace

std::vector<uint64_t> DefaultFrames(const TableLayout& layout, size_t first_group,
                                    size_t first_companion) {
  std::vector<uint64_t> bytes;
  for (size_t g = first_group; g < layout.group_count(); ++g) {
    const GroupLayout& group = layout.group(g);
    if (group.may_be_unwritten()) bytes.push_back(group.pages.frame_bytes());
  }
  for (size_t k = first_companion; k < layout.companions().size(); ++k) {
    const CompanionColumn& column = layout.companions()[k];
    const std::vector<uint64_t> theirs = DefaultFrames(TableLayout(column.spec, column.id));
    bytes.insert(bytes.end(), theirs.begin(), theirs.end());
  }
  return bytes;
}

Status HeldFrames::Take(std::span<const uint64_t> bytes, Deadline deadline, bool* was_there) {
  for (const uint64_t size : bytes) {
    pools_.push_back(database_->arena->NewPool(size, "a change of a table"));
  }
  *was_there = true;
  return TakeInTurn(
      database_, &hold_, deadline,
      {.take = [&] { return TakeAll(deadline, was_there); }, .give_back = [this] { GiveBack(); }});
}

Status HeldFrames::TakeAll(Deadline deadline, bool* was_there) {
  *was_there &= std::ranges::all_of(pools_, [this](FramePool* pool) {
    const auto frame = database_->arena->TryAllocate(pool);
    if (frame) frames_.push_back(*frame);
    return frame.has_value();
  });
  const std::span<FramePool* const> missing = std::span(pools_).subspan(frames_.size());
  return TakeOneEach(database_, missing, deadline, &frames_);
}

void HeldFrames::GiveBack() {
  for (size_t i = 0; i < frames_.size(); ++i) database_->arena->Free(pools_[i], frames_[i]);
  frames_.clear();
}

void HeldFrames::Release() {
  GiveBack();
  for (FramePool* pool : pools_) database_->arena->DropPool(pool);
  pools_.clear();
  hold_.End();
}

Status TryWithFrames(DatabaseCore* database, Deadline deadline, const FrameAttempt& attempt) {
  HeldFrames held(database);
  for (int with_room = 0;;) {
    std::vector<uint64_t> lacking;
    const Status status = attempt(&held, &lacking);
    if (status.code() != StatusCode::kResourceExhausted || lacking.empty()) return status;
    // Pages of others are dropped where nobody waits for the commit mutex, and readers may leave.
    bool was_there = false;
    held.Release();
    GEARDB_RETURN_IF_ERROR(held.Take(lacking, deadline, &was_there));
    with_room = was_there ? with_room + 1 : 0;
    if (with_room == kTriesWithRoom) return status;
  }
}

}  // namespace geardb::engine
