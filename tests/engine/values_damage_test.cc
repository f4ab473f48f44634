// Draws of ragged columns beside a bad block of the cold store: each trajectory whose pages went
// with it costs one draw, and no other.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/values_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;

using testing::Bytes;

class ValuesDamageTest : public testing::StoreTest {
 protected:
  static constexpr int kDamagedTrajectories = 120;

  void SetUp() override {
    options_.budgets.frames_bytes = 8 << 20;
    options_.segment_bytes = 128 << 10;
    options_.ring_bytes = 256 << 10;
    options_.log_bytes_max = 512 << 10;
    Open();
    TableSpec spec{.name = "values"};
    spec.steps_per_page = 4;
    spec.columns = {
        {.name = "row", .dtype = DType::kI64},
        {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 4000}};
    spec.priority_tables = {testing::WindowSpec("p"), {.name = "queue"}};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    PriorityTableSpec& queue = spec.priority_tables[1];
    queue.item = ItemKind::kTrajectory;
    queue.selector = SelectorKind::kFifo;
    queue.max_times_sampled = 1;
    queue.remove_when_exhausted = true;
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
    for (int64_t i = 0; i < kDamagedTrajectories; ++i) {
      const Bytes text(16000, static_cast<uint8_t>(i));
      const std::vector<uint64_t> offsets = {0, 4000, 8000, 12000, 16000};
      const std::vector<int64_t> rows(4, i);
      const std::vector<ColumnValue> values = {
          {"row", TensorView::Of(std::span<const int64_t>(rows))},
          {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
      ASSERT_OK(writer_->AppendTrajectory(values, {.end = End::kTerminated}));
    }
    Close();
    fs::copy(dir_->path(), whole_.File("store"), fs::copy_options::recursive);
  }
  /// False: it cannot be opened.
  bool OpenDamaged(const std::string& file, uint64_t at) {
    Close();
    fs::remove_all(dir_->path());
    fs::copy(whole_.File("store"), dir_->path(), fs::copy_options::recursive);
    testing::FlipByte(dir_->File("cold") + "/" + file, at);
    auto opened = Database::Open(dir_->path(), options_);
    if (!opened.ok()) return false;
    database_ = std::move(*opened);
    auto table = database_->OpenTable("values");
    if (table.ok()) table_ = std::move(*table);
    return table.ok();
  }
  /// Of draws that show the column: how many fail, and how many are good behind the first of these.
  void Draw(int64_t prefetch, int* failed, int* good_behind) {
    ASSERT_OK_AND_ASSIGN(
        const auto sampler,
        priority("p")->NewSampler(
            {.batch = 2, .views = {{.column = "text"}}, .prefetch = prefetch, .seed = 3}));
    for (int draw = 0; draw < 120; ++draw) {
      const auto batch = sampler->Next();
      if (batch.ok()) {
        *good_behind += *failed > 0 ? 1 : 0;
      } else {
        ASSERT_EQ(batch.status().code(), StatusCode::kCorruption) << batch.status();
        ++*failed;
      }
    }
  }
  /// Takes all trajectories from the queue: the rows that come, and how many draws fail.
  void TakeAll(int64_t prefetch, std::vector<int64_t>* rows, int* failed) {
    ASSERT_OK_AND_ASSIGN(
        const auto sampler,
        priority("queue")->NewSampler(
            {.batch = 1, .views = {{.column = "row"}, {.column = "text"}}, .prefetch = prefetch}));
    while (*failed <= kDamagedTrajectories) {
      const auto batch = sampler->Next(Deadline::Now());
      if (batch.status().code() == StatusCode::kDeadlineExceeded) return;
      if (batch.ok()) {
        const int64_t row = (*batch)["row"].values<int64_t>()[0];
        EXPECT_EQ((*batch)["text"].values<uint8_t>()[0], static_cast<uint8_t>(row));
        rows->push_back(row);
      } else {
        ASSERT_STATUS(kCorruption, batch.status(), "nothing else has the page");
        ++*failed;
      }
    }
    ADD_FAILURE() << "no end of errors";
  }

  testing::TempDir whole_;
};

// A draw that needs the offsets before it is a batch was made again and again.
TEST_F(ValuesDamageTest, ABlockThatHidesOffsetsStopsNoOtherDraws) {
  int met = 0, files = 0;
  for (const auto& entry : fs::directory_iterator(whole_.File("store") + "/cold")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".sst") || entry.file_size() < 4096 || met >= 4) continue;
    for (const uint64_t eighth : {1u, 3u, 5u}) {
      SCOPED_TRACE(file + " at " + std::to_string(eighth));
      if (!OpenDamaged(file, entry.file_size() * eighth / 8)) continue;
      ++files;
      int failed = 0, good_behind = 0;
      ASSERT_NO_FATAL_FAILURE(Draw(files % 2 == 0 ? 0 : 3, &failed, &good_behind));
      if (failed == 0) continue;
      ++met;
      EXPECT_GT(good_behind, 0) << failed;
    }
  }
  EXPECT_GT(met, 0) << files;
}

// The trajectory at the head of a queue stopped all that came behind it.
TEST_F(ValuesDamageTest, ABlockThatHidesTheHeadOfAQueueCostsItAlone) {
  int met = 0;
  for (const auto& entry : fs::directory_iterator(whole_.File("store") + "/cold")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".sst") || entry.file_size() < 4096 || met >= 4) continue;
    for (const uint64_t eighth : {1u, 4u}) {
      SCOPED_TRACE(file + " at " + std::to_string(eighth));
      if (!OpenDamaged(file, entry.file_size() * eighth / 8)) continue;
      std::vector<int64_t> rows;
      int failed = 0;
      ASSERT_NO_FATAL_FAILURE(TakeAll(met % 2 == 0 ? 0 : 3, &rows, &failed));
      EXPECT_EQ(rows.size() + static_cast<size_t>(failed), size_t{kDamagedTrajectories});
      EXPECT_TRUE(std::ranges::is_sorted(rows));
      EXPECT_EQ(table_->Stats().trajectories, rows.size()) << "others still have their windows";
      met += failed > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(met, 0);
}

}  // namespace
}  // namespace geardb
