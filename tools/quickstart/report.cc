#include "tools/quickstart/report.h"

#include <cstdint>
#include <string_view>

#include "tools/quickstart/progress.h"

namespace geardb::quickstart {
namespace {

constexpr size_t kNameWidth = 22;

void Row(std::string_view name, const std::string& value, std::string* out) {
  *out += "  " + std::string(name) + std::string(kNameWidth - name.size(), ' ') + value + "\n";
}

/// Calls per second of time spent in them.
std::string Rate(const LatencySnapshot& times) {
  if (times.sum_ns == 0) return "-";
  const double seconds = static_cast<double>(times.sum_ns) * 1e-9;
  return Grouped(static_cast<uint64_t>(static_cast<double>(times.count) / seconds));
}

std::string Microseconds(uint64_t ns) { return Decimal(static_cast<double>(ns) * 1e-3, 1) + " us"; }

std::string PerStep(uint64_t bytes, uint64_t steps) {
  return Decimal(static_cast<double>(bytes) / static_cast<double>(steps), 1);
}

std::string MiB(uint64_t bytes) { return Decimal(static_cast<double>(bytes) / (1 << 20), 1); }

}  // namespace

std::string ReportText(Replay* replay, double total_seconds) {
  const TableStats table = replay->table().Stats();
  const DatabaseStats database = replay->database().Stats();
  const RecoveryReport& recovery = replay->database().recovery();
  const LatencySnapshot appends = replay->append_times().Snapshot();
  const LatencySnapshot draws = replay->draw_times().Snapshot();
  const LatencySnapshot updates = replay->update_times().Snapshot();
  const uint64_t store_ns = appends.sum_ns + draws.sum_ns + updates.sum_ns;

  std::string text;
  Row("steps stored", Grouped(table.steps) + " in " + Grouped(table.trajectories) + " episodes",
      &text);
  if (table.steps > 0) {
    Row("bytes per step",
        PerStep(table.row_bytes, table.steps) + " of rows, " +
            PerStep(table.frame_bytes, table.steps) + " in memory",
        &text);
  }
  Row("log", MiB(database.log_end) + " MiB: rows, draws, priorities, tags", &text);
  Row("appends/s", Rate(appends) + " (one step each, acknowledged)", &text);
  Row("batches/s", Rate(draws) + " (drawn, gathered, logged)", &text);
  Row("priority updates/s", Rate(updates) + " (a batch each)", &text);
  Row("a draw takes", "p50 " + Microseconds(draws.p50_ns) + ", p99 " + Microseconds(draws.p99_ns),
      &text);
  Row("recovery took",
      Decimal(recovery.seconds * 1e3, 1) + " ms (" + Grouped(recovery.records) + " records, " +
          MiB(recovery.bytes) + " MiB)",
      &text);
  Row("whole run",
      Decimal(total_seconds, 1) + " s, of the second half " +
          Decimal(static_cast<double>(store_ns) * 1e-9, 1) + " s in the store",
      &text);
  return text;
}

}  // namespace geardb::quickstart
