// The words that the tool uses for the enumerations of the public headers: in tables for people
// and, unchanged, as values in JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "engine/schema.h"
#include "engine/table.h"

namespace geardb::cli {

std::string_view Word(End end);
std::string_view Word(TrajectoryState state);
std::string_view Word(ColumnKind kind);
std::string_view Word(Remover remover);
std::string_view Word(ItemKind kind);
std::string_view Word(SelectorKind kind);
std::string_view Word(EdgeRule rule);
std::string_view Word(LimiterKind kind);
std::string_view Word(FilterAction action);

/// "groups of 4 by prompt, ready with 2 after 500 ms".
std::string DrawGroupsText(const GroupSpec& group);
/// "window {0, 1, 3}, stride 1, left repeat, right clip", "whole trajectories", or the above.
std::string ItemsText(const PriorityTableSpec& spec);
/// "the largest yet", "1", "column 'score'".
std::string InitialText(const PriorityTableSpec& spec);

}  // namespace geardb::cli
