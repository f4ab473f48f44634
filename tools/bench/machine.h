// The machine that figures are taken on, and whether it is quiet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace geardb::bench {

/// What a reader of the figures must know. No name of the machine.
struct Machine {
  std::string processor;
  int processors = 0;
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string file_system;  ///< Of the directory that stores are made in.
  std::string shared_huge_pages;
  std::string compiler;
};
Machine DescribeMachine(const std::string& directory);

/// Programs of compilers and linkers that are running now, each name once.
std::vector<std::string> BusyPrograms();
/// Is a program of this name one of those that make figures void?
bool IsBusyProgram(const std::string& name);

/// Load average of the last minute.
double LoadAverage();
/// Memory that can be had without swapping.
uint64_t AvailableMemoryBytes();
/// Space left for files in a directory.
uint64_t AvailableDiskBytes(const std::string& directory);

}  // namespace geardb::bench
