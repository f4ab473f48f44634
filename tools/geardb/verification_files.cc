// What geardb verify says of the log's files by themselves.

#include <utility>

#include "tools/geardb/text_table.h"
#include "tools/geardb/verification.h"
#include "wal/segment_check.h"

namespace geardb::cli {

Status Verification::CheckFiles() {
  const std::string log_directory = files_->log_directory();
  GEARDB_ASSIGN_OR_RETURN(const auto names, Env::Posix()->List(log_directory));
  bool has_ring = false;
  for (const std::string& name : names) {
    const std::string path = JoinPath(log_directory, name);
    uint64_t number = 0;
    // What is wrong with one file is said, and the others are looked at all the same.
    Status checked;
    if (name == wal::kRingName) {
      has_ring = true;
      const auto wrong = WrongSize(path, files_->manifest.ring_bytes);
      checked = wrong.status();
      if (wrong.ok() && !wrong->empty()) AddProblem(path, kNoLsn, *wrong);
    } else if (wal::ParseSegmentName(name, &number)) {
      ++verified_.segment_files;
      checked = CheckSegmentFile(path);
    } else {
      notes_.push_back("'" + Printable(path) + "' is no file of a database");
    }
    if (checked.code() == StatusCode::kCorruption) {
      AddProblem(path, kNoLsn, std::string(checked.message()));
    } else {
      GEARDB_RETURN_IF_ERROR(checked);
    }
  }
  if (!has_ring) AddProblem(files_->ring_path(), kNoLsn, "the ring is missing");
  return Status::Ok();
}

Status Verification::CheckSegmentFile(const std::string& path) {
  Env* env = Env::Posix();
  GEARDB_RETURN_IF_ERROR(wal::CheckFreeSegment(env, path, files_->manifest));
  GEARDB_ASSIGN_OR_RETURN(const bool zeros, wal::HoldsOnlyZeros(env, path));
  if (!zeros) {
    GEARDB_ASSIGN_OR_RETURN(std::string wrong, WrongSize(path, files_->manifest.segment_bytes));
    if (!wrong.empty()) odd_segments_.push_back({path, kNoLsn, std::move(wrong)});
    return Status::Ok();
  }
  GEARDB_ASSIGN_OR_RETURN(const auto file, env->OpenFile(path, {}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes != files_->manifest.segment_bytes) {
    notes_.push_back("'" + Printable(path) + "' has " + std::to_string(bytes) +
                     " bytes: a spare file that a crash or a full disk has cut short; the next "
                     "open for writing makes it whole");
  }
  return Status::Ok();
}

Result<std::string> Verification::WrongSize(const std::string& path, uint64_t expected) const {
  GEARDB_ASSIGN_OR_RETURN(const auto file, Env::Posix()->OpenFile(path, {}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes == expected) return std::string();
  return "the file has " + std::to_string(bytes) + " bytes, expected " + std::to_string(expected);
}

// A segment that was given free stays as it was until it is written over, and one that the log ends
// in has nothing behind that. Where what is missing was needed, that was found by now.
void Verification::SettleSegments() {
  const bool needed = !problems_.empty() || !memory_.ok() || !newer_.ok();
  for (Problem& segment : odd_segments_) {
    if (needed) {
      problems_.insert(problems_.begin(), std::move(segment));
    } else {
      notes_.push_back("'" + Printable(segment.place) + "': " + segment.text +
                       "; nothing that is there needs what is missing, and who writes it makes "
                       "it whole: no damage");
    }
  }
}

}  // namespace geardb::cli
