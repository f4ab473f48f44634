// Draw groups in images: what is loaded is what was saved, over several chunks too; and what a
// damaged chunk may say. (Random stores: table_draw_groups_test.cc.)
#include "engine/internal/image_draw_groups.h"

#include "tests/engine/internal/draw_groups_fixture.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/image_core.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

class ImageDrawGroupsTest : public testing::DrawGroupsFixture {
 protected:
  void Save(ImageChunks* image, Lsn* lsn) {
    const auto core = testing::CoreOf(*database_);
    MutexLock lock(&core->commit);
    ASSERT_OK(core->CatchUp());
    *lsn = core->log->end();
    ASSERT_OK(SaveDatabase(core.get(), *lsn, image->sink()));
  }
  void FillSmall() {
    Create(TableOf(GroupsSpec({.key = "prompt", .count = 3, .at_least = 2})));
    CompleteSome(1, 3);
    const std::vector<TrajectoryId> some = CompleteSome(2, 2);
    Complete(3);
    CompleteSome(4, 2);
    ASSERT_OK(groups()->SealGroup(4));
    ASSERT_OK(table_->Remove({some.data(), 1}));
    const RowId deleted{Complete(5), 0};
    Complete(5);
    ASSERT_OK(groups()->Delete({&deleted, 1}));
  }
  static std::string* ChunkOf(ImageChunks* image) {
    for (auto& [chunk, bytes] : image->chunks) {
      if (chunk.kind == ImageKind::kDrawGroups) return &bytes;
    }
    return nullptr;
  }
};

TEST_F(ImageDrawGroupsTest, ManyGroupsAreManyChunks) {
  // So large that a chunk has one: 1 MiB / (22 + 4 · 65,536) is 3, of which it takes 2.
  Create(TableOf(GroupsSpec({.key = "prompt", .count = kGroupCountMax, .at_least = 2})));
  for (int32_t key = 0; key < 20; ++key) CompleteSome(key, 1 + key % 4);
  ImageChunks image;
  Lsn lsn = 0;
  Save(&image, &lsn);
  EXPECT_GE(image.CountOf(ImageKind::kDrawGroups), 10u);
  ImageCore loaded;
  ASSERT_OK(loaded.Load(image, lsn));
  ImageChunks again;
  ASSERT_OK(loaded.Save(lsn, &again));
  EXPECT_EQ(again.chunks, image.chunks);
}

TEST_F(ImageDrawGroupsTest, DamagedChunksAreCorruptionOrSomethingThatCanBe) {
  FillSmall();
  ImageChunks image;
  Lsn lsn = 0;
  Save(&image, &lsn);
  const std::string whole = *ChunkOf(&image);
  uint64_t refused = 0;
  for (size_t at = 24; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      *ChunkOf(&image) = damaged;
      ImageCore loaded;
      const Status status = loaded.Load(image, lsn);
      refused += status.ok() ? 0u : 1u;
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.message();
        continue;
      }
      ImageChunks again;  // What was loaded is whole: it is saved as it was.
      ASSERT_OK(loaded.Save(lsn, &again));
      EXPECT_EQ(*ChunkOf(&again), damaged);
    }
  }
  EXPECT_GT(refused, whole.size());
  *ChunkOf(&image) = whole.substr(0, whole.size() - 1);
  EXPECT_STATUS(kCorruption, ImageCore().Load(image, lsn), "draw groups of priority table 0");
}

TEST_F(ImageDrawGroupsTest, ItemsAreReadyGroupsAndMembersMayBeDrawn) {
  FillSmall();
  ImageChunks image;
  Lsn lsn = 0;
  Save(&image, &lsn);
  const std::string whole = *ChunkOf(&image);
  // u32 count, then per group u32 number, u32 generation, i64 key, u8 ready.
  uint32_t count = 0;
  std::memcpy(&count, whole.data() + 24, sizeof(count));
  ASSERT_EQ(count, 5u);
  const size_t ready = 28 + count * 16;
  std::string wrong = whole;
  ASSERT_EQ(wrong[ready + 1], 1);
  wrong[ready + 1] = 0;  // Of key 2: one of its members has left.
  *ChunkOf(&image) = wrong;
  EXPECT_STATUS(kCorruption, ImageCore().Load(image, lsn), "draw group 1");
}

}  // namespace
}  // namespace geardb::engine
