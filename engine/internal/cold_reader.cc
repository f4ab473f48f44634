#include "engine/internal/cold_reader.h"

#include <rocksdb/db.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/concatenate.h"
#include "base/thread.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {
namespace {

// Few enough that a list is spread over the threads, enough that MultiGet reads blocks once.
constexpr size_t kReadsPerJobMax = 16;

}  // namespace

struct ColdReader::List {
  std::function<void()> done;
  std::atomic<size_t> jobs_left{0};
};

Result<std::unique_ptr<ColdReader>> ColdReader::Start(const ColdDb* db, uint32_t threads) {
  std::unique_ptr<ColdReader> reader(new ColdReader(db));
  for (uint32_t i = 0; i < threads; ++i) {
    GEARDB_ASSIGN_OR_RETURN(auto thread, StartThread("reads from the cold store",
                                                     [self = reader.get()] { self->Run(); }));
    reader->threads_.push_back(std::move(thread));
  }
  return reader;
}

void ColdReader::Submit(std::span<ColdRead> reads, std::function<void()> done) {
  pages_.Add(reads.size());
  if (reads.empty()) return done();
  const size_t spread = std::max<size_t>(1, reads.size() / std::max<size_t>(1, threads_.size()));
  const size_t per_job = std::min(kReadsPerJobMax, spread);
  auto list = std::make_shared<List>();
  list->done = std::move(done);
  list->jobs_left = (reads.size() + per_job - 1) / per_job;
  bool closed = false;
  {
    MutexLock lock(&mutex_);
    closed = closed_;
    for (size_t first = 0; first < reads.size() && !closed; first += per_job) {
      jobs_.push_back(Job{list, reads.subspan(first, std::min(per_job, reads.size() - first))});
    }
  }
  if (closed) {
    for (ColdRead& read : reads) {
      FinishRead({}, Status::FailedPrecondition("the cold store ", db_->directory, " is closed"),
                 &read);
    }
    list->done();
    return;
  }
  changed_.NotifyAll();
}

void ColdReader::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ColdReader::Run() {
  while (true) {
    Job job;
    {
      MutexLock lock(&mutex_);
      while (jobs_.empty() && !closed_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    ReadJob(job.reads);
    if (job.list->jobs_left.fetch_sub(1) == 1) job.list->done();
  }
}

void ColdReader::ReadJob(std::span<ColdRead> reads) {
  std::vector<std::string> keys;
  std::vector<rocksdb::Slice> slices;
  keys.reserve(reads.size());
  for (const ColdRead& read : reads) keys.push_back(EncodeColdKey(read.key));
  for (const std::string& key : keys) slices.emplace_back(key);
  std::vector<rocksdb::PinnableSlice> values(reads.size());
  std::vector<rocksdb::Status> statuses(reads.size());
  const rocksdb::ReadOptions options;
  db_->db->MultiGet(options, db_->pages, reads.size(), slices.data(), values.data(),
                    statuses.data());
  for (size_t i = 0; i < reads.size(); ++i) {
    if (!statuses[i].ok() && !statuses[i].IsNotFound()) {
      // One damaged block may fail its neighbours of the same call: asked alone, it does not.
      values[i].Reset();
      statuses[i] = db_->db->Get(options, db_->pages, slices[i], &values[i]);
    }
    FinishRead(ViewOf(values[i]), FromRocks(statuses[i], db_->directory), &reads[i]);
    values[i].Reset();
  }
}

void ColdReader::FinishRead(std::string_view value, Status status, ColdRead* read) {
  if (status.code() == StatusCode::kNotFound) {
    missing_.Add();
    read->status = Status::NotFound("no ", ColdKeyText(read->key), " in the cold store");
    return;
  }
  if (status.ok()) {
    auto header = DecodeColdPage(read->key, value, *read->layout, read->frame);
    if (header.ok()) {
      read->header = *header;
      bytes_.Add(PieceColumns(*read->layout, header->rows).bytes());
    }
    status = header.status();
  }
  if (!status.ok()) failed_.Add();
  read->status = status.ok() ? status : status.WithContext(ColdKeyText(read->key));
}

void ColdReader::AddTo(ColdStats* stats) const {
  stats->pages_read += pages_.value();
  stats->pages_missing += missing_.value();
  stats->pages_failed += failed_.value();
  stats->bytes_read += bytes_.value();
}

}  // namespace geardb::engine
