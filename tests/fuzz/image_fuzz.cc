// Any bytes as the chunks of an image: they are refused as Corruption, or make a database that can
// be drawn from and changed, and whose image is the same again.
#include "base/check.h"
#include "tests/fuzz/image_feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  geardb::fuzzing::ImageFeed feed;
  if (!feed.ready()) return 0;
  const geardb::Status status = feed.Load(geardb::fuzzing::ParseImage({input, size}));
  if (status.ok()) {
    feed.Use();
    return 0;
  }
  const geardb::StatusCode code = status.code();
  GEARDB_CHECK(code == geardb::StatusCode::kCorruption ||
               code == geardb::StatusCode::kUnsupported ||
               code == geardb::StatusCode::kResourceExhausted);
  return 0;
}
