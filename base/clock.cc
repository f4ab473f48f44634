#include "base/clock.h"

namespace geardb {
namespace {

class SystemClock final : public Clock {
 public:
  int64_t WallTimeUs() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  }
  int64_t SteadyTimeUs() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  }
};

}  // namespace

const Clock* Clock::System() {
  static const SystemClock clock;
  return &clock;
}

}  // namespace geardb
