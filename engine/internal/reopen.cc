#include "engine/internal/reopen.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/internal/database_image.h"
#include "engine/internal/image_read_ahead.h"
#include "engine/internal/log_prefetch.h"
#include "engine/internal/table_change.h"
#include "wal/segment_map.h"

namespace geardb::engine {
namespace {

/// Threads that read chunks of an image, of 1 MiB, before they are loaded: what one thread loads.
constexpr uint32_t kReadersOfImage = 4;

bool IsOfItems(const ImageChunk& chunk) { return chunk.kind == ImageKind::kItems; }

}  // namespace

Status RemoveDamaged(DatabaseCore* core, const Recovery& recovery) {
  for (const auto& [table_id, slots] : recovery.damaged()) {
    auto table = core->TableById(table_id);
    if (table == nullptr) continue;
    std::vector<TrajectoryId> ids;
    {
      MutexLock lock(&table->state->mutex);
      for (const auto& [slot, generation] : slots) {
        const auto& record = table->state->trajectories().record(slot);
        if (record.state == index::TrajectoryState::kFree || record.generation != generation) {
          continue;
        }
        // What has lost a value has lost its page.
        const TableState* owner = table->state->owner();
        ids.push_back(owner != nullptr ? owner->trajectories().record(slot).id : record.id);
      }
    }
    if (table->is_companion) {
      table = table->owner.lock();
      std::erase_if(ids, [&](TrajectoryId id) {
        MutexLock lock(&table->state->mutex);
        return table->state->trajectories().FindById(id) == kNoSlot;
      });
    }
    for (const TrajectoryId id : ids) {
      core->recovery.damaged_trajectories.push_back({table->layout().spec().name, id});
    }
    if (ids.empty()) continue;
    if (core->log == nullptr) {
      HideTrajectories(table.get(), ids);
      continue;
    }
    // The cleaner may have removed some by now.
    const Status removed = RemoveAllOf(core, table, [&ids](const TableState& state) {
      FinishedByCause there;
      for (const TrajectoryId id : ids) {
        if (state.trajectories().FindById(id) == kNoSlot) continue;
        there[{RemovalReason::kDamaged}].push_back(id);
      }
      return there;
    });
    if (removed.code() != StatusCode::kResourceExhausted) {
      GEARDB_RETURN_IF_ERROR(removed);
      continue;
    }
    // No room in the log: the next open removes them. Nor in memory: whoever draws one is told.
    MutexLock lock(&table->state->mutex);
    for (const TrajectoryId id : ids) {
      const Slot slot = table->state->trajectories().FindById(id);
      if (slot != kNoSlot) (void)table->state->HideUnreadable(slot);
    }
  }
  return Status::Ok();
}

Result<wal::OpenedLog> ReadLog(Env* directory, const wal::OpenOptions& options,
                               const ImageHead& image, DatabaseCore* core, Recovery* recovery,
                               std::optional<wal::OpenReport>* written_out) {
  auto opened =
      wal::OpenLog(directory, core->directory, options, [&](const wal::RecordView& record) {
        return record.lsn < image.lsn ? Status::Ok() : recovery->Visit(record);
      });
  if (opened.ok() || !recovery->lacks_frames() || options.read_only || written_out->has_value()) {
    return opened;
  }
  const auto drained = wal::OpenLog(directory, core->directory, options,
                                    [](const wal::RecordView&) { return Status::Ok(); });
  if (drained.ok()) *written_out = drained->report;
  return opened;
}

void NoteLog(const wal::ReadReport& read, DatabaseCore* core) {
  auto& found = core->log_files;
  found.synced =
      read.seal_lsn != kNoLsn ? read.end_lsn : std::max(read.synced_lsn, core->manifest.start);
  for (const Lsn base : found.bases) {
    const bool gone = base + core->manifest.segment_bytes <= core->log_released.load();
    found.segments_live += base < read.end_lsn && !gone ? 1u : 0u;
  }
  found.segments_free = found.files - found.segments_live;
}

void NoteRecovery(const wal::OpenReport& opened, const std::optional<wal::OpenReport>& before,
                  const Recovery& recovery, RecoveryReport* into) {
  RecoveryReport& report = *into;
  const wal::ReadReport& read = opened.read;
  const wal::OpenReport& first = before.has_value() ? *before : opened;
  report.clean = first.read.seal_lsn != kNoLsn;
  report.start = read.start_lsn;
  report.end = read.end_lsn;
  report.records = read.records;
  report.bytes = read.bytes;
  report.ring_records = read.ring_records;
  report.orphaned = recovery.orphaned();
  report.damaged_pages = recovery.damaged_pages();
  report.damaged_priorities = recovery.damaged_priorities();
  report.note = first.note;
  report.damage = read.damage;
  if (!read.damage.ok()) report.note = read.damage.ToString();
}

void NoteDamage(const DatabaseCore& core, RecoveryReport* into) {
  RecoveryReport& report = *into;
  const auto add = [&report](const std::string& note) {
    report.note += (report.note.empty() ? "" : "; ") + note;
  };
  std::string trajectories;
  for (const auto& [table, id] : report.damaged_trajectories) {
    trajectories += " '" + table + "'/" + std::to_string(id);
  }
  if (!trajectories.empty()) add("trajectories with damaged pages:" + trajectories);
  if (report.damaged_priorities > 0) {
    add(std::to_string(report.damaged_priorities) +
        " priorities in damaged pieces stayed as before");
  }
  if (core.cold != nullptr && core.cold->if_open() != nullptr) {
    for (const std::string& text : core.cold->if_open()->damage()) add(text);
  }
  for (const Tag& tag : core.Tags()) {
    if (!tag.damaged) continue;
    ++report.damaged_tags;
    add("tag '" + tag.name + "' has lost its blob");
  }
}

Status LoadImage(DatabaseCore* core, Env* env, ImageHead* image) {
  if (core->env != Env::Posix()) return Status::Ok();  // RocksDB knows no other files.
  core->cold = std::make_unique<ColdTier>(
      core->env, core->directory,
      ColdStoreOptions{.read_only = core->options.read_only,
                       .memory_bytes = core->options.budgets.cold_bytes,
                       // As much as most passes move. What is reserved on the disk for it should
                       // be little beside the log.
                       .unflushed_bytes_max = core->options.log_bytes_max / 4,
                       .space_amplification_max = core->options.space_amplification_max});
  GEARDB_ASSIGN_OR_RETURN(
      const wal::SegmentMap map,
      wal::SegmentMap::Read(env, JoinPath(core->directory, wal::kLogDirectoryName), core->manifest,
                            0));
  GEARDB_RETURN_IF_ERROR(
      core->cold->OpenExisting(map.names.empty() ? 0 : map.names.begin()->first));
  if (core->cold->if_open() != nullptr) core->page_source->UseColdStore(core->cold->if_open());
  *image = core->cold->head();
  core->may_be_cold = core->cold->has_put_since();
  for (const auto& [base, name] : map.names) core->log_files.bases.push_back(base);
  core->log_files.files = map.all.size();
  if (image->number == 0) return Status::Ok();
  core->image_lsn.store(image->lsn);
  const LogPrefetch prefetch({.env = env,
                              .directory = core->directory,
                              .manifest = core->manifest,
                              .map = map,
                              .from = image->log_from,
                              .released = std::min(image->log_start, image->log_from)},
                             core->options.background);
  std::vector<ImageChunk> chunks = core->cold->ImageChunks();
  std::vector<ImageChunk> items;
  std::ranges::copy_if(chunks, std::back_inserter(items), IsOfItems);
  std::erase_if(chunks, IsOfItems);
  const uint32_t threads = core->options.background && chunks.size() > kReadersOfImage
                               ? std::min(core->options.read_threads, kReadersOfImage)
                               : 0;
  ImageReadAhead read_ahead(std::move(chunks), core->cold->CurrentImage(), threads);
  ImageReadAhead items_ahead(std::move(items), core->cold->CurrentImage(), (threads + 1) / 2);
  const ImageSource source = [&](const ImageChunk& chunk) { return read_ahead.Read(chunk); };
  const ImageSource of_items = [&](const ImageChunk& chunk) { return items_ahead.Read(chunk); };
  GEARDB_RETURN_IF_ERROR(LoadDatabase(core, image->lsn, source, threads > 0 ? &of_items : nullptr));
  core->log_start.store(image->log_start);
  core->log_released.store(std::min(image->log_start, image->log_from));
  core->page_source->ForgetLogBelow(core->log_released.load());
  core->read_from_segments.store(image->log_from);
  for (const auto& table : core->AllTables()) {
    MutexLock lock(&table->state->mutex);
    table->state->frames().ResolvePlaces(image->log_start);
  }
  return Status::Ok();
}

}  // namespace geardb::engine
