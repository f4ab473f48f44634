#include "tests/testing/fault_env.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace geardb::testing {
namespace {

constexpr size_t kOlderMax = 5;
constexpr uint64_t kPageBytes = 4096;

}  // namespace

FaultEnv::MapMemory::MapMemory(uint64_t size) : bytes(size) {
  const int fd = ::memfd_create("geardb_fault_env", MFD_CLOEXEC);
  GEARDB_CHECK(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0);
  void* const space = ::mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  GEARDB_CHECK(space != MAP_FAILED);
  at = static_cast<std::byte*>(space);
  for (uint64_t half = 0; half < 2; ++half) {
    GEARDB_CHECK(::mmap(at + half * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                        0) != MAP_FAILED);
  }
  ::close(fd);
}

FaultEnv::MapMemory::~MapMemory() { ::munmap(at, 2 * bytes); }

class FaultEnv::FaultMapping final : public Mapping {
 public:
  explicit FaultMapping(std::shared_ptr<MapMemory> memory)
      : Mapping(memory->at, memory->bytes), memory_(std::move(memory)) {}

 private:
  const std::shared_ptr<MapMemory> memory_;  // Outlives the file after a crash.
};

class FaultEnv::FaultLock final : public FileLock {
 public:
  FaultLock(FaultEnv* env, std::string path, uint64_t generation)
      : env_(env), path_(std::move(path)), generation_(generation) {}
  ~FaultLock() override {
    MutexLock lock(&env_->mutex_);
    if (env_->generation_ != generation_) return;
    LockState& state = env_->locks_[path_];
    if (--state.owners == 0) env_->locks_.erase(path_);
  }

 private:
  FaultEnv* const env_;
  const std::string path_;
  const uint64_t generation_;
};

class FaultEnv::FaultFile final : public File {
 public:
  FaultFile(FaultEnv* env, std::string path, InodePtr inode, FileMode mode, bool direct,
            std::string note, uint64_t generation)
      : env_(env),
        path_(std::move(path)),
        inode_(std::move(inode)),
        mode_(mode),
        direct_(direct),
        note_(std::move(note)),
        generation_(generation) {}

  Result<size_t> Read(uint64_t offset, std::span<std::byte> into) override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    GEARDB_RETURN_IF_ERROR(CheckAligned(offset, into));
    if (offset >= inode_->size() || into.empty()) return size_t{0};
    const size_t n = std::min<uint64_t>(into.size(), inode_->size() - offset);
    std::memcpy(into.data(), inode_->front() + offset, n);
    if (direct_) ReadPastCache(offset, into.first(n));
    return n;
  }

  Status Write(uint64_t offset, std::span<const std::byte> from) override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    if (mode_ == FileMode::kRead) return Status::IoError("write ", path_, ": opened for reading");
    GEARDB_RETURN_IF_ERROR(CheckAligned(offset, from));
    if (direct_ && !env_->direct_writes_work_) {
      return Status::Unsupported("write ", path_, ": Invalid argument");
    }
    const bool dies = env_->CountChange();
    const bool refused = env_->writes_left_ != UINT64_MAX && --env_->writes_left_ == 0;
    if (refused) env_->writes_left_ = 1;
    if (offset + from.size() > inode_->size()) {
      const Status grown = env_->Grow(inode_.get(), offset + from.size());
      if (!grown.ok()) {
        const uint64_t fits = inode_->size() > offset ? inode_->size() - offset : 0;
        env_->WriteSectors(inode_.get(), offset, from.first(fits), /*torn=*/false);
        return grown;
      }
    }
    env_->WriteSectors(inode_.get(), offset, from, dies || refused);
    if (dies) return env_->Died();
    if (refused) return Status::IoError("write ", path_, " at ", offset, ": Input/output error");
    return Status::Ok();
  }

  Status Sync() override {
    if (env_->sync_hook_) env_->sync_hook_();
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    if (env_->CountChange()) return env_->Died();
    ++env_->syncs_;
    if (env_->syncs_left_ != UINT64_MAX && --env_->syncs_left_ == 0) {
      env_->syncs_left_ = 1;
      if (!direct_) {
        for (const auto& [sector, versions] : inode_->older) inode_->given_up.insert(sector);
      }
      if (env_->syncs_full_) {
        return Status::ResourceExhausted("fdatasync ", path_, ": No space left on device");
      }
      return Status::IoError("fdatasync ", path_, ": Input/output error");
    }
    std::erase_if(inode_->older, [this](const auto& of_sector) {
      return inode_->given_up.count(of_sector.first) == 0;
    });
    inode_->synced_size = inode_->size();
    if (inode_->map) inode_->map_synced.assign(inode_->front(), inode_->front() + inode_->size());
    return Status::Ok();
  }

  Result<uint64_t> Size() override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    return inode_->size();
  }

  Status Allocate(uint64_t bytes) override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    if (bytes <= inode_->size()) return Status::Ok();
    if (env_->CountChange()) return env_->Died();
    return env_->Grow(inode_.get(), bytes);
  }

  Result<FileExtent> NextWritten(uint64_t offset) override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    const uint64_t size = inode_->size();
    const auto written = [&](uint64_t page) {
      static constexpr std::byte kZeros[kPageBytes] = {};
      return std::memcmp(inode_->front() + page, kZeros, std::min(kPageBytes, size - page)) != 0;
    };
    uint64_t page = offset / kPageBytes * kPageBytes;
    while (page < size && !written(page)) page += kPageBytes;
    if (page >= size) return FileExtent{size, size};
    FileExtent extent{std::max(page, offset), page};
    while (page < size && written(page)) page += kPageBytes;
    extent.end = std::min(page, size);
    return extent;
  }

  Result<std::unique_ptr<Mapping>> Map() override {
    MutexLock lock(&env_->mutex_);
    GEARDB_RETURN_IF_ERROR(env_->CheckAlive(generation_));
    if (!env_->maps_work_) return Status::Unsupported("map ", path_, " shared: No such device");
    const uint64_t size = inode_->size();
    if (size == 0 || size % kPageBytes != 0) return Status::InvalidArgument("map ", path_);
    if (inode_->map == nullptr) {
      auto memory = std::make_shared<MapMemory>(size);
      std::memcpy(memory->at, inode_->bytes.data(), size);
      inode_->map_synced = inode_->bytes;
      for (const auto& [sector, versions] : inode_->older) {
        std::memcpy(inode_->map_synced.data() + sector * kSectorBytes, versions.front().data(),
                    kSectorBytes);
      }
      inode_->map = std::move(memory);
    }
    return std::unique_ptr<Mapping>(std::make_unique<FaultMapping>(inode_->map));
  }

  bool direct() const override { return direct_; }
  std::string_view direct_note() const override { return note_; }
  const std::string& path() const override { return path_; }

 private:
  // What a failed sync has left is in the page cache alone.
  void ReadPastCache(uint64_t offset, std::span<std::byte> into) const
      GEARDB_REQUIRES(env_->mutex_) {
    for (const uint64_t sector : inode_->given_up) {
      const uint64_t at = sector * kSectorBytes;
      if (at < offset || at + kSectorBytes > offset + into.size()) continue;
      const Sector& on_disk = inode_->older.at(sector).front();
      std::memcpy(into.data() + (at - offset), on_disk.data(), kSectorBytes);
    }
  }
  Status CheckAligned(uint64_t offset, std::span<const std::byte> bytes) const {
    if (!direct_ || (offset % kPageBytes == 0 && bytes.size() % kPageBytes == 0 &&
                     reinterpret_cast<uintptr_t>(bytes.data()) % kPageBytes == 0)) {
      return Status::Ok();
    }
    return Status::Unsupported("direct I/O of ", path_, " at ", offset, ": Invalid argument");
  }

  FaultEnv* const env_;
  const std::string path_;
  const InodePtr inode_;
  const FileMode mode_;
  const bool direct_;
  const std::string note_;
  const uint64_t generation_;
};

std::string FaultEnv::DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Status FaultEnv::Died() const { return Status::IoError("the process has died"); }

Status FaultEnv::CheckAlive(uint64_t generation) const {
  return crashed_ || generation != generation_ ? Died() : Status::Ok();
}

// Counts a change; true when the crash comes in the middle of it.
bool FaultEnv::CountChange() {
  ++changes_;
  if (random_.OneIn(4)) WriteBackLocked();
  if (changes_ < crash_at_) return false;
  DetachMaps();
  crashed_ = true;
  return true;
}

// The current version of a sector becomes one that power loss may bring back.
void FaultEnv::KeepOlder(Inode* inode, uint64_t sector) {
  Sector now = {};
  const uint64_t at = sector * kSectorBytes;
  if (at < inode->size()) {
    std::memcpy(now.data(), inode->front() + at, std::min(kSectorBytes, inode->size() - at));
  }
  inode->given_up.erase(sector);
  std::vector<Sector>& versions = inode->older[sector];
  if (!versions.empty() && versions.back() == now) return;
  if (inode->map && versions.empty()) {
    Sector synced;
    std::memcpy(synced.data(), inode->map_synced.data() + at, kSectorBytes);
    versions.push_back(synced);
  }
  versions.push_back(now);
  if (versions.size() > kOlderMax) versions.erase(versions.begin() + 1);
}

void FaultEnv::WriteSectors(Inode* inode, uint64_t offset, std::span<const std::byte> from,
                            bool torn) {
  const int mode = torn ? static_cast<int>(random_.Below(3)) : 0;
  while (!from.empty()) {
    const uint64_t sector = offset / kSectorBytes;
    const uint64_t n = std::min<uint64_t>(from.size(), (sector + 1) * kSectorBytes - offset);
    const bool happens = !torn || (mode != 1 && random_.OneIn(2));
    if (happens) {
      KeepOlder(inode, sector);
      std::memcpy(inode->front() + offset, from.data(), n);
    }
    offset += n;
    from = from.subspan(n);
  }
}

Status FaultEnv::Grow(Inode* inode, uint64_t bytes) {
  uint64_t used = 0;
  for (const auto& [name, other] : names_) used += other->size();
  if (inode->map || used + bytes - inode->size() > disk_bytes_max_) {
    return Status::ResourceExhausted("grow a file by ", bytes - inode->size(),
                                     " bytes: No space left on device");
  }
  inode->bytes.resize(bytes);
  return Status::Ok();
}

Result<std::unique_ptr<File>> FaultEnv::OpenFile(const std::string& path, FileOptions options) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  auto it = names_.find(path);
  if (it != names_.end() && options.mode == FileMode::kCreateNew) {
    return Status::AlreadyExists("open ", path, ": File exists");
  }
  if (it == names_.end()) {
    const bool creates = options.mode == FileMode::kCreate || options.mode == FileMode::kCreateNew;
    if (!creates || directories_.count(DirectoryOf(path)) == 0) {
      return Status::NotFound("open ", path, ": No such file or directory");
    }
    if (CountChange()) return Died();
    auto inode = std::make_shared<Inode>(next_inode_++);
    it = names_.emplace(path, inode).first;
    name_changes_.push_back({NameChange::kCreate, path, "", inode});
  }
  const bool direct = options.direct && direct_works_;
  return std::unique_ptr<File>(std::make_unique<FaultFile>(
      this, path, it->second, options.mode, direct,
      options.direct && !direct ? "O_DIRECT: Invalid argument" : "", generation_));
}

Result<std::vector<std::string>> FaultEnv::List(const std::string& directory) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  if (directories_.count(directory) == 0) {
    return Status::NotFound("list ", directory, ": No such file or directory");
  }
  std::vector<std::string> names;
  for (const auto& [path, inode] : names_) {
    if (DirectoryOf(path) == directory) names.push_back(path.substr(directory.size() + 1));
  }
  for (const std::string& path : directories_) {
    if (DirectoryOf(path) == directory && path != directory) {
      names.push_back(path.substr(directory.size() + 1));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<bool> FaultEnv::Exists(const std::string& path) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  return names_.count(path) != 0 || directories_.count(path) != 0;
}

Result<uint64_t> FaultEnv::FreeBytes(const std::string& directory) {
  if (!free_bytes_) return Env::FreeBytes(directory);
  MutexLock lock(&mutex_);
  if (directories_.count(directory) == 0) return Status::NotFound("what is free for ", directory);
  return *free_bytes_;
}

Status FaultEnv::Remove(const std::string& path) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  const auto it = names_.find(path);
  if (it == names_.end()) return Status::NotFound("remove ", path, ": No such file or directory");
  if (CountChange()) return Died();
  name_changes_.push_back({NameChange::kRemove, path, "", it->second});
  names_.erase(it);
  return Status::Ok();
}

Status FaultEnv::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  const auto it = names_.find(from);
  if (it == names_.end()) return Status::NotFound("rename ", from, ": No such file or directory");
  if (CountChange()) return Died();
  const InodePtr inode = it->second;
  name_changes_.push_back({NameChange::kRename, from, to, inode});
  names_.erase(it);
  names_[to] = inode;
  return Status::Ok();
}

Status FaultEnv::CreateDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  const bool made = directories_.insert(path).second;
  if (made && !DirectoryOf(path).empty()) unsynced_directories_.insert(path);
  return Status::Ok();
}

Status FaultEnv::SyncDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  if (CountChange()) return Died();
  const auto inside = [&](const std::string& name) {
    return !name.empty() && DirectoryOf(name) == path;
  };
  std::erase_if(unsynced_directories_, inside);
  std::erase_if(name_changes_, [&](const NameChange& c) { return inside(c.from) || inside(c.to); });
  std::erase_if(synced_names_, [&](const auto& entry) { return inside(entry.first); });
  for (const auto& [name, inode] : names_) {
    if (inside(name)) synced_names_[name] = inode;
  }
  return Status::Ok();
}

Result<std::unique_ptr<FileLock>> FaultEnv::Lock(const std::string& path, LockMode mode) {
  MutexLock lock(&mutex_);
  GEARDB_RETURN_IF_ERROR(CheckAlive(generation_));
  const bool exclusive = mode == LockMode::kExclusive;
  if (names_.count(path) == 0) {
    if (!exclusive) return Status::NotFound("open ", path, ": No such file or directory");
    auto inode = std::make_shared<Inode>(next_inode_++);
    names_[path] = inode;
    synced_names_[path] = inode;
  }
  LockState& state = locks_[path];
  if (state.owners > 0 && (exclusive || state.exclusive)) {
    return Status::FailedPrecondition(path, " is held by process ", ::getpid());
  }
  state.exclusive = exclusive;
  ++state.owners;
  return std::unique_ptr<FileLock>(std::make_unique<FaultLock>(this, path, generation_));
}

}  // namespace geardb::testing
