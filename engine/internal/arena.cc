#include "engine/internal/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <thread>

#include "base/errno_status.h"
#include "base/page_view.h"

namespace geardb::engine {
namespace {

constexpr int64_t kReclaimPollMs = 1;
constexpr size_t kReclaimEvery = 64;

uint64_t FramesPerSlab(uint64_t frame_bytes) { return kSlabBytes / frame_bytes; }

uint64_t ReadNumber(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

/// What the kernel does for shared memory that asks for huge pages.
std::string SharedMemoryPageKind() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  for (const char* enabled : {"[always]", "[within_size]", "[advise]", "[force]"}) {
    if (line.find(enabled) != std::string::npos) return "huge (advised)";
  }
  return "4 KiB";
}

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
  if (ftruncate(fd, static_cast<off_t>(budget + kArenaSpareBytes)) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, "sizing the frame arena to budgets.frames_bytes = ", budget);
  }
  void* base = mmap(nullptr, budget + kArenaSpareBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, "mapping the frame arena of budgets.frames_bytes = ", budget);
  }
  madvise(base, budget, MADV_HUGEPAGE);
  std::unique_ptr<HostArena> arena(
      new HostArena(fd, static_cast<std::byte*>(base), budget, epochs));
  if (options.prefault) arena->Prefault();
  return arena;
}

HostArena::HostArena(int fd, std::byte* base, uint64_t budget_bytes, EpochRegistry* epochs)
    : fd_(fd),
      base_(base),
      budget_bytes_(budget_bytes),
      epochs_(epochs),
      page_kind_(SharedMemoryPageKind()) {}

HostArena::~HostArena() {
  munmap(base_, budget_bytes_ + kArenaSpareBytes);
  close(fd_);
}

void HostArena::Prefault() {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t share = AlignUp(budget_bytes_ / threads + 1, kSlabBytes);
  std::vector<std::thread> workers;
  for (uint64_t begin = 0; begin < budget_bytes_; begin += share) {
    workers.emplace_back([this, begin, end = std::min(begin + share, budget_bytes_)] {
      for (uint64_t offset = begin; offset < end; offset += 4096) base_[offset] = std::byte{0};
    });
  }
  for (std::thread& worker : workers) worker.join();
}

FramePool* HostArena::NewPool(uint64_t frame_bytes, std::string owner) {
  MutexLock lock(&mutex_);
  pools_.push_back(std::unique_ptr<FramePool>(new FramePool(frame_bytes, std::move(owner))));
  return pools_.back().get();
}

bool HostArena::TryAllocateRun(FramePool* pool, FrameRef* frame) {
  const auto run = static_cast<uint32_t>((pool->frame_bytes() + kSlabBytes - 1) / kSlabBytes);
  // The lowest run of free slabs, which may reach into slabs that were never used.
  uint32_t first = UINT32_MAX;
  uint32_t length = 0;
  for (const uint32_t slab : free_slabs_) {
    length = (length > 0 && slab == first + length) ? length + 1 : 1;
    if (length == 1) first = slab;
    if (length == run) break;
  }
  const auto known = static_cast<uint32_t>(slabs_.size());
  if (length < run) {
    if (length == 0 || first + length != known) {
      first = known;
    }
    if ((uint64_t{first} + run) * kSlabBytes > budget_bytes_) return false;
    slabs_.resize(first + run);
  }
  for (uint32_t slab = first; slab < first + run; ++slab) {
    free_slabs_.erase(slab);
    slabs_[slab] = Slab{pool, 1, run, {}};
  }
  *frame = FrameRef::Make(kHostArena, uint64_t{first} * kSlabBytes);
  used_bytes_ += uint64_t{run} * kSlabBytes;
  return true;
}

bool HostArena::TryAllocate(FramePool* pool, FrameRef* frame) {
  if (pool->frame_bytes() > kSlabBytes) return TryAllocateRun(pool, frame);
  if (pool->partial_.empty()) {
    uint32_t slab = 0;
    if (!free_slabs_.empty()) {
      slab = *free_slabs_.begin();
      free_slabs_.erase(free_slabs_.begin());
    } else {
      slab = static_cast<uint32_t>(slabs_.size());
      if ((uint64_t{slab} + 1) * kSlabBytes > budget_bytes_) return false;
      slabs_.emplace_back();
    }
    const uint64_t frames = FramesPerSlab(pool->frame_bytes());
    Slab& fresh = slabs_[slab];
    fresh = Slab{pool, 0, 0, std::vector<uint64_t>((frames + 63) / 64, ~uint64_t{0})};
    if (frames % 64 != 0) fresh.free_bits.back() = (uint64_t{1} << (frames % 64)) - 1;
    pool->partial_.insert(slab);
  }
  const uint32_t number = *pool->partial_.begin();
  Slab& slab = slabs_[number];
  for (size_t word = 0; word < slab.free_bits.size(); ++word) {
    if (slab.free_bits[word] == 0) continue;
    const auto bit = static_cast<uint64_t>(std::countr_zero(slab.free_bits[word]));
    slab.free_bits[word] &= slab.free_bits[word] - 1;
    *frame = FrameRef::Make(
        kHostArena, uint64_t{number} * kSlabBytes + (word * 64 + bit) * pool->frame_bytes());
    ++slab.used;
    used_bytes_ += pool->frame_bytes();
    if (slab.used == FramesPerSlab(pool->frame_bytes())) pool->partial_.erase(number);
    return true;
  }
  GEARDB_CHECK(false && "a partial slab has a free frame");
  return false;
}

uint64_t HostArena::FramesMax(uint64_t frame_bytes) const {
  const uint64_t slabs = budget_bytes_ / kSlabBytes;
  if (frame_bytes > kSlabBytes) return slabs / ((frame_bytes + kSlabBytes - 1) / kSlabBytes);
  return slabs * FramesPerSlab(frame_bytes);
}

std::string HostArena::UsageText() const {
  std::string text = std::to_string(used_bytes_) + " bytes of frames in use";
  const uint64_t owned_bytes = (slabs_.size() - free_slabs_.size()) * kSlabBytes;
  if (const uint64_t held_bytes = owned_bytes - used_bytes_; held_bytes > 0) {
    text += ", " + std::to_string(held_bytes) + " bytes unused in their slabs of " +
            std::to_string(kSlabBytes) + " bytes, each of one table until it is empty";
    uint64_t most_bytes = 0;
    const FramePool* most = nullptr;
    for (const auto& pool : pools_) {
      uint64_t bytes = 0;
      for (const uint32_t slab : pool->partial_) {
        bytes += kSlabBytes - slabs_[slab].used * pool->frame_bytes();
      }
      if (bytes <= most_bytes) continue;
      most_bytes = bytes;
      most = pool.get();
    }
    if (most != nullptr) {
      text += " (" + std::to_string(most_bytes) + " in " + std::to_string(most->partial_.size()) +
              " of " + most->owner_ + ")";
    }
  }
  if (const uint64_t free_bytes = budget_bytes_ - owned_bytes; free_bytes > 0) {
    text += ", " + std::to_string(free_bytes) + " bytes of free slabs, not enough side by side";
  }
  return text;
}

Result<FrameRef> HostArena::Allocate(FramePool* pool, Deadline deadline) {
  MutexLock lock(&mutex_);
  FrameRef frame;
  // A pool takes another slab only when what it has given up is not free yet.
  if (pool->partial_.empty()) ReclaimRetired();
  if (TryAllocate(pool, &frame)) return frame;
  for (;;) {
    ReclaimRetired();
    if (TryAllocate(pool, &frame)) return frame;
    if (retired_.empty() || deadline.passed()) {
      return Status::ResourceExhausted("no frame of ", pool->frame_bytes(), " bytes for ",
                                       pool->owner_, ": the frame budget of ", budget_bytes_,
                                       " bytes has ", UsageText());
    }
    // Readers do not announce that they leave: look again soon.
    freed_.WaitUntil(&mutex_, Deadline::AfterMs(kReclaimPollMs));
  }
}

void HostArena::Release(FramePool* pool, FrameRef frame) {
  const auto number = static_cast<uint32_t>(frame.offset() / kSlabBytes);
  Slab& slab = slabs_[number];
  GEARDB_CHECK(slab.owner == pool && slab.used > 0);
  if (slab.run > 0) {
    const uint32_t run = slab.run;
    for (uint32_t i = number; i < number + run; ++i) {
      slabs_[i] = Slab{};
      free_slabs_.insert(i);
    }
    used_bytes_ -= uint64_t{run} * kSlabBytes;
    return;
  }
  const uint64_t index = frame.offset() % kSlabBytes / pool->frame_bytes();
  slab.free_bits[index / 64] |= uint64_t{1} << (index % 64);
  used_bytes_ -= pool->frame_bytes();
  if (--slab.used == 0) {
    pool->partial_.erase(number);
    slab = Slab{};
    free_slabs_.insert(number);
  } else {
    pool->partial_.insert(number);
  }
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

uint64_t HostArena::used_bytes() const {
  MutexLock lock(&mutex_);
  return used_bytes_;
}

}  // namespace geardb::engine
