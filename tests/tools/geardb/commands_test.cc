// How geardb is called: help, and words that it does not take.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using testing::RunCli;
using ::testing::Test;

class CommandsTest : public testing::CliTest {
 protected:
  void ExpectRefused(const std::vector<std::string>& words, const std::string& part) {
    const CliRun run = RunCli(words);
    EXPECT_EQ(run.code, cli::kExitUsage) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  }
};

TEST_F(CommandsTest, HelpNamesEveryCommandAndTheExitCodes) {
  const CliRun run = RunCli({"--help"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  for (const char* part : {"info", "head", "stats", "log", "verify", "Exits 0", "1 when damage",
                           "2 when", "3 when the database needs more than --memory"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part;
  }
}

TEST_F(CommandsTest, HelpOfACommandNamesItsOptions) {
  for (const cli::Command& command : cli::Commands()) {
    const CliRun run = RunCli({std::string(command.name), "--help"});
    EXPECT_EQ(run.code, 0);
    for (const cli::Argument& argument : command.arguments) {
      EXPECT_NE(run.out.find(argument.names), std::string::npos) << argument.names;
      EXPECT_NE(run.out.find(argument.help), std::string::npos) << argument.help;
    }
    EXPECT_NE(run.out.find("--json"), std::string::npos);
    EXPECT_NE(run.out.find("Exits 0"), std::string::npos);
  }
}

TEST_F(CommandsTest, WithoutACommandThoseThereAreAreNamed) {
  ExpectRefused({}, "info, head, stats, log, verify");
  ExpectRefused({"frobnicate", store()}, "'frobnicate'; there are info, head, stats, log, verify");
}

TEST_F(CommandsTest, WrongWordsAreNamed) {
  ExpectRefused({"info"}, "DIR is required");
  ExpectRefused({"info", store(), "--bogus"}, "--bogus");
  ExpectRefused({"info", store(), "extra"}, "extra");
  ExpectRefused({"head", store(), "arcade", "extra"}, "extra");
  ExpectRefused({"log", store(), "-n"}, "--count");
  ExpectRefused({"log", store(), "-n", "1", "--count", "2"}, "--count");
}

TEST_F(CommandsTest, NumbersAreDecimalAndWhole) {
  for (const char* text : {"ten", "-5", "0x10", "1.5", "1e3", "", "99999999999999999999", "5 "}) {
    ExpectRefused({"log", store(), "-n", text}, "'" + std::string(text) + "' is no number");
  }
  EXPECT_EQ(Run("log", {"-n", "18446744073709551615"}).code, 0);
}

TEST_F(CommandsTest, MemoryHasUnits) {
  EXPECT_EQ(Run("info", {"--memory", "16MiB"}).code, 0);
  EXPECT_EQ(Run("info", {"--memory", "1g"}).code, 0);
  ExpectRefused({"info", store(), "--memory", "lots"}, "--memory");
  ExpectRefused({"info", store(), "--memory", "1000"}, "--memory is 1000 B; expected");
}

TEST_F(CommandsTest, ATableThatIsNotNamedIsAskedFor) {
  ExpectRefused({"head", store()},
                "which table? The database in '" + store() + "' has arcade, walkers");
  testing::MakeEmptyStore(Scratch("empty"));
  ExpectRefused({"head", Scratch("empty")}, "has none");
}

TEST_F(CommandsTest, FailuresAreJsonWhereJsonWasAskedFor) {
  const CliRun run = Run("head", {"nope", "--json"});
  EXPECT_EQ(run.code, cli::kExitDamage);
  const auto json = Json::Parse(run.out);
  ASSERT_TRUE(json.has_value()) << run.out;
  EXPECT_EQ(json->keys(), std::vector<std::string>{"error"});
  const Json& error = (*json)["error"];
  EXPECT_EQ(error.keys(), (std::vector<std::string>{"code", "name", "message"}));
  EXPECT_EQ(error["code"].integer(), static_cast<int64_t>(StatusCode::kNotFound));
  EXPECT_EQ(error["name"].text(), "NotFound");
  EXPECT_NE(error["message"].text().find("no table 'nope'; it has arcade, walkers"),
            std::string::npos);
  EXPECT_NE(run.err.find("geardb head: NotFound: "), std::string::npos);
}

}  // namespace
}  // namespace geardb
