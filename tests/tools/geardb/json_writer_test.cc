#include "tools/geardb/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "tests/tools/geardb/json.h"

namespace geardb::cli {
namespace {

using testing::Json;

/// What was in quotes, as another reader understands it.
std::string ReadBack(const std::string& text) {
  const auto json = Json::Parse(JsonString(text));
  EXPECT_TRUE(json.has_value()) << JsonString(text);
  return json ? json->text() : "";
}

template <typename T>
std::string Written(T value) {
  std::ostringstream out;
  JsonWriter(&out).Number(value);
  return out.str();
}

TEST(JsonWriterTest, NestsWithCommasAndColons) {
  std::ostringstream out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Field("a", 1);
  json.Key("b");
  json.BeginArray();
  json.Number(-2);
  json.BeginArray();
  json.EndArray();
  json.BeginObject();
  json.EndObject();
  json.Null();
  json.EndArray();
  json.Field("c", "text");
  json.Field("d", true);
  json.EndObject();
  EXPECT_EQ(out.str(), "{\"a\":1,\"b\":[-2,[],{},null],\"c\":\"text\",\"d\":true}\n");
}

TEST(JsonWriterTest, EveryByteReadsBack) {
  for (int c = 0; c < 0x80; ++c) {
    const std::string text = "a" + std::string(1, static_cast<char>(c)) + "b";
    EXPECT_EQ(ReadBack(text), text) << c;
  }
  EXPECT_EQ(ReadBack("quote\" back\\slash"), "quote\" back\\slash");
  EXPECT_EQ(JsonString("\n\t\x01\x7F"), "\"\\n\\t\\u0001\\u007f\"");
}

TEST(JsonWriterTest, Utf8StaysAndOtherBytesAreReplaced) {
  for (const char* text : {"ä", "…", "𝛂", "\xF4\x8F\xBF\xBF"}) EXPECT_EQ(ReadBack(text), text);
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(ReadBack("a\xFFz"), "a" + replaced + "z");
  EXPECT_EQ(ReadBack("a\xC3"), "a" + replaced);                         // Cut short.
  EXPECT_EQ(ReadBack("\xC0\xAF"), replaced + replaced);                 // Overlong.
  EXPECT_EQ(ReadBack("\xED\xA0\x80"), replaced + replaced + replaced);  // A surrogate.
  EXPECT_EQ(ReadBack("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);
}

TEST(JsonWriterTest, NumbersReadBackExactly) {
  EXPECT_EQ(Written(uint64_t{18446744073709551615u}), "18446744073709551615");
  EXPECT_EQ(Written(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(Written(0.1), "0.1");
  EXPECT_EQ(Written(0.1f), "0.1");
  EXPECT_EQ(std::stod(Written(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(std::stof(Written(1.0f / 3)), 1.0f / 3);
  EXPECT_TRUE(Json::Parse(Written(1e300)).has_value());
  EXPECT_TRUE(Json::Parse(Written(-1e-300)).has_value());
}

TEST(JsonWriterTest, WhatIsNoNumberIsNull) {
  EXPECT_EQ(Written(std::nan("")), "\"NaN\"");
  EXPECT_EQ(Written(-std::nanf("")), "\"NaN\"");
  EXPECT_EQ(Written(std::numeric_limits<double>::infinity()), "\"Infinity\"");
  EXPECT_EQ(Written(-std::numeric_limits<float>::infinity()), "\"-Infinity\"");
}

}  // namespace
}  // namespace geardb::cli
