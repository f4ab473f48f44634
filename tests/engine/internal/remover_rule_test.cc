#include "engine/internal/remover_rule.h"

#include "engine/internal/table_state.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

TableSpec SpecOf(Remover remover, std::string named = "") {
  TableSpec spec = testing::StepSpec();
  spec.remover = remover;
  spec.remover_priority_table = std::move(named);
  spec.priority_tables = {testing::WindowSpec("per"), testing::WindowSpec("flat")};
  spec.priority_tables[1].selector = SelectorKind::kLifo;
  return spec;
}

TEST(RemoverRuleTest, EveryRemoverHasItsNameAndItsRule) {
  const std::vector<std::string> names = {"none",    "fifo",     "lifo",
                                          "uniform", "min_heap", "max_heap"};
  ASSERT_EQ(names.size(), static_cast<size_t>(kRemoverLast) + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto remover = static_cast<Remover>(i);
    EXPECT_EQ(RemoverName(remover), names[i]);
    const bool by_priority = i >= 4;
    EXPECT_EQ(ValidateRemover(SpecOf(remover)).ok(), !by_priority);
    EXPECT_EQ(ValidateRemover(SpecOf(remover, "per")).ok(), by_priority);
    EXPECT_OK(CheckRemoverTable(SpecOf(remover, "per")));
    EXPECT_EQ(CheckRemoverTable(SpecOf(remover, "flat")).ok(), !by_priority);
    EXPECT_EQ(CheckRemoverTable(SpecOf(remover, "gone")).ok(), !by_priority);
  }
  EXPECT_STATUS(kInvalidArgument, ValidateRemover(SpecOf(static_cast<Remover>(6))), "unknown");
  EXPECT_EQ(DescribeRemover(SpecOf(Remover::kMinHeap, "per")), "min_heap by 'per'");
  TableSpec uniform = SpecOf(Remover::kUniform);
  uniform.remover_seed = 9;
  EXPECT_EQ(DescribeRemover(uniform), "uniform with seed 9");
  EXPECT_EQ(DescribeRemover(SpecOf(Remover::kFifo)), "fifo");
}

}  // namespace
}  // namespace geardb::engine
