#include "tools/geardb/text_table.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace geardb::cli {
namespace {

constexpr std::string_view kGap = "  ";

/// Characters, not bytes.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// As NumberText, Grouped and std::to_string write them; or nothing, or what stands for more.
bool IsNumber(std::string_view text) {
  if (text.empty() || text == "…") return true;
  if (text == "nan" || text == "-nan" || text == "inf" || text == "-inf") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' &&
         text.find_first_not_of("0123456789,.e+-") == std::string_view::npos;
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header, int indent) : indent_(indent) {
  rows_.push_back(std::move(header));
}

void TextTable::Add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

void TextTable::Print(std::ostream* out) const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> numbers(columns, rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], Width(rows_[r][c]));
      if (r > 0 && !IsNumber(rows_[r][c])) numbers[c] = false;
    }
  }
  for (const auto& row : rows_) {
    std::string line(static_cast<size_t>(indent_), ' ');
    for (size_t c = 0; c < columns; ++c) {
      const std::string fill(widths[c] - Width(row[c]), ' ');
      if (c > 0) line += kGap;
      line += numbers[c] ? fill + row[c] : row[c] + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    *out << line << '\n';
  }
}

std::string Grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Counted(uint64_t number, std::string_view noun) {
  std::string text = Grouped(number) + " " + std::string(noun);
  if (number == 1) return text;
  if (text.ends_with("y")) return text.substr(0, text.size() - 1) + "ies";
  return text + "s";
}

std::string BytesText(uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string SecondsText(double seconds) {
  std::array<char, 32> text;
  if (seconds < 1) {
    std::snprintf(text.data(), text.size(), "%.1f ms", seconds * 1e3);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  }
  return text.data();
}

std::string TimeText(int64_t microseconds) {
  const time_t seconds = microseconds / 1'000'000;
  struct tm parts = {};
  std::array<char, 64> text;
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return std::to_string(microseconds) + " us";
  }
  return text.data();
}

std::string NumberText(double number, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return text.data();
}

size_t Utf8Bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool beyond = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || beyond ? 0 : bytes;
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t bytes = Utf8Bytes(text);
    // U+0080…U+009F are controls, too: some terminals obey them.
    const bool control =
        first < 0x20 || first == 0x7F ||
        (bytes == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (bytes == 0 || control) {
      out += '?';
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

}  // namespace geardb::cli
