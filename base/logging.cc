#include "base/logging.h"

#include <cstdio>
#include <utility>

#include "base/mutex.h"

namespace geardb {
namespace {

struct Logger {
  Mutex mutex;
  LogSink sink GEARDB_GUARDED_BY(mutex);
};

Logger* SharedLogger() {
  // Never destroyed: background threads may log while the process exits.
  static auto* logger = new Logger;
  return logger;
}

void WriteToStderr(LogLevel level, std::string_view line) {
  if (level == LogLevel::kInfo) return;
  std::fprintf(stderr, "geardb %c: %.*s\n", level == LogLevel::kWarning ? 'W' : 'E',
               static_cast<int>(line.size()), line.data());
}

}  // namespace

void SetLogSink(LogSink sink) {
  Logger* logger = SharedLogger();
  const MutexLock lock(&logger->mutex);
  logger->sink = std::move(sink);
}

void LogLine(LogLevel level, std::string_view line) {
  Logger* logger = SharedLogger();
  const MutexLock lock(&logger->mutex);
  if (logger->sink) {
    logger->sink(level, line);
  } else {
    WriteToStderr(level, line);
  }
}

}  // namespace geardb
