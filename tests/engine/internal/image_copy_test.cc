#include "engine/internal/image_copy.h"

#include "tests/engine/internal/image_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;

class ImageCopyTest : public ImageFixture {
 protected:
  void SetUp() override {
    ImageFixture::SetUp();
    Fill();
    image_ = Take();
  }
  TableState& StateOf(TableId id) { return *testing::CoreOf(*database_)->TableById(id)->state; }
  template <typename Copy>
  std::string Bytes(const TableState& state, const Copy& copy) {
    ImageChunks chunks;
    EXPECT_OK(copy.Give(state.layout(), lsn_, chunks.sink()));
    return chunks.chunks.begin()->second;
  }
  const std::string& Chunk(TableId table, ImageKind kind) {
    return image_.chunks.at({table, kind, 0});
  }

  ImageChunks image_;
};

TEST_F(ImageCopyTest, ACopyStaysWhatItIs) {
  TableState& state = StateOf(1);
  TrajectoriesCopy trajectories;
  PagesCopy pages;
  {
    MutexLock lock(&state.mutex);
    trajectories = TrajectoriesCopy(state, state.layout(), {0, state.trajectories().reserved()});
    pages = PagesCopy(state, state.layout(), {0, state.pages().reserved()});
  }
  const TrajectoryId first = 1;
  ASSERT_OK(table_->Remove({&first, 1}));
  Append(80, 7, End::kTerminated, 1);
  EXPECT_EQ(Bytes(state, trajectories), Chunk(1, ImageKind::kTrajectories));
  EXPECT_EQ(Bytes(state, pages), Chunk(1, ImageKind::kPages));
}

TEST_F(ImageCopyTest, NumbersBeyondTheEndAreNotThere) {
  TableState& state = StateOf(1);
  MutexLock lock(&state.mutex);
  EXPECT_EQ(TrajectoriesCopy(state, state.layout(), {0, 2}).records.size(), 2u);
  EXPECT_EQ(TrajectoriesCopy(state, state.layout(), {0, 2}).columns[0].size(), 2u * 4);
  EXPECT_EQ(PagesCopy(state, state.layout(), {0, 3}).pages.size(), 3u);
  EXPECT_EQ(PagesCopy(state, state.layout(), {0, 3}).groups.size(), 3u)
      << "all of them are in an image";
}

TEST_F(ImageCopyTest, FlagsBehindTheLastRowAreNot) {
  ASSERT_OK_AND_ASSIGN(const auto stream, database_->OpenTable("stream"));
  ASSERT_OK_AND_ASSIGN(auto writer, stream->NewWriter({}));
  ASSERT_OK(writer->AppendSteps(testing::Rows(90, 2).many(), {}));  // In a page of 4.
  image_ = Take();
  TableState& state = StateOf(2);
  MutexLock lock(&state.mutex);
  PagesCopy pages(state, state.layout(), {0, state.pages().reserved()});
  const uint32_t steps = state.layout().steps_per_page();
  uint64_t behind = 0;
  for (size_t i = 0; i < pages.pages.size(); ++i) {
    if (pages.pages[i].in_use == 0) continue;
    for (uint64_t row = pages.groups[0][i].rows_filled; row < steps; ++row) {
      pages.flags[i * steps + row] = 31;
      ++behind;
    }
  }
  EXPECT_GT(behind, 0u);
  EXPECT_EQ(Bytes(state, pages), Chunk(2, ImageKind::kPages));
}

TEST_F(ImageCopyTest, FilledColumnsFollowThoseOfTheSchema) {
  TableSpec spec = testing::StepSpec();
  spec.groups = {
      {.name = "a", .late = true, .is_volatile = true}, {.name = "b"}, {.name = "c", .late = true}};
  for (const char* group : {"a", "b", "c"}) {
    spec.columns.push_back({.name = std::string("of_") + group, .group = group});
  }
  const TableLayout layout(spec, 1);
  EXPECT_EQ(layout.group(1).filled_place, 2u);
  EXPECT_EQ(layout.group(3).filled_place, 3u);
  EXPECT_FALSE(KeepsFilled(layout.group(1)));
  EXPECT_TRUE(KeepsFilled(layout.group(3)));
  EXPECT_FALSE(IsInImage(layout.group(1)));
  EXPECT_TRUE(IsInImage(layout.group(2)));
}

}  // namespace
}  // namespace geardb::engine
