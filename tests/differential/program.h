// A program: the calls that one run makes, as data. Read this first.
//
// A step is an operation and four numbers. The numbers mean nothing by themselves: they choose
// among what there is when the step runs (the third table, the fifth trajectory), or are a seed for
// the bytes of rows. So whatever steps are taken out of a program, the rest is a program; and small
// numbers choose the simplest of everything, so that a shrunk program is a plain one. The last
// number of the first step chooses how the store is opened.
//
//   RandomProgram(seed, steps)   a program
//   RunProgram(program)          what is different, if anything      (run.h)
//   Shrink(program, ...)         a short program with that difference (shrink.h)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace geardb::differential {

// The operations: X(name, share of random programs, what it does). The numbers a, b, c, d of a step
// are named where they mean something.
// clang-format off
#define GEARDB_DIFFERENTIAL_OPS(X) \
  X(create_table, 4, "a: what kind of table") \
  X(drop_table, 1, "a: table") \
  X(open_table, 2, "a: table; a second handle, by one of the ways to open it") \
  X(create_priority_table, 2, "a: table, b: what kind") \
  X(append, 6, "a: table, b: lane, c: end and seed of the row, d: what comes with it") \
  X(append_steps, 10, "a: table, b: lane, c: rows, end and seed, d: what comes with them") \
  X(append_trajectory, 10, "a: table, b: lane, c: rows, end and seed, d: what comes with them") \
  X(append_lanes, 8, "a: table, b: ends, c: seed, d: what comes with them") \
  X(cut, 3, "a: table, b: lane") \
  X(detach, 2, "a: table, b: lane") \
  X(leave, 2, "a: table, b: writer, which is destroyed") \
  X(resume, 3, "a: table, b: lane, c: orphan") \
  X(remove, 2, "a: table, b: trajectory, c: how many, one of them unknown") \
  X(remove_range, 1, "a: table, b: first, c: how many") \
  X(remove_passing, 1, "a: table, b: filter") \
  X(truncate, 3, "a: table, b: trajectory, c: row") \
  X(set_columns, 3, "a: table, b: trajectory, c: seed and columns") \
  X(patch, 5, "a: table, b: trajectory, c: rows and seed, d: columns") \
  X(patch_items, 2, "a: batch, b: seed") \
  X(add_columns, 1, "a: table, b: what kind") \
  X(drop_columns, 1, "a: table, b: column") \
  X(close_orphans, 1, "a: table, b: how old") \
  X(remove_expired, 1, "a: table") \
  X(pass_time, 2, "a: ms") \
  X(set_rows, 4, "a: priority table, b: first item, c: how many and seed") \
  X(set_handles, 3, "a: batch, b: seed") \
  X(set_all, 2, "a: priority table, b: seed, c: one value, all, or a wrong number") \
  X(delete_rows, 2, "a: priority table, b: first item, c: how many") \
  X(delete_handles, 1, "a: batch, b: how many") \
  X(configure, 2, "a: priority table, b: limits") \
  X(set_filter, 2, "a: priority table, b: filter") \
  X(begin_epoch, 3, "a: priority table") \
  X(seal_group, 3, "a: priority table, b: key") \
  X(seal_overdue, 3, "a: first priority table") \
  X(sample, 10, "a: priority table, b: options, c: views, d: n-step and stacks") \
  X(sample_mixed, 2, "a: first priority table, b: second, c: shares") \
  X(next, 30, "a: sampler, b: how many batches") \
  X(stop_sampling, 3, "a: sampler") \
  X(set_beta, 1, "a: sampler, b: beta") \
  X(write_batch, 6, "a: table, b: seed, c: which operations, d: what comes with them") \
  X(tag, 2, "a: name, b: bytes") \
  X(wait, 1, "a: of what, b: level") \
  X(drop_frames, 3, "what is in memory is read again from the log or the cold store") \
  X(reopen, 2, "close and open") \
  X(crash, 2, "the process dies; open") \
  X(lose_power, 4, "a: seed; the machine stops; open") \
  X(crash_within, 8, "a: at which point from here, b: of process or machine, c: seed") \
  X(look, 1, "close, open to read only, compare, close and open") \
  X(gather, 3, "a: table, b: seed of the rows") \
  X(scan, 3, "a: table, b: filter, c: options") \
  X(statistics, 2, "a: table, b: column, c: filter") \
  X(compare, 3, "everything of all tables")
// clang-format on

enum class Op : uint8_t {
#define GEARDB_DIFFERENTIAL_OP(name, share, what) name,
  GEARDB_DIFFERENTIAL_OPS(GEARDB_DIFFERENTIAL_OP)
#undef GEARDB_DIFFERENTIAL_OP
};

struct OpRow {
  Op op;
  std::string_view name;
  uint64_t share;
};
inline constexpr OpRow kOps[] = {
#define GEARDB_DIFFERENTIAL_OP(name, share, what) {Op::name, #name, share},
    GEARDB_DIFFERENTIAL_OPS(GEARDB_DIFFERENTIAL_OP)
#undef GEARDB_DIFFERENTIAL_OP
};
constexpr std::string_view NameOf(Op op) { return kOps[static_cast<size_t>(op)].name; }

struct Step {
  Op op = Op::compare;
  std::array<uint64_t, 4> numbers = {};

  friend bool operator==(const Step&, const Step&) = default;
};
using Program = std::vector<Step>;

/// The same for the same seed, everywhere. Every fourth crashes within steps, and loses power: a
/// program with such steps runs on a file system in memory, without the cold store.
Program RandomProgram(uint64_t seed, size_t steps);

/// One line for each step: its name and its numbers, zeros at the end left out.
std::string ToText(const Program& program);
/// What ToText gave; empty lines and what follows a `#` are passed over. InvalidArgument names the
/// line.
Result<Program> ParseProgram(std::string_view text);

/// Takes choices out of one number of a step: 0 takes the first one of each.
class Choices {
 public:
  explicit Choices(uint64_t number) : left_(number) {}
  /// Below `n`, which is not 0.
  uint64_t Below(uint64_t n) {
    const uint64_t chosen = left_ % n;
    left_ /= n;
    return chosen;
  }
  /// With a probability of about 1 / n, and not for 0.
  bool OneIn(uint64_t n) { return Below(n) == n - 1; }
  uint64_t rest() const { return left_; }

 private:
  uint64_t left_;
};

/// Some number that follows from two others.
constexpr uint64_t Mixed(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15u + b * 0xD1B54A32D192ED03u + 0x632BE59BD9B4E019u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace geardb::differential
