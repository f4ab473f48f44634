#include "engine/internal/table_image_load.h"

#include <bit>
#include <cmath>
#include <functional>

#include "tests/engine/internal/image_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

constexpr TableId kSteps = 1;
constexpr TableId kStream = 2;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kArrays = kHeaderBytes + 4;  // Behind the count.

/// Where a chunk of trajectories has what: FORMAT.md, "Images".
enum class Field {
  kSlot,
  kGeneration,
  kId,
  kFirst,
  kEnd,
  kCreated,
  kSampled,
  kSet,
  kLast,
  kSession,
  kLane,
  kState,
  kHow,
  kFlags
};
constexpr size_t kFieldBytes[] = {4, 4, 8, 8, 8, 8, 8, 8, 8, 4, 4, 1, 1, 1};

class TableImageLoadTest : public ImageFixture {
 protected:
  void SetUp() override {
    ImageFixture::SetUp();
    Fill();
    image_ = Take();
  }

  template <typename T>
  static T Get(const std::string& bytes, size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
  template <typename T>
  static void Put(std::string* bytes, size_t at, T value) {
    ASSERT_LE(at + sizeof(T), bytes->size());
    std::memcpy(bytes->data() + at, &value, sizeof(T));
  }
  static size_t PlaceOf(const std::string& bytes, Field field, size_t i) {
    const size_t count = Get<uint32_t>(bytes, kHeaderBytes);
    size_t at = kArrays;
    for (size_t f = 0; f < static_cast<size_t>(field); ++f) at += kFieldBytes[f] * count;
    return at + i * kFieldBytes[static_cast<size_t>(field)];
  }

  /// Loads the image with one chunk changed: it is refused, naming the chunk and saying `why`.
  void ExpectRefused(const ImageChunk& chunk, const char* why,
                     const std::function<void(std::string*)>& edit) {
    ImageChunks changed = image_;
    edit(&changed.chunks.at(chunk));
    EXPECT_STATUS(kCorruption, LoadInto(&core_, changed, chunk.table).status(), why);
    EXPECT_STATUS(kCorruption, LoadInto(&core_, changed, chunk.table).status(),
                  "table " + std::to_string(chunk.table) + " in the index image");
  }
  template <typename T>
  void ExpectFieldRefused(Field field, size_t i, T value, const char* why, TableId table = kSteps) {
    SCOPED_TRACE(why);
    ExpectRefused({table, ImageKind::kTrajectories, 0}, why,
                  [&](std::string* bytes) { Put<T>(bytes, PlaceOf(*bytes, field, i), value); });
  }

  ImageChunks image_;
  ImageCore core_{uint64_t{64} << 20, uint64_t{256} << 20};
};

TEST_F(TableImageLoadTest, TheStoreIsTakenAsItIs) {
  for (const TableId table : {kSteps, kStream}) {
    ASSERT_OK_AND_ASSIGN(LoadedTable loaded, LoadInto(&core_, image_, table));
    UseLoaded(&core_, &loaded, table);
  }
}

/// Every byte in turn: what is not refused is a table that can be used.
TEST_F(TableImageLoadTest, BytesThatAreChangedAreRefusedOrMakeAnotherTable) {
  const uint64_t share = testing::ShareOf(100);
  uint64_t refused = 0;
  uint64_t taken = 0;
  uint64_t at = 0;
  for (const auto& [chunk, bytes] : image_.chunks) {
    if (chunk.table == 0) continue;
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int change : {1 << (i % 8), 0x80, 0xFF}) {
        if (at++ % 100 >= share) continue;
        ImageChunks changed = image_;
        std::string& byte = changed.chunks.at(chunk);
        byte[i] = static_cast<char>(byte[i] ^ change);
        auto loaded = LoadInto(&core_, changed, chunk.table);
        if (loaded.ok()) {
          ++taken;
          UseLoaded(&core_, &*loaded, chunk.table);
        } else {
          ++refused;
          const StatusCode code = loaded.status().code();
          EXPECT_TRUE(code == StatusCode::kCorruption || code == StatusCode::kUnsupported ||
                      code == StatusCode::kResourceExhausted)
              << loaded.status().ToString();
          if (code == StatusCode::kCorruption) {
            EXPECT_STATUS(kCorruption, loaded.status(), "in the index image");
          }
        }
        ASSERT_FALSE(HasFailure()) << NameOf(chunk) << " byte " << i << " change " << change;
      }
    }
  }
  // Values of columns, times, seeds, names: not everything can be wrong.
  EXPECT_GT(refused, taken);
  EXPECT_GT(taken, 0u);
}

TEST_F(TableImageLoadTest, ChunksThatEndTooEarlyOrTooLateAreRefused) {
  for (const auto& [chunk, bytes] : image_.chunks) {
    if (chunk.table == 0 || chunk.kind == ImageKind::kTable) continue;
    for (size_t i = 0; i < bytes.size(); ++i) {
      ImageChunks changed = image_;
      changed.chunks.at(chunk).resize(i);
      EXPECT_STATUS(kCorruption, LoadInto(&core_, changed, chunk.table).status(), NameOf(chunk));
    }
    ImageChunks changed = image_;
    changed.chunks.at(chunk).push_back('\0');
    EXPECT_STATUS(kCorruption, LoadInto(&core_, changed, chunk.table).status(), NameOf(chunk));
  }
}

TEST_F(TableImageLoadTest, TrajectoriesThatCannotBeAreRefused) {
  const std::string& bytes = image_.chunks.at({kSteps, ImageKind::kTrajectories, 0});
  const size_t count = Get<uint32_t>(bytes, kHeaderBytes);
  ASSERT_EQ(count, 6u);
  // By slot; the one in slot 3 was removed, and another took its place.
  const auto id_of = [&](size_t i) { return Get<uint64_t>(bytes, PlaceOf(bytes, Field::kId, i)); };
  ExpectFieldRefused<uint32_t>(Field::kSlot, 1, 0, "slot 0 is out of place");
  ExpectFieldRefused<uint32_t>(Field::kSlot, 5, 1 << 20, "slot 1048576 is out of place");
  ExpectFieldRefused<uint32_t>(Field::kGeneration, 1, 0, "it has no generation");
  ExpectFieldRefused<uint64_t>(Field::kId, 1, id_of(0), "its id is another's");
  ExpectFieldRefused<uint64_t>(Field::kId, 1, 0, "its id is 0");
  ExpectFieldRefused<uint64_t>(Field::kId, 1, 8, "its id was never handed out");
  ExpectFieldRefused<uint64_t>(Field::kId, 1, UINT64_MAX, "its id is");
  ExpectFieldRefused<uint64_t>(Field::kFirst, 0, 6, "it has rows 6 to 6");
  ExpectFieldRefused<uint64_t>(Field::kFirst, 0, UINT64_MAX, "it has rows");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, 0, "it has rows 0 to 0");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, UINT64_MAX, "it has rows 0 to");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, uint64_t{1} << 34, "it has rows 0 to");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, (uint64_t{1} << 34) - 4, "the trajectories' rows");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, 9, "the trajectories' rows take");
  ExpectFieldRefused<uint64_t>(Field::kEnd, 0, 5, "it has 2 of 1 rows");
  ExpectFieldRefused<uint64_t>(Field::kSet, 0, 4, "it sets columns that the table does not have");
  ExpectFieldRefused<uint64_t>(Field::kLast, 0, lsn_, "its last record is");
  ExpectFieldRefused<uint8_t>(Field::kState, 0, 0, "its state is 0");
  ExpectFieldRefused<uint8_t>(Field::kState, 0, 4, "its state is 4");
  ExpectFieldRefused<uint8_t>(Field::kState, 0, 1, "open, its end is 1");
  ExpectFieldRefused<uint8_t>(Field::kHow, 0, 0, "closed, its end is 0");
  ExpectFieldRefused<uint8_t>(Field::kHow, 0, 4, "closed, its end is 4");
  ExpectFieldRefused<uint8_t>(Field::kFlags, 0, 0, "its flags are 0");
  ExpectFieldRefused<uint8_t>(Field::kFlags, 0, 3, "its flags are 3");
  ExpectRefused({kSteps, ImageKind::kTrajectories, 0}, "a group is filled beyond its end",
                [&](std::string* chunk) { Put<uint64_t>(chunk, chunk->size() - 48, 7); });
  ExpectRefused({kSteps, ImageKind::kTrajectories, 0}, "end too early",
                [&](std::string* chunk) { Put<uint32_t>(chunk, kHeaderBytes, UINT32_MAX); });
}

TEST_F(TableImageLoadTest, PagesThatCannotBeAreRefused) {
  const ImageChunk chunk{kSteps, ImageKind::kPages, 0};
  const std::string& bytes = image_.chunks.at(chunk);
  const size_t count = Get<uint32_t>(bytes, kHeaderBytes);
  ASSERT_GE(count, 9u);
  const auto refused = [&]<typename T>(size_t at, T value, const char* why) {
    SCOPED_TRACE(why);
    ExpectRefused(chunk, why, [&](std::string* changed) { Put<T>(changed, at, value); });
  };
  const size_t lpns = kArrays;
  const size_t slots = lpns + 4 * count;
  const size_t generations = slots + 4 * count;
  const size_t numbers = generations + 4 * count;
  const size_t group0 = numbers + 4 * count;
  refused(lpns + 4, uint32_t{0}, "LPN 0 is out of place");
  refused(lpns + 4 * (count - 1), uint32_t{1} << 20, "LPN 1048576 is out of place");
  refused(slots, uint32_t{60}, "in slot 60, which is free");
  refused(slots, UINT32_MAX, "which is free");
  refused(slots, uint32_t{4}, "which has another or none");
  refused(generations, uint32_t{0}, "of generation 0");
  refused(numbers, uint32_t{1}, "is page 1 of trajectory 1, which has another or none");
  refused(numbers, UINT32_MAX, "which has another or none");
  refused(group0, lsn_, "in group 0: it has 1 pieces, from LSN");
  refused(group0, kNoLsn, "in group 0: it has 1 pieces");
  refused(group0 + 8 * count, lsn_, "in group 0: it has 1 pieces");
  refused(group0 + 8 * count, kNoLsn, "in group 0: it has 4 of 4 rows");
  refused(group0 + 16 * count, lsn_, "its piece is at");
  refused(group0 + 28 * count, uint16_t{3}, "it has 3 of 4 rows");
  refused(group0 + 30 * count, uint8_t{0}, "it has 0 pieces");
  // The late group: the first trajectory's pages are written, others are not.
  const size_t late = group0 + 32 * count;
  refused(late + 28 * count, uint16_t{3}, "in group 1: it has 3 of 4 rows");
  refused(late + 8 * count, kNoLsn, "in group 1: it has 4 of 4 rows");
  refused(late + 28 * count + 2 * 3, uint16_t{1}, "in group 1: it has 1 of 0 rows");
  // A page less, in a chunk that says so.
  ExpectRefused({kSteps, ImageKind::kPages, 0}, "", [&](std::string* changed) {
    Put<uint32_t>(changed, kHeaderBytes, static_cast<uint32_t>(count - 1));
  });
}

TEST_F(TableImageLoadTest, FlagsOfAStreamThatCannotBeAreRefused) {
  const ImageChunk chunk{kStream, ImageKind::kPages, 0};
  const std::string& bytes = image_.chunks.at(chunk);
  const size_t count = Get<uint32_t>(bytes, kHeaderBytes);
  const size_t flags = bytes.size() - 4 * count;
  size_t refused = 0;
  for (size_t i = flags; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      ImageChunks changed = image_;
      changed.chunks.at(chunk)[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      auto loaded = LoadInto(&core_, changed, kStream);
      if (!loaded.ok()) {
        EXPECT_STATUS(kCorruption, loaded.status(), "in the index image");
        ++refused;
      } else {
        UseLoaded(&core_, &*loaded, kStream);
      }
    }
  }
  // All but those of rows that are not there, and first bits where what was before is gone.
  EXPECT_GT(refused, (bytes.size() - flags) * 8 / 2);
  EXPECT_STATUS(
      kCorruption,
      [&] {
        ImageChunks changed = image_;
        std::string& edited = changed.chunks.at({kStream, ImageKind::kTrajectories, 0});
        const size_t at = PlaceOf(edited, Field::kFlags, 0);
        edited[at] = static_cast<char>(edited[at] ^ 1);
        return LoadInto(&core_, changed, kStream).status();
      }(),
      "its last row has the flags");
}

TEST_F(TableImageLoadTest, ItemsThatCannotBeAreRefused) {
  // Groups of leaves, one mask, one word, priorities.
  const ImageChunk per{kSteps, ImageKind::kItems, 0};
  const std::string& bytes = image_.chunks.at(per);
  ASSERT_EQ(Get<uint32_t>(bytes, kHeaderBytes), 1u);
  ASSERT_EQ(Get<uint64_t>(bytes, kArrays), 1u) << "one word has all items";
  const auto word = Get<uint64_t>(bytes, kArrays + 8);
  const auto with_word = [&](uint64_t value) {
    return [=](std::string* changed) { Put<uint64_t>(changed, kArrays + 8, value); };
  };
  const auto moved = [&](uint64_t from, uint64_t to) {
    return with_word((word & ~(uint64_t{1} << from)) | (uint64_t{1} << to));
  };
  const auto first = static_cast<uint64_t>(std::countr_zero(word));
  // Trajectory 1 has rows 0 to 5 in LPNs 0 and 1, the last one its final row.
  ExpectRefused(per, "the item at leaf 5 cannot be one of priority table 'per'", moved(first, 5));
  ExpectRefused(per, "the item at leaf 7 cannot be one of priority table 'per'", moved(first, 7));
  ExpectRefused(per, "the item at leaf 63 cannot be one", moved(first, 63));
  ExpectRefused(per, "end too early", with_word(word | 1 << 5));
  ExpectRefused(per, "a word without items", [](std::string* changed) {
    Put<uint64_t>(changed, kArrays + 8, 0);
    changed->resize(kArrays + 16);
  });
  ExpectRefused(per, "it ends empty", [](std::string* changed) {
    Put<uint64_t>(changed, kArrays, 0);
    changed->resize(kArrays + 8);
  });
  ExpectRefused(per, "groups of leaves",
                [](std::string* changed) { Put<uint32_t>(changed, kHeaderBytes, 1 << 20); });
  ExpectRefused(per, "an item at leaf",
                [](std::string* changed) { Put<uint64_t>(changed, kArrays, uint64_t{1} << 63); });
  for (const float bad : {-1.0f, NAN, INFINITY}) {
    ExpectRefused(per, "has priority",
                  [&](std::string* changed) { Put<float>(changed, kArrays + 16, bad); });
  }
  ExpectRefused(per, "its largest priority is 7; that of an item is 8",
                [&](std::string* changed) { Put<float>(changed, kArrays + 16, 8); });
  // The queue: places in the order and times sampled follow.
  const ImageChunk queue{kSteps, ImageKind::kItems, uint64_t{3} << 32};
  ExpectRefused(queue, "in the order, of",
                [](std::string* changed) { Put<uint64_t>(changed, kArrays + 16, UINT64_MAX); });
  ExpectRefused(queue, "at the place of another", [](std::string* changed) {
    Put<uint64_t>(changed, kArrays + 16, Get<uint64_t>(*changed, kArrays + 24));
  });
  // Trajectories: slot 5 is open, slot 9 is free.
  const ImageChunk heap{kSteps, ImageKind::kItems, uint64_t{2} << 32};
  const auto slots = Get<uint64_t>(image_.chunks.at(heap), kArrays + 8);
  const uint64_t closed = uint64_t{1} << std::countr_zero(slots);
  ExpectRefused(heap, "the item at leaf 9 cannot be one", [&](std::string* changed) {
    Put<uint64_t>(changed, kArrays + 8, (slots & ~closed) | 1 << 9);
  });
}

TEST_F(TableImageLoadTest, LeafSetAndEpochsThatCannotBeAreRefused) {
  // Members, deleted leaves, the cut, what remains: of each groups of leaves, one mask, one word.
  const ImageChunk chunk{kSteps, ImageKind::kItems, uint64_t{5} << 32};
  const std::string& bytes = image_.chunks.at(chunk);
  constexpr size_t kSetBytes = 20;
  ASSERT_EQ(bytes.size(), kHeaderBytes + 4 * kSetBytes);
  const auto place_of = [](size_t set) { return kHeaderBytes + set * kSetBytes + 12; };
  const auto word_of = [&](size_t set) { return Get<uint64_t>(bytes, place_of(set)); };
  const uint64_t members = word_of(0);
  const uint64_t deleted = word_of(1);
  const uint64_t cut = word_of(2);
  const uint64_t remaining = word_of(3);
  ASSERT_EQ(std::popcount(deleted), 2);
  ASSERT_EQ(std::popcount(remaining) + 3, std::popcount(cut));
  ASSERT_NE(members & ~cut, 0u);
  const auto refused = [&](size_t set, uint64_t word, const char* why) {
    SCOPED_TRACE(why);
    ExpectRefused(chunk, why,
                  [&](std::string* changed) { Put<uint64_t>(changed, place_of(set), word); });
  };
  const uint64_t one_deleted = deleted & (deleted - 1);
  refused(1, one_deleted, "it says 2 deleted leaves; its chunks have 1");
  refused(1, one_deleted | (members & ~(members - 1)), "is deleted");
  refused(1, one_deleted | uint64_t{1} << 63, "is deleted, and nothing lies there");
  // Row 7 of a trajectory of 6.
  refused(1, one_deleted | 1 << 7, "leaf 7 of priority table 'epochs' is deleted, and nothing");
  refused(2, cut | deleted, "is in the epoch and is no item");
  refused(3, remaining | (members & ~cut), "remains in the pass and is not in the epoch");
  ExpectRefused(chunk, "its epoch is 1, in pass 1, with 0 of", [&](std::string* changed) {
    Put<uint32_t>(changed, place_of(3) - 12, 0);
    changed->resize(place_of(3) - 8);
  });
}

/// The head, built anew with one thing changed.
class HeadTest : public TableImageLoadTest {
 protected:
  void ExpectHeadRefused(const char* why, const std::function<void(fb::TableHead*)>& edit) {
    SCOPED_TRACE(why);
    ExpectRefused({kSteps, ImageKind::kTable, 0}, why, [&](std::string* bytes) {
      edit(flatbuffers::GetMutableRoot<fb::TableHead>(bytes->data() + kHeaderBytes));
    });
  }
  static void Set(fb::TableHead* head, flatbuffers::voffset_t field, uint64_t value) {
    ASSERT_TRUE(reinterpret_cast<flatbuffers::Table*>(head)->SetField<uint64_t>(field, value, 0));
  }
  /// Of a priority table.
  static void SetOf(fb::TableHead* head, uint32_t number, flatbuffers::voffset_t field,
                    uint64_t value) {
    auto* of = const_cast<fb::PriorityTableHead*>(head->priority_tables()->Get(number));
    ASSERT_TRUE(reinterpret_cast<flatbuffers::Table*>(of)->SetField<uint64_t>(field, value, 0));
  }
};

TEST_F(HeadTest, NumbersThatCannotBeAreRefused) {
  const auto head = [&](flatbuffers::voffset_t field, uint64_t value, const char* why) {
    ExpectHeadRefused(why, [&](fb::TableHead* edited) { Set(edited, field, value); });
  };
  head(fb::TableHead::VT_SLOTS, UINT32_MAX, "trajectories in 4294967295 slots");
  head(fb::TableHead::VT_SLOTS, 3, "6 trajectories in 3 slots");
  head(fb::TableHead::VT_LPNS, UINT64_MAX, "places");
  head(fb::TableHead::VT_LPNS, 3, "pages in 3 places");
  head(fb::TableHead::VT_TRAJECTORIES, 5, "it says 5 trajectories; there are 6");
  head(fb::TableHead::VT_PAGES, 5, "it says 5 pages; the trajectories' rows take");
  head(fb::TableHead::VT_STEPS, 5, "it says 5 steps; the trajectories have");
  head(fb::TableHead::VT_NEXT_ID, 0, "the next id is 0");
  head(fb::TableHead::VT_NEXT_ID, 3, "its id was never handed out");
  head(fb::TableHead::VT_NEXT_ID, kIdsEnd + 1, "the next id is");
  head(fb::TableHead::VT_IDS_END, kIdsEnd + 1, "ids up to");
  head(fb::TableHead::VT_NEXT_GENERATION, 0, "the next generation 0");
  head(fb::TableHead::VT_GENERATIONS_END, UINT64_MAX, "the next generation");
  const auto queue = [&](flatbuffers::voffset_t field, uint64_t value, const char* why) {
    ExpectHeadRefused(why, [&](fb::TableHead* edited) { SetOf(edited, 3, field, value); });
  };
  queue(fb::PriorityTableHead::VT_ITEMS, 3, "its limiter has counted");
  queue(fb::PriorityTableHead::VT_NEXT_SEQUENCE, UINT64_MAX, "its next item is number");
  queue(fb::PriorityTableHead::VT_NEXT_SEQUENCE, 1, "in the order, of 1");
  const auto epochs = [&](flatbuffers::voffset_t field, uint64_t value, const char* why) {
    ExpectHeadRefused(why, [&](fb::TableHead* edited) { SetOf(edited, 5, field, value); });
  };
  epochs(fb::PriorityTableHead::VT_DELETED, 3, "it says 3 deleted leaves; its chunks have 2");
  epochs(fb::PriorityTableHead::VT_EPOCH, 0, "its epoch is 0, in pass 1");
  epochs(fb::PriorityTableHead::VT_EPOCH, uint64_t{1} << 62, "its epoch is 4611686018427387904");
  epochs(fb::PriorityTableHead::VT_PASS, 0, "its epoch is 1, in pass 0");
  epochs(fb::PriorityTableHead::VT_PASS, 3, "its epoch is 1, in pass 3");
}

TEST_F(HeadTest, MoreMemoryThanThereIsIsSaid) {
  ImageChunks changed = image_;
  std::string& bytes = changed.chunks.at({kSteps, ImageKind::kTable, 0});
  Set(flatbuffers::GetMutableRoot<fb::TableHead>(bytes.data() + kHeaderBytes),
      fb::TableHead::VT_LPNS, UINT32_MAX - 1);
  EXPECT_STATUS(kResourceExhausted, LoadInto(&core_, changed, kSteps).status(), "steps");
  EXPECT_OK(LoadInto(&core_, image_, kSteps)) << "nothing of it is left";
}

}  // namespace
}  // namespace geardb::engine
