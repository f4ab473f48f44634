// Draw groups of a store: random programs against the plain model of DrawGroupsFixture, live, after
// reopens, and of images that are taken in between.

#include <numeric>
#include <random>
#include <string>

#include "engine/write_batch.h"
#include "tests/engine/internal/draw_groups_fixture.h"
#include "tests/engine/internal/live_core.h"
#include "tests/engine/internal/store_images.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::DrawGroupsFixture;
using testing::ModelDrawGroup;
using testing::ModelDrawGroups;
using testing::Rows;
using By = ModelDrawGroup::By;

class TableDrawGroupsTest : public DrawGroupsFixture {
 protected:
  struct Known {
    int32_t prompt = 0;
    float score = 0;
    uint32_t version = 0;
    bool closed = false;
    bool scored = false;
    bool joined = false;
  };
  uint64_t Roll(uint64_t below) { return random_() % below; }
  bool Percent(uint64_t chance) { return Roll(100) < chance; }
  const PriorityTableSpec& spec() const { return spec_.priority_tables[0]; }

  // ---- A program.

  void BeginProgram(uint64_t seed) {
    random_.seed(seed);
    GroupSpec group{.key = "prompt", .count = 1 + static_cast<uint32_t>(Roll(4))};
    group.at_least = static_cast<uint32_t>(Roll(group.count + 1));
    const bool may_wait = group.at_least > 0 && group.at_least < group.count;
    if (may_wait && Percent(50)) group.deadline_ms = 100;
    PriorityTableSpec drawn = GroupsSpec(group, static_cast<SelectorKind>(seed % 7));
    drawn.initial = static_cast<InitialPriority>(Roll(3));
    drawn.initial_priority_value = 1.5f;
    drawn.initial_priority_column = "score";
    if (Percent(40)) drawn.required = {"score"};
    if (Percent(30)) drawn.max_times_sampled = 1 + static_cast<uint32_t>(Roll(2));
    drawn.remove_when_exhausted = Percent(50);
    if (Percent(40)) drawn.filter = "version >= 1";
    if (Percent(30)) drawn.filter_action = FilterAction::kExpire;
    spec_ = TableOf(drawn);
    if (Percent(40)) spec_.trajectories_max = 8 + Roll(8);
    if (HasPriorities(drawn.selector) && Percent(50)) {
      spec_.remover = Remover::kMinHeap;
      spec_.remover_priority_table = "groups";
    }
    model_ = std::make_unique<ModelDrawGroups>(drawn);
    known_.clear();
    images_ = {};
    bound_ = drawn.filter.empty() ? 0 : 1;
    removals_ = 0;
    OpenEmpty();
    Create(spec_, {.lanes = 4});
  }

  Known Invent() {
    return {.prompt = static_cast<int32_t>(Roll(4)) - 1,
            .score = static_cast<float>(Roll(5)) / 2,
            .version = static_cast<uint32_t>(Roll(10) > 1 ? 2 : 0),
            .scored = Percent(60)};
  }
  static std::vector<ColumnValue> ColumnsOf(const Known& known) {
    std::vector<ColumnValue> columns = {{"prompt", TensorView::Scalar(known.prompt)},
                                        {"version", TensorView::Scalar(known.version)}};
    if (known.scored) columns.push_back({"score", TensorView::Scalar(known.score)});
    return columns;
  }

  void AppendClosedOne() {
    const Known known = Invent();
    const std::vector<ColumnValue> columns = ColumnsOf(known);
    const Rows rows(0, 1 + static_cast<int64_t>(Roll(3)));
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer_->AppendSteps(rows.many(), {.end = End::kTruncated, .trajectory = columns}));
    Came({{appended.id, known}});
  }
  void AppendSeveral() {
    const Rows rows(0, 2);
    WriteBatch batch;
    std::vector<Known> several;
    std::vector<std::vector<ColumnValue>> columns;
    for (uint32_t lane = 2; lane < 4; ++lane) several.push_back(Invent());
    if (Percent(60)) several[1].prompt = several[0].prompt;
    for (const Known& known : several) columns.push_back(ColumnsOf(known));
    for (uint32_t i = 0; i < 2; ++i) {
      batch.AppendTrajectory(writer_.get(), rows.many(),
                             {.lane = 2 + i, .end = End::kTerminated, .trajectory = columns[i]});
    }
    const auto written = database_->Write(batch);
    ASSERT_OK(written);
    std::vector<std::pair<TrajectoryId, Known>> came;
    for (size_t i = 0; i < 2; ++i) {
      came.emplace_back(written->operations[i].appended[0].id, several[i]);
    }
    Came(came);
  }
  /// Lane 1 goes on, and ends some time.
  void AppendOpen() {
    if (open_ == 0) {
      const Known known = Invent();
      const std::vector<ColumnValue> columns = ColumnsOf(known);
      const Rows rows(0, 2);
      ASSERT_OK_AND_ASSIGN(const Appended appended,
                           writer_->AppendSteps(rows.many(), {.lane = 1, .trajectory = columns}));
      open_ = appended.id;
      known_[open_] = known;
      Sync({});
    } else if (Percent(50)) {
      ASSERT_OK(writer_->Cut(1));
      CameOpen();
    } else {
      const Rows rows(2, 1);
      ASSERT_OK(writer_->AppendSteps(rows.many(), {.lane = 1, .end = End::kTerminated}));
      CameOpen();
    }
  }
  void CameOpen() {
    const TrajectoryId id = std::exchange(open_, 0);
    Came({{id, known_.at(id)}});
  }

  // ---- What the model makes of it.

  bool Eligible(const Known& known) const {
    return known.closed && (spec().required.empty() || known.scored);
  }
  void JoinIfReady(TrajectoryId id) {
    Known& known = known_.at(id);
    if (known.joined || !Eligible(known)) return;
    known.joined = true;
    model_->Join(id, known.prompt, known.score, clock_.now_us);
  }
  void Came(const std::vector<std::pair<TrajectoryId, Known>>& came) {
    for (const auto& [id, known] : came) {
      known_[id] = known;
      known_[id].closed = true;
      if (!known.scored) known_[id].score = 0;
    }
    std::vector<TrajectoryId> ids;
    for (const auto& [id, known] : came) ids.push_back(id);
    Sync(ids);
  }
  /// What has left for room left before `newcomers` came; all else left afterwards.
  void Sync(const std::vector<TrajectoryId>& newcomers,
            const std::set<TrajectoryId>& expected = {}) {
    ASSERT_OK_AND_ASSIGN(const Removals removals, table_->ReadRemovals(removals_));
    ASSERT_EQ(removals.missed, 0u);
    removals_ = removals.next;
    std::set<TrajectoryId> left;
    for (const Removal& removal : removals.removals) {
      if (removal.reason == RemovalReason::kCapacity) {
        CheckEvicted(removal.id, newcomers);
        Forget(removal.id);
      } else {
        left.insert(removal.id);
      }
    }
    for (const TrajectoryId id : newcomers) JoinIfReady(id);
    std::set<TrajectoryId> wanted = expected;
    if (spec().filter_action == FilterAction::kExpire) {
      for (const auto& [id, known] : known_) {
        if (known.closed && known.version < bound_) wanted.insert(id);
      }
    }
    EXPECT_EQ(left, wanted) << "the filter is at " << bound_;
    for (const TrajectoryId id : left) Forget(id);
  }
  /// What a trajectory is worth to a remover by priority: as much as its group.
  float Worth(TrajectoryId id) {
    const ModelDrawGroup* const group = model_->Of(id);
    return group != nullptr && group->is_item() ? group->priority : 0;
  }
  void CheckEvicted(TrajectoryId evicted, const std::vector<TrajectoryId>& newcomers) {
    if (spec_.remover != Remover::kMinHeap) return;
    for (const auto& [id, known] : known_) {
      const bool was_there = std::count(newcomers.begin(), newcomers.end(), id) == 0;
      if (!known.closed || !was_there) continue;
      EXPECT_LE(Worth(evicted), Worth(id)) << evicted << " left before " << id;
    }
  }
  void Forget(TrajectoryId id) {
    model_->Leave(id);
    known_.erase(id);
  }
  bool Fails(const ModelDrawGroup& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](TrajectoryId id) { return known_.at(id).version < bound_; });
  }
  bool IsDrawable(const ModelDrawGroup& group) const {
    if (!group.is_item() || model_->IsExhausted(group) || Fails(group)) return false;
    return !HasWeights(spec().selector) || group.priority > 0;
  }
  std::vector<ModelDrawGroup*> Items() {
    std::vector<ModelDrawGroup*> items;
    for (ModelDrawGroup& group : model_->groups) {
      if (group.is_item()) items.push_back(&group);
    }
    std::sort(items.begin(), items.end(), [](const ModelDrawGroup* a, const ModelDrawGroup* b) {
      return a->members[0] < b->members[0];
    });
    return items;
  }
  void CheckAll() {
    std::vector<TrajectoryId> firsts;
    uint64_t drawable = 0;
    for (ModelDrawGroup* group : Items()) {
      firsts.push_back(group->members[0]);
      drawable += IsDrawable(*group) ? 1u : 0u;
      const TrajectoryId member = group->members[Roll(group->members.size())];
      const auto priority = groups()->Priority({member, 0});
      ASSERT_OK(priority);
      EXPECT_EQ(*priority, HasPriorities(spec().selector) ? group->priority : 1.0f);
    }
    std::vector<TrajectoryId> found;
    for (const RowId& row : groups()->Items()) found.push_back(row.id);
    EXPECT_EQ(found, firsts);
    EXPECT_EQ(groups()->DrawableCount(), drawable);
    EXPECT_EQ(Groups(), model_->Stats());
    EXPECT_EQ(groups()->Stats().limiter.inserts, model_->inserts);
    if (HasPriorities(spec().selector)) {
      EXPECT_EQ(groups()->MaxPriority(), model_->max_priority);
    }
  }

  // ---- Other changes.

  void Seal() {
    const auto key = static_cast<int32_t>(Roll(4)) - 1;
    ModelDrawGroup* const group = model_->Taking(key);
    if (group == nullptr || model_->IsUndrawable(*group)) {
      EXPECT_STATUS(kNotFound, groups()->SealGroup(key),
                    "group of key " + std::to_string(key) + " that takes members");
      return;
    }
    ASSERT_OK(groups()->SealGroup(key));
    model_->Seal(group, known_.at(group->members.back()).score, By::kHand);
  }
  void SealOverdue() {
    PassMs(static_cast<int64_t>(Roll(150)));
    const int64_t deadline_ms = spec().group.deadline_ms;
    uint64_t sealed = 0;
    for (ModelDrawGroup& group : model_->groups) {
      const bool overdue = deadline_ms > 0 && group.first_us <= clock_.now_us - deadline_ms * 1000;
      if (!overdue || !group.takes || group.members.size() < model_->at_least()) continue;
      model_->Seal(&group, known_.at(group.members.back()).score, By::kDeadline);
      ++sealed;
    }
    ASSERT_OK_AND_ASSIGN(const uint64_t found, groups()->SealOverdueGroups());
    EXPECT_EQ(found, sealed);
  }
  TrajectoryId AnyId() {
    if (known_.empty()) return 0;
    return std::next(known_.begin(), static_cast<ptrdiff_t>(Roll(known_.size())))->first;
  }
  void SetColumns() {
    const TrajectoryId id = AnyId();
    if (id == 0 || id == open_) return;
    Known& known = known_.at(id);
    std::vector<ColumnValue> columns;
    if (Percent(70)) {
      known.score = static_cast<float>(Roll(6)) / 2;
      known.scored = true;
      columns.push_back({"score", TensorView::Scalar(known.score)});
    }
    if (columns.empty() || Percent(20)) {  // Where it has joined, its group stays the same.
      known.prompt = static_cast<int32_t>(Roll(4)) - 1;
      columns.push_back({"prompt", TensorView::Scalar(known.prompt)});
    }
    if (Percent(20)) {
      known.version = static_cast<uint32_t>(Roll(4));
      columns.push_back({"version", TensorView::Scalar(known.version)});
    }
    ASSERT_OK(table_->SetColumns(id, columns));
    Sync({id});
  }
  void Remove() {
    const TrajectoryId id = AnyId();
    if (id == 0 || id == open_) return;
    ASSERT_OK(table_->Remove({&id, 1}));
    Sync({}, {id});
  }
  void Set() {
    std::vector<RowId> rows;
    std::vector<float> priorities;
    uint64_t stale = 0;
    std::set<ModelDrawGroup*> seen;
    for (uint64_t i = Roll(3) + 1; i > 0; --i) {
      const TrajectoryId id = AnyId();
      ModelDrawGroup* const group = id == 0 ? nullptr : model_->Of(id);
      if (group != nullptr && !seen.insert(group).second) continue;
      rows.push_back({id, 0});
      priorities.push_back(static_cast<float>(Roll(8)) / 4);
      const bool is_item = group != nullptr && group->is_item();
      stale += is_item ? 0 : 1;
      if (is_item && HasPriorities(spec().selector)) model_->Set(group, priorities.back());
    }
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, groups()->Set(rows, priorities));
    EXPECT_EQ(outcome.stale, stale);
    EXPECT_EQ(outcome.applied, rows.size() - stale);
  }
  void SetAll() {
    const std::vector<ModelDrawGroup*> items = Items();
    std::vector<float> priorities;
    for (ModelDrawGroup* group : items) {
      priorities.push_back(static_cast<float>(Roll(9)) / 4);
      if (HasPriorities(spec().selector)) model_->Set(group, priorities.back());
    }
    ASSERT_OK(groups()->SetAll(priorities));
  }
  void Delete() {
    const TrajectoryId id = AnyId();
    ModelDrawGroup* const group = id == 0 ? nullptr : model_->Of(id);
    const RowId row{id, 0};
    const bool is_item = group != nullptr && group->is_item();
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, groups()->Delete({&row, 1}));
    EXPECT_EQ(outcome.applied, is_item ? 1u : 0u);
    if (!is_item) return;
    group->deleted = true;
    std::set<TrajectoryId> left;
    if (*spec().remove_when_exhausted) left.insert(group->members.begin(), group->members.end());
    Sync({}, left);
  }
  void MoveFilter() {
    if (spec().filter.empty()) return;
    bound_ = static_cast<uint32_t>(Roll(3));
    ASSERT_OK(groups()->SetFilter("version >= " + std::to_string(bound_), spec().filter_action));
    Sync({});
  }

  /// The groups of a batch in the order in which the selector has to give them, where there is one.
  std::vector<ModelDrawGroup*> InOrder() {
    std::vector<ModelDrawGroup*> order;
    for (ModelDrawGroup& group : model_->groups) {
      if (IsDrawable(group)) order.push_back(&group);
    }
    const SelectorKind selector = spec().selector;
    std::sort(order.begin(), order.end(), [&](const ModelDrawGroup* a, const ModelDrawGroup* b) {
      if (selector == SelectorKind::kLifo) return a->age > b->age;
      if (selector != SelectorKind::kFifo && a->priority != b->priority) {
        return (a->priority < b->priority) == (selector == SelectorKind::kMinHeap);
      }
      return a->age < b->age;
    });
    return order;
  }
  void Draw() {
    const auto batch_size = static_cast<int64_t>(1 + Roll(3));
    const std::vector<ModelDrawGroup*> order = InOrder();
    const bool distinct = spec().selector >= SelectorKind::kFifo || spec().max_times_sampled > 0;
    const auto sampler = SampleGroups({.batch = batch_size, .views = {{.column = "obs"}}});
    const auto batch = sampler->Next();
    if (order.size() < (distinct ? static_cast<size_t>(batch_size) : 1)) {
      EXPECT_EQ(batch.status().code(), StatusCode::kDeadlineExceeded) << batch.status().message();
      return;
    }
    ASSERT_OK(batch);
    ASSERT_EQ(batch->group_count(), batch_size);
    double total = 0;
    for (const ModelDrawGroup* group : order) {
      total += HasWeights(spec().selector) ? static_cast<double>(group->priority) : 1.0;
    }
    std::set<TrajectoryId> left;
    for (int64_t g = 0; g < batch_size; ++g) {
      ModelDrawGroup* const group = CheckDrawn(*batch, g);
      ASSERT_NE(group, nullptr);
      const bool ordered = spec().selector >= SelectorKind::kFifo && !HasWeights(spec().selector);
      if (ordered) {
        EXPECT_EQ(group, order[static_cast<size_t>(g)]);
      } else if (g == 0) {
        const double weight =
            HasWeights(spec().selector) ? static_cast<double>(group->priority) : 1.0;
        EXPECT_NEAR(batch->probabilities()[0], weight / total, 1e-5);
      }
      ++group->times;
      if (!model_->IsExhausted(*group)) continue;
      model_->End(group);
      if (!*spec().remove_when_exhausted) continue;
      left.insert(group->members.begin(), group->members.end());
    }
    Sync({}, left);
  }
  /// What a batch says of its group g; the model's.
  ModelDrawGroup* CheckDrawn(const Batch& batch, int64_t g) {
    const auto begin = static_cast<size_t>(batch.group_offsets()[static_cast<size_t>(g)]);
    const auto end = static_cast<size_t>(batch.group_offsets()[static_cast<size_t>(g) + 1]);
    const ItemHandle handle = batch.handles()[begin];
    for (ModelDrawGroup& group : model_->groups) {
      if (group.number != handle.leaf) continue;
      EXPECT_TRUE(IsDrawable(group));
      const auto ids = batch.trajectory_ids().subspan(begin, end - begin);
      EXPECT_EQ(std::vector<TrajectoryId>(ids.begin(), ids.end()), group.members);
      EXPECT_EQ(batch.group_keys()[static_cast<size_t>(g)], group.key);
      EXPECT_EQ(handle.length, group.members.size());
      for (size_t row = begin; row < end; ++row) {
        EXPECT_EQ(batch.groups()[row], g);
        EXPECT_EQ(batch.handles()[row], handle);
      }
      return &group;
    }
    return nullptr;
  }

  // ---- The log.

  /// What a dump says of the priority tables.
  std::string Dump() {
    const std::string dump = testing::DumpIndex(*testing::CoreOf(*database_));
    return dump.substr(dump.find(" priority table"));
  }
  void CheckReopen() {
    const std::string before = Dump();
    writer_.reset();
    Reopen();
    OpenAgain("steps", {.lanes = 4});
    EXPECT_EQ(Dump(), before);
    for (ModelDrawGroup& group : model_->groups) {
      group.first_us = std::max(group.first_us, clock_.WallTimeUs());
    }
    if (open_ == 0) return;
    ASSERT_OK_AND_ASSIGN(const uint64_t closed, table_->CloseOrphans(0));
    EXPECT_EQ(closed, 1u);
    CameOpen();
  }
  void Change() {
    const uint64_t what = Roll(30);
    SCOPED_TRACE("of kind " + std::to_string(what));
    if (what < 9) return AppendClosedOne();
    if (what < 11) return AppendSeveral();
    if (what < 13) return AppendOpen();
    if (what < 15) return Seal();
    if (what < 17) return SealOverdue();
    if (what < 19) return SetColumns();
    if (what < 20) return Remove();
    if (what < 22) return Set();
    if (what < 23) return SetAll();
    if (what < 24) return Delete();
    if (what < 25) return MoveFilter();
    if (what < 28) return Draw();
    if (what < 29) return CheckReopen();
    images_.Take(*database_);
  }

  std::mt19937_64 random_;
  TableSpec spec_;
  std::unique_ptr<ModelDrawGroups> model_;
  std::map<TrajectoryId, Known> known_;
  testing::StoreImages images_;
  TrajectoryId open_ = 0;
  uint32_t bound_ = 0;
  uint64_t removals_ = 0;
};

TEST_F(TableDrawGroupsTest, GroupsAreThoseOfThePlainModel) {
  const uint64_t programs = testing::ShareOf(84);
  GroupStats seen;
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    BeginProgram(seed);
    for (int i = 0; i < 120 && !HasFailure(); ++i) {
      SCOPED_TRACE("change " + std::to_string(i));
      Change();
      if (!HasFatalFailure()) CheckAll();
    }
    if (HasFailure()) break;
    const GroupStats now = Groups();
    seen.complete += now.complete;
    seen.taking += now.taking;
    seen.sealed_by_hand += now.sealed_by_hand;
    seen.sealed_by_deadline += now.sealed_by_deadline;
    if (open_ != 0) {
      ASSERT_OK(writer_->Cut(1));
      CameOpen();
    }
    Close();
    images_.Check(dir_->path());
  }
  // The programs come to what they are to try.
  EXPECT_GT(seen.complete, 0u);
  EXPECT_GT(seen.taking, 0u);
  EXPECT_GT(seen.sealed_by_hand, 0u);
  EXPECT_GT(seen.sealed_by_deadline, 0u);
}

}  // namespace
}  // namespace geardb
