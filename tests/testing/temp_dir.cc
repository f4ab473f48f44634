#include "tests/testing/temp_dir.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/check.h"

namespace geardb::testing {

TempDir::TempDir() {
  std::error_code error;
  std::string pattern = std::filesystem::temp_directory_path(error).string();
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
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace geardb::testing
