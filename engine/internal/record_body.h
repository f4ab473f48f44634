// The body of a log record: operations as a FlatBuffer (engine/operations.fbs).
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "engine/operations_generated.h"

namespace geardb::engine {

/// The operations in `body`, which stays the caller's and begins at a multiple of 8 bytes.
/// Corruption when it is no FlatBuffer of operations, or when an operation says nothing. All
/// offsets are in bounds afterwards, and all numbers aligned; what they mean is not yet checked.
Result<const fb::Body*> ReadBody(std::span<const std::byte> body);

/// Shapes of columns can be read; true of none. FlatBuffers' verifier does not see to it.
bool ShapesAligned(const flatbuffers::Vector<flatbuffers::Offset<fb::Column>>* columns);
bool ShapesAligned(const fb::TableSpec* spec);

}  // namespace geardb::engine
