// What a patch has written: pages that it has written anew, and what becomes drawable by it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/internal/arena.h"
#include "engine/operations_generated.h"
#include "index/page_table.h"
#include "index/trajectory_index.h"
#include "wal/log_writer.h"

namespace geardb::engine {

/// A page that a patch has written anew in one group.
struct PatchedPage {
  Lpn lpn = kNoLpn;
  uint32_t generation = 0;
  uint32_t group = 0;
  uint32_t rows = 0;           ///< From the page's first on.
  FrameRef frame = {};         ///< Holds them; the page's own frame, when nobody reads it.
  wal::PiecePlace place = {};  ///< Of the piece that has them, in a group that is logged.
};
/// A column group of a trajectory with such pages.
struct PatchedGroup {
  Slot slot = kNoSlot;
  uint32_t generation = 0;
  uint32_t group = 0;
  uint64_t filled = 0;  ///< Of a late group: the row up to which it is filled now.
};
struct PatchedRows {
  std::span<const PatchedGroup> groups;
  std::span<const PatchedPage> pages;
  /// Raw priorities of what becomes drawable: per_rows has one for each of `groups`. May be null.
  const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items = nullptr;
};

}  // namespace geardb::engine
