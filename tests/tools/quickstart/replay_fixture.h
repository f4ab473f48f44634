// Shared by the quickstart's tests: a replay store in a directory of its own, whose appends are
// reported to an oracle over a real pipe.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tools/quickstart/oracle.h"
#include "tools/quickstart/replay.h"

namespace geardb::quickstart {

class ReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    reporter_ = AppendReporter(pipe_[1]);
    options_.directory = dir_.File("store");
    options_.create = true;
    Open();
  }
  void TearDown() override {
    for (const int fd : pipe_) {
      if (fd >= 0) ::close(fd);
    }
  }

  void Open() {
    auto opened = Replay::Open(options_, &reporter_);
    ASSERT_OK(opened);
    replay_ = std::move(opened).value();
  }
  void Reopen() {
    ASSERT_OK(replay_->Close());
    replay_.reset();
    options_.create = false;
    Open();
  }

  /// Row k of an episode: obs {k, k + 0.25, …}, action k % 2, reward 1. `end` makes it the last.
  void Append(int k, End end = End::kGo) {
    Experience experience;
    experience.observation = ObservationOf(k);
    experience.action = k % 2;
    experience.outcome.observation = ObservationOf(k + 1);
    experience.outcome.terminated = end == End::kTerminated;
    experience.outcome.truncated = end == End::kTruncated;
    ASSERT_OK(replay_->Append(experience));
  }
  void AppendEpisode(int steps, End end = End::kTerminated) {
    for (int k = 0; k < steps; ++k) Append(k, k + 1 == steps ? end : End::kGo);
  }
  static Observation ObservationOf(int k) {
    const auto x = static_cast<float>(k);
    return {x, x + 0.25f, x + 0.5f, x + 0.75f};
  }

  /// What was reported so far; no append can be reported after it.
  Oracle ReadReports() {
    ::close(pipe_[1]);
    pipe_[1] = -1;
    Oracle oracle;
    EXPECT_OK(oracle.ReadAll(pipe_[0]));
    return oracle;
  }

  testing::TempDir dir_;
  std::array<int, 2> pipe_ = {-1, -1};
  AppendReporter reporter_;
  ReplayOptions options_;
  std::unique_ptr<Replay> replay_;
};

}  // namespace geardb::quickstart
