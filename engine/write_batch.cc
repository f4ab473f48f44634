#include "engine/write_batch.h"

#include "engine/internal/append.h"
#include "engine/internal/write_operations.h"

namespace geardb {

namespace {

std::vector<engine::AppendOperation::Priorities> Copied(
    std::span<const InitialPriorities> priorities) {
  std::vector<engine::AppendOperation::Priorities> copied;
  for (const InitialPriorities& given : priorities) {
    copied.push_back(
        {std::string(given.priority_table), {given.values.begin(), given.values.end()}});
  }
  return copied;
}

engine::AppendOperation ToLane(engine::AppendKind kind, Writer::Impl* writer, ColumnValues rows,
                               const AppendOptions& options) {
  return {.writer = writer,
          .kind = kind,
          .rows = engine::NamedColumns(rows),
          .final = engine::NamedColumns(options.final),
          .trajectory = engine::NamedColumns(options.trajectory),
          .lane = options.lane,
          .end = options.end,
          .priorities = Copied(options.priorities)};
}

template <typename Value>
std::vector<Value> ToVector(std::span<const Value> values) {
  return {values.begin(), values.end()};
}

}  // namespace

WriteBatch::WriteBatch() : impl_(std::make_unique<Impl>()) {}
WriteBatch::WriteBatch(WriteBatch&&) noexcept = default;
WriteBatch& WriteBatch::operator=(WriteBatch&&) noexcept = default;
WriteBatch::~WriteBatch() = default;

size_t WriteBatch::Append(Writer* writer, ColumnValues row, const AppendOptions& options) {
  return impl_->Add(ToLane(engine::AppendKind::kOneRow,
                           writer == nullptr ? nullptr : writer->impl_.get(), row, options));
}

size_t WriteBatch::AppendSteps(Writer* writer, ColumnValues rows, const AppendOptions& options) {
  return impl_->Add(ToLane(engine::AppendKind::kSteps,
                           writer == nullptr ? nullptr : writer->impl_.get(), rows, options));
}

size_t WriteBatch::AppendTrajectory(Writer* writer, ColumnValues rows,
                                    const AppendOptions& options) {
  return impl_->Add(ToLane(engine::AppendKind::kTrajectory,
                           writer == nullptr ? nullptr : writer->impl_.get(), rows, options));
}

size_t WriteBatch::AppendLanes(Writer* writer, ColumnValues rows,
                               const AppendLanesOptions& options) {
  return impl_->Add(
      engine::AppendOperation{.writer = writer == nullptr ? nullptr : writer->impl_.get(),
                              .rows = engine::NamedColumns(rows),
                              .final = engine::NamedColumns(options.final),
                              .trajectory = engine::NamedColumns(options.trajectory),
                              .ends = ToVector(options.ends),
                              .priorities = Copied(options.priorities)});
}

size_t WriteBatch::Set(std::shared_ptr<PriorityTable> table, std::span<const ItemHandle> handles,
                       std::span<const float> priorities) {
  return impl_->Add(engine::SetOperation{table == nullptr ? nullptr : table->impl_,
                                         {.handles = ToVector(handles)},
                                         ToVector(priorities)});
}

size_t WriteBatch::Set(std::shared_ptr<PriorityTable> table, std::span<const RowId> rows,
                       std::span<const float> priorities) {
  return impl_->Add(engine::SetOperation{
      table == nullptr ? nullptr : table->impl_, {.rows = ToVector(rows)}, ToVector(priorities)});
}

size_t WriteBatch::Delete(std::shared_ptr<PriorityTable> table,
                          std::span<const ItemHandle> handles) {
  return impl_->Add(engine::DeleteOperation{table == nullptr ? nullptr : table->impl_,
                                            {.handles = ToVector(handles)}});
}

size_t WriteBatch::Delete(std::shared_ptr<PriorityTable> table, std::span<const RowId> rows) {
  return impl_->Add(
      engine::DeleteOperation{table == nullptr ? nullptr : table->impl_, {.rows = ToVector(rows)}});
}

size_t WriteBatch::Remove(std::shared_ptr<Table> table, std::span<const TrajectoryId> ids) {
  return impl_->Add(
      engine::RemoveOperation{table == nullptr ? nullptr : table->impl_, ToVector(ids)});
}

size_t WriteBatch::SetColumns(std::shared_ptr<Table> table, TrajectoryId id, ColumnValues values) {
  return impl_->Add(engine::SetColumnsOperation{table == nullptr ? nullptr : table->impl_, id,
                                                engine::NamedColumns(values)});
}

size_t WriteBatch::WriteTag(std::string_view name, std::span<const std::byte> blob) {
  return impl_->Add(engine::TagOperation{std::string(name), blob});
}

size_t WriteBatch::size() const { return impl_->operations.size(); }
void WriteBatch::Clear() { impl_->operations.clear(); }

}  // namespace geardb
