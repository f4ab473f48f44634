#include "engine/internal/cold_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/concatenate.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {

ColdReader::ColdReader(const ColdDb* db)
    : db_(db), snapshots_(std::make_shared<ColdSnapshots>(db->db.get())), salvage_(db) {}

ColdReader::~ColdReader() = default;

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
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    while (reading_ > 0) left_.WaitUntil(&mutex_, Deadline::Infinite());
  }
  snapshots_->Close();
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

// RocksDB names the file of a bad block, but not of a bad value. It is for the tools: beside a
// writer, files come and go.
std::string ColdReader::WhereItIs(const ColdPageKey& key) {
  if (!db_->options.read_only) return "";
  {
    MutexLock lock(&mutex_);
    if (!opens_all_) opens_all_ = FindLostPages(*db_, LostPages::kUnreadable).empty();
    if (!*opens_all_) return "";
  }
  const auto place = FindBlobPlace(*db_, key);
  if (!place) return "";
  return Concatenate("; its value has ", place->bytes, " bytes, in ", place->path, " at offset ",
                     place->offset);
}

Status ColdReader::Decode(std::string_view value, ColdRead* read) {
  const auto header = DecodeColdPage(read->key, value, *read->layout, read->frame);
  GEARDB_RETURN_IF_ERROR(header.status());
  read->header = *header;
  bytes_.Add(PieceColumns(*read->layout, header->rows).bytes());
  return Status::Ok();
}

std::vector<LostFile> ColdReader::LostFilesOf(const ColdPageKey& key) {
  const std::string bytes = EncodeColdKey(key);
  MutexLock lock(&lost_mutex_);
  std::vector<LostFile> lost;
  std::ranges::copy_if(lost_, std::back_inserter(lost), [&](const LostFile& file) {
    return file.file.smallestkey <= bytes && bytes <= file.file.largestkey;
  });
  // What is known to be bad explains the read. Else one that was good may not be any more.
  if (lost.empty()) looked_.clear();
  for (LostFile& found : FindLostPages(*db_, LostPages::kDamaged, &key, &looked_)) {
    lost_.push_back(found);
    lost.push_back(std::move(found));
  }
  return lost;
}

// Beside a writer its files come and go. (Nor is anything read as of before.)
const ColdDb* ColdReader::Without() {
  if (!db_->read_only || db_->format < kColdFormat) return nullptr;
  MutexLock lock(&without_mutex_);
  if (!std::exchange(tried_without_, true)) {
    ColdStoreOptions options = db_->options;
    options.memory_bytes = kColdMemoryBytesMin;
    auto opened = OpenWithoutLostPages(db_->directory, options);
    if (opened.ok()) without_ = std::move(*opened);
  }
  return without_.get();
}

bool ColdReader::ReadFrom(const ColdDb& without, ColdRead* read) {
  rocksdb::PinnableSlice value;
  return read->lsn != kNoLsn &&
         GetValue(without, without.pages, EncodeColdKey(read->key), nullptr, &value).ok() &&
         Decode(ViewOf(value), read).ok() && read->header.lsn != kNoLsn &&
         read->header.lsn >= read->lsn;
}

bool ColdReader::Salvage(ColdRead* read) {
  const auto value = salvage_.Find(read->key, read->lsn);
  if (!value || !Decode(*value, read).ok()) return false;
  salvaged_.Add();
  return true;
}

bool ColdReader::LookBeside(const ColdRead& read) {
  if (read.lsn == kNoLsn || db_->format < kColdFormat) return false;
  bool all = true;
  for (const rocksdb::LiveFileMetaData& file : FilesOfPages(*db_, &read.key)) {
    all = salvage_.LookBeside(file) && all;
  }
  return all;
}

Status ColdReader::AfterDamage(const Status& why, ColdRead* read) {
  const ColdDb* const without = Without();
  if (without != nullptr && ReadFrom(*without, read)) return Status::Ok();
  if (Salvage(read)) return Status::Ok();
  const std::vector<LostFile> lost = LostFilesOf(read->key);
  if (lost.empty()) return Status::Corruption(why.message(), WhereItIs(read->key));
  salvage_.LookFor(lost);
  if (Salvage(read)) return Status::Ok();
  bool all_looked_at = false;
  if (without == nullptr) {  // Else the store without these files has said what others have.
    all_looked_at = LookBeside(*read);
    if (Salvage(read)) return Status::Ok();
  }
  // A file that is only away comes back, and nothing may be removed for it.
  if (all_looked_at || (without != nullptr && db_->options.read_only)) {
    return Status::Corruption(why.message(), "; nothing else has the page");
  }
  read->of_file = true;
  return Status::Corruption(why.message(),
                            "; reads pass through what is damaged there, and the page itself may "
                            "be good: geardb repair finds out");
}

Status ColdReader::ReadPage(ColdRead* read) {
  rocksdb::PinnableSlice value;
  const rocksdb::Snapshot* as_of = read->as_of == nullptr ? nullptr : read->as_of->rocks();
  Status status = FromRocks(GetValue(*db_, db_->pages, EncodeColdKey(read->key), as_of, &value),
                            db_->directory);
  if (status.code() == StatusCode::kNotFound) {
    missing_.Add();
    return Status::NotFound("no ", ColdKeyText(read->key), " in the cold store");
  }
  if (status.code() == StatusCode::kCorruption) {
    status = AfterDamage(status, read);
  } else if (status.ok()) {
    status = Decode(ViewOf(value), read);
  }
  if (status.ok()) return status;
  failed_.Add();
  return status.WithContext(ColdKeyText(read->key));
}

void ColdReader::AddTo(ColdStats* stats) const {
  stats->pages_read += pages_.value();
  stats->pages_missing += missing_.value();
  stats->pages_failed += failed_.value();
  stats->pages_salvaged += salvaged_.value();
  stats->bytes_read += bytes_.value();
}

}  // namespace geardb::engine
