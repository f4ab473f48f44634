// Frames for changes of tables, which take some at once: one for the defaults of each column group
// that pages may lack.
//
// They are taken where nobody may wait, in the middle of the change. So a change that finds none
// begins again, with frames that were taken for it where pages of others can be dropped, and that
// it lets go of right before it takes its own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/internal/core.h"

namespace geardb::engine {

/// Bytes of the frames that a table takes for defaults as it comes; or as groups and companions
/// from these on come.
std::vector<uint64_t> DefaultFrames(const TableLayout& layout, size_t first_group = 0,
                                    size_t first_companion = 0);

/// Frames that a change has made room for, held so that nobody else takes them before it does. Of
/// one thread.
class HeldFrames {
 public:
  explicit HeldFrames(DatabaseCore* database)
      : database_(database), hold_(&database->frame_queue) {}
  ~HeldFrames() { Release(); }
  HeldFrames(const HeldFrames&) = delete;
  HeldFrames& operator=(const HeldFrames&) = delete;

  /// One of each size, in turn with others' (TakeInTurn). `*was_there`: nobody had to make room.
  Status Take(std::span<const uint64_t> bytes, Deadline deadline, bool* was_there);
  void Release();

 private:
  Status TakeAll(Deadline deadline, bool* was_there);
  void GiveBack();

  DatabaseCore* const database_;
  FrameQueue::Hold hold_;
  std::vector<FramePool*> pools_;
  std::vector<FrameRef> frames_;
};

/// A change, once. ResourceExhausted: nothing has changed, and `*lacking` has the bytes of the
/// frames that it needs; none where it is not frames that it lacks.
using FrameAttempt = std::function<Status(HeldFrames* held, std::vector<uint64_t>* lacking)>;

/// Attempts a change until there is memory for it; what it is refused for where the deadline comes
/// first, or no frames come free.
Status TryWithFrames(DatabaseCore* database, Deadline deadline, const FrameAttempt& attempt);

}  // namespace geardb::engine
