// geardb_bench: measures the table of figures. `--help` lists its options; what is not its own goes
// to Google Benchmark (--benchmark_filter=draw, --benchmark_list_tests).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/machine.h"
#include "tools/bench/reporter.h"
#include "tools/bench/row.h"

namespace geardb::bench {
namespace {

constexpr const char* kHelp =
    "geardb_bench [options] [--benchmark_filter=<regex>] [--benchmark_list_tests]\n"
    "  --directory=<dir>  where stores are made and removed; on the disk to measure (default .)\n"
    "  --out=<file>       results as JSON\n"
    "  --peers=<venv>     a Python environment with cpprb and dm-reverb: measures them\n"
    "  --allow-busy       measure beside a running compiler; the figures are void\n"
    "  --repetitions=<n>  of each row, instead of its own number\n"
    "  --scale=<n>        whole stores of an n-th of their size\n"
    "  --tiny             small sizes: shows that each row works\n";

/// The scene of the row that is being measured; another row's takes its place.
class Stage {
 public:
  explicit Stage(Bench* bench) : bench_(bench) {}

  Result<Scene*> Of(const Row& row) {
    if (row_ != &row) {
      row_ = &row;
      failed_ = Begin(row);
    }
    if (!failed_.ok()) return failed_;
    return scene_.get();
  }
  /// All other repetitions fail, too: Google Benchmark 1.7 ends with a signal in a row of which
  /// only the first has.
  void Fail(const Status& why) { failed_ = why; }

 private:
  Status Begin(const Row& row) {
    scene_.reset();
    if (!row.keeps) bench_->keeper.Drop();
    GEARDB_ASSIGN_OR_RETURN(scene_, row.make(bench_));
    if (row.repetitions == 1) return Status::Ok();
    return scene_->Measure().status();  // Warms up.
  }

  Bench* const bench_;
  const Row* row_ = nullptr;
  Status failed_;
  std::unique_ptr<Scene> scene_;
};

void Measure(const Row& row, Stage* stage, benchmark::State& state) {
  for (auto _ : state) {
    const auto scene = stage->Of(row);
    if (!scene.ok()) {
      state.SkipWithError(scene.status().ToString().c_str());
      return;
    }
    bool busy = !BusyPrograms().empty();
    const Stopwatch watch;
    const auto figure = (*scene)->Measure();
    state.SetIterationTime(watch.seconds());
    if (!figure.ok()) {
      stage->Fail(figure.status());
      state.SkipWithError(figure.status().ToString().c_str());
      return;
    }
    busy |= !BusyPrograms().empty();
    state.counters["value"] = figure->value;
    state.counters["ceiling"] = figure->ceiling;
    state.counters["ratio"] = figure->ceiling > 0 ? figure->value / figure->ceiling : 0;
    state.counters["busy"] = busy ? 1 : 0;
    state.counters["load"] = LoadAverage();
    for (const auto& [name, value] : figure->more) state.counters[name] = value;
    state.SetLabel((*scene)->note());
  }
}

/// Takes the options that are ours out of the arguments; false for --help.
bool ReadOptions(std::vector<char*>* arguments, Settings* settings) {
  std::vector<char*> others;
  for (char* argument : *arguments) {
    const std::string text = argument;
    std::string number;
    const auto value = [&](const char* name, std::string* into) {
      if (text.rfind(name, 0) != 0) return false;
      *into = text.substr(std::strlen(name));
      return true;
    };
    if (text == "--help" || text == "-h") return false;
    if (text == "--allow-busy") {
      settings->allow_busy = true;
    } else if (text == "--tiny") {
      settings->tiny = true;
    } else if (value("--scale=", &number)) {
      settings->scale = static_cast<uint64_t>(std::max(std::atoi(number.c_str()), 1));
    } else if (value("--repetitions=", &number)) {
      settings->repetitions = std::max(std::atoi(number.c_str()), 1);
    } else if (!value("--directory=", &settings->directory) && !value("--out=", &settings->out) &&
               !value("--peers=", &settings->peers)) {
      others.push_back(argument);
    }
  }
  *arguments = others;
  return true;
}

int Run(int argc, char** argv) {
  Bench bench;
  std::vector<char*> arguments(argv, argv + argc);
  if (!ReadOptions(&arguments, &bench.settings)) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  const std::vector<std::string> busy = BusyPrograms();
  if (!busy.empty() && !bench.settings.allow_busy) {
    std::fprintf(stderr,
                 "geardb_bench: %s is running; figures taken beside it mean nothing "
                 "(--allow-busy takes them all the same)\n",
                 busy.front().c_str());
    return 1;
  }

  std::vector<Row> rows = AllRows(bench.settings);
  std::map<std::string, const Row*> by_name;
  Stage stage(&bench);
  for (Row& row : rows) {
    if (bench.settings.tiny) row.repetitions = 1;
    if (bench.settings.repetitions > 0) row.repetitions = bench.settings.repetitions;
    const std::string name = row.name + ":" + std::to_string(row.size);
    by_name[name] = &row;
    benchmark::RegisterBenchmark(
        name.c_str(), [&row, &stage](benchmark::State& state) { Measure(row, &stage, state); })
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(row.repetitions);
  }
  RowReporter reporter(&bench, &by_name);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (!bench.settings.out.empty()) {
    std::ofstream file(bench.settings.out);
    file << reporter.Json(DescribeMachine(bench.settings.directory));
    if (!file.flush()) {
      std::fprintf(stderr, "geardb_bench: cannot write %s\n", bench.settings.out.c_str());
      return 1;
    }
  }
  for (const RowResult& result : reporter.results()) {
    if (!result.error.empty()) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace geardb::bench

int main(int argc, char** argv) { return geardb::bench::Run(argc, argv); }
