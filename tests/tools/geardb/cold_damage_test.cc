// Files of each kind of a cold store are damaged and deleted in turn: the database opens, appends
// go on or say why not, geardb repair makes it whole again or says that it cannot.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "tests/tools/geardb/cold_damage_fixture.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::LinesWith;

class ColdDamageTest : public testing::ColdDamageStoreTest {};

TEST_F(ColdDamageTest, AFileThatIsMissingIsNamedAndDoneWithout) {
  EXPECT_FALSE(files_.contains("default"));
  for (const char* family : {"pages", "chunks", "copies"}) {
    uint64_t tables = 0, blobs = 0;
    for (const std::string& name : SomeFiles(family)) {
      ++(name.ends_with(".sst") ? tables : blobs);
      SCOPED_TRACE(family + name);
      Restore();
      fs::remove(store() + "/cold" + name);
      const CliRun verify = Run("verify");
      EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
      EXPECT_GE(LinesWith(verify.out, name.substr(1)), 1u) << verify.out;
      ExpectRepaired();
      if (HasFailure()) return;
    }
    EXPECT_GT(tables, 0u) << family;
    EXPECT_GT(blobs, 0u) << family;
  }
}

TEST_F(ColdDamageTest, AppendsGoOnOrNameTheFileThatIsMissing) {
  uint64_t refused = 0;
  for (const char* family : {"pages", "chunks", "copies"}) {
    for (const std::string& name : SomeFiles(family)) {
      SCOPED_TRACE(family + name);
      Restore();
      fs::remove(store() + "/cold" + name);
      const Status appended = Append();
      if (!appended.ok()) {
        ++refused;
        EXPECT_EQ(family, std::string("pages"));
        EXPECT_STATUS(kResourceExhausted, appended, "the cold store");
        EXPECT_STATUS(kResourceExhausted, appended, name.substr(1, name.find('.') - 1));
      }
      ASSERT_EQ(Run("repair").code, cli::kExitGood);
      ExpectGood();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST_F(ColdDamageTest, AFlippedByteIsRepaired) {
  std::mt19937_64 random(3);
  for (const char* family : {"pages", "chunks", "copies"}) {
    for (const std::string& name : SomeFiles(family)) {
      Restore();
      const std::string file = store() + "/cold" + name;
      const uint64_t at = random() % fs::file_size(file);
      SCOPED_TRACE(std::string(family) + name + " at " + std::to_string(at));
      testing::FlipByte(file, at);
      ExpectRepaired();
      if (HasFailure()) return;
    }
  }
}

// The last bytes of an SST file lead to all others: without them RocksDB does not open the store.
TEST_F(ColdDamageTest, AFileOfPagesOfWhichNothingCanBeReadIsDoneWithout) {
  for (const std::string& name : SomeFiles("pages", ".sst")) {
    for (const uint64_t behind : {1u, 50u}) {
      Restore();
      const std::string file = store() + "/cold" + name;
      SCOPED_TRACE(file);
      testing::FlipByte(file, fs::file_size(file) - behind);
      const CliRun verify = Run("verify");
      EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
      ExpectRepaired();
      if (HasFailure()) return;
    }
  }
}

TEST_F(ColdDamageTest, FilesOfPagesAndOfACopyMayBeMissingTogether) {
  for (const auto& [family, names] : files_) {
    if (family != "copies") fs::remove(store() + "/cold" + names.front());
  }
  for (const std::string& name : files_["pages"]) {
    if (name.ends_with(".blob")) {
      fs::remove(store() + "/cold" + name);
      break;
    }
  }
  ExpectRepaired();
}

}  // namespace
}  // namespace geardb
