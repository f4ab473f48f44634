// The schema of a table and of a priority table, to and from what the log stores of it.
#pragma once

#include "base/status.h"
#include "engine/internal/table_history.h"
#include "engine/operations_generated.h"
#include "engine/schema.h"

namespace geardb::engine {

/// Characters of a standing filter, at most.
inline constexpr size_t kFilterTextMax = 4096;

/// Ids and generations that a new table may hand out once its record is synced.
inline constexpr uint32_t kFirstRange = 1u << 20;

/// The schema as the log stores it.
flatbuffers::Offset<fb::TableSpec> EncodeTableSpec(flatbuffers::FlatBufferBuilder* builder,
                                                   const TableSpec& spec);
/// The same, with the columns that there were where some have changed.
flatbuffers::Offset<fb::TableSpec> EncodeTableHistory(flatbuffers::FlatBufferBuilder* builder,
                                                      const TableHistory& history);
/// The last change of `after`, which brings columns.
flatbuffers::Offset<fb::AddColumns> EncodeAddColumns(flatbuffers::FlatBufferBuilder* builder,
                                                     const TableHistory& after);
flatbuffers::Offset<fb::PriorityTableSpec> EncodePriorityTableSpec(
    flatbuffers::FlatBufferBuilder* builder, const PriorityTableSpec& spec);
/// Corruption for a missing part; what they give still has to be validated (ValidateTableSpec,
/// ValidateHistory).
Result<TableSpec> DecodeTableSpec(const fb::TableSpec* stored);
Result<TableHistory> DecodeTableHistory(const fb::TableSpec* stored);
/// What the columns are then. Corruption; InvalidArgument: the table cannot change so.
Result<TableHistory> DecodeAddColumns(const fb::AddColumns& stored, const TableHistory& before);
Result<TableHistory> DecodeDropColumns(const fb::DropColumns& stored, const TableHistory& before);
Result<PriorityTableSpec> DecodePriorityTableSpec(const fb::PriorityTableSpec* stored);
/// InvalidArgument where what an open would decode is not this: then no open would be possible.
Status CheckStorable(const TableSpec& spec);  ///< But its priority tables.
Status CheckStorable(const PriorityTableSpec& spec);
/// The standing filter alone, into `spec`; `filter` may be null.
Status DecodeFilter(const flatbuffers::String* filter, uint8_t action, PriorityTableSpec* spec);

}  // namespace geardb::engine
