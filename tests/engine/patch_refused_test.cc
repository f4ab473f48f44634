// A patch of values of any length that is refused leaves nothing of them behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class PatchRefusedTest : public testing::StoreTest {
 protected:
  static constexpr int64_t kImage = 4096;
  static constexpr int64_t kRows = 2000;  // Of which memory has about 1500.

  /// Rows of an image, and a text that is longer for some rows than for others.
  class ImageRows {
   public:
    ImageRows(int64_t count, uint8_t fill)
        : images_(static_cast<size_t>(count * kImage), fill), count_(count) {
      for (int64_t row = 0; row < count; ++row) {
        text_.insert(text_.end(), static_cast<size_t>(90 + row % 20), fill);
        offsets_.push_back(text_.size());
      }
    }
    ImageRows(const ImageRows&) = delete;
    std::vector<ColumnValue> values() const {
      return {{"image", TensorView(images_.data(), DType::kU8, Shape({count_, kImage}))},
              {"text", TensorView::Of(std::span<const uint8_t>(text_)), offsets_}};
    }
    const std::vector<uint8_t>& text() const { return text_; }

   private:
    std::vector<uint8_t> images_;
    int64_t count_ = 0;
    std::vector<uint8_t> text_;
    std::vector<uint64_t> offsets_ = {0};
  };

  void SetUp() override {
    options_.budgets.frames_bytes = 6 << 20;
    Open();
    TableSpec spec;
    spec.name = "images";
    spec.columns = {
        {.name = "image", .dtype = DType::kU8, .shape = {kImage}},
        {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 100}};
    spec.steps_per_page = 4;
    Create(spec);
    constexpr int64_t kEach = 40;
    const ImageRows rows(kEach, 1);
    for (int64_t row = 0; row < kRows; row += kEach) {
      const End end = row + kEach == kRows ? End::kTerminated : End::kGo;
      const auto appended = writer_->AppendSteps(rows.values(), {.end = end});
      ASSERT_OK(appended);
      id_ = appended->id;
      text_.insert(text_.end(), rows.text().begin(), rows.text().end());
    }
  }
  Result<PatchOutcome> PatchFirst(int64_t count, const ImageRows& rows) {
    const RowSpan span{id_, 0, count};
    return table_->Patch({&span, 1}, rows.values());
  }
  uint64_t PagesOfText() const {
    for (const GroupPlaces& places : table_->Places()) {
      if (places.column == "text") return places.pages;
    }
    return 0;
  }
  std::vector<uint8_t> Text() const {
    const std::string_view name = "text";
    const auto read = table_->Read(id_, {&name, 1}, {});
    EXPECT_OK(read);
    if (!read.ok()) return {};
    const auto bytes = (*read)[0].view().values<uint8_t>();
    return {bytes.begin(), bytes.end()};
  }

  TrajectoryId id_ = 0;
  std::vector<uint8_t> text_;  // Of all rows.
};

// Each of them left all its values: they counted for bytes_max, and stayed with the trajectory.
TEST_F(PatchRefusedTest, ForWantOfFramesLeavesNoValuesBehind) {
  const uint64_t pages = PagesOfText();
  const uint64_t held = table_->Stats().frame_bytes;
  ASSERT_GT(pages, 0u);
  const ImageRows all(kRows, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_STATUS(kResourceExhausted, PatchFirst(kRows, all), "");
    EXPECT_EQ(PagesOfText(), pages) << i;
    EXPECT_EQ(table_->Stats().frame_bytes, held) << i;
  }
  EXPECT_EQ(Text(), text_);
}

TEST_F(PatchRefusedTest, ASmallerOneGoesAfterIt) {
  const ImageRows all(kRows, 2);
  EXPECT_STATUS(kResourceExhausted, PatchFirst(kRows, all), "");
  const ImageRows few(10, 3);
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, PatchFirst(10, few));
  EXPECT_EQ(outcome.applied, 10u);
  // As long as they were.
  std::copy(few.text().begin(), few.text().end(), text_.begin());
  EXPECT_EQ(Text(), text_);
  Reopen();
  OpenAgain("images");
  EXPECT_EQ(Text(), text_);
}

}  // namespace
}  // namespace geardb
