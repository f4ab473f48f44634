// geardb log: the records of the log, in words.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

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

/// Takes the records that are shown, one at a time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Add(const wal::RecordView& record) = 0;
  /// `more`: the next record, which is not shown; or the log has ended.
  virtual void Finish(const wal::ReadReport& report, std::optional<Lsn> more) = 0;
};

class TextSink final : public LogSink {
 public:
  explicit TextSink(std::ostream* out) : out_(out) {}

  void Add(const wal::RecordView& record) override {
    std::string what = DescribeRecord(record);
    if (record.page_damage) what += "; DAMAGED: a piece does not fit its checksum";
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
      *out_ << "the log cannot be read further: " << report.damage << '\n';
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
  TextTable rows_ = NewTable();
  uint64_t held_ = 0;
};

class JsonSink final : public LogSink {
 public:
  explicit JsonSink(std::ostream* out) : json_(out) {
    json_.BeginObject();
    json_.Key("records");
    json_.BeginArray();
  }

  void Add(const wal::RecordView& record) override {
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
    json_.Field("page_damage", record.page_damage);
    json_.Field("what", DescribeRecord(record));
    json_.Key("operations");
    WriteOperations(record);
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
  void WriteOperations(const wal::RecordView& record) {
    json_.BeginArray();
    const bool has_body =
        record.type == wal::RecordType::kData || record.type == wal::RecordType::kTag;
    if (const auto operations = DescribeOperations(record.body); has_body && operations.ok()) {
      for (const OperationWords& words : *operations) {
        json_.BeginObject();
        json_.Field("name", words.name);
        if (words.table) json_.Field("table", *words.table);
        if (words.priority_table) json_.Field("priority_table", *words.priority_table);
        json_.Field("text", words.text);
        json_.EndObject();
      }
    }
    json_.EndArray();
  }

  JsonWriter json_;
};

std::unique_ptr<LogSink> MakeSink(const Invocation& invocation) {
  if (invocation.json) return std::make_unique<JsonSink>(invocation.out);
  return std::make_unique<TextSink>(invocation.out);
}

}  // namespace

Result<int> RunLog(const Invocation& invocation) {
  GEARDB_ASSIGN_OR_RETURN(const StoreFiles files, OpenFiles(invocation));
  const Lsn from = invocation.arguments.Count("from");
  const uint64_t count = invocation.arguments.Count("count");
  // Every segment begins with a record, so that is where a reading may begin.
  const wal::ReadOptions options{.from = from - from % files.manifest.segment_bytes,
                                 .all_types = true,
                                 .allow_damaged_prefix = true};
  GEARDB_ASSIGN_OR_RETURN(const auto reader, wal::LogReader::Open(Env::Posix(), files.directory,
                                                                  files.manifest, options));
  const std::unique_ptr<LogSink> sink = MakeSink(invocation);
  std::optional<Lsn> more;
  uint64_t shown = 0;
  while (!more) {
    GEARDB_ASSIGN_OR_RETURN(const auto record, reader->Next());
    if (!record) break;
    if (record->lsn < from) continue;
    if (count > 0 && shown == count) {
      more = record->lsn;
    } else {
      sink->Add(*record);
      ++shown;
    }
  }
  sink->Finish(reader->report(), more);
  return reader->report().damage.ok() ? kExitGood : kExitDamage;
}

}  // namespace geardb::cli
