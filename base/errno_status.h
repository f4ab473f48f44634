// ErrnoStatus: the Status for a system call that failed.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/status.h"

namespace geardb {

/// What a system may have too little of: space, a quota's share of it, descriptors, memory,
/// threads.
inline constexpr int kSystemLacks[] = {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EAGAIN};

/// For a call that failed with `error`, an errno value, which `what` describes. NotFound where
/// there is no such file, AlreadyExists where there is one, ResourceExhausted where the disk is
/// full or the process has too many descriptors or threads or too little memory, IoError for
/// anything else.
template <typename... Parts>
Status ErrnoStatus(int error, const Parts&... what) {
  const std::string words = std::system_category().message(error);
  if (error == ENOENT) return Status::NotFound(what..., ": ", words);
  if (error == EEXIST) return Status::AlreadyExists(what..., ": ", words);
  for (const int lack : kSystemLacks) {
    if (error == lack) return Status::ResourceExhausted(what..., ": ", words);
  }
  return Status::IoError(what..., ": ", words);
}

/// Whether a failure is the ResourceExhausted of an ErrnoStatus, which no budget of ours would
/// change: it ends with errno's words.
inline bool IsSystemLack(const Status& status) {
  if (status.code() != StatusCode::kResourceExhausted) return false;
  for (const int lack : kSystemLacks) {
    if (status.message().ends_with(": " + std::system_category().message(lack))) return true;
  }
  return false;
}

}  // namespace geardb
