#include "tools/report/text/sensitivity.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"

namespace stageline::report {
namespace {

constexpr double nothing = 1e-6;  // of the step: less is rounding
constexpr double little = 1e-3;   // of the step: a change that a short table leaves out

std::string change(const Sensitivity& found, Time step) {
  const double share = -gain(found.step, step);
  return std::abs(share) < nothing ? "0" : signed_share(share);
}

std::string in_percent(double factor) { return fmt::format("{:+.3g} %", (factor - 1) * 100); }

// The lever's share of the cycle; none where a little less of the lever makes the step longer.
std::string share_of(const LeverEffect& effect) {
  return effect.share_faster < -nothing ? "–" : percent(effect.share_faster);
}

// How far the shares hold: of a lever on the cycle until its gain gets smaller, of another until it
// begins to cost.
std::string reach(const Sensitivity& found, const LeverEffect& effect) {
  std::string text;
  if (effect.gains_from) {
    text = fmt::format("nothing before {}", in_percent(*effect.gains_from));
  } else if (effect.share_faster > nothing && found.exact &&
             found.engine == SensitivityEngine::cycle) {
    text = effect.least <= 0 ? "gains alike down to 0"
                             : fmt::format("gains less below {}", in_percent(effect.least));
  } else if (effect.share_faster < -nothing) {
    text = "a little faster, links serve in a worse order";
  } else if (effect.share_faster <= nothing && effect.share_slower > nothing) {
    text = "costs at once, gains nothing";
  }
  if (effect.share_slower > nothing) return text;
  std::string costs;
  if (found.engine == SensitivityEngine::cycle) {
    costs = effect.most >= PeriodCurve::most_factor
                ? fmt::format("costs nothing up to ×{:g}", PeriodCurve::most_factor)
                : fmt::format("costs nothing up to {}", in_percent(effect.most));
  } else if (effect.costs_from) {
    costs = fmt::format("costs at {}", in_percent(*effect.costs_from));
  } else {
    costs = fmt::format("costs nothing up to ×{:g}", PeriodCurve::most_factor);
  }
  return text.empty() ? costs : text + ", " + costs;
}

bool changes_by(const Sensitivity& found, const LeverEffect& effect, double least) {
  const auto changes = [&](Time step) { return std::abs(gain(found.step, step)) >= least; };
  return changes(effect.faster) || changes(effect.twice) || changes(effect.free) ||
         changes(effect.slower);
}

// Changes the step by more than a little; where none does, at all.
bool matters(const Sensitivity& found, const LeverEffect& effect) {
  const bool any =
      std::any_of(found.effects.begin(), found.effects.end(),
                  [&](const LeverEffect& other) { return changes_by(found, other, little); });
  return changes_by(found, effect, any ? little : nothing);
}

std::vector<const LeverEffect*> shown(const Sensitivity& found, std::size_t most) {
  std::vector<const LeverEffect*> rows;
  for (const LeverEffect& effect : found.effects) {
    if (most > 0 && (rows.size() >= most || !matters(found, effect))) continue;
    rows.push_back(&effect);
  }
  return rows;
}

// What the levers behind those that are shown change.
std::string rest_words(const Sensitivity& found, std::size_t shown) {
  const std::size_t rest = found.effects.size() - shown;
  const bool all = shown == as_size(std::count_if(
                                found.effects.begin(), found.effects.end(),
                                [&](const LeverEffect& effect) { return matters(found, effect); }));
  return all ? fmt::format("{} more change the step by less than 0.1 %, or not at all", rest)
             : fmt::format("{} more change the step less, or not at all", rest);
}

Json json_of(const Sensitivity& found, const LeverEffect& effect) {
  const Lever& lever = effect.lever;
  Json row{{"name", lever.name}, {"kind", name(lever.kind)}};
  row["op"] = lever.op ? Json(symbol(*lever.op)) : Json(nullptr);
  row["stage"] = lever.stage ? Json(*lever.stage) : Json(nullptr);
  row["device"] = lever.device ? Json(*lever.device) : Json(nullptr);
  row["to_device"] = lever.to ? Json(*lever.to) : Json(nullptr);
  row["dimension"] = lever.dimension ? Json(name(*lever.dimension)) : Json(nullptr);
  row["share_faster"] = effect.share_faster;
  row["share_slower"] = effect.share_slower;
  const bool exact = found.engine == SensitivityEngine::cycle;
  row["holds_from_factor"] = exact ? Json(effect.least) : Json(nullptr);
  row["holds_to_factor"] = exact ? Json(effect.most) : Json(nullptr);
  row["gains_from_factor"] = effect.gains_from ? Json(*effect.gains_from) : Json(nullptr);
  row["costs_from_factor"] = effect.costs_from ? Json(*effect.costs_from) : Json(nullptr);
  put_time(row, "slower_10_percent", effect.slower);
  put_time(row, "faster_10_percent", effect.faster);
  put_time(row, "twice_as_fast", effect.twice);
  put_time(row, "free", effect.free);
  return row;
}

}  // namespace

std::string sensitivity_table(const Sensitivity& found, std::size_t most, int width) {
  std::vector<std::vector<std::string>> cells;
  for (const LeverEffect* const effect : shown(found, most)) {
    cells.push_back({effect->lever.name, share_of(*effect), change(found, effect->faster),
                     change(found, effect->twice), change(found, effect->free),
                     change(found, effect->slower), reach(found, *effect)});
  }
  std::vector<Column> columns{{"what", true}, {"on the cycle"}, {"10 % faster"},
                              {"2×"},         {"free"},         {"10 % slower"}};
  const bool reaches =
      std::any_of(cells.begin(), cells.end(), [](const auto& row) { return !row.back().empty(); });
  if (reaches) {
    columns.push_back({"reach", true, 0, false, true});
  } else {
    for (std::vector<std::string>& row : cells) row.pop_back();
  }
  std::string text = table(columns, cells, width);
  const std::size_t rest = found.effects.size() - cells.size();
  if (rest > 0) {
    text += rest_words(found, cells.size()) + ": --full\n";
  }
  return text;
}

Sheet sensitivity_sheet(const Sensitivity& found) {
  Sheet sheet{
      {{"what", "Ops, a device or a link; 10 % faster: it takes 10 % less time everywhere", true},
       {"on the cycle", "Its share of the critical cycle: what the step changes by with it"},
       {"10 % faster", "Change of the step where it takes 10 % less time"},
       {"2×", "Change of the step where it takes half the time"},
       {"free", "Change of the step where it takes no time"},
       {"10 % slower", "Change of the step where it takes 10 % more time"},
       {"reach", "How far that goes", true}},
      {}};
  for (const LeverEffect& effect : found.effects) {
    std::vector<SheetCell> row{{effect.lever.name, {}},
                               {share_of(effect), number_figure(effect.share_faster)}};
    for (const Time step : {effect.faster, effect.twice, effect.free, effect.slower}) {
      CellFigure figure = time_figure(step - found.step);
      figure.exact = fmt::format("step {}", time_figure(step).exact);
      row.push_back({change(found, step), std::move(figure)});
    }
    row.push_back({reach(found, effect), {}});
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

Tornado sensitivity_tornado(const Sensitivity& found, std::size_t most) {
  Tornado tornado;
  tornado.label = "change of the step, %";
  for (const LeverEffect* const effect : shown(found, most)) {
    const auto change_of = [&](Time step) {
      const double share = -gain(found.step, step);
      return std::abs(share) < nothing ? 0 : share * 100;
    };
    tornado.bars.push_back(
        {effect->lever.name, change_of(effect->faster), change_of(effect->twice),
         change_of(effect->slower),
         fmt::format("{}: 10 % faster {}, twice as fast {}, free {}, 10 % slower {}",
                     effect->lever.name, change(found, effect->faster),
                     change(found, effect->twice), change(found, effect->free),
                     change(found, effect->slower))});
  }
  return tornado;
}

std::string sensitivity_json(const Setting& setting, const Case& asked, const Outcome& outcome,
                             const Sensitivity& found) {
  Json result;
  result["schedule"] = outcome.schedule;
  result["model"] = setting.model.name;
  result["cluster"] = asked.cluster.name;
  result["devices"] = asked.device_count();
  result["microbatches"] = outcome.microbatches;
  put_time(result, "step", found.step);
  result["exact"] = found.exact;
  result["engine"] = name(found.engine);
  result["decided_by"] = found.cycle.empty() ? Json(nullptr) : Json(found.cycle);
  result["partial"] = found.partial;
  result["levers"] = Json::array();
  for (const LeverEffect& effect : found.effects)
    result["levers"].push_back(json_of(found, effect));
  result["advice"] = advice_of(found);
  std::vector<std::string> said = notes(setting);
  said.insert(said.end(), found.notes.begin(), found.notes.end());
  result["notes"] = said;
  return result.text();
}

std::string sensitivity_svg(const answers::SensitivityAnswer& answered, std::size_t most,
                            const SvgOptions& options) {
  const Sensitivity& found = answered.found;
  Tornado tornado = sensitivity_tornado(found, most);
  tornado.title =
      "What the step hangs on · " + answered.outcome.schedule + " · " + answered.setting.model.name;
  tornado.subtitle =
      fmt::format("step {} on {} devices", print(found.step), answered.asked.device_count());
  if (tornado.bars.size() < found.effects.size()) {
    tornado.footnotes.push_back(rest_words(found, tornado.bars.size()) + ".");
  }
  for (const std::string& note : found.notes) tornado.footnotes.push_back("Note: " + note + ".");
  return tornado_svg(tornado, options);
}

std::string sensitivity_text(const answers::SensitivityAnswer& answered, std::size_t most,
                             int width, bool quiet) {
  const Sensitivity& found = answered.found;
  std::string lines = quiet ? "" : heading(answered.setting, answered.asked) + "\n";
  lines += fmt::format("{}: step {}\n", answered.outcome.schedule, print(found.step));
  if (!found.cycle.empty()) lines += fmt::format("decided by: {}\n", found.cycle);
  return wrapped(lines, width) + "\n" + sensitivity_table(found, most, width) +
         wrapped(fmt::format("→ {}\n", advice_of(found)), width);
}

}  // namespace stageline::report
