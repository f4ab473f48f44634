// What an SST file of the cold store has.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/sst_file_reader.h>

#include <memory>
#include <set>
#include <string>

#include "base/types.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_keys.h"

namespace geardb::testing {

/// The trajectories of whose pages it has values, whether newer files have others or not.
inline std::set<TrajectoryId> TrajectoriesIn(const std::string& path) {
  std::set<TrajectoryId> ids;
  rocksdb::SstFileReader reader{rocksdb::Options()};
  EXPECT_TRUE(reader.Open(path).ok()) << path;
  const std::unique_ptr<rocksdb::Iterator> at(reader.NewIterator(rocksdb::ReadOptions()));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const auto key = engine::DecodeColdPageKey(engine::ViewOf(at->key()));
    if (key) ids.insert(key->trajectory);
  }
  return ids;
}

}  // namespace geardb::testing
