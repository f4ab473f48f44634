// LogReader::PlaceOf: an LSN's file and offset, for those who have to look at the bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/wal/log_fixture.h"
#include "wal/log_reader.h"

namespace geardb::wal {
namespace {

class LogReaderPlaceTest : public LogFixture {};

TEST_F(LogReaderPlaceTest, RecordIsInItsFileAtItsOffset) {
  CreateAndOpen();
  Reservation last;
  // Enough for a second segment.
  for (uint64_t number = 1; number <= 20; ++number) last = Append(number, 6000);
  ASSERT_OK(writer()->Close());
  ASSERT_GT(last.lsn, SmallLog().segment_bytes);

  ASSERT_OK_AND_ASSIGN(const Manifest manifest, ReadManifest(env_.get(), "db"));
  ASSERT_OK_AND_ASSIGN(const auto reader, LogReader::Open(env_.get(), "db", manifest, {}));
  const std::string place = reader->PlaceOf(last.lsn);
  const std::string words = " at offset ";
  const size_t split = place.find(words);
  ASSERT_NE(split, std::string::npos) << place;
  ASSERT_OK_AND_ASSIGN(const auto file, env_->OpenFile(place.substr(0, split), {}));
  RecordHeader header;
  ASSERT_OK(file->Read(std::stoull(place.substr(split + words.size())),
                       std::as_writable_bytes(std::span(&header, 1))));
  EXPECT_EQ(header.lsn, last.lsn);
}

TEST_F(LogReaderPlaceTest, LsnBeyondEverySegmentHasNoFile) {
  CreateAndOpen();
  ASSERT_OK_AND_ASSIGN(const Manifest manifest, ReadManifest(env_.get(), "db"));
  ASSERT_OK_AND_ASSIGN(const auto reader, LogReader::Open(env_.get(), "db", manifest, {}));
  EXPECT_NE(reader->PlaceOf(uint64_t{1} << 40).find("no file"), std::string::npos);
}

}  // namespace
}  // namespace geardb::wal
