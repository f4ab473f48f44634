// Columns come and leave under everybody's hands: writers of all ages, samplers, readers, patches
// and somebody who drops frames.
// concurrent: engine/internal/column_change.h engine/internal/column_change.cc
// concurrent: engine/internal/table_columns.cc engine/internal/table_frames_columns.cc
// concurrent: engine/internal/table_frames.h engine/internal/table_state.h
#include <atomic>
#include <thread>

#include "engine/internal/column_change.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class ColumnChangeConcurrentTest : public testing::StoreTest {
 protected:
  /// Rows whose added columns, as far as the writer knows them, are its number; until `stop_`.
  void Write() {
    for (int k = 0; !stop_.load(); ++k) {
      const TableSpec spec = table_->spec();
      auto writer = table_->NewWriter({});
      ASSERT_OK(writer);
      const testing::Rows rows(10 * k, 7);
      const std::vector<float> fives(7, 5);
      for (int call = 0; call < 6; ++call) {
        std::vector<ColumnValue> values = rows.many();
        for (const Column& column : spec.columns) {
          if (column.group.empty()) continue;
          values.push_back({column.name, TensorView::Of(std::span<const float>(fives))});
        }
        const auto appended =
            (*writer)->AppendSteps(values, {.end = call % 3 == 2 ? End::kTerminated : End::kGo});
        // The columns have changed between the two calls above.
        if (!appended.ok()) {
          ASSERT_TRUE(appended.status().code() == StatusCode::kNotFound ||
                      appended.status().code() == StatusCode::kInvalidArgument)
              << appended.status();
          break;
        }
        calls_.fetch_add(1);
      }
    }
  }
  /// Values are those of a writer, a patch, or the default.
  static void ExpectValues(std::span<const float> values) {
    for (const float value : values) ASSERT_TRUE(value == 5 || value == 6 || value == -1) << value;
  }
  void Draw() {
    auto per = table_->OpenPriorityTable("per");
    ASSERT_OK(per);
    while (!stop_.load()) {
      const std::string name = names_[batches_.load() % 3];
      auto sampler = (*per)->NewSampler({.batch = 8, .views = {{.column = name}}, .prefetch = 1});
      if (!sampler.ok()) {
        ASSERT_EQ(sampler.status().code(), StatusCode::kNotFound) << sampler.status();
        batches_.fetch_add(1);
        continue;
      }
      for (int k = 0; k < 5; ++k) {
        const auto batch = (*sampler)->Next();
        if (!batch.ok()) {
          ASSERT_EQ(batch.status().code(), StatusCode::kNotFound) << batch.status();
          break;
        }
        ExpectValues((*batch)[name].values<float>());
        batches_.fetch_add(1);
      }
    }
  }
  void Read() {
    for (size_t k = 0; !stop_.load(); ++k) {
      const std::string_view name = names_[k % 3];
      for (const TrajectoryRecord& record : table_->Scan({.limit = 4})) {
        const auto rows = table_->Read(record.id, {&name, 1}, {});
        if (rows.ok()) {
          ExpectValues((*rows)[0].view().values<float>());
        } else {
          ASSERT_EQ(rows.status().code(), StatusCode::kNotFound) << rows.status();
        }
        const float six[] = {6};
        const ColumnValue value[] = {{name, TensorView::Of(std::span<const float>(six))}};
        const RowSpan span[] = {{record.id, record.first_row, 1}};
        const auto patched = table_->Patch(span, value);
        ASSERT_TRUE(patched.ok() || patched.status().code() == StatusCode::kNotFound)
            << patched.status();
      }
    }
  }

  const std::vector<std::string> names_ = {"a", "b", "c"};
  std::atomic<bool> stop_{false};
  std::atomic<size_t> calls_{0};
  std::atomic<size_t> batches_{0};
};

TEST_F(ColumnChangeConcurrentTest, EverybodyFindsWhatThereIs) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 60;
  spec.priority_tables = {testing::WindowSpec("per")};
  Create(spec);
  AppendClosed(0, 9);
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) threads.emplace_back([this] { Write(); });
  threads.emplace_back([this] { Draw(); });
  threads.emplace_back([this] { Read(); });
  threads.emplace_back([this] {
    while (!stop_.load()) testing::DropFrames(*database_);
  });
  bool there[3] = {};
  for (size_t k = 0; k < 60; ++k) {
    const size_t which = (k * 7 + k / 3) % 3;
    const std::string& name = names_[which];
    if (there[which]) {
      const std::string_view dropped[] = {name};
      EXPECT_OK(table_->DropColumns(dropped));
    } else {
      const Column added[] = {{.name = name, .default_value = -1}};
      EXPECT_OK(table_->AddColumns(added));
    }
    there[which] = !there[which];
    const size_t seen = calls_.load();
    while (calls_.load() < seen + 3 && !HasFailure()) std::this_thread::yield();
  }
  stop_.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(batches_.load(), 0u);
  writer_.reset();
  const TableSpec now = table_->spec();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->spec(), now);
}

}  // namespace
}  // namespace geardb
