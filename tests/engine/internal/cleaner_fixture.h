// CleanerStoreTest: a store whose log holds eight segments, with what its cleaner has done.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "tests/engine/frames_fixture.h"
#include "tests/engine/internal/cold_fault_files.h"

namespace geardb {

class CleanerStoreTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;  // Eight segments.
    FramesTest::SetUp();
  }
  Status CleanAll() { return testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true); }
  engine::CleanerStats Cleaned() { return testing::CoreOf(*database_)->cleaner->stats(); }
  /// The cold store, which has nothing yet, gets a disk that can be filled.
  std::shared_ptr<testing::ColdFaultFiles> UseFaultFiles() {
    auto files = std::make_shared<testing::ColdFaultFiles>();
    const auto core = testing::CoreOf(*database_);
    core->cleaner.reset();
    core->cold = std::make_unique<engine::ColdTier>(
        Env::Posix(), dir_->path(),
        engine::ColdStoreOptions{.files = files,
                                 .clock = std::make_shared<testing::ColdHastyClock>()});
    core->cleaner = std::make_unique<engine::Cleaner>(core.get(), core->cold.get());
    return files;
  }
  uint64_t LogBytes() const {
    const auto core = testing::CoreOf(*database_);
    return core->log->published() - core->log_released.load();
  }
  uint64_t BytesIn(const std::string& name) const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_->path() + "/" + name)) {
      std::error_code gone;  // RocksDB deletes files at any time.
      const uint64_t size = entry.file_size(gone);
      if (!gone && entry.path().filename() != engine::kColdReserveName) bytes += size;
    }
    return bytes;
  }
  /// The trajectories whose number is one that leaves.
  template <typename Leaves>
  void RemoveNumbers(const Leaves& leaves) {
    std::vector<TrajectoryId> gone;
    for (const auto& [id, number] : numbers_) {
      if (leaves(number)) gone.push_back(id);
    }
    for (const TrajectoryId id : gone) numbers_.erase(id);
    ASSERT_OK(table_->Remove(gone));
  }
  void RemoveAll() {
    RemoveNumbers([](int64_t) { return true; });
  }
};

}  // namespace geardb
