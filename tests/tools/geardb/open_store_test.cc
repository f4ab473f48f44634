// What geardb cannot look into: every command says why, and exits 1 (4 for a newer format).

#include "tools/geardb/open_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/hash.h"
#include "tests/testing/descriptor_limit.h"
#include "tests/testing/thread_limit.h"
#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::FilesOf;
using testing::RunCli;
using testing::WriteBytes;

/// From its making to its end, the process may map so many bytes.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(uint64_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_AS, &before_), 0);
    const rlimit low{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &low), 0);
  }
  ~AddressSpaceLimit() { EXPECT_EQ(::setrlimit(RLIMIT_AS, &before_), 0); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_ = {};
};

class OpenStoreTest : public testing::CliTest {
 protected:
  static void ExpectAllFail(const std::string& directory, const std::string& part, int code = 1) {
    ExpectFail({"info", "head", "log", "verify"}, directory, part, code);
  }
  static void ExpectFail(const std::vector<std::string>& commands, const std::string& directory,
                         const std::string& part, int code = 1) {
    for (const std::string& command : commands) {
      const CliRun run = RunCli({command, directory});
      EXPECT_EQ(run.code, code) << command;
      EXPECT_EQ(run.out, "") << command;
      EXPECT_TRUE(run.err.starts_with("geardb " + command + ": ")) << run.err;
      EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
    }
  }
};

TEST_F(OpenStoreTest, ADirectoryWithoutADatabaseSaysWhichFileIsMissing) {
  ExpectAllFail(Scratch("nowhere"), "NotFound: there is no database in '" + Scratch("nowhere") +
                                        "': no file '" + Scratch("nowhere") + "/MANIFEST'");
  EXPECT_FALSE(fs::exists(Scratch("nowhere")));
  fs::create_directory(Scratch("empty"));
  ExpectAllFail(Scratch("empty"), "NotFound: there is no database");
  EXPECT_TRUE(fs::is_empty(Scratch("empty")));
  fs::create_directories(Scratch("other") + "/log");
  WriteBytes(Scratch("other") + "/log/segment-000001", "something else");
  WriteBytes(Scratch("other") + "/README", "something else");
  ExpectAllFail(Scratch("other"), "NotFound: there is no database");
  EXPECT_EQ(FilesOf(Scratch("other")).size(), 3U);
  ExpectAllFail(File("MANIFEST"), "no database");
}

TEST_F(OpenStoreTest, AStoreThatIsRunningNamesItsOwner) {
  const auto owner = Database::Open(store(), testing::SampleOptions());
  ASSERT_OK(owner);
  ExpectFail({"head", "log", "verify"}, store(),
             "FailedPrecondition: the database in '" + store() + "' is running; close it first: " +
                 File("LOCK") + " is held by process " + std::to_string(::getpid()));
  ASSERT_OK((*owner)->Close());
  EXPECT_EQ(Run("info").code, 0);
}

TEST_F(OpenStoreTest, TwoMayLookAtOnce) {
  const cli::Invocation invocation = [&] {
    cli::Invocation made;
    made.arguments.Set("directory", store());
    return made;
  }();
  const auto files = cli::OpenFiles(invocation);
  ASSERT_OK(files);
  const auto looking = cli::OpenStore(invocation, *files);
  ASSERT_OK(looking);
  EXPECT_EQ(Run("info").code, 0);
  EXPECT_EQ(Run("verify").code, 0);
}

TEST_F(OpenStoreTest, AStoreThatNeedsMoreMemorySaysHowMuch) {
  testing::AddTableOfGroups(store());
  for (const std::string command : {"info", "head"}) {
    const CliRun run = Run(command, {"--memory", "2MiB"});
    EXPECT_EQ(run.code, cli::kExitMemory) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("take 4.0 MiB and do not fit --memory 2MiB: give --memory 4MiB"),
              std::string::npos)
        << run.err;
  }
}

TEST_F(OpenStoreTest, TooFewDescriptorsAreNotDamage) {
  if (!testing::DescriptorLimit::MayBeReached()) GTEST_SKIP() << "of a sanitizer";
  for (const std::string command : {"info", "head", "log", "verify"}) {
    int refused = 0;
    for (int more = 0; more < 16; ++more) {
      const CliRun run = [&] {
        const testing::DescriptorLimit limit(more);
        return command == "head" ? RunCli({command, store(), "arcade"})
                                 : RunCli({command, store()});
      }();
      SCOPED_TRACE(command + " with " + std::to_string(more) + " descriptors: " + run.err);
      EXPECT_TRUE(run.code == cli::kExitGood || run.code == cli::kExitMemory) << run.code;
      EXPECT_EQ(testing::LinesWith(run.out + run.err, "DAMAGE"), 0U);
      if (run.code == cli::kExitGood) continue;
      ++refused;
      EXPECT_GE(testing::LinesWith(run.out + run.err, "Too many open files"), 1U);
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 16);
  }
}

TEST_F(OpenStoreTest, NoThreadIsNeeded) {
  const bool ran = testing::RunAsOnlyProcess(fs::path(store()).parent_path(), [this] {
    const testing::ThreadLimit limit(1);
    for (const std::string command : {"info", "log", "verify"}) {
      const CliRun run = Run(command);
      EXPECT_EQ(run.code, cli::kExitGood) << command << ": " << run.err;
      EXPECT_EQ(testing::LinesWith(run.out + run.err, "DAMAGE"), 0U) << run.out;
    }
    EXPECT_EQ(Run("head", {"arcade"}).code, cli::kExitGood);
  });
  if (!ran) GTEST_SKIP() << "a process of a user of its own cannot be had";
}

// A larger --memory would not help.
TEST_F(OpenStoreTest, TooLittleAddressSpaceIsTheSystemsLack) {
  if (!testing::DescriptorLimit::MayBeReached()) GTEST_SKIP() << "of a sanitizer";
  for (const std::string command : {"info", "head"}) {
    SCOPED_TRACE(command);
    const CliRun run = [&] {
      const AddressSpaceLimit limit(uint64_t{1} << 30);
      return Run(command, {"--memory", "4GiB"});
    }();
    EXPECT_EQ(run.code, cli::kExitMemory) << run.err;
    EXPECT_EQ(testing::LinesWith(run.err, "Cannot allocate memory"), 1U) << run.err;
    EXPECT_EQ(testing::LinesWith(run.err, "give"), 0U) << run.err;
  }
}

TEST_F(OpenStoreTest, ADamagedManifestIsNamed) {
  testing::FlipByte(File("MANIFEST"), 50);
  ExpectAllFail(store(), "Corruption: " + File("MANIFEST") + " is damaged");
  WriteBytes(File("MANIFEST"), "");
  ExpectAllFail(store(), "Corruption: " + File("MANIFEST") + " is no GearDB manifest");
  WriteBytes(File("MANIFEST"), std::string(100'000, 'x'));
  ExpectAllFail(store(), File("MANIFEST"));
}

TEST_F(OpenStoreTest, ANewerFormatNamesBothVersions) {
  std::string bytes = FilesOf(store())[File("MANIFEST")];
  bytes[8] = 9;
  Hasher64 hasher(0);
  const auto all = std::as_bytes(std::span(bytes));
  hasher.Add(all.first(16));
  hasher.Add(all.subspan(24));
  const uint64_t checksum = hasher.Finish();
  std::memcpy(bytes.data() + 16, &checksum, sizeof(checksum));
  WriteBytes(File("MANIFEST"), bytes);
  ExpectAllFail(store(),
                "Unsupported: " + File("MANIFEST") +
                    " has format version 9, this program reads version 1: written by a "
                    "newer GearDB",
                cli::kExitNewer);
}

TEST_F(OpenStoreTest, WhatIsNoFileInAFilesPlaceIsNamedAndNotWaitedFor) {
  for (const std::string name : {"MANIFEST", "LOCK"}) {
    fs::rename(File(name), Scratch(name));
    ASSERT_EQ(::mkfifo(File(name).c_str(), 0644), 0);
    ExpectAllFail(store(), "Corruption: " + File(name) + " is a FIFO, expected a regular file");
    EXPECT_STATUS(kCorruption, Database::Open(store(), testing::SampleOptions()),
                  File(name) + " is a FIFO");
    fs::remove(File(name));
    fs::create_directory(File(name));
    ExpectAllFail(store(), "Corruption: " + File(name) + " is a directory");
    fs::remove(File(name));
    fs::rename(Scratch(name), File(name));
  }
  EXPECT_EQ(Run("verify").code, 0);
}

TEST_F(OpenStoreTest, APathWithANulIsRefusedByName) {
  const std::string path = store() + std::string("\0x", 2);
  EXPECT_STATUS(kInvalidArgument, Database::Open(path, testing::SampleOptions()),
                "the path '" + store() + "\\0x");
  const std::string fresh = Scratch("fresh") + std::string("\0x", 2);
  EXPECT_STATUS(kInvalidArgument, Database::Open(fresh, testing::SampleOptions()),
                "has a NUL at byte " + std::to_string(Scratch("fresh").size()));
  EXPECT_FALSE(fs::exists(Scratch("fresh")));
}

TEST_F(OpenStoreTest, MissingFilesAreNamed) {
  fs::rename(File("LOCK"), Scratch("LOCK"));
  ExpectAllFail(store(), "there is no file '" + File("LOCK") + "'");
  WriteBytes(File("LOCK"), "");
  EXPECT_EQ(Run("head", {"arcade"}).code, 0);
  fs::rename(File("log"), Scratch("log"));
  ExpectAllFail(store(), File("log"));
}

/// Takes the rights of root away for a while: to it nothing is unreadable.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~Unprivileged() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  bool was_root_;
};

TEST_F(OpenStoreTest, AFileThatMayNotBeReadIsNamed) {
  fs::permissions(Scratch(""), fs::perms::all);
  fs::permissions(File("MANIFEST"), fs::perms::none);
  {
    const Unprivileged unprivileged;
    ExpectAllFail(store(), "Permission denied");
    ExpectAllFail(store(), File("MANIFEST"));
  }
  fs::permissions(File("MANIFEST"), fs::perms::all);
  const std::string segment = PlaceOf(0).path;
  fs::permissions(segment, fs::perms::none);
  {
    const Unprivileged unprivileged;
    ExpectAllFail(store(), "Permission denied");
    ExpectAllFail(store(), segment);
  }
  fs::permissions(segment, fs::perms::all);
}

}  // namespace
}  // namespace geardb
