// Concatenate: the one way in which texts for people are put together.
#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <utility>

namespace geardb {

/// Its arguments as `<<` writes them, one after the other. Numbers are plain ("123456") whatever
/// locale the application has made the global one.
template <typename... Parts>
std::string Concatenate(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace geardb
