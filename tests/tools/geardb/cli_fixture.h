// What the tests of the shell tool share: a sample database of their own, and runs of the tool on
// it, each of which must leave every byte of the directory as it was.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/tools/geardb/json.h"
#include "tests/tools/geardb/sample_store.h"
#include "wal/log_reader.h"

namespace geardb::testing {

/// What a run of the tool gave.
struct CliRun {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs the tool in this process.
CliRun RunCli(const std::vector<std::string>& words);

/// A record of a log, and where its bytes are.
struct LoggedRecord {
  Lsn lsn = 0;
  uint64_t length = 0;
  wal::RecordType type = wal::RecordType::kData;
  std::vector<Lsn> pieces;  ///< The first byte of each of its pieces.
};

/// How many lines of `text` hold `part`.
size_t LinesWith(const std::string& text, std::string_view part);

/// Each test has a copy of one sample database, which it may damage.
class CliTest : public ::testing::Test {
 protected:
  void SetUp() override;

  /// A copy again, where there is none any more.
  void Restore();
  const std::string& store() const { return store_; }
  const SampleStore& sample() const;
  std::string File(const std::string& name) const { return store_ + "/" + name; }
  std::string Scratch(const std::string& name) const { return dir_.File(name); }

  /// Runs the tool: `words` behind the command and the store's directory. Fails the test when a
  /// byte of the directory changed.
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {});
  /// The same with --json: its output must be one JSON value.
  Json RunJson(const std::string& command, const std::vector<std::string>& words = {},
               int code = 0);

  /// All records, in order.
  std::vector<LoggedRecord> Records() const;
  /// The first record of which `geardb log` says so.
  LoggedRecord RecordSaying(std::string_view words) const;
  struct Place {
    std::string path;
    uint64_t offset = 0;
    /// As the tool writes it.
    std::string text() const { return path + " at offset " + std::to_string(offset); }
  };
  /// Where a byte of the log is, in its segment file.
  Place PlaceOf(Lsn lsn) const;
  /// Gives a record another type, with a checksum that fits, as another version would write it.
  void RetypeRecord(const LoggedRecord& record, uint16_t type);
  void Flip(Lsn lsn) { FlipByte(PlaceOf(lsn).path, PlaceOf(lsn).offset); }

 private:
  TempDir dir_;
  std::string store_;
};

}  // namespace geardb::testing
