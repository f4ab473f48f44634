#include "tools/quickstart/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "tools/quickstart/oracle.h"
#include "tools/quickstart/progress.h"
#include "tools/quickstart/replay.h"
#include "tools/quickstart/report.h"
#include "tools/quickstart/training.h"

namespace geardb::quickstart {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Fail(const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "quickstart: %s\n", text.c_str());
  return 1;
}
int Fail(const Status& status) { return Fail(status.ToString()); }

/// The directory of the store; a temporary one goes with the object.
class StoreDirectory {
 public:
  static Result<std::unique_ptr<StoreDirectory>> Make(const QuickstartOptions& options) {
    if (!options.directory.empty()) {
      return std::unique_ptr<StoreDirectory>(new StoreDirectory(options.directory, false));
    }
    const char* const named = ::getenv("TMPDIR");
    const std::string parent = named == nullptr || *named == '\0' ? "/tmp" : named;
    std::string path = parent + "/geardb-quickstart-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return Status::IoError("cannot make a directory in '", parent,
                             "': ", std::generic_category().message(errno));
    }
    return std::unique_ptr<StoreDirectory>(new StoreDirectory(path, !options.keep));
  }
  ~StoreDirectory() {
    std::error_code ignored;
    if (remove_) std::filesystem::remove_all(path_, ignored);
  }
  StoreDirectory(const StoreDirectory&) = delete;
  StoreDirectory& operator=(const StoreDirectory&) = delete;

  const std::string& path() const { return path_; }
  bool removed() const { return remove_; }

 private:
  StoreDirectory(std::string path, bool remove) : path_(std::move(path)), remove_(remove) {}
  std::string path_;
  bool remove_;
};

/// Runs `life` in a child, whose reports of appends go to `oracle`; returns waitpid's status.
Result<int> RunProcess(const std::function<int(AppendReporter*)>& life, Oracle* oracle) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return Status::IoError("pipe: ", std::generic_category().message(errno));
  }
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return Status::IoError("fork: ", std::generic_category().message(errno));
  if (child == 0) {
    ::close(ends[0]);
    ::signal(SIGINT, SIG_DFL);
    // A learner does not outlive its supervisor.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    AppendReporter reporter(ends[1]);
    const int code = life(&reporter);
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  const Status read = oracle->ReadAll(ends[0]);
  ::close(ends[0]);
  int wait_status = 0;
  while (::waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  GEARDB_RETURN_IF_ERROR(read);
  return wait_status;
}

TrainingOptions TrainingFor(const QuickstartOptions& options, const std::string& directory) {
  TrainingOptions training;
  training.seed = options.seed;
  training.steps = options.steps;
  training.replay.seed = options.seed;
  training.replay.steps = options.steps;
  training.replay.directory = directory;
  return training;
}

/// The first process: learns until it dies.
int FirstLife(const TrainingOptions& options, AppendReporter* reporter, Progress* progress) {
  auto training = Training::Open(options, reporter, progress);
  if (!training.ok()) return Fail(training.status());
  const Status status = (*training)->Run();
  return Fail(status.ok() ? Status::Internal("the learner outlived its kill") : status);
}

void SayWhatWasFound(Training* training, Progress* progress) {
  const RecoveryReport& recovery = training->replay().database().recovery();
  progress->Say("a new process reopened the store in " + Decimal(recovery.seconds * 1e3, 1) +
                " ms: it replayed " + Grouped(recovery.records) + " records, " +
                Decimal(static_cast<double>(recovery.bytes) / (1 << 20), 1) + " MiB" +
                (recovery.damaged_pages > 0 ? "; DAMAGE: " + recovery.note : ""));
  std::string text = "it goes on with the network of step " + Grouped(training->tag_steps()) +
                     " (the newest tag) and all " + Grouped(training->replay().steps()) + " steps";
  if (training->resumed()) {
    text += ", in the middle of episode " + std::to_string(training->resumed()->id) + " (at row " +
            std::to_string(training->resumed()->rows) + ")";
  }
  progress->Say(text);
}

/// The second process: reopens, learns to the end, and is judged.
int SecondLife(const TrainingOptions& options, AppendReporter* reporter, Progress* progress,
               Clock::time_point start) {
  auto opened = Training::Open(options, reporter, progress);
  if (!opened.ok()) return Fail(opened.status());
  Training* training = opened->get();
  SayWhatWasFound(training, progress);
  const Status status = training->Run();
  if (!status.ok()) return Fail(status);
  const double score = training->FinalScore();
  const bool solved = score >= kSolvedReturn;
  progress->Say((solved ? "solved" : "NOT SOLVED") + std::string(": greedy average return ") +
                Decimal(score, 1) + " over " + std::to_string(options.final_episodes) +
                " episodes, " + Decimal(kSolvedReturn, 0) + " needed");
  progress->Say("\n" + ReportText(&training->replay(), SecondsSince(start)));
  const Status closed = training->Close();
  if (!closed.ok()) return Fail(closed);
  if (solved) return 0;
  return Fail("the learner reached an average return of " + Decimal(score, 1) + ", below " +
              Decimal(kSolvedReturn, 0) + "; try another --seed or more --steps");
}

/// Opens the store without writing to it, and compares it with the oracle. Says what is wrong.
bool StoreHoldsAll(const TrainingOptions& options, const Oracle& oracle, Progress* progress) {
  DatabaseOptions store = StoreOptions(options.replay);
  store.read_only = true;
  store.error_if_exists = store.create_if_missing = false;
  const auto check = [&]() -> Result<OracleFindings> {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(options.replay.directory, store));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable(kTableName));
    GEARDB_ASSIGN_OR_RETURN(OracleFindings findings, oracle.Check(*table));
    GEARDB_RETURN_IF_ERROR(database->Close());
    return findings;
  };
  Result<OracleFindings> checked = check();
  if (!checked.ok()) {
    Fail(checked.status());
    checked = oracle.AllMissing();
  }
  const OracleFindings& findings = *checked;
  if (findings.good()) {
    progress->Say("nothing is lost: all " + Grouped(findings.acknowledged) +
                  " acknowledged rows (" + Grouped(findings.acknowledged - findings.final_rows) +
                  " steps, " + Grouped(findings.final_rows) +
                  " last observations) are there, byte for byte" +
                  (findings.pending > 0 ? ", and the call under way" : ""));
    return true;
  }
  Fail("of " + Grouped(findings.acknowledged) + " acknowledged rows only " +
       Grouped(findings.found) + " are there as they were\n" + findings.ToString());
  return false;
}

}  // namespace

int Supervise(const QuickstartOptions& options) {
  const Clock::time_point start = Clock::now();
  auto directory = StoreDirectory::Make(options);
  if (!directory.ok()) return Fail(directory.status());
  // Ctrl-C ends the learner; what is left to do is then done here.
  ::signal(SIGINT, SIG_IGN);
  Progress progress(::isatty(STDOUT_FILENO) != 0);
  progress.Say("CartPole-v1 by a DQN with prioritized replay, " + Grouped(options.steps) +
               " steps, seed " + std::to_string(options.seed) + ", store in " +
               (*directory)->path());
  progress.Say("half-way the learner's process is killed with SIGKILL, and a new one goes on");
  progress.Say("return: average of the last 20 episodes; greedy: of a trial without exploration\n");

  TrainingOptions training = TrainingFor(options, (*directory)->path());
  Oracle oracle;
  training.kill_at = options.steps / 2;
  training.replay.create = true;
  const auto first_life = [&](AppendReporter* reporter) {
    return FirstLife(training, reporter, &progress);
  };
  const Result<int> first = RunProcess(first_life, &oracle);
  if (!first.ok()) return Fail(first.status());
  if (!WIFSIGNALED(*first) || WTERMSIG(*first) != SIGKILL) {
    // It has said why it gave up.
    if (WIFEXITED(*first) && WEXITSTATUS(*first) != 0) return WEXITSTATUS(*first);
    return Fail("the first process ended before it was killed");
  }
  if (!StoreHoldsAll(training, oracle, &progress)) return 1;

  training.kill_at.reset();
  training.replay.create = false;
  const auto second_life = [&](AppendReporter* reporter) {
    return SecondLife(training, reporter, &progress, start);
  };
  const Result<int> second = RunProcess(second_life, &oracle);
  if (!second.ok()) return Fail(second.status());
  if (!WIFEXITED(*second)) {
    return Fail("the second process died of signal " + std::to_string(WTERMSIG(*second)));
  }
  const bool holds_all = StoreHoldsAll(training, oracle, &progress);
  if (!(*directory)->removed()) {
    progress.Say("the store stays: look into it with 'geardb info " + (*directory)->path() + "'");
  } else {
    progress.Say("the store is removed; with --keep it stays, for 'geardb info'");
  }
  return WEXITSTATUS(*second) != 0 || !holds_all ? 1 : 0;
}

}  // namespace geardb::quickstart
