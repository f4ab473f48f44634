#include "engine/internal/cold_tier.h"

#include <algorithm>
#include <cstring>

namespace geardb::engine {
namespace {

/// Chunks of odd and of even images have kinds of their own.
constexpr uint16_t kEvenImages = 0x100;
constexpr ColdChunkKey kHeadKey{.table = 0, .partition = 0, .kind = 0xFFFF, .chunk = 0};
/// Of the head's chunk: five numbers of 8 bytes, the first of which is this.
constexpr uint64_t kHeadVersion = 1;

}  // namespace

ColdChunkKey ColdTier::KeyOf(const ImageChunk& chunk, uint64_t number) {
  const auto kind = static_cast<uint16_t>(chunk.kind);
  return {.table = chunk.table,
          .partition = 0,
          .kind = static_cast<uint16_t>(number % 2 == 0 ? kind | kEvenImages : kind),
          .chunk = chunk.number};
}

Status ColdTier::OpenExisting(uint64_t log_start) {
  GEARDB_ASSIGN_OR_RETURN(const bool found, env_->Exists(JoinPath(directory_, "CURRENT")));
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
  return ReadHead();
}

Status ColdTier::ReadHead() {
  const auto chunk = store_->ReadChunk(kHeadKey);
  if (chunk.status().code() == StatusCode::kNotFound) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(chunk.status());
  uint64_t words[5] = {};
  if (chunk->bytes.size() < sizeof(words[0])) {
    return Status::Corruption("the head of the images in '", directory_, "' has ",
                              chunk->bytes.size(), " bytes");
  }
  std::memcpy(words, chunk->bytes.data(), std::min(sizeof(words), chunk->bytes.size()));
  if (words[0] > kHeadVersion) {
    return Status::Unsupported("written by a newer GearDB: the head of the images in '", directory_,
                               "' has version ", words[0], "; this one knows ", kHeadVersion);
  }
  head_ = {.number = words[1], .lsn = words[2], .log_from = words[3], .log_start = words[4]};
  const bool fits = words[0] == kHeadVersion && chunk->bytes.size() == sizeof(words) &&
                    head_.number > 0 && head_.log_from <= head_.lsn && head_.lsn < kNoLsn;
  if (fits) return Status::Ok();
  return Status::Corruption("the head of the images in '", directory_, "' makes no sense: image ",
                            head_.number, " as of LSN ", head_.lsn, ", from ", head_.log_from);
}

Result<ColdStore*> ColdTier::Store() {
  MutexLock lock(&mutex_);
  if (store_ != nullptr) return store_.get();
  if (options_.read_only) {
    return Status::FailedPrecondition("no cold store is made in '", directory_,
                                      "': the database is open read-only");
  }
  GEARDB_ASSIGN_OR_RETURN(store_, ColdStore::Open(directory_, options_));
  open_.store(store_.get(), std::memory_order_release);
  return store_.get();
}

ImageSource ColdTier::CurrentImage() {
  return
      [store = if_open(), number = head_.number](const ImageChunk& chunk) -> Result<std::string> {
        GEARDB_ASSIGN_OR_RETURN(ColdChunk found, store->ReadChunk(KeyOf(chunk, number)));
        return std::move(found.bytes);
      };
}

Status ColdTier::SetHead(ColdBatch* batch, const ImageHead& head) {
  ColdStore* store = if_open();
  const uint64_t words[5] = {kHeadVersion, head.number, head.lsn, head.log_from, head.log_start};
  GEARDB_RETURN_IF_ERROR(batch->PutChunk(kHeadKey, head.lsn, std::as_bytes(std::span(words))));
  GEARDB_RETURN_IF_ERROR(store->Write(batch, head.log_from));
  // Whatever follows in the store follows it, also where the flush is still to come.
  head_ = head;
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
