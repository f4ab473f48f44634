// geardb repair: makes a database open again, and says what that loses.

#include <algorithm>
#include <string>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/repair_plan.h"
#include "tools/geardb/repair_steps.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// As many ids are printed for people; JSON has all.
constexpr size_t kIdsShown = 20;
constexpr size_t kLinesShown = 40;

std::string IdsText(const std::vector<TrajectoryId>& ids) {
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < ids.size() && shown < kIdsShown; ++shown) {
    size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ids[i]);
    if (last > i) text += " to " + std::to_string(ids[last]);
    i = last + 1;
    if (i < ids.size() && shown + 1 == kIdsShown) text += ", …";
  }
  return text;
}

void PrintTableLoss(const TableLoss& loss, std::ostream* out) {
  const std::string table = "table " + Printable(loss.name);
  if (loss.whole) *out << "LOST: " << table << " with all it held\n";
  if (!loss.trajectories.empty()) {
    *out << "LOST: " << table << ": " << Counted(loss.trajectories.size(), "trajectory") << ": "
         << IdsText(loss.trajectories) << '\n';
  }
  for (const auto& [first, last] : loss.unnamed) {
    *out << "LOST: " << table << ": trajectories from " << first << " on"
         << (last == kNoEnd ? "" : " up to " + std::to_string(last))
         << ", as far as there were any that no record names which can be read\n";
  }
  for (const CutShort& cut : loss.cut_short) {
    *out << "LOST: " << table << ": rows of trajectory " << cut.id << " from row " << cut.rows_end
         << " on, if there were any; it is open there\n";
  }
}

void PrintLines(const char* before, const std::vector<std::string>& lines, std::ostream* out) {
  for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
    *out << before << Printable(lines[i]) << '\n';
  }
  if (lines.size() <= kLinesShown) return;
  *out << before << Grouped(lines.size() - kLinesShown) << " more, which --json shows\n";
}

void PrintPlan(const RepairPlan& plan, bool dry_run, std::ostream* out) {
  for (const std::string& note : plan.notes) *out << "note: " << Printable(note) << '\n';
  if (plan.nothing_wrong()) {
    *out << "nothing to repair\n";
    return;
  }
  PrintLines("DAMAGE: ", plan.damage, out);
  if (!plan.impossible.empty()) {
    *out << "CANNOT BE REPAIRED: " << Printable(plan.impossible) << '\n';
    return;
  }
  PrintLines(dry_run ? "would do: " : "done: ", plan.actions, out);
  if (plan.log) {
    *out << "LOST: the log from LSN " << Grouped(plan.log->from) << " to " << Grouped(plan.log->to)
         << ", with " << Counted(plan.log->readable_records, "record") << " that can be read\n";
  }
  for (const TableLoss& loss : plan.tables) PrintTableLoss(loss, out);
  for (const std::string& line : plan.losses) *out << "LOST: " << Printable(line) << '\n';
  if (!plan.log && plan.tables.empty() && plan.losses.empty()) *out << "nothing is lost\n";
}

void WriteStrings(std::string_view key, const std::vector<std::string>& lines, JsonWriter* json) {
  json->Key(key);
  json->BeginArray();
  for (const std::string& line : lines) json->String(line);
  json->EndArray();
}

void WriteTableLoss(const TableLoss& loss, JsonWriter* json) {
  json->BeginObject();
  json->Field("id", loss.id);
  json->Field("name", loss.name);
  json->Field("whole", loss.whole);
  json->Key("trajectories");
  json->BeginArray();
  for (const TrajectoryId id : loss.trajectories) json->Number(id);
  json->EndArray();
  json->Key("unnamed");
  json->BeginArray();
  for (const auto& [first, last] : loss.unnamed) {
    json->BeginObject();
    json->Field("first", first);
    json->Key("last");
    last == kNoEnd ? json->Null() : json->Number(last);
    json->EndObject();
  }
  json->EndArray();
  json->Key("cut_short");
  json->BeginArray();
  for (const CutShort& cut : loss.cut_short) {
    json->BeginObject();
    json->Field("id", cut.id);
    json->Field("rows_end", cut.rows_end);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void WritePlan(const RepairPlan& plan, bool repaired, const std::string& kept_in,
               std::ostream* out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Field("directory", plan.directory);
  json.Field("nothing_wrong", plan.nothing_wrong());
  json.Field("repaired", repaired);
  json.Field("impossible", plan.impossible);
  WriteStrings("damage", plan.damage, &json);
  WriteStrings("actions", plan.actions, &json);
  json.Key("log");
  if (plan.log) {
    json.BeginObject();
    json.Field("from", plan.log->from);
    json.Field("to", plan.log->to);
    json.Field("readable_records", plan.log->readable_records);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("tables");
  json.BeginArray();
  for (const TableLoss& loss : plan.tables) WriteTableLoss(loss, &json);
  json.EndArray();
  WriteStrings("losses", plan.losses, &json);
  WriteStrings("notes", plan.notes, &json);
  json.Field("kept_in", kept_in);
  json.EndObject();
}

/// FailedPrecondition where somebody has the database open.
Result<std::unique_ptr<FileLock>> LockStore(const std::string& directory, LockMode mode) {
  const std::string path = JoinPath(directory, wal::kLockName);
  GEARDB_ASSIGN_OR_RETURN(const bool exists, Env::Posix()->Exists(path));
  if (mode == LockMode::kShared && !exists) return std::unique_ptr<FileLock>();
  return Env::Posix()->Lock(path, mode);
}

}  // namespace

Result<int> RunRepair(const Invocation& invocation) {
  const bool dry_run = invocation.arguments.Has("dry_run");
  const RepairOptions options{.directory = invocation.arguments.Text("directory"),
                              .memory_bytes = invocation.arguments.Count("memory")};
  GEARDB_ASSIGN_OR_RETURN(auto lock, LockStore(options.directory, LockMode::kShared));
  GEARDB_ASSIGN_OR_RETURN(RepairPlan plan, PlanRepair(options));
  std::string kept_in;
  const bool repairs = !dry_run && !plan.nothing_wrong() && plan.impossible.empty();
  if (repairs) {
    // Nobody else reads what is about to change; it is looked at again, since somebody may have
    // been faster.
    lock.reset();
    GEARDB_ASSIGN_OR_RETURN(lock, LockStore(options.directory, LockMode::kExclusive));
    GEARDB_ASSIGN_OR_RETURN(RepairPlan now, PlanRepair(options));
    // The file of the lock is there by now.
    if (now.nothing_wrong() && !plan.make_lock) {
      plan = std::move(now);
    } else if (!now.nothing_wrong()) {
      if (!now.impossible.empty()) return Status::Corruption(now.impossible);
      GEARDB_ASSIGN_OR_RETURN(const Repaired done, TakeRepairSteps(now, options, &lock));
      kept_in = done.kept_in;
      if (!plan.make_lock) plan = std::move(now);
    }
  }
  if (invocation.json) {
    WritePlan(plan, repairs, kept_in, invocation.out);
  } else {
    PrintPlan(plan, !repairs, invocation.out);
    if (!kept_in.empty()) {
      *invocation.out << "what left is in " << Printable(kept_in) << '\n';
    }
  }
  if (!plan.impossible.empty()) return kExitLost;
  return plan.nothing_wrong() || repairs ? kExitGood : kExitDamage;
}

}  // namespace geardb::cli
