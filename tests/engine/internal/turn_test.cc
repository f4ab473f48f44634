#include "engine/internal/turn.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

TEST(TurnTest, OneAtATime) {
  Turn turn;
  {
    const Turn::Taken one(&turn, Deadline::Infinite());
    EXPECT_TRUE(one.ok());
    EXPECT_FALSE(Turn::Taken(&turn, Deadline::Now()).ok());
    EXPECT_FALSE(Turn::Taken(&turn, Deadline::AfterMs(1)).ok());  // Nor has that one given it back.
    EXPECT_FALSE(Turn::Taken(&turn, Deadline::Now()).ok());
  }
  EXPECT_TRUE(Turn::Taken(&turn, Deadline::Now()).ok());
  EXPECT_TRUE(Turn::Taken(&turn, Deadline::Now()).ok());
}

}  // namespace
}  // namespace geardb::engine
