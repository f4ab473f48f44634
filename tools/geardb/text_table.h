// TextTable: rows for people, in aligned columns; and numbers as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace geardb::cli {

/// Rows of the same number of cells. Cells that are numbers stand at the right of their column.
class TextTable {
 public:
  /// The names of the columns; `indent` spaces stand before every line.
  explicit TextTable(std::vector<std::string> header, int indent = 2);

  void Add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  void Print(std::ostream* out) const;

 private:
  std::vector<std::vector<std::string>> rows_;  ///< The first is the header.
  int indent_;
};

/// "12,345".
std::string Grouped(uint64_t number);
/// "3 rows", "1 row".
std::string Counted(uint64_t number, std::string_view noun);
/// "640 B", "1.5 KiB", "64.0 MiB".
std::string BytesText(uint64_t bytes);
/// "12.3 ms", "1.2 s".
std::string SecondsText(double seconds);
/// "2026-01-31 12:34:56 UTC" of microseconds since 1970.
std::string TimeText(int64_t microseconds);
/// `number` with up to `digits` significant digits.
std::string NumberText(double number, int digits = 6);
/// Bytes of the UTF-8 character (RFC 3629) at the front of `text`, which is not empty; 0 when there
/// is none.
size_t Utf8Bytes(std::string_view text);
/// As people see it: control characters, and bytes that are no UTF-8, are question marks.
std::string Printable(std::string_view text);

}  // namespace geardb::cli
