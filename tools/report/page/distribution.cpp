// The data of distributions: quantiles and counts, in place of every step.
#include <algorithm>
#include <cstdint>

#include "tools/report/page/page_json.hpp"

namespace stageline::report {
namespace {

constexpr int cumulative_points = 101;  // of a cumulative curve
constexpr std::size_t bins = 60;        // of a histogram
constexpr double beyond_p99 = 0.1;      // of the axis: rare steps far out do not squeeze the others

}  // namespace

PageSection distribution_section(std::string title, const std::vector<NamedDistribution>& rows) {
  std::vector<std::vector<Time>> sorted;
  Time from = Time::max();
  Time p99{};
  Time most{};
  for (const NamedDistribution& row : rows) {
    sorted.push_back(row.steps->step);
    std::sort(sorted.back().begin(), sorted.back().end());
    from = std::min(from, sorted.back().front());
    most = std::max(most, sorted.back().back());
    p99 = std::max(p99, row.distribution->p99);
  }
  const auto wide = static_cast<double>((p99 - from).count());
  const auto begin = static_cast<double>(from.count());
  const double end = std::min(static_cast<double>(most.count()), begin + wide * (1 + beyond_p99));
  Json data{{"unit", "ps"}};
  data["bins"] = {{"from", begin}, {"to", std::max(end, begin + 1)}};
  data["series"] = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Distribution& d = *rows[i].distribution;
    Json one{{"name", rows[i].name}, {"scenarios", sorted[i].size()}};
    for (const auto& [key, time] : {std::pair("nominal", rows[i].steps->nominal),
                                    {"mean", d.mean},
                                    {"p5", d.p5},
                                    {"p50", d.p50},
                                    {"p95", d.p95},
                                    {"p99", d.p99}}) {
      one[key] = page_time(time);
    }
    one["quantiles"] = Json::array();
    for (int point = 0; point < cumulative_points; ++point) {
      one["quantiles"].push_back(
          quantile(sorted[i], static_cast<double>(point) / (cumulative_points - 1)).count());
    }
    std::vector<std::int64_t> counts(bins, 0);  // the last one has all beyond it, too
    for (const Time time : sorted[i]) {
      const double place =
          (static_cast<double>(time.count()) - begin) / std::max(1.0, end - begin) * bins;
      ++counts[std::min(bins - 1, static_cast<std::size_t>(std::max(0.0, place)))];
    }
    one["counts"] = counts;
    data["series"].push_back(std::move(one));
  }
  return {"distribution", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
