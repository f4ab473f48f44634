// The table of figures: all families, in the order in which they are shown.
#include <algorithm>

#include "tools/bench/row.h"

namespace geardb::bench {

std::vector<Row> AllRows(const Settings& settings) {
  using Family = std::vector<Row> (*)(const Settings&);
  constexpr Family kFamilies[] = {
      GatherRows,        SelectorRows,       DrawRows,        AppendMemoryRows, AppendLogRows,
      AppendStepRows,    AppendSyncRows,     RecoveryRows,    BytesRows,        TagRows,
      AgainstReverbRows, SelectorGrowthRows, CleanerRows,     FirstBatchRows,   AmplificationRows,
      MemoryRows,        AppendCleanerRows,  AppendStallRows, ColdDrawRows};
  std::vector<Row> rows;
  for (const Family family : kFamilies) {
    std::vector<Row> more = family(settings);
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace geardb::bench
