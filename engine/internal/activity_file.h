// The bytes of COUNTERS (engine/FORMAT.md): what processes did with a database, for people. Nothing
// depends on them: whatever is wrong with them, they are not shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/stats.h"

namespace geardb::engine {

inline constexpr const char* kCountersName = "COUNTERS";
/// What a file of them has at most.
inline constexpr uint64_t kCountersBytesMax = uint64_t{1} << 20;

/// `seed` is that of the database's other checksums.
std::vector<std::byte> EncodeActivity(const DatabaseActivity& activity, uint64_t seed);
/// Corruption that says what is wrong; Unsupported for a newer version.
Result<DatabaseActivity> DecodeActivity(std::span<const std::byte> bytes, uint64_t seed);

/// The sum, counter by counter.
ActivityCounters Sum(const ActivityCounters& a, const ActivityCounters& b);

}  // namespace geardb::engine
