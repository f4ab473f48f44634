// The keys of the cold store: what they name, and their bytes, whose order is the order of their
// members. Big-endian and of fixed width; frozen, since they are on disk.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace geardb::engine {

/// Names one page: page number `page` of a trajectory, of one column group.
struct ColdPageKey {
  uint32_t table = 0;
  uint16_t partition = 0;
  uint16_t group = 0;
  uint64_t trajectory = 0;
  uint64_t page = 0;
  auto operator<=>(const ColdPageKey&) const = default;
};

/// Names one index chunk. What a kind is, the caller decides.
struct ColdChunkKey {
  uint32_t table = 0;
  uint16_t partition = 0;
  uint16_t kind = 0;
  uint64_t chunk = 0;
  auto operator<=>(const ColdChunkKey&) const = default;
};

/// The trajectories [first, end) of one column group.
struct ColdTrajectoryRange {
  uint32_t table = 0;
  uint16_t partition = 0;
  uint16_t group = 0;
  uint64_t first = 0;
  uint64_t end = 0;
};

/// Keys from `begin` up to, not with, `end`.
struct ColdKeyRange {
  std::string begin;
  std::string end;
  auto operator<=>(const ColdKeyRange&) const = default;
};

inline constexpr size_t kColdPageKeyBytes = 24;

/// kColdPageKeyBytes, 16 bytes.
std::string EncodeColdKey(const ColdPageKey& key);
std::string EncodeColdKey(const ColdChunkKey& key);
/// The keys that these bytes are; nothing where they have another length.
std::optional<ColdPageKey> DecodeColdPageKey(std::string_view bytes);
std::optional<ColdChunkKey> DecodeColdChunkKey(std::string_view bytes);

/// All pages of the trajectories, all pages or chunks of a table.
ColdKeyRange ColdKeysOf(const ColdTrajectoryRange& range);
ColdKeyRange ColdKeysOfTable(uint32_t table);

/// "page 4 of number 77 (table 3, partition 0, group 1)", "chunk 5 of kind 2 (table 3, …)". The
/// number is a trajectory's, or one of a companion that no user knows.
std::string ColdKeyText(const ColdPageKey& key);
std::string ColdKeyText(const ColdChunkKey& key);

}  // namespace geardb::engine
