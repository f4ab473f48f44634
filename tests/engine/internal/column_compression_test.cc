// Compression by the schema: which codec a column gets, that every dtype comes back from the cold
// store by every codec, and what it is good for.
#include "engine/internal/column_compression.h"

#include <cstring>
#include <filesystem>
#include <random>

#include "engine/internal/stored_schema.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

constexpr Compression kAll[] = {Compression::kLz4, Compression::kNone, Compression::kZstd,
                                Compression::kXorDelta};

TEST(ColumnCompressionTest, ChecksWhereAColumnMayHaveWhich) {
  TableSpec spec{.name = "t"};
  spec.groups = {{.name = "cache", .is_volatile = true}, {.name = "late", .late = true}};
  spec.columns = {{.name = "a", .compression = Compression::kXorDelta},
                  {.name = "b", .group = "late", .compression = Compression::kZstd},
                  {.name = "c", .group = "cache"},
                  {.name = "d", .kind = ColumnKind::kPerTrajectory}};
  ASSERT_OK(ValidateTableSpec(spec));
  const auto with = [&](size_t column, int compression) {
    TableSpec changed = spec;
    changed.columns[column].compression = static_cast<Compression>(compression);
    return ValidateTableSpec(changed);
  };
  EXPECT_STATUS(kInvalidArgument, with(0, 4), "column 'a' has the unknown compression 4");
  EXPECT_STATUS(kInvalidArgument, with(2, 1),
                "column 'c' has compression none, but is in the volatile group 'cache'");
  EXPECT_STATUS(kInvalidArgument, with(3, 2),
                "column 'd' has compression zstd, but is per trajectory");
  TableSpec other = spec;
  other.columns[0].compression = Compression::kNone;
  EXPECT_STATUS(kFailedPrecondition, CheckSameSpec(spec, other), "compression xor_delta");
  EXPECT_STATUS(kFailedPrecondition, CheckSameSpec(spec, other), "compression none");
}

TEST(ColumnCompressionTest, PagesHaveTheCodecsOfTheirColumns) {
  TableSpec spec{.name = "t", .stream = true, .steps_per_page = 4};
  spec.groups = {{.name = "g"}};
  spec.columns = {{.name = "a", .compression = Compression::kZstd},
                  {.name = "x", .group = "g", .compression = Compression::kXorDelta},
                  {.name = "k", .kind = ColumnKind::kPerTrajectory},
                  {.name = "b", .compression = Compression::kNone},
                  {.name = "y", .group = "g"}};
  const engine::TableLayout layout(spec, 1);
  const auto codecs = [&](size_t group) {
    std::vector<engine::ColumnCodec> found;
    for (const auto& codec : engine::PageCodecs(layout, group)) {
      EXPECT_OK(engine::CheckColumnCodec(codec));
      found.push_back(codec.codec);
    }
    return found;
  };
  using engine::ColumnCodec;
  // The flags of a stream behind the columns of the first group.
  EXPECT_EQ(codecs(0), (std::vector{ColumnCodec::kZstd, ColumnCodec::kNone, ColumnCodec::kLz4}));
  EXPECT_EQ(codecs(1), (std::vector{ColumnCodec::kXorLz4, ColumnCodec::kLz4}));
}

TEST(ColumnCompressionTest, AStoredSchemaHasItAndAnOlderOneTheDefault) {
  TableSpec spec{.name = "t", .steps_per_page = 4};
  for (const Compression compression : kAll) {
    spec.columns.push_back({.name = CompressionName(compression), .compression = compression});
  }
  flatbuffers::FlatBufferBuilder body;
  body.Finish(engine::EncodeTableSpec(&body, spec));
  auto* stored = flatbuffers::GetMutableRoot<engine::fb::TableSpec>(body.GetBufferPointer());
  ASSERT_OK_AND_ASSIGN(const TableSpec read, engine::DecodeTableSpec(stored));
  EXPECT_EQ(read, spec);
  // A default is not stored: that is what an older one says.
  EXPECT_FALSE(
      flatbuffers::IsFieldPresent(stored->columns()->Get(0), engine::fb::Column::VT_COMPRESSION));
  const auto* last = reinterpret_cast<const flatbuffers::Table*>(stored->columns()->Get(3));
  *const_cast<uint8_t*>(last->GetAddressOf(engine::fb::Column::VT_COMPRESSION)) = 4;
  EXPECT_STATUS(kUnsupported, engine::DecodeTableSpec(stored),
                "column 'xor_delta' of table 't' has compression 4");
}

class ColdColumnsTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.ring_bytes = uint64_t{8} << 20;
    options_.segment_bytes = uint64_t{2} << 20;
    options_.log_bytes_max = uint64_t{256} << 20;
    StoreTest::SetUp();
  }
  /// All that may lose its frame is in the cold store alone.
  void MoveToCold() {
    // A segment is moved once the log has left it. What takes it there leaves nothing to move.
    TableSpec spec{.name = "passing"};
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {1 << 18}}};
    ASSERT_OK_AND_ASSIGN(const auto passing, database_->OpenOrCreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, passing->NewWriter({}));
    const std::vector<uint8_t> row(1 << 18);
    for (int i = 0; i < 10; ++i) {
      const ColumnValue value{"x", TensorView::Of<uint8_t>(row, {1 << 18})};
      ASSERT_OK_AND_ASSIGN(const Appended made, writer->Append({&value, 1}, {.end = End::kCut}));
      ASSERT_OK(passing->Remove({&made.id, 1}));
    }
    ASSERT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
    EXPECT_GT(testing::DropFrames(*database_), 0u);
  }
  uint64_t ColdBytes() const {
    uint64_t bytes = 0;
    if (!std::filesystem::exists(dir_->path() + "/cold")) return bytes;
    for (const auto& file : std::filesystem::recursive_directory_iterator(dir_->path() + "/cold")) {
      const bool stores = file.path().extension() == ".sst" || file.path().extension() == ".blob";
      if (stores) bytes += file.file_size();
    }
    return bytes;
  }
};

TEST_F(ColdColumnsTest, EveryDtypeComesBackByEveryCodec) {
  constexpr int64_t kRows = 37;
  TableSpec spec{.name = "all", .steps_per_page = 8};
  std::vector<std::vector<std::byte>> bytes;
  std::mt19937_64 random(5);
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (const Compression compression : kAll) {
      Column column{.name = std::to_string(dtype) + CompressionName(compression),
                    .dtype = static_cast<DType>(dtype),
                    .shape = {3},
                    .compression = compression};
      auto& values = bytes.emplace_back(kRows * 3 * DTypeBytes(column.dtype));
      // Rows that are alike, rows that are not, rows of zeros.
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = i / (values.size() / kRows);
        const bool noise = row % 5 == 1 || (row % 5 == 2 && i % 7 == 0);
        values[i] = std::byte(row % 5 == 4 ? 0 : noise ? random() : 1 + i % 3);
        if (column.dtype == DType::kBool) values[i] &= std::byte{1};
      }
      spec.columns.push_back(std::move(column));
    }
  }
  Create(spec);
  std::vector<ColumnValue> given;
  for (size_t c = 0; c < spec.columns.size(); ++c) {
    given.push_back({spec.columns[c].name,
                     TensorView(bytes[c].data(), spec.columns[c].dtype, Shape({kRows, 3}))});
  }
  ASSERT_OK_AND_ASSIGN(const Appended appended,
                       writer_->AppendSteps(given, {.end = End::kTerminated}));
  const auto expect_all = [&] {
    const uint64_t before = database_->Stats().cold_page_reads;
    for (size_t c = 0; c < spec.columns.size(); ++c) {
      const std::string_view name = spec.columns[c].name;
      ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(appended.id, {&name, 1}, {}));
      ASSERT_EQ(rows[0].view().shape, Shape({kRows, 3})) << name;
      EXPECT_EQ(std::memcmp(rows[0].view().bytes, bytes[c].data(), bytes[c].size()), 0) << name;
    }
    EXPECT_GT(database_->Stats().cold_page_reads, before);
  };
  MoveToCold();
  expect_all();
  Reopen();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(spec));
  testing::DropFrames(*database_);
  expect_all();
}

TEST_F(ColdColumnsTest, CodecsAreWorthWhatTheyAreChosenFor) {
  // Frames of noise, larger than LZ4 looks back, of which a few bytes change from row to row; and
  // text-like values that Zstandard's entropy coding makes smaller than LZ4 does.
  constexpr int64_t kFrame = 96 << 10;
  constexpr int64_t kRows = 16;
  std::mt19937_64 random(17);
  std::vector<uint8_t> frames(kRows * kFrame);
  std::vector<uint8_t> letters(kRows * kFrame);
  for (size_t i = 0; i < frames.size(); ++i) {
    const bool same = i >= kFrame && random() % 100 != 0;
    frames[i] = same ? frames[i - kFrame] : static_cast<uint8_t>(random());
    letters[i] = static_cast<uint8_t>(random() % 5 == 0 ? 'a' + random() % 20 : 'e');
  }
  const std::vector<uint8_t> zeros(kRows * kFrame);
  const auto stored = [&](Compression compression, const std::vector<uint8_t>& values) {
    OpenEmpty();
    TableSpec spec{.name = "frames", .steps_per_page = 4};
    spec.columns = {
        {.name = "f", .dtype = DType::kU8, .shape = {kFrame}, .compression = compression}};
    Create(spec);
    const ColumnValue value{"f", TensorView::Of<uint8_t>(values, {kRows, kFrame})};
    const auto appended = writer_->AppendSteps({&value, 1}, {.end = End::kTerminated});
    EXPECT_OK(appended);
    const uint64_t before = ColdBytes();
    MoveToCold();
    const std::string_view name = "f";
    const auto rows = table_->Read(appended->id, {&name, 1}, {});
    EXPECT_OK(rows);
    EXPECT_EQ(std::memcmp((*rows)[0].view().bytes, values.data(), values.size()), 0);
    return ColdBytes() - before;
  };
  const uint64_t all = kRows * kFrame;
  const uint64_t none = stored(Compression::kNone, frames);
  EXPECT_GE(none, all);
  EXPECT_GE(stored(Compression::kLz4, frames), all);
  // The first row of each page is as it is; of the others a hundredth changes.
  EXPECT_LT(stored(Compression::kXorDelta, frames), all / 2);
  EXPECT_LT(stored(Compression::kZstd, letters), stored(Compression::kLz4, letters) * 3 / 4);
  EXPECT_GE(stored(Compression::kNone, zeros), all);
  for (const Compression compression :
       {Compression::kLz4, Compression::kZstd, Compression::kXorDelta}) {
    EXPECT_LT(stored(compression, zeros), all / 10) << CompressionName(compression);
  }
}

}  // namespace
}  // namespace geardb
