// Writes time to accuracy as text and charts.
#include "tools/lab/training/accuracy_report.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/base/table.hpp"

namespace stageline::lab {
namespace {

constexpr const char* none = "–";

// With as many decimals as are meaningful for a test set of thousands.
std::string accuracy_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string with_spread(double mean, double least, double most, std::size_t seeds) {
  if (seeds < 2) return accuracy_text(mean);
  return fmt::format("{:.2f} ± {:.2f} %", 100 * mean, 50 * (most - least));
}

std::string final_text(const AccuracyCurve& curve) {
  const AccuracyPoint& last = curve.points.back();
  if (!last.mean) return "diverged";
  return with_spread(*last.mean, last.least, last.most, curve.runs.size());
}

std::string reached_text(const AccuracyCurve& curve) {
  if (curve.reached.seeds == 0) return none;
  std::string text = long_time(curve.reached.time);
  if (!curve.all_reach()) {
    text += fmt::format(" ({} of {} seeds)", curve.reached.seeds, curve.runs.size());
  }
  return text;
}

std::string steps_text(const AccuracyCurve& curve) {
  return curve.reached.seeds == 0 ? none : fmt::format("{:.6g}", curve.reached.steps);
}

// The value shared by all curves, or "several".
template <class Value>
std::string shared(const AccuracyStudy& study, Value value) {
  std::string first = value(study.curves.front());
  for (const AccuracyCurve& curve : study.curves) {
    if (value(curve) != first) return "several";
  }
  return first;
}

std::string models_and_data(const AccuracyStudy& study) {
  const std::string model =
      shared(study, [](const AccuracyCurve& curve) { return curve.settings.model; });
  const std::string data =
      shared(study, [](const AccuracyCurve& curve) { return curve.settings.data; });
  return fmt::format("{} · {}", model == "several" ? "several models" : model,
                     data == "several" ? "several data sets" : data);
}

std::string times_words(const AccuracyStudy& study, const TimesFrom& from) {
  if (!from.trace.empty()) {
    return fmt::format("simulated again: {} on {}", from.trace, from.cluster);
  }
  const std::string trace =
      shared(study, [](const AccuracyCurve& curve) { return curve.settings.trace; });
  return fmt::format("as in the logs, priced by {}", trace == "several" ? "several traces" : trace);
}

std::size_t logs_in(const AccuracyStudy& study) {
  std::size_t logs = 0;
  for (const AccuracyCurve& curve : study.curves) logs += curve.runs.size();
  return logs;
}

struct Unit {
  std::string name;
  double seconds = 1;
};
Unit unit_for(Time longest) {
  const double seconds = to_seconds(longest);
  if (seconds < 1e-3) return {"µs", 1e-6};
  if (seconds < 1) return {"ms", 1e-3};
  if (seconds < 7200) return {"s", 1};
  if (seconds < 2 * 86400) return {"h", 3600};
  return {"days", 86400};
}

double pipelined_percent(const AccuracyCurve& curve) {
  if (!curve.pipelined()) return 0;
  return 100 * static_cast<double>(curve.settings.pipelined) /
         static_cast<double>(curve.settings.steps);
}

}  // namespace

std::string accuracy_heading(const AccuracyStudy& study, const TimesFrom& from) {
  const std::size_t logs = logs_in(study);
  return fmt::format(
      "{} · {} log{}, {} curve{}\ntimes {}\ntarget {}{}\n", models_and_data(study), logs,
      logs == 1 ? "" : "s", study.curves.size(), study.curves.size() == 1 ? "" : "s",
      times_words(study, from), accuracy_text(study.target),
      study.target_given ? "" : ": the highest accuracy that the mean of every curve reaches");
}

std::string accuracy_table(const AccuracyStudy& study, int width) {
  const bool names_say_schedules =
      std::all_of(study.curves.begin(), study.curves.end(), [](const AccuracyCurve& curve) {
        return !curve.pipelined() || curve.name == curve.settings.schedule;
      });
  std::vector<Column> columns{{"curve", true}};
  if (!names_say_schedules) columns.push_back({"schedule", true});
  for (const char* const title : {"stale by", "stale weights", "a step", "final accuracy", "best",
                                  "to target", "steps", "speed-up"}) {
    if (std::string_view(title) == "stale by") columns.push_back({"cut", true});
    columns.push_back({title});
  }
  std::vector<std::vector<std::string>> rows;
  for (const AccuracyCurve& curve : study.curves) {
    const bool pipelined = curve.pipelined();
    std::vector<std::string> row{curve.name};
    if (!names_say_schedules) row.push_back(pipelined ? curve.settings.schedule : none);
    row.insert(row.end(),
               {pipelined ? curve.settings.partition : none, fmt::format("{:g}", curve.staleness),
                percent(curve.stale_share), print(curve.step_time()), final_text(curve),
                curve.best ? accuracy_text(*curve.best) : none, reached_text(curve),
                steps_text(curve), curve.speedup ? fmt::format("{:.3f}×", *curve.speedup) : none});
    rows.push_back(std::move(row));
  }
  return table(columns, rows, width);
}

std::vector<std::string> accuracy_notes(const AccuracyStudy& study) {
  std::vector<std::string> notes = study.notes;
  const auto some = [&](auto&& is) {
    return std::any_of(study.curves.begin(), study.curves.end(), is);
  };
  if (some([](const AccuracyCurve& curve) { return curve.runs.size() > 1; })) {
    notes.emplace_back(
        "± is half of the distance from the least to the most over the seeds, curves are means");
  }
  notes.emplace_back(
      "the target counts as reached at the first evaluation that is not below it; a step "
      "is the mean over the whole training");
  if (some([](const AccuracyCurve& curve) {
        return curve.reached.seeds > 0 && !curve.all_reach();
      })) {
    notes.emplace_back(
        "where not all seeds reach the target, time and steps are means over those that do, "
        "and there is no speed-up");
  }
  if (some([](const AccuracyCurve& curve) { return curve.pipelined() && !curve.base; })) {
    notes.emplace_back(
        "without a log of the same model and data that is not pipelined there is no speed-up");
  }
  if (shared(study, [](const AccuracyCurve& curve) { return curve.settings.data; }) == "several") {
    notes.emplace_back("accuracies of different data do not compare");
  }
  return notes;
}

report::Chart accuracy_chart(const AccuracyStudy& study, const TimesFrom& from) {
  Time longest{};
  for (const AccuracyCurve& curve : study.curves) {
    longest = std::max(longest, curve.points.back().end);
  }
  const Unit unit = unit_for(longest);
  report::Chart chart;
  chart.title = "Accuracy against simulated time · " + models_and_data(study);
  chart.subtitle =
      fmt::format("{} · times {}",
                  logs_in(study) > study.curves.size() ? "means over the seeds" : "one seed each",
                  times_words(study, from));
  chart.x = {"simulated time", unit.name, false, false, 0.0, {}};
  chart.y = {"accuracy on the test set", "%", false, false, {}, {}};
  for (const AccuracyCurve& curve : study.curves) {
    report::Series series{curve.name, report::SeriesStyle::line, {}};
    for (const AccuracyPoint& point : curve.points) {
      series.points.push_back({to_seconds(point.end) / unit.seconds,
                               point.mean ? std::optional(100 * *point.mean) : std::nullopt,
                               false});
    }
    chart.series.push_back(std::move(series));
  }
  chart.horizontal.push_back({100 * study.target, "target " + accuracy_text(study.target)});
  for (const std::string& note : study.notes) chart.footnotes.push_back("Note: " + note + ".");
  return chart;
}

std::string switch_table(const AccuracyStudy& study, const SwitchFamily& family, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : family.curves) {
    const AccuracyCurve& curve = study.curves[i];
    rows.push_back({fmt::format("{}", curve.pipelined() ? curve.settings.pipelined : 0),
                    fmt::format("{:.1f} %", pipelined_percent(curve)), reached_text(curve),
                    steps_text(curve), final_text(curve), long_time(curve.total)});
  }
  return table({{"steps pipelined"},
                {"share"},
                {"to target"},
                {"steps"},
                {"final accuracy"},
                {"whole training"}},
               rows, width);
}

report::Chart switch_chart(const AccuracyStudy& study, const std::vector<SwitchFamily>& families) {
  Time longest{};
  for (const SwitchFamily& family : families) {
    for (const std::size_t i : family.curves) {
      longest = std::max(longest, study.curves[i].reached.time);
    }
  }
  const Unit unit = unit_for(longest);
  report::Chart chart;
  chart.title = fmt::format("Hybrid training: time to {} by switch · {}",
                            accuracy_text(study.target), models_and_data(study));
  chart.x = {"steps pipelined", "%", false, false, 0.0, 100.0};
  chart.y = {"simulated time to target", unit.name, false, false, {}, {}};
  bool partly = false;
  for (const SwitchFamily& family : families) {
    report::Series series{family.name, report::SeriesStyle::line, {}};
    for (const std::size_t i : family.curves) {
      const AccuracyCurve& curve = study.curves[i];
      const bool reached = curve.reached.seeds > 0;
      series.points.push_back(
          {pipelined_percent(curve),
           reached ? std::optional(to_seconds(curve.reached.time) / unit.seconds) : std::nullopt,
           reached && !curve.all_reach()});
      partly = partly || (reached && !curve.all_reach());
    }
    chart.series.push_back(std::move(series));
  }
  if (partly) chart.footnotes.emplace_back("Hollow: not all seeds reach the target.");
  for (const SwitchFamily& family : families) {
    for (const std::string& words : switch_words(study, family)) {
      chart.footnotes.push_back(
          families.size() == 1
              ? fmt::format("{}{}.", static_cast<char>(words[0] - 'a' + 'A'), words.substr(1))
              : fmt::format("{}: {}.", family.name, words));
    }
  }
  return chart;
}

}  // namespace stageline::lab
