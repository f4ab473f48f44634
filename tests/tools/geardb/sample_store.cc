#include "tests/tools/geardb/sample_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <utility>

#include "tests/tools/geardb/must.h"

namespace geardb::testing {
namespace {

/// Exact for the numbers below 2048 / 8 that are used here.
Float16 Half(int64_t k) {
  const float value = static_cast<float>(k) / 2;
  if (k == 0) return {0};
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = ((bits >> 23) & 0xFF) - 127 + 15;
  return {static_cast<uint16_t>((exponent << 10) | ((bits >> 13) & 0x3FF))};
}

BFloat16 Brain(int64_t k) {
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(-k)) >> 16)};
}

/// Rows first … first + count - 1 of an arcade trajectory.
class ArcadeRows {
 public:
  ArcadeRows(int64_t first, int64_t count) : count_(count), alive_(new bool[Size(count)]) {
    for (int64_t k = first; k < first + count; ++k) {
      for (int64_t i = 0; i < 6; ++i) frame_.push_back(static_cast<uint8_t>(k + i));
      half_.push_back(Half(k));
      brain_.push_back(Brain(k));
      alive_[Size(k - first)] = k % 2 == 0;
      reward_.push_back(static_cast<double>(k) / 8);
      counts_.push_back(-k - (int64_t{1} << 40));
    }
  }
  std::vector<ColumnValue> values() const {
    return {{"frame", TensorView::Of<uint8_t>(frame_, Shape({count_, 2, 3}))},
            {"half", TensorView::Of<Float16>(half_)},
            {"brain", TensorView::Of<BFloat16>(brain_)},
            {"alive", TensorView::Of<bool>(std::span<const bool>(alive_.get(), Size(count_)))},
            {"reward", TensorView::Of<double>(reward_)},
            {"count", TensorView::Of<int64_t>(counts_)}};
  }
  /// The frame of the first row.
  std::vector<ColumnValue> final_row() const {
    return {{"frame", TensorView::Of(std::span<const uint8_t>(frame_).first(6), Shape({2, 3}))}};
  }

 private:
  static size_t Size(int64_t count) { return static_cast<size_t>(count); }
  int64_t count_;
  std::vector<uint8_t> frame_;
  std::vector<Float16> half_;
  std::vector<BFloat16> brain_;
  std::unique_ptr<bool[]> alive_;
  std::vector<double> reward_;
  std::vector<int64_t> counts_;
};

TableSpec ArcadeSpec() {
  TableSpec spec;
  spec.name = "arcade";
  spec.columns = {
      {.name = "frame",
       .dtype = DType::kU8,
       .shape = {2, 3},
       .in_final_row = true,
       .compression = Compression::kXorDelta},
      {.name = "half", .dtype = DType::kF16},
      {.name = "brain", .dtype = DType::kBf16},
      {.name = "alive", .dtype = DType::kBool},
      {.name = "reward", .dtype = DType::kF64},
      {.name = "count", .dtype = DType::kI64},
      {.name = "level", .dtype = DType::kU32, .kind = ColumnKind::kPerTrajectory},
      {.name = "weights", .dtype = DType::kF32, .shape = {2}, .kind = ColumnKind::kPerTrajectory},
  };
  spec.final_row = true;
  spec.steps_per_page = 4;
  spec.trajectories_max = 1000;
  PriorityTableSpec per;
  per.name = "per";
  per.window.extent = {.before = 0, .length = 1, .after = 1};
  per.seed = 7;
  PriorityTableSpec episodes;
  episodes.name = "episodes";
  episodes.item = ItemKind::kTrajectory;
  episodes.selector = SelectorKind::kUniform;
  episodes.initial = InitialPriority::kConstant;
  spec.priority_tables = {per, episodes};
  return spec;
}

constexpr int64_t kWalkerWidth = 64;

TableSpec WalkerSpec() {
  TableSpec spec;
  spec.name = "walkers";
  spec.columns = {{.name = "x", .dtype = DType::kF32, .shape = {kWalkerWidth}},
                  {.name = "n", .dtype = DType::kU16}};
  spec.stream = true;
  spec.steps_per_page = 8;
  PriorityTableSpec windows;
  windows.name = "windows";
  windows.window = {.extent = {.before = 1, .length = 2, .after = 1},
                    .stride = 2,
                    .left = EdgeRule::kPad,
                    .right = EdgeRule::kRequire};
  windows.selector = SelectorKind::kUniform;
  spec.priority_tables = {windows};
  return spec;
}

Appended Append(Writer* writer, int64_t first, int64_t count, AppendOptions options) {
  const ArcadeRows rows(first, count);
  const ArcadeRows last(first + count, 1);
  const std::vector<ColumnValue> values = rows.values();
  const std::vector<ColumnValue> final_row = last.final_row();
  if (options.end == End::kTerminated || options.end == End::kTruncated) options.final = final_row;
  return Must(writer->AppendSteps(ColumnValues(values), options));
}

Appended AppendWalk(Writer* writer, int64_t first, int64_t count, End end) {
  std::vector<float> x;
  std::vector<uint16_t> n;
  for (int64_t k = first; k < first + count; ++k) {
    for (int64_t i = 0; i < kWalkerWidth; ++i) x.push_back(static_cast<float>(k * 100 + i));
    n.push_back(static_cast<uint16_t>(k));
  }
  return Must(writer->AppendSteps({{"x", TensorView::Of<float>(x, Shape({count, kWalkerWidth}))},
                                   {"n", TensorView::Of<uint16_t>(n)}},
                                  {.end = end}));
}

/// Episodes of every end, and what becomes of them.
void FillArcade(Table* table, Writer* writer, ArcadeIds* ids) {
  const uint32_t level = 7;
  const std::array<float, 2> weights = {0.5f, -1.0f};
  const std::array<ColumnValue, 2> trajectory = {
      {{"level", TensorView::Scalar(level)}, {"weights", TensorView::Of<float>(weights)}}};
  ids->terminated = Append(writer, 0, 6, {.end = End::kTerminated, .trajectory = trajectory}).id;
  ids->truncated = Append(writer, 0, 3, {.end = End::kTruncated}).id;
  ids->trimmed = Append(writer, 0, 12, {.end = End::kTerminated}).id;
  Must(table->Truncate(ids->trimmed, 5));
  ids->removed = Append(writer, 0, 5, {.end = End::kTerminated}).id;
  Must(table->Remove(std::array{ids->removed}));
  ids->cut = Append(writer, 0, 4, {}).id;
  Must(writer->Cut().status());
  const uint32_t other_level = 3;
  Must(table->SetColumns(ids->truncated,
                         std::array{ColumnValue{"level", TensorView::Scalar(other_level)}}));
  ids->orphaned = Append(writer, 0, 2, {.lane = 1}).id;
  ids->resumed = Append(writer, 0, 2, {.lane = 2}).id;
}

void DrawAndSet(Table* table, const ArcadeIds& ids) {
  const auto per = Must(table->OpenPriorityTable("per"));
  SamplerOptions options;
  options.batch = 8;
  options.views = {{.column = "reward"}};
  {
    const auto sampler = Must(per->NewSampler(options));
    for (int i = 0; i < 3; ++i) Must(sampler->Next());
  }
  options.seed = 99;
  options.restart_draw = 20;
  options.audit = true;
  options.name = "learner\x01";
  Must(Must(per->NewSampler(options))->Next());
  // More than one record holds: in parts.
  const std::vector<RowId> again(4'000, RowId{ids.terminated, 1});
  Must(per->Set(again, std::vector<float>(again.size(), 3.0f)));
  Must(per->Set(std::array{RowId{ids.terminated, 0}, RowId{ids.terminated, 1}},
                std::array{0.25f, 4.0f}));
  Must(per->SetAll(std::array{2.0f}));
  // Far beyond the scale that the weights had: they are scaled anew.
  Must(per->Set(std::array{RowId{ids.truncated, 0}}, std::array{1e30f}));
  const auto episodes = Must(table->OpenPriorityTable("episodes"));
  std::vector<float> values(episodes->Count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  Must(episodes->SetAll(values));
}

void FirstLife(const std::string& directory, SampleStore* store) {
  const auto database = Must(Database::Open(directory, SampleOptions()));
  const auto arcade = Must(database->CreateTable(ArcadeSpec()));
  const auto writer = Must(arcade->NewWriter({.lanes = 3}));
  FillArcade(arcade.get(), writer.get(), &store->arcade);
  TableSpec passing = WalkerSpec();
  passing.name = "passing";
  Must(database->CreateTable(passing));
  Must(database->DropTable("passing"));

  const auto walkers = Must(database->CreateTable(WalkerSpec()));
  const auto walker = Must(walkers->NewWriter({}));
  for (int64_t row = 0; row < 200; row += 10) {
    store->walker = AppendWalk(walker.get(), row, 10, End::kTerminated).id;
  }
  // More than half a quarter of the ring: in parts.
  AppendWalk(walker.get(), 200, 200, End::kTruncated);
  DrawAndSet(arcade.get(), store->arcade);
  PriorityTableSpec late;
  late.name = "late";
  late.window.extent.length = 4;
  late.window.right = EdgeRule::kClip;
  Must(walkers->CreatePriorityTable(late));
  Must(walkers->priority_table("late")->Configure(
      {.limiter = {.min_size = 2}, .max_times_sampled = 9}));
  PriorityTableSpec epochs{.name = "epochs"};
  epochs.selector = SelectorKind::kEpoch;
  epochs.epoch.passes = 2;
  const auto learner = Must(walkers->CreatePriorityTable(epochs));
  Must(learner->BeginEpoch());
  Must(Must(learner->NewSampler({.batch = 3}))->Next());
  const std::vector<std::byte> blob(70'000, std::byte{42});
  Must(database->WriteTag("step-10", std::span(blob).first(3)));
  Must(database->WriteTag(store->odd_tag, blob));  // Its parts are in two segments.
  Must(database->Close());
}

void SecondLife(const std::string& directory, SampleStore* store) {
  const auto database = Must(Database::Open(directory, SampleOptions()));
  const auto arcade = Must(database->OpenTable("arcade"));
  const auto writer = Must(arcade->NewWriter({}));
  Must(writer->Resume(store->arcade.resumed));
  Append(writer.get(), 2, 2, {});
  for (const std::string& name : database->Tables()) {
    const auto table = Must(database->OpenTable(name));
    store->tables[name] = table->Stats();
    for (const std::string& priorities : table->PriorityTables()) {
      store->priority_tables[name + "/" + priorities] =
          Must(table->OpenPriorityTable(priorities))->Stats();
    }
  }
  Must(database->Close());
}

}  // namespace

DatabaseOptions SampleOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{64} << 20;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{32} << 10;
  options.background = false;
  return options;
}

void AddTableOfGroups(const std::string& directory) {
  const auto database = Must(Database::Open(directory, SampleOptions()));
  TableSpec spec{.name = "groups", .columns = {{.name = "x"}}};
  for (int g = 0; g < 10; ++g) {
    const std::string name = "g" + std::to_string(g);
    spec.groups.push_back({.name = name, .late = true});
    spec.columns.push_back({.name = "in_" + name, .group = name});
  }
  (void)Must(database->CreateTable(spec));
  Must(database->Close());
}

SampleStore MakeSampleStore(const std::string& directory) {
  SampleStore store;
  store.odd_tag = "quote\" back\\slash\xFF\xC3\xA4";
  FirstLife(directory, &store);
  SecondLife(directory, &store);
  return store;
}

void DieAppending(const std::string& directory, int steps) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto database = Must(Database::Open(directory, SampleOptions()));
    const auto writer = Must(Must(database->OpenTable("arcade"))->NewWriter({}));
    for (int step = 0; step < steps; ++step) Append(writer.get(), step, 1, {});
    ::raise(SIGKILL);
  }
  int status = 0;
  GEARDB_CHECK(::waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

void MakeEmptyStore(const std::string& directory) {
  Must(Must(Database::Open(directory, SampleOptions()))->Close());
}

}  // namespace geardb::testing
