#include "tools/geardb/text_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace geardb::cli {
namespace {

std::string Printed(const TextTable& table) {
  std::ostringstream out;
  table.Print(&out);
  return out.str();
}

TEST(TextTableTest, NumbersStandAtTheRightAndWordsAtTheLeft) {
  TextTable table({"name", "count", "value", "mixed"});
  table.Add({"a", "1", "-0.5", "7"});
  table.Add({"longer", "12,345", "1e+30", "2^7"});
  EXPECT_EQ(Printed(table),
            "  name     count  value  mixed\n"
            "  a            1   -0.5  7\n"
            "  longer  12,345  1e+30  2^7\n");
}

TEST(TextTableTest, WidthsAreOfCharactersNotOfBytes) {
  TextTable table({"rows", "x"}, 0);
  table.Add({"0…6", "a"});
  table.Add({"0123", "α"});
  table.Add({"", "b"});
  EXPECT_EQ(Printed(table),
            "rows  x\n"
            "0…6   a\n"
            "0123  α\n"
            "      b\n");
}

TEST(TextTableTest, MissingCellsAreEmptyAndNoLineEndsInSpaces) {
  TextTable table({"a", "b", "c"}, 0);
  EXPECT_TRUE(table.empty());
  table.Add({"…"});
  table.Add({"1", "", "3"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(Printed(table), "a  b  c\n…\n1     3\n");
}

TEST(TextTableTest, NumbersReadWell) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(18446744073709551615u), "18,446,744,073,709,551,615");
  EXPECT_EQ(Counted(0, "step"), "0 steps");
  EXPECT_EQ(Counted(1, "trajectory"), "1 trajectory");
  EXPECT_EQ(Counted(1234, "trajectory"), "1,234 trajectories");
  EXPECT_EQ(NumberText(0.25), "0.25");
  EXPECT_EQ(NumberText(1.0 / 3, 3), "0.333");
}

TEST(TextTableTest, BytesAndTimesHaveUnits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(uint64_t{1} << 20), "1.0 MiB");
  EXPECT_EQ(BytesText((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(BytesText(18446744073709551615u), "16.0 EiB");
  EXPECT_EQ(SecondsText(0.0123), "12.3 ms");
  EXPECT_EQ(SecondsText(61.25), "61.2 s");
  EXPECT_EQ(TimeText(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(TimeText(1'700'000'000'999'999), "2023-11-14 22:13:20 UTC");
}

TEST(TextTableTest, NothingThatATerminalObeysIsPrinted) {
  EXPECT_EQ(Printable("plain ä … α"), "plain ä … α");
  EXPECT_EQ(Printable("\x1B[31mred\n\x7F"), "?[31mred??");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "?31m");  // CSI as one character.
  EXPECT_EQ(Printable("a\xFF\xC3"), "a??");
}

}  // namespace
}  // namespace geardb::cli
