// Records as a hostile log might hold them, fed to Recovery one by one. The table "steps" (number
// 1) has StepSpec's columns: pages of 4 rows, 16 bytes a row, two per-trajectory columns of 4
// bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "tests/fuzz/record_feed.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {

using Builder = flatbuffers::FlatBufferBuilder;

inline constexpr TableId kSteps = 1;
inline constexpr uint64_t kRowBytes = 16;

/// The parts of an append, to be changed by a test before they are fed.
struct AppendParts {
  std::vector<fb::Removed> removed = {};
  std::vector<fb::Trimmed> trimmed = {};
  std::vector<fb::Opened> opened = {};
  std::vector<fb::Rows> rows = {};
  std::vector<fb::NewPage> pages = {};
  std::vector<fb::PieceRows> pieces = {};
  std::vector<fb::ColumnSet> sets = {};
  std::vector<uint8_t> values = {};
  std::vector<float> priorities = {};  ///< Of priority table `priority_table`, one per rows.
  uint32_t priority_table = 0;
  bool damaged = false;
  std::vector<uint64_t> piece_bytes = {};  ///< Of the record; default: as the pieces say.
  std::span<const std::byte> piece = {};   ///< The only one; default: zeros, as the pieces say.
  uint32_t column_changes = 0;
  uint32_t by_hand = 0;
};

class RecoveryFixture : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(feed_.ready()); }

  /// Feeds the one operation that was built with `builder_`.
  template <typename Table>
  Status Feed(fb::Change kind, flatbuffers::Offset<Table> change, TableId table = kSteps,
              uint32_t priority_table = 0) {
    return FeedOperations(
        {fb::CreateOperation(builder_, table, priority_table, kind, change.Union())});
  }
  Status FeedOperations(const std::vector<flatbuffers::Offset<fb::Operation>>& operations,
                        std::span<const wal::PieceView> pieces = {}) {
    builder_.Finish(fb::CreateBody(builder_, builder_.CreateVector(operations)));
    std::vector<uint64_t> words((builder_.GetSize() + 7) / 8);
    std::memcpy(words.data(), builder_.GetBufferPointer(), builder_.GetSize());
    const Status status =
        feed_.Feed(std::as_bytes(std::span(words)).first(builder_.GetSize()), pieces);
    builder_.Clear();
    return status;
  }

  Status CreateTable(const TableSpec& spec, TableId id = kSteps, uint64_t ids_end = 1000) {
    const auto stored = EncodeTableSpec(&builder_, spec);
    return Feed(fb::Change::CreateTable, fb::CreateCreateTable(builder_, stored, ids_end, 1000),
                id);
  }
  Status CreatePriorityTable(const PriorityTableSpec& spec, uint32_t number = 0,
                             float initial = 1) {
    const auto stored = EncodePriorityTableSpec(&builder_, spec);
    return Feed(fb::Change::CreatePriorityTable,
                fb::CreateCreatePriorityTable(builder_, stored, initial), kSteps, number);
  }
  /// The table "steps" with a priority table over its windows.
  void CreateSteps(bool final_row = false, bool stream = false) {
    TableSpec spec = testing::StepSpec(final_row);
    spec.stream = stream;
    ASSERT_OK(CreateTable(spec));
    ASSERT_OK(CreatePriorityTable(testing::WindowSpec("per")));
  }

  /// A trajectory of up to 4 rows that begins in `slot`, in the page with the same number. Its
  /// generation is 10 more than its id, that of the page 20 more.
  static AppendParts Begins(uint64_t id, uint32_t slot, uint32_t rows) {
    const auto generation = static_cast<uint32_t>(id) + 10;
    const auto page = static_cast<uint32_t>(id) + 20;
    return {.opened = {fb::Opened(id, 0, slot, generation, 1, 0)},
            .rows = {fb::Rows(slot, generation, 0, rows, 0, false, false)},
            .pages = {fb::NewPage(slot, page)},
            .pieces = {fb::PieceRows(kNoLsn, slot, page, 0, static_cast<uint16_t>(rows), 0)}};
  }

  Status Feed(const AppendParts& parts) {
    const auto removed = builder_.CreateVectorOfStructs(parts.removed);
    const auto trimmed = builder_.CreateVectorOfStructs(parts.trimmed);
    const auto opened = builder_.CreateVectorOfStructs(parts.opened);
    const auto rows = builder_.CreateVectorOfStructs(parts.rows);
    const auto pages = builder_.CreateVectorOfStructs(parts.pages);
    const auto pieces = builder_.CreateVectorOfStructs(parts.pieces);
    const auto sets = builder_.CreateVectorOfStructs(parts.sets);
    const auto values = builder_.CreateVector(parts.values);
    std::vector<flatbuffers::Offset<fb::NewItems>> entries;
    if (!parts.priorities.empty()) {
      entries.push_back(fb::CreateNewItems(builder_, parts.priority_table, 1,
                                           builder_.CreateVector(parts.priorities), true));
    }
    const auto items = builder_.CreateVector(entries);
    const auto append = fb::CreateAppend(builder_, removed, trimmed, opened, rows, pages, pieces,
                                         sets, values, items, parts.column_changes, parts.by_hand);
    const auto operation =
        fb::CreateOperation(builder_, kSteps, 0, fb::Change::Append, append.Union());
    if (!parts.piece.empty()) {
      const wal::PieceView piece{.lsn = 1, .good = true, .bytes = parts.piece};
      return FeedOperations({operation}, {&piece, 1});
    }
    std::vector<uint64_t> sizes = parts.piece_bytes;
    if (sizes.empty()) {
      for (const fb::PieceRows& piece : parts.pieces) sizes.push_back(piece.count() * row_bytes_);
    }
    return FeedOperations({operation}, Pieces(sizes, parts.damaged));
  }

  /// Pieces of zeros that lie one behind the other.
  std::vector<wal::PieceView> Pieces(const std::vector<uint64_t>& sizes, bool damaged = false) {
    std::vector<wal::PieceView> pieces;
    uint32_t offset = 0;
    for (const uint64_t size : sizes) {
      zeros_.resize(std::max<size_t>(zeros_.size(), 4096));
      pieces.push_back(
          {.lsn = 1, .offset = offset, .good = !damaged, .bytes = std::span(zeros_).first(size)});
      offset += static_cast<uint32_t>(size);
    }
    return pieces;
  }

  /// Corruption that says `why` and names the record, which has changed nothing.
  void ExpectRefused(const AppendParts& parts, std::string_view why) {
    const uint64_t before = RowsNow();
    const Status status = Feed(parts);
    EXPECT_STATUS(kCorruption, status, why);
    EXPECT_STATUS(kCorruption, status, "the record at LSN ");
    EXPECT_EQ(RowsNow(), before);
  }
  TableState& steps() { return *feed_.core().TableById(kSteps)->state; }
  uint64_t RowsNow() {
    MutexLock lock(&steps().mutex);
    return steps().rows();
  }

  fuzzing::RecordFeed feed_;
  Builder builder_;
  uint64_t row_bytes_ = kRowBytes;  ///< One more in a stream table: the flags.

 private:
  std::vector<std::byte> zeros_;
};

}  // namespace geardb::engine
