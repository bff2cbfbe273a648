// Laws of a question and a changed one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/questions/ask.hpp"
#include "tests/trial/laws.hpp"
#include "tests/trial/machines.hpp"

namespace stageline::trial {
namespace {

using test::Questions;

std::string typed(const Question& question) {
  return test::typed(command("simulate", {"--no-changes"}, question));
}

std::vector<std::int64_t> peaks_of(const Json& row) {
  std::vector<std::int64_t> peaks;
  for (const Json& device : row.at("per_device")) {
    if (device.contains("peak_bytes")) peaks.push_back(device.at("peak_bytes").get<std::int64_t>());
  }
  return peaks;
}

// The step and the peaks of two rows are the same, to so many picoseconds.
void hold_alike(const Json& one, const Json& other, const std::string& what,
                std::int64_t slack = 0) {
  if (std::llabs(step_of(one) - step_of(other)) > slack) {
    throw Contradiction{
        fmt::format("{}: steps of {} and {} ps", what, step_of(one), step_of(other))};
  }
  if (peaks_of(one) != peaks_of(other)) {
    throw Contradiction{fmt::format("{}: peaks of {} and {} bytes", what,
                                    Json(peaks_of(one)).dump(), Json(peaks_of(other)).dump())};
  }
}

// The same question on the cut that it has now: a change would cut it anew.
std::optional<Question> on_this_cut(Asker& asker, const Question& question) {
  const auto row = asker.simulate(question);
  if (!row) return std::nullopt;
  return question.with("--partition", row->at("partition").get<std::string>());
}

// Whether the order of work on links can change, so that what is faster may come in each other's
// way: links that several lanes share, and orders that are made for the times.
bool may_overtake(const Question& question) {
  return question.has_degrees() || question.searches() || question.has("--cluster") ||
         question.value("--sharing") == "fair";
}

// Shared links serve in the order of requests: of what is faster, most is sooner, and little later.
void hold_not_later(const Json& slower, const Json& faster, bool overtakes,
                    const std::string& what) {
  const auto slack =
      static_cast<std::int64_t>(overtakes ? 0.02 * static_cast<double>(step_of(slower)) : 0);
  if (step_of(faster) <= step_of(slower) + slack) return;
  throw Contradiction{fmt::format("{}: a step of {} ps, and of {} ps where all is as it was", what,
                                  step_of(faster), step_of(slower))};
}

bool slower_links_are_no_gain(Asker& asker, const Question& question, Questions& draw) {
  if (question.has("--slow") || question.searches()) return false;
  const auto cut = on_this_cut(asker, question);
  if (!cut) return false;
  const Question other =
      cut->with("--slow", draw.one_of(Words{"links:2", "links:1.3", "network:3"}));
  const auto now = asker.simulate(*cut);
  const auto slower = now ? asker.simulate(other) : std::nullopt;
  if (!now || !slower) return false;
  hold_not_later(*slower, *now, may_overtake(question), typed(other) + ": slower links");
  return true;
}

bool slower_devices_are_no_gain(Asker& asker, const Question& question, Questions& draw) {
  if (question.has("--slow") || question.searches()) return false;
  // Replicas that send at once share links the whole time; one that is late does not.
  if (question.has("--dp") && question.value("--sharing") != "fifo") return false;
  const auto cut = on_this_cut(asker, question);
  if (!cut) return false;
  const Question other =
      cut->with("--slow", draw.one_of(Words{"gpu*:1.5", "gpu0:1.2", "gpu*:1.01"}));
  const auto now = asker.simulate(*cut);
  const auto slower = now ? asker.simulate(other) : std::nullopt;
  if (!now || !slower) return false;
  hold_not_later(*slower, *now, may_overtake(question), typed(other) + ": slower devices");
  return true;
}

// Of schedules that do not look at it.
bool more_memory_refuses_nothing(Asker& asker, const Question& question, Questions& draw) {
  if (question.searches() || question.value("--cluster").ends_with(".json")) return false;
  const int gigabytes = 4 + draw.number(40);  // more than the reserve of a GPU
  const Question less = question.with("--memory", fmt::format("{}GB", gigabytes));
  const Question more = question.with("--memory", fmt::format("{}GB", 4 * gigabytes));
  const auto with_less = asker.simulate(less);
  const auto with_more = asker.simulate(more);
  if (with_less.has_value() != with_more.has_value()) {
    throw Contradiction{typed(more) + ": one of " + less.value("--memory") + " and " +
                        more.value("--memory") + " is refused"};
  }
  if (!with_less) return false;
  hold_alike(*with_less, *with_more, typed(more) + ": with less memory");
  if (with_less->at("fits") == "yes" && with_more->at("fits") != "yes") {
    throw Contradiction{typed(more) + ": fits into " + less.value("--memory")};
  }
  return true;
}

// The same amounts in other units.
bool units_do_not_matter(Asker& asker, const Question& question, Questions& draw) {
  const int number = 1 + draw.number(64);
  const auto [flag, one, other] =
      draw.one_of(std::vector<std::tuple<std::string, std::string, std::string>>{
          {"--memory", fmt::format("{}GB", number), fmt::format("{}000MB", number)},
          {"--memory", fmt::format("{}MB", number), fmt::format("{}000kB", number)},
          {"--reserve", fmt::format("{}MB", number), fmt::format("{}000000B", number)},
          {"--link", fmt::format("{}GB/s,{}us", number, number),
           fmt::format("{}000MB/s,{}000ns", number, number)},
          {"--link", fmt::format("{}Gbit/s", 8 * number), fmt::format("{}GB/s", number)},
          {"--link", fmt::format("{}GB/s,{}ms", number, number),
           fmt::format("{}GB/s,0.{:03}s", number, number)}});
  if (flag == "--link" && question.has("--cluster")) return false;
  const auto first = asker.simulate(question.with(flag, one));
  const auto second = asker.simulate(question.with(flag, other));
  const std::string what = typed(question.with(flag, other)) + ": " + one + " and " + other;
  if (first.has_value() != second.has_value()) throw Contradiction{what + ": one is refused"};
  if (first && *first != *second) throw Contradiction{what + ": answers differ"};
  return first.has_value();
}

bool names_do_not_matter(Asker& asker, const Question& question, Questions& draw) {
  if (question.has("--slow")) return false;
  const std::string other = renamed(question.value("--cluster"), draw.folder());
  if (other.empty()) return false;
  const auto one = asker.simulate(question);
  const auto two = asker.simulate(question.with("--cluster", other));
  const std::string what = typed(question.with("--cluster", other)) + ": other names";
  if (one.has_value() != two.has_value()) throw Contradiction{what + ": one is refused"};
  if (one) hold_alike(*one, *two, what);
  return one.has_value();
}

// Of a uniform trace: layers and all four times, which have other values where they are left out.
bool says_its_times(const Question& question) {
  return question.options.size() >= 5 && question.options[0].starts_with("layers") &&
         question.options[4].starts_with("update");
}

// Replicas over links that take no time are one pipeline.
bool free_replicas_are_one(Asker& asker, const Question& question, Questions& draw) {
  if (question.model != "uniform" || question.searches() || !question.has("--devices"))
    return false;
  Question plain = question.without("--slow").without("--link").without("--memory");
  plain = plain.without("--host-link").without("--offload").without("--prefetch");
  const int devices = std::stoi(plain.value("--devices"));
  const Question one = plain.with("--link", "unlimited").with("--pp", fmt::format("{}", devices));
  const int replicas = 2 + draw.number(3);
  const Question several = one.with("--dp", fmt::format("{}", replicas))
                               .with("--devices", fmt::format("{}", replicas * devices));
  const auto of_one = asker.simulate(one);
  const auto of_several = of_one ? asker.simulate(several) : std::nullopt;
  if (!of_several) return false;
  hold_alike(*of_one, *of_several, typed(several) + ": replicas over free links");
  return true;
}

// Twice as many layers, each with half of the time, weights and stashes.
bool halves_are_wholes(Asker& asker, const Question& question, Questions& /*draw*/) {
  if (question.model != "uniform" || question.searches() || question.has("--recompute"))
    return false;
  // A layer also holds its output, so that stashes differ, and with them what is copied.
  if (question.has("--offload") || !says_its_times(question)) return false;
  const std::string schedule = question.value("--schedule");
  const bool reduces = schedule.starts_with("gems") || schedule.starts_with("chimera") ||
                       schedule.starts_with("dualpipe");
  const auto says_weights = [](const std::string& option) {
    return option.starts_with("weights=");
  };
  if (reduces && std::none_of(question.options.begin(), question.options.end(), says_weights)) {
    return false;
  }
  Question halves = question.with("--partition", "uniform");
  const Question wholes = halves;
  for (std::string& option : halves.options) {
    const std::size_t at = option.find('=') + 1;
    const std::string key = option.substr(0, at);
    if (key == "output=" || key == "batch=") continue;
    const std::size_t unit = option.find_first_not_of("0123456789", at);
    if (at == 0 || unit == at) return false;
    const int value = std::stoi(option.substr(at, unit - at));
    const std::string rest = unit == std::string::npos ? "" : option.substr(unit);
    if (key == "layers=") {
      option = fmt::format("layers={}", 2 * value);
    } else if (value % 2 == 0) {
      option = fmt::format("{}{}{}", key, value / 2, rest);
    } else {
      return false;
    }
  }
  const auto one = asker.simulate(wholes);
  const auto two = asker.simulate(halves);
  // Stages of equal layers alone are the same stages.
  if (!one || !two) return false;
  const auto stages = static_cast<int>(one->at("per_stage").size());
  const int layers = std::stoi(wholes.options.front().substr(7));
  if (stages == 0 || layers % stages != 0 ||
      one->at("per_stage").size() != two->at("per_stage").size()) {
    return false;
  }
  // Slices of layers are rounded to picoseconds.
  if (std::llabs(step_of(*one) - step_of(*two)) > 10'000) {
    throw Contradiction{fmt::format("{}: steps of {} ps, and of {} in half layers", typed(halves),
                                    step_of(*one), step_of(*two))};
  }
  return true;
}

// Twice all times, and half of all bandwidths, are twice the step.
bool time_has_no_scale(Asker& asker, const Question& question, Questions& /*draw*/) {
  if (question.model != "uniform" || question.searches() || question.has("--cluster")) return false;
  if (!says_its_times(question)) return false;
  Question slow = question;
  for (std::string& option : slow.options) {
    const std::size_t unit = option.find("us");
    if (unit == std::string::npos) continue;
    const std::size_t at = option.find('=') + 1;
    option =
        option.substr(0, at) + fmt::format("{}us", 2 * std::stoi(option.substr(at, unit - at)));
  }
  const std::string half = "500MB/s,20us";
  const Question now = question.with("--link", "1GB/s,10us")
                           .without("--host-link")
                           .without("--offload")
                           .without("--prefetch");
  slow =
      slow.with("--link", half).without("--host-link").without("--offload").without("--prefetch");
  const auto one = asker.simulate(now);
  const auto two = one ? asker.simulate(slow) : std::nullopt;
  if (!two) return false;
  // Each transfer is rounded to picoseconds.
  if (std::llabs(2 * step_of(*one) - step_of(*two)) > 1000) {
    throw Contradiction{fmt::format("{}: a step of {} ps, and of {} with half the times",
                                    typed(slow), step_of(*two), step_of(*one))};
  }
  return true;
}

constexpr std::array changing{
    Law{"slower-links", "slower links make no step shorter", 8, Kind::any,
        slower_links_are_no_gain},
    Law{"slower-devices", "slower devices make no step shorter", 8, Kind::any,
        slower_devices_are_no_gain},
    Law{"memory", "more memory refuses nothing and changes nothing", 6, Kind::any,
        more_memory_refuses_nothing},
    Law{"units", "units do not matter", 4, Kind::any, units_do_not_matter},
    Law{"names", "names do not matter", 6, Kind::ranks, names_do_not_matter},
    Law{"free-replicas", "replicas over free links are one pipeline", 4, Kind::pipeline,
        free_replicas_are_one},
    Law{"halves", "halves of layers are layers", 4, Kind::pipeline, halves_are_wholes},
    Law{"scale", "twice the times are twice the step", 4, Kind::pipeline, time_has_no_scale},
};

}  // namespace

std::span<const Law> changes() { return changing; }

}  // namespace stageline::trial
