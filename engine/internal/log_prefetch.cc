#include "engine/internal/log_prefetch.h"

#include <algorithm>
#include <span>

#include "base/page_view.h"
#include "base/thread.h"

namespace geardb::engine {
namespace {

/// More would only push other files out of the page cache.
constexpr uint64_t kBytesMax = uint64_t{512} << 20;
/// The image, which is waited for, is read from the same disk meanwhile.
constexpr uint64_t kBytesAtOnce = uint64_t{512} << 10;

}  // namespace

LogPrefetch::LogPrefetch(const PrefetchedLog& log, bool background) {
  if (!background) return;
  auto thread = StartThread("has the log read ahead", [this, log] { Run(log); });
  if (thread.ok()) thread_ = std::move(*thread);
}

LogPrefetch::~LogPrefetch() {
  stop_.store(true);
  Wait();
}

void LogPrefetch::Wait() {
  if (thread_.joinable()) thread_.join();
}

void LogPrefetch::Run(const PrefetchedLog& log) {
  if (!Prefetch(log, wal::kRingName, log.manifest.ring_bytes)) return;
  const uint64_t segment_bytes = log.manifest.segment_bytes;
  const Lsn from = AlignDown(log.from, segment_bytes);
  for (const auto& [base, name] : log.map.names) {
    const bool is_read = base >= from || base + segment_bytes <= log.released;
    if (is_read && !Prefetch(log, name, segment_bytes)) return;
  }
}

bool LogPrefetch::Prefetch(const PrefetchedLog& log, const std::string& name, uint64_t bytes) {
  if (bytes_.load() + bytes > kBytesMax) return false;
  const std::string path = JoinPath(JoinPath(log.directory, wal::kLogDirectoryName), name);
  const auto file = log.env->OpenFile(path, {.mode = FileMode::kRead});
  if (!file.ok()) return false;
  for (uint64_t at = 0; at < bytes; at += kBytesAtOnce) {
    if (stop_.load()) return false;
    const uint64_t end = std::min(at + kBytesAtOnce, bytes);
    (*file)->Prefetch({at, end});
    // Waits for it.
    std::byte last;
    if (!(*file)->Read(end - 1, {&last, 1}).ok()) return false;
    bytes_.fetch_add(end - at);
  }
  return true;
}

}  // namespace geardb::engine
