// The operating system's files through Env.
#include "base/env_posix.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/testing/descriptor_limit.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class EnvPosixTest : public ::testing::Test {
 protected:
  Result<std::string> Text(const std::string& path) {
    auto bytes = ReadWholeFile(env_, path, 1 << 20);
    if (!bytes.ok()) return bytes.status();
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }

  Env* const env_ = Env::Posix();
  testing::TempDir dir_;
};

TEST_F(EnvPosixTest, WritesAreReadBackAtTheirOffsets) {
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreate}));
  EXPECT_OK(file->Write(3, Bytes("three")));
  EXPECT_OK(file->Write(0, Bytes("abc")));
  EXPECT_OK(file->Sync());
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("f")));
  EXPECT_EQ(text, "abcthree");
  ASSERT_OK_AND_ASSIGN(const uint64_t size, file->Size());
  EXPECT_EQ(size, 8u);
  std::byte buffer[16];
  ASSERT_OK_AND_ASSIGN(const size_t read, file->Read(5, buffer));
  EXPECT_EQ(read, 3u);
}

TEST_F(EnvPosixTest, AMissingFileIsNotFoundByName) {
  EXPECT_STATUS(kNotFound, env_->OpenFile(dir_.File("nothing"), {.mode = FileMode::kRead}),
                "nothing");
  EXPECT_STATUS(kNotFound, env_->List(dir_.File("nowhere")), "nowhere");
  EXPECT_STATUS(kNotFound, env_->Remove(dir_.File("nothing")), "nothing");
  ASSERT_OK_AND_ASSIGN(const bool exists, env_->Exists(dir_.File("nothing")));
  EXPECT_FALSE(exists);
}

TEST_F(EnvPosixTest, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(dir_.File("fifo").c_str(), 0644), 0);
  ASSERT_OK(env_->CreateDirectory(dir_.File("directory")));
  for (const FileMode mode : {FileMode::kRead, FileMode::kReadWrite, FileMode::kCreate}) {
    for (const bool direct : {false, true}) {
      const FileOptions options{.mode = mode, .direct = direct};
      EXPECT_STATUS(kCorruption, env_->OpenFile(dir_.File("fifo"), options),
                    dir_.File("fifo") + " is a FIFO, expected a regular file");
      EXPECT_STATUS(kCorruption, env_->OpenFile(dir_.File("directory"), options),
                    dir_.File("directory") + " is a directory, expected a regular file");
    }
  }
  for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
    EXPECT_STATUS(kCorruption, env_->Lock(dir_.File("fifo"), mode), "is a FIFO");
    EXPECT_STATUS(kCorruption, env_->Lock(dir_.File("directory"), mode), "is a directory");
  }
  EXPECT_STATUS(kCorruption, env_->OpenFile("/dev/null", {}), "/dev/null is a device");
}

TEST_F(EnvPosixTest, WhatIsFreeForADirectoryIsItsDisks) {
  ASSERT_OK_AND_ASSIGN(const uint64_t free, env_->FreeBytes(dir_.path()));
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, std::filesystem::space(dir_.path()).capacity);
  EXPECT_STATUS(kNotFound, env_->FreeBytes(dir_.File("absent")), "absent");
  ASSERT_OK_AND_ASSIGN(const auto held, env_->HoldDirectory(dir_.path()));
  EXPECT_OK(held->FreeBytes(dir_.path()));
}

TEST_F(EnvPosixTest, ALinkToAFileIsThatFile) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("x")));
  ASSERT_EQ(::symlink(dir_.File("f").c_str(), dir_.File("link").c_str()), 0);
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("link")));
  EXPECT_EQ(text, "x");
}

TEST_F(EnvPosixTest, APathWithANulIsRefusedByName) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("a"), Bytes("x")));
  const std::string path = dir_.File("a") + std::string("\0b", 2);
  const std::string shown = "the path '" + dir_.File("a") + "\\0b' has a NUL at byte ";
  EXPECT_STATUS(kInvalidArgument, env_->OpenFile(path, {.mode = FileMode::kCreate}), shown);
  EXPECT_STATUS(kInvalidArgument, env_->Exists(path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->List(path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->Remove(path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->Rename(path, dir_.File("c")), shown);
  EXPECT_STATUS(kInvalidArgument, env_->Rename(dir_.File("a"), path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->CreateDirectory(path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->SyncDirectory(path), shown);
  EXPECT_STATUS(kInvalidArgument, env_->Lock(path, LockMode::kExclusive), shown);
  ASSERT_OK_AND_ASSIGN(const auto names, env_->List(dir_.path()));
  EXPECT_EQ(names, std::vector<std::string>{"a"});
}

TEST_F(EnvPosixTest, ANewFileIsRefusedWhereThereIsOne) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("x")));
  EXPECT_STATUS(kAlreadyExists, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreateNew}),
                "open " + dir_.File("f") + ": File exists");
  ASSERT_EQ(::symlink(dir_.File("nowhere").c_str(), dir_.File("link").c_str()), 0);
  EXPECT_STATUS(kAlreadyExists, env_->OpenFile(dir_.File("link"), {.mode = FileMode::kCreateNew}),
                "link");
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("g"), {.mode = FileMode::kCreateNew}));
  EXPECT_OK(file->Write(0, Bytes("y")));
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("f")));
  EXPECT_EQ(text, "x");
}

TEST_F(EnvPosixTest, AHeldDirectoryIsReachedWhereverItIsMoved) {
  const std::string held_path = dir_.File("held");
  for (const std::string& path : {held_path, held_path + "/", held_path + "//"}) {
    ASSERT_OK(env_->CreateDirectory(held_path));
    ASSERT_OK_AND_ASSIGN(const auto held, env_->HoldDirectory(path));
    ASSERT_OK(env_->Rename(held_path, dir_.File("moved")));
    ASSERT_OK(env_->CreateDirectory(held_path));

    ASSERT_OK(ReplaceFile(held.get(), JoinPath(path, "f"), Bytes("x")));
    ASSERT_OK(held->CreateDirectory(JoinPath(path, "sub")));
    ASSERT_OK(held->SyncDirectory(path));
    ASSERT_OK_AND_ASSIGN(const auto sub, held->HoldDirectory(JoinPath(path, "sub")));
    ASSERT_OK(ReplaceFile(sub.get(), JoinPath(path, "sub") + "/g", Bytes("y")));
    ASSERT_OK(held->Lock(JoinPath(path, "lock"), LockMode::kExclusive));
    ASSERT_OK(held->Rename(JoinPath(path, "f"), JoinPath(path, "F")));
    ASSERT_OK_AND_ASSIGN(const auto there, held->List(path));
    EXPECT_EQ(there, (std::vector<std::string>{"F", "lock", "sub"}));
    ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("moved/F")));
    EXPECT_EQ(text, "x");
    ASSERT_OK_AND_ASSIGN(const std::string below, Text(dir_.File("moved/sub/g")));
    EXPECT_EQ(below, "y");
    ASSERT_OK_AND_ASSIGN(const bool exists, held->Exists(JoinPath(path, "F")));
    EXPECT_TRUE(exists);
    EXPECT_OK(held->Remove(JoinPath(path, "F")));
    // Messages have the path that was asked for.
    EXPECT_STATUS(kNotFound, held->OpenFile(JoinPath(path, "F"), {}), JoinPath(path, "F"));
    // Other paths are as ever.
    ASSERT_OK(ReplaceFile(env_, held_path + "2", Bytes("z")));
    EXPECT_OK(held->OpenFile(held_path + "2", {}));
    ASSERT_OK_AND_ASSIGN(const auto replaced, env_->List(held_path));
    EXPECT_TRUE(replaced.empty());

    std::filesystem::remove_all(dir_.File("moved"));
    EXPECT_STATUS(kNotFound, held->OpenFile(JoinPath(path, "f"), {.mode = FileMode::kCreateNew}),
                  JoinPath(path, "f"));
    std::filesystem::remove_all(held_path);
  }
  EXPECT_STATUS(kNotFound, env_->HoldDirectory(held_path), held_path);
}

TEST_F(EnvPosixTest, ADirectoryThatOthersMayNotListCanBeHeld) {
  ASSERT_OK(env_->CreateDirectory(dir_.File("d")));
  ASSERT_OK(ReplaceFile(env_, dir_.File("d/f"), Bytes("x")));
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(dir_.File("d").c_str(), 0311), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const auto held = env_->HoldDirectory(dir_.File("d"));
    ::_exit(held.ok() && (*held)->OpenFile(dir_.File("d/f"), {}).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::chmod(dir_.File("d").c_str(), 0755), 0);  // To be removed.
}

TEST_F(EnvPosixTest, TheRootCanBeHeld) {
  ASSERT_OK_AND_ASSIGN(const auto root, env_->HoldDirectory("/"));
  ASSERT_OK(ReplaceFile(root.get(), dir_.File("f"), Bytes("x")));
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("f")));
  EXPECT_EQ(text, "x");
}

TEST_F(EnvPosixTest, AReadOnlyFileRefusesWrites) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("x")));
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kRead}));
  EXPECT_STATUS(kIoError, file->Write(0, Bytes("y")), "f");
}

TEST_F(EnvPosixTest, AllocateReservesTheSpaceOfHoles) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("copied")));
  ASSERT_EQ(::truncate(dir_.File("f").c_str(), 1 << 20), 0);
  const auto reserved = [&] {
    struct stat status = {};
    EXPECT_EQ(::stat(dir_.File("f").c_str(), &status), 0);
    return status.st_blocks * 512;
  };
  ASSERT_LT(reserved(), 1 << 20);
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kReadWrite}));
  ASSERT_OK(file->Allocate(1 << 20));
  EXPECT_GE(reserved(), 1 << 20);
  EXPECT_EQ(Text(dir_.File("f")).value().substr(0, 6), "copied");
}

TEST_F(EnvPosixTest, AllocateReservesZeros) {
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreate}));
  ASSERT_OK(file->Allocate(1 << 20));
  ASSERT_OK_AND_ASSIGN(const uint64_t size, file->Size());
  EXPECT_EQ(size, uint64_t{1} << 20);
  ASSERT_OK(file->Write(512 << 10, Bytes("in the middle")));
  ASSERT_OK_AND_ASSIGN(const FileExtent extent, file->NextWritten(0));
  EXPECT_LE(extent.begin, uint64_t{512} << 10);
  EXPECT_GT(extent.end, uint64_t{512} << 10);
  // Bytes that were never written read as zero, whatever NextWritten can tell.
  std::vector<std::byte> all(1 << 20, std::byte{1});
  ASSERT_OK(ReadSparse(file.get(), 0, all));
  EXPECT_EQ(std::memcmp(all.data() + (512 << 10), "in the middle", 13), 0);
  all.resize(512 << 10);
  EXPECT_EQ(all, std::vector<std::byte>(512 << 10));
}

TEST_F(EnvPosixTest, DirectFilesReadWhatTheyWrote) {
  ASSERT_OK_AND_ASSIGN(auto file,
                       env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreate, .direct = true}));
  EXPECT_EQ(file->direct(), file->direct_note().empty());
  alignas(4096) static std::byte block[kDirectAlignment];
  std::memset(block, 'x', sizeof(block));
  ASSERT_OK(file->Write(kDirectAlignment, block));
  std::memset(block, 0, sizeof(block));
  ASSERT_OK_AND_ASSIGN(const size_t read, file->Read(kDirectAlignment, block));
  EXPECT_EQ(read, sizeof(block));
  EXPECT_EQ(static_cast<char>(block[4095]), 'x');
}

// One that is read and written directly takes one descriptor, too.
TEST_F(EnvPosixTest, WithoutADescriptorLeftAnOpenIsRefusedAndWorksLater) {
  if (!testing::DescriptorLimit::MayBeReached()) GTEST_SKIP() << "of a sanitizer";
  std::vector<std::unique_ptr<File>> files;
  const FileOptions options{.mode = FileMode::kCreate, .direct = true};
  const testing::DescriptorLimit limit(10);
  Status status;
  while (status.ok() && files.size() < 20) {
    auto file = env_->OpenFile(dir_.File("f" + std::to_string(files.size())), options);
    status = file.status();
    if (status.ok()) files.push_back(std::move(*file));
  }
  EXPECT_STATUS(kResourceExhausted, status, "Too many open files");
  EXPECT_GE(files.size(), 8u);
  files.pop_back();
  EXPECT_OK(env_->OpenFile(dir_.File("another"), options));
}

TEST_F(EnvPosixTest, AMapShowsTheFileTwiceInARow) {
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreate}));
  EXPECT_STATUS(kInvalidArgument, file->Map(), "0 bytes");
  ASSERT_OK(file->Allocate(8192));
  ASSERT_OK_AND_ASSIGN(auto map, file->Map());
  ASSERT_EQ(map->size(), 8192u);
  std::memcpy(map->data() + 8190, "seam", 4);
  EXPECT_EQ(std::memcmp(map->data(), "am", 2), 0);
  char text[3] = {};
  ASSERT_OK(file->Read(0, std::as_writable_bytes(std::span(text, 2))));
  EXPECT_STREQ(text, "am");
}

TEST_F(EnvPosixTest, WhatWasStoredInAMapSurvivesTheProcess) {
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("f"), {.mode = FileMode::kCreate}));
  ASSERT_OK(file->Allocate(4096));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto map = file->Map();
    if (map.ok()) std::memcpy((*map)->data() + 7, "stored", 6);
    ::kill(::getpid(), SIGKILL);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state));
  char text[7] = {};
  ASSERT_OK(file->Read(7, std::as_writable_bytes(std::span(text, 6))));
  EXPECT_STREQ(text, "stored");
}

TEST_F(EnvPosixTest, ReplaceFileReplacesTheWhole) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("a long first content")));
  ASSERT_OK(ReplaceFile(env_, dir_.File("f"), Bytes("short")));
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("f")));
  EXPECT_EQ(text, "short");
  ASSERT_OK_AND_ASSIGN(const auto names, env_->List(dir_.path()));
  EXPECT_EQ(names, std::vector<std::string>{"f"});
}

TEST_F(EnvPosixTest, DirectoriesAreMadeOnceAndListedInOrder) {
  ASSERT_OK(env_->CreateDirectory(dir_.File("d")));
  ASSERT_OK(env_->CreateDirectory(dir_.File("d")));
  ASSERT_OK(ReplaceFile(env_, dir_.File("d/b"), Bytes("")));
  ASSERT_OK(ReplaceFile(env_, dir_.File("d/a"), Bytes("")));
  ASSERT_OK_AND_ASSIGN(const auto names, env_->List(dir_.File("d")));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_OK(env_->SyncDirectory(dir_.File("d")));
  EXPECT_STATUS(kIoError, env_->CreateDirectory(dir_.File("d/a")), "d/a");
}

TEST_F(EnvPosixTest, ASecondOwnerIsRefusedAndToldThePid) {
  ASSERT_OK_AND_ASSIGN(auto lock, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive));
  const std::string pid = "process " + std::to_string(::getpid());
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive), pid);
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kShared), pid);
  lock.reset();
  EXPECT_OK(env_->Lock(dir_.File("LOCK"), LockMode::kExclusive));
}

TEST_F(EnvPosixTest, ALockFileHoldsTheOwnersPidAndNothingElse) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("LOCK"), Bytes("12345678901234567890")));
  ASSERT_OK_AND_ASSIGN(auto lock, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive));
  ASSERT_OK_AND_ASSIGN(const std::string text, Text(dir_.File("LOCK")));
  EXPECT_EQ(text, std::to_string(::getpid()) + "\n");
}

TEST_F(EnvPosixTest, ALockIsHadWhereThePidCannotBeWritten) {
  ASSERT_OK(ReplaceFile(env_, dir_.File("LOCK"), Bytes("4194303\n")));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A file may have no byte more: every write is refused, as on a full disk.
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    ::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &none) != 0) ::_exit(2);
    const auto lock = env_->Lock(dir_.File("LOCK"), LockMode::kExclusive);
    if (!lock.ok()) ::_exit(3);
    const auto again = env_->Lock(dir_.File("LOCK"), LockMode::kExclusive);
    // The pid in the file was of an earlier owner.
    const bool unknown = again.status().message().find("unknown process") != std::string::npos;
    ::_exit(again.status().code() == StatusCode::kFailedPrecondition && unknown ? 0 : 4);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

TEST_F(EnvPosixTest, AnotherProcessIsRefusedToo) {
  ASSERT_OK_AND_ASSIGN(auto lock, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The inherited descriptor belongs to the parent's lock; a new one must be refused.
    const auto again = env_->Lock(dir_.File("LOCK"), LockMode::kExclusive);
    ::_exit(again.status().code() == StatusCode::kFailedPrecondition ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
}

// One that was made without fork's handlers, which close the file.
TEST_F(EnvPosixTest, ALockThatOutlivesItsOwnerInAChildSaysSo) {
  int started[2];
  int running[2];
  ASSERT_EQ(::pipe(started), 0);
  ASSERT_EQ(::pipe(running), 0);
  const pid_t owner = ::fork();
  ASSERT_GE(owner, 0);
  if (owner == 0) {
    const auto lock = env_->Lock(dir_.File("LOCK"), LockMode::kExclusive);
    if (!lock.ok()) ::_exit(1);
    ::close(running[1]);
    const pid_t child = ::_Fork();
    char byte = 0;
    if (child == 0) {
      // Holds the lock until the test closes its end.
      const bool told = ::write(started[1], &byte, 1) == 1;
      ::_exit(told && ::read(running[0], &byte, 1) == 0 ? 0 : 1);
    }
    for (;;) ::pause();
  }
  ::close(running[0]);
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 1);
  const std::string pid = "process " + std::to_string(owner);
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive),
                "is held by " + pid);
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  siginfo_t died = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(owner), &died, WEXITED | WNOWAIT), 0);
  const std::string inherited =
      "is held by a process that inherited the lock from " + pid + ": that one is dead";
  // Dead, but not waited for; and then gone.
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive),
                inherited);
  int state = 0;
  ASSERT_EQ(::waitpid(owner, &state, 0), owner);
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive),
                inherited);
  for (const int fd : {started[0], started[1], running[1]}) ::close(fd);
}

TEST_F(EnvPosixTest, ReadersShareALockAndKeepAWriterOut) {
  EXPECT_STATUS(kNotFound, env_->Lock(dir_.File("LOCK"), LockMode::kShared), "LOCK");
  { ASSERT_OK_AND_ASSIGN(auto lock, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive)); }
  ASSERT_OK_AND_ASSIGN(auto one, env_->Lock(dir_.File("LOCK"), LockMode::kShared));
  ASSERT_OK_AND_ASSIGN(auto two, env_->Lock(dir_.File("LOCK"), LockMode::kShared));
  EXPECT_STATUS(kFailedPrecondition, env_->Lock(dir_.File("LOCK"), LockMode::kExclusive),
                "a reader");
}

}  // namespace
}  // namespace geardb
