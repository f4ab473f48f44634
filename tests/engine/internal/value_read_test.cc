// What is damaged, or says what cannot be, costs its trajectory, or the call, by name.
#include "engine/internal/value_read.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "engine/internal/episode.h"
#include "tests/engine/values_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ModelStep;
using testing::ValueRowsOf;
using testing::ValuesSpec;

class ValueReadTest : public testing::StoreTest {
 protected:
  TrajectoryId Add(const Bytes& text) {
    const ValueRowsOf rows({{.text = text}, {.text = {1, 2}}}, 0, false);
    const auto appended = writer_->AppendSteps(rows.values(), {.end = End::kTerminated});
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }
  /// Changes a bit of the first piece of a text in the log's segments: in how many.
  int FlipInLog(const Bytes& text) const {
    int flipped = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_->File("log"))) {
      if (entry.path().filename().string().rfind("segment-", 0) != 0) continue;
      const std::string file = testing::ReadBytes(entry.path());
      // A page has 64 rows.
      const auto at = std::search(file.begin(), file.end(), text.begin(), text.begin() + 40,
                                  [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
      if (at == file.end()) continue;
      testing::FlipByte(entry.path(), static_cast<uint64_t>(at - file.begin()));
      ++flipped;
    }
    return flipped;
  }
  Result<Bytes> Text(TrajectoryId id) const {
    const std::string_view column = "text";
    GEARDB_ASSIGN_OR_RETURN(const auto rows, table_->Read(id, {&column, 1}, {}));
    const auto text = rows[0].view().values<uint8_t>();
    return Bytes(text.begin(), text.end());
  }
  Result<Batch> Draw() {
    GEARDB_ASSIGN_OR_RETURN(const auto priority, table_->OpenPriorityTable("whole"));
    GEARDB_ASSIGN_OR_RETURN(const auto sampler,
                            priority->NewSampler({.batch = 4, .views = {{.column = "text"}}}));
    return sampler->Next();
  }
  /// Says that step 0 of a trajectory has these rows of "text".
  void Claim(TrajectoryId id, const engine::RaggedRange& range) {
    const auto core = testing::CoreOf(*database_)->FindTable("values");
    MutexLock lock(&core->state->mutex);
    const engine::TableState& state = *core->state;
    const auto& record = state.trajectories().record(state.trajectories().FindById(id));
    engine::RowCursor cursor(state, record);
    const size_t column = *state.layout().FindStepColumn("text");
    const FrameRef at = state.RowToRead(column, cursor.PageOf(0), 0, nullptr);
    std::memcpy(state.arena().Resolve(at), &range, sizeof(range));
  }
};

TEST_F(ValueReadTest, RowsThatAreNotThereAreCorruption) {
  Create(ValuesSpec(false));
  const TrajectoryId id = Add({5, 6, 7});
  ASSERT_OK(Text(id));
  for (const engine::RaggedRange& range :
       {engine::RaggedRange{0, 6}, engine::RaggedRange{3, 2},
        engine::RaggedRange{UINT64_MAX - 1, UINT64_MAX}, engine::RaggedRange{1, UINT64_MAX}}) {
    Claim(id, range);
    EXPECT_STATUS(kCorruption, Text(id), "of column 'text', of which there are 0 to 5");
    EXPECT_STATUS(kCorruption, Draw(), "row 0 of trajectory " + std::to_string(id));
  }
  Claim(id, {4, 4});
  ASSERT_OK_AND_ASSIGN(const Bytes text, Text(id));
  EXPECT_EQ(text, (Bytes{1, 2}));
}

TEST_F(ValueReadTest, ADamagedPageOfACompanionCostsItsTrajectory) {
  Create(ValuesSpec(false));
  Bytes text(100);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(37 * i + 11);
  const TrajectoryId damaged = Add(text);
  const TrajectoryId other = Add({8, 9});
  writer_.reset();
  Reopen();
  Close();
  ASSERT_EQ(FlipInLog(text), 1);
  Open();
  OpenAgain("values");
  ASSERT_EQ(database_->recovery().damaged_trajectories.size(), 1u);
  EXPECT_EQ(database_->recovery().damaged_trajectories[0].id, damaged);
  EXPECT_EQ(database_->recovery().damaged_trajectories[0].table, "values");
  EXPECT_STATUS(kNotFound, Text(damaged), "has no trajectory");
  ASSERT_OK_AND_ASSIGN(const Bytes left, Text(other));
  EXPECT_EQ(left, (Bytes{8, 9, 1, 2}));
}

TEST_F(ValueReadTest, APageDamagedSinceItWasDroppedCostsItsTrajectory) {
  Create(ValuesSpec(false));
  Bytes text(100);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(91 * i + 3);
  const TrajectoryId damaged = Add(text);
  // The log's last block is written again with what follows: it is not to have the text.
  const TrajectoryId behind = Add(Bytes(20'000, 7));
  ASSERT_OK(table_->Remove(std::span(&behind, 1)));
  ASSERT_OK(database_->Sync());
  ASSERT_GT(testing::DropFrames(*database_), 0u);
  ASSERT_EQ(FlipInLog(text), 1);
  EXPECT_STATUS(kCorruption, Draw(), "the trajectory was removed");
  EXPECT_STATUS(kNotFound, Text(damaged), "has no trajectory");
}

}  // namespace
}  // namespace geardb
