// What a database says of itself: Stats and Activity.

#include <algorithm>

#include "engine/internal/core.h"
#include "engine/internal/table_stats.h"

namespace geardb {

DatabaseStats Database::Stats() const {
  DatabaseStats stats = impl_->StatsNow();
  stats.tables = Tables();
  return stats;
}

DatabaseActivity Database::Activity() const {
  return impl_->activity == nullptr ? DatabaseActivity() : impl_->activity->activity();
}

Result<DatabaseActivity> Database::ActivityOf(const std::string& directory) {
  Env* const env = Env::Posix();
  GEARDB_ASSIGN_OR_RETURN(const wal::Manifest manifest, wal::ReadManifest(env, directory));
  return engine::ReadActivity(env, directory, manifest.Seed());
}

}  // namespace geardb

namespace geardb::engine {

DatabaseStats DatabaseCore::StatsNow() {
  DatabaseStats stats;
  if (log != nullptr) {
    const wal::LogStats found = log->Stats();
    stats.log_end = found.end;
    stats.log_published = found.published;
    stats.log_drained = found.drained;
    stats.log_synced = found.synced;
    stats.log_records = found.records;
    stats.log_bytes = found.bytes;
    stats.fdatasyncs = found.fsyncs;
    stats.fdatasync_p50_us = found.fsync_median_us;
    stats.log_io = found.write_path;
    stats.log_segments_live = found.segments_live;
    stats.log_segments_free = found.segments_free;
  } else {
    stats.log_end = stats.log_published = stats.log_drained = recovery.end;
    stats.log_synced = log_files.synced;
    stats.log_io = "read-only";
    stats.log_segments_live = log_files.segments_live;
    stats.log_segments_free = log_files.segments_free;
  }
  stats.log_start = log_start.load();
  stats.log_released = log_released.load();
  stats.image_lsn = image_lsn.load();
  if (cleaner != nullptr) stats.cleaner = cleaner->stats();
  if (cold != nullptr) stats.cold = cold->stats();
  stats.waits = WaitsSoFar();
  stats.frames = {arena->budget_bytes(), arena->used_bytes()};
  stats.index = {index_memory->budget_bytes(), index_memory->used_bytes()};
  stats.batches = {options.budgets.batch_bytes, batch_bytes->load()};
  stats.cold_memory = {options.budgets.cold_bytes, stats.cold.memory_bytes};
  stats.pages_beside_bytes = page_loader->beside_bytes();
  stats.pages_beside_most_bytes = page_loader->beside_most();
  stats.frame_pages = arena->page_kind();
  stats.log_page_reads = page_source->log_reads();
  stats.cold_page_reads = page_source->cold_reads();
  return stats;
}

std::vector<TableActivity> DatabaseCore::TablesNow() const {
  std::vector<TableActivity> tables;
  for (const auto& table : UserTables()) tables.push_back(ActivityOf(*table->state));
  return tables;
}

WaitStats DatabaseCore::WaitsSoFar() const {
  return {.frames = waits.frames.count(),
          .log_room = waits.log_room.count(),
          .limiters = waits.limiters.count(),
          .table_room = waits.table_room.count(),
          .pages = page_loader->waits().count()};
}

ActivityCounters DatabaseCore::Counters() {
  ActivityCounters counters;
  const auto add = [&](const FrameStats& frames) {
    counters.frame_hits += frames.hits;
    counters.frame_misses += frames.misses;
    counters.frames_dropped += frames.dropped;
    counters.frames_unplaced += frames.unplaced;
  };
  for (const auto& table : AllTables()) {
    MutexLock guard(&table->state->mutex);
    add(table->state->frames().stats());
  }
  {
    MutexLock guard(&tables_mutex_);
    add(frames_of_dropped_);
  }
  counters.log_page_reads = page_source->log_reads();
  counters.cold_page_reads = page_source->cold_reads();
  if (log != nullptr) {
    const wal::LogStats stats = log->Stats();
    counters.log_records = stats.records;
    counters.log_bytes = stats.bytes;
    counters.fdatasyncs = stats.fsyncs;
  }
  if (cleaner != nullptr) {
    const CleanerStats stats = cleaner->stats();
    counters.cleaner_passes = stats.passes;
    counters.cleaner_failed = stats.failed;
    counters.cleaner_segments = stats.segments;
    counters.cleaner_pages = stats.pages;
    counters.cleaner_page_bytes = stats.page_bytes;
    counters.cleaner_image_bytes = stats.image_bytes;
  }
  if (cold != nullptr) {
    const ColdStats stats = cold->stats();
    counters.cold_block_hits = stats.block_cache_hits;
    counters.cold_block_misses = stats.block_cache_misses;
    counters.cold_bytes_read = stats.bytes_read;
    counters.cold_bytes_written = stats.bytes_written;
  }
  const WaitStats so_far = WaitsSoFar();
  counters.waits_for_frames = so_far.frames.waits;
  counters.wait_for_frames_us = so_far.frames.us;
  counters.waits_for_log_room = so_far.log_room.waits;
  counters.wait_for_log_room_us = so_far.log_room.us;
  counters.waits_for_limiters = so_far.limiters.waits;
  counters.wait_for_limiters_us = so_far.limiters.us;
  counters.waits_for_table_room = so_far.table_room.waits;
  counters.wait_for_table_room_us = so_far.table_room.us;
  counters.waits_for_pages = so_far.pages.waits;
  counters.wait_for_pages_us = so_far.pages.us;
  return counters;
}

}  // namespace geardb::engine
