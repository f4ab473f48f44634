// What audited samplers leave in the log is what their learners got, byte for byte.
#include "engine/internal/audit.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/internal/record_body.h"
#include "tests/engine/sampler_fixture.h"
#include "tests/testing/drop_frames.h"
#include "wal/log_reader.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::WindowSpec;
namespace fb = engine::fb;

/// A row of a batch, as the learner or as the log has it.
struct SeenRow {
  TrajectoryId trajectory = 0;
  int64_t anchor = 0;
  double probability = 0;
  float priority = 0;

  friend bool operator==(const SeenRow&, const SeenRow&) = default;
};

/// One part of one batch.
struct SeenPart {
  std::string table;
  uint32_t priority_table = 0;
  uint64_t draw = 0;
  std::string sampler;
  Lsn drawn_lsn = 0;
  std::vector<SeenRow> rows = {};

  friend bool operator==(const SeenPart&, const SeenPart&) = default;
};

std::ostream& operator<<(std::ostream& out, const SeenPart& part) {
  out << part.table << "/" << part.priority_table << " draw " << part.draw << " at "
      << part.drawn_lsn << " by '" << part.sampler << "':";
  for (const SeenRow& row : part.rows) {
    out << " " << row.trajectory << ":" << row.anchor << " p " << row.priority << " P "
        << row.probability;
  }
  return out;
}

class AuditTest : public testing::SamplerFixture {
 protected:
  struct Logged {
    std::vector<SeenPart> parts;
    std::vector<std::vector<uint32_t>> draw_rows;
    std::vector<uint64_t> first_draws;
    std::vector<uint64_t> seeds;
    std::vector<int64_t> handed_us;
    uint64_t hand_overs = 0;
  };
  /// All audits that the log of the open database has.
  Logged ReadLog() {
    const auto core = testing::CoreOf(*database_);
    EXPECT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    auto reader =
        wal::LogReader::Open(Env::Posix(), dir_->path(), core->manifest, wal::ReadOptions{});
    EXPECT_OK(reader);
    Logged logged;
    for (;;) {
      const auto record = (*reader)->Next();
      EXPECT_OK(record);
      if (!record.ok() || !*record) return logged;
      const auto body = engine::ReadBody((*record)->body);
      EXPECT_OK(body);
      if ((*body)->operations() == nullptr) continue;
      for (const fb::Operation* operation : *(*body)->operations()) {
        const auto* hand_over = operation->change_as_HandOver();
        if (hand_over == nullptr) continue;
        ++logged.hand_overs;
        if (hand_over->audit() != nullptr) Add(*operation, *hand_over, &logged);
      }
    }
  }
  void Add(const fb::Operation& operation, const fb::HandOver& hand_over, Logged* logged) {
    const fb::Audit& audit = *hand_over.audit();
    SeenPart part{
        .table = testing::CoreOf(*database_)->TableById(operation.table_id())->layout().spec().name,
        .priority_table = operation.priority_table(),
        .draw = hand_over.draw_number(),
        .sampler = audit.sampler() ? audit.sampler()->str() : "",
        .drawn_lsn = audit.drawn_lsn()};
    std::vector<uint32_t> draw_rows;
    for (uint32_t i = 0; i < audit.rows()->size(); ++i) {
      const fb::AuditedRow& row = *audit.rows()->Get(i);
      part.rows.push_back({row.trajectory(), row.anchor(), row.probability(), row.priority()});
      draw_rows.push_back(row.draw_row());
    }
    logged->parts.push_back(std::move(part));
    logged->draw_rows.push_back(std::move(draw_rows));
    logged->first_draws.push_back(audit.first_draw());
    logged->seeds.push_back(audit.seed());
    logged->handed_us.push_back(audit.handed_us());
  }
  /// The rows of a batch that came from part `source`, with the raw priorities of `before`.
  static std::vector<SeenRow> RowsOf(const Batch& batch, uint32_t source,
                                     const std::map<std::pair<TrajectoryId, int64_t>, float>& raw) {
    std::vector<SeenRow> rows;
    for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
      if (batch.sources()[i] != source) continue;
      const auto found = raw.find({batch.trajectory_ids()[i], batch.anchors()[i]});
      rows.push_back({batch.trajectory_ids()[i], batch.anchors()[i], batch.probabilities()[i],
                      found == raw.end() ? 1.0f : found->second});
    }
    return rows;
  }
  static std::map<std::pair<TrajectoryId, int64_t>, float> RawOf(PriorityTable* table) {
    std::map<std::pair<TrajectoryId, int64_t>, float> raw;
    for (const RowId& row : table->Items()) raw[{row.id, row.row}] = *table->Priority(row);
    return raw;
  }
  void SetRandom(PriorityTable* table, std::mt19937_64* random) {
    const std::vector<RowId> rows = table->Items();
    std::vector<RowId> some;
    std::vector<float> priorities;
    for (const RowId& row : rows) {
      if ((*random)() % 3 != 0) continue;
      some.push_back(row);
      priorities.push_back(static_cast<float>(1 + (*random)() % 64) / 8);
    }
    ASSERT_OK(table->Set(some, priorities));
  }
};

TEST_F(AuditTest, TheLogSaysWhatTheLearnerGot) {
  std::mt19937_64 random(3);
  CreateWith(WindowSpec("per", {.length = 2}));
  std::vector<SeenPart> seen;
  uint64_t unaudited = 0;
  for (int life = 0; life < 3; ++life) {
    SamplerOptions options{.batch = 5, .audit = true, .name = "learner"};
    auto sampler = Sample(options);
    auto other = Sample({.batch = 2});
    for (int step = 0; step < 20; ++step) {
      AppendClosed(100 * step, static_cast<int64_t>(1 + random() % 9));
      SetRandom(priority("per"), &random);
      if (random() % 3 == 0) {
        ASSERT_OK(other->Next());  // Not audited: its record says nothing more.
        ++unaudited;
      }
      const auto raw = RawOf(priority("per"));
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      seen.push_back({.table = table_->spec().name,
                      .priority_table = 0,
                      .draw = batch.draw_number(),
                      .sampler = "learner",
                      .drawn_lsn = batch.lsn(),
                      .rows = RowsOf(batch, 0, raw)});
    }
    sampler.reset();
    other.reset();
    const Logged logged = ReadLog();
    EXPECT_EQ(logged.parts, seen);
    EXPECT_EQ(logged.hand_overs, seen.size() + unaudited);
    for (size_t i = 0; i < logged.parts.size(); ++i) {
      EXPECT_EQ(logged.seeds[i], 7u);
      EXPECT_EQ(logged.first_draws[i], logged.parts[i].draw);
      EXPECT_EQ(logged.draw_rows[i], (std::vector<uint32_t>{0, 1, 2, 3, 4}));
      EXPECT_GE(logged.handed_us[i], i == 0 ? 1 : logged.handed_us[i - 1]);
    }
    Reopen();
    OpenAgain("steps");
  }
}

TEST_F(AuditTest, OnlyWhatIsHandedOverIsLogged) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  std::vector<std::vector<SeenRow>> seen;
  for (int life = 0; life < 2; ++life) {
    auto sampler = Sample({.batch = 3, .prefetch = 4, .audit = true});
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      seen.push_back(RowsOf(batch, 0, {}));
      // What it says is of the draw, not of now.
      const float changed[] = {static_cast<float>(2 + i)};
      if (i == 2) {
        ASSERT_OK(priority("per")->SetAll(changed));
      }
    }
    sampler.reset();
    Reopen();
    OpenAgain("steps");
  }
  const Logged logged = ReadLog();
  ASSERT_EQ(logged.parts.size(), 6u);
  EXPECT_EQ(logged.hand_overs, 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(logged.parts[i].draw, i);
    for (size_t r = 0; r < 3; ++r) {
      SeenRow expected = seen[i][r];
      expected.priority = i < 3 ? 1 : 4;
      EXPECT_EQ(logged.parts[i].rows[r], expected) << i;
    }
  }
}

TEST_F(AuditTest, EachPartOfAMixedBatchHasItsOwn) {
  TableSpec b = StepSpec();
  b.name = "b";
  b.priority_tables = {WindowSpec("demos")};
  b.priority_tables[0].seed = 99;
  b.priority_tables[0].selector = SelectorKind::kUniform;
  Create(b);
  AppendClosed(1000, 12);
  const auto demos = table_->priority_table("demos");
  TableSpec a = StepSpec();
  a.name = "a";
  a.priority_tables = {WindowSpec("unused"), WindowSpec("per")};
  Create(a);
  AppendClosed(0, 30);
  std::mt19937_64 random(8);
  const std::vector<SamplerPart> parts = {
      {.priority_table = demos, .share = ShareKind::kFixed, .count = 2},
      {.priority_table = table_->priority_table("per"), .share = ShareKind::kRest}};
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       database_->NewSampler(parts, {.batch = 6, .audit = true, .name = "mixed"}));
  std::vector<SeenPart> seen;
  for (int i = 0; i < 12; ++i) {
    SetRandom(priority("per"), &random);
    const auto raw = RawOf(priority("per"));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    seen.push_back({"b", 0, static_cast<uint64_t>(i), "mixed", batch.lsn(), RowsOf(batch, 0, {})});
    seen.push_back({"a", 1, static_cast<uint64_t>(i), "mixed", batch.lsn(), RowsOf(batch, 1, raw)});
  }
  const Logged logged = ReadLog();
  EXPECT_EQ(logged.parts, seen);
  for (size_t i = 0; i < logged.parts.size(); ++i) {
    EXPECT_EQ(logged.seeds[i], i % 2 == 0 ? 99u : 7u + testing::kPartSeeds);
    EXPECT_EQ(logged.draw_rows[i].back(), i % 2 == 0 ? 1u : 3u);
  }
}

TEST_F(AuditTest, ACarriedItemKeepsItsPlaceInItsOwnDraw) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.item = ItemKind::kTrajectory;
  spec.selector = SelectorKind::kUniform;
  CreateWith(spec);
  for (int i = 0; i < 6; ++i) AppendClosed(100 * i, 3 + i);
  auto sampler =
      Sample({.batch = 8, .tokens_max = 12, .layout = BatchLayout::kPacked, .audit = true});
  std::vector<std::vector<SeenRow>> seen;
  for (int i = 0; i < 15; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    seen.push_back(RowsOf(batch, 0, {}));
  }
  const Logged logged = ReadLog();
  ASSERT_EQ(logged.parts.size(), seen.size());
  int carried = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(logged.parts[i].rows, seen[i]);
    const bool of_before = logged.first_draws[i] != logged.parts[i].draw;
    carried += of_before ? 1 : 0;
    if (of_before) {
      // It is the row behind the last one that the batch before took of its own draw.
      EXPECT_EQ(logged.first_draws[i], logged.parts[i - 1].draw);
      const bool all_of_before =
          seen[i - 1].size() == 1 && logged.first_draws[i - 1] != logged.parts[i - 1].draw;
      EXPECT_EQ(logged.draw_rows[i][0], all_of_before ? 0 : logged.draw_rows[i - 1].back() + 1);
    } else {
      EXPECT_EQ(logged.draw_rows[i][0], 0u);
    }
  }
  EXPECT_GT(carried, 5);
}

TEST_F(AuditTest, WindowsWithinTrajectoriesAreNamedOneByOne) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.item = ItemKind::kTrajectory;
  CreateWith(spec);
  for (int i = 0; i < 4; ++i) AppendClosed(100 * i, 6 + i);
  auto sampler = Sample({.batch = 2,
                         .within = WindowsWithin{.window = {.extent = {.length = 2}}, .count = 3},
                         .audit = true});
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const Logged logged = ReadLog();
  ASSERT_EQ(logged.parts.size(), 1u);
  EXPECT_EQ(logged.parts[0].rows, RowsOf(batch, 0, {}));
  EXPECT_EQ(logged.draw_rows[0], (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(AuditTest, WhatCannotBeAuditedIsRefused) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 4);
  EXPECT_STATUS(kInvalidArgument, priority("per")->NewSampler({.observer = true, .audit = true}),
                "is an observer and audited");
  EXPECT_STATUS(kInvalidArgument,
                priority("per")->NewSampler({.audit = true, .name = std::string(65, 'x')}),
                "has a name of 65 characters; expected at most 64");
  const uint64_t record_max = testing::CoreOf(*database_)->log->record_bytes_max();
  const auto most = static_cast<int64_t>((record_max - 4096 - engine::AuditBytesMax(0)) /
                                         (sizeof(fb::AuditedRow) + sizeof(fb::Sampled)));
  auto too_large = Sample({.batch = most + 1, .audit = true});
  EXPECT_STATUS(kInvalidArgument, too_large->Next(),
                "priority table 'per' is audited: a batch of " + std::to_string(most + 1) +
                    " does not fit a record of this log; at most " + std::to_string(most) + " do");
  auto fits = Sample({.batch = most, .audit = true});
  EXPECT_OK(fits->Next());
  EXPECT_EQ(ReadLog().parts[0].rows.size(), static_cast<size_t>(most));
}

TEST_F(AuditTest, NumbersOfNoDrawAreCorruption) {
  const auto check = [](float priority, double probability, size_t name) {
    flatbuffers::FlatBufferBuilder body;
    const fb::AuditedRow row(1, 2, probability, priority, 0);
    const auto rows = body.CreateVectorOfStructs(&row, 1);
    const auto sampler = body.CreateString(std::string(name, 'x'));
    const auto audit = fb::CreateAudit(body, rows, sampler);
    body.Finish(fb::CreateHandOver(body, 0, 0, 0, 0, 0, audit));
    return engine::CheckAudit(*flatbuffers::GetRoot<fb::HandOver>(body.GetBufferPointer()));
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_OK(check(0, 1, 64));
  EXPECT_STATUS(kCorruption, check(nan, 0.5, 1), "row 0 of a batch was drawn by priority nan");
  EXPECT_STATUS(kCorruption, check(-1, 0.5, 1), "by priority -1");
  EXPECT_STATUS(kCorruption, check(1, static_cast<double>(nan), 1), "with probability nan");
  EXPECT_STATUS(kCorruption, check(1, 1.5, 1), "with probability 1.5");
  EXPECT_STATUS(kCorruption, check(1, 0.5, 65), "a sampler's name has 65 characters");
}

}  // namespace
}  // namespace geardb
