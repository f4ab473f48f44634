// A draw that has met a damaged page, which leaves before the draw is delivered: it is made again,
// and costs nobody's rows.
#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

class SamplerDamageTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.budgets.frames_bytes = 6 << 20;
    options_.read_threads = 0;  // A draw ahead has read its pages when Next returns.
    Open();
    TableSpec spec = FrameSpec();
    spec.groups = {{.name = "wide"}};
    spec.columns[0].group = "wide";
    spec.columns[2] = {.name = "text",
                       .dtype = DType::kU8,
                       .shape = {kFrameBytes},
                       .kind = ColumnKind::kRagged,
                       .expected_rows = kTexts};
    spec.steps_per_page = 1;
    spec.priority_tables = {testing::WindowSpec("all")};
    spec.priority_tables[0].selector = SelectorKind::kFifo;
    spec.priority_tables[0].max_times_sampled = 1;
    spec.priority_tables[0].remove_when_exhausted = false;
    Create(spec);
  }
  std::vector<uint8_t> BytesOfRow(int64_t row) const {
    std::vector<uint8_t> bytes(kFrameBytes);
    for (int64_t at = 0; at < kFrameBytes; ++at) {
      bytes[static_cast<size_t>(at)] = ByteOf(0, row, at);
    }
    return bytes;
  }
  /// One trajectory of three rows; then the one in the middle is damaged where `column` has it.
  void AppendAndDamage(const std::string& column) {
    for (int64_t row = 0; row < 3; ++row) {
      const std::vector<uint8_t> frame = BytesOfRow(row);
      std::vector<uint8_t> text = BytesOfRow(row + 10);
      text.resize(kTexts * kFrameBytes);
      const auto appended =
          writer_->Append({{"frame", TensorView::Of(std::span<const uint8_t>(frame))},
                           {"reward", TensorView::Scalar(static_cast<float>(row))},
                           {"text", TensorView(text.data(), DType::kU8, {kTexts, kFrameBytes})}},
                          {.end = row == 2 ? End::kTerminated : End::kGo});
      ASSERT_OK(appended);
      id_ = appended->id;
    }
    ASSERT_GT(DropAll(), 0u);
    const std::vector<uint8_t> damaged = BytesOfRow(column == "frame" ? 1 : 11);
    const std::string_view bytes(reinterpret_cast<const char*>(damaged.data()), 64);
    int found = 0;
    for (const auto& [path, content] : testing::FilesOf(dir_->path() + "/log")) {
      const size_t at = content.find(bytes);
      if (path.find("segment-") == std::string::npos || at == std::string::npos) continue;
      testing::FlipByte(path, at + 8);
      ++found;
    }
    ASSERT_EQ(found, 1);
  }
  /// Draws the first row, and meets the damaged page ahead.
  std::unique_ptr<Sampler> DrawUpToDamage(const std::vector<View>& views) {
    auto sampler = priority("all")->NewSampler({.batch = 1, .views = views, .prefetch = 1});
    EXPECT_OK(sampler);
    const auto batch = (*sampler)->Next(Deadline::AfterMs(60'000));
    EXPECT_OK(batch);
    EXPECT_TRUE(batch.ok() && batch->anchors()[0] == 0);
    return std::move(*sampler);
  }
  void ExpectNothingRemoved() const {
    EXPECT_OK(table_->Find(id_));
    EXPECT_EQ(table_->Stats().removed_by[static_cast<size_t>(RemovalReason::kDamaged)], 0u);
  }

  /// So many that those of two steps share no page.
  static constexpr int64_t kTexts = 32;
  TrajectoryId id_ = 0;
};

TEST_F(SamplerDamageTest, APageThatIsThereCostsItsTrajectory) {
  ASSERT_NO_FATAL_FAILURE(AppendAndDamage("frame"));
  const auto sampler = DrawUpToDamage({{.column = "frame"}});
  EXPECT_STATUS(kCorruption, sampler->Next(Deadline::Now()), "the trajectory was removed");
  EXPECT_STATUS(kNotFound, table_->Find(id_), "");
}

// The whole trajectory was removed, though all rows that were left were good.
TEST_F(SamplerDamageTest, APageThatIsTrimmedMeanwhileCostsNothing) {
  ASSERT_NO_FATAL_FAILURE(AppendAndDamage("frame"));
  const auto sampler = DrawUpToDamage({{.column = "frame"}});
  ASSERT_OK(table_->Truncate(id_, 2));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::AfterMs(60'000)));
  EXPECT_EQ(batch.anchors()[0], 2);
  ExpectNothingRemoved();
}

TEST_F(SamplerDamageTest, APageOfAColumnThatIsDroppedMeanwhileCostsNothing) {
  ASSERT_NO_FATAL_FAILURE(AppendAndDamage("frame"));
  const auto sampler = DrawUpToDamage({{.column = "frame"}});
  const std::string_view column = "frame";
  ASSERT_OK(table_->DropColumns({&column, 1}));
  EXPECT_STATUS(kNotFound, sampler->Next(Deadline::Now()), "was dropped");
  ExpectNothingRemoved();
  const auto rest = priority("all")->NewSampler({.batch = 2, .views = {{.column = "reward"}}});
  ASSERT_OK(rest);
  ASSERT_OK_AND_ASSIGN(const Batch batch, (*rest)->Next(Deadline::AfterMs(60'000)));
  EXPECT_EQ(batch["reward"].values<float>()[0], 1);
}

TEST_F(SamplerDamageTest, ValuesThatAreTrimmedMeanwhileCostNothing) {
  ASSERT_NO_FATAL_FAILURE(AppendAndDamage("text"));
  const auto sampler = DrawUpToDamage({{.column = "text"}});
  ASSERT_OK(table_->Truncate(id_, 2));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::AfterMs(60'000)));
  EXPECT_EQ(batch.anchors()[0], 2);
  ExpectNothingRemoved();
}

TEST_F(SamplerDamageTest, ValuesOfAColumnThatIsDroppedMeanwhileCostNothing) {
  ASSERT_NO_FATAL_FAILURE(AppendAndDamage("text"));
  const auto sampler = DrawUpToDamage({{.column = "text"}});
  const std::string_view column = "text";
  ASSERT_OK(table_->DropColumns({&column, 1}));
  EXPECT_STATUS(kNotFound, sampler->Next(Deadline::Now()), "was dropped");
  ExpectNothingRemoved();
}

}  // namespace
}  // namespace geardb
