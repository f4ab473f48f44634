#include "base/concatenate.h"

#include <gtest/gtest.h>

#include <locale>

#include "base/status.h"

namespace geardb {
namespace {

TEST(ConcatenateTest, PutsItsPartsOneAfterTheOther) {
  EXPECT_EQ(Concatenate("table '", std::string("replay"), "' has ", 3, " of ", 2.5),
            "table 'replay' has 3 of 2.5");
}

TEST(ConcatenateTest, NumbersDoNotFollowTheGlobalLocale) {
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  const std::string text = Concatenate(1234567, " ", 0.5);
  const Status status = Status::NotFound("no trajectory ", 1234567);
  std::locale::global(before);
  EXPECT_EQ(text, "1234567 0.5");
  EXPECT_EQ(status.message(), "no trajectory 1234567");
}

}  // namespace
}  // namespace geardb
