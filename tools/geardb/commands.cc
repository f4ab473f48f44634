// The table of commands, and how it becomes the grammar and the help of the program.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

constexpr Argument kDirectory = {
    .key = "directory", .names = "DIR", .help = "Directory of the database", .required = true};
constexpr Argument kMemory = {.key = "memory",
                              .names = "--memory",
                              .kind = ArgumentKind::kBytes,
                              .help =
                                  "Memory for pages, as 512MB or 4GiB, and as much for the "
                                  "index; default: a quarter of the machine's, and an eighth of "
                                  "that for the index"};

constexpr Argument kTable = {.key = "table",
                             .names = "TABLE",
                             .help = "Name of the table; may be left out where there is only one"};
constexpr Argument kFilter = {
    .key = "filter",
    .names = "--filter",
    .help = "Only trajectories that pass, as 'version >= 12 && (length > 100 || end == cut)'"};

constexpr std::array kSummaryArguments = {kDirectory, kMemory};
constexpr std::array kHeadArguments = {
    kDirectory,
    kTable,
    Argument{.key = "count",
             .names = "-n,--count",
             .kind = ArgumentKind::kCount,
             .default_value = "5",
             .help = "Shown from the front, and as many from the end"},
    Argument{.key = "id",
             .names = "--id",
             .kind = ArgumentKind::kCount,
             .help = "The rows of this trajectory, instead of a list of trajectories"},
    Argument{.key = "columns",
             .names = "--columns",
             .kind = ArgumentKind::kNames,
             .help = "Only these columns, with commas between them"},
    kFilter,
    kMemory,
};
constexpr std::array kStatsArguments = {
    kDirectory,
    kTable,
    Argument{.key = "columns",
             .names = "--columns",
             .kind = ArgumentKind::kNames,
             .help = "These columns, elements (score[2]) or fields (length), with commas between "
                     "them; default: all scalar columns, and length"},
    Argument{.key = "bins",
             .names = "--bins",
             .kind = ArgumentKind::kCount,
             .default_value = "0",
             .help = "A histogram of each, with so many bins between its least and its largest "
                     "finite value; 0: none"},
    kFilter,
    kMemory,
};
constexpr std::array kLogArguments = {
    kDirectory,
    Argument{.key = "from",
             .names = "--from",
             .kind = ArgumentKind::kCount,
             .help = "Begin at the first record at or beyond this LSN. What was named before is "
                     "then shown by its number"},
    Argument{.key = "count",
             .names = "-n,--count",
             .kind = ArgumentKind::kCount,
             .default_value = "100",
             .help = "Records at most; 0: all"},
};
constexpr std::array kVerifyArguments = {kDirectory, kMemory};
constexpr std::array kRepairArguments = {
    kDirectory,
    Argument{.key = "dry_run",
             .names = "--dry-run",
             .kind = ArgumentKind::kFlag,
             .help = "Says what is damaged, what would be done and what would be lost, and changes "
                     "nothing; exits 1 where there is something to repair"},
    kMemory,
};

constexpr std::array kCommands = {
    Command{.name = "info",
            .arguments = kSummaryArguments,
            .run = RunSummary,
            .help =
                "What a database holds: tables, priority tables, tags, and its log. Of one that "
                "is running: its log, its lags, what it waited for, its memory"},
    Command{.name = "head",
            .arguments = kHeadArguments,
            .run = RunHead,
            .help = "The first and last trajectories of a table, or rows of one of them"},
    Command{.name = "stats",
            .arguments = kStatsArguments,
            .run = RunStats,
            .help = "Count, mean, deviation and range of columns of a table"},
    Command{.name = "log",
            .arguments = kLogArguments,
            .run = RunLog,
            .help = "The records of the log, in words"},
    Command{.name = "verify",
            .arguments = kVerifyArguments,
            .run = RunVerify,
            .help = "Reads all that lives in the store, and names what is damaged with file and "
                    "offset, a page with its trajectory, too; exits 1 when anything is, 3 when "
                    "--memory is too little to replay the log, 4 when a newer GearDB wrote some of "
                    "it, 5 when valid "
                    "records lie beyond the log's end and an open for writing drops them"},
    Command{.name = "repair",
            .arguments = kRepairArguments,
            .run = RunRepair,
            .help = "Makes a damaged database open again, names what that loses, and keeps what "
                    "leaves in its directory repair-<n>; exits 0 when it is whole or repaired, 6 "
                    "when nothing is known to save of it, and nothing was changed. Records behind "
                    "one that is bad, and was not known to be synced, are no damage: an open for "
                    "writing drops them, which 'verify' says before (exit 5)"},
};

const char* const kExitCodes =
    "Exits 0 when all went well, 1 when damage was found or the command failed (standard error\n"
    "says why), 2 when it was called in a wrong way, 3 when the database needs more than "
    "--memory,\n"
    "or more files open at once than the process may have, 4 when a newer GearDB wrote what this\n"
    "one cannot read, 5 when 'verify' finds valid records beyond the log's end, which an open for\n"
    "writing drops, 6 when 'repair' knows nothing to save. With 3 to 5, no damage was found in "
    "what\n"
    "could be read.";

/// Where CLI11 leaves what it has read of one argument.
struct Parsed {
  const Argument* argument = nullptr;
  CLI::Option* option = nullptr;
  std::string text;
  uint64_t bytes = 0;
};

/// CLI11's own check of numbers takes more than decimal digits. "" when `text` is a number.
std::string CheckNumber(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return "";
  return "'" + text + "' is no number from 0 to 18446744073709551615";
}

void AddArgument(CLI::App* app, Parsed* parsed) {
  const Argument& argument = *parsed->argument;
  // CLI11 knows a place from an option by its dashes, and shows the place's name as it is.
  const std::string names(argument.names);
  const std::string help(argument.help);
  if (argument.kind == ArgumentKind::kFlag) {
    parsed->option = app->add_flag(names, help);
    return;
  }
  if (argument.kind == ArgumentKind::kBytes) {
    parsed->option = app->add_option(names, parsed->bytes, help)
                         ->transform(CLI::AsSizeValue(false).description(""))
                         ->type_name("BYTES");
    return;
  }
  parsed->option = app->add_option(names, parsed->text, help);
  if (argument.kind == ArgumentKind::kCount) {
    parsed->option->check(CheckNumber)->type_name("NUMBER");
  } else {
    parsed->option->type_name(argument.kind == ArgumentKind::kNames ? "NAMES" : "TEXT");
  }
  if (!argument.default_value.empty()) {
    parsed->option->default_str(std::string(argument.default_value));
  }
  if (argument.required) parsed->option->required();
}

Arguments Collect(const std::vector<std::unique_ptr<Parsed>>& all) {
  Arguments arguments;
  for (const auto& parsed : all) {
    const Argument& argument = *parsed->argument;
    if (parsed->option->count() == 0) {
      if (!argument.default_value.empty()) {
        arguments.Set(argument.key, std::string(argument.default_value));
      }
    } else if (argument.kind == ArgumentKind::kBytes) {
      arguments.Set(argument.key, std::to_string(parsed->bytes));
    } else {
      arguments.Set(argument.key, parsed->text);
    }
  }
  return arguments;
}

std::string CommandNames() {
  std::string names;
  for (const Command& command : kCommands) {
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  }
  return names;
}

int RefuseUse(const Streams& streams, std::string_view why) {
  *streams.err << "geardb: " << Printable(why) << "\nRun with --help for more information.\n";
  return kExitUsage;
}

/// A program that asked for JSON gets the failure as JSON, too: {"error": …}.
int Report(const Status& failure, std::string_view command, bool json, const Streams& streams) {
  if (json) {
    JsonWriter writer(streams.out);
    writer.BeginObject();
    writer.Key("error");
    writer.BeginObject();
    writer.Field("code", static_cast<int>(failure.code()));
    writer.Field("name", StatusCodeName(failure.code()));
    writer.Field("message", failure.message());
    writer.EndObject();
    writer.EndObject();
    streams.out->flush();
  }
  *streams.err << "geardb " << command << ": " << Printable(failure.ToString()) << "\n";
  if (failure.code() == StatusCode::kResourceExhausted) return kExitMemory;  // See OpenStore.
  if (failure.code() == StatusCode::kUnsupported) return kExitNewer;
  return failure.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitDamage;
}

}  // namespace

void Arguments::Set(std::string_view key, std::string text) {
  texts_.insert_or_assign(std::string(key), std::move(text));
}

std::string Arguments::Text(std::string_view key) const {
  const auto found = texts_.find(key);
  return found == texts_.end() ? "" : found->second;
}

uint64_t Arguments::Count(std::string_view key) const {
  const std::string text = Text(key);
  uint64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::vector<std::string> Arguments::Names(std::string_view key) const {
  std::vector<std::string> names;
  const std::string text = Text(key);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::span<const Command> Commands() { return kCommands; }

int RunGeardb(std::span<const std::string> words, const Streams& streams) {
  CLI::App app(
      "Looks into a GearDB database that is not running; of one that is, 'info' shows what its "
      "owner writes of itself. Nothing is written to it, but by 'repair'.",
      "geardb");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  bool json = false;
  std::vector<std::unique_ptr<Parsed>> parsed;
  std::map<const CLI::App*, const Command*> commands;
  std::map<const CLI::App*, std::pair<size_t, size_t>> ranges;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
    const size_t begin = parsed.size();
    for (const Argument& argument : command.arguments) {
      parsed.push_back(std::make_unique<Parsed>());
      parsed.back()->argument = &argument;
      AddArgument(sub, parsed.back().get());
    }
    sub->add_flag("--json", json,
                  "For programs: one JSON value. Numbers that are not finite are the strings "
                  "\"NaN\", \"Infinity\" and \"-Infinity\"");
    commands[sub] = &command;
    sub->footer(kExitCodes);
    ranges[sub] = {begin, parsed.size()};
  }
  if (words.empty()) return RefuseUse(streams, "which command? There are " + CommandNames());
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& help) {
    return app.exit(help, *streams.out, *streams.err);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty() && !words[0].starts_with('-')) {
      return RefuseUse(streams,
                       "there is no command '" + words[0] + "'; there are " + CommandNames());
    }
    return RefuseUse(streams, error.what());
  }
  const CLI::App* chosen = app.get_subcommands().front();
  const Command& command = *commands[chosen];
  const auto [begin, end] = ranges[chosen];
  std::vector<std::unique_ptr<Parsed>> own(
      std::make_move_iterator(parsed.begin() + static_cast<ptrdiff_t>(begin)),
      std::make_move_iterator(parsed.begin() + static_cast<ptrdiff_t>(end)));
  const Invocation invocation{
      .arguments = Collect(own), .json = json, .out = streams.out, .err = streams.err};
  const Result<int> code = command.run(invocation);
  if (!code.ok()) return Report(code.status(), command.name, json, streams);
  if (streams.out->flush()) return *code;
  return Report(Status::IoError("the output cannot be written"), command.name, false, streams);
}

}  // namespace geardb::cli
