// Report: the short table at the end of a quickstart.
#pragma once

#include <string>

#include "tools/quickstart/replay.h"

namespace geardb::quickstart {

/// What the store holds and how fast it answered since it was reopened, for people.
std::string ReportText(Replay* replay, double total_seconds);

}  // namespace geardb::quickstart
