// Shared by the log's tests: a small log on a FaultEnv, records whose bytes follow from their
// number, and what an open finds.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "wal/open_log.h"

namespace geardb::wal {

/// A record of the engine's that a test writes: its body is `number`, its pieces are `piece_bytes`
/// long and filled with bytes that follow from the number.
struct TestRecord {
  uint64_t number = 0;
  std::vector<uint64_t> piece_bytes;
};

/// The bytes of piece `index` of record `number`.
std::vector<std::byte> PieceContent(uint64_t number, size_t index, uint64_t bytes);

/// RecordSize of a TestRecord.
RecordSize SizeOf(const TestRecord& record);

/// Reserves a place for `record`; the caller has made sure that there is room.
Reservation ReserveRecord(LogWriter* writer, const TestRecord& record);
/// Fills what ReserveRecord reserved.
void FillRecord(LogWriter* writer, const Reservation& reservation, const TestRecord& record);
/// WaitForRoom, reserve, fill, publish.
Result<Reservation> AppendRecord(LogWriter* writer, const TestRecord& record);

/// What an open or a reader saw of a record.
struct SeenRecord {
  Lsn lsn = 0;
  Lsn end = 0;
  uint64_t number = 0;
  bool content_right = true;  ///< Every good piece has the bytes that it was written with.
  size_t bad_pieces = 0;
  size_t pieces = 0;
  bool from_ring = false;
};

/// Checks a record against PieceContent.
SeenRecord See(const RecordView& record);

/// 64 KiB segments, a 32 KiB ring, no background thread.
LogOptions SmallLog();

/// An opened log and the records that its visitor saw.
struct SeenLog {
  OpenedLog log;
  std::vector<SeenRecord> records;
};

/// Opens a log and looks at its records. `visited`, if given, has what the visitor saw even when
/// the open fails.
Result<SeenLog> OpenAndSee(Env* env, const std::string& directory, const OpenOptions& options,
                           std::vector<SeenRecord>* visited = nullptr);

/// A log in "db" on a FaultEnv.
class LogFixture : public ::testing::Test {
 protected:
  explicit LogFixture(uint64_t seed = 1) : env_(std::make_unique<testing::FaultEnv>(seed)) {
    options_.log = SmallLog();
  }

  void Create() { ASSERT_OK(CreateLog(env_.get(), "db", options_.log)); }
  void Open() {
    auto seen = OpenAndSee(env_.get(), "db", options_);
    ASSERT_OK(seen);
    seen_ = std::move(seen).value();
  }
  void CreateAndOpen() {
    Create();
    Open();
  }
  /// Drops the writer as a crash does, crashes, and opens again.
  void CrashAndOpen(testing::CrashKind kind) {
    env_->Die();
    seen_ = SeenLog();
    env_->Crash(kind);
    Open();
  }
  LogWriter* writer() { return seen_.log.writer.get(); }
  const std::vector<SeenRecord>& records() const { return seen_.records; }
  const OpenReport& report() const { return seen_.log.report; }

  /// Appends a record with one piece.
  Reservation Append(uint64_t number, uint64_t bytes) {
    auto reservation = AppendRecord(writer(), {.number = number, .piece_bytes = {bytes}});
    EXPECT_OK(reservation);
    return reservation.ok() ? *reservation : Reservation();
  }
  std::vector<uint64_t> Numbers() const {
    std::vector<uint64_t> numbers;
    for (const SeenRecord& record : seen_.records) numbers.push_back(record.number);
    return numbers;
  }

  std::unique_ptr<testing::FaultEnv> env_;
  OpenOptions options_;
  SeenLog seen_;
};

}  // namespace geardb::wal
