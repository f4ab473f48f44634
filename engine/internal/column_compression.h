// What Compression in a schema means: which codec the cold store takes for a column of a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/internal/cold_codec.h"
#include "engine/internal/table_layout.h"

namespace geardb::engine {

/// InvalidArgument for a compression that is none, or another than the default where a column is
/// never in the cold store.
Status CheckCompression(const TableSpec& spec, const Column& column);

/// ", compression zstd", and so on; "" for the default.
std::string CompressionText(const Column& column);

/// The codec of a compression, which is one.
ColumnCodecSpec CodecOf(Compression compression);

/// Those of a page of a column group, in the order of its regions: its columns, and the flags of a
/// stream behind those of group 0.
std::vector<ColumnCodecSpec> PageCodecs(const TableLayout& layout, size_t group);

}  // namespace geardb::engine
