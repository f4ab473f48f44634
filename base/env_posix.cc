#include "base/env_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/bad_sectors.h"
#include "base/errno_status.h"
#include "base/fork.h"

namespace geardb {
namespace {

// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenRetrying(int directory, const char* path, int flags) {
  int fd;
  do {
    fd = ::openat(directory, path, flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// The system would end the path at the NUL, and look at another file.
Status CheckPath(const std::string& path) {
  const size_t nul = path.find('\0');
  if (nul == std::string::npos) return Status::Ok();
  std::string shown = path;
  for (size_t at = nul; at != std::string::npos; at = shown.find('\0')) {
    shown.replace(at, 1, "\\0");
  }
  return Status::InvalidArgument("the path '", shown, "' has a NUL at byte ", nul,
                                 ", where the system would end it");
}

Status RefuseKind(const std::string& path, mode_t mode) {
  const char* const kind = S_ISDIR(mode)    ? "a directory"
                           : S_ISFIFO(mode) ? "a FIFO"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  return Status::Corruption(path, " is ", kind, ", expected a regular file");
}

class PosixMapping final : public Mapping {
 public:
  PosixMapping(std::byte* at, uint64_t bytes) : Mapping(at, bytes) {}
  ~PosixMapping() override { ::munmap(data(), 2 * size()); }
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, int fd, bool direct, std::string direct_note)
      : path_(std::move(path)), fd_(fd), direct_(direct), direct_note_(std::move(direct_note)) {}
  ~PosixFile() override { ::close(fd_); }

  Result<size_t> Read(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t n =
          ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (n == 0) break;
      if (n < 0) {
        if (errno == EINTR) continue;
        const int error = errno;
        const auto around =
            error == EIO ? ReadAround(offset + done, into.subspan(done)) : std::optional<size_t>();
        if (around) return done + *around;  // At a file's end, perhaps some bytes more.
        return ErrnoStatus(error, "read ", path_, " at ", offset + done);
      }
      done += static_cast<size_t>(n);
    }
    return done;
  }

  Status Write(uint64_t offset, std::span<const std::byte> from) override {
    size_t done = 0;
    while (done < from.size()) {
      const ssize_t n =
          ::pwrite(fd_, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
      if (n < 0) {
        if (errno == EINTR) continue;
        if (direct_ && errno == EINVAL) {
          return Status::Unsupported("direct write of ", path_, " at ", offset + done, ", ",
                                     from.size() - done, " bytes: the file system refuses it");
        }
        return ErrnoStatus(errno, "write ", path_, " at ", offset + done, ", ", from.size() - done,
                           " bytes");
      }
      if (n == 0) return Status::IoError("write ", path_, " at ", offset + done, ": wrote nothing");
      done += static_cast<size_t>(n);
    }
    return Status::Ok();
  }

  Status Sync() override {
    if (::fdatasync(fd_) != 0) return ErrnoStatus(errno, "fdatasync ", path_);
    return Status::Ok();
  }

  Result<uint64_t> Size() override {
    struct stat status;
    if (::fstat(fd_, &status) != 0) return ErrnoStatus(errno, "fstat ", path_);
    return static_cast<uint64_t>(status.st_size);
  }

  Status Allocate(uint64_t bytes) override {
    struct stat status;
    if (::fstat(fd_, &status) != 0) return ErrnoStatus(errno, "fstat ", path_);
    const bool long_enough = static_cast<uint64_t>(status.st_size) >= bytes;
    if (long_enough && static_cast<uint64_t>(status.st_blocks) * 512 >= bytes) return Status::Ok();
    int error;
    do {
      error = ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == EOPNOTSUPP && long_enough) return Status::Ok();
    if (error == EOPNOTSUPP) error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
    if (error != 0) return ErrnoStatus(error, "allocate ", bytes, " bytes of ", path_);
    return Status::Ok();
  }

  Result<FileExtent> NextWritten(uint64_t offset) override {
    GEARDB_ASSIGN_OR_RETURN(const uint64_t size, Size());
    if (offset >= size) return FileExtent{size, size};
    const off_t begin = ::lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    if (begin < 0) {
      if (errno == ENXIO) return FileExtent{size, size};
      return FileExtent{offset, size};
    }
    const off_t end = ::lseek(fd_, begin, SEEK_HOLE);
    return FileExtent{static_cast<uint64_t>(begin), end < 0 ? size : static_cast<uint64_t>(end)};
  }

  void Prefetch(const FileExtent& extent) override {
    // Linux reads no more for one call than its read-ahead window, 128 KiB where nobody changed it.
    constexpr uint64_t kWindow = uint64_t{128} << 10;
    for (uint64_t at = extent.begin; at < extent.end; at += kWindow) {
      (void)::posix_fadvise(fd_, static_cast<off_t>(at),
                            static_cast<off_t>(std::min(kWindow, extent.end - at)),
                            POSIX_FADV_WILLNEED);
    }
  }

  Result<std::unique_ptr<Mapping>> Map() override {
    GEARDB_ASSIGN_OR_RETURN(const uint64_t size, Size());
    if (size == 0 || size % kDirectAlignment != 0) {
      return Status::InvalidArgument("map ", path_, ": ", size, " bytes is no multiple of ",
                                     kDirectAlignment);
    }
    void* const space = ::mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED) return ErrnoStatus(errno, "reserve ", 2 * size, " bytes for ", path_);
    std::byte* const at = static_cast<std::byte*>(space);
    for (int half = 0; half < 2; ++half) {
      if (::mmap(at + static_cast<uint64_t>(half) * size, size, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd_, 0) == MAP_FAILED) {
        const int error = errno;
        ::munmap(space, 2 * size);
        return Status::Unsupported("map ", path_,
                                   " shared: ", std::system_category().message(error));
      }
    }
    // No read-ahead around faults: it would fill the page cache with zeros from holes, which then
    // look written (NextWritten), and every open would read them.
    (void)::madvise(at, 2 * size, MADV_RANDOM);
    return std::unique_ptr<Mapping>(std::make_unique<PosixMapping>(at, size));
  }

  bool direct() const override { return direct_; }
  std::string_view direct_note() const override { return direct_note_; }
  const std::string& path() const override { return path_; }

 private:
  std::optional<size_t> ReadAround(uint64_t offset, std::span<std::byte> into) const {
    return ReadAroundBadSectors(offset, into, [this](uint64_t at, std::span<std::byte> part) {
      const auto from = static_cast<off_t>(at);
      (void)::posix_fadvise(fd_, from, static_cast<off_t>(part.size()), POSIX_FADV_DONTNEED);
      const ssize_t n = ::pread(fd_, part.data(), part.size(), from);
      return n < 0 ? std::nullopt : std::optional(static_cast<size_t>(n));
    });
  }

  const std::string path_;
  const int fd_;
  const bool direct_;
  const std::string direct_note_;
};

// Tries a direct read of one block: some file systems accept O_DIRECT at open and refuse it later.
// Returns 0 or the error.
int ProbeDirect(int fd) {
  void* const block = std::aligned_alloc(kDirectAlignment, kDirectAlignment);
  if (block == nullptr) return ENOMEM;
  const ssize_t n = ::pread(fd, block, kDirectAlignment, 0);
  const int error = n < 0 ? errno : 0;
  std::free(block);
  return error;
}

class PosixLock final : public FileLock {
 public:
  /// Of a file that is open, and not locked yet.
  explicit PosixLock(std::unique_ptr<UnsharedDescriptor> file) : file_(std::move(file)) {}
  ~PosixLock() override {
    // A child that shares it all the same would keep it.
    struct flock range = {};
    range.l_type = F_UNLCK;
    range.l_whence = SEEK_SET;
    if (!process_.forked()) (void)::fcntl(fd(), F_OFD_SETLK, &range);
  }
  int fd() const { return file_->get(); }

 private:
  // A child would keep the lock when this process has died.
  const std::unique_ptr<UnsharedDescriptor> file_;
  const ForkMark process_;
};

// Whether a process still runs: one that has died and was not waited for does not.
bool IsAlive(long pid) {
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return true;  // Nothing more is known of it.
  // "123 (name) Z …"; the name may have parentheses of its own.
  const size_t name_end = stat.rfind(") ");
  const char state = name_end == std::string::npos ? '?' : stat[name_end + 2];
  return state != 'Z' && state != 'X';
}

// "process 123", from what an exclusive owner wrote into its lock file.
std::string OwnerText(int fd, struct flock range) {
  if (::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type == F_RDLCK) return "a reader";
  char text[32] = {};
  const ssize_t n = ::pread(fd, text, sizeof(text) - 1, 0);
  const long pid = n > 0 ? std::strtol(text, nullptr, 10) : 0;
  if (pid <= 0) return "an unknown process";
  const std::string owner = "process " + std::to_string(pid);
  if (IsAlive(pid)) return owner;
  // The lock belongs to the open file, which a child made by clone or vfork shares.
  return "a process that inherited the lock from " + owner +
         ": that one is dead, but a process that it started still runs";
}

// Puts our pid into a lock file, for the others' messages. The lock excludes them without it, so
// not being able to is no error. Written before the rest is cut off: the block is never given back,
// which somebody else might take on a full disk.
void WriteOwner(int fd) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  const ssize_t n = ::pwrite(fd, pid.data(), pid.size(), 0);
  // An owner before us is not to be named for us.
  const bool written = n == static_cast<ssize_t>(pid.size());
  (void)!::ftruncate(fd, written ? static_cast<off_t>(pid.size()) : 0);
}

}  // namespace

PosixEnv::PosixEnv() : fd_(AT_FDCWD) {}

PosixEnv::~PosixEnv() {
  if (fd_ >= 0) ::close(fd_);
}

Result<PosixEnv::Place> PosixEnv::PlaceOf(const std::string& path) const {
  GEARDB_RETURN_IF_ERROR(CheckPath(path));
  const Place as_it_is{AT_FDCWD, path.c_str()};
  if (fd_ == AT_FDCWD || !path.starts_with(held_)) return as_it_is;
  const char* rest = path.c_str() + held_.size();
  if (*rest != '/' && *rest != '\0') return as_it_is;
  while (*rest == '/') ++rest;
  return Place{fd_, *rest == '\0' ? "." : rest};
}

// Opens a regular file and refuses anything else. Without O_NONBLOCK a FIFO would be waited for
// until somebody opens its other end.
Result<int> PosixEnv::OpenRegular(const std::string& path, int flags) const {
  GEARDB_ASSIGN_OR_RETURN(const Place at, PlaceOf(path));
  struct stat status;
  Descriptor fd(OpenRetrying(at.directory, at.path, flags | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    const int error = errno;
    const bool kind_known = error != EEXIST && ::fstatat(at.directory, at.path, &status, 0) == 0 &&
                            !S_ISREG(status.st_mode);
    return kind_known ? RefuseKind(path, status.st_mode) : ErrnoStatus(error, "open ", path);
  }
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "fstat ", path);
  if (!S_ISREG(status.st_mode)) return RefuseKind(path, status.st_mode);
  if (::fcntl(fd.get(), F_SETFL, flags) != 0) return ErrnoStatus(errno, "fcntl ", path);
  return fd.Release();
}

Result<int> PosixEnv::OpenDirectory(const std::string& path, int flags) const {
  GEARDB_ASSIGN_OR_RETURN(const Place at, PlaceOf(path));
  const int fd = OpenRetrying(at.directory, at.path, flags | O_DIRECTORY);
  if (fd < 0) return ErrnoStatus(errno, "open directory ", path);
  return fd;
}

Result<std::unique_ptr<File>> PosixEnv::OpenFile(const std::string& path, FileOptions options) {
  int flags = options.mode == FileMode::kRead ? O_RDONLY : O_RDWR;
  if (options.mode == FileMode::kCreate) flags |= O_CREAT;
  if (options.mode == FileMode::kCreateNew) flags |= O_CREAT | O_EXCL;
  GEARDB_ASSIGN_OR_RETURN(const int opened, OpenRegular(path, flags));
  Descriptor plain(opened);
  if (options.mode == FileMode::kRead) {
    // Whoever reads much reads in large blocks. Kernel read-ahead would go on into holes and fill
    // the page cache with zeros, which then look written (NextWritten).
    (void)::posix_fadvise(plain.get(), 0, 0, POSIX_FADV_RANDOM);
  }
  std::string note;
  if (options.direct) {
    const bool set = ::fcntl(plain.get(), F_SETFL, flags | O_DIRECT) == 0;
    const int error = set ? ProbeDirect(plain.get()) : errno;
    if (error == 0) {
      return std::unique_ptr<File>(std::make_unique<PosixFile>(path, plain.Release(), true, ""));
    }
    if (set && ::fcntl(plain.get(), F_SETFL, flags) != 0) return ErrnoStatus(errno, "fcntl ", path);
    note = "O_DIRECT: " + std::system_category().message(error);
  }
  return std::unique_ptr<File>(
      std::make_unique<PosixFile>(path, plain.Release(), false, std::move(note)));
}

Result<std::vector<std::string>> PosixEnv::List(const std::string& directory) {
  GEARDB_ASSIGN_OR_RETURN(const int opened, OpenDirectory(directory, O_RDONLY));
  Descriptor fd(opened);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd.get()), &::closedir);
  if (entries == nullptr) return ErrnoStatus(errno, "list ", directory);
  (void)fd.Release();  // It is closed with the entries.
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, "list ", directory);
  std::sort(names.begin(), names.end());
  return names;
}

Result<bool> PosixEnv::Exists(const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(const Place at, PlaceOf(path));
  struct stat status;
  if (::fstatat(at.directory, at.path, &status, 0) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoStatus(errno, "stat ", path);
}

Result<uint64_t> PosixEnv::FreeBytes(const std::string& directory) {
  GEARDB_ASSIGN_OR_RETURN(const int opened, OpenDirectory(directory, O_RDONLY));
  const Descriptor held(opened);
  struct statvfs disk;
  if (::fstatvfs(held.get(), &disk) != 0) return ErrnoStatus(errno, "fstatvfs ", directory);
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

Status PosixEnv::Remove(const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(const Place at, PlaceOf(path));
  if (::unlinkat(at.directory, at.path, 0) != 0) return ErrnoStatus(errno, "remove ", path);
  return Status::Ok();
}

Status PosixEnv::Rename(const std::string& from, const std::string& to) {
  GEARDB_ASSIGN_OR_RETURN(const Place from_at, PlaceOf(from));
  GEARDB_ASSIGN_OR_RETURN(const Place to_at, PlaceOf(to));
  if (::renameat(from_at.directory, from_at.path, to_at.directory, to_at.path) != 0) {
    return ErrnoStatus(errno, "rename ", from, " to ", to);
  }
  return Status::Ok();
}

Status PosixEnv::CreateDirectory(const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(const Place at, PlaceOf(path));
  if (::mkdirat(at.directory, at.path, 0755) == 0) return Status::Ok();
  const int error = errno;
  struct stat status;
  if (error == EEXIST && ::fstatat(at.directory, at.path, &status, 0) == 0 &&
      S_ISDIR(status.st_mode)) {
    return Status::Ok();
  }
  return ErrnoStatus(error == EEXIST ? ENOTDIR : error, "create directory ", path);
}

Status PosixEnv::SyncDirectory(const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(const int opened, OpenDirectory(path, O_RDONLY));
  const Descriptor directory(opened);
  if (::fsync(directory.get()) != 0) return ErrnoStatus(errno, "fsync directory ", path);
  return Status::Ok();
}

Result<std::shared_ptr<Env>> PosixEnv::HoldDirectory(const std::string& directory) {
  GEARDB_ASSIGN_OR_RETURN(const int fd, OpenDirectory(directory, O_PATH));
  std::string held = directory;
  while (held.ends_with('/')) held.pop_back();
  return std::shared_ptr<Env>(new PosixEnv(std::move(held), fd));
}

Result<std::unique_ptr<FileLock>> PosixEnv::Lock(const std::string& path, LockMode mode) {
  const bool exclusive = mode == LockMode::kExclusive;
  GEARDB_ASSIGN_OR_RETURN(auto file, UnsharedDescriptor::Open([&] {
                            return OpenRegular(path, exclusive ? O_RDWR | O_CREAT : O_RDONLY);
                          }));
  auto lock = std::make_unique<PosixLock>(std::move(file));
  // An open-file-description lock: it excludes a second owner in this process too, and goes with
  // the last descriptor.
  struct flock range = {};
  range.l_type = exclusive ? F_WRLCK : F_RDLCK;
  range.l_whence = SEEK_SET;
  if (::fcntl(lock->fd(), F_OFD_SETLK, &range) != 0) {
    const int error = errno;
    if (error == EAGAIN || error == EACCES) {
      return Status::FailedPrecondition(path, " is held by ", OwnerText(lock->fd(), range));
    }
    return ErrnoStatus(error, "lock ", path);
  }
  if (exclusive) WriteOwner(lock->fd());
  return std::unique_ptr<FileLock>(std::move(lock));
}

}  // namespace geardb
