// The checksum of RocksDB's manifests and blob files.
#pragma once

#include <cstdint>
#include <string_view>

namespace geardb::engine {

/// CRC32C, rotated and shifted as RocksDB stores it.
uint32_t StoredChecksum(std::string_view bytes);

}  // namespace geardb::engine
