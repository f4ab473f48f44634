#include "tools/geardb/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

template <typename T>
std::string Digits(T value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

std::string_view NameOf(double not_finite) {
  if (std::isnan(not_finite)) return "NaN";
  return not_finite > 0 ? "Infinity" : "-Infinity";
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    size_t taken = Utf8Bytes(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escaped.data();
    } else if (taken == 0) {
      out += "\\ufffd";
      taken = 1;
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out + "\"";
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_values_.empty()) return;
  if (has_values_.back()) *out_ << ',';
  has_values_.back() = true;
}

void JsonWriter::Raw(std::string_view text) {
  Separate();
  *out_ << text;
}

void JsonWriter::Open(char bracket) {
  Separate();
  *out_ << bracket;
  has_values_.push_back(false);
}

void JsonWriter::Close(char bracket) {
  has_values_.pop_back();
  *out_ << bracket;
  if (has_values_.empty()) *out_ << '\n';
}

void JsonWriter::Key(std::string_view key) {
  Separate();
  *out_ << JsonString(key) << ':';
  after_key_ = true;
}

void JsonWriter::String(std::string_view text) { Raw(JsonString(text)); }

void JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return String(NameOf(value));
  Raw(Digits(value));
}

void JsonWriter::Number(float value) {
  if (!std::isfinite(value)) return String(NameOf(static_cast<double>(value)));
  Raw(Digits(value));
}

}  // namespace geardb::cli
