// The real log and the model of its protocol, side by side. Random histories run through the real
// writer on the fault file system, and each step through the model's writer: LSNs, what is
// published, drained and synced, and what enters headers must be equal. After every crash or failed
// sync the model's reader looks at the bytes on the disk, with an eye of its own for what a record
// is (only FORMAT.md's offsets and what was once written); the real open must end where it ends and
// serve what it finds.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "tests/testing/random_programs.h"
#include "tests/wal/log_fixture.h"
#include "tests/wal/protocol_model.h"

namespace geardb::wal {
namespace {

using model::Reading;
using model::Verdict;
using testing::CrashKind;
using testing::FaultEnv;
using testing::Random;

constexpr uint64_t kCell = 64;

template <typename T>
T Load(std::span<const std::byte> bytes, uint64_t offset) {
  T value = {};
  if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// A record as the test knows it: its place in the model, and its bytes once they were complete.
struct Written {
  std::vector<std::byte> bytes;
  uint64_t checked_bytes = 0;  // Header and metadata.
  uint64_t number = 0;
};

// The bytes on the disk as the model sees them.
class RealDisk final : public model::DiskView {
 public:
  RealDisk(const FaultEnv& env, const std::vector<std::string>& names,
           const std::vector<model::Record>& records, const std::vector<Written>& written,
           const model::Geometry& geometry)
      : records_(records), written_(written), geometry_(geometry) {
    for (const std::string& name : names) {
      auto bytes = env.Contents("db/log/" + name);
      if (name == "ring") {
        ring_ = std::move(bytes);
      } else {
        bytes.resize(static_cast<size_t>(geometry.segment) * kCell);
        segments_.push_back(std::move(bytes));
      }
    }
    for (size_t i = 0; i < records.size(); ++i) {
      by_place_[{records[i].lsn, records[i].epoch}].push_back(static_cast<int>(i));
    }
  }

  int files() const override { return static_cast<int>(segments_.size()); }
  int SegmentHeader(int file, int offset) const override {
    return Header(segments_[static_cast<size_t>(file)], offset, geometry_.segment);
  }
  int RingHeader(int offset) const override { return Header(ring_, offset, geometry_.ring); }
  bool SegmentPiecesGood(int file, int record) const override {
    return PiecesGood(segments_[static_cast<size_t>(file)], record);
  }
  bool RingPiecesGood(int record) const override { return PiecesGood(ring_, record); }

 private:
  int Header(const std::vector<std::byte>& bytes, int offset, int modulus) const {
    const uint64_t at = static_cast<uint64_t>(offset) * kCell;
    const auto lsn = static_cast<int>(Load<uint64_t>(bytes, at + 8) / kCell);
    const auto epoch = static_cast<int>(Load<uint32_t>(bytes, at + 28));
    const auto it = by_place_.find({lsn, epoch});
    if (lsn % modulus != offset || it == by_place_.end()) return -1;
    for (int record : it->second) {
      const Written& wrote = written_[static_cast<size_t>(record)];
      if (!wrote.bytes.empty() && Same(bytes, at, wrote, 0, wrote.checked_bytes)) return record;
    }
    return -1;
  }

  bool PiecesGood(const std::vector<std::byte>& bytes, int record) const {
    const model::Record& r = records_[static_cast<size_t>(record)];
    const Written& wrote = written_[static_cast<size_t>(record)];
    // Only data has a piece. What lies between the metadata and it, and what fills up the other
    // records, means nothing.
    if (r.type != model::Type::kData) return true;
    const uint64_t at = static_cast<uint64_t>(r.lsn) * kCell % bytes.size();
    return Same(bytes, at, wrote, AlignUp(wrote.checked_bytes, 16), wrote.bytes.size());
  }

  // Bytes [from, to) of the record, as they lie in a file that goes round.
  static bool Same(const std::vector<std::byte>& bytes, uint64_t at, const Written& wrote,
                   uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      if (bytes[(at + i) % bytes.size()] != wrote.bytes[i]) return false;
    }
    return true;
  }

  const std::vector<model::Record>& records_;
  const std::vector<Written>& written_;
  const model::Geometry geometry_;
  std::vector<std::vector<std::byte>> segments_;
  std::vector<std::byte> ring_;
  std::map<std::pair<int, int>, std::vector<int>> by_place_;
};

struct ConformanceCounts {
  uint64_t opens = 0, refused = 0, split = 0, ring_tails = 0, damaged = 0, page_damage = 0;
  uint64_t failed = 0;  // Writers, by a sync.
};

class Conformance {
 public:
  Conformance(uint64_t seed, bool damage, ConformanceCounts* counts)
      : random_(seed), env_(seed * 31 + 7), damage_(damage), counts_(counts) {
    options_.log = SmallLog();
    options_.log.shared_map = true;
    geometry_ = {.sector = 8, .block = 64, .segment = 1024, .ring = 512, .segment_record = 2};
    writer_model_.geometry = geometry_;
    mean_cells_ = 2 + random_.Below(100);
    crash_every_ = 10 + random_.Below(60);
  }

  void Run(int steps) {
    ASSERT_OK(CreateLog(&env_, "db", options_.log));
    for (int i = 0; i < steps && !over_ && !::testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      if (writer() == nullptr) {
        OpenBoth();
      } else {
        Step();
      }
    }
    seen_ = SeenLog();
  }

 private:
  LogWriter* writer() { return seen_.log.writer.get(); }
  static int Cells(Lsn lsn) {
    EXPECT_EQ(lsn % kCell, 0u);
    return static_cast<int>(lsn / kCell);
  }

  void Step() {
    if (random_.OneIn(4 * crash_every_)) env_.FailSyncAfter(1 + random_.Below(4));
    switch (random_.Below(9)) {
      case 0:
      case 1:
      case 2:
        Reserve();
        break;
      case 3:
      case 4:
        Fill();
        break;
      case 5:
        Drain();
        break;
      case 6:
        if (writer()->SyncOnce().ok()) TakeSynced();
        break;
      case 7:
        env_.WriteBackSome();
        break;
      case 8:
        if (flying_.empty() && random_.OneIn(3)) Seal();
        break;
    }
    if (env_.crashed() || !writer()->failure().ok()) return Crash();
    CompareWriters();
    if (random_.OneIn(crash_every_)) {
      env_.SetCrashAfter(1 + random_.Below(4));
    } else if (random_.OneIn(crash_every_)) {
      Crash();
    }
  }

  void CompareWriters() {
    ASSERT_EQ(Cells(writer()->end()), writer_model_.next);
    ASSERT_EQ(Cells(writer()->published()), writer_model_.published);
    ASSERT_EQ(Cells(writer()->drained()), writer_model_.drained);
    ASSERT_EQ(Cells(writer()->synced()), writer_model_.synced);
  }

  // All that is published, or its whole blocks: then the drain often stops inside a record.
  void Drain() {
    if (random_.OneIn(2)) {
      if (!writer()->DrainOnce().ok()) return;
      if (writer_model_.drained != writer_model_.published) CheckZeros(writer_model_.published);
      writer_model_.drained = writer_model_.published;
    } else {
      if (!writer()->DrainBlocksOnce().ok()) return;
      const int whole = geometry_.BlockFloor(writer_model_.published);
      writer_model_.drained = std::max(writer_model_.drained, whole);
    }
    const int records = writer_model_.RecordFloor(writer_model_.drained);
    counts_->split += records < writer_model_.drained ? 1 : 0;
  }

  // Rules 5 and e: in the block that was drained last the segment holds zeros from `end` on. No
  // reader depends on them (protocol_model.h says why).
  void CheckZeros(int end) {
    const uint64_t at = static_cast<uint64_t>(end) * kCell;
    const uint64_t base = AlignDown(at, options_.log.segment_bytes);
    std::vector<std::byte> segment;
    ASSERT_OK_AND_ASSIGN(const auto names, env_.List("db/log"));
    for (const std::string& name : names) {
      const auto bytes = env_.Contents("db/log/" + name);
      const bool claims =
          name != "ring" && bytes.size() > at - base && Load<uint64_t>(bytes, 8) == base;
      if (claims && Load<uint32_t>(bytes, 28) >= Load<uint32_t>(segment, 28)) segment = bytes;
    }
    ASSERT_GE(segment.size(), AlignUp(at - base, kBlockBytes));
    for (uint64_t i = at - base; i < AlignUp(at - base, kBlockBytes); ++i) {
      ASSERT_EQ(segment[i], std::byte{0}) << "at LSN " << base + i << ", drained to " << at;
    }
  }

  // The real log remembers not every record's end, but of those that are published by themselves
  // (not of pads and segment records) one in every block at least: it may sync less than the model.
  void TakeSynced() {
    const int most = writer_model_.RecordFloor(writer_model_.drained);
    const int synced = Cells(writer()->synced());
    ASSERT_EQ(synced, writer_model_.RecordFloor(synced)) << "rule 6: synced is a record's end";
    ASSERT_LE(synced, most) << "rule 6: synced is not drained";
    ASSERT_GE(synced, writer_model_.synced);
    if (writer_model_.drained == writer_model_.published) {
      ASSERT_EQ(synced, most);
    }
    const auto known = std::upper_bound(ends_.begin(), ends_.end(), writer_model_.drained);
    if (known != ends_.begin()) {
      ASSERT_LT(*std::prev(known) - synced, geometry_.block);
    }
    writer_model_.synced = synced;
  }

  // A record in the model; its bytes follow when they are complete.
  void Note(int lsn, int length, model::Type type, uint64_t number) {
    records_.push_back({.lsn = lsn,
                        .length = length,
                        .epoch = static_cast<int>(seen_.log.manifest.epoch.open),
                        .synced = writer_model_.synced,
                        .type = type});
    written_.push_back({.bytes = {}, .checked_bytes = 0, .number = number});
    if (type == model::Type::kData || type == model::Type::kSeal) ends_.push_back(lsn + length);
    writer_model_.ends.push_back(lsn + length);
    writer_model_.next = lsn + length;
  }

  // Takes the bytes of the record from the ring, where they are complete.
  void Capture(size_t index) {
    const model::Record& record = records_[index];
    const auto ring = env_.Contents("db/log/ring");
    const bool pad = record.type == model::Type::kPad;
    const uint64_t bytes = pad ? kCell : static_cast<uint64_t>(record.length) * kCell;
    Written& wrote = written_[index];
    for (uint64_t i = 0; i < bytes; ++i) {
      wrote.bytes.push_back(ring[(static_cast<uint64_t>(record.lsn) * kCell + i) % ring.size()]);
    }
    wrote.checked_bytes = 64 + Load<uint32_t>(wrote.bytes, 36);
    EXPECT_EQ(Load<uint64_t>(wrote.bytes, 8), static_cast<uint64_t>(record.lsn) * kCell);
    EXPECT_EQ(Load<uint64_t>(wrote.bytes, 16), static_cast<uint64_t>(record.synced) * kCell);
    EXPECT_EQ(Load<uint32_t>(wrote.bytes, 28), static_cast<uint32_t>(record.epoch));
    EXPECT_EQ(Load<uint32_t>(wrote.bytes, 32), static_cast<uint64_t>(record.length) * kCell);
  }

  void Reserve() {
    if (flying_.size() >= 4) return;
    const uint64_t cells = 2 + random_.Below(2 * mean_cells_);
    // Header, prefix, entry and body take 104 bytes, the piece begins at 112 and ends the record.
    const TestRecord record{.number = ++last_number_, .piece_bytes = {cells * kCell - 112}};
    const RecordSize size = SizeOf(record);
    ASSERT_EQ(size.total(), cells * kCell);
    if (size.total() > writer()->record_bytes_max()) return;
    const auto place = writer_model_.PlaceFor(static_cast<int>(cells));
    (void)writer()->PrepareSpares().ok();
    if (env_.crashed()) return;
    if (!writer()->HasRoom(size, Urgency::kAppend)) {
      ++counts_->refused;
      return;
    }
    ASSERT_TRUE(writer_model_.Admits(place)) << "rule 3: the ring still needs those bytes";
    const Reservation reservation = ReserveRecord(writer(), record);
    ASSERT_EQ(Cells(reservation.lsn), place.lsn);
    ASSERT_EQ(Cells(reservation.end), place.end);
    const size_t first = records_.size();
    if (place.pad > 0) Note(writer_model_.next, place.pad, model::Type::kPad, 0);
    if (place.new_segment) Note(writer_model_.next, 2, model::Type::kSegment, 0);
    for (size_t i = first; i < records_.size(); ++i) Capture(i);
    Note(place.lsn, static_cast<int>(cells), model::Type::kData, record.number);
    flying_.push_back({.record = record, .reservation = reservation, .index = records_.size() - 1});
  }

  void Fill() {
    if (flying_.empty()) return;
    const size_t pick = random_.Below(flying_.size());
    Flying& flying = flying_[pick];
    if (flying.complete) return;
    FillRecord(writer(), flying.reservation, flying.record);
    Capture(flying.index);
    writer()->Publish(flying.reservation, nullptr);
    flying.complete = true;
    while (!flying_.empty() && flying_.front().complete) {
      writer_model_.published = records_[flying_.front().index].end();
      flying_.pop_front();
    }
  }

  void Seal() {
    const Lsn before = writer()->end();
    const Status status = writer()->SealOnce();
    if (writer()->end() == before) return;
    Note(writer_model_.next, 1, model::Type::kSeal, 0);
    Capture(records_.size() - 1);
    writer_model_.published = writer_model_.next;
    if (status.ok()) writer_model_.drained = writer_model_.synced = writer_model_.next;
  }

  void Crash() {
    counts_->failed += writer() && !env_.crashed() && !writer()->failure().ok() ? 1u : 0u;
    env_.Die();
    seen_ = SeenLog();
    flying_.clear();
    env_.Crash(random_.OneIn(2) ? CrashKind::kProcess : CrashKind::kPowerLoss);
    env_.ClearFailures();
  }

  // The manifest, by FORMAT.md's offsets.
  model::Manifest ReadManifestBytes() const {
    const auto bytes = env_.Contents("db/MANIFEST");
    const auto cut = Load<uint64_t>(bytes, 56);
    return {.epoch = static_cast<int>(Load<uint32_t>(bytes, 44)),
            .start = Cells(Load<uint64_t>(bytes, 48)),
            .cut = cut == UINT64_MAX ? model::kNoCut : Cells(cut)};
  }

  Reading ModelReads() {
    auto names = env_.List("db/log");
    EXPECT_OK(names);
    const RealDisk disk(env_, *names, records_, written_, geometry_);
    return model::ReadLog({.disk = &disk,
                           .records = &records_,
                           .manifest = ReadManifestBytes(),
                           .geometry = geometry_,
                           .rules = {},
                           .from = 0});
  }

  void OpenBoth() {
    if (damage_ && !records_.empty() && random_.OneIn(6)) return OpenDamaged();
    const Reading expected = ModelReads();
    const model::Manifest before = ReadManifestBytes();
    ASSERT_EQ(expected.verdict, Verdict::kGood);
    if (random_.OneIn(4)) env_.SetCrashAfter(1 + random_.Below(16));
    if (random_.OneIn(8)) env_.FailSyncAfter(1 + random_.Below(6));
    std::vector<SeenRecord> visited;
    auto seen = OpenAndSee(&env_, "db", options_, &visited);
    CompareRecords(expected, visited);
    if (env_.crashed() || seen.status().code() == StatusCode::kIoError) return Crash();
    ASSERT_OK(seen);
    env_.SetCrashAfter(UINT64_MAX / 2);
    ++counts_->opens;
    counts_->ring_tails += expected.ring_records > 0 ? 1 : 0;
    const ReadReport& report = seen->log.report.read;
    ASSERT_EQ(Cells(report.end_lsn), expected.end);
    ASSERT_EQ(Cells(report.segments_end_lsn), expected.segments_end);
    ASSERT_EQ(report.ring_records, expected.ring_records);
    const model::Manifest after = ReadManifestBytes();
    ASSERT_EQ(after.epoch, before.epoch + 1);
    ASSERT_EQ(after.start, expected.end);
    ASSERT_EQ(after.cut, model::kNoCut);
    seen_ = std::move(seen).value();
    if (expected.ring_records > 0) CheckZeros(expected.end);
    writer_model_.ends.clear();
    for (int record : expected.chain) {
      writer_model_.ends.push_back(records_[static_cast<size_t>(record)].end());
    }
    writer_model_.Begin(expected.end);
    ends_.clear();
    CompareWriters();
  }

  void CompareRecords(const Reading& expected, const std::vector<SeenRecord>& visited) {
    std::vector<uint64_t> numbers;
    for (int record : expected.chain) {
      if (records_[static_cast<size_t>(record)].type == model::Type::kData) {
        numbers.push_back(written_[static_cast<size_t>(record)].number);
      }
    }
    // An open that dies while it reads has seen a part.
    ASSERT_LE(visited.size(), numbers.size());
    if (!env_.crashed()) {
      ASSERT_EQ(visited.size(), numbers.size());
    }
    for (size_t i = 0; i < visited.size(); ++i) {
      ASSERT_EQ(visited[i].number, numbers[i]);
      ASSERT_TRUE(visited[i].content_right);
    }
  }

  // Hurts a byte of some segment: both readers call it the same.
  void OpenDamaged() {
    over_ = true;
    auto names = env_.List("db/log");
    ASSERT_OK(names);
    const std::string& name = (*names)[random_.Below(names->size())];
    if (name == "ring") return;
    const uint64_t bytes = env_.Contents("db/log/" + name).size();
    if (bytes == 0) return;
    const uint64_t where = random_.Below(std::min<uint64_t>(bytes, 40000));
    SCOPED_TRACE("flip in " + name + " at " + std::to_string(where));
    env_.FlipBit("db/log/" + name, where, 3);
    const Reading expected = ModelReads();
    OpenOptions reading = options_;
    reading.read_only = true;
    std::vector<SeenRecord> visited;
    const auto seen = OpenAndSee(&env_, "db", reading, &visited);
    switch (expected.verdict) {
      case Verdict::kGood:
        ASSERT_OK(seen);
        ASSERT_EQ(Cells(seen->log.report.read.end_lsn), expected.end);
        break;
      case Verdict::kCorruption:
        ++counts_->damaged;
        ASSERT_EQ(seen.status().code(), StatusCode::kCorruption) << seen.status();
        break;
      case Verdict::kPageDamage:
        // The model stops here; the real log goes on behind the page.
        ++counts_->page_damage;
        ASSERT_OK(seen);
        ASSERT_EQ(seen->log.report.read.damaged_pieces, 1u);
        ASSERT_GT(Cells(seen->log.report.read.end_lsn), expected.end);
        break;
    }
  }

  struct Flying {
    TestRecord record;
    Reservation reservation;
    size_t index = 0;
    bool complete = false;
  };

  Random random_;
  FaultEnv env_;
  const bool damage_;
  OpenOptions options_;
  model::Geometry geometry_;
  uint64_t mean_cells_ = 0, crash_every_ = 0;
  SeenLog seen_;
  model::WriterState writer_model_;
  std::vector<int> ends_;  // Of data and seals since the open.
  std::vector<model::Record> records_;
  std::vector<Written> written_;
  std::deque<Flying> flying_;
  uint64_t last_number_ = 0;
  bool over_ = false;
  ConformanceCounts* counts_;
};

class ConformanceTest : public ::testing::TestWithParam<bool> {};

TEST_P(ConformanceTest, TheRealLogDoesWhatTheModelDoes) {
  const bool damage = GetParam();
  ConformanceCounts all;
  const uint64_t whole = damage ? 1200 : 150;
  const uint64_t seeds = testing::ShareOf(whole);
  for (uint64_t seed = 1; seed <= seeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Conformance history(seed, damage, &all);
    history.Run(250);
  }
  EXPECT_GT(all.opens, 0u);
  EXPECT_GT(all.refused, 0u);
  EXPECT_GT(all.split, 0u);
  EXPECT_GT(all.ring_tails, 0u);
  EXPECT_GT(all.failed, 0u);
  if (damage && seeds == whole) {  // This is rare.
    EXPECT_GT(all.damaged, 0u);
    EXPECT_GT(all.page_damage, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Damage, ConformanceTest, ::testing::Bool(), [](const auto& damage) {
  return damage.param ? std::string("with") : std::string("without");
});

}  // namespace
}  // namespace geardb::wal
