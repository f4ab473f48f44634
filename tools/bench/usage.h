// What this process and a directory take, as the kernel counts it.
#pragma once

#include <cstdint>
#include <string>

namespace geardb::bench {

/// Of this process, in bytes.
struct MemoryUse {
  uint64_t rss = 0;  ///< Pages mapped, those of files included; a page mapped twice counts twice.
  uint64_t pss = 0;  ///< The same, each page divided among those who map it.
  // What malloc has from the kernel and what it has given out: zeros where it is not jemalloc.
  uint64_t malloc_resident = 0;
  uint64_t malloc_allocated = 0;
};
MemoryUse OwnMemory();

/// Gives what malloc keeps of freed memory back to the kernel, so that what is measured next does
/// not live in what earlier work has left resident.
void GiveBackFreeMemory();

/// Bytes that this process has caused to be written to disk, ever: of buffered files and of shared
/// maps when a page becomes dirty.
uint64_t OwnBytesWritten();

/// Bytes that the files below a directory take on disk. Files that go meanwhile count as nothing.
uint64_t DiskBytesOf(const std::string& directory);

}  // namespace geardb::bench
