// What columns_conformance_test.cc knows of a table whose columns change: all that was ever given.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/database.h"

namespace geardb::conformance {

using Bytes = std::vector<std::byte>;

/// A column, as the model knows it; its number is its place among all there ever were.
struct KnownColumn {
  Column spec;
  bool late = false;
  bool is_volatile = false;
  bool dropped = false;

  bool per_step() const { return spec.kind == ColumnKind::kPerStep; }
  size_t bytes() const {
    return static_cast<size_t>(spec.shape.elements()) * DTypeBytes(spec.dtype);
  }
  Bytes Default() const {
    Bytes value(bytes());
    for (size_t i = 0; i < value.size(); i += DTypeBytes(spec.dtype)) {
      value[i] = std::byte{static_cast<uint8_t>(spec.default_value)};
    }
    return value;
  }
};

using Values = std::map<size_t, Bytes>;  // By number of the column.

struct KnownTrajectory {
  std::vector<Values> rows;
  Values values;
  bool open = true;
};

struct KnownWriter {
  std::unique_ptr<Writer> writer;
  std::vector<size_t> columns;  // Numbers of those there were when it was made.
  size_t version = 0;
  std::vector<TrajectoryId> open;  // By lane; 0: none.
};

struct KnownSampler {
  std::unique_ptr<Sampler> sampler;
  std::vector<size_t> columns;
};

}  // namespace geardb::conformance
