// A calibration as text and as JSON: its constants, the sets that were tried, its errors, the rows
// refused.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/published/calibrate.hpp"

namespace stageline {
namespace {

const KernelConstant* find_constant(const std::string& name) {
  for (const KernelConstant& one : kernel_constants()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string rows_in_words(std::size_t count) {
  return fmt::format("{} row{}", count, count == 1 ? "" : "s");
}

std::string constants_table(const RateSet& set, int width) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t c = 0; c < set.free.size(); ++c) {
    const KernelConstant* const constant = find_constant(set.free[c]);
    const FreeConstant& prior = set.priors[c];
    const FittedConstant& found = set.fit.constants[c];
    rows.push_back(
        {fmt::format("{} ({})", constant->name, constant->symbol),
         constant_text(*constant, prior.prior), fmt::format("{:.2f}", std::exp(prior.spread)),
         constant_text(*constant, found.value) + (found.at_bound ? " (bound)" : ""),
         fmt::format("{:.3f}", std::exp(found.standard_error)), std::string(constant->meaning)});
  }
  return table({{"constant", true, 0, true},
                {"prior"},
                {"×/÷"},
                {"fitted"},
                {"×/÷"},
                {"meaning", true, 0, false, true}},
               rows, width);
}

std::string sets_table(const RateFit& fit, int width) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"none (built-in)", percent(fit.before.mean), percent(fit.before.median),
                  percent(fit.before.worst), ""});
  for (std::size_t i = 0; i < fit.sets.size(); ++i) {
    const RateSet& set = fit.sets[i];
    const StepErrors& errors = *set.cross_validated;
    rows.push_back({fmt::format("{}", fmt::join(set.free, ", ")), percent(errors.mean),
                    percent(errors.median), percent(errors.worst),
                    fit.sets.size() > 1 && i == fit.chosen ? "chosen" : ""});
  }
  return table({{"free", true, 0, true}, {"mean"}, {"median"}, {"worst"}, {"", true}}, rows, width);
}

std::string errors_sentence(const PointsCalibration& found) {
  const StepErrors& errors = found.fit.after;
  return fmt::format(
      "Error of the {} fitted to: mean {}, median {}, 95th percentile {}, worst {} (line {}, id "
      "{}), bias {}\n",
      rows_in_words(found.points.size()), percent(errors.mean), percent(errors.median),
      percent(errors.p95), percent(errors.worst), found.points[errors.worst_step].line,
      found.points[errors.worst_step].id, signed_share(errors.bias));
}

// "2-4, 9"
std::string lines_in_words(const std::vector<int>& lines) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t last = i;
    while (last + 1 < lines.size() && lines[last + 1] == lines[last] + 1) ++last;
    words.push_back(last == i ? fmt::format("{}", lines[i])
                              : fmt::format("{}-{}", lines[i], lines[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string refused_rows(const std::vector<RefusedPoint>& refused) {
  std::vector<std::pair<std::string, std::vector<int>>> reasons;  // in order of the first line
  for (const RefusedPoint& one : refused) {
    auto known = std::find_if(reasons.begin(), reasons.end(),
                              [&](const auto& reason) { return reason.first == one.reason; });
    if (known == reasons.end()) {
      reasons.push_back({one.reason, {}});
      known = reasons.end() - 1;
    }
    known->second.push_back(one.line);
  }
  std::string text = fmt::format("{} refused:\n", rows_in_words(refused.size()));
  for (const auto& reason : reasons) {
    text += fmt::format("  line{} {}: {}\n", reason.second.size() == 1 ? "" : "s",
                        lines_in_words(reason.second), reason.first);
  }
  return text;
}

// What a reader must know beside the tables.
std::string remarks(const PointsCalibration& found) {
  const RateFit& fit = found.fit;
  std::string text;
  const RateSet& chosen = fit.sets[fit.chosen];
  if (fit.groups < 2 && !found.few) {
    text += fmt::format(
        "All rows are of one model and tensor degree, so nothing is cross-validated{}.\n",
        fit.sets.size() == 1 ? "" : " and one constant is free");
  } else if (chosen.cross_validated->mean > fit.before.mean) {
    text += "The built-in constants predict rows that were left out better than fitted ones.\n";
  }
  if (!fit.idle.empty()) {
    text += fmt::format("No row depends on {}.\n", fmt::join(fit.idle, ", "));
  }
  if (!chosen.fit.converged) {
    text += fmt::format("The fit has not converged in {} iterations.\n", chosen.fit.iterations);
  }
  return text;
}

// What a calibration on few runs is good for, by class.
std::string rested_on(const Calibration& calibration) {
  std::string text;
  for (const CalibratedRuns& runs : calibration.rests_on) {
    const RunClass of{any_word, runs.kind, any_word, runs.products, any_word, any_word};
    text += fmt::format(
        "It rests on {} run{} of {} by {}: {}\n", runs.rows, runs.rows == 1 ? "" : "s",
        words_of(of), runs.software,
        runs.high > 0
            ? fmt::format("80 % of others lie within {:.3f} to {:.3f} of the prediction", runs.low,
                          runs.high)
            : "too few published runs to say what remains, so the range of their class stays");
  }
  return text;
}

Json step_errors_json(const StepErrors& errors) {
  return {{"mean", errors.mean},
          {"median", errors.median},
          {"p95", errors.p95},
          {"worst", errors.worst},
          {"bias", errors.bias}};
}

Json constants_json(const RateSet& set) {
  Json constants = Json::array();
  for (std::size_t c = 0; c < set.free.size(); ++c) {
    const FittedConstant& found = set.fit.constants[c];
    constants.push_back({{"name", set.free[c]},
                         {"built_in", set.priors[c].prior},
                         {"prior_factor", std::exp(set.priors[c].spread)},
                         {"value", found.value},
                         {"error_factor", std::exp(found.standard_error)},
                         {"at_bound", found.at_bound}});
  }
  return constants;
}

Json sets_json(const RateFit& fit) {
  Json sets = Json::array();
  for (std::size_t i = 0; i < fit.sets.size(); ++i) {
    const RateSet& set = fit.sets[i];
    sets.push_back({{"free", Json(set.free)},
                    {"chosen", i == fit.chosen},
                    {"left_out_errors",
                     set.cross_validated ? step_errors_json(*set.cross_validated) : Json()}});
  }
  return sets;
}

Json rests_on_json(const Calibration& calibration) {
  Json all = Json::array();
  for (const CalibratedRuns& runs : calibration.rests_on) {
    const bool known = runs.high > 0;
    all.push_back({{"software", runs.software},
                   {"kind", runs.kind},
                   {"products", runs.products},
                   {"rows", runs.rows},
                   {"low", known ? Json(runs.low) : Json()},
                   {"high", known ? Json(runs.high) : Json()}});
  }
  return all;
}

Json refused_json(const PointsCalibration& found) {
  Json rows = Json::array();
  for (const RefusedPoint& one : found.refused) {
    rows.push_back({{"id", one.id}, {"line", one.line}, {"reason", one.reason}});
  }
  return rows;
}

}  // namespace

std::string constant_text(const KernelConstant& constant, double value) {
  if (value == 0) return "0";
  if (constant.unit == "s") {
    struct Unit {
      double seconds;
      const char* name;
    };
    constexpr std::array units{Unit{1, "s"}, Unit{1e-3, "ms"}, Unit{1e-6, "µs"}, Unit{1e-9, "ns"}};
    for (const Unit& unit : units) {
      if (value >= unit.seconds) return fmt::format("{:.4g} {}", value / unit.seconds, unit.name);
    }
    return fmt::format("{:.4g} ps", value / 1e-12);
  }
  return fmt::format("{:.4g}{}{}", value, constant.unit.empty() ? "" : " ", constant.unit);
}

std::string calibration_text(const PointsCalibration& found, const std::string& file, int width) {
  const RateFit& fit = found.fit;
  const RateSet& chosen = fit.sets[fit.chosen];
  std::string text =
      wrapped(fmt::format("Rates of {} from {} of {}, in {} group{} by model and tensor degree ({} "
                          "simulations, {} iteration{} of the fit)\n\n",
                          found.calibration.kind, rows_in_words(found.points.size()), file,
                          fit.groups, fit.groups == 1 ? "" : "s", fit.simulations,
                          chosen.fit.iterations, chosen.fit.iterations == 1 ? "" : "s"),
              width);
  text += constants_table(chosen, width) + "\n";
  if (fit.groups > 1) {
    text += wrapped("Error of rows whose group was left out of the fit:\n", width) +
            sets_table(fit, width) + "\n";
  }
  text += wrapped(errors_sentence(found) + remarks(found) + rested_on(found.calibration), width);
  if (found.other_devices > 0) {
    text += fmt::format("{} of other devices left aside\n",
                        rows_in_words(static_cast<std::size_t>(found.other_devices)));
  }
  if (!found.refused.empty()) text += wrapped(refused_rows(found.refused), width);
  return text;
}

std::string calibration_json(const PointsCalibration& found,
                             const std::vector<std::string>& notes) {
  const RateFit& fit = found.fit;
  const RateSet& chosen = fit.sets[fit.chosen];
  const Point& worst = found.points[fit.after.worst_step];
  Json errors = step_errors_json(fit.after);
  errors["worst_line"] = worst.line;
  errors["worst_id"] = worst.id;
  return Json{{"kind", found.calibration.kind},
              {"source", found.calibration.source},
              {"date", found.calibration.date},
              {"rows", found.points.size()},
              {"other_devices", found.other_devices},
              {"groups", fit.groups},
              {"simulations", fit.simulations},
              {"iterations", chosen.fit.iterations},
              {"converged", chosen.fit.converged},
              {"constants", constants_json(chosen)},
              {"sets", sets_json(fit)},
              {"built_in_errors", step_errors_json(fit.before)},
              {"errors", std::move(errors)},
              {"idle", Json(fit.idle)},
              {"rests_on", rests_on_json(found.calibration)},
              {"refused", refused_json(found)},
              {"notes", Json(notes)}}
      .text();
}

}  // namespace stageline
