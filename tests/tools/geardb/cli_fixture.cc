#include "tests/tools/geardb/cli_fixture.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/hash.h"
#include "tools/geardb/command.h"
#include "tools/geardb/record_words.h"

namespace geardb::testing {
namespace {

namespace fs = std::filesystem;

/// Made once, and never changed.
struct Sample {
  TempDir dir;
  SampleStore store = MakeSampleStore(dir.File("store"));
};
const Sample& TheSample() {
  static const Sample sample;
  return sample;
}

wal::Manifest ManifestOf(const std::string& directory) {
  const auto manifest = wal::ReadManifest(Env::Posix(), directory);
  EXPECT_OK(manifest);
  return manifest.ok() ? *manifest : wal::Manifest();
}

/// Calls `visit` for every record, as long as the log can be read.
template <typename Visit>
void VisitRecords(const std::string& directory, Visit visit) {
  const auto reader = wal::LogReader::Open(Env::Posix(), directory, ManifestOf(directory),
                                           {.all_types = true, .allow_damaged_prefix = true});
  ASSERT_OK(reader);
  std::map<Lsn, Lsn> areas;  // Where the pieces of a record, or of a part, begin.
  while (true) {
    const auto record = (*reader)->Next();
    ASSERT_OK(record);
    if (!*record) return;
    LoggedRecord logged{.lsn = (*record)->lsn,
                        .length = (*record)->header.length,
                        .type = (*record)->type,
                        .pieces = {}};
    areas[logged.lsn] = logged.lsn + wal::PieceAreaOffset((*record)->header.metadata_length);
    for (const wal::PieceView& piece : (*record)->pieces) {
      logged.pieces.push_back(areas[piece.lsn] + piece.offset);
    }
    visit(**record, logged);
  }
}

}  // namespace

CliRun RunCli(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = cli::RunGeardb(words, {.out = &out, .err = &err});
  return {code, out.str(), err.str()};
}

size_t LinesWith(const std::string& text, std::string_view part) {
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    count += line.find(part) != std::string::npos ? 1u : 0u;
  }
  return count;
}

void CliTest::SetUp() {
  store_ = dir_.File("store");
  Restore();
}

void CliTest::Restore() {
  fs::copy(TheSample().dir.File("store"), store_, fs::copy_options::recursive);
}

const SampleStore& CliTest::sample() const { return TheSample().store; }

CliRun CliTest::Run(const std::string& command, const std::vector<std::string>& words) {
  std::vector<std::string> all = {command, store_};
  all.insert(all.end(), words.begin(), words.end());
  const auto before = FilesOf(store_);
  CliRun run = RunCli(all);
  EXPECT_TRUE(FilesOf(store_) == before) << command << " has changed the directory";
  return run;
}

Json CliTest::RunJson(const std::string& command, const std::vector<std::string>& words, int code) {
  std::vector<std::string> all = words;
  all.push_back("--json");
  const CliRun run = Run(command, all);
  EXPECT_EQ(run.code, code) << run.err;
  auto json = Json::Parse(run.out);
  EXPECT_TRUE(json.has_value()) << "no JSON: " << run.out;
  return json ? std::move(*json) : Json();
}

std::vector<LoggedRecord> CliTest::Records() const {
  std::vector<LoggedRecord> records;
  VisitRecords(store_, [&](const wal::RecordView&, const LoggedRecord& logged) {
    records.push_back(logged);
  });
  return records;
}

LoggedRecord CliTest::RecordSaying(std::string_view words) const {
  LoggedRecord found;
  cli::LogNames names;
  bool any = false;
  VisitRecords(store_, [&](const wal::RecordView& record, const LoggedRecord& logged) {
    const std::string what = cli::DescribeRecord(record, &names);
    if (any || what.find(words) == std::string::npos) return;
    found = logged;
    any = true;
  });
  EXPECT_TRUE(any) << "no record says '" << words << "'";
  return found;
}

void CliTest::RetypeRecord(const LoggedRecord& record, uint16_t type) {
  const Place place = PlaceOf(record.lsn);
  std::fstream file(place.path, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(record.length, '\0');
  file.seekg(static_cast<std::streamoff>(place.offset));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  wal::RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.type = type;
  std::memcpy(bytes.data(), &header, sizeof(header));
  const auto all = std::as_bytes(std::span(bytes));
  header.checksum = Hash64(all.subspan(8, sizeof(header) - 8 + header.metadata_length),
                           ManifestOf(store_).Seed());
  std::memcpy(bytes.data(), &header, sizeof(header));
  file.seekp(static_cast<std::streamoff>(place.offset));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

CliTest::Place CliTest::PlaceOf(Lsn lsn) const {
  const uint64_t segment_bytes = ManifestOf(store_).segment_bytes;
  const Lsn base = lsn - lsn % segment_bytes;
  for (const auto& entry : fs::directory_iterator(store_ + "/log")) {
    if (!entry.path().filename().string().starts_with("segment-")) continue;
    wal::RecordHeader header;
    std::ifstream file(entry.path(), std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    if (header.lsn == base && header.type == static_cast<uint16_t>(wal::RecordType::kSegment)) {
      return {entry.path(), lsn % segment_bytes};
    }
  }
  ADD_FAILURE() << "no segment holds LSN " << lsn;
  return {};
}

}  // namespace geardb::testing
