// What a writer's copy into a frame is safe from.
#include "engine/internal/append.h"

#include <gtest/gtest.h>

#include <functional>
#include <string_view>

#include "base/crash_point.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StoreTest;

constexpr int64_t kRowBytes = 64 << 10;

/// What the hook, a plain function, calls once.
std::function<void()> during_copy;

void DuringCopy(const char* point) {
  if (std::string_view(point) != "copy_rows" || !during_copy) return;
  const auto call = std::move(during_copy);
  during_copy = nullptr;
  call();
}

class AppendTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.budgets.frames_bytes = uint64_t{2} << 20;
    options_.resident = true;
    options_.ring_bytes = uint64_t{8} << 20;  // No call waits for it.
    Open();
    TableSpec spec;
    spec.name = "wide";
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {kRowBytes}}};
    spec.steps_per_page = 2;
    Create(spec, {.admission_timeout_ms = 0});
    SetCrashHook(&DuringCopy);
  }
  void TearDown() override {
    SetCrashHook(nullptr);
    during_copy = nullptr;
  }
  static Result<Appended> AppendRow(Writer* writer, uint8_t value, End end) {
    const std::vector<uint8_t> row(kRowBytes, value);
    return writer->Append({{"x", TensorView::Of(std::span<const uint8_t>(row))}}, {.end = end});
  }
};

// The frame of the tail page that is being written is nobody else's until the copy has ended.
TEST_F(AppendTest, ATailPagesFrameIsKeptWhileItsTrajectoryIsRemoved) {
  ASSERT_OK_AND_ASSIGN(const Appended first, AppendRow(writer_.get(), 1, End::kGo));
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({.admission_timeout_ms = 0}));
  Status status;
  while (status.ok()) status = AppendRow(other.get(), 2, End::kTerminated).status();
  ASSERT_STATUS(kResourceExhausted, status, "the frame budget");
  Status meanwhile;
  during_copy = [&] {
    ASSERT_OK(table_->Remove({&first.id, 1}));
    meanwhile = AppendRow(other.get(), 3, End::kTerminated).status();
  };
  EXPECT_STATUS(kNotFound, AppendRow(writer_.get(), 4, End::kGo), "was removed");
  EXPECT_STATUS(kResourceExhausted, meanwhile, "the frame budget");
  // Now it may have it.
  ASSERT_OK_AND_ASSIGN(const Appended next, AppendRow(other.get(), 3, End::kTerminated));
  const std::string_view columns[] = {"x"};
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(next.id, columns, {}));
  for (const uint8_t byte : rows[0].view().values<uint8_t>()) ASSERT_EQ(byte, 3);
}

// The lane was free after any error: what came next began a trajectory, also where the call itself
// was tried again, and nobody was told.
TEST_F(AppendTest, AnErrorDoesNotHideThatTheTrajectoryWasRemoved) {
  ASSERT_OK_AND_ASSIGN(const Appended first, AppendRow(writer_.get(), 1, End::kGo));
  ASSERT_OK(AppendRow(writer_.get(), 1, End::kGo));  // The next row takes a frame.
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({.admission_timeout_ms = 0}));
  Status status;
  while (status.ok()) status = AppendRow(other.get(), 2, End::kTerminated).status();
  ASSERT_STATUS(kResourceExhausted, status, "the frame budget");
  EpochRegistry::Guard reader = testing::CoreOf(*database_)->epochs.Enter();
  SetCrashHook([](const char* point) {
    if (std::string_view(point) != "take_frames" || !during_copy) return;
    const auto call = std::move(during_copy);
    during_copy = nullptr;
    call();
  });
  during_copy = [&] { EXPECT_OK(table_->Remove({&first.id, 1})); };
  EXPECT_STATUS(kResourceExhausted, AppendRow(writer_.get(), 3, End::kGo), "the frame budget");
  reader.Leave();
  EXPECT_STATUS(kNotFound, AppendRow(writer_.get(), 3, End::kGo), "was removed");
  ASSERT_OK_AND_ASSIGN(const Appended next, AppendRow(writer_.get(), 4, End::kGo));
  EXPECT_NE(next.id, first.id);
}

}  // namespace
}  // namespace geardb
