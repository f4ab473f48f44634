#include "tests/testing/temp_dir.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/check.h"

namespace geardb::testing {
namespace {

namespace fs = std::filesystem;

std::set<std::string> NamesBelow(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    names.insert(entry.path().string());
  }
  return names;
}

}  // namespace

TempDir::TempDir() {
  std::error_code error;
  std::string pattern = fs::temp_directory_path(error).string();
  GEARDB_CHECK(!error);
  pattern += "/geardb_test_XXXXXX";
  GEARDB_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  if (std::getenv("GEARDB_KEEP_TEMP") != nullptr) {
    std::fprintf(stderr, "kept %s\n", path_.c_str());
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::unique_ptr<TempDir> CopyOpenStore(const std::string& directory) {
  constexpr auto kHow = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  for (;;) {
    auto copy = std::make_unique<TempDir>();
    const std::set<std::string> before = NamesBelow(directory);
    std::error_code error;
    fs::copy(directory, copy->path(), kHow, error);
    if (!error && NamesBelow(directory) == before) return copy;
  }
}

}  // namespace geardb::testing
