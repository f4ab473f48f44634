// What limiters say of an append in parts: others change things while its parts are written, and
// it is asked for what it makes drawable by then.
//
// concurrent: engine/internal/append_limits.cc engine/internal/append_groups.cc
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/crash_point.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// A page of two rows is a piece, and a part of an append.
constexpr int64_t kWideBytes = 64 << 10;

/// Who appends in parts, and what others do while these are written: a step at each.
struct BetweenParts {
  engine::DatabaseCore* core = nullptr;
  std::thread::id appender = {};
  std::vector<std::function<void()>> steps = {};
  size_t done = 0;
  std::atomic<size_t> ended = 0;
  std::vector<std::thread> threads = {};
};
std::atomic<BetweenParts*> between_parts{nullptr};

/// Lets the next step begin: until it has the commit mutex, so that the append goes on behind it,
/// or has ended.
void DoBetweenParts(const char* point) {
  BetweenParts* const between = between_parts.load();
  if (std::string_view(point) != "copy_into_ring" || between == nullptr) return;
  const bool steps = std::this_thread::get_id() == between->appender;
  if (!steps || between->done == between->steps.size()) return;
  const Lsn end = between->core->log->end();
  const auto ended = [between] { return between->ended.load() == between->done; };
  between->threads.emplace_back([between, step = between->steps[between->done++]] {
    step();
    ++between->ended;
  });
  while (!ended() && between->core->log->end() == end && between->core->commit.TryLock()) {
    between->core->commit.Unlock();
    std::this_thread::yield();
  }
}

class AppendLimitsConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.background = false;  // Nobody but the test takes the commit mutex.
    options_.log_bytes_max = uint64_t{256} << 20;
    Open();
  }
  void TearDown() override {
    SetCrashHook(nullptr);
    between_parts.store(nullptr);
    for (std::thread& thread : between_.threads) thread.join();
  }
  static PriorityTableSpec QueueOf(uint64_t capacity, Extent extent = {}) {
    PriorityTableSpec spec = testing::WindowSpec("limited", extent);
    spec.selector = SelectorKind::kFifo;
    spec.limiter = {.kind = LimiterKind::kQueue, .capacity = capacity};
    return spec;
  }
  /// Rows are items once their trajectory has a key.
  static PriorityTableSpec QueueOfRowsWithKeys(uint64_t capacity) {
    PriorityTableSpec spec = QueueOf(capacity);
    spec.required = {"key"};
    return spec;
  }
  void SetKey(TrajectoryId id) {
    const int32_t value = 1;
    const ColumnValue key[] = {{"key", TensorView::Scalar(value)}};
    EXPECT_OK(table_->SetColumns(id, key));
  }
  /// Writers wait for what only a defect keeps away.
  void CreateWide(const PriorityTableSpec& priority_spec, uint64_t trajectories_max = 0) {
    TableSpec spec;
    spec.trajectories_max = trajectories_max;
    if (trajectories_max > 0) spec.remover = Remover::kNone;
    spec.name = "wide";
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {kWideBytes}},
                    {.name = "key", .dtype = DType::kI32, .kind = ColumnKind::kPerTrajectory}};
    spec.steps_per_page = 2;
    spec.priority_tables = {priority_spec};
    Create(spec, {.admission_timeout_ms = 60'000});
    ASSERT_OK_AND_ASSIGN(other_, table_->NewWriter({.admission_timeout_ms = 60'000}));
  }
  static Result<Appended> AppendWide(Writer* writer, int64_t rows, End end = End::kGo,
                                     int32_t key = 0) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(rows * kWideBytes), 1);
    const ColumnValue keys[] = {{"key", TensorView::Scalar(key)}};
    const std::span<const ColumnValue> given(keys, end == End::kGo ? 0 : 1);
    return writer->AppendSteps(
        {{"x", TensorView::Of(std::span<const uint8_t>(bytes), Shape({rows, kWideBytes}))}},
        {.end = end, .trajectory = given});
  }
  /// Eight rows, in four parts, beside `steps`.
  Status AppendInParts(std::vector<std::function<void()>> steps, End end = End::kGo,
                       int32_t key = 0) {
    core_ = testing::CoreOf(*database_);
    between_.core = core_.get();
    between_.appender = std::this_thread::get_id();
    between_.steps = std::move(steps);
    between_parts.store(&between_);
    SetCrashHook(&DoBetweenParts);
    const Status appended = AppendWide(writer_.get(), 8, end, key).status();
    EXPECT_EQ(between_.done, between_.steps.size());
    return appended;
  }
  /// Likewise by a thread, until it waits for the limiter; `then` lets it through.
  void ExpectWaits(std::function<void()> step, End end, int32_t key,
                   const std::function<void()>& then) {
    std::atomic<bool> returned{false};
    std::thread appends([&] {
      EXPECT_OK(AppendInParts({std::move(step)}, end, key));
      returned = true;
    });
    const auto limited = priority("limited");
    while (!returned && limited->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
    EXPECT_FALSE(returned.load()) << "it took more places than there are";
    {
      const auto core = testing::CoreOf(*database_);
      MutexLock commit(&core->commit);
      EXPECT_TRUE(core->open_groups.empty()) << "the log goes back no further than to its parts";
    }
    then();
    appends.join();
  }
  void SampleOne() {
    ASSERT_OK_AND_ASSIGN(const auto sampler, priority("limited")->NewSampler({.batch = 1}));
    ASSERT_OK(sampler->Next(Deadline::Now()));
  }

  BetweenParts between_;
  std::shared_ptr<engine::DatabaseCore> core_;
  std::unique_ptr<Writer> other_;
};

// Nobody was told of the place, and who waited for it was refused when its time was over.
TEST_F(AppendLimitsConcurrentTest, APlaceThatIsNeededNoMoreIsGivenToWhoWaits) {
  CreateWide(QueueOf(8, {.before = 0, .length = 3, .after = 0}));
  ASSERT_OK_AND_ASSIGN(const Appended open, AppendWide(writer_.get(), 1));
  ASSERT_OK(AppendWide(writer_.get(), 1));
  const auto limited = priority("limited");
  Status waited = Status::Cancelled("it has not returned");
  ASSERT_OK(AppendInParts({[&] { waited = AppendWide(other_.get(), 1, End::kTerminated).status(); },
                           [&] {
                             EXPECT_EQ(limited->WhyBlocked().inserts.waiting, 1u);
                             EXPECT_OK(table_->Truncate(open.id, 1));
                           }}));
  for (std::thread& thread : between_.threads) thread.join();
  between_.threads.clear();
  EXPECT_OK(waited);
  EXPECT_EQ(limited->Count(), 8u);
}

// Others took the room while its parts were written; it gave these up and wrote them again and
// again.
TEST_F(AppendLimitsConcurrentTest, RoomOfATableIsItsOwnWhileItsPartsAreWritten) {
  CreateWide(testing::WindowSpec("all"), /*trajectories_max=*/1);
  ASSERT_OK_AND_ASSIGN(const auto hasty, table_->NewWriter({.admission_timeout_ms = 0}));
  Status refused;
  const Status appended =
      AppendInParts({[&] { refused = AppendWide(hasty.get(), 1, End::kTerminated).status(); }});
  for (std::thread& thread : between_.threads) thread.join();
  between_.threads.clear();
  EXPECT_OK(appended);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.message();
  // What it was promised has gone with it.
  ASSERT_OK(writer_->Cut(0));
  const TrajectoryId id = 1;
  ASSERT_OK(table_->Remove({&id, 1}));
  EXPECT_OK(AppendWide(hasty.get(), 1, End::kTerminated).status());
}

// Rows that wait for a column were admitted as no items, and came as items all the same.
TEST_F(AppendLimitsConcurrentTest, ItWaitsForItemsThatAColumnMadeOfItsRowsMeanwhile) {
  CreateWide(QueueOfRowsWithKeys(8));
  ASSERT_OK_AND_ASSIGN(const Appended open, AppendWide(writer_.get(), 1));
  const auto set = [&] { SetKey(open.id); };
  ExpectWaits(set, End::kGo, 0, [&] {
    EXPECT_EQ(priority("limited")->Count(), 1u);
    SampleOne();
  });
  EXPECT_EQ(priority("limited")->Count(), 9u);
  EXPECT_EQ(priority("limited")->Stats().limiter.inserts, 9u);
  // It has gone ahead twice.
  SetCrashHook(nullptr);
  Reopen();
  OpenAgain("wide");
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(open.id, {}, {}));
  const auto bytes = read[0].view().values<uint8_t>();
  EXPECT_EQ(std::ranges::count(bytes, 1), 9 * kWideBytes);
}

TEST_F(AppendLimitsConcurrentTest, ItIsRefusedForMoreItemsThanThereAreEverPlacesFor) {
  CreateWide(QueueOfRowsWithKeys(5));
  ASSERT_OK_AND_ASSIGN(const Appended open, AppendWide(writer_.get(), 1));
  const auto set = [&] { SetKey(open.id); };
  EXPECT_STATUS(kInvalidArgument, AppendInParts({set}), "'limited' never admits the call");
  EXPECT_EQ(priority("limited")->Count(), 1u);
  // The writer, and the places, are as they were.
  ASSERT_OK(AppendWide(writer_.get(), 1));
  EXPECT_EQ(priority("limited")->Count(), 2u);
}

TEST_F(AppendLimitsConcurrentTest, ItIsAskedForALimiterThatCameMeanwhile) {
  CreateWide(testing::WindowSpec("limited"));
  const auto limit = [&] {
    PriorityLimits limits;
    limits.limiter = {.kind = LimiterKind::kQueue, .capacity = 5};
    EXPECT_OK(priority("limited")->Configure(limits));
  };
  EXPECT_STATUS(kInvalidArgument, AppendInParts({limit}), "'limited' never admits the call");
  EXPECT_EQ(priority("limited")->Count(), 0u);
}

TEST_F(AppendLimitsConcurrentTest, ItIsAskedForAPriorityTableThatCameMeanwhile) {
  CreateWide(QueueOf(8));
  const auto create = [&] {
    PriorityTableSpec spec = QueueOf(5);
    spec.name = "smaller";
    EXPECT_OK(table_->CreatePriorityTable(spec));
  };
  EXPECT_STATUS(kInvalidArgument, AppendInParts({create}), "'smaller' never admits the call");
  EXPECT_EQ(priority("limited")->Count(), 0u);
  EXPECT_EQ(priority("limited")->WhyBlocked().inserts.reason, "") << "its places are free";
}

// A queue of one group held two.
TEST_F(AppendLimitsConcurrentTest, ItWaitsWhereOthersHaveLeftItTheLastPlaceOfAGroup) {
  PriorityTableSpec spec = QueueOf(1);
  spec.item = ItemKind::kGroup;
  spec.window = {};
  spec.group = {.key = "key", .count = 3};
  CreateWide(spec);
  for (const int32_t key : {8, 8, 8, 7}) {
    ASSERT_OK(AppendWide(other_.get(), 1, End::kTerminated, key));
  }
  const auto join = [&] { EXPECT_OK(AppendWide(other_.get(), 1, End::kTerminated, 7)); };
  ExpectWaits(join, End::kTerminated, 7, [&] {
    EXPECT_EQ(priority("limited")->Count(), 1u);
    SampleOne();
  });
  EXPECT_EQ(priority("limited")->Stats().groups.complete, 1u) << "the other one has left";
}

}  // namespace
}  // namespace geardb
