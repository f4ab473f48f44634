// An image with so many items that a thread of their own loads them.
#include "engine/internal/image_items.h"
#include "tests/engine/internal/image_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

class TableImageBesideConcurrentTest : public ImageFixture {
 protected:
  void SetUp() override {
    ImageFixture::SetUp();
    TableSpec spec = testing::StepSpec();
    spec.steps_per_page = 64;
    spec.priority_tables = {testing::WindowSpec("per"), testing::WindowSpec("order"),
                            testing::WindowSpec("group"), testing::WindowSpec("all")};
    spec.priority_tables[1].selector = SelectorKind::kFifo;
    spec.priority_tables[2] = {.name = "group",
                               .item = ItemKind::kGroup,
                               .group = {.key = "version", .count = 2},
                               .selector = SelectorKind::kUniform};
    spec.priority_tables[3].selector = SelectorKind::kUniform;
    Create(spec);
    for (int64_t first = 0; first < kItemRows; first += kItemRows / 10)
      AppendClosed(first, kItemRows / 10);
    std::vector<RowId> some = priority("per")->Items();
    some.resize(1000);
    std::vector<float> priorities;
    for (size_t i = 0; i < some.size(); ++i) priorities.push_back(static_cast<float>(i % 7));
    ASSERT_OK(priority("per")->Set(some, priorities));
    image_ = Take();
  }
  Result<LoadedTable> LoadBeside(ImageCore* core, const ImageChunks& image) {
    const ImageSource items = image.source();
    return LoadTable({.index = core->core().index_memory.get(),
                      .arena = core->core().arena.get(),
                      .kept = Kept::kTaken},
                     1, lsn_, image.source(), nullptr, &items);
  }
  static std::string Dump(LoadedTable* table) {
    MutexLock lock(&table->state->mutex);
    table->state->EndBulk();
    return testing::DumpTable(table->state.get());
  }

  static constexpr int64_t kItemRows = 110'000;
  ImageCore core_;
  ImageChunks image_;
};

TEST_F(TableImageBesideConcurrentTest, TheTableIsAsWithoutTheThread) {
  std::string alone;
  {
    ASSERT_OK_AND_ASSIGN(LoadedTable table, LoadInto(&core_, image_, 1));
    alone = Dump(&table);
  }
  ASSERT_OK_AND_ASSIGN(LoadedTable table, LoadBeside(&core_, image_));
  EXPECT_EQ(table.state->priority(0).selector().count(), static_cast<uint64_t>(kItemRows));
  EXPECT_EQ(Dump(&table), alone);
}

TEST_F(TableImageBesideConcurrentTest, DamageOfEitherIsNamed) {
  for (const ImageChunk chunk :
       {ImageChunk{1, ImageKind::kItems, 0}, ImageChunk{1, ImageKind::kItems, uint64_t{3} << 32},
        ImageChunk{1, ImageKind::kPages, 0}, ImageChunk{1, ImageKind::kTrajectories, 0}}) {
    ImageChunks damaged = image_;
    std::string& bytes = damaged.chunks.at(chunk);
    bytes.resize(bytes.size() - 4);
    EXPECT_STATUS(kCorruption, LoadBeside(&core_, damaged).status(), NameOf(chunk));
  }
  EXPECT_OK(LoadBeside(&core_, image_).status());
}

}  // namespace
}  // namespace geardb::engine
