// geardb log: the records of the log, in words.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/record_words.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// Rows that are aligned together; a long log is printed block by block.
constexpr uint64_t kBlockRows = 1000;

std::string EpochText(const wal::Epoch& epoch) {
  return std::to_string(epoch.term) + "." + std::to_string(epoch.open);
}

/// A record that is shown.
struct Shown {
  const wal::RecordView& record;
  bool damaged = false;  ///< One of its pieces does not fit its checksum.
};

/// Takes the records that are shown, one at a time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Add(const Shown& shown) = 0;
  /// `more`: the next record, which is not shown; or the log has ended.
  virtual void Finish(const wal::ReadReport& report, std::optional<Lsn> more) = 0;
};

class TextSink final : public LogSink {
 public:
  TextSink(std::ostream* out, LogNames names) : out_(out), names_(std::move(names)) {}

  void Add(const Shown& shown) override {
    const wal::RecordView& record = shown.record;
    std::string what = DescribeRecord(record, &names_);
    if (shown.damaged) what += "; DAMAGED: a piece does not fit its checksum";
    rows_.Add({std::to_string(record.lsn), RecordTypeWord(record.type),
               EpochText(record.header.epoch()), std::to_string(record.header.length),
               record.from_ring ? "ring" : "", what});
    if (++held_ == kBlockRows) Flush();
  }
  void Finish(const wal::ReadReport& report, std::optional<Lsn> more) override {
    Flush();
    if (more) {
      *out_ << "more: --from " << *more << '\n';
    } else if (!report.damage.ok()) {
      *out_ << "the log cannot be read further: " << Printable(report.damage.ToString()) << '\n';
    } else {
      *out_ << "the log ends at LSN " << report.end_lsn
            << (report.seal_lsn != kNoLsn ? ", sealed" : ", without a seal") << '\n';
    }
  }

 private:
  static TextTable NewTable() {
    return TextTable({"LSN", "type", "epoch", "length", "from", "what"}, 0);
  }
  void Flush() {
    if (held_ > 0) rows_.Print(out_);
    rows_ = NewTable();
    held_ = 0;
  }

  std::ostream* out_;
  LogNames names_;
  TextTable rows_ = NewTable();
  uint64_t held_ = 0;
};

class JsonSink final : public LogSink {
 public:
  JsonSink(std::ostream* out, LogNames names) : json_(out), names_(std::move(names)) {
    json_.BeginObject();
    json_.Key("records");
    json_.BeginArray();
  }

  void Add(const Shown& shown) override {
    const wal::RecordView& record = shown.record;
    json_.BeginObject();
    json_.Field("lsn", record.lsn);
    json_.Field("end", record.end);
    json_.Field("type", RecordTypeWord(record.type));
    json_.Field("term", record.header.term);
    json_.Field("open", record.header.open);
    json_.Field("length", record.header.length);
    json_.Field("synced_lsn", record.header.synced_lsn);
    json_.Field("part", record.header.part);
    json_.Field("group_lsn", record.header.group_lsn);
    json_.Field("from_ring", record.from_ring);
    json_.Field("pieces", record.pieces.size());
    json_.Field("page_damage", shown.damaged);
    const bool has_body =
        record.type == wal::RecordType::kData || record.type == wal::RecordType::kTag;
    std::vector<OperationWords> operations;
    if (has_body) {
      auto described = DescribeOperations(record.body, &names_);
      if (described.ok()) operations = std::move(described).value();
    }
    json_.Field("what",
                operations.empty() ? DescribeRecord(record, &names_) : JoinWords(operations));
    json_.Key("operations");
    json_.BeginArray();
    for (const OperationWords& words : operations) WriteOperation(words);
    json_.EndArray();
    json_.EndObject();
  }
  void Finish(const wal::ReadReport& report, std::optional<Lsn> more) override {
    json_.EndArray();
    json_.Key("next_lsn");
    if (more) {
      json_.Number(*more);
    } else {
      json_.Null();
    }
    json_.Key("log_end");
    if (more) {
      json_.Null();
    } else {
      json_.Number(report.end_lsn);
    }
    json_.Field("sealed", !more && report.seal_lsn != kNoLsn);
    json_.Field("damage", report.damage.ok() ? "" : report.damage.ToString());
    json_.EndObject();
  }

 private:
  void WriteName(std::string_view key, const std::string* name) {
    json_.Key(key);
    if (name == nullptr) {
      json_.Null();
    } else {
      json_.String(*name);
    }
  }
  void WriteOperation(const OperationWords& words) {
    json_.BeginObject();
    json_.Field("name", words.name);
    if (words.table) {
      json_.Field("table", *words.table);
      WriteName("table_name", names_.TableName(*words.table));
    }
    if (words.priority_table) {
      json_.Field("priority_table", *words.priority_table);
      WriteName("priority_table_name",
                names_.PriorityTableName(*words.table, *words.priority_table));
    }
    json_.Field("text", words.text);
    if (words.audit) WriteAudit(*words.audit);
    json_.EndObject();
  }
  void WriteAudit(const AuditWords& audit) {
    json_.Key("audit");
    json_.BeginObject();
    json_.Field("sampler", audit.sampler);
    json_.Field("draw", audit.draw);
    json_.Field("seed", audit.seed);
    json_.Field("first_draw", audit.first_draw);
    json_.Field("drawn_lsn", audit.drawn_lsn);
    json_.Field("handed_us", audit.handed_us);
    json_.Key("rows");
    json_.BeginArray();
    for (const AuditWords::Row& row : audit.rows) {
      json_.BeginObject();
      json_.Field("trajectory", row.trajectory);
      json_.Field("anchor", row.anchor);
      json_.Field("priority", row.priority);
      json_.Field("probability", row.probability);
      json_.Field("draw_row", row.draw_row);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
  }

  JsonWriter json_;
  LogNames names_;
};

std::unique_ptr<LogSink> MakeSink(const Invocation& invocation, LogNames names) {
  if (invocation.json) return std::make_unique<JsonSink>(invocation.out, std::move(names));
  return std::make_unique<TextSink>(invocation.out, std::move(names));
}

/// Parts that lie before the place where the reading began are not known, which is no damage.
bool IsDamaged(const wal::RecordView& record, Lsn reading_from) {
  return std::any_of(record.pieces.begin(), record.pieces.end(), [&](const wal::PieceView& piece) {
    return !piece.good && piece.lsn >= reading_from;
  });
}

/// Reads a log from a segment's first record on.
class LogWalk {
 public:
  static Result<LogWalk> Begin(const StoreFiles& files, const LogReading& reading, Lsn from) {
    const wal::ReadOptions options =
        from == 0 ? reading.options
                  : wal::ReadOptions{.from = from, .all_types = true, .allow_damaged_prefix = true};
    LogWalk walk;
    GEARDB_ASSIGN_OR_RETURN(
        walk.reader_, wal::LogReader::Open(Env::Posix(), files.directory, files.manifest, options));
    return walk;
  }
  /// Nothing at the end, and where it cannot be read further: see report().damage.
  std::optional<wal::RecordView> Next() {
    const auto record = reader_->Next();
    report_ = reader_->report();
    if (record.ok()) return *record;
    report_.damage = record.status();
    return std::nullopt;
  }
  const wal::ReadReport& report() const { return report_; }

 private:
  std::unique_ptr<wal::LogReader> reader_;
  wal::ReadReport report_;
};

/// What reading all of the log reports.
Result<wal::ReadReport> ReadToEnd(const StoreFiles& files, const LogReading& reading) {
  GEARDB_ASSIGN_OR_RETURN(LogWalk walk, LogWalk::Begin(files, reading, 0));
  while (walk.Next()) {
  }
  return walk.report();
}

}  // namespace

Result<int> RunLog(const Invocation& invocation) {
  GEARDB_ASSIGN_OR_RETURN(const StoreFiles files, OpenFiles(invocation));
  const Lsn from = invocation.arguments.Count("from");
  const uint64_t count = invocation.arguments.Count("count");
  // Every segment begins with a record, so that is where a reading may begin.
  const Lsn reading_from = from - from % files.manifest.segment_bytes;
  const LogReading reading = ReadingOf(files);
  GEARDB_ASSIGN_OR_RETURN(LogWalk walk, LogWalk::Begin(files, reading, reading_from));
  std::optional<wal::RecordView> record = walk.Next();
  while (record && record->lsn < from) record = walk.Next();
  wal::ReadReport report = walk.report();
  if (!record) {
    // Where nothing can be read, where does the log end?
    if (report.records == 0) {
      GEARDB_ASSIGN_OR_RETURN(report, ReadToEnd(files, reading));
    }
    if (report.damage.ok() && from > report.end_lsn) {
      return Status::InvalidArgument("--from ", from, " lies beyond the log in '", files.directory,
                                     "', which ends at LSN ", report.end_lsn);
    }
  }
  const std::unique_ptr<LogSink> sink = MakeSink(invocation, reading.names);
  std::optional<Lsn> more;
  bool damaged = false;
  for (uint64_t shown = 0; record; record = walk.Next()) {
    if (count > 0 && shown == count) {
      more = record->lsn;
      break;
    }
    const Shown one{*record, IsDamaged(*record, walk.report().start_lsn)};
    damaged |= one.damaged;
    sink->Add(one);
    ++shown;
  }
  if (walk.report().records > 0) report = walk.report();
  sink->Finish(report, more);
  if (damaged) return kExitDamage;
  if (report.damage.code() == StatusCode::kUnsupported) return kExitNewer;
  if (report.damage.code() == StatusCode::kResourceExhausted) return kExitMemory;
  return report.damage.ok() ? kExitGood : kExitDamage;
}

}  // namespace geardb::cli
