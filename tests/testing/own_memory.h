// What the kernel says of this process's memory.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace geardb::testing {

/// Bytes of "VmRSS", "VmHWM" and the like of /proc/self/status; 0 where it does not say.
inline uint64_t OwnBytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    uint64_t kib = 0;
    if (word == name + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

/// From here on the peak is that of now. False: the kernel cannot forget it.
inline bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace geardb::testing
