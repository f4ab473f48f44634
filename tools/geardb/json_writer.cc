#include "tools/geardb/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace geardb::cli {
namespace {

/// Bytes of the UTF-8 character at the front of `text`; 0 when there is none (RFC 3629).
size_t CharacterBytes(std::string_view text) {
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

template <typename T>
std::string Digits(T value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    size_t taken = CharacterBytes(text);
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
  if (!std::isfinite(value)) return Null();
  Raw(Digits(value));
}

void JsonWriter::Number(float value) {
  if (!std::isfinite(value)) return Null();
  Raw(Digits(value));
}

}  // namespace geardb::cli
