// EngineOracle: what a database must hold after a crash, from the operations that its actors began
// and those that were acknowledged.
//
// Every actor (a thread, or the one program of a test without threads) writes each operation down
// before the call and completes the entry after it. Its operations take effect in this order, so
// after a crash the store holds, for each actor, the effect of its first j operations: j covers
// everything acknowledged at the level that the crash spares, and leaves out at most what was
// pending or acknowledged at a lower level. A call that sets many items is one operation: all of it
// is there or nothing.
//
// Rows say in their bytes which operation of which actor wrote them. What a capacity removed is
// absent; it must be older than all that is left, and no more of it than the capacity asks for:
// with the last that left, what is left would be too much (engine_oracle_capacity.cc).
//
// A Patch is one operation, too. Each of its values follows from the operation, the trajectory and
// the row, so a row shows which patch it has, in each of its columns.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"

namespace geardb::testing {

inline constexpr uint32_t kOracleLanes = 2;   ///< Lanes of an actor's writer in each table.
inline constexpr uint32_t kOracleTables = 3;  ///< See OracleSpec.
inline constexpr uint32_t kOracleTags = 3;    ///< Names of tags.

/// Tables: 0 "kept" keeps everything (final rows, priorities), 1 "ring" is a stream that trims by
/// steps, 2 "few" keeps the trajectories closed last. All have a second appended column group;
/// "kept" has a late one, for which its priority table "ready" waits, and a volatile one.
TableSpec OracleSpec(uint32_t table);

/// Columns that a Patch gives, as bits.
inline constexpr uint32_t kPatchAction = 1;   ///< Of the first group.
inline constexpr uint32_t kPatchExtra = 2;    ///< Of the second one.
inline constexpr uint32_t kPatchTarget = 4;   ///< Of the late one: "kept" alone.
inline constexpr uint32_t kPatchScratch = 8;  ///< Of the volatile one: "kept" alone.
inline constexpr int64_t kTargetFloats = 16;  ///< Of a row of "target".

enum class OpKind : uint32_t {
  kAppend,
  kAppendLanes,
  kAppendTrajectory,
  kCut,
  kRemove,
  kTruncate,
  kSet,
  kSetMany,
  kSetAll,      // Each item its own.
  kSetAllSame,  // One value for all.
  kPatch,
  kPatchMany,
  kResume,
  kNext,
  kTag,
};

enum class OpState : uint32_t { kUnused = 0, kPending, kDone, kRefused };

/// One operation. Plain bytes: it lies in memory shared with a child process.
struct Op {
  OpKind kind = OpKind::kAppend;
  std::atomic<OpState> state{OpState::kUnused};
  uint32_t table = 0;
  uint32_t lane = 0;
  uint32_t rows = 0;  ///< kSetMany: items; kPatch: of the span; kPatchMany: pages at most.
  Ack ack = Ack::kLog;
  std::array<End, kOracleLanes> ends{};  ///< kAppendLanes; else only the first is used.
  uint64_t target = 0;                   ///< Id for kRemove, kTruncate, kSet, kPatch, kResume.
  /// kTruncate, kSet, kPatch; of Items() (kSetMany), of what is kept (kPatchMany): the first.
  int64_t row = 0;
  uint32_t columns = 0;  ///< kPatch, kPatchMany: bits.
  float priority = 0;
  uint32_t tag_bytes = 0;
  // After the call.
  StatusCode code = StatusCode::kOk;
  std::array<uint64_t, kOracleLanes> ids{};  ///< Of the lanes that took part; after a refusal: what
                                             ///< is still open there.
  uint64_t draw_number = 0;
  Lsn end_lsn = 0;  ///< 0 where the call does not say.
};

/// The operations of one actor since the last check. `text` says why a child gave up.
struct OpLog {
  static constexpr uint32_t kCapacity = 2048;
  std::atomic<uint32_t> started{0};
  std::array<Op, kCapacity> ops;
};

/// All that an actor's operations should have left behind.
class ActorModel {
 public:
  struct Segment {
    uint64_t op = 0;
    uint32_t lane = 0;
    int64_t first_row = 0;
    int64_t rows = 0;  ///< Steps.
    bool has_final = false;
    End end = End::kGo;
    Lsn end_lsn = 0;
  };
  struct Trajectory {
    uint64_t id = 0;  ///< 0: not known, its append was pending.
    uint32_t table = 0;
    std::vector<Segment> segments;
    bool open = true;
    bool removed = false;
    bool absent = false;  ///< A capacity took it, or it was lost with a damaged page.
    bool seen = false;    ///< A check has found it.
    End end = End::kGo;
    bool cut_row_is_final = false;
    int64_t first_row = 0;
    Lsn closed_lsn = 0;
    std::map<int64_t, float> priorities;  ///< Set by hand.
    int64_t filled = 0;                   ///< The late group, by patches.
    /// By column bit and row: the operation that patched it last.
    std::map<std::pair<uint32_t, int64_t>, uint64_t> patched;

    int64_t rows_end() const;
    bool has_final() const;
  };
  using Key = std::pair<uint64_t, uint32_t>;  ///< Operation that opened it, lane.

  ActorModel() = default;
  explicit ActorModel(uint32_t actor) : actor_(actor) {}

  /// Adds the effect of operation `number`.
  void Apply(uint64_t number, const Op& op);
  Trajectory* OpenOn(uint32_t table, uint32_t lane);
  Trajectory* FindById(uint32_t table, uint64_t id);
  /// An item of priority table "per" of "kept".
  struct Item {
    Trajectory* trajectory;
    int64_t row;
  };
  /// Those of this actor, in no order that a call relies on.
  std::vector<Item> Items();
  /// Those that a kSetMany sets, in its order. It may come to one more than once.
  std::vector<Item> ItemsOf(const Op& op);
  /// Rows of a trajectory that a kPatch or kPatchMany gives values, in its order.
  struct Span {
    Trajectory* trajectory;
    int64_t first_row;
    int64_t rows;
  };
  std::vector<Span> SpansOf(const Op& op);
  void ForgetLane(uint32_t table, uint32_t lane) { lanes_[table][lane].reset(); }

  uint32_t actor() const { return actor_; }
  std::map<Key, Trajectory>& trajectories() { return trajectories_; }
  const std::map<Key, Trajectory>& trajectories() const { return trajectories_; }
  /// Number of the operation that wrote each tag last, and its size.
  const std::map<uint32_t, std::pair<uint64_t, uint32_t>>& tags() const { return tags_; }
  uint64_t next_draw() const { return next_draw_; }

 private:
  void AppendTo(uint64_t number, const Op& op, uint32_t lane, uint32_t rows, End end);
  void SetItems(uint64_t number, const Op& op);
  void PatchRows(uint64_t number, const Op& op);

  uint32_t actor_ = 0;
  std::map<Key, Trajectory> trajectories_;
  std::optional<Key> lanes_[kOracleTables][kOracleLanes];
  std::map<uint32_t, std::pair<uint64_t, uint32_t>> tags_;
  uint64_t next_draw_ = 0;
};

/// The rows that an operation writes on one lane: the arrays that a Writer takes.
struct OracleRows {
  OracleRows(uint32_t actor, uint64_t op, uint32_t lane, int64_t rows);
  static uint64_t KeyOf(uint32_t actor, uint64_t op, uint32_t lane, int64_t row);
  static void Fill(uint64_t key, float obs[4]);
  static std::array<uint32_t, 2> Extra(uint64_t key);

  int64_t rows;
  std::vector<uint64_t> keys;  ///< One more than rows: the final row's.
  std::vector<float> obs;
  std::vector<int32_t> actions;
  std::vector<uint32_t> extras;
};
/// What patch `op` puts into the columns of a row; `opener` is the key of the trajectory's row 0.
struct OraclePatchRow {
  OraclePatchRow(uint64_t op, uint64_t opener, int64_t row);
  int32_t action;
  std::array<uint32_t, 2> extra;
  std::array<float, kTargetFloats> target;
};
/// What operation `op` sets, when it is the `at`th that it sets, or sets all and `at` is 0.
float OraclePriority(uint64_t op, uint64_t id, int64_t row, uint64_t at);
std::vector<std::byte> OracleBlob(uint32_t actor, uint64_t op, uint32_t bytes);

/// A store after a crash.
struct StoreImage;

/// How much of a table's capacity is used.
struct OracleHeld {
  int64_t rows = 0;
  uint64_t trajectories = 0;
};

/// The actors' models, and the check of a store against them.
class EngineOracle {
 public:
  explicit EngineOracle(uint32_t actors);

  uint32_t actors() const { return static_cast<uint32_t>(models_.size()); }
  ActorModel& model(uint32_t actor) { return models_[actor]; }
  /// Number of the first operation in the logs of this round.
  uint64_t first_op() const { return first_op_; }

  /// What makes an operation certain to be there.
  struct Survival {
    Ack level = Ack::kLog;  ///< Acknowledged at this level or above…
    Lsn synced = 0;         ///< …or with its end at or below this.
  };
  /// Compares `database` with the models and the operations in `logs` (one per actor, or none: then
  /// exactly the models). On success the models are what the store holds, and the operations
  /// forgotten. Returns what is wrong, or nothing.
  std::string Check(Database* database, const std::vector<const OpLog*>& logs,
                    const Survival& survival);
  /// Trajectories of any table may be missing (a page was damaged); their ids are returned by name
  /// in the store's report.
  void set_damage(bool damage) { damage_ = damage; }
  uint64_t lost_to_damage() const { return lost_to_damage_; }

 private:
  std::string CheckActor(const StoreImage& image, const OpLog* log, const Survival& survival,
                         uint32_t actor);
  std::string Matches(const StoreImage& image, ActorModel* model) const;
  std::string MatchesTrajectory(const StoreImage& image, uint32_t actor,
                                ActorModel::Trajectory* trajectory) const;
  std::string CheckOrder(const StoreImage& image) const;
  std::string CheckAges() const;
  // What a capacity may have removed since the last check, when the models were `before`.
  struct Evicted;
  Evicted FindEvicted(const std::vector<ActorModel>& before, uint32_t table) const;
  std::string CheckHeld(const std::vector<ActorModel>& before,
                        const OracleHeld (&held)[kOracleTables]);

  std::vector<ActorModel> models_;
  uint64_t first_op_ = 1;
  bool damage_ = false;
  uint64_t lost_to_damage_ = 0;
  int64_t rows_before_ = 0;  // Of the table with a bound on steps, at the last check.
  Lsn newest_there_ = 0;     // Ends of records, by what was found this time.
  Lsn oldest_missing_ = UINT64_MAX;
};

}  // namespace geardb::testing
