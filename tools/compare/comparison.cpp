// Runs the cases of a comparison and ranks them.
#include "tools/compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/check_point.hpp"
#include "tools/base/parallel.hpp"
#include "tools/compare/trial.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/cases_at_a_time.hpp"
#include "tools/study/figures/drop_spans.hpp"

namespace stageline {

Synchrony block_of(const Row& row) {
  return row.outcome ? row.outcome->synchrony : row.asked.spec().scheduler->synchrony;
}

RowDifferences differences_of(const std::vector<Row>& rows) {
  const auto recomputed = [&](const Row& row) {
    return row.asked.recomputation() != rows.front().asked.recomputation();
  };
  return {cuts_differ(rows), std::any_of(rows.begin(), rows.end(), recomputed)};
}

std::string own_of_row(const Row& row, RowDifferences differences) {
  std::vector<std::string> own;
  if (differences.cuts) own.push_back(row.asked.cut_asked());
  if (differences.recomputations) own.push_back(print(row.asked.recomputation()));
  return fmt::format("{}", fmt::join(own, ", "));
}

std::string row_name(const Row& row, RowDifferences differences) {
  const std::string& schedule = row.outcome ? row.outcome->schedule : row.schedule;
  return differences.any() ? fmt::format("{} ({})", schedule, own_of_row(row, differences))
                           : schedule;
}

bool cuts_differ(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.asked.cut_asked() != rows.front().asked.cut_asked();
  });
}

namespace {

Row row_of(const Case& asked, const ScheduleSpec& spec, Keep keep, const TrainingBudget& budget) {
  Row row{asked, title(spec), std::nullopt, ""};
  try {
    row.outcome = study(asked);
    row.outcome->graph = {};
    row.outcome->times = {};
    row.figures = budget_figures(asked, *row.outcome, budget);
    if (keep == Keep::facts) drop_spans(*row.outcome);
  } catch (const UsageError& error) {
    row.why_not = error.what();
  } catch (const ProgramError& error) {
    row.why_not = fmt::format("{}: {}", row.schedule, error.what());
  } catch (const Deadlock& error) {
    row.why_not = error.what();
  } catch (const TraceError& error) {
    row.why_not = error.what();
  } catch (const std::exception& error) {  // such as no memory: other rows may do with less
    row.why_not = fmt::format("{}: {}", row.schedule, error.what());
  }
  return row;
}

// A program is cut as it is asked to be, and its order of devices is its own.
Row searched_row(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
                 int devices, Keep keep, const TrainingBudget& budget) {
  try {
    return row_of(planner::searched_case(request, setting, spec, devices), spec, keep, budget);
  } catch (const UsageError& error) {
    if (!spec.given) throw;  // all rows share it
    return {make_case(request, setting, spec, devices), title(spec), std::nullopt, error.what()};
  }
}

// A request for each recomputation, those that were named twice once.
std::vector<SettingRequest> by_recomputation(const std::vector<SettingRequest>& all) {
  std::vector<SettingRequest> requests;
  for (const SettingRequest& one : all) {
    if (one.recomputations.empty()) {
      requests.push_back(one);
      continue;
    }
    std::vector<Recomputation> taken;
    for (const Recomputation& how : one.recomputations) {
      if (std::find(taken.begin(), taken.end(), how) != taken.end()) continue;
      taken.push_back(how);
      requests.push_back(one);
      requests.back().recomputation = how;
    }
  }
  return requests;
}

// A request for each cut, those that were named twice once.
std::vector<SettingRequest> by_cut(const SettingRequest& request) {
  if (request.partitions.empty()) return {request};
  std::vector<SettingRequest> requests;
  for (const std::string& cut : request.partitions) {
    const auto same = [&](const SettingRequest& other) { return other.partition == cut; };
    if (std::any_of(requests.begin(), requests.end(), same)) continue;
    requests.push_back(request);
    requests.back().partition = cut;
  }
  return requests;
}

}  // namespace

std::vector<Row> compare(const SettingRequest& request, const Setting& setting,
                         const std::vector<ScheduleSpec>& schedules, int workers,
                         const std::function<void(std::size_t, std::size_t)>& progress, Keep keep,
                         const std::atomic<bool>* stop, const TrainingBudget& budget) {
  const std::vector<SettingRequest> requests = by_recomputation(by_cut(request));
  const std::size_t cuts = requests.size();
  std::vector<std::optional<Row>> found(setting.device_counts.size() * schedules.size() * cuts);
  double largest = 1;
  for (const int devices : setting.device_counts) {
    largest = std::max(largest, case_size(request, setting, devices));
  }
  const int at_a_time = cases_at_a_time(largest, workers);
  std::mutex access;
  std::size_t done = 0;
  std::optional<SharedCase> shared;     // with the model of all rows
  std::map<int, SharedCase> shared_on;  // by number of devices, with their cluster
  const bool whole = until_stopped(stop, [&] {
    in_parallel(found.size(), at_a_time, [&](std::size_t i) {
      const int devices = setting.device_counts[i / cuts / schedules.size()];
      const ScheduleSpec& spec = schedules[i / cuts % schedules.size()];
      Row row = searched_row(requests[i % cuts], setting, spec, devices, keep, budget);
      const std::lock_guard<std::mutex> held(access);
      if (!shared) shared = row.asked;
      row.asked.share_with(*shared);
      const auto known = shared_on.emplace(devices, row.asked).first;
      row.asked.share_with(known->second);
      found[i] = std::move(row);
      if (progress) progress(++done, found.size());
    });
  });
  std::vector<Row> rows;
  rows.reserve(found.size());
  for (std::optional<Row>& row : found) {
    if (row) rows.push_back(*std::move(row));
  }
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.outcome.has_value(); });
  const auto refused =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.why_not.empty(); });
  if (!any && !whole) throw CalledOff();
  if (!any) throw UsageError(refused == rows.end() ? "" : refused->why_not);
  return rows;
}

RankedRows ranked(const std::vector<Row>& rows, Synchrony synchrony, double within,
                  const std::optional<Tie>& tie) {
  std::vector<const Outcome*> outcomes;
  std::vector<std::size_t> of;
  std::vector<std::string> names;
  const RowDifferences differences = differences_of(rows);
  std::optional<Tie> tie_of_outcomes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].outcome || rows[i].outcome->synchrony != synchrony) continue;
    if (tie && i == tie->taken) tie_of_outcomes = Tie{outcomes.size(), tie->rows};
    outcomes.push_back(&*rows[i].outcome);
    of.push_back(i);
    names.push_back(row_name(rows[i], differences));
  }
  const Ranked order = rank(outcomes, within, names, tie_of_outcomes);
  RankedRows result;
  result.synchrony = synchrony;
  result.sentence = order.sentence;
  for (const std::size_t i : order.order) result.rows.push_back(of[i]);
  if (order.fastest) result.fastest = of[*order.fastest];
  if (order.recommended) result.recommended = of[*order.recommended];
  return result;
}

double parse_within(const std::string& text, const std::string& what) {
  std::string_view rest = text;
  const std::optional<double> percent = take_number<double>(rest);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!percent || rest != "%" || !(*percent >= 0 && *percent <= 100)) {
    throw UsageError(
        fmt::format("{} is a share of the fastest's time, from 0% to 100% (it is \"{}\"); write it "
                    "like 1%",
                    what, text));
  }
  return *percent / 100;
}

}  // namespace stageline
