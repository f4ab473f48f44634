// Remover: which of the trajectories that no writer has leaves a full table next. It holds their
// slots; whoever fills a table asks it for as many as must leave, and takes them out once nothing
// can stop that any more. One remover per file.
//
// Invariant: what Next gives depends on the members, their ages and priorities, and the number of
// the removal alone: not on the order of the calls, so it is the same after a reopen.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "base/types.h"

namespace geardb::index {

/// A trajectory that no writer has. Its age is that of the record with which its writer left it;
/// of two that one record left the one with the smaller generation is older.
struct LeftTrajectory {
  Slot slot = kNoSlot;
  uint32_t generation = 0;
  Lsn age = 0;
};

/// Not thread-safe: the owner orders all calls. All but Reserve take slots below what it was given,
/// and cannot fail.
class Remover {
 public:
  virtual ~Remover() = default;

  /// Makes slots [0, slot_count) usable: the admission of all that follows. ResourceExhausted names
  /// the budget; the remover is then as before.
  virtual Status Reserve(uint64_t slot_count) = 0;

  /// The trajectory may leave. Its slot is not there.
  virtual void Add(const LeftTrajectory& left) = 0;
  /// It may not, or has left. A slot that is not there is passed over.
  virtual void Erase(Slot slot) = 0;
  /// Members.
  virtual uint64_t count() const = 0;

  /// Begins to choose: `removal` trajectories have left the table ever.
  virtual void Begin(uint64_t removal) = 0;
  /// The next one to leave, each member once from Begin on; none when all were given. No member
  /// comes, goes or changes between Begin and the last Next.
  virtual std::optional<Slot> Next() = 0;
  /// Ends that, whatever was given: all members may be chosen again.
  virtual void End() = 0;
};

}  // namespace geardb::index
