// Draws the strip chart of errors that report.hpp sketches.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/lab/evidence/aims.hpp"
#include "tools/lab/evidence/report.hpp"
#include "tools/report/charts/page.hpp"

namespace stageline::lab {
namespace {

constexpr double size = 12;       // px, of text
constexpr double line_pitch = 6;  // px, between points of a strip
constexpr double gap = 6;         // px, between strips

struct Strip {
  std::string name;
  Summary all;       // of its cases
  Summary held_out;  // of its cases held out
  double top = 0;    // px
  double height = 0;
};

// One strip per schedule, in order of first appearance.
std::vector<Strip> strips_of(const Evidence& evidence, const EvidenceJudgement& judgement) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    const std::string& schedule = evidence.cases[i].schedule;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.first == schedule; });
    if (group == groups.end()) group = groups.insert(groups.end(), {schedule, {}});
    group->second.push_back(i);
  }
  std::vector<Strip> strips;
  for (auto& [name, cases] : groups) {
    std::vector<std::size_t> held_out;
    for (const std::size_t at : cases) {
      if (evidence.cases[at].held_out) held_out.push_back(at);
    }
    strips.push_back({name, summary_of(evidence, judgement.cases, std::move(cases)),
                      summary_of(evidence, judgement.cases, std::move(held_out)), 0, 0});
  }
  return strips;
}

std::vector<std::string> models_of(const Evidence& evidence) {
  std::vector<std::string> models;
  for (const MeasuredCase& measured : evidence.cases) {
    if (std::find(models.begin(), models.end(), measured.model) == models.end()) {
      models.push_back(measured.model);
    }
  }
  return models;
}

// Symmetric, as far as the worst error and the worst aim, to a whole tick.
report::ValueScale scale_of(const std::vector<Strip>& strips) {
  double most = 1.1 * aim_worst_error;
  for (const Strip& strip : strips) {
    most = std::max({most, std::abs(strip.all.worst_error.value), strip.all.mean_noise});
  }
  const double ends = 100 * 1.04 * most;
  return {-ends, ends, false};
}

class Page {
 public:
  Page(const Evidence& evidence, const EvidenceJudgement& judgement,
       const report::SvgOptions& options)
      : evidence_(evidence),
        judgement_(judgement),
        options_(options),
        strips_(strips_of(evidence, judgement)),
        models_(models_of(evidence)),
        scale_(scale_of(strips_)) {
    double names = 0;
    for (const Strip& strip : strips_)
      names = std::max(names, report::text_width(strip.name, size));
    left_ = report::page_margin + std::min(names, 0.28 * options.width) + 12;
    right_ = options.width - report::page_margin - 210;
  }

  std::string document() {
    const report::Fragment head = report::page_head(
        "Error of the predicted time",
        fmt::format("{} cases on {}. Predicted less measured, as a share of the measured time.",
                    evidence_.cases.size(), evidence_.device),
        options_);
    const report::Fragment key = key_of(head.bottom + 8);
    double y = key.bottom + 30;
    const double top = y;
    for (Strip& strip : strips_) {
      strip.top = y;
      strip.height = std::max(24.0, 10 + line_pitch * static_cast<double>(strip.all.cases.size()));
      y += strip.height + gap;
    }
    const double bottom = y - gap;
    std::string body = head.text + key.text + sides(top - 14) + columns(top - 14);
    for (const Strip& strip : strips_) body += ground(strip);
    body += axis(top, bottom);
    for (const Strip& strip : strips_) body += points(strip);
    return report::chart_document(
        "Error of the predicted time",
        fmt::format("Strip chart of the error of {} cases in {} schedules.", evidence_.cases.size(),
                    strips_.size()),
        body, bottom + 34, footnotes(), options_);
  }

 private:
  double px(double percent) const { return left_ + scale_.share(percent) * (right_ - left_); }

  report::Fragment key_of(double top) const {
    report::Fragment key;
    double x = report::page_margin;
    double y = top;
    const auto entry = [&](const std::string& mark, const std::string& words) {
      const double width = 18 + report::text_width(words, size) + 16;
      if (x > report::page_margin && x + width > options_.width - report::page_margin) {
        x = report::page_margin;
        y += 18;
      }
      key.text += fmt::format("<g transform=\"translate({} {})\">{}</g>\n", report::svg_number(x),
                              report::svg_number(y), mark);
      key.text += report::text_at(x + 16, y + 11, "t", size, words);
      x += width;
    };
    for (std::size_t i = 0; i < models_.size(); ++i) {
      entry(report::marker(i, 6, 7, false, 1, ""), models_[i]);
    }
    entry("<rect class=\"h2\" x=\"0\" y=\"1\" width=\"12\" height=\"12\"/>", "measurement noise");
    if (!judgement_.calibrated.cases.empty()) {
      entry(report::marker(7, 6, 7, true, 1, ""), "hollow: calibrated on");
    }
    key.bottom = y + 18;
    return key;
  }

  std::string sides(double y) const {
    return report::text_at(px(0) - 10, y, "d r", 11, "← predicted too short") +
           report::text_at(px(0) + 10, y, "d", 11, "predicted too long →");
  }

  std::string columns(double y) const {
    return report::text_at(right_ + 60, y, "d r", 11, "held out") +
           report::text_at(right_ + 130, y, "d r", 11, "mean") +
           report::text_at(right_ + 205, y, "d r", 11, "worst");
  }

  std::string ground(const Strip& strip) const {
    std::string out =
        fmt::format("<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                    report::svg_number(left_), report::svg_number(strip.top),
                    report::svg_number(right_ - left_), report::svg_number(strip.height));
    const Summary& summary = strip.all;
    if (summary.noise_cases > 0 && summary.mean_noise > 0) {
      const double from = px(-100 * summary.mean_noise);
      out += fmt::format("<rect class=\"h2\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                         report::svg_number(from), report::svg_number(strip.top),
                         report::svg_number(px(100 * summary.mean_noise) - from),
                         report::svg_number(strip.height));
    }
    const double base = strip.top + strip.height / 2 + 4;
    const auto characters =
        static_cast<std::size_t>((left_ - report::page_margin - 12) / (0.62 * size));
    out += report::text_at(report::page_margin, base, "t", size,
                           report::text_width(strip.name, size) > left_ - report::page_margin - 12
                               ? report::shortened(strip.name, characters)
                               : strip.name);
    const Summary& held = strip.held_out;
    if (held.cases.empty()) return out;
    out += report::text_at(right_ + 60, base, "d r", size, fmt::format("{}", held.cases.size()));
    const bool far = std::abs(held.worst_error.value) > aim_worst_error;
    out += report::text_at(right_ + 130, base, held.mean_error > aim_mean_error ? "bad r" : "t r",
                           size, percent(held.mean_error));
    return out + report::text_at(right_ + 205, base, far ? "bad r" : "t r", size,
                                 signed_percent(held.worst_error.value));
  }

  std::string axis(double top, double bottom) const {
    std::string out;
    for (const report::Tick& tick :
         report::ticks(scale_, std::max(2, static_cast<int>((right_ - left_) / 50)), false)) {
      const double x = px(tick.at);
      out += report::line_at(x, top, x, bottom, tick.at == 0 ? "total" : "grid");
      out += report::text_at(x, bottom + 16, "d n", 11, tick.label + " %");
    }
    for (const double aim : {-100 * aim_worst_error, 100 * aim_worst_error}) {
      out += report::line_at(px(aim), top, px(aim), bottom, "limit");
    }
    return out;
  }

  std::string points(const Strip& strip) const {
    std::string out;
    double y = strip.top + strip.height / 2 -
               line_pitch * (static_cast<double>(strip.all.cases.size()) - 1) / 2;
    for (const std::size_t at : strip.all.cases) {
      const MeasuredCase& measured = evidence_.cases[at];
      const CaseJudgement& judged = judgement_.cases[at];
      const auto model =
          as_size(std::find(models_.begin(), models_.end(), measured.model) - models_.begin());
      out += report::marker(
          model, px(100 * judged.error), y, !measured.held_out, 0.9,
          fmt::format("{}: {} for {}, {}", name_of(measured), print(judged.prediction.makespan),
                      print(judged.measured), signed_percent(judged.error)));
      y += line_pitch;
    }
    return out;
  }

  std::vector<std::string> footnotes() const {
    return {fmt::format("Dashed: the aim for the worst case, ± {:.0f} %; the aim for the mean is "
                        "{:.0f} %. Means are of absolute values, of the cases held out.",
                        100 * aim_worst_error, 100 * aim_mean_error),
            "Noise: the mean over the strip's cases of what a median may be off by. Within a strip "
            "the cases stand in the order of the evidence."};
  }

  const Evidence& evidence_;
  const EvidenceJudgement& judgement_;
  const report::SvgOptions& options_;
  std::vector<Strip> strips_;
  std::vector<std::string> models_;
  report::ValueScale scale_;  // in percent
  double left_ = 0;           // px, of the strips
  double right_ = 0;
};

}  // namespace

std::string errors_svg(const Evidence& evidence, const EvidenceJudgement& judgement,
                       const report::SvgOptions& options) {
  check(options);
  if (evidence.cases.empty()) throw UsageError("there is no case whose error could be drawn");
  return Page(evidence, judgement, options).document();
}

}  // namespace stageline::lab
