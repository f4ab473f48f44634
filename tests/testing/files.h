// Files as a test sees and changes them from outside.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace geardb::testing {

/// All bytes of a file; none where it cannot be read.
std::string ReadBytes(const std::string& path);

/// Makes these the bytes of a file.
void WriteBytes(const std::string& path, std::string_view bytes);

/// Changes one bit of a byte of a file.
void FlipByte(const std::string& path, uint64_t offset);

/// Every file below a directory by its path, with its bytes.
std::map<std::string, std::string> FilesOf(const std::string& directory);

}  // namespace geardb::testing
