#include "tools/bench/machine.h"

#include <sys/statfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>

namespace geardb::bench {
namespace {

/// The first line of a file that begins with `key`, after its colon.
std::string LineOf(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

/// A line of /proc/meminfo in bytes.
uint64_t MemoryLine(const std::string& key) {
  return std::strtoull(LineOf("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
}

std::string FileSystemName(const std::string& directory) {
  struct statfs status;
  if (::statfs(directory.c_str(), &status) != 0) return "unknown";
  switch (static_cast<uint64_t>(status.f_type)) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlayfs";
    default:
      return "type " + std::to_string(static_cast<uint64_t>(status.f_type));
  }
}

}  // namespace

Machine DescribeMachine(const std::string& directory) {
  Machine machine;
  machine.processor = LineOf("/proc/cpuinfo", "model name");
  machine.processors = static_cast<int>(std::thread::hardware_concurrency());
  machine.memory_bytes = MemoryLine("MemTotal");
  struct utsname system;
  if (::uname(&system) == 0) machine.kernel = std::string(system.sysname) + " " + system.release;
  machine.file_system = FileSystemName(directory);
  std::ifstream huge("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::getline(huge, machine.shared_huge_pages);
  machine.compiler = "gcc or clang " __VERSION__;
  return machine;
}

bool IsBusyProgram(const std::string& name) {
  static const std::set<std::string> kPrograms = {
      "cc1",    "cc1plus", "lto1", "lto-wrapper", "ld",    "ld.bfd", "ld.gold",
      "ld.lld", "ld.mold", "mold", "lld",         "ninja", "as"};
  return kPrograms.contains(name) || name.rfind("clang", 0) == 0;
}

std::vector<std::string> BusyPrograms() {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    if (std::getline(file, name) && IsBusyProgram(name)) found.insert(name);
  }
  return {found.begin(), found.end()};
}

double LoadAverage() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : -1;
}

uint64_t AvailableMemoryBytes() { return MemoryLine("MemAvailable"); }

uint64_t AvailableDiskBytes(const std::string& directory) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  return error ? 0 : space.available;
}

}  // namespace geardb::bench
