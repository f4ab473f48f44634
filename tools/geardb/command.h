// Command: what a subcommand of `geardb` is. All there are stand in one table (commands.cc), from
// which parsing and help are made.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace geardb::cli {

// Exit codes; --help says the same.
inline constexpr int kExitGood = 0;
inline constexpr int kExitDamage = 1;  ///< Or any failure: stderr says which.
inline constexpr int kExitUsage = 2;   ///< Options that do not exist, or cannot be meant.
inline constexpr int kExitMemory =
    3;  ///< The database needs more memory or descriptors than there are. No damage is known.
inline constexpr int kExitNewer =
    4;  ///< A newer GearDB wrote what this one cannot read. No damage is known.
inline constexpr int kExitBeyond =
    5;  ///< verify: an open for writing drops valid records beyond the log's end.
inline constexpr int kExitLost = 6;  ///< repair: nothing is known to save of it.

/// What an argument holds.
enum class ArgumentKind : uint8_t {
  kText,
  kCount,  ///< A number from 0.
  kBytes,  ///< A number with an optional unit: 512MB, 4GiB.
  kNames,  ///< Names with commas between them.
  kFlag,
};

/// One argument of a command: a place ("DIR") or an option ("-n,--count").
struct Argument {
  std::string_view key = {};    ///< How the command asks for it.
  std::string_view names = {};  ///< As they are typed.
  ArgumentKind kind = ArgumentKind::kText;
  std::string_view default_value = {};  ///< Empty: none.
  std::string_view help = {};
  bool required = false;
};

/// What was given for the arguments of a command, defaults included.
class Arguments {
 public:
  void Set(std::string_view key, std::string text);

  bool Has(std::string_view key) const { return texts_.find(key) != texts_.end(); }
  /// "" when it was not given.
  std::string Text(std::string_view key) const;
  /// 0 when it was not given.
  uint64_t Count(std::string_view key) const;
  /// What stands between its commas; empty when it was not given.
  std::vector<std::string> Names(std::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

/// One call of a command.
struct Invocation {
  Arguments arguments;
  bool json = false;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;  ///< For warnings that do not belong to the answer.
};

/// A row of the table.
struct Command {
  std::string_view name;
  std::span<const Argument> arguments;
  /// The exit code, or what prevented the command from answering.
  Result<int> (*run)(const Invocation&);
  std::string_view help;
};

/// All commands, in the order of help.
std::span<const Command> Commands();

// One file each: x_command.cc.
Result<int> RunSummary(const Invocation& invocation);
Result<int> RunHead(const Invocation& invocation);
Result<int> RunStats(const Invocation& invocation);
Result<int> RunLog(const Invocation& invocation);
Result<int> RunVerify(const Invocation& invocation);
Result<int> RunRepair(const Invocation& invocation);

/// Parses the words behind the program's name, and runs. Errors go to `err`; the exit code is
/// returned.
struct Streams {
  std::ostream* out;
  std::ostream* err;
};
int RunGeardb(std::span<const std::string> words, const Streams& streams);

}  // namespace geardb::cli
