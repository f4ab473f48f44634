#include "tests/tools/geardb/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace geardb::testing {

/// Recursive descent; false as soon as something is wrong.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool ReadAll(Json* value) {
    if (!Read(value)) return false;
    Skip();
    return text_.empty();
  }

 private:
  void Skip() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  bool Take(std::string_view word) {
    Skip();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  bool Read(Json* value) {
    Skip();
    if (text_.empty()) return false;
    switch (text_[0]) {
      case '{':
        return ReadObject(value);
      case '[':
        return ReadArray(value);
      case '"':
        value->kind_ = Json::Kind::kString;
        return ReadString(&value->text_);
      case 't':
      case 'f':
        value->kind_ = Json::Kind::kBool;
        value->truth_ = text_[0] == 't';
        return Take(value->truth_ ? "true" : "false");
      case 'n':
        return Take("null");
      default:
        return ReadNumber(value);
    }
  }

  bool ReadNumber(Json* value) {
    static const std::regex kNumber(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)");
    const std::string rest(text_.substr(0, 64));
    std::smatch match;
    if (!std::regex_search(rest, match, kNumber, std::regex_constants::match_continuous)) {
      return false;
    }
    value->kind_ = Json::Kind::kNumber;
    value->text_ = match.str();
    text_.remove_prefix(value->text_.size());
    return true;
  }

  bool ReadObject(Json* value) {
    value->kind_ = Json::Kind::kObject;
    Take("{");
    if (Take("}")) return true;
    do {
      Skip();
      std::string key;
      if (!text_.starts_with('"') || !ReadString(&key) || value->has(key)) return false;
      Json field;
      if (!Take(":") || !Read(&field)) return false;
      value->fields_.emplace_back(std::move(key), std::move(field));
    } while (Take(","));
    return Take("}");
  }

  bool ReadArray(Json* value) {
    value->kind_ = Json::Kind::kArray;
    Take("[");
    if (Take("]")) return true;
    do {
      Json item;
      if (!Read(&item)) return false;
      value->items_.push_back(std::move(item));
    } while (Take(","));
    return Take("]");
  }

  bool ReadString(std::string* out) {
    text_.remove_prefix(1);
    while (!text_.empty() && text_[0] != '"') {
      if (text_[0] == '\\' ? !ReadEscape(out) : !ReadCharacter(out)) return false;
    }
    return Take("\"");
  }

  bool ReadEscape(std::string* out) {
    if (text_.size() < 2) return false;
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (const size_t at = kFrom.find(text_[1]); at != std::string_view::npos) {
      *out += kTo[at];
      text_.remove_prefix(2);
      return true;
    }
    const std::string digits(text_.substr(2, 4));
    if (text_[1] != 'u' || digits.size() < 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
      return false;
    }
    AddUtf8(static_cast<uint32_t>(std::strtoul(digits.c_str(), nullptr, 16)), out);
    text_.remove_prefix(6);
    return true;
  }

  static void AddUtf8(uint32_t code, std::string* out) {
    const auto add = [&](uint32_t byte) { *out += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | (code >> 6));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xE0 | (code >> 12));
      add(0x80 | ((code >> 6) & 0x3F));
      add(0x80 | (code & 0x3F));
    }
  }

  /// One character of UTF-8; control characters must be escaped.
  bool ReadCharacter(std::string* out) {
    const auto first = static_cast<unsigned char>(text_[0]);
    if (first < 0x20) return false;
    size_t more = 0;
    if (first >= 0x80) {
      more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
      if (first < 0xC2 || first > 0xF4 || text_.size() <= more) return false;
    }
    for (size_t i = 1; i <= more; ++i) {
      if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) return false;
    }
    *out += text_.substr(0, more + 1);
    text_.remove_prefix(more + 1);
    return true;
  }

  std::string_view text_;
};

std::optional<Json> Json::Parse(std::string_view text) {
  Json value;
  if (!JsonReader(text).ReadAll(&value)) return std::nullopt;
  return value;
}

bool Json::Expect(Kind kind) const {
  EXPECT_EQ(static_cast<int>(kind_), static_cast<int>(kind)) << "'" << text_ << "'";
  return kind_ == kind;
}

bool Json::truth() const { return Expect(Kind::kBool) && truth_; }
double Json::number() const {
  return Expect(Kind::kNumber) ? std::strtod(text_.c_str(), nullptr) : 0;
}
const std::string& Json::digits() const {
  Expect(Kind::kNumber);
  return text_;
}
int64_t Json::integer() const { return std::strtoll(digits().c_str(), nullptr, 10); }
const std::string& Json::text() const {
  Expect(Kind::kString);
  return text_;
}
const std::vector<Json>& Json::items() const {
  Expect(Kind::kArray);
  return items_;
}

std::vector<std::string> Json::keys() const {
  Expect(Kind::kObject);
  std::vector<std::string> keys;
  for (const auto& [key, value] : fields_) keys.push_back(key);
  return keys;
}

bool Json::has(std::string_view key) const {
  for (const auto& field : fields_) {
    if (field.first == key) return true;
  }
  return false;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json kNone;
  for (const auto& field : fields_) {
    if (field.first == key) return field.second;
  }
  ADD_FAILURE() << "no key '" << key << "'";
  return kNone;
}

const Json& Json::operator[](size_t index) const {
  static const Json kNone;
  if (index < items().size()) return items_[index];
  ADD_FAILURE() << "no item " << index << " of " << items_.size();
  return kNone;
}

}  // namespace geardb::testing
