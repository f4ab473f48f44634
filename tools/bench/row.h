// Row: one line of the table of figures, and what it is measured with.
//
// A row is measured in repetitions. Each makes a Figure: what GearDB reached and what the row's
// ceiling reached, one right after the other, so that a busy moment of the machine hits both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace geardb::bench {

/// What the command line says.
struct Settings {
  std::string directory = ".";  ///< Stores are made (and removed) below it.
  std::string peers = {};       ///< A Python environment with the peers; empty: none are measured.
  std::string out = {};         ///< JSON file; empty: none.
  bool allow_busy = false;      ///< Measure beside compilers too; the result is void then.
  int repetitions = 0;          ///< Instead of the rows' own; 0: those.
  uint64_t scale = 1;           ///< Rows of whole stores take an n-th of their size.
  bool tiny = false;            ///< Small sizes: shows that a row works, its figures mean nothing.
};

/// What a figure is measured in.
enum class Unit : uint8_t {
  kBytesPerSecond,
  kPerSecond,
  kMicroseconds,
  kNanoseconds,
  kBytes,
  kTimes,  ///< A ratio by itself.
};

/// One repetition.
struct Figure {
  double value = 0;
  double ceiling = 0;  ///< In the same unit; 0 where there is none.
  std::vector<std::pair<std::string, double>> more = {};  ///< Reported beside them.
};

/// What a row must reach.
struct Target {
  enum class Kind : uint8_t {
    kReported,      ///< Nothing: the figure is reported.
    kRatioAtLeast,  ///< value / ceiling, for rates.
    kRatioAtMost,   ///< value / ceiling, for times.
    kValueAtMost,   ///< value.
    /// So many times the peer's rate or, where that is less, `ratio` of the ceiling.
    kTimesPeerAtLeast,
  };
  Kind kind = Kind::kReported;
  double bound = 0;
  double ratio = 0;
};

/// The same work done by another library, from Python: tools/bench/peers/<name>_peer.py with these
/// arguments. No name: no peer does it.
struct PeerWork {
  std::string name = {};
  std::string arguments = {};
};

/// What stays from one repetition to the next: a store, buffers.
class Scene {
 public:
  virtual ~Scene() = default;
  virtual Result<Figure> Measure() = 0;
  /// What a reader must know of how it was measured; empty: nothing.
  virtual std::string note() const { return {}; }
};

/// Keeps one thing that consecutive rows share, and drops it when another is wanted.
class Keeper {
 public:
  template <typename T>
  Result<std::shared_ptr<T>> Get(const std::string& key,
                                 const std::function<Result<std::shared_ptr<T>>()>& make) {
    if (key != key_) {
      Drop();
      GEARDB_ASSIGN_OR_RETURN(std::shared_ptr<T> made, make());
      kept_ = made;
      key_ = key;
    }
    return std::static_pointer_cast<T>(kept_);
  }
  void Drop() {
    kept_.reset();
    key_.clear();
  }

 private:
  std::string key_;
  std::shared_ptr<void> kept_;
};

/// What a row may use to set itself up.
struct Bench {
  Settings settings;
  Keeper keeper;
};

/// See Row::logarithmic.
inline constexpr double kGrowthMax = 4;
inline constexpr const char* kGrowthFlag = "not O(log n)";

struct Row {
  std::string name;          ///< family.what, in lower case.
  int64_t size = 0;          ///< What its cost may depend on.
  std::string size_of = {};  ///< "items": what `size` counts.
  std::string what = {};     ///< What is measured, with all sizes.
  std::string ceiling = {};  ///< What its ceiling is; empty: none.
  Unit unit = Unit::kBytesPerSecond;
  Target target = {};
  int repetitions = 11;
  std::function<Result<std::unique_ptr<Scene>>(Bench*)> make = {};
  PeerWork peer = {};
  bool keeps = false;  ///< Uses the keeper; otherwise what is kept is dropped before.
  /// A time that may grow as the logarithm of the size: one of more than kGrowthMax times that of
  /// the row of this name measured first, which has the smallest size, is flagged.
  bool logarithmic = false;
  bool told = false;  ///< In the README, though it has no target.
};

/// Families; each in a file of its own.
std::vector<Row> GatherRows(const Settings& settings);
std::vector<Row> SelectorRows(const Settings& settings);
std::vector<Row> SelectorGrowthRows(const Settings& settings);
std::vector<Row> CleanerRows(const Settings& settings);
std::vector<Row> FirstBatchRows(const Settings& settings);
std::vector<Row> AmplificationRows(const Settings& settings);
std::vector<Row> MemoryRows(const Settings& settings);
std::vector<Row> AppendCleanerRows(const Settings& settings);
std::vector<Row> AppendStallRows(const Settings& settings);
std::vector<Row> ColdDrawRows(const Settings& settings);
std::vector<Row> DrawRows(const Settings& settings);
std::vector<Row> AppendMemoryRows(const Settings& settings);
std::vector<Row> AppendLogRows(const Settings& settings);
std::vector<Row> AppendStepRows(const Settings& settings);
std::vector<Row> AppendSyncRows(const Settings& settings);
std::vector<Row> RecoveryRows(const Settings& settings);
std::vector<Row> BytesRows(const Settings& settings);
std::vector<Row> TagRows(const Settings& settings);
std::vector<Row> AgainstReverbRows(const Settings& settings);

/// All of them, in the order of the table.
std::vector<Row> AllRows(const Settings& settings);

}  // namespace geardb::bench
