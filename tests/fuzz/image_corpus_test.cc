// What the seeds of image_fuzz come to: images of real stores (store-*) are loaded and used, all
// others are refused. With GEARDB_WRITE_SEED=folder they are written there anew.
#include <cstdlib>
#include <filesystem>

#include "tests/engine/internal/image_fixture.h"
#include "tests/fuzz/image_feed.h"
#include "tests/testing/files.h"

namespace geardb::fuzzing {
namespace {

class ImageSeedTest : public engine::ImageFixture {
 protected:
  InputImage Now() {
    InputImage image;
    const auto core = testing::CoreOf(*database_);
    MutexLock lock(&core->commit);
    EXPECT_OK(core->CatchUp());
    const auto sink = [&](const engine::ImageChunk& chunk, std::span<const std::byte> bytes) {
      image[chunk] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return Status::Ok();
    };
    EXPECT_OK(engine::SaveDatabase(core.get(), kImageLsn, sink));
    return image;
  }

  /// Loads what the fuzzer would make of it.
  static Status Load(const std::string& name, const InputImage& image) {
    const std::vector<uint8_t> seed = WriteImage(image);
    if (const char* folder = std::getenv("GEARDB_WRITE_SEED")) {
      testing::WriteBytes(std::string(folder) + "/" + name,
                          {reinterpret_cast<const char*>(seed.data()), seed.size()});
    }
    EXPECT_EQ(ParseImage(seed), image);
    ImageFeed feed;
    EXPECT_TRUE(feed.ready());
    const Status status = feed.Load(ParseImage(seed));
    if (status.ok()) feed.Use();
    return status;
  }
};

TEST_F(ImageSeedTest, ImagesOfStoresAreTakenUp) {
  EXPECT_OK(Load("store-empty", Now()));
  Fill();
  const InputImage image = Now();
  EXPECT_OK(Load("store-every-kind", image));
  InputImage hostile = image;
  hostile.erase({1, engine::ImageKind::kPages, 0});
  EXPECT_STATUS(kCorruption, Load("pages_missing", hostile), "it is missing");
  hostile = image;
  std::string& trajectories = hostile.at({1, engine::ImageKind::kTrajectories, 0});
  trajectories[kImageHeaderBytes + 4 + 6 * 8 + 8] = trajectories[kImageHeaderBytes + 4 + 6 * 8];
  EXPECT_STATUS(kCorruption, Load("id_twice", hostile), "its id is another's");
  hostile = image;
  hostile.at({1, engine::ImageKind::kItems, 0})[kImageHeaderBytes + 12] ^= 0x20;
  EXPECT_STATUS(kCorruption, Load("items_more_than_priorities", hostile), "in the index image");
}

TEST(ImageCorpusTest, StoresAreTakenAndOthersRefused) {
  size_t stores = 0;
  size_t hostile = 0;
  const std::filesystem::path folder = std::filesystem::path(GEARDB_FUZZ_CORPUS) / "image";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string bytes = testing::ReadBytes(entry.path().string());
    ImageFeed feed;
    ASSERT_TRUE(feed.ready());
    const Status status =
        feed.Load(ParseImage({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    if (entry.path().filename().string().starts_with("store-")) {
      ++stores;
      EXPECT_OK(status) << entry.path();
    } else {
      ++hostile;
      EXPECT_STATUS(kCorruption, status, "in the index image") << entry.path();
    }
  }
  EXPECT_GE(stores, 2u);
  EXPECT_GE(hostile, 3u);
}

}  // namespace
}  // namespace geardb::fuzzing
