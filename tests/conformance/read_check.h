// Gather and Read of a table against the model, by NumPy's rules for indices and slices.
#pragma once

#include "tests/conformance/random_choice.h"
#include "tests/conformance/store_twin.h"

namespace geardb::conformance {

/// A few random gathers and reads. Failures are GoogleTest failures.
void CheckReads(StoreTwin* twin, RandomChoice* choice);

}  // namespace geardb::conformance
