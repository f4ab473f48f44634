// Removers other than fifo: random programs against a plain model of who leaves a full table, live
// and after reopens and crashes; and what a remover must not be.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/philox.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

struct ModelTrajectory {
  uint32_t slot = 0;
  bool has_writer = true;
  uint64_t age = 0;  ///< Number of the call that last appended to it, took it or left it.
  std::vector<float> priorities = {};  ///< Of its rows.
};

/// Who leaves, as slowly as may be.
struct RemoverModel {
  TableSpec spec;
  std::map<TrajectoryId, ModelTrajectory> there;
  uint64_t removals = 0;

  uint64_t rows() const {
    uint64_t sum = 0;
    for (const auto& [id, one] : there) sum += one.priorities.size();
    return sum;
  }
  bool Over(uint64_t trajectories, uint64_t more) const {
    return (spec.trajectories_max > 0 && there.size() + trajectories > spec.trajectories_max) ||
           (spec.steps_max > 0 && rows() + more > spec.steps_max);
  }
  float Worth(const ModelTrajectory& one) const {
    // Trajectories are items once they are closed; windows of one step always.
    return one.priorities.empty() ? 0.0f
                                  : *std::max_element(one.priorities.begin(), one.priorities.end());
  }
  /// 0: nobody may leave.
  TrajectoryId Next() const {
    std::vector<TrajectoryId> left;
    for (const auto& [id, one] : there) {
      if (!one.has_writer) left.push_back(id);
    }
    if (left.empty()) return 0;
    const auto older = [&](TrajectoryId a, TrajectoryId b) {
      return std::pair(there.at(a).age, a) < std::pair(there.at(b).age, b);
    };
    if (spec.remover == Remover::kUniform) {
      std::sort(left.begin(), left.end(), [&](TrajectoryId a, TrajectoryId b) {
        return there.at(a).slot < there.at(b).slot;
      });
      const uint64_t random =
          PhiloxRandom64(spec.remover_seed, removals, 0, PhiloxPurpose::kRemover);
      return left[MulHi64(random, left.size())];
    }
    return *std::min_element(left.begin(), left.end(), [&](TrajectoryId a, TrajectoryId b) {
      if (spec.remover == Remover::kLifo) return older(b, a);
      const float first = Worth(there.at(a));
      const float second = Worth(there.at(b));
      if (first != second) return (first < second) == (spec.remover == Remover::kMinHeap);
      return older(a, b);
    });
  }
  void Remove(TrajectoryId id) {
    there.erase(id);
    ++removals;
  }
  /// False: there is no room for it.
  bool MakeRoom(uint64_t trajectories, uint64_t more) {
    while (Over(trajectories, more)) {
      const TrajectoryId id = Next();
      if (id == 0) return false;
      Remove(id);
    }
    return true;
  }
  /// Slots are used again lowest first.
  void Open(TrajectoryId id) {
    std::set<uint32_t> used;
    for (const auto& [other, one] : there) used.insert(one.slot);
    uint32_t slot = 0;
    while (used.contains(slot)) ++slot;
    there[id].slot = slot;
  }
};

class RemoverRuleOfTableTest : public StoreTest {
 protected:
  static TableSpec SpecOf(Remover remover) {
    TableSpec spec = StepSpec();
    spec.remover = remover;
    spec.remover_seed = remover == Remover::kUniform ? 5 : 0;
    if (RemovesByPriority(remover)) spec.remover_priority_table = "per";
    PriorityTableSpec per = WindowSpec("per");
    per.initial = InitialPriority::kConstant;
    spec.priority_tables = {WindowSpec("other"), per};
    return spec;
  }
};

class RemoversTest : public RemoverRuleOfTableTest, public ::testing::WithParamInterface<Remover> {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  void Compare() {
    std::vector<TrajectoryId> ids;
    for (const TrajectoryRecord& record : table_->Scan({})) ids.push_back(record.id);
    std::vector<TrajectoryId> expected;
    for (const auto& [id, one] : model_.there) expected.push_back(id);
    ASSERT_EQ(ids, expected);
  }

  void AppendSome() {
    const auto lane = static_cast<uint32_t>(Roll(2));
    const bool opens = lanes_[lane] == 0;
    const auto count = static_cast<int64_t>(1 + Roll(6));
    RemoverModel after = model_;
    if (!after.MakeRoom(opens ? 1 : 0, static_cast<uint64_t>(count))) return;
    AppendOptions options{.lane = lane, .end = Roll(3) == 0 ? End::kGo : End::kTerminated};
    std::vector<float> priorities;
    for (int64_t i = 0; i < count; ++i) priorities.push_back(RandomPriority());
    const InitialPriorities given[] = {{"per", priorities}};
    if (Roll(2) == 0) {
      options.priorities = given;
    } else {
      priorities.assign(static_cast<size_t>(count), 1.0f);
    }
    if (Roll(2) == 0) options.ack = Ack::kMemory;
    ASSERT_OK_AND_ASSIGN(const Appended appended,
                         writer_->AppendSteps(Rows(0, count).many(), options));
    model_ = std::move(after);
    if (opens) model_.Open(appended.id);
    ModelTrajectory& one = model_.there[appended.id];
    one.age = calls_;
    one.priorities.insert(one.priorities.end(), priorities.begin(), priorities.end());
    one.has_writer = options.end == End::kGo;
    lanes_[lane] = options.end == End::kGo ? appended.id : 0;
  }
  /// Both lanes close by one record.
  void CloseBoth() {
    const uint64_t opens = (lanes_[0] == 0 ? 1u : 0u) + (lanes_[1] == 0 ? 1u : 0u);
    RemoverModel after = model_;
    if (!after.MakeRoom(opens, 2)) return;
    const std::vector<End> ends = {End::kTerminated, End::kTruncated};
    const auto appended = writer_->AppendLanes(Rows(0, 2).many(), {.ends = ends});
    ASSERT_OK(appended);
    model_ = std::move(after);
    for (size_t lane = 0; lane < 2; ++lane) {
      const TrajectoryId id = (*appended)[lane].id;
      if (lanes_[lane] == 0) model_.Open(id);
      model_.there[id].age = calls_;
      model_.there[id].priorities.push_back(1);
      model_.there[id].has_writer = false;
      lanes_[lane] = 0;
    }
  }
  void RefuseSome() {
    const float wrong[] = {1, 2, 3};
    const InitialPriorities given[] = {{"per", wrong}};
    EXPECT_STATUS(kInvalidArgument,
                  writer_->AppendSteps(Rows(0, 1).many(),
                                       {.lane = 0, .end = End::kTerminated, .priorities = given}),
                  "for 1 items");
  }
  float RandomPriority() { return static_cast<float>(Roll(6)) / 4; }

  void SetSome() {
    std::vector<RowId> rows;
    std::vector<float> priorities;
    for (auto& [id, one] : model_.there) {
      for (size_t row = 0; row < one.priorities.size(); ++row) {
        if (Roll(3) != 0) continue;
        one.priorities[row] = RandomPriority();
        rows.push_back({id, static_cast<int64_t>(row)});
        priorities.push_back(one.priorities[row]);
      }
    }
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority("per")->Set(rows, priorities));
    EXPECT_EQ(outcome.applied, rows.size());
    if (Roll(4) != 0) return;
    const float all[] = {RandomPriority()};
    ASSERT_OK(priority("per")->SetAll(all));
    for (auto& [id, one] : model_.there) {
      std::fill(one.priorities.begin(), one.priorities.end(), all[0]);
    }
  }
  void RemoveOne() {
    if (model_.there.empty()) return;
    const auto chosen =
        std::next(model_.there.begin(), static_cast<ptrdiff_t>(Roll(model_.there.size())));
    const TrajectoryId id = chosen->first;
    if (chosen->second.has_writer) return;
    ASSERT_OK(table_->Remove({&id, 1}));
    model_.Remove(id);
  }
  void OrphanAll() {
    writer_ = std::move(*table_->NewWriter({.lanes = 2}));
    for (TrajectoryId& id : lanes_) {
      if (id == 0) continue;
      model_.there[id].has_writer = false;
      model_.there[id].age = calls_;
      id = 0;
    }
    for (uint32_t lane = 0; lane < 2; ++lane) {
      for (const TrajectoryRecord& record : table_->Scan({})) {
        if (record.state != TrajectoryState::kOrphaned || lanes_[lane] != 0 || Roll(2) == 0) {
          continue;
        }
        ++calls_;
        ASSERT_OK(writer_->Resume(record.id, lane));
        model_.there[record.id].has_writer = true;
        model_.there[record.id].age = calls_;
        lanes_[lane] = record.id;
      }
    }
  }
  void ReopenSome() {
    ASSERT_OK(database_->Wait(Ticket{database_->Stats().log_end}, Ack::kLog));
    std::unique_ptr<testing::TempDir> copy;
    if (Roll(2) == 0) {
      copy = testing::CopyOpenStore(dir_->path());
    }
    Close();
    if (copy) dir_ = std::move(copy);
    Open();
    OpenAgain("steps", {.lanes = 2});
    for (TrajectoryId& id : lanes_) {
      if (id != 0) model_.there[id].has_writer = false;
      id = 0;
    }
  }

  void Run(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    model_ = RemoverModel();
    model_.spec = SpecOf(GetParam());
    if (Roll(3) != 0) model_.spec.trajectories_max = 3 + Roll(6);
    if (model_.spec.trajectories_max == 0 || Roll(3) == 0) model_.spec.steps_max = 16 + Roll(30);
    model_.spec.remover_seed *= seed;
    std::fill(lanes_.begin(), lanes_.end(), 0);
    OpenEmpty();
    Create(model_.spec, {.lanes = 2});
    for (int step = 0; step < 120 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      ++calls_;
      const uint64_t what = Roll(100);
      if (what < 55) {
        AppendSome();
      } else if (what < 65) {
        CloseBoth();
      } else if (what < 85) {
        SetSome();
      } else if (what < 90) {
        RemoveOne();
      } else if (what < 93) {
        OrphanAll();
      } else if (what < 96) {
        RefuseSome();
      } else {
        ReopenSome();
      }
      if (HasFatalFailure()) return;
      ASSERT_OK(database_->Wait(Ticket{database_->Stats().log_end}, Ack::kLog));
      Compare();
    }
  }

  std::mt19937_64 random_;
  RemoverModel model_;
  std::vector<TrajectoryId> lanes_ = {0, 0};  ///< What each has open.
  uint64_t calls_ = 0;
};

TEST_P(RemoversTest, RandomProgramsLoseWhatTheModelLoses) {
  const uint64_t programs = testing::ShareOf(24);
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) Run(seed);
}

std::string NameOf(const ::testing::TestParamInfo<Remover>& chosen) {
  constexpr const char* kNames[] = {"None", "Fifo", "Lifo", "Uniform", "MinHeap", "MaxHeap"};
  return kNames[static_cast<size_t>(chosen.param)];
}
INSTANTIATE_TEST_SUITE_P(Kinds, RemoversTest,
                         ::testing::Values(Remover::kLifo, Remover::kUniform, Remover::kMinHeap,
                                           Remover::kMaxHeap),
                         NameOf);

class RemoversOnceTest : public RemoversTest {};

// The records of the first appends are filled by another thread, behind calls that have returned.
TEST_P(RemoversOnceTest, PrioritiesOnTheirWayCount) {
  TableSpec spec = SpecOf(GetParam());
  spec.trajectories_max = 2;
  Create(spec);
  constexpr int64_t kRows = 12'000;
  const Rows rows(0, kRows);
  TrajectoryId last = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<TrajectoryId> ids;
    for (const float priority : {5.0f, 3.0f}) {
      const std::vector<float> priorities(static_cast<size_t>(kRows), priority);
      const InitialPriorities given[] = {{"per", priorities}};
      ASSERT_OK_AND_ASSIGN(
          const Appended appended,
          writer_->AppendSteps(
              rows.many(), {.end = End::kTerminated, .priorities = given, .ack = Ack::kMemory}));
      ids.push_back(appended.id);
    }
    last = AppendClosed(0, 1);
    const bool smallest = GetParam() == Remover::kMinHeap;
    EXPECT_STATUS(kNotFound, table_->Find(ids[smallest ? 1 : 0]), "");
    EXPECT_OK(table_->Find(ids[smallest ? 0 : 1]));
    ASSERT_OK(table_->Remove({0, UINT64_MAX}));
  }
  EXPECT_STATUS(kNotFound, table_->Find(last), "");
}

INSTANTIATE_TEST_SUITE_P(Heaps, RemoversOnceTest,
                         ::testing::Values(Remover::kMinHeap, Remover::kMaxHeap), NameOf);

// Where no trajectory may leave, rows leave the open ones, as with fifo.
TEST_P(RemoversTest, OpenTrajectoriesAreTrimmedWhenNothingElseIsLeft) {
  TableSpec spec = SpecOf(GetParam());
  spec.steps_max = 24;
  Create(spec, {.lanes = 2});
  AppendClosed(0, 4);
  Append(0, 12, End::kGo, 0);
  Append(0, 8, End::kGo, 1);
  Append(12, 4, End::kGo, 0);
  EXPECT_STATUS(kNotFound, table_->Find(1), "") << "what no writer has leaves first";
  EXPECT_EQ(table_->StepCount(), 24u);
  for (int call = 0; call < 30; ++call) {
    Append(100 + call, 4, End::kGo, 0);
    EXPECT_LE(table_->StepCount(), 24u);
    EXPECT_GT(table_->StepCount(), 16u);
  }
  EXPECT_EQ(table_->Count(), 2u);
}

TEST_P(RemoversTest, ATableOfOpenTrajectoriesSaysWhoFindsNothing) {
  TableSpec spec = SpecOf(GetParam());
  spec.trajectories_max = 2;
  Create(spec, {.lanes = 3});
  Append(0, 1, End::kGo, 0);
  Append(0, 1, End::kGo, 1);
  EXPECT_STATUS(kResourceExhausted, writer_->AppendSteps(Rows(0, 1).many(), {.lane = 2}),
                "finds nothing that may leave");
  EXPECT_EQ(table_->Count(), 2u);
}

TEST_F(RemoverRuleOfTableTest, AQueueOfTrajectoriesIsWorthItsLargestItem) {
  TableSpec spec = SpecOf(Remover::kMinHeap);
  spec.trajectories_max = 3;
  spec.priority_tables[1].item = ItemKind::kTrajectory;
  Create(spec);
  for (int t = 0; t < 3; ++t) AppendClosed(0, 2);
  const std::vector<RowId> rows = {{1, 0}, {2, 0}, {3, 0}};
  const std::vector<float> priorities = {3, 2, 2};
  ASSERT_OK(priority("per")->Set(rows, priorities));
  AppendClosed(0, 1);
  EXPECT_STATUS(kNotFound, table_->Find(2), "");
  const RowId first{1, 0};
  ASSERT_OK(priority("per")->Delete({&first, 1}));  // Without items it is worth 0.
  AppendClosed(0, 1);
  EXPECT_STATUS(kNotFound, table_->Find(1), "");
  EXPECT_OK(table_->Find(3));
}

TEST_F(RemoverRuleOfTableTest, WhatARemoverCannotBeIsRefused) {
  const auto refused = [&](auto change, const char* says) {
    TableSpec spec = SpecOf(Remover::kMinHeap);
    change(&spec);
    EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), says);
  };
  refused([](TableSpec* s) { s->remover = static_cast<Remover>(9); }, "unknown remover");
  refused([](TableSpec* s) { s->remover_priority_table.clear(); },
          "remover min_heap and names no remover_priority_table");
  refused([](TableSpec* s) { s->remover_priority_table = "none"; },
          "'none', which is none of its priority tables");
  refused([](TableSpec* s) { s->priority_tables[1].selector = SelectorKind::kUniform; },
          "'per', whose selector has no priorities");
  refused([](TableSpec* s) { s->remover = Remover::kLifo; }, "at which remover lifo does not look");
  Create(SpecOf(Remover::kMaxHeap));
  TableSpec other = SpecOf(Remover::kMaxHeap);
  other.remover_priority_table = "other";
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(other),
                "remover max_heap by 'per', not max_heap by 'other'");
}

}  // namespace
}  // namespace geardb
