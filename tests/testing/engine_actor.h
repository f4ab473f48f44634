// EngineActor: random operations on a database, each written down before and after its call.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database.h"
#include "tests/testing/engine_oracle.h"
#include "tests/testing/fault_env.h"

namespace geardb::testing {

/// Creates the tables of OracleSpec that are missing.
Status MakeOracleTables(Database* database);

/// Used by one thread. The database and the log must outlive it.
class EngineActor {
 public:
  struct Place {
    Database* database;
    OpLog* log;
    uint64_t first_op;
  };
  EngineActor(const Place& place, const ActorModel& model, uint64_t seed)
      : place_(place), model_(model), random_(seed) {}

  /// A disk may be full: calls may be refused with ResourceExhausted.
  void set_may_be_full(bool may) { may_be_full_ = may; }
  /// Only these acknowledgements are asked for.
  void set_acks(std::vector<Ack> acks) { acks_ = std::move(acks); }
  /// Some appends to tables without a bound on steps have up to this many rows.
  void set_large_rows(uint32_t rows) { large_rows_ = rows; }
  /// Whether calls set more items than fit one record.
  void set_large_sets(bool large) { sets_large_ = large; }
  /// No other actor uses the database: SetAll is called, too.
  void set_alone(bool alone) { alone_ = alone; }
  /// Opens writers and a sampler, and goes on with the trajectories that were open.
  Status Begin();
  /// One operation. False when the log is full or a call failed; the operation then stays pending.
  bool Step();
  /// The failure, if there was one.
  const Status& failure() const { return failure_; }
  uint64_t refused() const { return refused_; }
  /// Calls that set more items than a record of the smallest ring has room for.
  static constexpr uint32_t kManyItems = 512;
  uint64_t large_sets() const { return large_sets_; }
  /// Patches with more bytes in their pieces than a record of the smallest ring has room for.
  static constexpr uint64_t kLargePatchBytes = 8 << 10;
  uint64_t large_patches() const { return large_patches_; }

 private:
  Op* NewOp(OpKind kind, uint32_t table);
  void Started();
  bool Finish(const Status& status, Op* op);
  void NoteLanes(Op* op);
  bool AppendRows(OpKind kind);
  bool AppendLanes();
  bool Cut();
  bool OnKept(OpKind kind);
  bool SetMany();
  bool SetAll();
  /// What `Set` or `SetAll` returned; it must have reached `items`.
  bool FinishSet(const Result<SetOutcome>& set, uint64_t items, Op* op);
  bool Patch();
  bool PatchMany();
  /// The call of a patch.
  bool CallPatch(Op* op);
  bool Next();
  bool WriteTag();
  std::string_view table_name(uint32_t table) const;

  const Place place_;
  ActorModel model_;
  Random random_;
  bool may_be_full_ = false;
  bool alone_ = false;
  bool sets_large_ = true;
  uint32_t large_rows_ = 0;
  std::vector<Ack> acks_ = {Ack::kMemory, Ack::kLog, Ack::kLog, Ack::kLog, Ack::kSync};
  Status failure_;
  uint64_t refused_ = 0;
  uint64_t large_sets_ = 0;
  uint64_t large_patches_ = 0;
  std::shared_ptr<Table> tables_[kOracleTables];
  std::unique_ptr<Writer> writers_[kOracleTables];
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace geardb::testing
