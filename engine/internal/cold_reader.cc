#include "engine/internal/cold_reader.h"

#include <rocksdb/db.h>

#include "engine/internal/cold_db.h"

namespace geardb::engine {

bool ColdReader::Enter() {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  ++reading_;
  return true;
}

void ColdReader::Leave() {
  MutexLock lock(&mutex_);
  if (--reading_ == 0 && closed_) left_.NotifyAll();
}

void ColdReader::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  while (reading_ > 0) left_.WaitUntil(&mutex_, Deadline::Infinite());
}

void ColdReader::Read(ColdRead* read) {
  pages_.Add();
  if (!Enter()) {
    failed_.Add();
    read->status = Status::FailedPrecondition("the cold store ", db_->directory, " is closed")
                       .WithContext(ColdKeyText(read->key));
    return;
  }
  read->status = ReadPage(read);
  Leave();
}

Status ColdReader::ReadPage(ColdRead* read) {
  rocksdb::PinnableSlice value;
  const Status found = FromRocks(
      db_->db->Get(rocksdb::ReadOptions(), db_->pages, SliceOf(EncodeColdKey(read->key)), &value),
      db_->directory);
  if (found.code() == StatusCode::kNotFound) {
    missing_.Add();
    return Status::NotFound("no ", ColdKeyText(read->key), " in the cold store");
  }
  Status status = found;
  if (status.code() == StatusCode::kCorruption && !CanReadFilesOf(*db_, read->key)) {
    read->of_file = true;
    status = Status::Corruption(status.message(),
                                "; reads pass through what is damaged there, and the page itself "
                                "may be good: geardb repair finds out");
  }
  if (status.ok()) {
    const auto header = DecodeColdPage(read->key, ViewOf(value), *read->layout, read->frame);
    if (header.ok()) {
      read->header = *header;
      bytes_.Add(PieceColumns(*read->layout, header->rows).bytes());
      return Status::Ok();
    }
    status = header.status();
  }
  failed_.Add();
  return status.WithContext(ColdKeyText(read->key));
}

void ColdReader::AddTo(ColdStats* stats) const {
  stats->pages_read += pages_.value();
  stats->pages_missing += missing_.value();
  stats->pages_failed += failed_.value();
  stats->bytes_read += bytes_.value();
}

}  // namespace geardb::engine
