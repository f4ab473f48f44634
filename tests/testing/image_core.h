// Databases without a log, made by records and by images, and the chunks of images.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/internal/database_image.h"
#include "engine/internal/recovery.h"
#include "tests/testing/index_dump.h"
#include "tests/testing/matchers.h"

namespace geardb::testing {

/// The chunks of an image, as a store would hold them.
class ImageChunks {
 public:
  engine::ImageSink sink() {
    return [this](const engine::ImageChunk& chunk, std::span<const std::byte> bytes) {
      std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      EXPECT_TRUE(chunks.emplace(chunk, std::move(text)).second) << NameOf(chunk) << " twice";
      return Status::Ok();
    };
  }
  engine::ImageSource source() const {
    return [this](const engine::ImageChunk& chunk) -> Result<std::string> {
      const auto found = chunks.find(chunk);
      if (found == chunks.end()) return Status::NotFound("there is none");
      return found->second;
    };
  }
  uint64_t bytes() const {
    uint64_t all = 0;
    for (const auto& [chunk, bytes] : chunks) all += bytes.size();
    return all;
  }
  uint64_t CountOf(engine::ImageKind kind) const {
    uint64_t count = 0;
    for (const auto& [chunk, bytes] : chunks) count += chunk.kind == kind ? 1 : 0;
    return count;
  }

  std::map<engine::ImageChunk, std::string> chunks;
};

/// A record of a log, copied.
struct KeptRecord {
  struct Piece {
    wal::PieceView view;
    std::vector<std::byte> bytes;
  };
  explicit KeptRecord(const wal::RecordView& view)
      : record(view), body((view.body.size() + 7) / 8) {
    if (!view.body.empty()) std::memcpy(body.data(), view.body.data(), view.body.size());
    for (const wal::PieceView& piece : view.pieces) {
      pieces.push_back({piece, {piece.bytes.begin(), piece.bytes.end()}});
    }
  }

  wal::RecordView record;
  std::vector<uint64_t> body;
  std::vector<Piece> pieces;
};

/// A database in the middle of a recovery.
class ImageCore {
 public:
  explicit ImageCore(uint64_t frames_bytes = uint64_t{64} << 20,
                     uint64_t index_bytes = uint64_t{64} << 20) {
    core_.directory = "image";
    auto arena = engine::HostArena::Create({.budget_bytes = frames_bytes}, &core_.epochs);
    auto memory = index::IndexMemory::Create({.budget_bytes = index_bytes, .name = "image"});
    EXPECT_OK(arena);
    EXPECT_OK(memory);
    core_.arena = std::move(*arena);
    core_.index_memory = std::move(*memory);
    recovery_ = std::make_unique<engine::Recovery>(&core_);
  }

  engine::DatabaseCore& core() { return core_; }
  Status Replay(const KeptRecord& kept) {
    std::vector<wal::PieceView> pieces;
    for (const KeptRecord::Piece& piece : kept.pieces) {
      pieces.push_back(piece.view);
      pieces.back().bytes = piece.bytes;
    }
    wal::RecordView record = kept.record;
    record.body = std::as_bytes(std::span(kept.body)).first(kept.record.body.size());
    record.pieces = pieces;
    return recovery_->Visit(record);
  }
  Status Finish() { return recovery_->Finish(); }
  Status Load(const ImageChunks& image, Lsn lsn) {
    return engine::LoadDatabase(&core_, lsn, image.source());
  }
  Status Save(Lsn lsn, ImageChunks* image) {
    MutexLock lock(&core_.commit);
    return engine::SaveDatabase(&core_, lsn, image->sink());
  }
  /// Between the records of a recovery and here, sums are not there.
  std::string Dump() {
    ForEachTable([](engine::TableState* state) { state->EndBulk(); });
    std::string dump = DumpIndex(core_);
    ForEachTable([](engine::TableState* state) { state->BeginBulk(); });
    return dump;
  }
  template <typename Visit>
  void ForEachTable(Visit visit) {
    for (const auto& table : core_.AllTables()) {
      MutexLock lock(&table->state->mutex);
      visit(table->state.get());
    }
  }

  /// Gives every page that has no frame a copy of that of `from`, which has the same tables.
  void TakeFrames(ImageCore* from) {
    for (const auto& table : core_.AllTables()) {
      const auto other = from->core_.TableById(table->layout().id());
      MutexLock lock(&table->state->mutex);
      CopyFrames(*other->state, table->state.get());
    }
  }

 private:
  void CopyFrames(const engine::TableState& from, engine::TableState* to) {
    to->trajectories().ForEach([&](Slot, const index::TrajectoryRecord& record) {
      for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = to->pages().page(lpn).next) {
        for (size_t g = 0; g < to->layout().group_count(); ++g) {
          const FrameRef source = from.FrameOf(g, lpn);
          if (source == from.default_frame(g)) continue;
          ASSERT_FALSE(to->FrameOf(g, lpn).valid());
          ASSERT_OK_AND_ASSIGN(
              const FrameRef frame,
              core_.arena->Allocate(to->pool(g), Deadline::Now(), engine::Kept::kTaken));
          std::memcpy(core_.arena->Resolve(frame), from.arena().Resolve(source),
                      to->pool(g)->frame_bytes());
          const_cast<index::PageTable&>(to->pages()).group_page(g, lpn).frame = frame;
        }
      }
    });
  }

  engine::DatabaseCore core_{DatabaseOptions{}};
  std::unique_ptr<engine::Recovery> recovery_;
};

}  // namespace geardb::testing
