// What `geardb info` shows of a database that is running: what its owner writes of itself.
#pragma once

#include <string_view>

#include "base/status.h"
#include "tools/geardb/command.h"

namespace geardb::cli {

/// `owner` says who has it: "… is held by process 123".
Result<int> ShowRunning(const Invocation& invocation, std::string_view owner);

}  // namespace geardb::cli
