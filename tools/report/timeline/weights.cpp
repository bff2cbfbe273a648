// Computes curves of held versions and summaries of staleness.
#include "tools/report/timeline/weights.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

// The devices that keep weights of a stage, ascending.
std::vector<int> holders(const std::vector<int>& placed, const StageVersions& stage) {
  std::vector<int> devices = placed;
  for (const VersionEvent& event : stage.events) devices.push_back(event.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

// A later value at the same time replaces the earlier one.
void hold(std::vector<HeldPoint>& points, Time at, int versions) {
  if (!points.empty() && points.back().at == at) {
    points.pop_back();
  }
  if (!points.empty() && points.back().versions == versions) return;
  points.push_back({at, versions});
}

}  // namespace

int HeldCurve::peak() const {
  int most = 1;
  for (const HeldPoint& point : points) most = std::max(most, point.versions);
  return most;
}

std::vector<HeldCurve> versions_held(const Program& program,
                                     const std::vector<StageVersions>& versions) {
  std::vector<HeldCurve> curves;
  for (std::size_t s = 0; s < versions.size(); ++s) {
    const std::size_t first = curves.size();
    const std::vector<int> devices = holders(program.placement.stage[s].replicas, versions[s]);
    for (const int device : devices) curves.push_back({static_cast<int>(s), device, {HeldPoint{}}});
    std::vector<int> held(devices.size(), 1);
    for (const VersionEvent& event : versions[s].events) {
      const auto at =
          as_size(std::lower_bound(devices.begin(), devices.end(), event.device) - devices.begin());
      held[at] += event.change;
      hold(curves[first + at].points, event.at, held[at]);
    }
  }
  return curves;
}

HeldCurve most_held(const std::vector<HeldCurve>& curves) {
  struct Change {
    Time at{};
    std::size_t curve = 0;
    int versions = 0;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (const HeldPoint& point : curves[i].points) {
      changes.push_back({point.at, i, point.versions});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  std::vector<int> held(curves.size(), 1);
  HeldCurve most{curves.front().stage, curves.front().device, {HeldPoint{}}};
  for (const Change& change : changes) {
    held[change.curve] = change.versions;
    hold(most.points, change.at, *std::max_element(held.begin(), held.end()));
  }
  return most;
}

bool is_fresh(const StageVersions& stage) {
  return stage.held_peak == 1 && stage.staleness_min == 0 && stage.staleness_max == 0 &&
         stage.consistent;
}

bool all_fresh(const std::vector<StageVersions>& versions) {
  return std::all_of(versions.begin(), versions.end(), is_fresh);
}

std::string staleness_counts(const StageVersions& stage) {
  std::string text;
  for (const StalenessCount& count : stage.staleness) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", count.updates, count.microbatches);
  }
  return text;
}

std::string staleness_range(const StageVersions& stage) {
  return stage.staleness_min == stage.staleness_max
             ? fmt::format("{:g}", stage.staleness_max)
             : fmt::format("{:g}–{:g}", stage.staleness_min, stage.staleness_max);
}

std::string held_figure(const Program& program, const Timeline& timeline,
                        const std::vector<StageVersions>& versions, FigureOptions options) {
  if (std::all_of(versions.begin(), versions.end(),
                  [](const StageVersions& stage) { return stage.held_peak == 1; })) {
    return "";
  }
  // The columns of figure().
  const Time end = makespan(timeline);
  Time tick = options.tick;
  if (tick <= Time{}) tick = std::max(Time{1}, (end + Time{options.columns - 1}) / options.columns);
  const auto columns = as_size((end + tick - Time{1}) / tick);
  const std::vector<HeldCurve> curves = versions_held(program, versions);
  std::string text;
  for (int stage = 0; stage < static_cast<int>(versions.size()); ++stage) {
    std::vector<int> most(columns, 1);
    for (const HeldCurve& curve : curves) {
      if (curve.stage != stage) continue;
      for (std::size_t i = 0; i < curve.points.size(); ++i) {
        const Time until = i + 1 < curve.points.size() ? curve.points[i + 1].at : end;
        const auto last = as_size((until + tick - Time{1}) / tick);
        for (auto column = as_size(curve.points[i].at / tick); column < std::min(last, columns);
             ++column) {
          most[column] = std::max(most[column], curve.points[i].versions);
        }
      }
    }
    std::string row;
    for (const int held : most) row += held > 9 ? '+' : static_cast<char>('0' + held);
    text += fmt::format("{:>3} |{}\n", fmt::format("s{}", stage), row);
  }
  return text;
}

std::string held_legend(const std::vector<StageVersions>& versions) {
  if (all_fresh(versions)) return "";
  constexpr std::size_t most = 16;  // most stages listed by name
  std::string text;
  if (std::any_of(versions.begin(), versions.end(),
                  [](const StageVersions& stage) { return stage.held_peak > 1; })) {
    text += "s0 … versions of its weights that a stage holds, the most in the column\n";
  }
  text += "staleness (updates:micro-batches)";
  for (std::size_t s = 0; s < std::min(most, versions.size()); ++s) {
    text += fmt::format(" · s{} {}{}", s, staleness_counts(versions[s]),
                        versions[s].consistent ? "" : " F≠B");
  }
  return text + (versions.size() > most ? " · …\n" : "\n");
}

}  // namespace stageline::report
