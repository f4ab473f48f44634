// The tables of a running database as bytes of COUNTERS: a FlatBuffer of engine/activity.fbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/stats.h"

namespace geardb::engine {

/// A multiple of 8 bytes, of which zeros behind the FlatBuffer are a part. Tables for which there
/// is no room in `bytes_max` are counted only.
std::vector<std::byte> EncodeTables(const TablesActivity& tables, uint64_t bytes_max);
/// Nothing where they are none.
std::optional<TablesActivity> DecodeTables(std::span<const std::byte> bytes);

}  // namespace geardb::engine
