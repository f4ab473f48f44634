// FaultEnv: a file system in memory that fails the way real ones do, driven by a seed.
//
// The fault model
//   Death of the process (CrashKind::kProcess) loses nothing that was written: files, names and
//   every byte stored into a map are there afterwards. Open handles and locks are gone.
//   Power loss (CrashKind::kPowerLoss) keeps what was synced. A 512-byte sector is atomic. Every
//   sector written since its file's last sync holds any of the versions that it had since then,
//   independently of all others: so writes are lost, reordered and torn. A mapped file's sectors
//   are written back whenever the system likes: each holds its synced version, one of those that
//   were seen by a random write-back, or the latest. A size that grew is the old or the new one.
//   Creations, renames and removals since the last sync of their directory each happened or not.
//   A directory that was made since the last sync of its parent is there with all it holds, or not
//   at all. Those without a parent are durable at once.
//   An operation that a crash interrupts (SetCrashAfter) is torn: of a write, any of its sectors
//   have happened. After it every operation fails until Crash() is called.
//   A full disk (set_disk_bytes_max) refuses growth with ResourceExhausted, half of a write done.
//   A failed sync (FailSyncAfter) leaves its writes unsynced; behind a page cache for ever, as on
//   Linux, unless they are written again: who reads past the cache sees what was there before.
//   Damage (FlipBit, Damage) hits synced bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"

namespace geardb::testing {

enum class CrashKind : uint8_t { kProcess, kPowerLoss };

/// SplitMix64: the tests' own random numbers, the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Below `n`; 0 when n is 0.
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : Next() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

/// Thread-safe. Files, maps and locks must be destroyed before the FaultEnv.
class FaultEnv final : public Env {
 public:
  static constexpr uint64_t kSectorBytes = 512;
  using Sector = std::array<std::byte, kSectorBytes>;

  explicit FaultEnv(uint64_t seed) : random_(seed) {}
  ~FaultEnv() override = default;

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Result<bool> Exists(const std::string& path) override;
  /// Unsupported until it was told.
  Result<uint64_t> FreeBytes(const std::string& directory) override;
  Status Remove(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status CreateDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) override;

  /// The process stops here: every operation fails from now on, and what it stores into its maps
  /// is no longer seen. Its objects can be destroyed without a trace.
  void Die();
  /// Die(), if it has not, then what the crash does to the disk; see the top. The files can be
  /// opened again; old handles answer IoError for ever.
  void Crash(CrashKind kind);
  /// This file system as it would be after a crash now, with a seed of its own. The original goes
  /// on. May be called from a crash hook.
  std::unique_ptr<FaultEnv> CopyAfterCrash(CrashKind kind, uint64_t seed);

  /// The `operations`-th change from now (1 is the next) is torn, and everything fails after it.
  void SetCrashAfter(uint64_t operations);
  /// Changes (writes, syncs, creations, renames, removals) so far.
  uint64_t operations() const;
  bool crashed() const;

  /// The `syncs`-th Sync of a file from now (1 is the next), and all after it, fail; with `full`
  /// as on a device that is full below its file system.
  void FailSyncAfter(uint64_t syncs, bool full = false);
  /// The `writes`-th Write from now, and all after it, fail.
  void FailWriteAfter(uint64_t writes);
  void ClearFailures();
  void set_disk_bytes_max(uint64_t bytes);
  uint64_t disk_bytes() const;
  /// What FreeBytes says; nothing else heeds it. Set while nobody asks.
  void set_free_bytes(uint64_t bytes) { free_bytes_ = bytes; }
  /// Called as the Sync of a file begins, on its thread. Set while none runs.
  void set_sync_hook(std::function<void()> hook) { sync_hook_ = std::move(hook); }
  /// What the file system offers.
  void set_direct(bool works) { direct_works_ = works; }
  /// Some file systems open a file as direct and refuse its writes with EINVAL.
  void set_direct_writes(bool work) { direct_writes_work_ = work; }
  void set_maps(bool work) { maps_work_ = work; }

  /// Mapped files: random sectors reach the disk, as the system's write-back does.
  void WriteBackSome();

  /// Changes a byte of a file, in every version that it may have after a crash.
  void FlipBit(const std::string& path, uint64_t offset, int bit);
  void Damage(const std::string& path, uint64_t offset, uint64_t bytes);
  /// A file's bytes as a process would read them.
  std::vector<std::byte> Contents(const std::string& path) const;
  /// Puts a file there, durable.
  void Put(const std::string& path, std::span<const std::byte> bytes);
  uint64_t syncs() const;

 private:
  class FaultFile;
  class FaultMapping;
  class FaultLock;

  // Memory of a mapped file: the file's bytes, twice in a row.
  struct MapMemory {
    explicit MapMemory(uint64_t bytes);
    ~MapMemory();
    MapMemory(const MapMemory&) = delete;
    MapMemory& operator=(const MapMemory&) = delete;
    std::byte* at = nullptr;
    uint64_t bytes = 0;
  };

  struct Inode {
    explicit Inode(uint64_t number) : id(number) {}
    const uint64_t id;
    std::vector<std::byte> bytes;  // Unless mapped.
    std::shared_ptr<MapMemory> map;
    std::vector<std::byte> map_synced;  // Of a mapped file: what is on disk for certain.
    // Older versions that a sector may have after power loss; the first is the synced one.
    std::map<uint64_t, std::vector<Sector>> older;
    std::set<uint64_t> given_up;  // Sectors that no sync writes, until they are written again.
    uint64_t synced_size = 0;

    uint64_t size() const { return map ? map->bytes : bytes.size(); }
    std::byte* front() { return map ? map->at : bytes.data(); }
  };
  using InodePtr = std::shared_ptr<Inode>;
  // By number, not by address: the same seed must choose the same.
  struct InodeLess {
    bool operator()(const InodePtr& a, const InodePtr& b) const { return a->id < b->id; }
  };

  struct NameChange {
    enum Kind { kCreate, kRename, kRemove } kind;
    std::string from, to;
    InodePtr inode;
  };
  struct LockState {
    bool exclusive = false;
    int owners = 0;
  };

  Status CheckAlive(uint64_t generation) const GEARDB_REQUIRES(mutex_);
  bool CountChange() GEARDB_REQUIRES(mutex_);
  Status Died() const;
  void KeepOlder(Inode* inode, uint64_t sector) GEARDB_REQUIRES(mutex_);
  void WriteSectors(Inode* inode, uint64_t offset, std::span<const std::byte> from, bool torn)
      GEARDB_REQUIRES(mutex_);
  Status Grow(Inode* inode, uint64_t bytes) GEARDB_REQUIRES(mutex_);
  void DetachMaps() GEARDB_REQUIRES(mutex_);
  void LosePower() GEARDB_REQUIRES(mutex_);
  void LosePowerOf(Inode* inode) GEARDB_REQUIRES(mutex_);
  void LoseNames() GEARDB_REQUIRES(mutex_);
  void CrashLocked(CrashKind kind) GEARDB_REQUIRES(mutex_);
  void WriteBackLocked() GEARDB_REQUIRES(mutex_);
  std::set<InodePtr, InodeLess> AllInodes() GEARDB_REQUIRES(mutex_);
  static std::string DirectoryOf(const std::string& path);

  mutable Mutex mutex_;
  Random random_ GEARDB_GUARDED_BY(mutex_);
  std::set<std::string> directories_ GEARDB_GUARDED_BY(mutex_);
  std::set<std::string> unsynced_directories_ GEARDB_GUARDED_BY(mutex_);
  std::map<std::string, InodePtr> names_ GEARDB_GUARDED_BY(mutex_);
  std::map<std::string, InodePtr> synced_names_ GEARDB_GUARDED_BY(mutex_);
  std::vector<NameChange> name_changes_ GEARDB_GUARDED_BY(mutex_);
  std::map<std::string, LockState> locks_ GEARDB_GUARDED_BY(mutex_);
  uint64_t next_inode_ GEARDB_GUARDED_BY(mutex_) = 1;
  uint64_t generation_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool crashed_ GEARDB_GUARDED_BY(mutex_) = false;
  uint64_t changes_ GEARDB_GUARDED_BY(mutex_) = 0;
  uint64_t crash_at_ GEARDB_GUARDED_BY(mutex_) = UINT64_MAX;
  uint64_t writes_left_ GEARDB_GUARDED_BY(mutex_) = UINT64_MAX;
  uint64_t syncs_left_ GEARDB_GUARDED_BY(mutex_) = UINT64_MAX;
  bool syncs_full_ GEARDB_GUARDED_BY(mutex_) = false;
  uint64_t syncs_ GEARDB_GUARDED_BY(mutex_) = 0;
  uint64_t disk_bytes_max_ GEARDB_GUARDED_BY(mutex_) = UINT64_MAX;
  std::optional<uint64_t> free_bytes_;
  std::function<void()> sync_hook_;
  bool direct_works_ = true;
  bool direct_writes_work_ = true;
  bool maps_work_ = true;
};

}  // namespace geardb::testing
