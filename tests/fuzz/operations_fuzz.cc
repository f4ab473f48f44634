// Bodies of records with good checksums and hostile content, into an empty database: each fits the
// state before it or is Corruption.
#include "tests/fuzz/record_feed.h"
#include "tests/fuzz/record_mutator.h"

namespace {

constexpr size_t kRecordsMax = 200;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  geardb::fuzzing::RecordFeed feed;
  if (!feed.ready()) return 0;
  for (const auto& record : geardb::fuzzing::ParseRecords({input, size}, kRecordsMax)) {
    if (!feed.Feed(record).ok()) return 0;
  }
  (void)feed.Finish();
  return 0;
}
