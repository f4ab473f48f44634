#include "engine/internal/cold_checksum.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

// CRC32C of "123456789" is 0xE3069283.
TEST(ColdChecksumTest, IsTheOneOfRocksDb) {
  const uint32_t crc = 0xE3069283;
  EXPECT_EQ(StoredChecksum("123456789"), (crc >> 15 | crc << 17) + 0xA282EAD8u);
  EXPECT_EQ(StoredChecksum(""), 0xA282EAD8u);
}

}  // namespace
}  // namespace geardb::engine
