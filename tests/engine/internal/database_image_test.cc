#include "engine/internal/database_image.h"

#include "tests/engine/internal/image_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

constexpr ImageChunk kHead{0, ImageKind::kDatabase, 0};
constexpr ImageChunk kTags{0, ImageKind::kTags, 0};

class DatabaseImageTest : public ImageFixture {
 protected:
  /// Loads the image, and compares it with the store as it is.
  void ExpectSame(const ImageChunks& image) {
    ImageCore loaded;
    ASSERT_OK(loaded.Load(image, lsn_));
    EXPECT_EQ(loaded.Dump(), testing::DumpIndex(*testing::CoreOf(*database_)));
    ImageChunks again;
    ASSERT_OK(loaded.Save(lsn_, &again));
    EXPECT_EQ(again.chunks, image.chunks);
  }
  Status Load(const ImageChunks& image) { return ImageCore().Load(image, lsn_); }
};

TEST_F(DatabaseImageTest, AnEmptyDatabaseIsOneSmallChunk) {
  const ImageChunks image = Take();
  EXPECT_EQ(image.chunks.size(), 1u);
  EXPECT_LT(image.bytes(), 100u);
  ExpectSame(image);
}

TEST_F(DatabaseImageTest, TablesOfEveryKindComeBack) {
  Fill();
  const ImageChunks image = Take();
  ExpectSame(image);
  EXPECT_LT(image.bytes(), 12'000u) << "a table of a few trajectories takes little";
}

TEST_F(DatabaseImageTest, NumbersOfDroppedTablesAreNotUsedAgain) {
  for (const char* name : {"first", "second", "third"}) {
    TableSpec spec = testing::StepSpec();
    spec.name = name;
    ASSERT_OK(database_->CreateTable(spec));
  }
  ASSERT_OK(database_->DropTable("first"));
  ASSERT_OK(database_->DropTable("third"));
  const ImageChunks image = Take();
  ExpectSame(image);
  for (const auto& [chunk, bytes] : image.chunks) EXPECT_TRUE(chunk.table == 0 || chunk.table == 2);
  ImageCore loaded;
  ASSERT_OK(loaded.Load(image, lsn_));
  EXPECT_EQ(loaded.core().NextTableId(), 4u);
}

TEST_F(DatabaseImageTest, TagsTakeAsManyChunksAsTheyNeed) {
  options_.ring_bytes = uint64_t{8} << 20;
  options_.segment_bytes = uint64_t{8} << 20;
  OpenEmpty();
  for (const size_t bytes : {0u, 1u, 700'000u, 1'100'000u, 3u}) {
    const std::string blob(bytes, static_cast<char>('a' + bytes % 7));
    ASSERT_OK(database_->WriteTag("tag " + std::to_string(bytes), std::as_bytes(std::span(blob))));
  }
  const ImageChunks image = Take();
  EXPECT_EQ(image.CountOf(ImageKind::kTags), 1'800'004 / kImageChunkBytes + 1);
  ExpectSame(image);
  ImageChunks damaged = image;
  damaged.chunks[{0, ImageKind::kTags, 1}].pop_back();
  EXPECT_STATUS(kCorruption, Load(damaged), "chunk 1 of the tags in the index image");
  damaged = image;
  damaged.chunks.erase({0, ImageKind::kTags, 1});
  EXPECT_STATUS(kCorruption, Load(damaged), "it is missing");
}

TEST_F(DatabaseImageTest, ASinkThatFailsEndsTheSaving) {
  Fill();
  const size_t chunks = Take().chunks.size();
  const auto core = testing::CoreOf(*database_);
  MutexLock lock(&core->commit);
  for (size_t fails_at = 0; fails_at < chunks; ++fails_at) {
    size_t seen = 0;
    const auto sink = [&](const ImageChunk&, std::span<const std::byte>) {
      return seen++ == fails_at ? Status::IoError("full") : Status::Ok();
    };
    EXPECT_STATUS(kIoError, SaveDatabase(core.get(), lsn_, sink), "full");
    EXPECT_EQ(seen, fails_at + 1);
  }
}

TEST_F(DatabaseImageTest, EveryChunkIsNeeded) {
  Fill();
  const ImageChunks image = Take();
  for (const auto& [chunk, bytes] : image.chunks) {
    ImageChunks damaged = image;
    damaged.chunks.erase(chunk);
    EXPECT_STATUS(kCorruption, Load(damaged), NameOf(chunk) + ": it is missing");
  }
  EXPECT_STATUS(kCorruption, ImageCore().Load(image, lsn_ + 1), "of the image as of LSN");
}

TEST_F(DatabaseImageTest, TablesThatCannotBeAreRefused) {
  Fill();
  const ImageChunks image = Take();
  // The head of one with other tables.
  const auto with_head = [&](TableId next, const std::vector<uint32_t>& tables, uint64_t tags) {
    flatbuffers::FlatBufferBuilder builder;
    const auto ids = builder.CreateVector(tables);
    builder.Finish(fb::CreateDatabaseHead(builder, next, ids, tags));
    ChunkWriter head(kHead, lsn_);
    head.PutBytes(
        {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
    ImageChunks changed = image;
    changed.chunks.erase(kHead);
    EXPECT_OK(head.GiveTo(changed.sink()));
    return Load(changed);
  };
  const uint64_t tags = image.chunks.at(kTags).size() - 24;
  EXPECT_OK(with_head(3, {1, 2}, tags));
  EXPECT_OK(with_head(9, {2}, tags));
  EXPECT_STATUS(kCorruption, with_head(3, {2, 1}, tags), "table 1 behind table 2");
  EXPECT_STATUS(kCorruption, with_head(3, {1, 1}, tags), "table 1 behind table 1");
  EXPECT_STATUS(kCorruption, with_head(3, {0}, tags), "table 0 behind");
  EXPECT_STATUS(kCorruption, with_head(2, {1, 2}, tags), "the next is 2");
  EXPECT_STATUS(kCorruption, with_head(0, {}, tags), "the next table is 0");
  EXPECT_STATUS(kCorruption, with_head(3, {1, 2}, tags - 1), "the tags");
  EXPECT_STATUS(kCorruption, with_head(3, {1, 2}, UINT64_MAX), "tags of");
  ImageChunks changed = image;
  changed.chunks[kHead].resize(30);
  EXPECT_STATUS(kCorruption, Load(changed), "no FlatBuffer");
  // A copy of a table under another number.
  changed = image;
  for (const auto& [chunk, bytes] : image.chunks) {
    if (chunk.table != 1) continue;
    std::string copy = bytes;
    copy[4] = 2;
    changed.chunks[{2, chunk.kind, chunk.number}] = copy;
  }
  EXPECT_STATUS(kCorruption, Load(changed),
                "the head of table 2 in the index image: it is of table 1");
}

TEST_F(DatabaseImageTest, TagsThatCannotBeAreRefused) {
  const std::string blob = "x";
  ASSERT_OK(database_->WriteTag("a", std::as_bytes(std::span(blob))));
  ASSERT_OK(database_->WriteTag("b", std::as_bytes(std::span(blob))));
  const ImageChunks image = Take();
  const size_t tag_bytes = (image.chunks.at(kTags).size() - 24) / 2;
  const auto with = [&](size_t at, char value) {
    ImageChunks changed = image;
    changed.chunks[kTags][24 + at] = value;
    return Load(changed);
  };
  EXPECT_OK(with(0, 1));
  EXPECT_STATUS(kCorruption, with(0, 0), "has no tag behind that at 0");  // No name.
  EXPECT_STATUS(kCorruption, with(0, 100), "has no tag behind");          // Its length.
  EXPECT_STATUS(kCorruption, with(3, 127), "has no tag behind");
  EXPECT_STATUS(kCorruption, with(5 + 7, 127), "has no tag behind");       // Its LSN.
  EXPECT_STATUS(kCorruption, with(5 + 16, 1), "has no tag behind");        // A damaged blob.
  EXPECT_STATUS(kCorruption, with(5 + 17 + 7, 127), "has no tag behind");  // Its blob's size.
  EXPECT_STATUS(kCorruption, with(tag_bytes + 4, 'a'), "has the tag 'a' twice");
}

}  // namespace
}  // namespace geardb::engine
