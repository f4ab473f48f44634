// Images of a living store, each compared with what the log before it makes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/image_core.h"
#include "wal/open_log.h"

namespace geardb::testing {

class StoreImages {
 public:
  /// One as of now.
  void Take(const Database& database) {
    const auto core = CoreOf(database);
    MutexLock lock(&core->commit);
    ASSERT_OK(core->CatchUp());
    Taken taken{.lsn = core->log->end(), .image = {}};
    ASSERT_OK(engine::SaveDatabase(core.get(), taken.lsn, taken.image.sink()));
    taken_.push_back(std::move(taken));
  }
  /// Of the store in `directory`, which is closed: images are what the log before them makes, and
  /// the log behind them makes the same of both.
  void Check(const std::string& directory) const {
    std::vector<KeptRecord> log;
    ASSERT_OK(wal::OpenLog(Env::Posix(), directory, {.log = {}, .read_only = true},
                           [&](const wal::RecordView& record) {
                             log.emplace_back(record);
                             return Status::Ok();
                           }));
    for (const Taken& taken : taken_) {
      ImageCore replayed;
      size_t next = 0;
      for (; next < log.size() && log[next].record.lsn < taken.lsn; ++next) {
        ASSERT_OK(replayed.Replay(log[next]));
      }
      ImageCore loaded;
      ASSERT_OK(loaded.Load(taken.image, taken.lsn));
      ASSERT_EQ(loaded.Dump(), replayed.Dump());
      loaded.TakeFrames(&replayed);
      for (; next < log.size(); ++next) {
        ASSERT_OK(replayed.Replay(log[next]));
        ASSERT_OK(loaded.Replay(log[next]));
      }
      ASSERT_EQ(loaded.Dump(), replayed.Dump());
    }
  }

 private:
  struct Taken {
    Lsn lsn = 0;
    ImageChunks image;
  };
  std::vector<Taken> taken_;
};

}  // namespace geardb::testing
