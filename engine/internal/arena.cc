#include "engine/internal/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/errno_status.h"
#include "base/page_view.h"
#include "base/thread.h"

namespace geardb::engine {
namespace {

constexpr int64_t kReclaimPollMs = 1;
constexpr size_t kReclaimEvery = 64;
/// Of a pool that has to have two frames at once.
uint64_t SlabsWanted(uint64_t frame_bytes) { return SlabsFor(2, frame_bytes); }

/// Addresses behind the budget, where runs of many lengths find places for all that may be lent.
constexpr uint64_t kBehindPerBudget = 2;

uint64_t MappedBytes(uint64_t budget_bytes) {
  return (1 + kBehindPerBudget) * budget_bytes + kArenaSpareBytes;
}

uint64_t ReadNumber(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

/// Whether the kernel gives huge pages to shared memory that is advised to have them.
bool GivesHugePagesIfAdvised() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  for (const char* enabled : {"[always]", "[within_size]", "[advise]", "[force]"}) {
    if (line.find(enabled) != std::string::npos) return true;
  }
  return false;
}

/// Pools with fewer slabs ask for no huge pages: most of theirs may never be written.
constexpr uint64_t kHugeFromSlabs = 8;
static_assert(kSlabBytes == kHugePageBytes);

}  // namespace

uint64_t DefaultFrameBudget() {
  const uint64_t pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const uint64_t machine = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t limit =
      std::min(ReadNumber("/sys/fs/cgroup/memory.max", machine),
               ReadNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes", machine));
  return std::min(limit, machine) / 4;
}

Result<std::unique_ptr<HostArena>> HostArena::Create(const ArenaOptions& options,
                                                     EpochRegistry* epochs) {
  const uint64_t budget = AlignDown(options.budget_bytes, kSlabBytes);
  if (budget == 0) {
    return Status::InvalidArgument("the frame budget of ", options.budget_bytes,
                                   " bytes (budgets.frames_bytes) holds no slab of ", kSlabBytes,
                                   " bytes");
  }
  const int fd = memfd_create("geardb-frames", MFD_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "memfd_create for frames");
  if (ftruncate(fd, static_cast<off_t>(MappedBytes(budget))) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, "sizing the frame arena to budgets.frames_bytes = ", budget);
  }
  std::byte* const base = MapShared(fd, MappedBytes(budget));
  if (base == nullptr) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, "mapping the frame arena of budgets.frames_bytes = ", budget);
  }
  std::unique_ptr<HostArena> arena(new HostArena(fd, base, budget, epochs));
  if (arena->advised_) madvise(base, budget, MADV_HUGEPAGE);
  if (options.prefault) arena->Prefault();
  return arena;
}

HostArena::HostArena(int fd, std::byte* base, uint64_t budget_bytes, EpochRegistry* epochs)
    : fd_(fd),
      base_(base),
      budget_bytes_(budget_bytes),
      epochs_(epochs),
      advised_(GivesHugePagesIfAdvised()),
      slabs_((1 + kBehindPerBudget) * slab_count()),
      asked_huge_(slabs_.size()),
      free_slabs_(static_cast<uint32_t>(slab_count())),
      behind_(static_cast<uint32_t>(kBehindPerBudget * slab_count())) {}

HostArena::~HostArena() {
  munmap(base_, MappedBytes(budget_bytes_));
  close(fd_);
}

void HostArena::Prefault() {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t share = AlignUp(budget_bytes_ / threads + 1, kSlabBytes);
  std::vector<std::thread> workers;
  for (uint64_t begin = 0; begin < budget_bytes_; begin += share) {
    const auto touch = [this, begin, end = std::min(begin + share, budget_bytes_)] {
      if (!advised_) huge_pages_.Take(base_ + begin, end - begin);
      for (uint64_t offset = begin; offset < end; offset += 4096) base_[offset] = std::byte{0};
    };
    auto worker = StartThread("faults in frames", touch);
    if (worker.ok()) {
      workers.push_back(std::move(worker).value());
    } else {
      touch();
    }
  }
  for (std::thread& worker : workers) worker.join();
  MutexLock lock(&mutex_);
  std::fill_n(asked_huge_.begin(), slab_count(), true);
}

void HostArena::TakeHugePages(uint32_t first, uint32_t count) {
  for (uint32_t slab = first; slab < first + count; ++slab) {
    if (asked_huge_[slab]) continue;
    asked_huge_[slab] = true;
    huge_pages_.Take(base_ + uint64_t{slab} * kSlabBytes, kSlabBytes);
  }
}

std::string HostArena::page_kind() const {
  return advised_ ? "huge (advised)" : huge_pages_.taken_bytes() > 0 ? "huge (asked for)" : "4 KiB";
}

FramePool* HostArena::NewPool(uint64_t frame_bytes, std::string owner) {
  MutexLock lock(&mutex_);
  pools_.push_back(std::unique_ptr<FramePool>(new FramePool(frame_bytes, std::move(owner))));
  wanted_slabs_ += SlabsWanted(frame_bytes);
  return pools_.back().get();
}

void HostArena::DropPool(FramePool* pool) {
  Keep(pool, 0);
  MutexLock lock(&mutex_);
  pool->dropped_ = true;
  EraseIfGone(pool);
}

void HostArena::EraseIfGone(FramePool* pool) {
  if (!pool->dropped_ || pool->owned_ + pool->parts_ > 0) return;
  wanted_slabs_ -= SlabsWanted(pool->frame_bytes());
  std::erase_if(pools_, [pool](const auto& one) { return one.get() == pool; });
}

void HostArena::Keep(FramePool* pool, uint64_t frames) {
  MutexLock lock(&mutex_);
  for (const uint32_t first : pool->spare_) FreeRun(pool, first);
  pool->spare_.clear();
  kept_slabs_ -= pool->kept_;
  pool->kept_ = SlabsFor(frames, pool->frame_bytes());
  pool->kept_since_ = ++keeps_;
  kept_slabs_ += pool->kept_;
  if (kept_slabs_ > slab_count()) {
    while (FreeSpareRun()) {
    }
  }
  freed_.NotifyAll();
}

uint64_t HostArena::MissingBefore(const FramePool& pool) const {
  if (kept_slabs_ > slab_count()) return 0;
  const bool beyond = pool.owned_ + SlabsFor(1, pool.frame_bytes()) > pool.kept_;
  uint64_t missing = 0;
  for (const auto& other : pools_) {
    if (other.get() == &pool) continue;
    if (beyond || other->kept_since_ < pool.kept_since_) missing += other->missing();
  }
  return missing;
}

std::optional<uint32_t> HostArena::TakeSlabs(FramePool* pool, Kept kept) {
  const auto run = static_cast<uint32_t>(SlabsFor(1, pool->frame_bytes()));
  if (kept == Kept::kLeft && free_slabs_.count() < run + MissingBefore(*pool)) return std::nullopt;
  std::optional<uint32_t> first;
  do {
    first = run > 1 ? free_slabs_.TakeHighestRun(run) : free_slabs_.TakeLowest();
    if (!first && free_slabs_.count() >= run) first = BorrowRun(run);
  } while (!first && kept == Kept::kTaken && FreeSpareRun());
  if (!first) return std::nullopt;
  pool->owned_ += run;
  for (uint32_t slab = *first; slab < *first + run; ++slab) slabs_[slab].owner = pool;
  if (!advised_ && pool->owned_ >= kHugeFromSlabs) TakeHugePages(*first, run);
  return first;
}

std::optional<uint32_t> HostArena::BorrowRun(uint32_t run) {
  const std::optional<uint32_t> place = behind_.TakeHighestRun(run);
  if (!place) return std::nullopt;
  const auto first = static_cast<uint32_t>(slab_count()) + *place;
  std::vector<uint32_t>& lent = lent_[first];
  while (lent.size() < run) {
    lent.push_back(*free_slabs_.TakeLowest());
    Discard(lent.back(), 1);
  }
  return first;
}

void HostArena::Discard(uint32_t first, uint32_t count) {
  const auto offset = static_cast<off_t>(uint64_t{first} * kSlabBytes);
  const auto bytes = static_cast<off_t>(uint64_t{count} * kSlabBytes);
  // A memfd can; and without, memory would come to more than the budget, no frame to harm.
  (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  std::fill_n(asked_huge_.begin() + first, count, false);
}

bool HostArena::FreeSpareRun() {
  for (const auto& pool : pools_) {
    if (pool->spare_.empty()) continue;
    FreeRun(pool.get(), pool->spare_.back());
    pool->spare_.pop_back();
    return true;
  }
  return false;
}

void HostArena::FreeRun(FramePool* pool, uint32_t first) {
  const auto run = static_cast<uint32_t>(SlabsFor(1, pool->frame_bytes()));
  const auto behind = static_cast<uint32_t>(slab_count());
  pool->owned_ -= run;
  for (uint32_t slab = first; slab < first + run; ++slab) {
    slabs_[slab] = Slab{};
    if (first < behind) {
      free_slabs_.Put(slab);
    } else {
      behind_.Put(slab - behind);
    }
  }
  if (first < behind) return;
  Discard(first, run);
  const auto lent = lent_.extract(first);
  for (const uint32_t slab : lent.mapped()) free_slabs_.Put(slab);
}

bool HostArena::TakeFreeRun(FramePool* pool, Kept kept, FrameRef* frame) {
  std::optional<uint32_t> first;
  if (pool->spare_.empty()) {
    first = TakeSlabs(pool, kept);
  } else {
    first = pool->spare_.back();
    pool->spare_.pop_back();
  }
  if (!first) return false;
  slabs_[*first].used = 1;
  *frame = FrameRef::Make(kHostArena, uint64_t{*first} * kSlabBytes);
  used_bytes_ += SlabsFor(1, pool->frame_bytes()) * kSlabBytes;
  return true;
}

std::string HostArena::UsageText(const FramePool& wanting) const {
  std::string text = std::to_string(used_bytes_) + " bytes of frames in use";
  uint64_t spare_slabs = 0;
  uint64_t most_bytes = 0;
  const FramePool* most = nullptr;
  for (const auto& pool : pools_) {
    spare_slabs += SlabsFor(pool->spare_.size(), pool->frame_bytes());
    uint64_t bytes = 0;
    for (const uint32_t part : pool->partial_) {
      const uint64_t whole_bytes = IsWhole(part / kPartsPerSlab) ? kSlabBytes : kPartBytes;
      bytes += whole_bytes - At(part).used * pool->frame_bytes();
    }
    if (bytes <= most_bytes) continue;
    most_bytes = bytes;
    most = pool.get();
  }
  const uint64_t owned_slabs = slab_count() - free_slabs_.count() - spare_slabs;
  const uint64_t shared_bytes = shared_.free_count() * kPartBytes;
  if (const uint64_t held_bytes = owned_slabs * kSlabBytes - shared_bytes - used_bytes_;
      held_bytes > 0) {
    text += ", " + std::to_string(held_bytes) + " bytes unused in their slabs of " +
            std::to_string(kSlabBytes) + " bytes, each of one table until it is empty";
    if (most != nullptr) {
      text += " (" + std::to_string(most_bytes) + " in " + std::to_string(most->partial_.size()) +
              " of " + most->owner_ + ")";
    }
  }
  if (shared_bytes > 0) {
    text += ", " + std::to_string(shared_bytes) + " bytes free in slabs that tables share";
  }
  const uint64_t missing = std::min<uint64_t>(MissingBefore(wanting), free_slabs_.count());
  if (missing + spare_slabs > 0) {
    text += ", " + std::to_string((missing + spare_slabs) * kSlabBytes) +
            " bytes of free slabs kept for the bounds of other tables";
  }
  if (const uint64_t left = free_slabs_.count() - missing; left > 0) {
    text +=
        ", " + std::to_string(left * kSlabBytes) + " bytes of free slabs, not enough side by side";
  }
  return text;
}

std::optional<FrameRef> HostArena::TryAllocate(FramePool* pool) {
  MutexLock lock(&mutex_);
  FrameRef frame;
  if (pool->partial_.empty()) ReclaimRetired();
  if (TakeFree(pool, Kept::kLeft, &frame)) return frame;
  ReclaimRetired();
  if (TakeFree(pool, Kept::kLeft, &frame)) return frame;
  return std::nullopt;
}

Result<FrameRef> HostArena::Allocate(FramePool* pool, Deadline deadline, Kept kept) {
  MutexLock lock(&mutex_);
  FrameRef frame;
  // A pool takes another slab only when what it has given up is not free yet.
  if (pool->partial_.empty()) ReclaimRetired();
  if (TakeFree(pool, kept, &frame)) return frame;
  for (;;) {
    ReclaimRetired();
    if (TakeFree(pool, kept, &frame)) return frame;
    if (retired_.empty() || deadline.passed()) {
      return Status::ResourceExhausted("no frame of ", pool->frame_bytes(), " bytes for ",
                                       pool->owner_, ": the frame budget of ", budget_bytes_,
                                       " bytes has ", UsageText(*pool));
    }
    // Readers do not announce that they leave: look again soon.
    freed_.WaitUntil(&mutex_, Deadline::AfterMs(kReclaimPollMs));
  }
}

void HostArena::Release(FramePool* pool, FrameRef frame) {
  const uint32_t part = PartOf(frame);
  Slab& slab = At(part);
  GEARDB_CHECK(slab.owner == pool && slab.used > 0);
  if (pool->frame_bytes() > kSlabBytes) {
    slab.used = 0;
    used_bytes_ -= SlabsFor(1, pool->frame_bytes()) * kSlabBytes;
    const uint32_t number = part / kPartsPerSlab;
    if (pool->owned_ > pool->kept_ || kept_slabs_ > slab_count()) {
      FreeRun(pool, number);
      EraseIfGone(pool);
    } else {
      pool->spare_.push_back(number);
    }
    return;
  }
  const uint64_t index = (frame.offset() - part * kPartBytes) / pool->frame_bytes();
  slab.free_bits[index / 64] |= uint64_t{1} << (index % 64);
  used_bytes_ -= pool->frame_bytes();
  if (--slab.used == 0) {
    FreeSmall(pool, part);
    EraseIfGone(pool);
  } else {
    pool->partial_.insert(part);
  }
}

bool HostArena::LacksKept() {
  MutexLock lock(&mutex_);
  ReclaimRetired();
  if (kept_slabs_ > slab_count()) return false;
  uint64_t missing = 0;
  for (const auto& pool : pools_) missing += pool->missing();
  return missing > free_slabs_.count();
}

void HostArena::MoveDown(FramePool* pool, FrameRef* frame) {
  MutexLock lock(&mutex_);
  if (pool->partial_.empty() || *pool->partial_.begin() >= PartOf(*frame)) return;
  FrameRef lower;
  GEARDB_CHECK(TakeFree(pool, Kept::kLeft, &lower));
  std::memcpy(Resolve(lower), Resolve(*frame), pool->frame_bytes());
  Release(pool, *frame);
  *frame = lower;
}

void HostArena::Free(FramePool* pool, FrameRef frame) {
  MutexLock lock(&mutex_);
  Release(pool, frame);
  freed_.NotifyAll();
}

void HostArena::Retire(FramePool* pool, FrameRef frame) {
  const uint64_t version = epochs_->Retire();
  MutexLock lock(&mutex_);
  retired_.push_back(Retired{version, pool, frame});
  if (retired_.size() % kReclaimEvery == 0) ReclaimRetired();
}

void HostArena::ReclaimRetired() {
  const uint64_t safe = epochs_->SafeVersion();
  bool any = false;
  while (!retired_.empty() && retired_.front().version < safe) {
    Release(retired_.front().pool, retired_.front().frame);
    retired_.pop_front();
    any = true;
  }
  if (any) freed_.NotifyAll();
}

size_t HostArena::pool_count() const {
  MutexLock lock(&mutex_);
  return pools_.size();
}

uint64_t HostArena::FramesAvailable(const FramePool* pool) {
  MutexLock lock(&mutex_);
  uint64_t frames = FramesFreeLocked(*pool);
  for (const Retired& retired : retired_) frames += retired.pool == pool ? 1 : 0;
  return frames;
}

uint64_t HostArena::FramesFree(const FramePool* pool) {
  MutexLock lock(&mutex_);
  return FramesFreeLocked(*pool);
}

uint64_t HostArena::FramesFreeLocked(const FramePool& pool) {
  ReclaimRetired();
  const uint64_t bytes = pool.frame_bytes();
  uint64_t frames = pool.spare_.size();
  for (const uint32_t part : pool.partial_) frames += At(part).frames - At(part).used;
  if (pool.takes_parts()) frames += shared_.free_count() * (kPartBytes / bytes);
  const uint64_t missing = MissingBefore(pool);
  const uint64_t slabs = free_slabs_.count();
  return frames + FramesIn(slabs > missing ? slabs - missing : 0, bytes);
}

uint64_t HostArena::SlabsOwned(const FramePool* pool) const {
  MutexLock lock(&mutex_);
  return pool->owned_;
}

uint64_t HostArena::BytesOwned(const FramePool* pool) const {
  MutexLock lock(&mutex_);
  return pool->owned_ * kSlabBytes + pool->parts_ * kPartBytes;
}

std::vector<uint32_t> HostArena::SharedNow() const {
  MutexLock lock(&mutex_);
  return shared_.slabs();
}

uint64_t HostArena::FramesUsed(uint32_t part) const {
  MutexLock lock(&mutex_);
  if (IsWhole(part / kPartsPerSlab)) return slabs_[part / kPartsPerSlab].used;
  const auto found = parts_.find(part);
  return found == parts_.end() ? 0 : found->second.used;
}

uint64_t HostArena::used_bytes() {
  MutexLock lock(&mutex_);
  ReclaimRetired();
  return used_bytes_;
}

}  // namespace geardb::engine
