// geardb: looks into a database. `geardb --help` lists what it does.

#include <iostream>
#include <string>
#include <vector>

#include "tools/geardb/command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return geardb::cli::RunGeardb(words, {.out = &std::cout, .err = &std::cerr});
}
