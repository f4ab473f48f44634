#include "tests/wal/log_fixture.h"

#include <algorithm>
#include <cstring>

namespace geardb::wal {

std::vector<std::byte> PieceContent(uint64_t number, size_t index, uint64_t bytes) {
  testing::Random random(number * 1000003 + index);
  std::vector<std::byte> content(bytes);
  for (size_t i = 0; i < content.size(); i += 8) {
    const uint64_t word = random.Next();
    std::memcpy(content.data() + i, &word, std::min<size_t>(8, content.size() - i));
  }
  return content;
}

RecordSize SizeOf(const TestRecord& record) {
  return RecordSize::For(sizeof(record.number), record.piece_bytes);
}

Reservation ReserveRecord(LogWriter* writer, const TestRecord& record) {
  return writer->Reserve(RecordRequest{.type = RecordType::kData, .size = SizeOf(record)});
}

void FillRecord(LogWriter* writer, const Reservation& reservation, const TestRecord& record) {
  std::vector<std::vector<std::byte>> contents;
  for (size_t i = 0; i < record.piece_bytes.size(); ++i) {
    contents.push_back(PieceContent(record.number, i, record.piece_bytes[i]));
  }
  // Two runs for each piece, as the columns of a page are.
  std::vector<std::array<std::span<const std::byte>, 2>> runs(contents.size());
  std::vector<PieceSource> pieces(contents.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    const std::span<const std::byte> whole(contents[i]);
    runs[i] = {whole.first(whole.size() / 3), whole.subspan(whole.size() / 3)};
    pieces[i].runs = runs[i];
  }
  writer->Fill(reservation, RecordContent{.body = std::as_bytes(std::span(&record.number, 1)),
                                          .pieces = pieces});
}

Result<Reservation> AppendRecord(LogWriter* writer, const TestRecord& record) {
  const RecordSize size = SizeOf(record);
  while (!writer->HasRoom(size, Urgency::kAppend)) {
    GEARDB_RETURN_IF_ERROR(writer->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()));
  }
  const Reservation reservation = ReserveRecord(writer, record);
  FillRecord(writer, reservation, record);
  writer->Publish(reservation, nullptr);
  return reservation;
}

SeenRecord See(const RecordView& record) {
  SeenRecord seen{.lsn = record.lsn,
                  .end = record.end,
                  .pieces = record.pieces.size(),
                  .from_ring = record.from_ring};
  if (record.body.size() == sizeof(seen.number)) {
    std::memcpy(&seen.number, record.body.data(), sizeof(seen.number));
  } else {
    seen.content_right = false;
  }
  for (size_t i = 0; i < record.pieces.size(); ++i) {
    const PieceView& piece = record.pieces[i];
    if (!piece.good) {
      ++seen.bad_pieces;
      continue;
    }
    const auto content = PieceContent(seen.number, i, piece.bytes.size());
    seen.content_right = seen.content_right && std::ranges::equal(content, piece.bytes);
  }
  return seen;
}

LogOptions SmallLog() {
  LogOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{32} << 10;
  options.log_bytes_max = uint64_t{4} << 20;
  options.background = false;
  return options;
}

Result<SeenLog> OpenAndSee(Env* env, const std::string& directory, const OpenOptions& options,
                           std::vector<SeenRecord>* visited) {
  SeenLog seen;
  auto log = OpenLog(env, directory, options, [&](const RecordView& record) {
    seen.records.push_back(See(record));
    return Status::Ok();
  });
  if (visited != nullptr) *visited = seen.records;
  if (!log.ok()) return log.status();
  seen.log = std::move(log).value();
  return seen;
}

}  // namespace geardb::wal
