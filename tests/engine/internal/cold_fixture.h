// What the tests of the cold store share: pages whose bytes follow from key and generation, and a
// model, a std::map that makes the same random changes as a store and is then compared with it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/internal/cold_store.h"
#include "tests/testing/fault_env.h"

namespace geardb::testing {

/// Four columns (a counter, random bytes, zeros, frames that change little), 8 rows a page.
const PageLayout& ColdLayout();

/// The frame of this page: its first rows follow from key and generation, the rest is 0xEE.
std::vector<std::byte> ColdFrameOf(const engine::ColdPageKey& key,
                                   const engine::ColdPageHeader& header);
/// The bytes of a chunk: they follow from its key and LSN.
std::vector<std::byte> ColdChunkBytes(const engine::ColdChunkKey& key, uint64_t lsn);

/// Puts that page.
Status PutColdPage(const engine::ColdPageKey& key, const engine::ColdPageHeader& header,
                   engine::ColdBatch* batch);
/// Reads one page: NotFound and so on, or Internal where it is not what ColdFrameOf says.
Status CheckColdPage(engine::ColdStore* store, const engine::ColdPageKey& key,
                     const engine::ColdPageHeader& expected);
/// Small enough that files are many and RocksDB flushes by itself.
engine::ColdStoreOptions SmallColdOptions();

/// Pages and chunks, changed by numbered steps: a step does the same wherever it is done on the
/// same state. Trajectory ids grow and are never used again.
class ColdModel {
 public:
  explicit ColdModel(uint64_t seed) : seed_(seed) {}

  uint64_t step() const { return step_; }
  static uint64_t LsnOf(uint64_t step) { return step * 16; }
  /// Does the next step here and, unless null, in a batch.
  Status Step(engine::ColdBatch* batch);
  /// Steps until this one is done, here alone.
  void StepTo(uint64_t step);
  /// What is wrong in the store, "" where it holds the same, exactly.
  std::string Compare(engine::ColdStore* store) const;

  const std::map<engine::ColdPageKey, engine::ColdPageHeader>& pages() const { return pages_; }

 private:
  Status Put(const engine::ColdPageKey& key, Random* random, engine::ColdBatch* batch);
  Status Append(Random* random, engine::ColdBatch* batch);
  Status RemoveOldest(Random* random, engine::ColdBatch* batch);
  Status RemoveSome(Random* random, engine::ColdBatch* batch);
  Status Remove(const engine::ColdTrajectoryRange& range, engine::ColdBatch* batch);
  Status ChangeChunk(Random* random, engine::ColdBatch* batch);
  void DropTable(engine::ColdBatch* batch);

  const uint64_t seed_;
  uint64_t step_ = 0;
  uint32_t table_ = 1;  // The newest of two.
  uint64_t next_id_ = 1;
  uint64_t oldest_id_ = 1;
  std::map<engine::ColdPageKey, engine::ColdPageHeader> pages_;
  std::map<engine::ColdChunkKey, uint64_t> chunks_;  // To its LSN.
};

}  // namespace geardb::testing
