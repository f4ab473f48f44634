// The cold store of a database: made when it is needed, images by turns, a head that says which.
#include "engine/internal/cold_tier.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/forwarding_env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

/// The system's files; it keeps which directories were synced.
class DirectorySyncs final : public ForwardingEnv {
 public:
  std::vector<std::string> synced;
  bool fails = false;

  Status SyncDirectory(const std::string& path) override {
    if (fails) return Status::IoError("sync of '", path, "'");
    synced.push_back(path);
    return Posix()->SyncDirectory(path);
  }
};

class ColdTierTest : public ::testing::Test {
 protected:
  ColdTier Make(bool read_only = false) {
    return ColdTier(Env::Posix(), dir_.path(), ColdStoreOptions{.read_only = read_only});
  }
  /// The bytes of a chunk of an image as of `lsn`.
  static std::string Bytes(const ImageChunk& chunk, Lsn lsn, uint64_t content) {
    ChunkWriter writer(chunk, lsn);
    writer.Put(content);
    return {reinterpret_cast<const char*>(writer.bytes().data()), writer.bytes().size()};
  }
  static ImageHead HeadOf(uint64_t number) {
    return {.number = number,
            .lsn = number * 100,
            .log_from = number * 100 - 10,
            .log_start = number * 50};
  }
  /// What an image has: contents by chunk.
  using Contents = std::map<ImageChunk, uint64_t>;
  static NextImage Put(ColdTier* tier, uint64_t number, const Contents& contents) {
    const Lsn lsn = HeadOf(number).lsn;
    NextImage image = tier->BeginImage(lsn);
    ColdBatch batch(**tier->Store());
    for (const auto& [chunk, content] : contents) {
      const std::string bytes = Bytes(chunk, lsn, content);
      EXPECT_OK(image.Put(chunk, std::as_bytes(std::span(bytes)), &batch));
    }
    EXPECT_OK(tier->if_open()->Write(&batch, HeadOf(tier->head().number).lsn));
    return image;
  }
  /// Makes it the current one; returns what was put.
  static uint64_t WriteImage(ColdTier* tier, uint64_t number, const Contents& contents) {
    NextImage image = Put(tier, number, contents);
    const uint64_t bytes = image.bytes_put();
    ColdBatch batch(*tier->if_open());
    EXPECT_OK(tier->SetHead(&batch, HeadOf(number), std::move(image)));
    return bytes;
  }
  static uint64_t WriteImage(ColdTier* tier, uint64_t number) {
    return WriteImage(tier, number, {{kChunk, number}});
  }
  /// The current image is this one.
  static void ExpectImage(ColdTier* tier, uint64_t number, const Contents& contents) {
    EXPECT_EQ(tier->head().number, number);
    const ImageSource source = tier->CurrentImage();
    for (const auto& [chunk, content] : contents) {
      ASSERT_OK_AND_ASSIGN(const std::string found, source(chunk));
      EXPECT_EQ(found, Bytes(chunk, HeadOf(number).lsn, content)) << NameOf(chunk);
    }
  }
  static constexpr ImageChunk kChunk{3, ImageKind::kPages, 7};
  testing::TempDir dir_;
};

TEST_F(ColdTierTest, ItsDirectoryIsDurableBeforeAnythingIsPutIntoIt) {
  DirectorySyncs env;
  env.fails = true;
  ColdTier tier(&env, dir_.path(), ColdStoreOptions{});
  ASSERT_OK(tier.OpenExisting(0));
  EXPECT_STATUS(kIoError, tier.Store(), "sync of");
  EXPECT_EQ(tier.if_open(), nullptr);
  env.fails = false;
  ASSERT_OK(tier.Store());
  EXPECT_EQ(env.synced, std::vector<std::string>{dir_.path()});
}

TEST_F(ColdTierTest, ThereIsNoneUntilSomebodyNeedsIt) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  EXPECT_EQ(tier.if_open(), nullptr);
  EXPECT_EQ(tier.head().number, 0u);
  ASSERT_OK_AND_ASSIGN(ColdStore* const store, tier.Store());
  EXPECT_EQ(tier.if_open(), store);
  EXPECT_EQ(*tier.Store(), store);
  ASSERT_OK(tier.Close());
}

TEST_F(ColdTierTest, TheHeadOfTheLastImageIsFound) {
  for (uint64_t number = 1; number <= 3; ++number) {
    ColdTier tier = Make();
    ASSERT_OK(tier.OpenExisting(0));
    ASSERT_EQ(tier.next_image(), number);
    WriteImage(&tier, number);
    ASSERT_OK(tier.Close());
    ColdTier again = Make(/*read_only=*/true);
    ASSERT_OK(again.OpenExisting(0));
    EXPECT_EQ(again.head().number, number);
    EXPECT_EQ(again.head().lsn, number * 100);
    EXPECT_EQ(again.head().log_from, number * 100 - 10);
    EXPECT_EQ(again.head().log_start, number * 50);
    ExpectImage(&again, number, {{kChunk, number}});
    ASSERT_OK(again.Close());
  }
}

TEST_F(ColdTierTest, AnImageThatIsNotWholeLeavesTheOneBefore) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  WriteImage(&tier, 1);
  (void)Put(&tier, 2, {{kChunk, 99}});
  ASSERT_OK(tier.if_open()->Flush());
  ASSERT_OK(tier.Close());
  ColdTier again = Make();
  ASSERT_OK(again.OpenExisting(0));
  ExpectImage(&again, 1, {{kChunk, 1}});
  ASSERT_OK(again.Close());
}

TEST_F(ColdTierTest, WhatIsMissingIsSaid) {
  EXPECT_STATUS(kCorruption, Make().OpenExisting(1 << 20), "there is no cold store");
  ColdTier reader = Make(/*read_only=*/true);
  ASSERT_OK(reader.OpenExisting(0));
  EXPECT_STATUS(kFailedPrecondition, reader.Store(), "read-only");
}

TEST_F(ColdTierTest, AHeadThatMakesNoSenseIsCorruption) {
  const ColdChunkKey key{.table = 0, .partition = 0, .kind = 0xFFFF, .chunk = 0};
  const auto with = [&](std::vector<uint64_t> words) {
    ColdTier tier = Make();
    ColdStore* const store = *tier.Store();
    ColdBatch batch(*store);
    EXPECT_OK(batch.PutChunk(key, 0, std::as_bytes(std::span(words))));
    EXPECT_OK(store->Write(&batch, 0));
    EXPECT_OK(tier.Close());
    return Make().OpenExisting(0);
  };
  EXPECT_STATUS(kUnsupported, with({1, 1, 5, 5, 0}), "version 1");
  EXPECT_STATUS(kUnsupported, with({4, 1, 5, 5, 0, 0, 0}), "version 4");
  EXPECT_STATUS(kCorruption, with({}), "has 0 bytes");
  EXPECT_STATUS(kCorruption, with({2, 1, 5}), "makes no sense");
  EXPECT_STATUS(kCorruption, with({2, 0, 5, 5, 0, 0}), "image 0");
  EXPECT_STATUS(kCorruption, with({2, 1, 5, 6, 0, 0}), "from 6");
  EXPECT_STATUS(kCorruption, with({2, 1, 5, 5, 0, 1}), "has lost part 0");
  EXPECT_OK(with({2, 1, 5, 5, 0, 0}));
}

// Images of random contents, many chunks of which stay as they are; some are given up, some heads
// do not get through, and the store is opened again now and then.
TEST_F(ColdTierTest, AnImageTakesWhatHasChanged) {
  std::mt19937_64 random(5);
  Contents current;
  auto tier = std::make_unique<ColdTier>(Env::Posix(), dir_.path(), ColdStoreOptions{});
  ASSERT_OK(tier->OpenExisting(0));
  uint64_t number = 0;
  for (int step = 0; step < 200; ++step) {
    SCOPED_TRACE(step);
    Contents next = current;
    size_t changed = 0;
    for (uint64_t k = 0; k < 12; ++k) {
      const ImageChunk chunk{static_cast<TableId>(k % 3), ImageKind::kPages, k};
      if (random() % 4 != 0) continue;
      if (random() % 3 == 0) {
        next.erase(chunk);
      } else {
        next[chunk] = random() % 3;
      }
    }
    for (const auto& [chunk, content] : next) {
      const auto was = current.find(chunk);
      changed += was == current.end() || was->second != content ? 1u : 0u;
    }
    if (random() % 4 == 0) {  // Given up.
      (void)Put(tier.get(), number + 1, next);
    } else {
      const uint64_t bytes = WriteImage(tier.get(), ++number, next);
      EXPECT_EQ(bytes, changed * (kImageChunkHeaderBytes + sizeof(uint64_t)));
      current = std::move(next);
    }
    ExpectImage(tier.get(), number, current);
    if (random() % 5 == 0) {
      ASSERT_OK(tier->Close());
      tier = std::make_unique<ColdTier>(Env::Posix(), dir_.path(), ColdStoreOptions{});
      ASSERT_OK(tier->OpenExisting(0));
      if (number > 0) ExpectImage(tier.get(), number, current);
    }
  }
  EXPECT_STATUS(kNotFound, tier->CurrentImage()({9, ImageKind::kPages, 1}), "no such chunk");
  ASSERT_OK(tier->Close());
}

// A batch that does not get through keeps what it had, and nothing of the image: the next one may
// find the chunk as it was.
TEST_F(ColdTierTest, AHeadThatDoesNotGetThroughTakesNothingAway) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  WriteImage(&tier, 1);
  ColdBatch batch(*tier.if_open());
  const uint64_t before = batch.bytes();
  NextImage image = Put(&tier, 2, {{kChunk, 2}});
  ImageHead head = HeadOf(2);
  head.log_from = 1;  // Before that of the last batch.
  EXPECT_STATUS(kInvalidArgument, tier.SetHead(&batch, head, std::move(image)), "LSN 1");
  EXPECT_EQ(batch.bytes(), before);
  ExpectImage(&tier, 1, {{kChunk, 1}});
  NextImage same = Put(&tier, 2, {{kChunk, 1}});
  EXPECT_EQ(same.bytes_put(), 0u);
  ASSERT_OK(tier.SetHead(&batch, HeadOf(2), std::move(same)));
  ExpectImage(&tier, 2, {{kChunk, 1}});
  ASSERT_OK(tier.Close());
}

TEST_F(ColdTierTest, AChunkOfAnotherImageIsCorruption) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  WriteImage(&tier, 1);
  ColdBatch batch(*tier.if_open());
  const std::string other = Bytes(kChunk, 0, 5);
  ASSERT_OK(batch.PutChunk(ImageVersions::KeyOf(kChunk, 0), 100, std::as_bytes(std::span(other))));
  ASSERT_OK(tier.if_open()->Write(&batch, 100));
  EXPECT_STATUS(kCorruption, tier.CurrentImage()(kChunk), "chunk 7 of the pages of table 3");
  ASSERT_OK(tier.Close());
}

}  // namespace
}  // namespace geardb::engine
