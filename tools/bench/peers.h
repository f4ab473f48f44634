// Peers: the same work done by another library, from Python, in the same run.
#pragma once

#include <optional>
#include <string>

#include "tools/bench/row.h"

namespace geardb::bench {

/// Runs the row's peer in the environment that the settings name, and returns its figure in the
/// row's unit. Nothing when there is no environment or no peer for this row; when it fails, nothing
/// and a word in `note`.
std::optional<double> MeasurePeer(const Settings& settings, const Row& row, std::string* note);

}  // namespace geardb::bench
