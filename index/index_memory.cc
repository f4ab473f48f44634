#include "index/index_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/errno_status.h"
#include "base/types.h"

namespace geardb::index {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMediumStep = uint64_t{64} << 10;
constexpr uint64_t kLargeStep = uint64_t{1} << 20;
constexpr uint64_t kReservePerBudget = 1024;
constexpr uint64_t kReserveMax = uint64_t{1} << 45;

}  // namespace

Region::~Region() { Release(); }

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  Release();
  memory_ = std::exchange(other.memory_, nullptr);
  base_ = std::exchange(other.base_, nullptr);
  offset_ = other.offset_;
  reserved_bytes_ = other.reserved_bytes_;
  parts_ = std::move(other.parts_);
  name_ = std::move(other.name_);
  return *this;
}

void Region::Release(uint64_t kept_charged) {
  if (memory_ == nullptr) return;
  memory_->GiveBack({.offset = offset_,
                     .reserved_bytes = reserved_bytes_,
                     .committed_bytes = committed_bytes(),
                     .kept_charged = kept_charged});
  memory_ = nullptr;
  parts_.clear();
}

uint64_t Region::committed_bytes() const {
  uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.committed_bytes;
  return sum;
}

Status Region::Commit(size_t part, uint64_t bytes) { return CommitBeyond(part, bytes, 0); }

Status Region::CommitInPlaceOf(Region* old, size_t part, uint64_t bytes) {
  GEARDB_CHECK(!old->valid() || old->memory_ == memory_);
  const uint64_t charged = old->committed_bytes();
  const uint64_t before = committed_bytes();
  GEARDB_RETURN_IF_ERROR(CommitBeyond(part, bytes, charged));
  old->Release(std::min(charged, committed_bytes() - before));
  return Status::Ok();
}

Status Region::CommitBeyond(size_t part, uint64_t bytes, uint64_t charged) {
  GEARDB_CHECK(valid() && part < parts_.size());
  Part& target = parts_[part];
  if (bytes <= target.committed_bytes) return Status::Ok();
  if (bytes > target.reserved_bytes) {
    return Status::ResourceExhausted("index part ", part, " of '", name_, "' was laid out for ",
                                     target.reserved_bytes, " bytes, ", bytes,
                                     " are asked for: ", memory_->budget_name_, " = ",
                                     memory_->budget_bytes_, " is too small for it");
  }
  const uint64_t step = bytes <= kMediumStep ? kPageBytes
                        : bytes < kLargeStep ? kMediumStep
                                             : kLargeStep;
  const uint64_t wanted = std::min(AlignUp(bytes, step), target.reserved_bytes);
  const uint64_t more = wanted - target.committed_bytes;
  GEARDB_RETURN_IF_ERROR(memory_->Charge(more - std::min(more, charged), name_));
  const uint64_t begin = offset_ + target.offset;
  // Pieces that were whole before have theirs.
  const uint64_t from = std::max(begin, AlignDown(begin + target.committed_bytes, kHugePageBytes));
  memory_->huge_pages_.Take(memory_->base_ + from, begin + wanted - from);
  target.committed_bytes = wanted;
  return Status::Ok();
}

Result<std::unique_ptr<IndexMemory>> IndexMemory::Create(const Options& options) {
  if (options.budget_bytes == 0) {
    return Status::InvalidArgument("index memory '", options.name, "' has a budget of 0 bytes");
  }
  std::unique_ptr<IndexMemory> memory(new IndexMemory());
  memory->name_ = options.name;
  memory->budget_name_ = options.budget_name;
  memory->budget_bytes_ = options.budget_bytes;
  const uint64_t chosen =
      std::min(options.budget_bytes, kReserveMax / kReservePerBudget) * kReservePerBudget;
  memory->reserve_bytes_ =
      AlignUp(options.reserve_bytes != 0 ? options.reserve_bytes : chosen, kPageBytes);
  memory->fd_ = ::memfd_create(options.name.c_str(), MFD_CLOEXEC);
  if (memory->fd_ < 0) {
    return ErrnoStatus(errno, "memfd_create for index memory '", options.name, "'");
  }
  if (::ftruncate(memory->fd_, static_cast<off_t>(memory->reserve_bytes_)) != 0) {
    return ErrnoStatus(errno, "sizing index memory '", options.name, "' to ",
                       memory->reserve_bytes_, " bytes, for ", options.budget_name, " = ",
                       options.budget_bytes);
  }
  memory->base_ = MapShared(memory->fd_, memory->reserve_bytes_);
  if (memory->base_ == nullptr) {
    return ErrnoStatus(errno, "mapping ", memory->reserve_bytes_, " bytes of index memory '",
                       options.name, "', for ", options.budget_name, " = ", options.budget_bytes);
  }
  MutexLock lock(&memory->mutex_);
  memory->free_ranges_[0] = memory->reserve_bytes_;
  return memory;
}

IndexMemory::~IndexMemory() {
  if (base_ != nullptr) ::munmap(base_, reserve_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

Result<Region> IndexMemory::Reserve(std::string_view name, std::span<const uint64_t> part_bytes) {
  Region region;
  uint64_t total = 0;
  for (const uint64_t bytes : part_bytes) {
    const uint64_t whole = AlignUp(bytes, kPageBytes);
    region.parts_.push_back(Region::Part{total, whole, 0});
    total += whole;
  }
  region.name_ = name;
  MutexLock lock(&mutex_);
  for (auto range = free_ranges_.begin(); range != free_ranges_.end(); ++range) {
    const auto [offset, bytes] = *range;
    if (bytes < total) continue;
    free_ranges_.erase(range);
    if (bytes > total) free_ranges_[offset + total] = bytes - total;
    region.memory_ = this;
    region.offset_ = offset;
    region.base_ = base_ + offset;
    region.reserved_bytes_ = total;
    return region;
  }
  uint64_t taken = reserve_bytes_;
  for (const auto& [offset, bytes] : free_ranges_) taken -= bytes;
  return Status::ResourceExhausted("index memory '", name_, "': ", budget_name_, " = ",
                                   budget_bytes_, " is too small for '", name, "': it takes ",
                                   BudgetFor(taken + total), " at least");
}

uint64_t IndexMemory::BudgetFor(uint64_t reserve_bytes) const {
  const uint64_t budget = AlignUp(reserve_bytes / kReservePerBudget + 1, kLargeStep);
  // The space there is may be in pieces.
  return budget > budget_bytes_ ? budget : 2 * budget_bytes_;
}

Status IndexMemory::Charge(uint64_t bytes, std::string_view for_name) {
  uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_bytes_ - used) {
      return Status::ResourceExhausted("index memory '", name_, "': ", budget_name_, " = ",
                                       budget_bytes_, " is too small for '", for_name,
                                       "': it takes ", used + bytes, " at least; ", used,
                                       " are used, and it asks for ", bytes, " more");
    }
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return Status::Ok();
}

void IndexMemory::GiveBack(const Returned& range) {
  if (range.committed_bytes > 0 &&
      ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.offset),
                  static_cast<off_t>(range.reserved_bytes)) != 0) {
    // The range stays charged and is never handed out again: its bytes are not zero.
    return;
  }
  used_bytes_.fetch_sub(range.committed_bytes - range.kept_charged, std::memory_order_relaxed);
  if (range.reserved_bytes == 0) return;
  MutexLock lock(&mutex_);
  auto free = free_ranges_.emplace(range.offset, range.reserved_bytes).first;
  const auto after = std::next(free);
  if (after != free_ranges_.end() && free->first + free->second == after->first) {
    free->second += after->second;
    free_ranges_.erase(after);
  }
  if (free == free_ranges_.begin()) return;
  const auto before = std::prev(free);
  if (before->first + before->second == free->first) {
    before->second += free->second;
    free_ranges_.erase(free);
  }
}

}  // namespace geardb::index
