// The example of the README, which shows what stands between the two marks. tests/tools/example
// holds them equal, and runs this program: example DIRECTORY.
#include <cstdio>
#include <vector>

#include "engine/database.h"

int main(int argc, char** argv) {
  using namespace geardb;  // NOLINT: as in a program of yours
  const char* directory = argc > 1 ? argv[1] : "experience";
  // README: begin
  TableSpec spec{.name = "replay", .final_row = true};
  spec.columns = {{.name = "obs", .shape = {4}, .in_final_row = true}, {.name = "reward"}};
  spec.priority_tables = {{.name = "per", .window = {.extent = {.after = 3}}}};
  auto database = Database::Open(directory, {}).value();
  auto table = database->OpenOrCreateTable(spec).value();

  // An actor appends an episode of 50 steps. Once the call returns, no SIGKILL takes it away.
  auto writer = table->NewWriter({}).value();
  std::vector<float> obs(50 * 4, 0.5f), reward(50, 1.0f), last_obs(4, 0.5f);
  const ColumnValue final{"obs", TensorView::Of<float>(last_obs)};
  auto appended = writer->AppendTrajectory(
      {{"obs", TensorView::Of<float>(obs, {50, 4})}, {"reward", TensorView::Of<float>(reward)}},
      {.end = End::kTerminated, .final = {&final, 1}});

  // A learner draws 64 steps by priority, with 3-step returns, and gives them new priorities.
  auto per = table->OpenPriorityTable("per").value();
  SamplerOptions options{.batch = 64, .n_step = NStep{.reward_column = "reward", .n = 3}};
  options.views = {{.column = "obs"},
                   {.column = "obs", .name = "later", .rows = {.bootstrap = true}}};
  auto sampler = per->NewSampler(options).value();
  Batch batch = sampler->Next().value();
  TensorView now = batch["obs"], later = batch["later"], returns = batch["nstep.return"];
  std::vector<float> errors(64, 0.1f);  // What your network makes of them.
  auto updated = per->Set(batch.handles(), errors);
  // README: end
  std::printf("trajectory %llu, obs %s, later %s, returns %s, %llu priorities set\n",
              static_cast<unsigned long long>(appended->id), now.shape.ToString().c_str(),
              later.shape.ToString().c_str(), returns.shape.ToString().c_str(),
              static_cast<unsigned long long>(updated->applied));
  return appended.ok() && updated.ok() ? 0 : 1;
}
