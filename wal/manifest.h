// The manifest: the small file that says whose log this is, and where its current epoch begins.
//
// It is replaced as a whole (write beside it, sync, rename, sync the directory); where a full disk
// has no space for that, its one sector is overwritten.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "wal/log_format.h"

namespace geardb::wal {

/// Names of the files of a database's directory.
inline constexpr const char* kManifestName = "MANIFEST";
inline constexpr const char* kLockName = "LOCK";
inline constexpr const char* kReserveName = "RESERVE";
inline constexpr const char* kLogDirectoryName = "log";
inline constexpr const char* kRingName = "ring";
inline constexpr const char* kSegmentPrefix = "segment-";

/// "segment-000001" and back; false for another name.
std::string SegmentName(uint64_t number);
bool ParseSegmentName(const std::string& name, uint64_t* number);

/// What the manifest says. See LSN, epoch and cut in wal/FORMAT.md.
struct Manifest {
  Uuid uuid = {};
  Epoch epoch;       ///< Of the latest opening for writing.
  Lsn start = 0;     ///< Records at or beyond it are of `epoch`, those below of it or older.
  Lsn cut = kNoLsn;  ///< No record at or beyond it is valid; kNoLsn outside a recovery.
  uint64_t ring_bytes = 0;
  uint64_t segment_bytes = 0;

  /// The seed of every checksum in this database's log.
  uint64_t Seed() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// "6f1c…", 32 hexadecimal digits.
std::string UuidText(const Uuid& uuid);

/// The bytes of a manifest file, and back. Decoding answers Corruption, naming `file`, for bytes
/// that are no manifest or a damaged one, and Unsupported, with both versions, for a newer format.
std::vector<std::byte> EncodeManifest(const Manifest& manifest);
Result<Manifest> DecodeManifest(std::span<const std::byte> bytes, const std::string& file);

/// Reads `directory`/MANIFEST. NotFound when there is none.
Result<Manifest> ReadManifest(Env* env, const std::string& directory);

/// Replaces `directory`/MANIFEST. Durable on return; after an error or a crash it is the old one or
/// the new one. On a full disk the space of `directory`/RESERVE is used, so that a database can be
/// opened, and made anew behind it if that is possible; where somebody else took it, the manifest
/// is overwritten in place. Only a first manifest is then ResourceExhausted.
Status WriteManifest(Env* env, const std::string& directory, const Manifest& manifest);

}  // namespace geardb::wal
