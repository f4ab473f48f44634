// One large store for all tests of a suite, and a copy of it for each.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/testing/temp_dir.h"
#include "tests/tools/geardb/large_store.h"

namespace geardb::testing {

class LargeStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_dir_ = new TempDir;
    made_ = MakeLargeStore(made_dir_->File("store"));
  }
  static void TearDownTestSuite() {
    delete made_dir_;
    made_dir_ = nullptr;
  }
  void SetUp() override { Restore(); }
  /// The test's store is as it was made, or as another that lies at `from`.
  void Restore() { Restore(made_dir_->File("store")); }
  void Restore(const std::string& from) {
    std::filesystem::remove_all(store());
    std::filesystem::copy(from, store(), std::filesystem::copy_options::recursive);
  }
  std::string store() const { return dir_.File("store"); }

  static inline TempDir* made_dir_ = nullptr;
  static inline LargeStore made_;
  TempDir dir_;
};

}  // namespace geardb::testing
