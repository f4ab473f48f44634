#include "tools/geardb/words.h"

#include "tools/geardb/text_table.h"

namespace geardb::cli {

std::string_view Word(End end) {
  switch (end) {
    case End::kGo:
      return "go";
    case End::kTerminated:
      return "terminated";
    case End::kTruncated:
      return "truncated";
    case End::kCut:
      return "cut";
    case End::kSkip:
      return "skip";
  }
  return "unknown";
}

std::string_view Word(TrajectoryState state) {
  switch (state) {
    case TrajectoryState::kOpen:
      return "open";
    case TrajectoryState::kClosed:
      return "closed";
    case TrajectoryState::kOrphaned:
      return "orphaned";
  }
  return "unknown";
}

std::string_view Word(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kPerTrajectory:
      return "per_trajectory";
    case ColumnKind::kRagged:
      return "ragged";
    case ColumnKind::kBlob:
      return "blob";
    case ColumnKind::kPerStep:
      break;
  }
  return "per_step";
}

std::string_view Word(Remover remover) {
  switch (remover) {
    case Remover::kNone:
      return "none";
    case Remover::kLifo:
      return "lifo";
    case Remover::kUniform:
      return "uniform";
    case Remover::kMinHeap:
      return "min_heap";
    case Remover::kMaxHeap:
      return "max_heap";
    case Remover::kFifo:
      break;
  }
  return "fifo";
}

std::string_view Word(ItemKind kind) { return ItemKindName(kind); }

std::string_view Word(SelectorKind kind) {
  switch (kind) {
    case SelectorKind::kUniform:
      return "uniform";
    case SelectorKind::kPrioritized:
      return "prioritized";
    case SelectorKind::kFifo:
      return "fifo";
    case SelectorKind::kLifo:
      return "lifo";
    case SelectorKind::kMinHeap:
      return "min_heap";
    case SelectorKind::kMaxHeap:
      return "max_heap";
    case SelectorKind::kEpoch:
      return "epoch";
    case SelectorKind::kWithoutReplacement:
      break;
  }
  return "without_replacement";
}

std::string_view Word(EdgeRule rule) {
  switch (rule) {
    case EdgeRule::kRequire:
      return "require";
    case EdgeRule::kClip:
      return "clip";
    case EdgeRule::kPad:
      return "pad";
    case EdgeRule::kRepeat:
      return "repeat";
    case EdgeRule::kShift:
      return "shift";
  }
  return "unknown";
}

std::string_view Word(FilterAction action) {
  return action == FilterAction::kExpire ? "expire" : "hide";
}

std::string_view Word(LimiterKind kind) {
  switch (kind) {
    case LimiterKind::kMinSize:
      return "min_size";
    case LimiterKind::kRatio:
      return "ratio";
    case LimiterKind::kQueue:
      return "queue";
    case LimiterKind::kStack:
      return "stack";
  }
  return "unknown";
}

std::string DrawGroupsText(const GroupSpec& group) {
  std::string text = "groups of " + std::to_string(group.count) + " by " + group.key;
  if (group.at_least > 0 && group.at_least < group.count) {
    text += ", ready with " + std::to_string(group.at_least);
  }
  if (group.deadline_ms > 0) text += " after " + std::to_string(group.deadline_ms) + " ms";
  return text;
}

std::string ItemsText(const PriorityTableSpec& spec) {
  if (spec.item == ItemKind::kTrajectory) return "whole trajectories";
  if (spec.item == ItemKind::kGroup) return DrawGroupsText(spec.group);
  const WindowRule& window = spec.window;
  std::string text = "windows {" + std::to_string(window.extent.before) + ", " +
                     std::to_string(window.extent.length) + ", " +
                     std::to_string(window.extent.after) + "}";
  if (window.stride != 1) text += ", stride " + std::to_string(window.stride);
  if (window.stride_from_end) text += " from the end";
  text += ", left " + std::string(Word(window.left)) + ", right " + std::string(Word(window.right));
  if (window.cross_ends) text += ", across ends";
  return text;
}

std::string InitialText(const PriorityTableSpec& spec) {
  switch (spec.initial) {
    case InitialPriority::kMax:
      return "max";
    case InitialPriority::kConstant:
      return NumberText(static_cast<double>(spec.initial_priority_value));
    case InitialPriority::kColumn:
      return "column " + spec.initial_priority_column;
  }
  return "unknown";
}

}  // namespace geardb::cli
