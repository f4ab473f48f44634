// Shrink: from a program that shows a difference to a short one that shows the same kind of it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "tests/differential/program.h"
#include "tests/differential/run.h"

namespace geardb::differential {

/// The difference that a program shows.
using ShowsDifference = std::function<std::optional<Difference>(const Program&)>;

struct Shrunk {
  Program program = {};
  Difference difference = {};
  size_t runs = 0;
};

/// Delta debugging (Zeller & Hildebrandt, "Simplifying and isolating failure-inducing input",
/// 2002): steps are taken out in pieces, half as large each time nothing more can go, down to
/// single ones; then numbers are lowered, to 0 or by halves. What is kept shows a difference of
/// the kind of the first. `program` shows one. Ends after `runs_max` runs with what it has.
Shrunk Shrink(const Program& program, const ShowsDifference& shows, size_t runs_max = 3000);

}  // namespace geardb::differential
