// Writes a hybrid study as text, chart and JSON.
#include "tools/report/text/hybrid.hpp"

#include <fmt/core.h>

#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"

namespace stageline::report {
namespace {

std::string pace(const Period& period) {
  return period.rounds == 1
             ? fmt::format("{} an iteration", print(period.time))
             : fmt::format("{} an iteration ({} every {})", print(period.time / period.rounds),
                           print(period.time), period.rounds);
}

// The usual heading with iterations in the place of steps.
std::string iterations_heading(const Setting& setting, const Case& asked, PipelinedShare share) {
  const std::size_t devices = asked.cluster.devices.size();
  return model_line(setting) +
         fmt::format("{} device{}{} · {} iterations{} · cut: {}\n", devices,
                     devices == 1 ? "" : "s", of_cluster(setting, asked), share.all,
                     of_samples(setting.model.batch, setting.model.sample), asked.partition);
}

}  // namespace

double fraction(PipelinedShare share) {
  return static_cast<double>(share.pipelined) / static_cast<double>(share.all);
}

std::string hybrid_summary(const Case& asked, const HybridStudy& study) {
  const PipelinedShare share = study.asked.share;
  const Time plain_run = study.curve.front().hybrid.total;
  const Time pipelined_run = study.curve.back().hybrid.total;
  std::string text =
      fmt::format("{}: {} of {} iterations pipelined, then {} on one device\n", spelled(asked.spec),
                  share.pipelined, share.all, share.all - share.pipelined);
  if (study.minibatch > 1) {
    text += fmt::format("an iteration is {} micro-batches and one update\n", study.minibatch);
  }
  text += fmt::format("total {} · {:.3f}× non-pipelined ({}) · {:.3f}× all pipelined ({})\n",
                      long_time(study.asked.hybrid.total), study.asked.hybrid.over_nonpipelined,
                      long_time(plain_run), study.asked.hybrid.over_pipelined,
                      long_time(pipelined_run));
  text += fmt::format("non-pipelined {} an iteration · pipelined {}\n", print(study.nonpipelined),
                      pace(study.period));
  if (share.pipelined > 0) {
    text += fmt::format(
        "fill: first mini-batch done after {} · drain at the switch: {} behind the last one's "
        "entry\nboth together cost {} over the steady pace\n",
        print(study.fill), print(study.drain), print(study.fill_and_drain));
  }
  return text;
}

std::string hybrid_table(const HybridStudy& study, int width) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < study.curve.size(); i += 2) {
    const HybridPoint& point = study.curve[i];
    rows.push_back({percent(fraction(point.share)), long_time(point.hybrid.total),
                    fmt::format("{:.3f}×", point.hybrid.over_nonpipelined),
                    fmt::format("{:.3f}×", point.hybrid.over_pipelined)});
  }
  return table({{"pipelined"}, {"total"}, {"over one device"}, {"over all pipelined"}}, rows,
               width);
}

bool has_rebuilt_rules(const Scheduler& scheduler) { return !scheduler.rebuilt.empty(); }

Chart hybrid_chart(const Setting& setting, const Case& asked, const HybridStudy& study) {
  const std::size_t devices = asked.cluster.devices.size();
  Chart chart;
  chart.title = fmt::format("Hybrid training · {} · {}", spelled(asked.spec), setting.model.name);
  chart.subtitle =
      fmt::format("{} device{} · {} iterations · cut: {} · non-pipelined {}, pipelined {}", devices,
                  devices == 1 ? "" : "s", study.asked.share.all, asked.partition,
                  print(study.nonpipelined), pace(study.period));
  chart.x = {"iterations pipelined", "%", false, false, 0.0, 100.0};
  chart.y = {"speed-up over one device", "×", false, false, {}, {}};
  Series series{"hybrid", SeriesStyle::line, {}};
  for (const HybridPoint& point : study.curve) {
    series.points.push_back({100 * fraction(point.share), point.hybrid.over_nonpipelined, false});
  }
  chart.series.push_back(series);
  chart.horizontal.push_back({1, "one device"});
  chart.vertical.push_back({100 * fraction(study.asked.share),
                            fmt::format("{:.3f}×", study.asked.hybrid.over_nonpipelined)});
  chart.footnotes.push_back(fmt::format("Costs {}. Fill and drain cost {} over the steady pace.",
                                        described(setting.model.provenance),
                                        print(study.fill_and_drain)));
  if (has_rebuilt_rules(*asked.spec.scheduler)) {
    chart.footnotes.push_back("The schedule's rules are rebuilt, not quoted from its paper.");
  }
  if (!setting.cluster.note.empty()) {
    chart.footnotes.push_back("Note: " + setting.cluster.note + ".");
  }
  return chart;
}

std::string hybrid_text(const answers::HybridAnswer& answered, int width, int columns, bool quiet) {
  const HybridStudy& found = *answered.found;
  Chart curve = hybrid_chart(answered.setting, answered.asked, found);
  curve.title = curve.subtitle = "";  // what stands above and below it is said anyway
  curve.footnotes.clear();
  const std::string head =
      quiet ? "" : iterations_heading(answered.setting, answered.asked, found.asked.share) + "\n";
  return wrapped(head + hybrid_summary(answered.asked, found), width) + "\n" +
         hybrid_table(found, width) + "\n" + chart_text(curve, columns, 12);
}

}  // namespace stageline::report
