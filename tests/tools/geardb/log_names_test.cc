// Names of tables whose records have left the log: the image of the index has them.

#include "tools/geardb/log_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/operations_generated.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/json.h"
#include "tests/tools/geardb/large_store_fixture.h"

namespace geardb {
namespace {

namespace fb = engine::fb;

class LogNamesTest : public testing::LargeStoreTest {
 protected:
  /// Learns of a priority table, as an operation says it.
  static void Follow(cli::LogNames* names, uint32_t number, const char* name) {
    flatbuffers::FlatBufferBuilder builder;
    const auto spec = fb::CreatePriorityTableSpecDirect(builder, name);
    const auto create = fb::CreateCreatePriorityTable(builder, spec);
    builder.Finish(
        fb::CreateOperation(builder, 3, number, fb::Change::CreatePriorityTable, create.Union()));
    names->Follow(*flatbuffers::GetRoot<fb::Operation>(builder.GetBufferPointer()));
  }
};

// They were numbers, however often the log says them.
TEST_F(LogNamesTest, AreThoseOfTheImageWhereTheLogBeginsLater) {
  const testing::CliRun run = testing::RunCli({"log", store(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = testing::Json::Parse(run.out);
  ASSERT_TRUE(json);
  size_t named = 0;
  for (const testing::Json& record : (*json)["records"].items()) {
    for (const testing::Json& operation : record["operations"].items()) {
      EXPECT_NE(operation["name"].text(), "create_table") << "the log has all records";
      if (operation["table"].is_null()) continue;
      EXPECT_EQ(operation["table_name"].text(), "frames");
      ++named;
    }
  }
  EXPECT_GT(named, 0u);
}

TEST_F(LogNamesTest, OfPriorityTablesGoByTheirNumber) {
  cli::LogNames names;
  Follow(&names, 1, "late");
  EXPECT_EQ(names.PriorityTableText(3, 1), "'late'");
  EXPECT_EQ(names.PriorityTableText(3, 0), "priority table 0");
  EXPECT_EQ(names.TableText(3), "table 3");
  flatbuffers::FlatBufferBuilder builder;
  const std::vector priority_tables = {
      fb::CreatePriorityTableHead(builder, fb::CreatePriorityTableSpecDirect(builder, "first"))};
  const auto spec = fb::CreateTableSpecDirect(builder, "steps");
  const auto list = builder.CreateVector(priority_tables);
  fb::TableHeadBuilder head(builder);
  head.add_table_id(3);
  head.add_spec(spec);
  head.add_priority_tables(list);
  builder.Finish(head.Finish());
  names.Follow(*flatbuffers::GetRoot<fb::TableHead>(builder.GetBufferPointer()));
  EXPECT_EQ(names.TableText(3), "'steps'");
  EXPECT_EQ(names.PriorityTableText(3, 0), "'first'");
  EXPECT_EQ(names.PriorityTableText(3, 1), "'late'") << "it came behind the image";
}

}  // namespace
}  // namespace geardb
