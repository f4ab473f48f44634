#include "engine/internal/frame_room.h"

#include <vector>

#include "engine/internal/core.h"

namespace geardb::engine {

Status MakeRoomForOneEach(DatabaseCore* database, std::span<FramePool* const> pools,
                          Deadline deadline) {
  // All at once, so that none makes room by what another has made.
  std::vector<FrameRef> frames;
  Status status;
  for (FramePool* pool : pools) {
    const auto frame = database->TakeFrame(pool, pools.size(), deadline);
    status = frame.status();
    if (!status.ok()) break;
    frames.push_back(*frame);
  }
  for (size_t i = 0; i < frames.size(); ++i) database->arena->Free(pools[i], frames[i]);
  return status;
}

}  // namespace geardb::engine
