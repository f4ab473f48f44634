#include "engine/internal/cold_reserve.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/engine/internal/cold_fault_files.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kBytes = uint64_t{3} << 20;

class ColdReserveTest : public ::testing::Test {
 protected:
  bool IsThere() const { return std::filesystem::exists(path_); }
  std::unique_ptr<ColdReserve> Make(uint64_t bytes = kBytes) {
    return std::make_unique<ColdReserve>(&files_, dir_.path(), bytes);
  }

  testing::TempDir dir_;
  const std::string path_ = dir_.File(kColdReserveName);
  testing::ColdFaultFiles files_;
};

TEST_F(ColdReserveTest, TakesItsBytesUntilItIsGivenUp) {
  files_.SetSpace(kBytes + 10);
  const auto reserve = Make();
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(reserve->GiveUp());
  EXPECT_OK(reserve->Keep());
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes);
  EXPECT_EQ(files_.space(), 10);
  EXPECT_OK(reserve->Keep());
  EXPECT_EQ(files_.space(), 10);
  EXPECT_TRUE(reserve->GiveUp());
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(files_.space(), static_cast<int64_t>(kBytes + 10));
}

TEST_F(ColdReserveTest, OnADiskThatIsTooFullThereIsNone) {
  files_.SetSpace(kBytes - 1);
  const auto reserve = Make();
  EXPECT_STATUS(kResourceExhausted, reserve->Keep(), "RESERVE");
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(files_.space(), static_cast<int64_t>(kBytes - 1));
  files_.SetSpace(kBytes);
  EXPECT_OK(reserve->Keep());
  EXPECT_TRUE(IsThere());
}

TEST_F(ColdReserveTest, OfSomeAPartIsBetterThanNone) {
  files_.SetSpace(kBytes / 3);
  const auto reserve = Make();
  EXPECT_OK(reserve->KeepPart());
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes / 16 * 5);
  EXPECT_STATUS(kResourceExhausted, reserve->Keep(), "RESERVE");
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes / 16 * 5);
  files_.SetSpace(kBytes);
  EXPECT_OK(reserve->KeepPart());
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes);
  EXPECT_TRUE(reserve->GiveUp());
  files_.SetSpace(kBytes / 9);
  EXPECT_STATUS(kResourceExhausted, reserve->KeepPart(), "RESERVE");
  EXPECT_FALSE(IsThere());
}

TEST_F(ColdReserveTest, GrowsWithTheStoreOrStaysAsItWas) {
  files_.SetSpace(kBytes + 1000);
  const auto reserve = Make();
  EXPECT_OK(reserve->Keep(400));
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes + 400);
  EXPECT_OK(reserve->Keep());
  EXPECT_OK(reserve->Keep(1000));
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes + 1000);
  EXPECT_STATUS(kResourceExhausted, reserve->Keep(1001), "RESERVE");
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes + 1000);
  EXPECT_EQ(files_.space(), 0);
  EXPECT_OK(reserve->Keep(1000));
}

TEST_F(ColdReserveTest, IsOfAPartOfTheDiskThatIsFreeOrTheStoresOwn) {
  files_.SetSpace(1000);
  EXPECT_EQ(DiskRoom(&files_, dir_.File("absent"), UINT64_MAX), 1000u);
  std::filesystem::create_directory(dir_.File("cold"));
  testing::WriteBytes(dir_.File("cold/1"), std::string(500, 'x'));
  EXPECT_EQ(DiskRoom(&files_, dir_.File("cold"), 1001), 1500u);
  EXPECT_EQ(DiskRoom(&files_, dir_.File("cold"), 1000), 1000u);
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(ColdReserve::BytesFor(kMiB, UINT64_MAX), 6 * kMiB);
  EXPECT_EQ(ColdReserve::BytesFor(kMiB, ColdReserve::kRoomMost), 6 * kMiB);
  EXPECT_EQ(ColdReserve::BytesFor(kMiB, 24 * kMiB), 5 * kMiB);
  EXPECT_EQ(ColdReserve::BytesFor(kMiB, 0), 4 * kMiB);
}

TEST_F(ColdReserveTest, TheOneOfAnOpenBeforeIsTakenOver) {
  files_.SetSpace(4 * kBytes);
  EXPECT_OK(Make()->Keep());
  EXPECT_OK(Make()->Keep());
  EXPECT_EQ(files_.space(), static_cast<int64_t>(3 * kBytes));
  // One that is too short for the memory of today is made anew.
  EXPECT_OK(Make(2 * kBytes)->Keep());
  EXPECT_EQ(std::filesystem::file_size(path_), 2 * kBytes);
  EXPECT_OK(Make(kBytes)->Keep());
  EXPECT_EQ(std::filesystem::file_size(path_), 2 * kBytes);
}

TEST_F(ColdReserveTest, WithoutAllocateThereIsNoneAndNobodyWaitsForIt) {
  files_.WithoutAllocate();
  const auto reserve = Make();
  EXPECT_OK(reserve->Keep());
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(reserve->GiveUp());
}

}  // namespace
}  // namespace geardb::engine
