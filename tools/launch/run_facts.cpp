#include "tools/launch/run_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/flag_table.hpp"
#include "tools/launch/shell_words.hpp"

namespace stageline {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool is_false(const std::string& value) {
  const std::string word = lower(value);
  return word == "false" || word == "no" || word == "0" || word == "null" || word == "none";
}

// What a document writes for a value that is not there.
bool is_nothing(const std::string& value) {
  const std::string word = lower(value);
  return word == "null" || word == "none" || word == "~";
}

std::string value_of(const LaunchFlag& row, const LaunchArgument& argument) {
  if (row.form == LaunchForm::value) return argument.value;
  const bool yes = !is_false(argument.value);
  return yes == (row.form == LaunchForm::on) ? "yes" : "no";
}

}  // namespace

RunFacts::RunFacts(Framework framework, const LaunchArguments& arguments,
                   const LaunchAdditions& additions)
    : framework_(framework), file_(arguments.file) {
  for (const LaunchArgument& one : arguments.given) take(one, false);
  for (const auto& [name, value] : additions) {
    if (find_launch_flag(framework, name) != nullptr) take({name, value, "--set"}, true);
  }
  const auto add_launcher = [&](const char* fact, int count) {
    if (count > 0) facts_.try_emplace(fact, Fact{fmt::format("{}", count), fact, ""});
  };
  add_launcher("machines", arguments.machines);
  add_launcher("devices_each", arguments.devices_each);
}

void RunFacts::take(const LaunchArgument& argument, bool replaces) {
  const LaunchFlag* const row = find_launch_flag(framework_, argument.name);
  if (row == nullptr) {
    pass_by(argument);
    return;
  }
  if (is_unknown_word(argument.value)) {
    const std::string why = why_unknown(argument.value);
    const std::string variable = why.substr(0, why.find(','));
    throw TraceError(
        file_, argument.where,
        fmt::format("{} needs {}; give it with --set {}=VALUE", argument.name, why,
                    variable.find(' ') == std::string::npos ? variable : argument.name));
  }
  if (row->form == LaunchForm::value && is_nothing(argument.value)) return;
  if (row->form != LaunchForm::value && lower(argument.value) == "auto") {
    unknown_.push_back(argument.name + " \"auto\"");  // a Trainer decides it
    return;
  }
  Fact fact{value_of(*row, argument), argument.name, argument.where};
  const auto [at, added] = facts_.try_emplace(std::string(row->fact), fact);
  if (added) return;
  if (replaces || framework_ == Framework::megatron) {
    at->second = std::move(fact);  // the last one holds, as with argparse
  } else if (at->second.value != fact.value) {
    throw TraceError(file_, argument.where,
                     fmt::format("{} is \"{}\", and {} said \"{}\" before; keep one of them",
                                 fact.name, fact.value, at->second.name, at->second.value));
  }
}

void RunFacts::pass_by(const LaunchArgument& argument) {
  std::string name = argument.name;
  std::replace(name.begin(), name.end(), '_', '-');
  if (name == "decoder-num-layers" && !is_false(argument.value) && !is_nothing(argument.value)) {
    throw TraceError(file_, argument.where,
                     fmt::format("{} is {}: the run has an encoder, and a decoder that attends to "
                                 "its output, two chains of blocks, and one chain is priced",
                                 argument.name, argument.value));
  }
  const LaunchEffect effect = effect_of(framework_, argument.name);
  if (effect == LaunchEffect::none || is_false(argument.value)) {
    ++without_effect_;
    return;
  }
  std::vector<std::string>& names = effect == LaunchEffect::left_out ? left_out_ : unknown_;
  if (std::find(names.begin(), names.end(), argument.name) == names.end()) {
    names.push_back(argument.name);
  }
}

const RunFacts::Fact* RunFacts::find(std::string_view fact) const {
  const auto found = facts_.find(fact);
  return found == facts_.end() ? nullptr : &found->second;
}

bool RunFacts::yes(std::string_view fact) const {
  const Fact* const one = find(fact);
  return one != nullptr && one->value == "yes";
}

std::string RunFacts::text(std::string_view fact) const {
  const Fact* const one = find(fact);
  return one == nullptr ? "" : one->value;
}

std::string RunFacts::word(std::string_view fact) const { return lower(text(fact)); }

void RunFacts::refuse(std::string_view fact, const std::string& why) const {
  const Fact* const one = find(fact);
  throw TraceError(file_, one == nullptr ? "" : one->where,
                   fmt::format("{} {}", one == nullptr ? std::string(fact) : one->name, why));
}

std::int64_t RunFacts::count(std::string_view fact, std::int64_t otherwise) const {
  const Fact* const one = find(fact);
  if (one == nullptr) return otherwise;
  std::string digits = one->value;
  std::erase(digits, '_');
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(digits);
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (!number || *number < 0 || *number > most) {
    refuse(fact, fmt::format("is a whole number (it is \"{}\"); give it with --set {}=N",
                             one->value, one->name));
  }
  return *number == 0 ? otherwise : *number;
}

double RunFacts::number(std::string_view fact, double otherwise) const {
  const Fact* const one = find(fact);
  if (one == nullptr) return otherwise;
  const std::optional<double> number = parse_number<double>(one->value);
  if (!number) refuse(fact, fmt::format("is a number (it is \"{}\")", one->value));
  return *number;
}

std::string RunFacts::place(std::string_view fact) const {
  const Fact* const one = find(fact);
  if (one == nullptr) return std::string(fact);
  return one->where.empty() ? one->name : fmt::format("{} ({})", one->name, one->where);
}

void RunFacts::leave_out(std::string_view fact) const {
  const Fact* const one = find(fact);
  if (one == nullptr) return;
  const std::string said = fmt::format("{} {}", one->name, one->value);
  if (std::find(left_out_.begin(), left_out_.end(), said) == left_out_.end()) {
    left_out_.push_back(said);
  }
}

}  // namespace stageline
