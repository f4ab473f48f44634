// EXPECT_OK and its relatives: assertions on Status and Result<T> that print the whole status.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace geardb::testing {

inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

inline ::testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.ToString();
}

/// Success when `status` has `code` and `part` occurs in its message.
inline ::testing::AssertionResult HasStatus(StatusCode code, const Status& status,
                                            std::string_view part) {
  if (status.code() == code && status.message().find(part) != std::string_view::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "expected " << StatusCodeName(code) << " with '" << part
                                       << "', found " << status.ToString();
}

}  // namespace geardb::testing

/// The Status or Result is OK. The `ASSERT_` form leaves the function.
#define EXPECT_OK(expression) \
  EXPECT_TRUE(::geardb::testing::IsOk(::geardb::testing::StatusOf(expression))) << #expression
#define ASSERT_OK(expression) \
  ASSERT_TRUE(::geardb::testing::IsOk(::geardb::testing::StatusOf(expression))) << #expression

/// The Status or Result has this code (`kNotFound`, without its enum) and the text in its message:
/// `EXPECT_STATUS(kNotFound, database->OpenTable("x"), "table 'x'");`
#define EXPECT_STATUS(code, expression, part)                                              \
  EXPECT_TRUE(::geardb::testing::HasStatus(::geardb::StatusCode::code,                     \
                                           ::geardb::testing::StatusOf(expression), part)) \
      << #expression
#define ASSERT_STATUS(code, expression, part)                                              \
  ASSERT_TRUE(::geardb::testing::HasStatus(::geardb::StatusCode::code,                     \
                                           ::geardb::testing::StatusOf(expression), part)) \
      << #expression

/// `ASSERT_OK_AND_ASSIGN(auto file, env->Open(path));`
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(GEARDB_JOIN(geardb_result_, __LINE__), declaration, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(result, declaration, expression)     \
  auto result = (expression);                                           \
  ASSERT_TRUE(::geardb::testing::IsOk(result.status())) << #expression; \
  declaration = std::move(result).value()
