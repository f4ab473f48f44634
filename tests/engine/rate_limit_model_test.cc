// Random programs of appends, draws, removals, other limits, reopens and crashes, against a plain
// model of one priority table: which items a batch shows, who is admitted, every count.

#include <algorithm>
#include <deque>
#include <random>

#include "tests/engine/rate_limit_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::RateLimitFixture;

using Item = std::pair<TrajectoryId, int64_t>;

/// An item, in the order in which they became drawable.
struct ModelItem {
  Item item;
  uint32_t sampled = 0;   ///< As far as it was counted.
  uint32_t reserved = 0;  ///< Likewise.
  bool there = true;
};

struct ModelBatch {
  std::vector<size_t> items = {};  ///< Places in `items`.
  bool counted = false;
  uint64_t number = 0;
};

/// What the headers say, as slowly as may be.
struct Model {
  PriorityLimits limits;
  bool lifo = false;
  bool counts = false;  ///< There was a maximum once.
  std::vector<ModelItem> items;
  std::deque<ModelBatch> ahead;
  int64_t inserts = 0, samples = 0, reserved = 0, deletes = 0, unsampled = 0;
  int64_t inserts_from = 0, samples_from = 0;
  uint64_t next_draw = 0, next_ahead = 0;

  static bool IsQueue(const RateLimit& limit) {
    return limit.kind == LimiterKind::kQueue || limit.kind == LimiterKind::kStack;
  }
  const RateLimit& limiter() const { return limits.limiter; }
  bool is_queue() const { return IsQueue(limiter()); }
  uint32_t max() const { return is_queue() ? 1 : limits.max_times_sampled; }
  bool removes() const { return limits.remove_when_exhausted.value_or(is_queue()); }
  int64_t size() const { return inserts - deletes; }
  int64_t waiting() const {
    return (inserts - inserts_from) - unsampled - (samples - samples_from);
  }
  double error() const {
    return static_cast<double>(inserts - inserts_from) * limiter().samples_per_insert -
           static_cast<double>(samples - samples_from);
  }
  double centre() const {
    return limiter().samples_per_insert * static_cast<double>(limiter().min_size);
  }
  int64_t min_size() const { return static_cast<int64_t>(limiter().min_size); }
  int64_t capacity() const { return static_cast<int64_t>(limiter().capacity); }

  /// OK, DeadlineExceeded, or InvalidArgument for never.
  StatusCode Insert(int64_t n) const {
    const auto refused = [](bool never) {
      return never ? StatusCode::kInvalidArgument : StatusCode::kDeadlineExceeded;
    };
    if (is_queue()) {
      return waiting() + n <= capacity() ? StatusCode::kOk : refused(n > capacity());
    }
    if (limiter().kind == LimiterKind::kMinSize || size() < min_size()) return StatusCode::kOk;
    const double more = static_cast<double>(n) * limiter().samples_per_insert;
    if (error() + more <= centre() + limiter().error_buffer) return StatusCode::kOk;
    return refused(more > 2 * limiter().error_buffer);
  }
  bool Drawable(const ModelItem& item) const {
    return item.there && (max() == 0 || item.sampled + item.reserved < max());
  }
  bool Admits(int64_t n) const {
    if (is_queue()) return waiting() - reserved >= n;
    if (size() < min_size()) return false;
    if (limiter().kind == LimiterKind::kMinSize) return true;
    return error() - static_cast<double>(reserved + n) >= centre() - limiter().error_buffer;
  }
  bool Never(int64_t n) const {
    if (Admits(n)) return false;
    if (is_queue()) return n > capacity();
    return limiter().kind == LimiterKind::kRatio && size() >= min_size() &&
           static_cast<double>(n) > 2 * limiter().error_buffer;
  }
  bool Draw(int64_t n) {
    ModelBatch batch{.counted = max() > 0, .number = next_ahead};
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t place = lifo ? items.size() - 1 - i : i;
      if (static_cast<int64_t>(batch.items.size()) < n && Drawable(items[place])) {
        batch.items.push_back(place);
      }
    }
    if (static_cast<int64_t>(batch.items.size()) < n || !Admits(n)) return false;
    for (const size_t place : batch.items) items[place].reserved += batch.counted ? 1 : 0;
    reserved += n;
    ++next_ahead;
    ahead.push_back(std::move(batch));
    return true;
  }
  void Cancel(const ModelBatch& batch) {
    reserved -= static_cast<int64_t>(batch.items.size());
    if (!batch.counted) return;
    for (const size_t place : batch.items) {
      if (items[place].there && items[place].reserved > 0) --items[place].reserved;
    }
  }
  void CancelAll() {
    for (const ModelBatch& batch : ahead) Cancel(batch);
    ahead.clear();
    next_ahead = next_draw;
  }
  void HandOver() {
    const ModelBatch batch = ahead.front();
    ahead.pop_front();
    Cancel(batch);
    next_draw = batch.number + 1;
    int64_t rows = static_cast<int64_t>(batch.items.size());
    // Drawn before it was a queue, in which all items wait.
    if (is_queue() && !batch.counted) rows = 0;
    std::vector<TrajectoryId> shown;
    for (const size_t place : batch.items) {
      ModelItem& item = items[place];
      shown.push_back(item.item.first);
      if (!batch.counted) continue;
      if (item.there) {
        // Drawn before it was a queue, in which it has waited once.
        if (is_queue() && item.sampled > 0) --rows;
        ++item.sampled;
      } else if (is_queue()) {
        --rows;
      }
    }
    samples += rows;
    if (!removes() || max() == 0) return;
    for (const TrajectoryId id : shown) {
      if (Finished(id)) Remove(id);
    }
  }
  bool Finished(TrajectoryId id) const {
    bool any = false;
    for (const ModelItem& item : items) {
      if (item.item.first != id || !item.there) continue;
      if (item.sampled < max()) return false;
      any = true;
    }
    return any;
  }
  void Remove(TrajectoryId id) {
    for (ModelItem& item : items) {
      if (item.item.first != id || !item.there) continue;
      item.there = false;
      ++deletes;
      if (counts && item.sampled == 0) ++unsampled;
    }
  }
  void Configure(const PriorityLimits& to) {
    const bool queue = IsQueue(to.limiter);
    const bool goes_on = queue ? is_queue()
                               : limiter().kind == to.limiter.kind &&
                                     limiter().min_size == to.limiter.min_size &&
                                     limiter().samples_per_insert == to.limiter.samples_per_insert;
    if (!goes_on) {
      const auto least = static_cast<int64_t>(to.limiter.min_size);
      inserts_from = inserts - (queue ? size() + unsampled : std::min(size(), least));
      samples_from = samples;
    }
    if (queue && !is_queue()) {
      for (ModelItem& item : items) {
        item.sampled = 0;
        item.reserved = std::min(item.reserved, 1u);
      }
    }
    limits = to;
    counts |= max() > 0;
  }
  uint64_t Exhausted() const {
    return static_cast<uint64_t>(std::count_if(items.begin(), items.end(), [&](const auto& item) {
      return item.there && max() > 0 && item.sampled >= max();
    }));
  }
  /// What other limits finish, or an open where the process died behind a hand-over.
  void FinishAll() {
    if (!removes() || max() == 0) return;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].there && Finished(items[i].item.first)) Remove(items[i].item.first);
    }
  }
};

class RateLimitModelTest : public RateLimitFixture {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  PriorityLimits RandomLimits() {
    PriorityLimits limits;
    limits.limiter.min_size = 1 + Roll(6);
    limits.limiter.kind = static_cast<LimiterKind>(Roll(3));
    if (limits.limiter.kind == LimiterKind::kRatio) {
      constexpr double kRatios[] = {0.5, 1, 2, 4};
      limits.limiter.samples_per_insert = kRatios[Roll(4)];
      limits.limiter.error_buffer =
          std::max(1.0, limits.limiter.samples_per_insert) + static_cast<double>(Roll(8));
    }
    if (limits.limiter.kind == LimiterKind::kQueue) {
      if (model_.lifo) limits.limiter.kind = LimiterKind::kStack;
      limits.limiter.capacity = 1 + Roll(8);
    } else {
      limits.max_times_sampled = static_cast<uint32_t>(Roll(4));
    }
    if (Roll(3) == 0) limits.remove_when_exhausted = Roll(2) == 0;
    return limits;
  }

  void Compare() {
    const PriorityTableStats stats = priority("limited")->Stats();
    EXPECT_EQ(stats.limiter.inserts, static_cast<uint64_t>(model_.inserts));
    EXPECT_EQ(stats.limiter.samples, static_cast<uint64_t>(model_.samples));
    EXPECT_EQ(stats.limiter.reserved, static_cast<uint64_t>(model_.reserved));
    EXPECT_EQ(stats.limiter.deletes, static_cast<uint64_t>(model_.deletes));
    EXPECT_EQ(stats.limiter.deleted_unsampled, static_cast<uint64_t>(model_.unsampled));
    EXPECT_EQ(stats.limiter.exhausted, model_.Exhausted());
    EXPECT_EQ(stats.items, static_cast<uint64_t>(model_.size()));
    EXPECT_EQ(stats.draws, model_.next_draw);
    const auto drawable =
        std::count_if(model_.items.begin(), model_.items.end(),
                      [&](const ModelItem& item) { return model_.Drawable(item); });
    EXPECT_EQ(stats.drawable_items, static_cast<uint64_t>(drawable));
  }

  void Append() {
    const auto count = static_cast<int64_t>(1 + Roll(4));
    const StatusCode expected = model_.Insert(count);
    // Ids after a reopen wait for a sync: only who is to be refused for the time has none.
    const bool hasty = expected == StatusCode::kDeadlineExceeded;
    auto writer = table_->NewWriter({.admission_timeout_ms = hasty ? 0 : 600'000});
    ASSERT_OK(writer);
    writer_ = std::move(*writer);
    const auto appended = TryAppend(0, count);
    ASSERT_EQ(appended.status().code(), expected) << appended.status().ToString();
    if (!appended.ok()) return;
    for (int64_t row = 0; row < count; ++row) model_.items.push_back({.item = {appended->id, row}});
    model_.inserts += count;
  }
  void Next() {
    if (sampler_ == nullptr) {
      batch_ = static_cast<int64_t>(1 + Roll(3));
      prefetch_ = static_cast<int64_t>(Roll(3));
      sampler_ = Sample(batch_, prefetch_);
    }
    const auto depth = static_cast<size_t>(std::max<int64_t>(prefetch_, 1));
    while (model_.ahead.size() < depth && model_.Draw(batch_)) {
    }
    const auto batch = NextNow(sampler_.get());
    if (model_.ahead.empty()) {
      const bool never = model_.Never(batch_);
      ASSERT_EQ(batch.status().code(),
                never ? StatusCode::kInvalidArgument : StatusCode::kDeadlineExceeded)
          << batch.status().ToString();
      return;
    }
    ASSERT_OK(batch);
    std::vector<Item> items;
    for (const size_t place : model_.ahead.front().items) items.push_back(model_.items[place].item);
    EXPECT_EQ(ItemsOf(*batch), items);
    EXPECT_EQ(batch->draw_number(), model_.ahead.front().number);
    model_.HandOver();
    if (prefetch_ > 0) model_.Draw(batch_);
  }
  void DropSampler() {
    sampler_.reset();
    model_.CancelAll();
  }
  void RemoveOne() {
    if (model_.items.empty()) return;
    const ModelItem& item = model_.items[Roll(model_.items.size())];
    if (!item.there) return;
    const TrajectoryId id = item.item.first;
    ASSERT_OK(table_->Remove({&id, 1}));
    model_.Remove(id);
  }
  void OpenAtRest(bool crash) {
    std::unique_ptr<testing::TempDir> copy;
    if (crash) copy = testing::CopyOpenStore(dir_->path());
    DropSampler();
    Close();
    if (crash) dir_ = std::move(copy);
    Open();
    OpenAgain("steps", {.admission_timeout_ms = 0});
    model_.FinishAll();
  }

  void Run(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    model_ = Model();
    model_.lifo = Roll(2) == 0;
    PriorityTableSpec spec = Limited({}, model_.lifo ? SelectorKind::kLifo : SelectorKind::kFifo);
    const PriorityLimits limits = RandomLimits();
    spec.limiter = limits.limiter;
    spec.max_times_sampled = limits.max_times_sampled;
    spec.remove_when_exhausted = limits.remove_when_exhausted;
    model_.limits = limits;
    model_.counts = model_.max() > 0;
    sampler_.reset();
    OpenEmpty();
    CreateLimited(spec);
    for (int step = 0; step < 120 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const uint64_t what = Roll(100);
      if (what < 40) {
        Append();
      } else if (what < 80) {
        Next();
      } else if (what < 86) {
        DropSampler();
      } else if (what < 92) {
        RemoveOne();
      } else if (what < 96) {
        const PriorityLimits other = RandomLimits();
        ASSERT_OK(priority("limited")->Configure(other));
        model_.Configure(other);
        model_.FinishAll();
      } else {
        OpenAtRest(what >= 98);
      }
      if (!HasFatalFailure()) Compare();
    }
    sampler_.reset();
  }

  std::mt19937_64 random_;
  Model model_;
  std::unique_ptr<Sampler> sampler_;
  int64_t batch_ = 1, prefetch_ = 0;
};

TEST_F(RateLimitModelTest, RandomProgramsDoWhatTheModelDoes) {
  const uint64_t programs = testing::ShareOf(32);
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) Run(seed);
}

}  // namespace
}  // namespace geardb
