// EngineFaultRun: one database on a FaultEnv, one actor, and the oracle of what must be there. A
// test drives it with a seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/testing/engine_actor.h"
#include "tests/testing/engine_oracle.h"
#include "tests/testing/fault_env.h"

namespace geardb::testing {

/// Every call that finds something wrong keeps the first `wrong()` and does nothing after it.
class EngineFaultRun {
 public:
  explicit EngineFaultRun(uint64_t seed);
  ~EngineFaultRun();

  FaultEnv& env() { return env_; }
  Random& random() { return random_; }
  Database* database() { return database_.get(); }
  EngineActor* actor() { return actor_.get(); }
  EngineOracle& oracle() { return oracle_; }
  OpLog& log() { return *log_; }
  DatabaseOptions options();
  const std::string& wrong() const { return wrong_; }
  /// Of the actors before this one: EngineActor::large_sets().
  uint64_t large_sets() const { return large_sets_; }
  uint64_t large_patches() const { return large_patches_; }
  static constexpr const char* kDirectory = "store";

  /// Opens the database and begins with an actor. False when the env has crashed meanwhile.
  bool Start(bool may_be_full = false);
  /// Operations, until `count` are done or one fails.
  void Steps(uint64_t count);
  /// The process stops, wherever it is; what `kind` of crash it was decides what is certain.
  void Crash(CrashKind kind);
  /// Closes without a fault: all is certain.
  void Close();
  /// Opens and compares, opens again and compares. With `faults` the opens are interrupted, too.
  void Verify(bool faults = false);
  /// The same, once, of an open database.
  void Compare(Database* database);
  void Fail(const std::string& why);

 private:
  void End();

  FaultEnv env_;
  Random random_;
  EngineOracle oracle_{1};
  std::unique_ptr<OpLog> log_ = std::make_unique<OpLog>();
  EngineOracle::Survival survival_;
  bool compared_ = true;
  std::unique_ptr<Database> database_;
  std::unique_ptr<EngineActor> actor_;
  std::string wrong_;
  uint64_t large_sets_ = 0;
  uint64_t large_patches_ = 0;
};

}  // namespace geardb::testing
