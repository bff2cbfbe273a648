// Declares flags with CLI11. Only this file and command_parsing.cpp include it: its inline classes
// cost seconds of code generation a file.
#include "tools/commands/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <system_error>
#include <type_traits>

#include "sim/base/errors.hpp"
#include "sim/base/nearest.hpp"
#include "tools/base/outputs.hpp"
#include "tools/commands/terminal.hpp"

namespace stageline::cli {
namespace {

// The types of values that --help shows, by which check_outputs() knows them.
constexpr const char* written_file = "FILE";
constexpr const char* written_folder = "FOLDER";
// How a sentence goes on behind the name of the flag (command_parsing.cpp).
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

// The number that a text is, all of it; nothing where it is none, or too large for its type.
template <class T>
std::optional<T> number_in(const std::string& text) {
  T value{};
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto [at, fault] = std::from_chars(begin, end, value);
  if (fault != std::errc() || at != end) return {};
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return {};
  }
  return value;
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
  option_->type_name(fmt::format("{}", fmt::join(values, "|")));
  option_->check(CLI::Validator(
      [values](const std::string& text) {
        if (std::find(values.begin(), values.end(), text) != values.end()) return std::string();
        return fmt::format("{} one of {} (it is \"{}\"{})", is_said, fmt::join(values, ", "), text,
                           did_you_mean(text, values));
      },
      ""));
  return *this;
}

namespace {

template <class T>
Flag ranged(const Flag& flag, CLI::Option& option, T least, T most) {
  option.check(CLI::Validator(
      [least, most](const std::string& text) {
        const std::optional<T> value = number_in<T>(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format("{} from {} to {} (it is \"{}\")", is_said, least, most, text);
      },
      ""));
  return flag;
}

}  // namespace

Flag Flag::range(int least, int most) const { return ranged(*this, *option_, least, most); }
Flag Flag::range(std::int64_t least, std::int64_t most) const {
  return ranged(*this, *option_, least, most);
}
Flag Flag::range(std::uint64_t least, std::uint64_t most) const {
  return ranged(*this, *option_, least, most);
}
Flag Flag::range(double least, double most) const { return ranged(*this, *option_, least, most); }

Flag Flag::positive() const {
  option_->check(CLI::Validator(
      [](const std::string& text) {
        const std::optional<double> value = number_in<double>(text);
        if (value && *value > 0) return std::string();
        return fmt::format("{} above 0 (it is \"{}\")", is_said, text);
      },
      ""));
  return *this;
}

Flag Flag::not_negative() const {
  option_->check(CLI::Validator(
      [](const std::string& text) {
        const std::optional<double> value = number_in<double>(text);
        if (value && *value >= 0) return std::string();
        return fmt::format("{} 0 or above (it is \"{}\")", is_said, text);
      },
      ""));
  return *this;
}

Flag Flag::check(const std::function<std::string(const std::string&)>& fault,
                 const std::string& type) const {
  if (!type.empty()) option_->type_name(type);
  option_->transform(CLI::Validator(fault, ""));  // before what was declared earlier: decimal()
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

std::string real(std::string& text) {
  return number_in<double>(text) ? "" : fmt::format("{} a number (it is \"{}\")", is_said, text);
}

}  // namespace

Flags Flags::in(SettingGroup group) const {
  Flags flags = *this;
  flags.place_.group = group;
  return flags;
}

Flags Flags::common(bool yes) const {
  Flags flags = *this;
  flags.place_.common = yes;
  return flags;
}

Flag Flags::placed(CLI::Option* option) const {
  program_->places[option] = place_;
  return Flag(option);
}

template <class T>
Flag Flags::option(const std::string& name, T& value, const std::string& help) const {
  using Number = typename NumberOf<T>::Type;
  CLI::Option* const option = app_->add_option(name, value, help);
  option->type_name("TEXT");
  if constexpr (std::is_integral_v<Number>) {
    option->type_name("N");
    option->transform(CLI::Validator(decimal, ""));
  } else if constexpr (std::is_floating_point_v<Number>) {
    option->type_name("NUMBER");
    option->transform(CLI::Validator(real, ""));
  }
  return placed(option);
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
  return placed(app_->add_flag(name, value, help)->disable_flag_override());
}

Flag Flags::flag(const std::string& name, std::string& value, const std::string& help) const {
  return placed(app_->add_flag(name, value, help));
}

void Flags::prints(const std::string& name, const std::function<std::string()>& text,
                   const std::string& help) const {
  const auto print_and_end = [text] {
    show("{}", text());
    throw CLI::Success();
  };
  placed(app_->add_flag_callback(name, print_and_end, help));
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
  return {*app_->add_subcommand(name, about), *program_};
}

Flags Flags::find_subcommand(const std::string& name) const {
  return {*app_->get_subcommand(name), *program_};
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

}  // namespace stageline::cli
