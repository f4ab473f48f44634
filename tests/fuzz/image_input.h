// The input of image_fuzz: chunks of the image of a database as of LSN kImageLsn, without their
// headers.
//
//   u8 table, u8 kind, u8 priority table, u8 number, u16 bytes of the chunk, its bytes.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/internal/image_chunk.h"

namespace geardb::fuzzing {

inline constexpr Lsn kImageLsn = 1 << 20;
inline constexpr size_t kImageHeaderBytes = 24;

using InputImage = std::map<engine::ImageChunk, std::string>;

/// Of chunks that come twice, the last one.
inline InputImage ParseImage(std::span<const uint8_t> input) {
  InputImage image;
  while (input.size() >= 6) {
    const engine::ImageChunk chunk{input[0], static_cast<engine::ImageKind>(input[1]),
                                   uint64_t{input[2]} << 32 | input[3]};
    uint16_t bytes = 0;
    std::memcpy(&bytes, input.data() + 4, sizeof(bytes));
    input = input.subspan(6);
    if (bytes > input.size()) break;
    engine::ChunkWriter writer(chunk, kImageLsn);
    writer.PutBytes(std::as_bytes(input.first(bytes)));
    const auto whole = writer.bytes();
    image[chunk] = std::string(reinterpret_cast<const char*>(whole.data()), whole.size());
    input = input.subspan(bytes);
  }
  return image;
}

inline std::vector<uint8_t> WriteImage(const InputImage& image) {
  std::vector<uint8_t> out;
  for (const auto& [chunk, whole] : image) {
    const auto bytes = static_cast<uint16_t>(whole.size() - kImageHeaderBytes);
    const uint8_t name[] = {
        static_cast<uint8_t>(chunk.table),        static_cast<uint8_t>(chunk.kind),
        static_cast<uint8_t>(chunk.number >> 32), static_cast<uint8_t>(chunk.number),
        static_cast<uint8_t>(bytes & 0xFF),       static_cast<uint8_t>(bytes >> 8)};
    out.insert(out.end(), std::begin(name), std::end(name));
    out.insert(out.end(), whole.begin() + kImageHeaderBytes, whole.end());
  }
  return out;
}

}  // namespace geardb::fuzzing
