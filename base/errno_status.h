// ErrnoStatus: the Status for a system call that failed.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/status.h"

namespace geardb {

/// For a call that failed with `error`, an errno value, which `what` describes. NotFound where
/// there is no such file, ResourceExhausted where the disk is full or the process has too many
/// descriptors or too little memory, IoError for anything else.
template <typename... Parts>
Status ErrnoStatus(int error, const Parts&... what) {
  const std::string words = std::system_category().message(error);
  switch (error) {
    case ENOENT:
      return Status::NotFound(what..., ": ", words);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Status::ResourceExhausted(what..., ": ", words);
    default:
      return Status::IoError(what..., ": ", words);
  }
}

}  // namespace geardb
