// Runs a program against a database and against the model, and says what is different first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/differential/program.h"

namespace geardb::differential {

/// What the model does wrong, in tests of the shrinker.
enum class PlantedBug : uint8_t {
  kNone = 0,
  kTruncatesNothing,  ///< Truncate leaves the rows.
  kForgetsDeleted,    ///< Delete leaves the item.
  kLosesOrphans,      ///< A reopen removes what nobody closed.
  kStacksTheEdge,     ///< A stack repeats the first row where it should be padded.
  kSumsOneMore,       ///< An n-step return has one reward more.
  kHoldsAPageMore,    ///< A bound in bytes is one page larger.
  kLosesTheLast,      ///< Of what a crash of the process or the machine leaves, the last change.
};

struct Difference {
  size_t step = 0;        ///< Its index in the program.
  std::string kind = {};  ///< What was compared, without its values: "truncate: first rows".
  std::string text = {};  ///< With them.
};

/// What happened in runs, to know that they did not miss it.
struct RunCounts {
  std::map<Op, uint64_t> done = {};     ///< Steps that were answered OK,
  std::map<Op, uint64_t> refused = {};  ///< or, as expected, with an error.
  uint64_t rows_compared = 0;
  uint64_t frames_dropped = 0;
  uint64_t frame_misses = 0;
  uint64_t log_page_reads = 0;
  uint64_t cold_page_reads = 0;
  uint64_t cleaner_passes = 0;
  uint64_t segments_recycled = 0;
  uint64_t images_opened = 0;  ///< Opens that took the index from the cold store.
  uint64_t rescales = 0;
  std::map<std::string, uint64_t> drawn = {};    ///< Rows, by selector.
  std::map<std::string, uint64_t> shown = {};    ///< Rows of groups, by a token budget, and so on.
  std::map<std::string, uint64_t> removed = {};  ///< Trajectories, by reason.
  std::map<std::string, uint64_t> crashes = {};  ///< Where there are faults: of what, and when.

  void Add(const RunCounts& other);
};

struct RunResult {
  std::optional<Difference> difference = {};
  RunCounts counts = {};
};

/// Deterministic: the database has no threads of its own, and its clock is the program's.
RunResult RunProgram(const Program& program, PlantedBug bug = PlantedBug::kNone);

}  // namespace geardb::differential
