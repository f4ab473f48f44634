// Logging: the one place where the library says something outside a Status, for background work
// whose failure nobody waits for. Everything else is returned.
//
// Invariants: a line is written whole; the sink is called by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/concatenate.h"

namespace geardb {

enum class LogLevel : uint8_t {
  kInfo = 0,
  kWarning = 1,
  kError = 2,
};

/// Receives every line, without an end of line. It must not log itself.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// Replaces the sink; an empty one restores the default, which writes warnings and errors to stderr
/// as "geardb W: text". Thread-safe; returns when no call of the former sink is running.
void SetLogSink(LogSink sink);

/// Hands one line to the sink. Thread-safe.
void LogLine(LogLevel level, std::string_view line);

/// Concatenates its arguments: `Log(LogLevel::kWarning, "drain of ", path, " failed")`.
template <typename... Parts>
void Log(LogLevel level, const Parts&... parts) {
  LogLine(level, Concatenate(parts...));
}

}  // namespace geardb
