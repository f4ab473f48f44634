// FaultEnv: crashes, failures and damage.
#include <algorithm>
#include <cstring>

#include "tests/testing/fault_env.h"

namespace geardb::testing {

std::set<FaultEnv::InodePtr, FaultEnv::InodeLess> FaultEnv::AllInodes() {
  std::set<InodePtr, InodeLess> all;
  for (const auto& [name, inode] : names_) all.insert(inode);
  for (const auto& [name, inode] : synced_names_) all.insert(inode);
  for (const NameChange& change : name_changes_) all.insert(change.inode);
  return all;
}

void FaultEnv::WriteBackLocked() {
  for (const InodePtr& inode : AllInodes()) {
    if (inode->map == nullptr) continue;
    for (uint64_t sector = 0; sector < inode->size() / kSectorBytes; ++sector) {
      if (!random_.OneIn(3)) continue;
      const std::byte* const now = inode->front() + sector * kSectorBytes;
      if (inode->older.count(sector) == 0 &&
          std::memcmp(now, inode->map_synced.data() + sector * kSectorBytes, kSectorBytes) == 0) {
        continue;
      }
      KeepOlder(inode.get(), sector);
    }
  }
}

void FaultEnv::WriteBackSome() {
  MutexLock lock(&mutex_);
  WriteBackLocked();
}

// Chooses among everything that the disk may hold now.
void FaultEnv::LosePowerOf(Inode* inode) {
  const uint64_t mode = random_.Below(4);  // 0: nothing unsynced is left, 1: all of it.
  for (auto& [sector, versions] : inode->older) {
    const uint64_t at = sector * kSectorBytes;
    if (at >= inode->size()) continue;
    // One beyond the older versions is the current one.
    const uint64_t pick = mode == 0   ? 0
                          : mode == 1 ? versions.size()
                                      : random_.Below(versions.size() + 1);
    if (pick == versions.size()) continue;
    std::memcpy(inode->bytes.data() + at, versions[pick].data(),
                std::min(kSectorBytes, inode->size() - at));
  }
  inode->older.clear();
  inode->given_up.clear();
  if (inode->size() > inode->synced_size && random_.OneIn(2)) {
    inode->bytes.resize(inode->synced_size);
  }
}

void FaultEnv::LoseNames() {
  std::map<std::string, InodePtr> names = synced_names_;
  for (const NameChange& change : name_changes_) {
    if (random_.OneIn(2)) continue;
    switch (change.kind) {
      case NameChange::kCreate:
        names[change.from] = change.inode;
        break;
      case NameChange::kRemove:
        names.erase(change.from);
        break;
      case NameChange::kRename:
        if (names.count(change.from) && names[change.from] == change.inode) {
          names.erase(change.from);
        }
        names[change.to] = change.inode;
        break;
    }
  }
  names_ = std::move(names);
  for (const std::string& lost : unsynced_directories_) {
    if (random_.OneIn(2)) continue;
    const auto inside = [&](const std::string& path) {
      return path == lost || path.starts_with(lost + "/");
    };
    std::erase_if(names_, [&](const auto& entry) { return inside(entry.first); });
    std::erase_if(directories_, inside);
  }
  unsynced_directories_.clear();
}

void FaultEnv::LosePower() {
  for (const InodePtr& inode : AllInodes()) LosePowerOf(inode.get());
  LoseNames();
}

// Files take their mapped bytes back; what was only stored stays unsynced.
void FaultEnv::DetachMaps() {
  for (const InodePtr& inode : AllInodes()) {
    if (inode->map == nullptr) continue;
    for (uint64_t sector = 0; sector < inode->size() / kSectorBytes; ++sector) {
      const std::byte* const synced = inode->map_synced.data() + sector * kSectorBytes;
      if (inode->older.count(sector) != 0 ||
          std::memcmp(inode->front() + sector * kSectorBytes, synced, kSectorBytes) == 0) {
        continue;
      }
      std::memcpy(inode->older[sector].emplace_back().data(), synced, kSectorBytes);
    }
    inode->bytes.assign(inode->front(), inode->front() + inode->size());
    inode->map.reset();
    inode->map_synced.clear();
  }
}

void FaultEnv::CrashLocked(CrashKind kind) {
  DetachMaps();
  if (kind == CrashKind::kPowerLoss) {
    LosePower();
    synced_names_ = names_;
    name_changes_.clear();
    for (const InodePtr& inode : AllInodes()) inode->synced_size = inode->size();
  }
  locks_.clear();
  ++generation_;
  crashed_ = false;
  crash_at_ = UINT64_MAX;
}

void FaultEnv::Die() {
  MutexLock lock(&mutex_);
  DetachMaps();
  crashed_ = true;
}

void FaultEnv::Crash(CrashKind kind) {
  MutexLock lock(&mutex_);
  CrashLocked(kind);
}

std::unique_ptr<FaultEnv> FaultEnv::CopyAfterCrash(CrashKind kind, uint64_t seed) {
  auto copy = std::make_unique<FaultEnv>(seed);
  MutexLock lock(&mutex_);
  MutexLock copy_lock(&copy->mutex_);
  std::map<InodePtr, InodePtr, InodeLess> copies;
  const auto copied = [&](const InodePtr& inode) {
    InodePtr& twin = copies[inode];
    if (twin != nullptr) return twin;
    twin = std::make_shared<Inode>(inode->id);
    twin->bytes = inode->bytes;
    twin->map_synced = inode->map_synced;
    twin->older = inode->older;
    twin->given_up = inode->given_up;
    twin->synced_size = inode->synced_size;
    if (inode->map) {
      twin->map = std::make_shared<MapMemory>(inode->size());
      std::memcpy(twin->map->at, inode->front(), inode->size());
    }
    return twin;
  };
  copy->directories_ = directories_;
  copy->unsynced_directories_ = unsynced_directories_;
  copy->next_inode_ = next_inode_;
  for (const auto& [name, inode] : names_) copy->names_[name] = copied(inode);
  for (const auto& [name, inode] : synced_names_) copy->synced_names_[name] = copied(inode);
  for (const NameChange& change : name_changes_) {
    copy->name_changes_.push_back({change.kind, change.from, change.to, copied(change.inode)});
  }
  copy->disk_bytes_max_ = disk_bytes_max_;
  copy->direct_works_ = direct_works_;
  copy->direct_writes_work_ = direct_writes_work_;
  copy->maps_work_ = maps_work_;
  copy->CrashLocked(kind);
  return copy;
}

void FaultEnv::SetCrashAfter(uint64_t operations) {
  MutexLock lock(&mutex_);
  crash_at_ = changes_ + operations;
}

uint64_t FaultEnv::operations() const {
  MutexLock lock(&mutex_);
  return changes_;
}

bool FaultEnv::crashed() const {
  MutexLock lock(&mutex_);
  return crashed_;
}

void FaultEnv::FailSyncAfter(uint64_t syncs, bool full) {
  MutexLock lock(&mutex_);
  syncs_left_ = syncs;
  syncs_full_ = full;
}

void FaultEnv::FailWriteAfter(uint64_t writes) {
  MutexLock lock(&mutex_);
  writes_left_ = writes;
}

void FaultEnv::ClearFailures() {
  MutexLock lock(&mutex_);
  syncs_left_ = writes_left_ = UINT64_MAX;
}

void FaultEnv::set_disk_bytes_max(uint64_t bytes) {
  MutexLock lock(&mutex_);
  disk_bytes_max_ = bytes;
}

uint64_t FaultEnv::disk_bytes() const {
  MutexLock lock(&mutex_);
  uint64_t used = 0;
  for (const auto& [name, inode] : names_) used += inode->size();
  return used;
}

uint64_t FaultEnv::syncs() const {
  MutexLock lock(&mutex_);
  return syncs_;
}

void FaultEnv::FlipBit(const std::string& path, uint64_t offset, int bit) {
  MutexLock lock(&mutex_);
  const InodePtr inode = names_.at(path);
  const std::byte mask{static_cast<unsigned char>(1 << bit)};
  inode->front()[offset] ^= mask;
  if (inode->map) inode->map_synced[offset] ^= mask;
  const auto it = inode->older.find(offset / kSectorBytes);
  if (it == inode->older.end()) return;
  for (Sector& version : it->second) version[offset % kSectorBytes] ^= mask;
}

void FaultEnv::Damage(const std::string& path, uint64_t offset, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) FlipBit(path, offset + i, static_cast<int>(i % 8));
}

std::vector<std::byte> FaultEnv::Contents(const std::string& path) const {
  MutexLock lock(&mutex_);
  const auto it = names_.find(path);
  if (it == names_.end()) return {};
  return {it->second->front(), it->second->front() + it->second->size()};
}

void FaultEnv::Put(const std::string& path, std::span<const std::byte> bytes) {
  MutexLock lock(&mutex_);
  auto inode = std::make_shared<Inode>(next_inode_++);
  inode->bytes.assign(bytes.begin(), bytes.end());
  inode->synced_size = bytes.size();
  directories_.insert(DirectoryOf(path));
  names_[path] = inode;
  synced_names_[path] = inode;
}

}  // namespace geardb::testing
