// Reads around sectors that a disk cannot read (EIO), as if it had read something else there.
//
// A bad sector is to cost what lies in it, as a flipped bit does, and no more. So who reads gets
// bytes that fit no checksum, and finds damage where else a whole file could not be read. Where
// other sectors of the file cannot be read either, it is the disk that is gone, or a cable: then
// nothing is damaged, and the error stays one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace geardb {

/// What is read at once, and lost at once: what Linux reads around a sector.
inline constexpr uint64_t kSectorBlockBytes = 4096;
/// Stands for each byte that cannot be read: a hole, or a file that was never written, has zeros.
inline constexpr std::byte kUnreadableByte{0xBD};

/// Reads from the disk, not from a cache: the number of bytes, fewer where the file ends. Nothing
/// where it fails.
using ReadFromDisk = std::function<std::optional<size_t>(uint64_t offset, std::span<std::byte>)>;

/// After a read has failed: reads block by block, each that fails some times. The number of bytes,
/// of a bad block all that were asked for, though the file may end in it; nothing where a block
/// cannot be read, nor one of its neighbours.
std::optional<size_t> ReadAroundBadSectors(uint64_t offset, std::span<std::byte> into,
                                           const ReadFromDisk& read);

}  // namespace geardb
