// What a test may say of the end of a log that is open.
#pragma once

#include <gtest/gtest.h>

#include "engine/database.h"
#include "wal/log_format.h"

namespace geardb::testing {

/// Nothing was written since the log ended there: but for a seal, which the log writes by itself,
/// and later, once everything before it is synced. A record that has something to say is larger.
inline void ExpectNothingWritten(const Database& database, Lsn end) {
  const Lsn now = database.Stats().log_end;
  EXPECT_TRUE(now == end || now == end + wal::kSealRecordBytes) << now << ", expected " << end;
}

}  // namespace geardb::testing
