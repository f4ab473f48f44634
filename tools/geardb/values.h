// Values of columns, for people and for programs.
#pragma once

#include <string>

#include "engine/tensor.h"
#include "tools/geardb/json_writer.h"

namespace geardb::cli {

/// "0.5", or "[0.5, 1, 2, …] of [84, 84]": at most a few elements.
std::string ValueText(const TensorView& value);

/// A number (or true, false) for a scalar, else nested arrays of its shape.
void WriteValue(const TensorView& value, JsonWriter* json);

/// Row `row` of an array of rows.
TensorView RowOf(const TensorView& rows, int64_t row);

}  // namespace geardb::cli
