#include "tests/conformance/plain_table.h"

#include <string_view>
#include <vector>

#include "base/check.h"

namespace geardb::conformance {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) CheckFailed(result.status().ToString().c_str(), __FILE__, __LINE__);
  return std::move(result).value();
}

TableSpec Spec() {
  TableSpec spec;
  spec.name = "plain";
  spec.columns = {
      Column{.name = "number", .dtype = DType::kU32, .shape = Shape(), .in_final_row = true}};
  spec.final_row = true;
  spec.steps_per_page = 4;
  uint64_t seed = 1000;
  for (const char* const name : PlainTable::kPriorityTables) {
    PriorityTableSpec priority;
    priority.name = name;
    const std::string_view text = name;
    priority.item = text.ends_with(".window") ? ItemKind::kWindow : ItemKind::kTrajectory;
    priority.selector =
        text.starts_with("uniform") ? SelectorKind::kUniform : SelectorKind::kPrioritized;
    priority.window.extent = Extent{1, 3, 1};
    priority.seed = ++seed;
    spec.priority_tables.push_back(priority);
  }
  return spec;
}

}  // namespace

const char* const PlainTable::kPriorityTables[4] = {"uniform.window", "uniform.trajectory",
                                                    "prioritized.window", "prioritized.trajectory"};

PlainTable::PlainTable(const std::string& directory) {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{64} << 20;
  options.segment_bytes = uint64_t{4} << 20;
  options.ring_bytes = uint64_t{1} << 20;
  database_ = Must(Database::Open(directory, options));
  table_ = Must(database_->OpenOrCreateTable(Spec()));
  writer_ = Must(table_->NewWriter(WriterOptions{.lanes = 2, .ack = {}}));
  for (const TrajectoryRecord& record : table_->Scan({})) {
    if (record.state != TrajectoryState::kOrphaned) continue;
    const Status resumed = writer_->Resume(record.id, 1);
    if (!resumed.ok()) CheckFailed(resumed.ToString().c_str(), __FILE__, __LINE__);
  }
  // The rows of the trajectories say where the count stood.
  for (const TrajectoryRecord& record : table_->Scan({})) {
    const std::string_view column = "number";
    const auto rows = Must(table_->Read(record.id, {&column, 1}, {}));
    for (const uint32_t number : rows[0].view().values<uint32_t>()) {
      next_number_ = std::max(next_number_, number + 1);
    }
  }
}

PlainTable::~PlainTable() {
  writer_.reset();
  table_.reset();
  const Status closed = database_->Close();
  if (!closed.ok()) CheckFailed(closed.ToString().c_str(), __FILE__, __LINE__);
}

TrajectoryId PlainTable::AppendTrajectory(int64_t steps, End end) {
  std::vector<uint32_t> numbers;
  for (int64_t i = 0; i < steps; ++i) numbers.push_back(next_number_++);
  const uint32_t last = next_number_++;
  const ColumnValue rows{"number", TensorView::Of(std::span<const uint32_t>(numbers))};
  const ColumnValue final_row{"number", TensorView::Scalar(last)};
  AppendOptions options;
  options.end = end;
  if (end != End::kCut) options.final = {&final_row, 1};
  return Must(writer_->AppendTrajectory({&rows, 1}, options)).id;
}

void PlainTable::AppendRow() {
  const uint32_t number = next_number_++;
  AppendOptions options;
  options.lane = 1;
  Must(writer_->Append({ColumnValue{"number", TensorView::Scalar(number)}}, options));
}

void PlainTable::Remove(TrajectoryId id) {
  const Status removed = table_->Remove({&id, 1});
  if (!removed.ok()) CheckFailed(removed.ToString().c_str(), __FILE__, __LINE__);
}

}  // namespace geardb::conformance
