// CrashPoint: named places in the code at which a test may stop the process or copy its files.
//
// A point costs one load while no test has installed a hook.
#pragma once

#include <atomic>

namespace geardb {

/// Called with the name of each point that is passed, on the thread that passes it.
using CrashHook = void (*)(const char* name);

namespace internal {
inline std::atomic<CrashHook> crash_hook{nullptr};
}  // namespace internal

/// Installs `hook`, or none with nullptr. For tests; it must be callable from any thread.
inline void SetCrashHook(CrashHook hook) {
  internal::crash_hook.store(hook, std::memory_order_release);
}

/// Marks a place where a crash is interesting. The log has "copy_into_ring", "drain", "rotate",
/// "sync_begun", "sync", "synced", "manifest", and in an open "recovery_read", "recovery_cut",
/// "recovery_drain", "recovery_drained_some", "recovery_sync", "recovery_epoch", "recovery_serve";
/// the engine has "take_frames", "copy_rows", "append_evicts", "removal", "patch", "columns",
/// "write_batch", "handed_over" and "tag", its cleaner "clean", "index_chunk", "image_taken",
/// "flush", "recycle" and "compaction", the cold store "cold_flushed", "cold_files_dropped",
/// "cold_covered" and "cold_manifest_copy"; a repair "repair_keep", "repair_cold", "repair_head",
/// "repair_segment", "repair_ring", "repair_manifest", "repair_aside", "repair_remove",
/// "repair_blob" and "repair_cold_pages".
inline void CrashPoint(const char* name) {
  // Loaded once: it may be taken away beside this.
  if (const CrashHook hook = internal::crash_hook.load(std::memory_order_acquire)) [[unlikely]] {
    hook(name);
  }
}

}  // namespace geardb
