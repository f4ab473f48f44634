// The numbers that errors name, for tests that take them at their word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace geardb::testing {

/// The number right behind `words` in the message; nothing where it does not have these words.
inline std::optional<uint64_t> NumberBehind(std::string_view words, const Status& status) {
  const std::string text(status.message());
  const size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::stoull(text.substr(at + words.size()));
}

}  // namespace geardb::testing
