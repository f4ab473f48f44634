// A small real log, changed by the input: every four bytes say {file, where, how}. Whatever is on
// disk, reading and opening it end with a status, never a crash; what an open accepts, the next
// open accepts too.
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "tests/testing/fault_env.h"
#include "wal/open_log.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

using testing::CrashKind;
using testing::FaultEnv;

constexpr const char* kFiles[] = {"db/log/segment-000001", "db/log/ring", "db/log/segment-000002",
                                  "db/MANIFEST"};

LogOptions SmallLog() {
  LogOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{32} << 10;
  options.background = false;
  return options;
}

void Append(LogWriter* writer, RecordType type, uint64_t bytes) {
  const std::vector<std::byte> piece(bytes, static_cast<std::byte>(bytes));
  const std::span<const std::byte> runs[1] = {piece};
  const PieceSource pieces[1] = {{.runs = runs}};
  const std::byte body[8] = {};
  const RecordSize size = RecordSize::For(sizeof(body), {&bytes, 1});
  GEARDB_CHECK(writer->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()).ok());
  const Reservation reservation = writer->Reserve({.type = type, .size = size});
  writer->Fill(reservation, {.body = body, .pieces = pieces});
  writer->Publish(reservation, nullptr);
}

// A log over two segments whose tail is only in the ring.
FaultEnv* Original() {
  static FaultEnv* const env = [] {
    auto* made = new FaultEnv(1);
    GEARDB_CHECK(CreateLog(made, "db", SmallLog()).ok());
    auto log =
        OpenLog(made, "db", {.log = SmallLog()}, [](const RecordView&) { return Status::Ok(); });
    GEARDB_CHECK(log.ok());
    for (uint64_t i = 0; i < 20; ++i) Append(log->writer.get(), RecordType::kData, 100 + 400 * i);
    Append(log->writer.get(), RecordType::kPart, 300);
    GEARDB_CHECK(log->writer->WaitSynced(log->writer->end(), Deadline::Infinite()).ok());
    Append(log->writer.get(), RecordType::kTag, 200);
    Append(log->writer.get(), RecordType::kData, 3000);
    made->Die();
    log->writer.reset();
    log->lock.reset();
    made->Crash(CrashKind::kProcess);
    return made;
  }();
  return env;
}

// Makes the record at `offset`, whatever it says, fit its checksum again.
void PutChecksumRight(std::vector<std::byte>* bytes, uint64_t offset, uint64_t seed) {
  if (offset + sizeof(RecordHeader) > bytes->size()) return;
  RecordHeader header;
  std::memcpy(&header, bytes->data() + offset, sizeof(header));
  const uint64_t left = bytes->size() - offset - sizeof(header);
  header.metadata_length = static_cast<uint32_t>(std::min<uint64_t>(header.metadata_length, left));
  FinishHeader(bytes->data() + offset, header, seed);
}

void PutManifestRight(std::vector<std::byte>* bytes) {
  if (bytes->size() < 24) return;
  Hasher64 hasher(0);
  hasher.Add(std::span(*bytes).first(16));
  hasher.Add(std::span(*bytes).subspan(24));
  const uint64_t checksum = hasher.Finish();
  std::memcpy(bytes->data() + 16, &checksum, sizeof(checksum));
}

void Change(FaultEnv* env, std::span<const uint8_t> change, uint64_t seed) {
  const char* const file = kFiles[change[0] % 4];
  std::vector<std::byte> bytes = env->Contents(file);
  if (bytes.empty()) return;
  const uint64_t at = (uint64_t{change[1]} << 8 | change[2]) % bytes.size();
  bytes[at] ^= static_cast<std::byte>(change[3]);
  if (change[0] & 4) {
    if (change[0] % 4 == 3) {
      PutManifestRight(&bytes);
    } else {
      PutChecksumRight(&bytes, AlignDown(at, kRecordAlignment), seed);
    }
  }
  if (change[0] & 8) bytes.resize(at);
  env->Put(file, bytes);
}

int TestOne(const uint8_t* input, size_t size) {
  static const uint64_t seed = [] {
    const auto manifest = ReadManifest(Original(), "db");
    GEARDB_CHECK(manifest.ok());
    return manifest->Seed();
  }();
  const auto env = Original()->CopyAfterCrash(CrashKind::kProcess, 1);
  for (size_t i = 0; i + 4 <= std::min<size_t>(size, 64); i += 4) {
    Change(env.get(), {input + i, 4}, seed);
  }
  OpenOptions options{.log = SmallLog(), .read_only = true, .allow_damaged_prefix = true};
  uint64_t bytes = 0;
  const auto visit = [&](const RecordView& record) {
    for (const PieceView& piece : record.pieces) {
      for (std::byte b : piece.bytes) bytes += std::to_integer<uint64_t>(b);
    }
    return Status::Ok();
  };
  (void)OpenLog(env.get(), "db", options, visit).ok();
  options = {.log = SmallLog()};
  Lsn end = 0;
  {
    const auto first = OpenLog(env.get(), "db", options, visit);
    if (!first.ok()) return 0;
    end = first->report.read.end_lsn;
    env->Die();
  }
  env->Crash(CrashKind::kProcess);
  const auto second = OpenLog(env.get(), "db", options, visit);
  GEARDB_CHECK(second.ok() && second->report.read.end_lsn == end);
  return 0;
}

}  // namespace
}  // namespace geardb::wal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  return geardb::wal::TestOne(input, size);
}
