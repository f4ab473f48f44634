// DropFrames: takes the pages of an open database out of memory, so that whatever a test does next
// has to read them.
#pragma once

#include "tests/engine/internal/live_core.h"

namespace geardb::testing {

/// Drops the frames of all pages that can lose them; returns how many. What was appended is synced
/// first.
inline uint64_t DropFrames(const Database& database) {
  const std::shared_ptr<engine::DatabaseCore> core = CoreOf(database);
  if (core->log != nullptr && !core->Acknowledge(core->log->end(), Ack::kSync).ok()) return 0;
  uint64_t dropped = 0;
  for (const auto& table : core->AllTables()) {
    MutexLock lock(&table->state->mutex);
    const uint64_t pages = table->state->pages().reserved();
    for (size_t g = 0; g < table->state->layout().group_count(); ++g) {
      dropped += table->state->frames()
                     .Drop({.group = g,
                            .frames = pages,
                            .log = core->readable_log(),
                            .looks_max = 2 * pages})
                     .dropped;
    }
  }
  return dropped;
}

}  // namespace geardb::testing
