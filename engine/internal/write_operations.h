// The operations that a WriteBatch has collected.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/internal/append_bind.h"
#include "engine/internal/core.h"
#include "engine/write_batch.h"

namespace geardb::engine {

/// Columns with names of its own; the bytes are the caller's.
class NamedColumns {
 public:
  NamedColumns() = default;
  explicit NamedColumns(ColumnValues values) {
    for (const ColumnValue& value : values) {
      names_.emplace_back(value.column);
      views_.push_back(value.value);
      offsets_.push_back(value.offsets);
    }
  }
  /// They name columns in this object.
  std::vector<ColumnValue> values() const {
    std::vector<ColumnValue> values;
    for (size_t i = 0; i < names_.size(); ++i)
      values.push_back({names_[i], views_[i], offsets_[i]});
    return values;
  }

 private:
  std::vector<std::string> names_;
  std::vector<TensorView> views_;
  std::vector<std::span<const uint64_t>> offsets_;
};

struct AppendOperation {
  struct Priorities {
    std::string priority_table;
    std::vector<float> values;
  };
  Writer::Impl* writer = nullptr;
  std::optional<AppendKind> kind = {};  ///< None: AppendLanes.
  NamedColumns rows = {};
  NamedColumns final = {};
  NamedColumns trajectory = {};
  uint32_t lane = 0;
  End end = End::kGo;
  std::vector<End> ends = {};  ///< Of AppendLanes.
  std::vector<Priorities> priorities = {};

  /// They point into this object.
  std::vector<InitialPriorities> given() const {
    std::vector<InitialPriorities> given;
    for (const Priorities& one : priorities) given.push_back({one.priority_table, one.values});
    return given;
  }
};

/// By handles, or by rows.
struct ItemNames {
  std::vector<ItemHandle> handles = {};
  std::vector<RowId> rows = {};
  size_t size() const { return handles.size() + rows.size(); }
};
struct SetOperation {
  std::shared_ptr<PriorityTable::Impl> table;
  ItemNames items;
  std::vector<float> priorities;
};
struct DeleteOperation {
  std::shared_ptr<PriorityTable::Impl> table;
  ItemNames items;
};
struct RemoveOperation {
  std::shared_ptr<Table::Impl> table;
  std::vector<TrajectoryId> ids;
};
struct SetColumnsOperation {
  std::shared_ptr<Table::Impl> table;
  TrajectoryId id = 0;
  NamedColumns values;
};
struct TagOperation {
  std::string name;
  std::span<const std::byte> blob;
};

}  // namespace geardb::engine

namespace geardb {

class WriteBatch::Impl {
 public:
  using Operation =
      std::variant<engine::AppendOperation, engine::SetOperation, engine::DeleteOperation,
                   engine::RemoveOperation, engine::SetColumnsOperation, engine::TagOperation>;
  std::vector<Operation> operations;

  /// Its index.
  size_t Add(Operation operation) {
    operations.push_back(std::move(operation));
    return operations.size() - 1;
  }
};

}  // namespace geardb
