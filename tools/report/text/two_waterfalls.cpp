// Two waterfalls side by side: table, sentence, picture and JSON.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_terms = 4;  // of the sentence
constexpr double told = 0.95;          // share of all differences that the sentence names

struct Term {
  std::string name;
  Time time{};
};

Time size_of(const Term& term) { return term.time < Time{} ? -term.time : term.time; }

// What `one` has more than `other`: the ideal and the causes, in the order of the waterfall.
std::vector<Term> differences(const Waterfall& one, const Waterfall& other) {
  std::vector<Term> terms{{"ideal", one.ideal - other.ideal}};
  for (std::size_t cause = 0; cause < one.by.size(); ++cause) {
    terms.push_back(
        {std::string(name(static_cast<StepCause>(cause))), one.by[cause] - other.by[cause]});
  }
  return terms;
}

// The largest ones, and the rest as one.
std::string in_words(std::vector<Term> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return size_of(a) > size_of(b); });
  double all = 0;
  for (const Term& term : terms) all += to_seconds(size_of(term));
  std::string text;
  double named = 0;
  Time rest{};
  std::size_t count = 0;
  for (const Term& term : terms) {
    if (count < most_terms && named < told * all && term.time != Time{}) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", term.name, signed_time(term.time));
      named += to_seconds(size_of(term));
      ++count;
    } else {
      rest += term.time;
    }
  }
  if (rest != Time{}) text += fmt::format(", the rest {}", signed_time(rest));
  return text;
}

}  // namespace

std::string difference_sentence(const NamedWaterfall& first, const NamedWaterfall& second) {
  const bool second_is_faster = second.waterfall.step < first.waterfall.step;
  const NamedWaterfall& fast = second_is_faster ? second : first;
  const NamedWaterfall& slow = second_is_faster ? first : second;
  const std::string terms = in_words(differences(fast.waterfall, slow.waterfall));
  if (fast.waterfall.step == Time{}) return fast.name + " takes no time";
  const double faster = to_seconds(slow.waterfall.step) / to_seconds(fast.waterfall.step) - 1;
  const std::string speed =
      faster < same_time
          ? fmt::format("{} is as fast as {}", fast.name, slow.name)
          : fmt::format("{} is {} faster than {}", fast.name, percent(faster), slow.name);
  return terms.empty() ? speed + ", and every cause is as large" : speed + ": " + terms;
}

std::string two_waterfalls_table(const NamedWaterfall& first, const NamedWaterfall& second,
                                 int width) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view name, Time one, Time other, bool ends) {
    const auto text = [&](Time time) { return ends ? print(time) : signed_time(time); };
    rows.push_back({std::string(name), text(one), text(other), signed_time(other - one)});
  };
  const Waterfall& one = first.waterfall;
  const Waterfall& other = second.waterfall;
  add("ideal", one.ideal, other.ideal, true);
  for (std::size_t cause = 0; cause < one.by.size(); ++cause) {
    if (one.by[cause] == Time{} && other.by[cause] == Time{}) continue;
    add(name(static_cast<StepCause>(cause)), one.by[cause], other.by[cause], false);
  }
  add("step", one.step, other.step, true);
  return table({{"cause", true}, {first.name}, {second.name}, {"difference"}}, rows, width) +
         wrapped(fmt::format("→ {}\n", difference_sentence(first, second)), width);
}

WaterfallChart waterfall_chart(const std::vector<NamedWaterfall>& waterfalls) {
  WaterfallChart chart;
  Time longest{};
  for (const NamedWaterfall& one : waterfalls) {
    chart.waterfalls.push_back(one.name);
    longest = std::max(longest, one.waterfall.step);
  }
  const bool long_steps = to_seconds(longest) >= 10;
  chart.label = long_steps ? "s" : "ms";
  const double unit = long_steps ? 1 : 1e3;
  std::vector<Time> until(waterfalls.size());
  const auto row = [&](std::string_view name, auto&& piece, bool whole) {
    WaterfallRow one{std::string(name), {}};
    for (std::size_t w = 0; w < waterfalls.size(); ++w) {
      const Time from = whole ? Time{} : until[w];
      const Time time = piece(waterfalls[w].waterfall);
      until[w] = from + time;
      const double step = to_seconds(waterfalls[w].waterfall.step);
      const double share = step > 0 ? to_seconds(time) / step : 0;
      const std::string words = fmt::format("{}{:.4g} {} · {}", whole || time < Time{} ? "" : "+",
                                            to_seconds(time) * unit, chart.label, percent(share));
      one.bars.push_back({to_seconds(from) * unit, to_seconds(until[w]) * unit, words,
                          fmt::format("{}, {}: {}", waterfalls[w].name, name, words)});
    }
    chart.rows.push_back(std::move(one));
  };
  row(
      "ideal", [](const Waterfall& one) { return one.ideal; }, true);
  for (std::size_t cause = 0; cause < std::size_t{step_causes}; ++cause) {
    const bool any =
        std::any_of(waterfalls.begin(), waterfalls.end(),
                    [&](const NamedWaterfall& one) { return one.waterfall.by[cause] != Time{}; });
    if (!any) continue;
    row(
        name(static_cast<StepCause>(cause)),
        [cause](const Waterfall& one) { return one.by[cause]; }, false);
  }
  row(
      "step", [](const Waterfall& one) { return one.step; }, true);
  return chart;
}

Json difference_json(const NamedWaterfall& first, const NamedWaterfall& second) {
  Json result{{"against", first.name}};
  put_time(result, "step", second.waterfall.step - first.waterfall.step);
  for (const Term& term : differences(second.waterfall, first.waterfall)) {
    if (term.name == "ideal") {
      put_time(result, "ideal", term.time);
      result["causes"] = Json::array();
      continue;
    }
    Json row{{"cause", term.name}};
    put_time(row, "time", term.time);
    result["causes"].push_back(row);
  }
  result["sentence"] = difference_sentence(first, second);
  return result;
}

namespace {

constexpr std::size_t most_drawn = 64;  // devices

// The time of a device by cause, at work and waiting, and its bar.
Time time_of(const DeviceWaterfall& device, std::size_t cause) {
  return device.busy[cause] + device.idle[cause];
}

void add_devices(WaterfallChart& chart, const Waterfall& waterfall) {
  const double unit = chart.label == "s" ? 1 : 1e3;
  const std::size_t all = waterfall.device.size();
  std::vector<std::size_t> causes;
  chart.stack_parts = {"work"};
  for (std::size_t cause = 0; cause < waterfall.by.size(); ++cause) {
    const bool any = std::any_of(
        waterfall.device.begin(), waterfall.device.end(),
        [&](const DeviceWaterfall& device) { return time_of(device, cause) != Time{}; });
    if (!any) continue;
    causes.push_back(cause);
    chart.stack_parts.emplace_back(name(static_cast<StepCause>(cause)));
  }
  for (std::size_t i = 0; i < all; ++i) {
    if (all > most_drawn && i >= most_drawn / 2 && i < all - most_drawn / 2) continue;
    const DeviceWaterfall& device = waterfall.device[i];
    WaterfallStack stack{device.name, {to_seconds(device.work) * unit}};
    for (const std::size_t cause : causes) {
      stack.parts.push_back(to_seconds(time_of(device, cause)) * unit);
    }
    chart.stacks.push_back(std::move(stack));
  }
  if (all > most_drawn) {
    chart.footnotes.push_back(
        fmt::format("By device: the first and the last {} of {} devices.", most_drawn / 2, all));
  }
}

}  // namespace

std::string waterfalls_svg(const std::vector<NamedWaterfall>& waterfalls, const std::string& model,
                           const std::vector<std::string>& notes, const SvgOptions& options,
                           bool by_device) {
  WaterfallChart chart = waterfall_chart(waterfalls);
  if (by_device && waterfalls.size() == 1) add_devices(chart, waterfalls.front().waterfall);
  chart.title = "Where the step's time goes · " + model;
  chart.subtitle = waterfalls.size() == 1
                       ? fmt::format("{}: step {}", waterfalls.front().name,
                                     print(waterfalls.front().waterfall.step))
                       : difference_sentence(waterfalls.front(), waterfalls.back());
  const std::string order = shapley_note(waterfalls.front().waterfall);
  if (!order.empty()) chart.footnotes.push_back("Note: " + order + ".");
  for (const std::string& note : notes) chart.footnotes.push_back("Note: " + note + ".");
  return waterfall_svg(chart, options);
}

}  // namespace stageline::report
