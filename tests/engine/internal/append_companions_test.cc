// A writer's lanes in companions follow its own: from writer to writer, and over episodes.
#include <gtest/gtest.h>

#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ModelStep;
using testing::ValueRowsOf;
using testing::ValuesSpec;

class AppendCompanionsTest : public testing::StoreTest {
 protected:
  Appended Add(Writer* writer, Bytes text, End end = End::kGo) {
    const ValueRowsOf rows({{.text = std::move(text)}}, 0, true);
    const auto appended = writer->Append(rows.values(), {.end = end});
    EXPECT_OK(appended);
    return appended.ok() ? *appended : Appended{};
  }
  void ExpectText(TrajectoryId id, const Bytes& expected, std::vector<int64_t> offsets) const {
    const std::string_view column = "text";
    ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, {&column, 1}, {}));
    const auto text = rows[0].view().values<uint8_t>();
    EXPECT_EQ(Bytes(text.begin(), text.end()), expected);
    EXPECT_EQ(rows[0].offsets, offsets);
  }
};

TEST_F(AppendCompanionsTest, AnotherWriterGoesOn) {
  Create(ValuesSpec(false));
  const TrajectoryId id = Add(writer_.get(), {1, 2, 3}).id;
  ASSERT_OK(writer_->Detach(0));
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({}));
  ASSERT_OK(other->Resume(id));
  Add(other.get(), {4});
  // The first writer has begun another trajectory on its lane meanwhile.
  const TrajectoryId second = Add(writer_.get(), {9, 9}).id;
  ASSERT_OK(other->Detach(0));
  EXPECT_STATUS(kFailedPrecondition, writer_->Resume(id), "open");
  ASSERT_OK(writer_->Cut(0));
  ASSERT_OK(writer_->Resume(id));
  Add(writer_.get(), {5, 6}, End::kTerminated);
  ExpectText(id, {1, 2, 3, 4, 5, 6}, {0, 3, 4, 6});
  ExpectText(second, {9, 9}, {0, 2});
}

TEST_F(AppendCompanionsTest, OneWithoutRowsIsResumed) {
  Create(ValuesSpec(false));
  const TrajectoryId id = Add(writer_.get(), {}).id;
  writer_.reset();
  Reopen();
  OpenAgain("values");
  ASSERT_OK(writer_->Resume(id));
  Add(writer_.get(), {7});
  ExpectText(id, {7}, {0, 0, 1});
}

TEST_F(AppendCompanionsTest, AStreamGoesOnOverEnds) {
  TableSpec spec = ValuesSpec(true);
  spec.stream = true;
  Create(spec);
  const ValueRowsOf final({{.rgb = {8, 8, 8}}}, 1, true, true);
  TrajectoryId id = 0;
  for (int episode = 0; episode < 3; ++episode) {
    const ValueRowsOf rows({{.text = {1, 2}, .rgb = {3, 4, 5}}}, 0, true);
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer_->Append(rows.values(), {.end = End::kTruncated, .final = final.values()}));
    id = appended.id;
  }
  writer_.reset();
  Reopen();
  OpenAgain("values");
  ExpectText(id, {1, 2, 1, 2, 1, 2}, {0, 2, 2, 4, 4, 6, 6});
  const std::string_view column = "rgb";
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, {&column, 1}, {}));
  EXPECT_EQ(rows[0].shape, Shape({6, 3}));
}

TEST_F(AppendCompanionsTest, AWrongCallChangesNothing) {
  Create(ValuesSpec(false));
  const ValueRowsOf rows({{.text = {1}}, {.text = {2}}}, 0, false);
  std::vector<ColumnValue> values = rows.values();
  const std::vector<uint64_t> offsets = {0, 1, 3};
  values[2].offsets = offsets;
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(values), "'text' has offsets from 0 to 3");
  values[2].offsets = {};
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(values), "'text' has values of any length");
  values.pop_back();
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(values), "");
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendSteps(rows.values(), {.final = {}, .trajectory = rows.values()}),
                "is per step");
  EXPECT_EQ(table_->Count(), 0u);
  ASSERT_OK(writer_->AppendSteps(rows.values()));
}

}  // namespace
}  // namespace geardb
