#include "engine/internal/evictor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/internal/core.h"

namespace geardb::engine {
namespace {

/// Pages that are looked at while a table's mutex is held once.
constexpr uint64_t kLooks = 16384;
/// A pool that needs frames gives up one of so many of its own beside them: the next call finds
/// some.
constexpr uint64_t kShareAhead = 64;
/// Of a pool's frames, one of so many is made free at most for pages that will be read.
constexpr uint64_t kShareForReads = 4;
/// A table is idle of which, for its bytes, one so many-th as much is read as of another.
constexpr uint64_t kIdleShare = 8;

/// Holds a table's mutex, but for that which the caller has.
class LockUnlessHeld {
 public:
  LockUnlessHeld(TableState* state, const TableState* held)
      GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis)
      : mutex_(held != nullptr && &state->mutex == &held->mutex ? nullptr : &state->mutex) {
    if (mutex_ != nullptr) mutex_->Lock();
  }
  ~LockUnlessHeld() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (mutex_ != nullptr) mutex_->Unlock();
  }
  LockUnlessHeld(const LockUnlessHeld&) = delete;
  LockUnlessHeld& operator=(const LockUnlessHeld&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace

uint64_t Evictor::DropOwn(const Owner& owner, const Need& need, bool* too_new) {
  uint64_t dropped = 0;
  // Twice round: the first time may find that all were used.
  uint64_t looks_left = 0;
  {
    const LockUnlessHeld lock(owner.state, need.held);
    looks_left = 2 * owner.state->pages().reserved();
  }
  while (dropped < need.frames && looks_left > 0) {
    const LockUnlessHeld lock(owner.state, need.held);
    const auto outcome = owner.state->frames().Drop({.group = owner.group,
                                                     .frames = need.frames - dropped,
                                                     .log = database_->readable_log(),
                                                     .looks_max = std::min(looks_left, kLooks)});
    dropped += outcome.dropped;
    *too_new |= outcome.too_new > 0;
    if (outcome.looks == 0) break;
    looks_left -= outcome.looks;
  }
  return dropped;
}

uint64_t Evictor::DropOther(const Owner& owner, const Need& need, TableFrames::Lying lying,
                            bool* too_new) {
  // As many of its frames as have the bytes that are wanted.
  const uint64_t bytes = need.frames * need.pool->frame_bytes();
  const LockUnlessHeld lock(owner.state, need.held);
  const auto outcome =
      owner.state->frames().DropSlabs({.group = owner.group,
                                       .frames = bytes / owner.pool->frame_bytes() + 1,
                                       .log = database_->readable_log()},
                                      lying);
  *too_new |= outcome.too_new > 0;
  return outcome.dropped;
}

uint64_t Evictor::DropIdle(std::span<const Owner> owners, const Owner& own, const Need& need,
                           bool* too_new) {
  Turn& turn = turns_[need.pool];
  const uint64_t frames_owned = own.bytes / need.pool->frame_bytes();
  if (turn.dropped < frames_owned) return 0;
  turn.dropped = 0;
  const std::map<const TableState*, uint64_t> before = std::exchange(turn.reads, {});
  std::map<const TableState*, double> bytes;
  for (const Owner& owner : owners) {
    bytes[owner.state] += static_cast<double>(owner.bytes);
    if (turn.reads.contains(owner.state)) continue;
    const LockUnlessHeld lock(owner.state, need.held);
    const FrameStats& stats = owner.state->frames().stats();
    turn.reads[owner.state] = stats.hits + stats.misses;
  }
  std::erase_if(turns_, [&](const auto& one) {
    return std::ranges::count(owners, one.first, &Owner::pool) == 0;
  });
  const auto reads = [&before, &now = turn.reads](const TableState* state) {
    return static_cast<double>(now.at(state) - before.at(state));
  };
  // Whom nobody reads, as one that is only written, has no more right to the frames.
  if (!before.contains(own.state) || reads(own.state) == 0) return 0;
  const auto lying =
      need.pool->takes_parts() ? TableFrames::Lying::kAnywhere : TableFrames::Lying::kInOwnSlabs;
  const Need much{need.pool, std::max(need.frames, frames_owned / kIdleShare), need.held};
  for (const Owner& owner : owners) {
    if (owner.state == own.state || owner.bytes == 0 || !before.contains(owner.state)) continue;
    const bool idle =
        kIdleShare * reads(owner.state) * bytes[own.state] <= reads(own.state) * bytes[owner.state];
    if (!idle) continue;
    const uint64_t dropped = DropOther(owner, much, lying, too_new);
    if (dropped > 0) return dropped;
  }
  return 0;
}

uint64_t Evictor::DropOnce(const Need& need, bool* too_new) {
  const auto tables = database_->AllTables();
  std::vector<Owner> owners;
  for (const auto& table : tables) {
    TableState* state = table->state.get();
    for (size_t g = 0; g < state->layout().group_count(); ++g) {
      FramePool* pool = state->pool(g);
      owners.push_back({state, g, pool, database_->arena->BytesOwned(pool)});
    }
  }
  std::sort(owners.begin(), owners.end(),
            [](const Owner& a, const Owner& b) { return a.bytes > b.bytes; });
  const auto own = std::find_if(owners.begin(), owners.end(),
                                [&](const Owner& owner) { return owner.pool == need.pool; });
  uint64_t dropped = 0;
  if (own != owners.end() && 2 * own->bytes >= owners.front().bytes) {
    dropped = DropIdle(owners, *own, need, too_new);
    if (dropped > 0) return dropped;
    dropped = DropOwn(*own, need, too_new);
    turns_[need.pool].dropped += dropped;
  }
  const bool takes_parts = need.pool->takes_parts();
  const auto lying = takes_parts ? TableFrames::Lying::kAnywhere : TableFrames::Lying::kInOwnSlabs;
  for (const Owner& owner : owners) {
    if (dropped > 0) return dropped;
    if (owner.pool != need.pool && owner.bytes > 0) {
      dropped = DropOther(owner, need, lying, too_new);
    }
  }
  if (dropped == 0 && own != owners.end()) dropped = DropOwn(*own, need, too_new);
  if (dropped > 0 || takes_parts) return dropped;
  // A slab comes free when all parts of it do, whose they may be.
  for (const Owner& owner : owners) {
    if (owner.bytes == 0) continue;
    dropped += DropOther(owner, need, TableFrames::Lying::kInSharedSlabs, too_new);
  }
  return dropped;
}

uint64_t Evictor::MakeRoom(FramePool* pool, uint64_t frames, TableState* held) {
  if (database_->options.resident) return 0;
  MutexLock one(&mutex_);
  HostArena& arena = *database_->arena;
  const uint64_t available = arena.FramesAvailable(pool);
  if (available >= frames) return 0;
  const uint64_t owned = arena.BytesOwned(pool) / pool->frame_bytes();
  const Need need{pool, frames - available + owned / kShareAhead, held};
  bool too_new = false;
  const uint64_t dropped = DropOnce(need, &too_new);
  if (dropped > 0 || !too_new || database_->log == nullptr) return dropped;
  // What was appended last is in the ring alone.
  if (!database_->DrainLog().ok()) return 0;
  return DropOnce(need, &too_new);
}

void Evictor::DropAll(const TableState* held) {
  MutexLock one(&mutex_);
  for (const auto& table : database_->AllTables()) {
    const LockUnlessHeld lock(table->state.get(), held);
    for (size_t g = 0; g < table->state->layout().group_count(); ++g) {
      // Twice round: the first time may find that all were used.
      table->state->frames().Drop({.group = g,
                                   .frames = UINT64_MAX,
                                   .log = database_->readable_log(),
                                   .looks_max = 2 * table->state->pages().reserved()});
    }
  }
}

Evictor::Wanted Evictor::FramesOf(const PageWaits& waits) {
  Wanted wanted;
  std::set<const PageLoad*> counted;  // A page may be waited for by many runs of rows.
  waits.ForEach([&](const PageLoad& load) {
    if (load.owner == nullptr || !counted.insert(&load).second) return;
    ++wanted[load.owner->pool(load.place.group)];
  });
  for (const AsidePage& page : waits.aside()) ++wanted[page.frames->pool(page.place.group)];
  return wanted;
}

void Evictor::MakeRoomFor(const Wanted& wanted, uint64_t times) {
  for (const auto& [pool, frames] : wanted) {
    const uint64_t owned = database_->arena->BytesOwned(pool) / pool->frame_bytes();
    MakeRoom(pool, std::max(frames, std::min(times * frames, owned / kShareForReads)));
  }
}

bool Evictor::HasRoomFor(const Wanted& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& one) {
    return database_->arena->FramesFree(one.first) >= one.second;
  });
}

}  // namespace geardb::engine
