// Images of a fuzzer's input into a database without a log. Shared by the fuzzer and by
// image_corpus_test.cc, which says what the seeds come to.
#pragma once

#include <array>

#include "engine/internal/database_image.h"
#include "engine/internal/recovery.h"
#include "tests/fuzz/image_input.h"
#include "tests/fuzz/record_feed.h"

namespace geardb::fuzzing {

class ImageFeed {
 public:
  ImageFeed() { Make(); }
  bool ready() const { return feed_->ready(); }
  engine::DatabaseCore& core() { return feed_->core(); }

  Status Load(const InputImage& image) {
    return engine::LoadDatabase(&core(), kImageLsn,
                                [&](const engine::ImageChunk& chunk) -> Result<std::string> {
                                  const auto found = image.find(chunk);
                                  if (found != image.end()) return found->second;
                                  return Status::NotFound("there is none");
                                });
  }

  /// Of a database that was loaded: its image is one of the same, its items can be drawn, and all
  /// that it has can leave.
  void Use() {
    const InputImage image = Save();
    GEARDB_CHECK(feed_->Finish().ok());
    for (const auto& table : core().AllTables()) {
      MutexLock lock(&table->state->mutex);
      Draw(table->state.get());
      Leave(table->state.get());
    }
    Make();
    const Status again = Load(image);
    // What was one database may be more than the budgets beside what the first one kept.
    GEARDB_CHECK(again.ok() || again.code() == StatusCode::kResourceExhausted);
    if (again.ok()) GEARDB_CHECK(Save() == image);
  }

  InputImage Save() {
    InputImage image;
    MutexLock lock(&core().commit);
    const auto sink = [&](const engine::ImageChunk& chunk, std::span<const std::byte> bytes) {
      image[chunk] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return Status::Ok();
    };
    GEARDB_CHECK(engine::SaveDatabase(&core(), kImageLsn, sink).ok());
    return image;
  }

 private:
  void Make() { feed_ = std::make_unique<RecordFeed>(); }

  static void Draw(engine::TableState* state) {
    for (size_t i = 0; i < state->priority_table_count(); ++i) {
      engine::PriorityState& priority = state->priority(i);
      std::array<uint64_t, 8> leaves;
      const uint64_t drawn = priority.selector().Draw({.seed = priority.seed}, leaves, {});
      for (size_t k = 0; k < drawn; ++k) {
        uint32_t generation = 0;
        GEARDB_CHECK(state->GenerationOfLeaf(priority, leaves[k], &generation));
      }
      (void)priority.BlockedSample(3);
      (void)priority.BlockedInsert(3);
    }
  }

  static void Leave(engine::TableState* state) {
    std::vector<engine::fb::Removed> removed;
    std::vector<engine::fb::Trimmed> trimmed;
    state->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
      removed.emplace_back(record.id, slot, record.generation);
      const uint64_t first = record.first_row + (record.rows_end - record.first_row) / 2;
      if (static_cast<int64_t>(first) < state->StepsEnd(record)) {
        trimmed.emplace_back(first, slot, record.generation);
      }
    });
    flatbuffers::FlatBufferBuilder builder;
    const auto trims = builder.CreateVectorOfStructs(trimmed);
    const auto gone = builder.CreateVectorOfStructs(removed);
    builder.Finish(engine::fb::CreateRemove(builder, gone, trims));
    const auto* leave = flatbuffers::GetRoot<engine::fb::Remove>(builder.GetBufferPointer());
    state->Leave(nullptr, leave->trimmed(), {});
    state->Leave(leave->removed(), nullptr, {});
    GEARDB_CHECK(state->trajectories().count() == 0 && state->rows() == 0 && state->steps() == 0);
    for (size_t i = 0; i < state->priority_table_count(); ++i) {
      GEARDB_CHECK(state->priority(i).selector().count() == 0);
      GEARDB_CHECK(state->priority(i).limiter().size() == 0);
    }
  }

  std::unique_ptr<RecordFeed> feed_;
};

}  // namespace geardb::fuzzing
