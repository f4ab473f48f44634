// JsonWriter: writes one JSON value (RFC 8259), in the order of the calls.
#pragma once

#include <concepts>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace geardb::cli {

/// Writes to a stream as it is called. Commas and colons are its own business; that objects are
/// closed in the order in which they were opened is the caller's. Not thread-safe.
class JsonWriter {
 public:
  explicit JsonWriter(std::ostream* out) : out_(out) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  /// The name of the next value of an object.
  void Key(std::string_view key);

  void String(std::string_view text);
  void Bool(bool value) { Raw(value ? "true" : "false"); }
  void Null() { Raw("null"); }
  template <std::integral T>
  void Number(T value) {
    Raw(std::to_string(value));
  }
  /// The shortest digits that read back as the same number; JSON has no words for what is not
  /// finite, so that is one of the strings "NaN", "Infinity" and "-Infinity".
  void Number(double value);
  void Number(float value);

  // A key and its value.
  void Field(std::string_view key, std::string_view text) { Key(key), String(text); }
  void Field(std::string_view key, const char* text) { Key(key), String(text); }
  void Field(std::string_view key, bool value) { Key(key), Bool(value); }
  void Field(std::string_view key, double value) { Key(key), Number(value); }
  void Field(std::string_view key, float value) { Key(key), Number(value); }
  template <std::integral T>
  void Field(std::string_view key, T value) {
    Key(key), Number(value);
  }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Raw(std::string_view text);
  void Separate();

  std::ostream* out_;
  std::vector<bool> has_values_;  ///< One per open object or array.
  bool after_key_ = false;
};

/// `text` in quotes, with everything escaped that JSON wants escaped. Bytes that are no UTF-8 are
/// replaced by U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace geardb::cli
