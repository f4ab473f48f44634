// RocksDB's manifest and CURRENT, damaged in every way: the copy stands in for it.
#include "engine/internal/cold_manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/concatenate.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

namespace fs = std::filesystem;
using testing::FilesOf;
using testing::ReadBytes;
using testing::SmallColdOptions;
using testing::WriteBytes;

constexpr uint64_t kPagesPut = 40;
constexpr uint64_t kManifestLsn = 8;

std::string NumberedSst(uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(6 - digits.size(), '0') + digits + ".sst";
}

ColdPageKey ManifestPage(uint64_t id) { return {1, 0, 0, id, 0}; }

/// The path of the last manifest there is.
std::string ManifestPath(const std::string& directory) {
  std::string last;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (path.find(kManifestPrefix) != std::string::npos) last = std::max(last, path);
  }
  return last;
}

/// Fails what is written to the copies of manifests, or to others of that prefix.
class FailingCopies : public rocksdb::FileSystemWrapper {
 public:
  explicit FailingCopies(std::string_view prefix = kManifestCopyPrefix)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), prefix_(prefix) {}
  const char* Name() const override { return "FailingCopies"; }

  /// What fails: "open", "append", "sync"; empty: nothing.
  std::string fail;
  /// After so many appends.
  uint64_t appends_left = 0;
  uint64_t failures = 0;

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    const bool copy = path.find(prefix_) != std::string::npos;
    if (copy && fail == "open") return Fails();
    const rocksdb::IOStatus made = target()->NewWritableFile(path, options, file, debug);
    if (made.ok() && copy) *file = std::make_unique<File>(this, std::move(*file));
    return made;
  }

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(FailingCopies* files, std::unique_ptr<rocksdb::FSWritableFile>&& file)
        : FSWritableFileOwnerWrapper(std::move(file)), files_(files) {}
    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (files_->fail == "append" && files_->appends_left-- == 0) {
        files_->appends_left = 0;
        // A part of it is there.
        (void)FSWritableFileOwnerWrapper::Append({bytes.data(), bytes.size() / 2}, options, debug);
        return files_->Fails();
      }
      return FSWritableFileOwnerWrapper::Append(bytes, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      return files_->fail == "sync" ? files_->Fails()
                                    : FSWritableFileOwnerWrapper::Sync(options, debug);
    }

   private:
    FailingCopies* const files_;
  };
  rocksdb::IOStatus Fails() {
    ++failures;
    return rocksdb::IOStatus::IOError("the test fails the copy");
  }

  const std::string_view prefix_;
};

class ColdManifestTest : public ::testing::Test {
 protected:
  /// Pages and a chunk in several flushes.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      ColdBatch batch(*store);
      ASSERT_OK(testing::PutColdPage(ManifestPage(id), {2, 2}, &batch));
      ASSERT_OK(store->Write(&batch, id * kManifestLsn / kPagesPut));
      if (id % 10 == 0) {
        ASSERT_OK(store->Flush());
      }
    }
    ASSERT_OK(store->Close());
    files_ = FilesOf(directory_);
    for (const auto& [path, bytes] : files_) {
      if (path.find("/MANIFEST-") != std::string::npos) manifest_ = path;
      if (path.find("/MANIFEST_COPY-") != std::string::npos) copy_ = path;
    }
    ASSERT_FALSE(manifest_.empty());
    ASSERT_FALSE(copy_.empty());
  }
  void Restore() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    for (const auto& [path, bytes] : files_) WriteBytes(path, bytes);
  }
  static void ExpectAllPages(ColdStore* store) {
    EXPECT_EQ(store->flushed_lsn(), kManifestLsn);
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      EXPECT_OK(testing::CheckColdPage(store, ManifestPage(id), {2, 2})) << id;
    }
  }
  /// Who reads finds all and writes nothing; who writes mends it, and says `named`.
  void ExpectMended(const std::string& named) {
    const auto before = FilesOf(directory_);
    ExpectReadFromCopy(named);
    ASSERT_TRUE(FilesOf(directory_) == before);
    ExpectMendedByWriter(named);
    ExpectWhole();
  }
  void ExpectReadFromCopy(const std::string& named) {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, {.read_only = true}));
    ExpectAllPages(store.get());
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    ASSERT_FALSE(check.manifest.empty());
    EXPECT_TRUE(check.mendable);
    EXPECT_TRUE(check.files.empty());
    EXPECT_NE(check.manifest[0].find(named), std::string::npos) << check.manifest[0];
  }
  void ExpectMendedByWriter(const std::string& named) {
    ColdStoreOptions options = SmallColdOptions();
    options.log_start = kManifestLsn;
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, options));
    EXPECT_FALSE(store->read_only());
    ExpectAllPages(store.get());
    ASSERT_FALSE(store->damage().empty());
    EXPECT_NE(store->damage()[0].find(named), std::string::npos) << store->damage()[0];
  }
  /// Nothing is left of any damage, and both files say the same.
  void ExpectWhole() {
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    EXPECT_TRUE(check.damage().empty()) << check.damage()[0];
    EXPECT_TRUE(check.notes.empty()) << check.notes[0];
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, SmallColdOptions()));
    EXPECT_TRUE(store->damage().empty());
    ExpectAllPages(store.get());
    ASSERT_OK(store->Close());
    uint64_t manifests = 0, copies = 0;
    for (const auto& [path, bytes] : FilesOf(directory_)) {
      if (path.find("/MANIFEST-") != std::string::npos) {
        ++manifests;
        std::string copy = path;
        copy.replace(copy.rfind("/MANIFEST-"), 10, "/MANIFEST_COPY-");
        EXPECT_TRUE(ReadBytes(copy) == bytes) << path;
      }
      copies += path.find("/MANIFEST_COPY") != std::string::npos ? 1u : 0u;
    }
    EXPECT_EQ(manifests, copies);
  }
  void ExpectMendedAfter(const std::string& what, const std::string& named,
                         const std::function<void()>& damage) {
    SCOPED_TRACE(what);
    damage();
    ExpectMended(named);
    Restore();
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  const std::string current_ = directory_ + "/CURRENT";
  std::string manifest_;
  std::string copy_;
  std::map<std::string, std::string> files_;
};

TEST_F(ColdManifestTest, ACopyIsWrittenBesideEachManifestAndLeavesWithIt) {
  for (int open = 0; open < 3; ++open) ExpectWhole();
  uint64_t found = 0;
  for (const auto& [path, bytes] : FilesOf(directory_)) {
    found += path.find("/MANIFEST") != std::string::npos ? 1u : 0u;
  }
  EXPECT_EQ(found, 2u);
}

TEST_F(ColdManifestTest, AnyFlippedBitIsMended) {
  const uint64_t step = 52 / testing::ShareOf(4);
  for (const std::string& path : {current_, manifest_}) {
    const std::string bytes = files_[path];
    for (size_t at = 0; at < bytes.size(); at += at < 100 ? 1 : step) {
      SCOPED_TRACE(Concatenate(path, " at ", at));
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
      WriteBytes(path, damaged);
      // All that is looked at takes its time.
      at % 5 == 0 ? ExpectMended(path) : ExpectMendedByWriter(path);
      if (HasFailure()) return;
      Restore();
    }
  }
}

TEST_F(ColdManifestTest, WhatIsCutShortIsMended) {
  const uint64_t step = 244 / testing::ShareOf(4);
  for (const std::string& path : {current_, manifest_}) {
    const std::string bytes = files_[path];
    for (size_t size = 0; size < bytes.size(); size += size < 20 ? 1 : step) {
      ExpectMendedAfter(Concatenate(path, " of ", size, " bytes"), path,
                        [&] { WriteBytes(path, bytes.substr(0, size)); });
      if (HasFailure()) return;
    }
  }
}

TEST_F(ColdManifestTest, WhatIsMissingIsMended) {
  ExpectMendedAfter("CURRENT", current_ + " is missing", [&] { fs::remove(current_); });
  ExpectMendedAfter("the manifest", manifest_ + " is missing", [&] { fs::remove(manifest_); });
  ExpectMendedAfter("both", current_ + " is missing", [&] {
    fs::remove(current_);
    fs::remove(manifest_);
  });
  ExpectMendedAfter("CURRENT and the copy", current_ + " is missing", [&] {
    fs::remove(current_);
    fs::remove(copy_);
  });
}

TEST_F(ColdManifestTest, ADamagedCopyIsNotedAndMadeAnew) {
  const std::string bytes = files_[copy_];
  const std::vector<std::function<void()>> ways = {
      [&] { fs::remove(copy_); }, [&] { WriteBytes(copy_, bytes.substr(0, bytes.size() / 2)); },
      [&] { testing::FlipByte(copy_, bytes.size() / 3); }, [&] { testing::FlipByte(copy_, 0); }};
  for (const auto& damage : ways) {
    damage();
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    EXPECT_TRUE(check.damage().empty());
    ASSERT_EQ(check.notes.size(), 1u);
    EXPECT_NE(check.notes[0].find(copy_), std::string::npos) << check.notes[0];
    {
      ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, SmallColdOptions()));
      EXPECT_TRUE(store->damage().empty());
    }
    ExpectWhole();
    Restore();
  }
}

TEST_F(ColdManifestTest, DamageToBothAtDifferentPlacesIsMended) {
  const uint64_t bytes = files_[manifest_].size();
  // Records in the first and in the last third.
  ExpectMendedAfter("the copy behind", manifest_, [&] {
    testing::FlipByte(manifest_, bytes / 4);
    testing::FlipByte(copy_, bytes - 3);
  });
  ExpectMendedAfter("the copy before", manifest_, [&] {
    testing::FlipByte(manifest_, bytes - 3);
    testing::FlipByte(copy_, bytes / 4);
  });
}

TEST_F(ColdManifestTest, DamageToBothAtOnePlaceNamesBothAndChangesNothing) {
  for (const std::string& path : {manifest_, copy_}) {
    std::string bytes = files_[path];
    bytes[20] = static_cast<char>(bytes[20] ^ 4);
    WriteBytes(path, bytes);
  }
  const auto before = FilesOf(directory_);
  for (const bool read_only : {true, false}) {
    ColdStoreOptions options = SmallColdOptions();
    options.read_only = read_only;
    const Status opened = ColdStore::Open(directory_, options).status();
    EXPECT_STATUS(kCorruption, opened, manifest_ + " has no good record at byte 0");
    EXPECT_STATUS(kCorruption, opened, copy_ + " has no good record at byte 0");
    EXPECT_TRUE(FilesOf(directory_) == before);
  }
  for (const std::string& path : {manifest_, copy_}) fs::remove(path);
  EXPECT_STATUS(kCorruption, ColdStore::Open(directory_, SmallColdOptions()).status(),
                "/CURRENT names MANIFEST-");
  fs::remove(current_);
  EXPECT_STATUS(kCorruption, ColdStore::Open(directory_, SmallColdOptions()).status(),
                "/CURRENT is missing, and no " + directory_ + "/MANIFEST-* is whole");
}

TEST_F(ColdManifestTest, ATornTailIsNoDamage) {
  // As a death between the two writes leaves it, and one within the first.
  const std::string bytes = files_[manifest_];
  WriteBytes(manifest_, bytes + std::string("\x12\x34\x56\x78\x40\x00\x01torn", 11));
  {
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    EXPECT_TRUE(check.damage().empty());
    ASSERT_EQ(check.notes.size(), 1u);
    EXPECT_NE(check.notes[0].find("a crash has torn it"), std::string::npos) << check.notes[0];
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, SmallColdOptions()));
    EXPECT_TRUE(store->damage().empty());
    ExpectAllPages(store.get());
  }
  ExpectWhole();
}

TEST_F(ColdManifestTest, TheManifestBeforeIsTakenWhereTheNextWasOnlyBegun) {
  // A death while RocksDB wrote the next manifest; CURRENT is lost later.
  WriteBytes(directory_ + "/MANIFEST-999999", "\x12\x34");
  WriteBytes(directory_ + "/MANIFEST_COPY-999999", "");
  fs::remove(current_);
  ExpectMended(current_ + " is missing");
}

TEST_F(ColdManifestTest, TheManifestBeforeIsTakenWhereverTheNextEnds) {
  // CURRENT is missing; the open that would make it again fails at one write after the other.
  for (uint64_t appends = 0;; ++appends) {
    SCOPED_TRACE(appends);
    fs::remove(current_);
    ColdStoreOptions options = SmallColdOptions();
    const auto files = std::make_shared<FailingCopies>(kManifestPrefix);
    options.files = files;
    files->fail = "append";
    files->appends_left = appends;
    const bool opened = ColdStore::Open(directory_, options).ok();
    if (files->failures == 0) {
      EXPECT_TRUE(opened);
      EXPECT_GT(appends, 3u);
      return;
    }
    if (!fs::exists(current_)) ExpectMended(current_ + " is missing");
    if (HasFailure()) return;
    Restore();
  }
}

TEST_F(ColdManifestTest, AManifestIsCompleteWhenRocksDbReadsIt) {
  const std::string manifest = files_[manifest_];
  uint64_t incomplete = 0;
  for (size_t end = 1; end <= manifest.size(); ++end) {
    const std::string begin = manifest.substr(0, end);
    if (MergeManifests(begin, "").own_end < end) continue;
    for (const std::string& path : {manifest_, copy_}) WriteBytes(path, begin);
    incomplete += IsCompleteManifest(begin) ? 0u : 1u;
    const Status read = OpenColdDb(directory_, {.read_only = true}).status();
    const bool lacks = read.message().find("next_file_number") != std::string::npos;
    EXPECT_EQ(IsCompleteManifest(begin), !lacks) << end << ": " << read.message();
  }
  EXPECT_GT(incomplete, 1u);
}

TEST_F(ColdManifestTest, StrayCopiesLeaveWithTheNextOpen) {
  WriteBytes(directory_ + "/MANIFEST_COPY-000001", files_[copy_]);
  WriteBytes(copy_ + ".new", "unfinished");
  ExpectWhole();
  EXPECT_FALSE(fs::exists(directory_ + "/MANIFEST_COPY-000001"));
  EXPECT_FALSE(fs::exists(copy_ + ".new"));
}

TEST_F(ColdManifestTest, ACopyThatCannotBeWrittenLeavesNothingAndComesBack) {
  for (const char* what : {"open", "append", "sync"}) {
    SCOPED_TRACE(what);
    Restore();
    ColdStoreOptions options = SmallColdOptions();
    const auto files = std::make_shared<FailingCopies>();
    options.files = files;
    files->fail = what;
    files->appends_left = 1;
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, options));
    for (uint64_t id = 1; id <= 3; ++id) {
      ColdBatch batch(*store);
      ASSERT_OK(testing::PutColdPage(ManifestPage(id), {2, 2}, &batch));
      ASSERT_OK(store->Write(&batch, kManifestLsn));
      ASSERT_OK(store->Flush());
    }
    EXPECT_GT(files->failures, 1u);
    // One that has just ended may be trying the copy again.
    while (store->stats().compacting) std::this_thread::yield();
    for (const auto& [path, bytes] : FilesOf(directory_)) {
      EXPECT_EQ(path.find("/MANIFEST_COPY"), std::string::npos) << path;
    }
    files->fail.clear();
    ColdBatch batch(*store);
    ASSERT_OK(testing::PutColdPage(ManifestPage(1), {2, 2}, &batch));
    ASSERT_OK(store->Write(&batch, kManifestLsn));
    ASSERT_OK(store->Flush());
    const std::string manifest = ManifestPath(directory_);
    ASSERT_OK(store->Close());
    store.reset();
    fs::remove(manifest);
    ExpectMended(manifest + " is missing");
  }
}

TEST(MergeManifestsTest, RecordsOfSeveralBlocksAreTakenFromEither) {
  // RocksDB's own records: those of a store with many families' worth of changes.
  testing::TempDir dir;
  const std::string directory = dir.File("cold");
  {
    ASSERT_OK_AND_ASSIGN(auto db, OpenColdDb(directory, SmallColdOptions()));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (int flush = 0; fs::file_size(ManifestPath(directory)) < 100u << 10; ++flush) {
      const std::string key(2000, static_cast<char>('a' + flush % 26));
      ASSERT_TRUE(db->db->Put(unlogged, db->empty, key, "").ok());
      ASSERT_TRUE(db->db->Flush({}, db->empty).ok());
    }
  }
  // Not before it is closed: until then a compaction may be in the middle of a record.
  const std::string manifest = ReadBytes(ManifestPath(directory));
  const MergedManifest whole = MergeManifests(manifest, manifest);
  EXPECT_FALSE(whole.mended());
  EXPECT_EQ(whole.own_end, manifest.size());
  EXPECT_EQ(whole.copy_end, manifest.size());
  EXPECT_TRUE(whole.bytes == manifest);
  for (size_t at = 5; at < manifest.size(); at += 997) {
    std::string one = manifest, other = manifest;
    one[at] = static_cast<char>(one[at] ^ 16);
    if (at > 40000) other[at - 40000] = static_cast<char>(other[at - 40000] ^ 1);
    EXPECT_TRUE(MergeManifests(one, manifest).bytes == manifest) << at;
    EXPECT_TRUE(MergeManifests(manifest, one).bytes == manifest) << at;
    EXPECT_TRUE(MergeManifests(one, other).bytes == manifest) << at;
    EXPECT_LT(MergeManifests(one, one).bytes.size(), manifest.size()) << at;
    EXPECT_LE(MergeManifests(one, "").own_end, at) << at;
    EXPECT_TRUE(MergeManifests("", manifest).bytes == manifest);
    EXPECT_TRUE(MergeManifests(manifest.substr(0, at), manifest).bytes == manifest);
  }
}

TEST(MergeManifestsTest, WhatIsDroppedIsARecordWhereverItBegins) {
  // Behind a record that leaves so many bytes of the block.
  const std::string begin = [] {
    std::string records;
    while (records.size() < 32768 - 60) AppendDropped({.number = 1}, &records);
    return records;
  }();
  for (uint64_t number = 1; number < uint64_t{1} << 60; number = number * 3 + 1) {
    for (uint32_t level = 0; level < 1000; level += 200) {
      std::string manifest = begin;
      while (manifest.size() < 32768 + 40) {
        AppendDropped({.family = 1, .level = level, .number = number}, &manifest);
      }
      const MergedManifest read = MergeManifests(manifest, "");
      EXPECT_EQ(read.own_end, manifest.size()) << number << ", " << level;
    }
  }
}

TEST_F(ColdManifestTest, AFileThatIsLeftOutIsNoPartOfTheStore) {
  std::vector<ManifestFile> files;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) {
      if (table.column_family_name != "pages") continue;
      files.push_back({.family = db->pages->GetID(),
                       .level = static_cast<uint32_t>(table.level),
                       .number = table.file_number});
    }
  }
  ASSERT_GT(files.size(), 1u);
  fs::remove(Concatenate(directory_, "/", NumberedSst(files[0].number)));
  ASSERT_OK(DropLostPages(directory_, SmallColdOptions()));
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, SmallColdOptions()));
  EXPECT_FALSE(store->read_only());
  EXPECT_TRUE(store->damage().empty());
  EXPECT_EQ(store->flushed_lsn(), kManifestLsn);
  uint64_t lost = 0;
  for (uint64_t id = 1; id <= kPagesPut; ++id) {
    const Status page = testing::CheckColdPage(store.get(), ManifestPage(id), {2, 2});
    if (page.code() == StatusCode::kNotFound) {
      ++lost;
    } else {
      EXPECT_OK(page) << id;
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, kPagesPut);
}

}  // namespace
}  // namespace geardb::engine
