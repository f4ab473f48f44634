#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "tests/testing/matchers.h"

namespace geardb {
namespace {

TEST(StatusTest, DefaultIsOkAndTwoPointersWide) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_EQ(sizeof(Status), 2 * sizeof(void*));
}

TEST(StatusTest, FactoriesConcatenateNamesAndNumbers) {
  const Status status = Status::NotFound("table '", "obs", "' has no row ", 17);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "table 'obs' has no row 17");
  EXPECT_EQ(status.ToString(), "NotFound: table 'obs' has no row 17");
}

TEST(StatusTest, EachFactoryHasItsCodeAndName) {
  const Status all[] = {
      Status::InvalidArgument("x"),   Status::NotFound("x"),
      Status::AlreadyExists("x"),     Status::FailedPrecondition("x"),
      Status::ResourceExhausted("x"), Status::DeadlineExceeded("x"),
      Status::Cancelled("x"),         Status::Corruption("x"),
      Status::IoError("x"),           Status::Unsupported("x"),
      Status::Internal("x"),
  };
  std::set<std::string> names;
  for (size_t i = 0; i < std::size(all); ++i) {
    EXPECT_EQ(static_cast<size_t>(all[i].code()), i + 1) << "the codes are frozen";
    names.insert(std::string(StatusCodeName(all[i].code())));
  }
  EXPECT_EQ(names.size(), std::size(all));
  EXPECT_FALSE(names.contains("Unknown"));
  EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(200)), "Unknown");
}

TEST(StatusTest, ContextGoesInFrontAndKeepsTheCode) {
  const Status status = Status::Corruption("bad checksum").WithContext("segment 3");
  EXPECT_STATUS(kCorruption, status, "segment 3: bad checksum");
  EXPECT_OK(Status::Ok().WithContext("segment 3"));
}

TEST(StatusTest, CopiesShareTheMessage) {
  const Status status = Status::IoError("disk");
  const Status copy = status;
  EXPECT_EQ(copy.message().data(), status.message().data());
}

TEST(StatusTest, PrintsItself) {
  std::ostringstream out;
  out << Status::Cancelled("closed");
  EXPECT_EQ(out.str(), "Cancelled: closed");
}

TEST(StatusTest, OkWithAMessageIsABug) {
  EXPECT_DEATH(static_cast<void>(Status(StatusCode::kOk, "fine")), "GEARDB_CHECK");
}

TEST(ResultTest, HoldsAValueOrAStatus) {
  Result<std::string> good = std::string("x");
  ASSERT_OK(good);
  EXPECT_EQ(*good, "x");
  EXPECT_EQ(good->size(), 1u);

  const Result<std::string> bad = Status::NotFound("no x");
  EXPECT_FALSE(bad.ok());
  EXPECT_STATUS(kNotFound, bad, "no x");
}

TEST(ResultTest, GivesUpAMoveOnlyValue) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(ResultTest, ValueOfAFailurePrintsTheErrorAndAborts) {
  Result<std::string> bad = Status::NotFound("no x");
  const std::string said = "value of a Result was asked for, but it is an error: NotFound: no x";
  EXPECT_DEATH(static_cast<void>(bad.value()), said);
  EXPECT_DEATH(static_cast<void>(std::as_const(bad).value()), said);
  EXPECT_DEATH(static_cast<void>(std::move(bad).value()), said);
  EXPECT_DEATH(static_cast<void>(*bad), said);
  EXPECT_DEATH(static_cast<void>(bad->size()), said);
}

TEST(ResultTest, OkWithoutAValueIsABug) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Status::Ok())), "GEARDB_CHECK");
}

Result<int> Half(int value) {
  if (value % 2 != 0) return Status::InvalidArgument(value, " is odd");
  return value / 2;
}
Result<int> Quarter(int value) {
  GEARDB_ASSIGN_OR_RETURN(const int half, Half(value));
  GEARDB_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
Status CheckEven(int value) {
  GEARDB_RETURN_IF_ERROR(Half(value).status());
  return Status::Ok();
}

TEST(StatusMacroTest, FirstErrorLeavesTheFunction) {
  ASSERT_OK_AND_ASSIGN(const int quarter, Quarter(12));
  EXPECT_EQ(quarter, 3);
  EXPECT_STATUS(kInvalidArgument, Quarter(7), "7 is odd");
  EXPECT_STATUS(kInvalidArgument, Quarter(6), "3 is odd");
  EXPECT_OK(CheckEven(2));
  EXPECT_STATUS(kInvalidArgument, CheckEven(3), "3 is odd");
}

}  // namespace
}  // namespace geardb
