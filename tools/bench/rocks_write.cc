#include "tools/bench/rocks_write.h"

#include <rocksdb/write_batch.h>

#include <string_view>

#include "engine/internal/cold_db.h"
#include "engine/internal/cold_keys.h"
#include "engine/internal/cold_page.h"
#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

/// As engine/internal/cleaner.cc.
constexpr uint64_t kBatchBytes = 8 * kMiB;
constexpr uint64_t kPagesOfTrajectory = 16;

engine::ColdPageKey KeyOf(uint64_t number) {
  return {.table = 1,
          .trajectory = 1 + number / kPagesOfTrajectory,
          .page = number % kPagesOfTrajectory};
}

}  // namespace

struct RocksWrites::Rep {
  std::unique_ptr<engine::ColdDb> db;
};

RocksWrites::RocksWrites(Pages pages, std::unique_ptr<Rep> rep)
    : pages_(pages), rep_(std::move(rep)) {}
RocksWrites::~RocksWrites() = default;

Result<std::unique_ptr<RocksWrites>> RocksWrites::Make(const std::string& directory, Pages pages) {
  auto rep = std::make_unique<Rep>();
  GEARDB_ASSIGN_OR_RETURN(rep->db, engine::OpenColdDb(directory, engine::ColdStoreOptions{}));
  if (pages == Pages::kRaw) {
    GEARDB_RETURN_IF_ERROR(engine::FromRocks(
        rep->db->db->SetOptions(rep->db->pages, {{"blob_compression_type", "kLZ4Compression"}}),
        directory));
  }
  return std::unique_ptr<RocksWrites>(new RocksWrites(pages, std::move(rep)));
}

Result<std::string> RocksWrites::Encoded(uint64_t number, std::span<const std::byte> page) const {
  const uint64_t row_bytes[] = {kStepBytes};
  const PageLayout layout(row_bytes, static_cast<uint32_t>(page.size() / kStepBytes));
  std::string value;
  GEARDB_RETURN_IF_ERROR(engine::EncodeColdPage(
      KeyOf(number),
      {.layout = &layout,
       .frame = page,
       .header = {.generation = 1, .rows = static_cast<uint32_t>(page.size() / kStepBytes)},
       .codecs = {}},
      &value));
  return value;
}

Result<double> RocksWrites::Write(std::span<const std::span<const std::byte>> pages) {
  std::vector<std::string> encoded;
  if (pages_ == Pages::kEncoded) {
    for (uint64_t i = 0; i < pages.size(); ++i) {
      GEARDB_ASSIGN_OR_RETURN(encoded.emplace_back(), Encoded(next_ + i, pages[i]));
    }
  }
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::FlushOptions flush;
  flush.wait = true;
  flush.allow_write_stall = true;
  engine::ColdDb& store = *rep_->db;
  rocksdb::DB* const db = store.db.get();
  rocksdb::WriteBatch batch;
  uint64_t bytes = 0;
  rocksdb::Status status;
  const Stopwatch watch;
  for (uint64_t i = 0; i < pages.size() && status.ok(); ++i) {
    const std::string_view value =
        encoded.empty()
            ? std::string_view(reinterpret_cast<const char*>(pages[i].data()), pages[i].size())
            : std::string_view(encoded[i]);
    const std::string key = engine::EncodeColdKey(KeyOf(next_ + i));
    status = batch.Put(store.pages, key, engine::SliceOf(value));
    bytes += pages[i].size();
    const bool full = bytes % kBatchBytes < pages[i].size() || i + 1 == pages.size();
    if (!full || !status.ok()) continue;
    status = db->Write(unlogged, &batch);
    batch.Clear();
  }
  if (status.ok()) status = db->Flush(flush, store.families());
  const double seconds = watch.seconds();
  next_ += pages.size();
  GEARDB_RETURN_IF_ERROR(engine::FromRocks(status, store.directory));
  return static_cast<double>(bytes) / seconds;
}

}  // namespace geardb::bench
