// Json: a strict reader of JSON (RFC 8259) for tests. It shares no code with what writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace geardb::testing {

/// A value. Asking for what is not there fails the test, and gives null.
class Json {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  /// The one value of `text`; nothing when that is no JSON, has doubled keys, or is no UTF-8.
  static std::optional<Json> Parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool truth() const;
  double number() const;
  /// A number as it was written, without a loss of digits.
  const std::string& digits() const;
  int64_t integer() const;
  const std::string& text() const;
  const std::vector<Json>& items() const;
  /// Of an object, in their order.
  std::vector<std::string> keys() const;

  bool has(std::string_view key) const;
  const Json& operator[](std::string_view key) const;
  const Json& operator[](size_t index) const;

 private:
  friend class JsonReader;
  bool Expect(Kind kind) const;

  Kind kind_ = Kind::kNull;
  bool truth_ = false;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> fields_;
};

}  // namespace geardb::testing
