#include "tests/differential/program.h"

#include <charconv>

namespace geardb::differential {
namespace {

/// Numbers stay short in print; Choices takes some twenty choices out of one of this size.
constexpr uint64_t kNumberMax = uint64_t{1} << 40;
/// A program begins with some tables, and rows in them.
constexpr Op kBeginning[] = {Op::create_table, Op::create_table, Op::append_trajectory,
                             Op::append_trajectory, Op::append_lanes};

std::string_view TakeWord(std::string_view* line) {
  const size_t first = line->find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    *line = {};
    return {};
  }
  const size_t end = std::min(line->find_first_of(" \t\r", first), line->size());
  const std::string_view word = line->substr(first, end - first);
  line->remove_prefix(end);
  return word;
}

Result<Step> ParseStep(std::string_view line) {
  Step step;
  const std::string_view name = TakeWord(&line);
  bool found = false;
  for (const OpRow& row : kOps) {
    if (row.name != name) continue;
    step.op = row.op;
    found = true;
  }
  if (!found) return Status::InvalidArgument("no operation is called '", name, "'");
  size_t at = 0;
  for (std::string_view word = TakeWord(&line); !word.empty(); word = TakeWord(&line)) {
    if (at == step.numbers.size()) return Status::InvalidArgument("more than four numbers");
    const char* const end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, step.numbers[at++]);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return Status::InvalidArgument("'", word, "' is no number");
    }
  }
  return step;
}

}  // namespace

Program RandomProgram(uint64_t seed, size_t steps) {
  const auto share_of = [seed](const OpRow& row) {
    const bool faults = row.op == Op::lose_power || row.op == Op::crash_within;
    return faults && seed % 4 != 3 ? 0 : row.share;
  };
  uint64_t shares = 0;
  for (const OpRow& row : kOps) shares += share_of(row);
  uint64_t drawn = 0;
  const auto random = [&] { return Mixed(seed, drawn++); };
  Program program;
  while (program.size() < steps) {
    Step step;
    if (program.size() < std::size(kBeginning)) {
      step.op = kBeginning[program.size()];
    } else {
      uint64_t place = random() % shares;
      for (const OpRow& row : kOps) {
        step.op = row.op;
        if (place < share_of(row)) break;
        place -= share_of(row);
      }
    }
    for (uint64_t& number : step.numbers) number = random() % kNumberMax;
    program.push_back(step);
  }
  return program;
}

std::string ToText(const Program& program) {
  std::string text;
  for (const Step& step : program) {
    text += NameOf(step.op);
    size_t numbers = step.numbers.size();
    while (numbers > 0 && step.numbers[numbers - 1] == 0) --numbers;
    for (size_t i = 0; i < numbers; ++i) text += " " + std::to_string(step.numbers[i]);
    text += "\n";
  }
  return text;
}

Result<Program> ParseProgram(std::string_view text) {
  Program program;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto step = ParseStep(line);
    if (!step.ok()) return step.status().WithContext("line " + std::to_string(number));
    program.push_back(*step);
  }
  return program;
}

}  // namespace geardb::differential
