// Implements flags with CLI11. No other file of the commands includes it: its inline classes cost
// seconds of code generation per file.
#include "tools/commands/flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "sim/errors.hpp"
#include "sim/nearest.hpp"
#include "tools/base/outputs.hpp"
#include "tools/commands/help_text.hpp"
#include "tools/commands/terminal.hpp"

namespace stageline {
namespace {

// The types of values that --help shows, by which check_outputs() knows them.
constexpr const char* written_file = "FILE";
constexpr const char* written_folder = "FOLDER";
// How a sentence of our own goes on behind the name of the flag.
constexpr const char* is_said = "is";

CommandPaths paths_of(const CLI::App& app) {
  CommandPaths paths;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    const std::string type = option->get_type_name();
    if (option->count() == 0) {
      const std::string usual = option->get_default_str();
      if (usual.empty()) continue;
      if (type == written_file) paths.files.push_back({option->get_name(), usual});
      if (type == written_folder) paths.folders.push_back({option->get_name(), usual});
      continue;
    }
    std::vector<NamedPath>& into = type == written_file     ? paths.files
                                   : type == written_folder ? paths.folders
                                                            : paths.words;
    for (const std::string& value : option->results()) {
      into.push_back({option->get_name(), value});
    }
  }
  return paths;
}

// An empty value is that of a shell variable that is not set, not a wish for the default.
void check_not_empty(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional() || option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      throw CommandLineError(
          fmt::format("{} needs a value (it is empty); leave the flag out for its default",
                      option->get_name()));
    }
  }
}

}  // namespace

Flag Flag::required(bool yes) const {
  option_->required(yes);
  return *this;
}

Flag Flag::needs(Flag other) const {
  option_->needs(other.option_);
  return *this;
}

Flag Flag::excludes(Flag other) const {
  option_->excludes(other.option_);
  return *this;
}

Flag Flag::describe(const std::string& help) const {
  option_->description(help);
  return *this;
}

Flag Flag::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

Flag Flag::range(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag Flag::range(std::int64_t least, std::int64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag Flag::range(std::uint64_t least, std::uint64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag Flag::range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag Flag::positive() const {
  option_->check(CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value > 0) return std::string();
        return fmt::format("{} above 0 (it is \"{}\")", is_said, text);
      },
      "POSITIVE"));
  return *this;
}

Flag Flag::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Flag Flag::check(const std::function<std::string(const std::string&)>& fault,
                 const std::string& type) const {
  option_->transform(CLI::Validator(fault, type));  // before what was declared earlier: decimal()
  return *this;
}

Flag Flag::repeatable() const {
  option_->allow_extra_args(false);
  return *this;
}

Flag Flag::comma_list() const {
  option_->delimiter(',');
  return *this;
}

Flag Flag::writes_file() const {
  option_->type_name(written_file);
  return *this;
}

Flag Flag::writes_folder() const {
  option_->type_name(written_folder);
  return *this;
}

Flag Flag::default_shown() const {
  option_->capture_default_str();
  return *this;
}

Flag Flag::default_shown(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

std::string Flag::name() const { return option_->get_name(); }
std::string Flag::help() const { return option_->get_description(); }
bool Flag::given() const { return option_->count() > 0; }
std::vector<std::string> Flag::values() const {
  const bool takes_one = option_->get_items_expected_max() > 0;
  return given() && takes_one ? option_->results() : std::vector<std::string>{};
}

namespace {

template <class T>
struct NumberOf {
  using Type = T;
};
template <class T>
struct NumberOf<std::vector<T>> {
  using Type = T;
};
template <class T>
struct NumberOf<std::optional<T>> {
  using Type = T;
};

// CLI11 takes 010 for eight, and 0x10 for a number.
std::string decimal(std::string& text) {
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const std::string digits = text.substr(sign);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
    return fmt::format("{} a whole number (it is \"{}\")", is_said, text);
  }
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  text = (text.starts_with('-') ? "-" : "") + digits.substr(first);
  return "";
}

}  // namespace

template <class T>
Flag Flags::option(const std::string& name, T& value, const std::string& help) const {
  CLI::Option* const option = app_->add_option(name, value, help);
  if constexpr (std::is_integral_v<typename NumberOf<T>::Type>) {
    option->transform(CLI::Validator(decimal, ""));
  }
  return Flag(option);
}

template Flag Flags::option(const std::string&, std::string&, const std::string&) const;
template Flag Flags::option(const std::string&, int&, const std::string&) const;
template Flag Flags::option(const std::string&, std::int64_t&, const std::string&) const;
template Flag Flags::option(const std::string&, std::uint64_t&, const std::string&) const;
template Flag Flags::option(const std::string&, double&, const std::string&) const;
template Flag Flags::option(const std::string&, std::optional<double>&, const std::string&) const;
template Flag Flags::option(const std::string&, std::optional<std::int64_t>&,
                            const std::string&) const;
template Flag Flags::option(const std::string&, std::vector<std::string>&,
                            const std::string&) const;
template Flag Flags::option(const std::string&, std::vector<int>&, const std::string&) const;
template Flag Flags::option(const std::string&, std::vector<std::int64_t>&,
                            const std::string&) const;

Flag Flags::flag(const std::string& name, bool& value, const std::string& help) const {
  return Flag(app_->add_flag(name, value, help)->disable_flag_override());
}

Flag Flags::flag(const std::string& name, std::string& value, const std::string& help) const {
  return Flag(app_->add_flag(name, value, help));
}

void Flags::prints(const std::string& name, const std::function<std::string()>& text,
                   const std::string& help) const {
  const auto print_and_end = [text] {
    show("{}", text());
    throw CLI::Success();
  };
  app_->add_flag_callback(name, print_and_end, help);
}

void Flags::writes_also(Flag flag, std::vector<std::string> forms) const {
  program_->further.push_back({app_, flag, std::move(forms)});
}

Flag Flags::find(const std::string& name) const { return Flag(app_->get_option(name)); }

std::vector<Flag> Flags::all() const {
  std::vector<Flag> all;
  for (CLI::Option* const option : app_->get_options()) all.emplace_back(option);
  return all;
}

void Flags::footer(const std::string& text) const { app_->footer(text); }

Flags Flags::subcommand(const std::string& name, const std::string& about) const {
  Flags flags(*app_->add_subcommand(name, about));
  flags.program_ = program_;
  return flags;
}

Flags Flags::find_subcommand(const std::string& name) const {
  Flags flags(*app_->get_subcommand(name));
  flags.program_ = program_;
  return flags;
}

void Flags::require_subcommand() const { app_->require_subcommand(1); }
bool Flags::subcommand_given() const { return !app_->get_subcommands().empty(); }

void Flags::runs(std::function<int()> command) const {
  app_->callback([command = std::move(command), program = program_, app = app_] {
    check_not_empty(*app);
    CommandPaths paths = paths_of(*app);
    for (const FurtherFiles& files : program->further) {
      if (files.command != app) continue;
      for (const std::string& value : files.flag.values()) {
        if (value.empty() || value == "-") continue;
        for (const std::string& form : files.forms) {
          paths.patterns.push_back({files.flag.name(), pattern_of(form, value)});
        }
      }
    }
    check_outputs(paths);
    program->exit_code = command();
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& about,
                         const std::string& version)
    : name_(name), app_(std::make_unique<CLI::App>(about)) {
  app_->name(name);
  app_->set_version_flag("--version", fmt::format("{} {}", name, version));
}

CommandLine::~CommandLine() = default;

Flags CommandLine::flags() { return {*app_, program_}; }

namespace {

// CLI11 would report an unknown subcommand as a missing one.
void check_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* const sub : app.get_subcommands({})) known.push_back(sub->get_name());
  if (known.empty() || word[0] == '-') return;
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
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
      const std::string found = nearest(name, own);
      if (!found.empty()) hint = fmt::format(" (did you mean \"--{}\"?)", found);
    }
    return fmt::format("there is no flag {}{}", flag, hint);
  }
  if (words.empty()) return "";
  return fmt::format("\"{}\" {} not expected{}", fmt::join(words, "\", \""),
                     words.size() == 1 ? "was" : "were", misspelt_subcommand(selected(app)));
}

// CLI11's message in the words of the other errors.
std::string worded(const CLI::ParseError& error) {
  std::string message = error.what();
  const std::string conversion = "Could not convert: ";
  const std::size_t equals = message.find(" = ");
  if (message.starts_with(conversion) && equals != std::string::npos) {
    return fmt::format("{} is a number (it is \"{}\")",
                       message.substr(conversion.size(), equals - conversion.size()),
                       message.substr(equals + 3));
  }
  const std::size_t ours = message.find(fmt::format(": {} ", is_said));
  if (error.get_name() == "ValidationError" && ours != std::string::npos) {
    return message.erase(ours, 1);
  }
  if (error.get_name() == "ArgumentMismatch" && message.ends_with(" missing")) {
    return fmt::format("{} needs a value", message.substr(0, message.find(':')));
  }
  const std::size_t once = message.find(": At Most 1 required");
  if (once != std::string::npos) {
    return fmt::format("{} is given more than once, and takes one value", message.substr(0, once));
  }
  const std::size_t valued = message.find(" was given a disallowed flag override");
  if (valued != std::string::npos) {
    return fmt::format("--{} takes no value", message.substr(0, valued));
  }
  return message;
}

}  // namespace

int CommandLine::run(int argc, const char* const* argv) {
  if (argc > 1) check_subcommand(*app_, argv[1]);
  try {
    app_->parse(argc, argv);
    return program_.exit_code;
  } catch (const CLI::CallForHelp&) {
    show("{}", help_text(app_->help(), text_width()));
    return 0;
  } catch (const CLI::Success& success) {
    return app_->exit(success);
  } catch (const CLI::ParseError& error) {
    // A flag that is not known may be why another word is missing.
    const std::string unknown = unexpected(*app_, name_);
    throw CommandLineError(fmt::format("{}; see `{} --help`",
                                       unknown.empty() ? worded(error) : unknown,
                                       command_of(*app_, name_)));
  }
}

}  // namespace stageline
