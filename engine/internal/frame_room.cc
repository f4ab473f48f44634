#include "engine/internal/frame_room.h"

#include "engine/internal/core.h"

namespace geardb::engine {

Result<FrameRef> DatabaseCore::TakeFrame(FramePool* pool, uint64_t ahead, Deadline deadline) {
  if (const auto frame = arena->TryAllocate(pool)) return *frame;
  const WaitTimer timer(&waits.frames);
  for (;;) {
    const bool leaving = HasLeaving();
    const uint64_t ended = page_loader->ended();
    // What was dropped others may take first: it is made again while there is something to drop.
    const bool made = !options.resident &&
                      (evictor->MakeRoom(pool, ahead) > 0 || arena->FramesAvailable(pool) > 0);
    Result<FrameRef> frame = arena->Allocate(pool, deadline);
    if (frame.ok() || deadline.passed()) return frame;
    // What it waits for may outlast a close.
    GEARDB_RETURN_IF_ERROR(CheckOpen());
    // A page that is being read can be dropped once it is there.
    const auto was_read = [&] {
      return page_loader->AwaitOne(deadline) || page_loader->ended() != ended;
    };
    if (made || (!options.resident && was_read())) continue;
    if (!leaving) return frame;
    AwaitLeaving();
  }
}

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
  FrameQueue::Hold hold(&database->frame_queue);
  std::vector<FrameRef> frames;
  const auto give_back = [&] {
    for (size_t i = 0; i < frames.size(); ++i) database->arena->Free(pools[i], frames[i]);
    frames.clear();
  };
  const Status status =
      TakeInTurn(database, &hold, deadline,
                 {.take = [&] { return TakeOneEach(database, pools, deadline, &frames); },
                  .give_back = give_back});
  give_back();
  return status;
}

}  // namespace geardb::engine
