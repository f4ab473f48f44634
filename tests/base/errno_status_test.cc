#include "base/errno_status.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb {
namespace {

TEST(ErrnoStatusTest, TheKindsOfFailures) {
  EXPECT_STATUS(kNotFound, ErrnoStatus(ENOENT, "open ", 7), "open 7: No such file or directory");
  EXPECT_STATUS(kIoError, ErrnoStatus(EIO, "read"), "read: Input/output error");
  for (const int lack : kSystemLacks) {
    const Status status = ErrnoStatus(lack, "map ", 3, " bytes");
    EXPECT_STATUS(kResourceExhausted, status, "map 3 bytes: ");
    EXPECT_TRUE(IsSystemLack(status));
    EXPECT_TRUE(IsSystemLack(status.WithContext("table 'x'")));
  }
}

TEST(ErrnoStatusTest, ABudgetIsNoSystem) {
  EXPECT_FALSE(IsSystemLack(Status::Ok()));
  EXPECT_FALSE(IsSystemLack(ErrnoStatus(EIO, "read")));
  EXPECT_FALSE(IsSystemLack(Status::ResourceExhausted("the frame budget of 3 bytes")));
  EXPECT_FALSE(IsSystemLack(Status::IoError("x: Cannot allocate memory")));
}

}  // namespace
}  // namespace geardb
