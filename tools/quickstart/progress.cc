#include "tools/quickstart/progress.h"

#include <algorithm>
#include <cstdio>

namespace geardb::quickstart {
namespace {

/// How many lines a run shows on a terminal, and elsewhere.
constexpr uint64_t kTerminalLines = 500;
constexpr uint64_t kPlainLines = 20;
constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress(bool terminal)
    : terminal_(terminal), started_(std::chrono::steady_clock::now()) {}

void Progress::Show(const ProgressLine& line) {
  if (first_steps_ == 0) {
    first_steps_ = line.steps;
    started_ = std::chrono::steady_clock::now();
  }
  if (line.steps < next_steps_ && line.steps < line.steps_total) return;
  const uint64_t every =
      std::max<uint64_t>(1, line.steps_total / (terminal_ ? kTerminalLines : kPlainLines));
  next_steps_ = (line.steps / every + 1) * every;
  if (!terminal_ && line.steps % every != 0) return;

  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  const double rate =
      elapsed.count() > 0 ? static_cast<double>(line.steps - first_steps_) / elapsed.count() : 0;
  std::printf("%sstep %s of %s · episode %s · return %s · greedy %s · loss %s · %s steps/s%s",
              terminal_ ? kEraseLine : "", Grouped(line.steps).c_str(),
              Grouped(line.steps_total).c_str(), Grouped(line.episodes).c_str(),
              Decimal(line.average_return, 1).c_str(), Decimal(line.trial_score, 1).c_str(),
              Decimal(line.loss, 4).c_str(), Grouped(static_cast<uint64_t>(rate)).c_str(),
              terminal_ ? "" : "\n");
  std::fflush(stdout);
  line_open_ = terminal_;
}

void Progress::Say(std::string_view text) {
  // What was shown last stays above.
  std::printf("%s%.*s\n", line_open_ ? "\n" : "", static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
  line_open_ = false;
}

std::string Grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Decimal(double number, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, number);
  return text;
}

}  // namespace geardb::quickstart
