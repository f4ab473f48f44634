// quickstart: learns CartPole out of a GearDB table, and survives its own SIGKILL on the way.

#include <CLI/CLI.hpp>
#include <string>

#include "tools/quickstart/supervisor.h"

int main(int argc, char** argv) {
  using namespace geardb::quickstart;  // NOLINT: the program of this namespace
  QuickstartOptions options;
  CLI::App app(
      "Learns CartPole-v1 (a double DQN with prioritized replay) out of a GearDB table. Half-way "
      "the learner kills itself with SIGKILL; a new process reopens the store and goes on. Exits 0 "
      "when the greedy average return reaches 475 and nothing acknowledged was lost, 1 when not, 2 "
      "on a usage error.");
  app.add_option("--dir", options.directory,
                 "Directory of the store, which must not hold one yet; it stays. Default: a new "
                 "one under $TMPDIR, removed at the end");
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
  app.add_option("--steps", options.steps, "Steps of the environment")
      ->check(CLI::Range(kStepsMin, uint64_t{100'000'000}))
      ->capture_default_str();
  app.add_flag("--keep", options.keep, "Keep the temporary store");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Supervise(options);
}
