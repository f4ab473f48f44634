// The table of commands, and how it becomes the grammar and the help of the program.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "tools/geardb/command.h"

namespace geardb::cli {
namespace {

constexpr Argument kDirectory = {
    .key = "directory", .names = "DIR", .help = "Directory of the database", .required = true};
constexpr Argument kMemory = {.key = "memory",
                              .names = "--memory",
                              .kind = ArgumentKind::kBytes,
                              .help =
                                  "Memory for pages, as 512MB or 4GiB; default: a quarter of "
                                  "the machine's"};

constexpr std::array kSummaryArguments = {kDirectory, kMemory};
constexpr std::array kHeadArguments = {
    kDirectory,
    Argument{.key = "table",
             .names = "TABLE",
             .help = "Name of the table; may be left out where there is only one"},
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
    kMemory,
};
constexpr std::array kLogArguments = {
    kDirectory,
    Argument{.key = "from",
             .names = "--from",
             .kind = ArgumentKind::kCount,
             .help = "Begin at the first record at or beyond this LSN"},
    Argument{.key = "count",
             .names = "-n,--count",
             .kind = ArgumentKind::kCount,
             .default_value = "100",
             .help = "Records at most; 0: all"},
};
constexpr std::array kVerifyArguments = {kDirectory, kMemory};

constexpr std::array kCommands = {
    Command{.name = "info",
            .arguments = kSummaryArguments,
            .run = RunSummary,
            .help = "What a database holds: tables, priority tables, tags, and its log"},
    Command{.name = "head",
            .arguments = kHeadArguments,
            .run = RunHead,
            .help = "The first and last trajectories of a table, or rows of one of them"},
    Command{.name = "log",
            .arguments = kLogArguments,
            .run = RunLog,
            .help = "The records of the log, in words"},
    Command{.name = "verify",
            .arguments = kVerifyArguments,
            .run = RunVerify,
            .help = "Reads every byte, and names what is damaged with file and offset; exits 1 "
                    "when anything is"},
};

/// Where CLI11 leaves what it has read of one argument.
struct Parsed {
  const Argument* argument = nullptr;
  CLI::Option* option = nullptr;
  std::vector<std::string> words;
  uint64_t bytes = 0;
};

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
                         ->transform(CLI::AsSizeValue(false))
                         ->type_name("BYTES");
    return;
  }
  parsed->option = app->add_option(names, parsed->words, help)->expected(1);
  if (argument.kind == ArgumentKind::kCount) {
    parsed->option->check(CLI::TypeValidator<uint64_t>("NUMBER"))->type_name("NUMBER");
  } else {
    parsed->option->type_name(argument.kind == ArgumentKind::kNames ? "NAMES" : "TEXT");
  }
  if (argument.kind == ArgumentKind::kNames) parsed->option->delimiter(',');
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
        arguments.Set(argument.key, {std::string(argument.default_value)});
      }
    } else if (argument.kind == ArgumentKind::kBytes) {
      arguments.Set(argument.key, {std::to_string(parsed->bytes)});
    } else {
      arguments.Set(argument.key, parsed->words);
    }
  }
  return arguments;
}

}  // namespace

void Arguments::Set(std::string_view key, std::vector<std::string> values) {
  values_.insert_or_assign(std::string(key), std::move(values));
}

std::string Arguments::Text(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() || found->second.empty() ? "" : found->second.front();
}

uint64_t Arguments::Count(std::string_view key) const {
  const std::string text = Text(key);
  uint64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::vector<std::string> Arguments::Names(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::span<const Command> Commands() { return kCommands; }

int RunGeardb(std::span<const std::string> words, const Streams& streams) {
  CLI::App app("Looks into a GearDB database that is not running.", "geardb");
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
    sub->add_flag("--json", json, "For programs: one JSON value");
    commands[sub] = &command;
    ranges[sub] = {begin, parsed.size()};
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, *streams.out, *streams.err) == 0 ? kExitGood : kExitUsage;
  }
  const CLI::App* chosen = app.get_subcommands().front();
  const Command& command = *commands[chosen];
  const auto [begin, end] = ranges[chosen];
  std::vector<std::unique_ptr<Parsed>> own(
      std::make_move_iterator(parsed.begin() + static_cast<ptrdiff_t>(begin)),
      std::make_move_iterator(parsed.begin() + static_cast<ptrdiff_t>(end)));
  const Invocation invocation{.arguments = Collect(own), .json = json, .out = streams.out};
  const Result<int> code = command.run(invocation);
  streams.out->flush();
  if (code.ok()) return *code;
  *streams.err << "geardb " << command.name << ": " << code.status() << "\n";
  return kExitDamage;
}

}  // namespace geardb::cli
