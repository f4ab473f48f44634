// Values of columns, for people and for programs.
#pragma once

#include <string>

#include "engine/table.h"
#include "engine/tensor.h"
#include "tools/geardb/json_writer.h"

namespace geardb::cli {

/// "0.5", or "[0.5, 1, 2, …] of [84, 84]": at most a few elements.
std::string ValueText(const TensorView& value);

/// A number (or true, false) for a scalar, else nested arrays of its shape.
void WriteValue(const TensorView& value, JsonWriter* json);

/// A value of any length: as text where it is bytes of such, or else as ValueText.
std::string AnyText(const TensorView& value);
/// Value `row` of what was read of a column, ragged or not.
TensorView ValueAt(const ColumnRows& rows, int64_t row);
/// Row `row` of an array of rows.
TensorView RowOf(const TensorView& rows, int64_t row);

}  // namespace geardb::cli
