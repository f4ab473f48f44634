// Which trajectories have left a table, and why: what producers read to know what to make again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace geardb {

/// Why a trajectory left. In the log: frozen.
enum class RemovalReason : uint8_t {
  kByHand = 0,     ///< Table::Remove, WriteBatch::Remove; a cut that would have left nothing.
  kCapacity = 1,   ///< The remover of a full table.
  kAge = 2,        ///< TableSpec::ttl_ms.
  kExhausted = 3,  ///< PriorityTableSpec::remove_when_exhausted, or covered by an epoch.
  kFilter = 4,     ///< A standing filter that expires what fails it.
  kDamaged = 5,    ///< A page of it was found damaged.
};
inline constexpr RemovalReason kRemovalReasonLast = RemovalReason::kDamaged;
inline constexpr size_t kRemovalReasons = static_cast<size_t>(kRemovalReasonLast) + 1;

/// "by hand", "capacity", …
const char* RemovalReasonName(RemovalReason reason);

struct Removal {
  TrajectoryId id = 0;
  RemovalReason reason = RemovalReason::kByHand;
  std::string priority_table = {};  ///< Whose filter it was; empty for other reasons.

  friend bool operator==(const Removal&, const Removal&) = default;
};

struct RemovalsOptions {
  uint64_t removals_max = 4096;
  int64_t timeout_ms = 0;  ///< How long to wait for the first one.
};

/// Removals of a table are numbered from 0, as they come in the log.
struct Removals {
  std::vector<Removal> removals = {};
  uint64_t missed = 0;  ///< From where was asked, so many are known no more.
  uint64_t next = 0;    ///< Where to go on: one past the last.
};

}  // namespace geardb
