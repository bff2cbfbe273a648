// Parses a command line with CLI11, and words its help and its errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/nearest.hpp"
#include "tools/commands/flags.hpp"
#include "tools/commands/help_text.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/launch/flag_table.hpp"
#include "traces/traces.hpp"

namespace stageline::cli {

CommandLine::CommandLine(const std::string& name, const std::string& about,
                         const std::string& version)
    : name_(name), app_(std::make_unique<CLI::App>(about)) {
  app_->name(name);
  app_->set_help_flag("-h,--help", "Print this help message and exit");
  app_->set_version_flag("--version", fmt::format("{} {}", name, version),
                         "Display program version information and exit");
}

CommandLine::~CommandLine() = default;

Flags CommandLine::flags() { return {*app_, program_}; }

namespace {

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A schedule or a trace in the place of a subcommand: how to run it. Empty: it is neither.
std::string run_instead(const std::string& program, const std::string& word) {
  std::error_code unreadable;
  const bool trace = word.starts_with("model:") || word.starts_with("uniform:") ||
                     std::filesystem::is_regular_file(word, unreadable) ||
                     std::any_of(bundled_traces().begin(), bundled_traces().end(),
                                 [&](const Bundled& one) { return one.name == word; });
  if (trace) {
    return fmt::format("\"{0}\" is a trace: `{1} compare {0}` ranks schedules on it", word,
                       program);
  }
  const std::string schedule = read_schedule_name(word);
  if (schedule.empty()) return "";
  return fmt::format("\"{}\" is a schedule: `{} simulate TRACE --schedule {}` runs it", word,
                     program, schedule);
}

// CLI11 would report an unknown subcommand as a missing one.
void check_subcommand(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> known = subcommands_of(app);
  if (known.empty() || word[0] == '-' || is_one_of(word, known)) return;
  const std::string instead =
      is_one_of("simulate", known) ? run_instead(app.get_name(), word) : std::string();
  if (!instead.empty()) throw CommandLineError(instead);
  throw CommandLineError(fmt::format("there is no subcommand \"{}\"{}; they are {}", word,
                                     did_you_mean(word, known), fmt::join(known, ", ")));
}

// The selected subcommand, whose help explains its flags: "stageline import kineto".
std::string command_of(const CLI::App& app, std::string name) {
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

const CLI::App& selected(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::vector<std::string> long_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// Other subcommands that have the flag: " (`stageline simulate` has one)".
std::string elsewhere(const CLI::App& app, const std::string& program, const std::string& name) {
  for (const CLI::App* const sub : app.get_subcommands({})) {
    const std::vector<std::string> flags = long_flags(*sub);
    if (std::find(flags.begin(), flags.end(), name) == flags.end()) continue;
    return fmt::format(" (`{} {}` has one)", program, sub->get_name());
  }
  return "";
}

// "kinto" of `import kinto x.json` was taken for a TRACE.
std::string misspelt_subcommand(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::App* const sub : app.get_subcommands({})) known.push_back(sub->get_name());
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_positional() || option->count() == 0) continue;
    return did_you_mean(option->results().front(), known);
  }
  return "";
}

// The first flag that is not known, with the nearest that is; else the words that are too many. In
// the order of the command line, in which CLI11 does not report them. Empty where there are none.
std::string unexpected(const CLI::App& app, const std::string& program) {
  const std::vector<std::string> words = app.remaining(true);
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const std::vector<std::string> own = long_flags(selected(app));
    if (std::find(own.begin(), own.end(), name) != own.end()) {
      if (flag != "--" + name) return fmt::format("there is no flag {0} (write --{1})", flag, name);
      return fmt::format("{0} stands before the subcommand; flags stand behind it: `{1} … {0}`",
                         flag, command_of(app, program));
    }
    std::string hint = elsewhere(app, program, name);
    if (hint.empty()) {
      const std::string said = said_by_stageline(flag);
      if (!said.empty()) hint = fmt::format(" ({})", said);
    }
    if (hint.empty()) {
      const std::string found = nearest(name, own);
      if (!found.empty()) hint = fmt::format(" (did you mean \"--{}\"?)", found);
    }
    return fmt::format("there is no flag {}{}", flag, hint);
  }
  if (words.empty()) return "";
  return fmt::format("\"{}\" {} not expected{}", fmt::join(words, "\", \""),
                     words.size() == 1 ? "was" : "were", misspelt_subcommand(selected(app)));
}

bool given(const CLI::Option& option) { return option.count() > 0; }

// With or without the dashes of a flag.
bool is_called(const CLI::Option& option, const std::string& name) {
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  const std::vector<std::string>& names = option.get_lnames();
  return option.get_name() == name || std::find(names.begin(), names.end(), bare) != names.end();
}

// Flags that are missing, or that another one forbids. Empty where there are none.
std::string unmet(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_required() && !given(*option)) {
      return fmt::format("{} is required", option->get_name());
    }
  }
  for (const CLI::Option* const option : app.get_options()) {
    if (!given(*option)) continue;
    for (const CLI::Option* const other : option->get_needs()) {
      if (given(*other)) continue;
      return fmt::format("{} requires {}", option->get_name(), other->get_name());
    }
    for (const CLI::Option* const other : option->get_excludes()) {
      if (!given(*other)) continue;
      return fmt::format("{} excludes {}", option->get_name(), other->get_name());
    }
  }
  return "";
}

// What is wrong, in our words: those of CLI11 change between its versions. Its message is taken
// for the name of the flag alone, with which it begins.
std::string worded(const CLI::App& app, const CLI::ParseError& error) {
  const std::string kind = error.get_name();
  std::string message = error.what();
  if (kind == "RequiredError" || kind == "RequiresError" || kind == "ExcludesError") {
    const std::string found = unmet(app);
    return found.empty() ? "a subcommand is required" : found;
  }
  // "--top: is from 1 to 9", as Flag::range() and its like say it.
  const std::size_t ours = message.find(": is ");
  if (kind == "ValidationError" && ours != std::string::npos) return message.erase(ours, 1);
  if (kind == "ConversionError") {
    for (const CLI::Option* const option : app.get_options()) {
      const std::string said = fmt::format(" {} = ", option->get_name());
      if (message.find(said) == std::string::npos) continue;
      return fmt::format("{} is too large a number (it is \"{}\")", option->get_name(),
                         fmt::join(option->results(), ","));
    }
  }
  if (kind == "ArgumentMismatch") {
    const std::string name = message.substr(0, message.find_first_of(": "));
    for (const CLI::Option* const option : app.get_options()) {
      if (!is_called(*option, name)) continue;
      const std::string flag = option->get_name();
      if (option->get_items_expected_max() == 0) return fmt::format("{} takes no value", flag);
      return given(*option) ? fmt::format("{} is given more than once, and takes one value", flag)
                            : fmt::format("{} needs a value", flag);
    }
  }
  return message;
}

// "-o,--out", "TRACE".
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ","));
}

HelpPage::Entry entry_of(const CLI::Option& option) {
  std::string name = names_of(option);
  if (option.get_items_expected_max() > 0) {
    if (!option.get_type_name().empty()) name += " " + option.get_type_name();
    if (!option.get_default_str().empty()) name += "=" + option.get_default_str();
    if (option.get_expected_max() > 1) name += " ...";
    if (option.get_required()) name += " REQUIRED";
  }
  const auto add = [&name](const char* title, const std::set<CLI::Option*>& others) {
    if (others.empty()) return;
    std::vector<std::string> flags;
    for (const CLI::Option* const other : others) flags.push_back(other->get_name());
    std::sort(flags.begin(), flags.end());
    name += fmt::format(" {}: {}", title, fmt::join(flags, " "));
  };
  add("Needs", option.get_needs());
  add("Excludes", option.get_excludes());
  return {name, option.get_description(), SettingGroup::other, true};
}

HelpPage help_page(const CLI::App& app, const Flags::Program& program, const std::string& command) {
  HelpPage page;
  page.command = command;
  page.about = app.get_description();
  page.usage = command + " [OPTIONS]";
  page.footer = app.get_footer();
  for (const CLI::Option* const option : app.get_options()) {
    HelpPage::Entry entry = entry_of(*option);
    if (const auto place = program.places.find(option); place != program.places.end()) {
      entry.group = place->second.group;
      entry.common = place->second.common;
    }
    (option->get_positional() ? page.positionals : page.options).push_back(std::move(entry));
    if (!option->get_positional()) continue;
    const std::string name = option->get_name() + (option->get_expected_max() > 1 ? "..." : "");
    page.usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  for (const CLI::App* const sub : app.get_subcommands({})) {
    page.subcommands.push_back({sub->get_name(), sub->get_description()});
  }
  if (!page.subcommands.empty()) {
    page.usage += app.get_require_subcommand_min() > 0 ? " SUBCOMMAND" : " [SUBCOMMAND]";
  }
  return page;
}

// The words of a command line, and which screen of the help they ask for: `--help all` is a flag
// and its value, of which the parser knows the flag.
struct Words {
  std::vector<const char*> parsed;
  HelpScreen screen = HelpScreen::first;
};

// "stageline compare --help" of `stageline help compare`.
std::vector<const char*> without_help_command(std::vector<const char*> words) {
  if (words.size() < 2 || std::string_view(words[1]) != "help") return words;
  words.erase(words.begin() + 1);
  const bool all = words.size() > 1 && std::string_view(words.back()) == "all";
  words.insert(words.end() - (all ? 1 : 0), "--help");
  return words;
}

Words words_of(const std::vector<const char*>& typed) {
  Words words;
  bool behind_help = false;
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const std::string_view word = typed[i];
    const bool joined = word == "--help=all";
    if (joined || (behind_help && word == "all")) words.screen = HelpScreen::all;
    if (!behind_help || word != "all") words.parsed.push_back(joined ? "--help" : typed[i]);
    behind_help = i > 0 && (word == "--help" || word == "-h");
  }
  return words;
}

}  // namespace

HelpPage Flags::help(const std::string& command) const {
  return help_page(*app_, *program_, command);
}

int CommandLine::run(int argc, const char* const* argv) {
  std::vector<const char*> typed(argv, argv + argc);
  if (!app_->get_subcommands({}).empty()) typed = without_help_command(typed);
  if (typed.size() > 1) check_subcommand(*app_, typed[1]);
  const Words words = words_of(typed);
  try {
    app_->parse(static_cast<int>(words.parsed.size()), words.parsed.data());
    return program_.exit_code;
  } catch (const CLI::CallForHelp&) {
    const HelpPage page = help_page(selected(*app_), program_, command_of(*app_, name_));
    show("{}", help_text(printed(page, words.screen), text_width()));
    return 0;
  } catch (const CLI::Success& success) {
    return app_->exit(success);
  } catch (const CLI::ParseError& error) {
    // A flag that is not known may be why another word is missing.
    const std::string unknown = unexpected(*app_, name_);
    throw CommandLineError(fmt::format("{}; see `{} --help`",
                                       unknown.empty() ? worded(selected(*app_), error) : unknown,
                                       command_of(*app_, name_)));
  }
}

}  // namespace stageline::cli
