#include "engine/internal/cold_tier.h"

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "base/check.h"
#include "base/hash.h"
#include "engine/internal/cold_check.h"

namespace geardb::engine {
namespace {

constexpr ColdChunkKey kHeadKey{.table = 0, .partition = 0, .kind = 0xFFFF, .chunk = 0};
/// Of the head's chunk: seven numbers of 8 bytes, the first of which is this.
constexpr uint64_t kHeadVersion = 3;
constexpr size_t kHeadWords = 7;
/// Known, too: it does not say which batch brought it.
constexpr uint64_t kHeadWithoutBatch = 2;
constexpr size_t kHeadWordsWithoutBatch = 6;

/// Parts of what odd and even images say of their chunks have kinds of their own.
ColdChunkKey PartKey(uint64_t image, uint64_t part) {
  return {.table = 0,
          .partition = 0,
          .kind = static_cast<uint16_t>(image % 2 == 0 ? 0xFFFD : 0xFFFE),
          .chunk = part};
}

/// In the store the LSN in a chunk's header is 0, so that chunks can be compared: it is the
/// image's.
void SetImageLsn(std::string* chunk, Lsn lsn) {
  GEARDB_CHECK(chunk->size() >= kImageChunkLsnOffset + sizeof(lsn));
  std::memcpy(chunk->data() + kImageChunkLsnOffset, &lsn, sizeof(lsn));
}

uint64_t HashOf(std::string_view chunk) { return Hash64(std::as_bytes(std::span(chunk)), 0); }

}  // namespace

Status NextImage::Put(const ImageChunk& chunk, std::span<const std::byte> bytes, ColdBatch* batch) {
  std::string stored(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SetImageLsn(&stored, 0);
  ChunkVersion version{.place = 0, .lsn = lsn_, .hash = HashOf(stored)};
  if (const ChunkVersion* current = current_.Find(chunk); current != nullptr) {
    if (current->hash == version.hash) {
      versions_.Set(chunk, *current);
      return Status::Ok();
    }
    version.place = (current->place == 0) != kBreak.image_in_place ? 1 : 0;
  }
  versions_.Set(chunk, version);
  bytes_put_ += stored.size();
  return batch->PutChunk(ImageVersions::KeyOf(chunk, version.place), lsn_,
                         std::as_bytes(std::span(stored)));
}

Status ColdTier::OpenExisting(uint64_t log_start) {
  GEARDB_ASSIGN_OR_RETURN(const bool found, HoldsColdStore(env_, directory_));
  if (!found) {
    if (log_start == 0) return Status::Ok();
    return Status::Corruption("the log begins at LSN ", log_start, ", and there is no cold store '",
                              directory_, "' with what was before it");
  }
  ColdStoreOptions options = options_;
  options.log_start = log_start;
  MutexLock lock(&mutex_);
  GEARDB_ASSIGN_OR_RETURN(store_, ColdStore::Open(directory_, options));
  open_.store(store_.get(), std::memory_order_release);
  GEARDB_RETURN_IF_ERROR(ReadHead());
  has_put_since_ = store_->last_batch() != head_.batch;
  return Status::Ok();
}

Status ColdTier::ReadHead() {
  const auto chunk = store_->ReadChunk(kHeadKey);
  if (chunk.status().code() == StatusCode::kNotFound) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(chunk.status());
  uint64_t words[kHeadWords] = {};
  if (chunk->bytes.size() < sizeof(words[0])) {
    return Status::Corruption("the head of the images in '", directory_, "' has ",
                              chunk->bytes.size(), " bytes");
  }
  std::memcpy(words, chunk->bytes.data(), std::min(sizeof(words), chunk->bytes.size()));
  if (words[0] == 1 || words[0] > kHeadVersion) {
    return Status::Unsupported("written by another GearDB: the head of the images in '", directory_,
                               "' has version ", words[0], "; this one knows ", kHeadVersion);
  }
  head_ = {.number = words[1],
           .lsn = words[2],
           .log_from = words[3],
           .log_start = words[4],
           .batch = words[6]};
  const size_t expected = words[0] == kHeadWithoutBatch ? kHeadWordsWithoutBatch : kHeadWords;
  const bool fits = words[0] >= kHeadWithoutBatch &&
                    chunk->bytes.size() == expected * sizeof(words[0]) && head_.number > 0 &&
                    head_.log_from <= head_.lsn && head_.lsn < kNoLsn;
  if (fits) return ReadVersions(words[5]);
  return Status::Corruption("the head of the images in '", directory_, "' makes no sense: image ",
                            head_.number, " as of LSN ", head_.lsn, ", from ", head_.log_from);
}

Status ColdTier::ReadVersions(uint64_t parts) {
  for (uint64_t number = 0; number < parts; ++number) {
    const auto part = store_->ReadChunk(PartKey(head_.number, number));
    Status read = part.status();
    if (read.ok() && part->lsn != head_.lsn) {
      read = Status::Corruption("it is as of LSN ", part->lsn, ", not ", head_.lsn);
    }
    if (read.ok()) read = versions_.Decode(part->bytes);
    if (read.ok()) continue;
    if (read.code() == StatusCode::kIoError) return read;
    return Status::Corruption("the image in '", directory_, "' has lost part ", number,
                              " of what says where its chunks are: ", read.message());
  }
  return Status::Ok();
}

Result<ColdStore*> ColdTier::Store() {
  MutexLock lock(&mutex_);
  if (store_ != nullptr) return store_.get();
  if (options_.read_only) {
    return Status::FailedPrecondition("no cold store is made in '", directory_,
                                      "': the database is open read-only");
  }
  GEARDB_ASSIGN_OR_RETURN(store_, ColdStore::Open(directory_, options_));
  // The log lets go of what is moved there: with the power, a new directory may be lost else.
  const Status synced = env_->SyncDirectory(ParentOf(directory_));
  if (!synced.ok()) {
    store_.reset();
    return synced;
  }
  open_.store(store_.get(), std::memory_order_release);
  return store_.get();
}

ImageSource ColdTier::CurrentImage() {
  return [this, store = if_open()](const ImageChunk& chunk) -> Result<std::string> {
    const ChunkVersion* const version = versions_.Find(chunk);
    if (version == nullptr) return Status::NotFound("the image has no such chunk");
    GEARDB_ASSIGN_OR_RETURN(ColdChunk found,
                            store->ReadChunk(ImageVersions::KeyOf(chunk, version->place)));
    if (found.lsn != version->lsn || HashOf(found.bytes) != version->hash) {
      return Status::Corruption(NameOf(chunk), ": its place has one as of LSN ", found.lsn,
                                ", expected that of ", version->lsn);
    }
    if (found.bytes.size() >= kImageChunkHeaderBytes) SetImageLsn(&found.bytes, head_.lsn);
    return std::move(found.bytes);
  };
}

std::vector<ImageChunk> ColdTier::ImageChunks() const {
  std::vector<ImageChunk> chunks;
  for (const auto& [chunk, version] : versions_.all()) chunks.push_back(chunk);
  return chunks;
}

Status ColdTier::PutHead(const ImageHead& head, const ImageVersions& next, ColdBatch* batch) const {
  for (const auto& [chunk, version] : versions_.all()) {
    const ChunkVersion* const stays = next.Find(chunk);
    if (stays != nullptr && stays->place == version.place) continue;
    batch->DeleteChunk(ImageVersions::KeyOf(chunk, version.place));
  }
  for (uint64_t part = 0; part < versions_.Parts(); ++part) {
    batch->DeleteChunk(PartKey(head_.number, part));
  }
  const std::vector<std::string> parts = next.Encode();
  for (size_t part = 0; part < parts.size(); ++part) {
    GEARDB_RETURN_IF_ERROR(batch->PutChunk(PartKey(head.number, part), head.lsn,
                                           std::as_bytes(std::span(parts[part]))));
  }
  const uint64_t words[kHeadWords] = {kHeadVersion,   head.number,  head.lsn,  head.log_from,
                                      head.log_start, parts.size(), head.batch};
  return batch->PutChunk(kHeadKey, head.lsn, std::as_bytes(std::span(words)));
}

Status ColdTier::SetHead(ColdBatch* batch, const ImageHead& head, NextImage image) {
  ColdStore* store = if_open();
  batch->Mark();
  Status status = PutHead(head, image.versions_, batch);
  if (status.ok()) status = store->Write(batch, head.log_from);
  if (!status.ok()) {
    batch->ReturnToMark();
    return status;
  }
  // Whatever follows in the store follows it, also where the flush is still to come.
  head_ = head;
  versions_ = std::move(image.versions_);
  if constexpr (kBreak.recycle_unflushed) return Status::Ok();
  return store->Flush();
}

ColdStats ColdTier::stats() {
  MutexLock lock(&mutex_);
  return closed_ || store_ == nullptr ? last_stats_ : store_->stats();
}

Status ColdTier::Close() {
  MutexLock lock(&mutex_);
  if (store_ == nullptr) return Status::Ok();
  if (!closed_) last_stats_ = store_->stats();
  closed_ = true;
  return store_->Close();
}

}  // namespace geardb::engine
