// From what the user writes ("gpipe:recompute=always") to a scheduler and its knobs.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "schedulers/aliases.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void check_value(const Scheduler& scheduler, const Knob& knob, const std::string& value) {
  if (knob.values == "int") {
    if (value == knob.fallback) return;  // "auto"
    if (parse_number<int>(value).value_or(0) >= 1) return;
    throw UsageError(fmt::format("{}: {} must be a whole number from 1 (it is \"{}\")",
                                 scheduler.name, knob.name, value));
  }
  if (knob.values.find('|') == std::string_view::npos) return;
  const std::vector<std::string> known = split(std::string(knob.values), '|');
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string choices;
  for (const std::string& choice : known) choices += (choices.empty() ? "" : ", ") + choice;
  throw UsageError(fmt::format("{}: {} is one of {} (not \"{}\"{})", scheduler.name, knob.name,
                               choices, value, did_you_mean(value, known)));
}

void set_knob(ScheduleSpec& spec, const std::string& item) {
  const std::size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  std::vector<std::string> known;
  for (const Knob& knob : spec.scheduler->knobs) {
    known.emplace_back(knob.name);
    if (knob.name != name) continue;
    const std::string value = item.substr(equals + 1);
    check_value(*spec.scheduler, knob, value);
    spec.knobs[name] = value;
    return;
  }
  std::string choices;
  for (const std::string& choice : known) choices += (choices.empty() ? "" : ", ") + choice;
  throw UsageError(fmt::format("{} has no knob \"{}\"{}; {}", spec.scheduler->name, name,
                               did_you_mean(name, known),
                               known.empty() ? "it has none" : "its knobs are " + choices));
}

// A knob that the schedule reads only where another one has a value.
struct KnobNeed {
  std::string_view schedule;
  std::string_view knob;
  std::string_view other;
  std::string_view value;
};
constexpr std::array knob_needs{
    KnobNeed{"stale_weights", "order", "mapping", "paired"},
    KnobNeed{"stale_weights", "weights_transfer", "mapping", "apart"},
    KnobNeed{"layerpipe", "share", "mode", "inter"},
};

void check_effects(const ScheduleSpec& spec) {
  for (const KnobNeed& need : knob_needs) {
    if (spec.scheduler->name != need.schedule) continue;
    const std::string& other = spec.knobs.at(std::string(need.other));
    if (other == need.value) continue;
    for (const Knob& knob : spec.scheduler->knobs) {
      const std::string& value = spec.knobs.at(std::string(knob.name));
      if (knob.name != need.knob || value == knob.fallback) continue;
      throw UsageError(fmt::format(
          "{}: {}={} has no effect with {}={}: give {}={}, or leave {} out", need.schedule,
          need.knob, value, need.other, other, need.other, need.value, need.knob));
    }
  }
}

ScheduleSpec with_defaults(const Scheduler& scheduler) {
  ScheduleSpec spec;
  spec.scheduler = &scheduler;
  for (const Knob& knob : scheduler.knobs) {
    spec.knobs.emplace(std::string(knob.name), std::string(knob.fallback));
  }
  return spec;
}

// By a name of ours or of another tool, with the knobs that the latter implies.
ScheduleSpec named(const std::string& name) {
  const std::string text = read_schedule_name(name);
  const std::size_t colon = text.find(':');
  ScheduleSpec spec = with_defaults(scheduler(text.empty() ? name : text.substr(0, colon)));
  if (colon == std::string::npos) return spec;
  for (const std::string& item : split(text.substr(colon + 1), ',')) set_knob(spec, item);
  return spec;
}

}  // namespace

const Scheduler& given_scheduler(Synchrony synchrony) {
  constexpr const char* summary = "a program that was given";
  static constexpr Scheduler flushed{"program", summary, "",     Synchrony::synchronous,
                                     {},        nullptr, nullptr};
  static constexpr Scheduler other{"program", summary, "",     Synchrony::asynchronous,
                                   {},        nullptr, nullptr};
  return synchrony == Synchrony::synchronous ? flushed : other;
}

ScheduleSpec given_schedule(Program program, std::string path) {
  const bool flushed = program.settings.weights == WeightRule::flush;
  ScheduleSpec spec;
  spec.scheduler = &given_scheduler(flushed ? Synchrony::synchronous : Synchrony::asynchronous);
  spec.given = std::make_shared<GivenProgram>(GivenProgram{std::move(path), std::move(program)});
  return spec;
}

std::string title(const ScheduleSpec& spec) {
  return spec.given ? spec.given->program.schedule : spelled(spec);
}

bool is_program_path(std::string_view item) {
  const std::string_view name = item.substr(0, item.find_first_of(":="));
  return item == "-" || name.find('/') != std::string_view::npos || name.ends_with(".slp") ||
         name.ends_with(".csv") || name.ends_with(".et");
}

std::string spelled(const ScheduleSpec& spec) {
  if (spec.given) return spec.given->path.empty() ? title(spec) : spec.given->path;
  std::string text(spec.scheduler->name);
  char separator = ':';
  for (const Knob& knob : spec.scheduler->knobs) {
    const std::string& value = spec.knobs.at(std::string(knob.name));
    if (value == knob.fallback) continue;
    text += fmt::format("{}{}={}", separator, knob.name, value);
    separator = ',';
  }
  return text;
}

const Scheduler& scheduler(std::string_view name) {
  std::string list;
  for (const Scheduler* const one : schedulers()) {
    if (one->name == name) return *one;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", one->name);
  }
  throw UsageError(fmt::format("there is no schedule \"{}\"{}; schedules are {} and all", name,
                               did_you_mean_schedule(std::string(name)), list));
}

std::vector<ScheduleSpec> parse_schedules(const std::string& text) {
  std::vector<ScheduleSpec> specs;
  std::set<std::string> given;  // knobs of the last schedule
  const auto set_once = [&](const std::string& item) {
    if (!given.insert(item.substr(0, item.find('='))).second) {
      throw UsageError(fmt::format("{}: {} is given a second time; leave one of them out",
                                   specs.back().scheduler->name, item));
    }
    set_knob(specs.back(), item);
  };
  for (const std::string& item : split(text, ',')) {
    if (item == "all") {
      for (const Scheduler* const one : schedulers()) specs.push_back(with_defaults(*one));
      continue;
    }
    const std::size_t colon = item.find(':');
    const std::size_t equals = item.find('=');
    if (colon == std::string::npos && equals != std::string::npos) {
      if (specs.empty()) {
        throw UsageError(
            fmt::format("\"{}\" is a knob without a schedule; write NAME:{}", item, item));
      }
      set_once(item);
      continue;
    }
    given.clear();
    specs.push_back(named(item.substr(0, colon)));
    if (colon == std::string::npos) continue;
    const std::string knob = item.substr(colon + 1);
    if (knob.find('=') == std::string::npos) {
      throw UsageError(fmt::format("\"{}\": a knob is written NAME=VALUE", item));
    }
    set_once(knob);
  }
  for (const ScheduleSpec& spec : specs) check_effects(spec);
  return specs;
}

}  // namespace stageline
