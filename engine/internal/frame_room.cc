#include "engine/internal/frame_room.h"

#include "engine/internal/core.h"

namespace geardb::engine {

Status TakeOneEach(DatabaseCore* database, std::span<FramePool* const> pools, Deadline deadline,
                   std::vector<FrameRef>* frames) {
  // All at once, so that none makes room by what another has made.
  for (FramePool* pool : pools) {
    GEARDB_ASSIGN_OR_RETURN(const FrameRef frame,
                            database->TakeFrame(pool, pools.size(), deadline));
    frames->push_back(frame);
  }
  return Status::Ok();
}

Status MakeRoomForOneEach(DatabaseCore* database, std::span<FramePool* const> pools,
                          Deadline deadline) {
  std::vector<FrameRef> frames;
  const Status status = TakeOneEach(database, pools, deadline, &frames);
  for (size_t i = 0; i < frames.size(); ++i) database->arena->Free(pools[i], frames[i]);
  return status;
}

}  // namespace geardb::engine
