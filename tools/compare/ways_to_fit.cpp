// Words what the search for the cheapest change that fits has found.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/base/parallel.hpp"
#include "tools/base/table.hpp"
#include "tools/compare/advice.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/study/cases_at_a_time.hpp"

namespace stageline {
namespace {

constexpr std::size_t rows_tried = 8;  // unlike ones, those that lack least memory
constexpr std::size_t ways_named = 3;
constexpr double worth_naming = 2;      // times the cost of the cheapest
constexpr int most_devices_tried = 64;  // of equal ones, without a cluster
constexpr double same_cost = 0.0005;

Bytes missing(const Row& row) { return tightest(*row.outcome)->missing(); }

// Rows that lack memory, the least first.
std::vector<const Row*> nearest_rows(const std::vector<Row>& rows) {
  std::vector<const Row*> nearest;
  for (const Row& row : rows) {
    if (row.outcome && tightest(*row.outcome)) nearest.push_back(&row);
  }
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const Row* a, const Row* b) { return missing(*a) < missing(*b); });
  nearest.erase(std::unique(nearest.begin(), nearest.end(),
                            [](const Row* a, const Row* b) {
                              return missing(*a) == missing(*b) &&
                                     a->outcome->step_time == b->outcome->step_time;
                            }),
                nearest.end());
  if (nearest.size() > rows_tried) nearest.resize(rows_tried);
  return nearest;
}

// "--recompute full", "--sequence-parallel": each flag with its value.
std::vector<std::string> words_of(const std::string& flags) {
  std::vector<std::string> found;
  std::istringstream stream(flags);
  for (std::string word; stream >> word;) {
    if (word.starts_with("--") || found.empty()) {
      found.push_back(word);
    } else {
      found.back() += " " + word;
    }
  }
  return found;
}

class Wording {
 public:
  Wording(const SettingRequest& request, const Setting& setting, planner::Evaluator& evaluator,
          const std::vector<planner::Candidate>& from)
      : request_(request), setting_(setting), evaluator_(evaluator), from_(from) {}

  WayToFit way(const planner::ChangedCandidate& changed) const {
    WayToFit way;
    way.changed = changed;
    way.flags = flags_of(request_, changed.candidate);
    way.what = what(changed);
    const bool resized = changed.candidate.shape.microbatch_size != request_.microbatch_size;
    way.derived = resized && has_new_note(changed.candidate.shape);
    return way;
  }

  std::string named(const WayToFit& way) const {
    return way.what + ": " + way.figures(from_[way.changed.from]);
  }

 private:
  const SettingRequest& request_;
  const Setting& setting_;
  planner::Evaluator& evaluator_;
  const std::vector<planner::Candidate>& from_;

  // The schedule, and the flags that the change adds or alters.
  std::string what(const planner::ChangedCandidate& changed) const {
    const planner::Candidate& from = from_[changed.from];
    const std::vector<std::string> before = words_of(flags_of(request_, from));
    std::vector<std::string> differ;
    for (const std::string& word : words_of(flags_of(request_, changed.candidate))) {
      const bool known = std::find(before.begin(), before.end(), word) != before.end();
      if (!known && !word.starts_with("--schedule ")) differ.push_back(word);
    }
    if (changed.candidate.partition != from.partition &&
        changed.candidate.partition == SettingRequest{}.partition) {
      differ.push_back("--partition " + changed.candidate.partition);
    }
    if (planner::offloads(from) && !planner::offloads(changed.candidate))
      differ.emplace_back("--offload none");
    std::string schedule = title(changed.candidate.spec);
    if (differ.empty()) return schedule;
    return fmt::format("{} with {}", schedule, fmt::join(differ, " "));
  }

  // Costs of a size that was not measured come with a note.
  bool has_new_note(const planner::Shape& shape) const {
    const std::vector<std::string>& known = setting_.model.provenance.notes;
    const std::vector<std::string> notes = evaluator_.setting(shape)->model.provenance.notes;
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return std::find(known.begin(), known.end(), note) == known.end();
    });
  }
};

// What is told of all that was found.
struct Named {
  std::vector<planner::ChangedCandidate> fitting;  // the cheapest first
  std::optional<planner::ChangedCandidate> nearest;
};

Named named_of(const planner::CheapestChange& search) {
  Named named{{}, search.nearest};
  for (const planner::ChangedCandidate& one : search.fitting) {
    if (named.fitting.size() == ways_named) break;
    if (one.cost > worth_naming * search.fitting.front().cost) break;
    named.fitting.push_back(one);
  }
  return named;
}

// The same with the devices in the order that is best for each, as its flags give it, beside the
// rows as they are.
Named in_searched_orders(Named named, const SettingRequest& request,
                         const planner::FitQuestion& question,
                         const std::vector<const Row*>& rows) {
  std::vector<planner::ChangedCandidate> all = std::move(named.fitting);
  if (named.nearest) all.push_back(std::move(*named.nearest));
  double largest = 1;
  for (const planner::ChangedCandidate& one : all) {
    const planner::Shape& shape = one.candidate.shape;
    largest = std::max(largest, 1.0 * shape.devices() * shape.microbatches);
  }
  planner::Evaluator evaluator(request);
  std::vector<planner::Judgement> judgements(all.size());
  in_parallel(all.size(), cases_at_a_time(largest, question.workers),
              [&](std::size_t i) { judgements[i] = evaluator.judge(all[i].candidate); });
  named = {};
  for (std::size_t i = 0; i < all.size(); ++i) {
    planner::ChangedCandidate& one = all[i];
    if (!judgements[i].verdict) continue;
    const double step = to_seconds(one.verdict.step);
    // The cost of one sample, by the step in seconds.
    const double each = step > 0 ? one.cost / (step * one.candidate.shape.devices()) : 0;
    one.verdict = std::move(*judgements[i].verdict);
    one.cost = each * to_seconds(one.verdict.step) * one.candidate.shape.devices();
    one.cost_of_from = each * to_seconds(rows[one.from]->outcome->step_time) *
                       question.from[one.from].shape.devices();
    if (one.fits()) {
      named.fitting.push_back(std::move(one));
    } else {
      named.nearest = std::move(one);
    }
  }
  std::stable_sort(named.fitting.begin(), named.fitting.end(),
                   [](const planner::ChangedCandidate& a, const planner::ChangedCandidate& b) {
                     return a.cost < b.cost;
                   });
  return named;
}

std::string tried(const planner::CheapestChange& search) {
  if (search.simulated == 0) {
    return search.refused == 0
               ? "there is nothing to change"
               : fmt::format("none of {} changes can be simulated, the first because: {}",
                             search.refused, search.why_not);
  }
  std::vector<std::string> kinds;
  for (const planner::ChangeKind kind : search.tried) kinds.emplace_back(name(kind));
  return fmt::format("{} changes were simulated, single and in pairs: {}{}", search.simulated,
                     fmt::join(kinds, ", "),
                     search.cut_short ? "; there are more, which would take too long" : "");
}

std::vector<std::string> sentences_of(const WaysToFit& ways, const Wording& wording,
                                      Bytes least_missing, bool orders_searched) {
  std::vector<std::string> said;
  if (!ways.fitting.empty()) {
    const WayToFit& best = ways.fitting.front();
    said.push_back(fmt::format("the cheapest change that fits: {}", wording.named(best)));
    said.push_back("its flags: " + best.flags);
    for (std::size_t i = 1; i < ways.fitting.size(); ++i) {
      said.push_back("another one: " + wording.named(ways.fitting[i]));
    }
  } else if (ways.nearest && ways.nearest->changed.verdict.need &&
             ways.nearest->changed.verdict.need->missing() < least_missing) {
    said.push_back(fmt::format("nothing tried fits; what lacks least, {}, is {}",
                               print(ways.nearest->changed.verdict.need->missing()),
                               wording.named(*ways.nearest)));
    said.push_back("its flags: " + ways.nearest->flags);
  } else {
    said.emplace_back("no change was found after which less memory is missing");
  }
  said.push_back(tried(ways.search));
  if (orders_searched && (!ways.fitting.empty() || ways.nearest)) {
    said.emplace_back(
        "they were simulated with the devices in the given order; the figures are those of the "
        "order that is best for each");
  }
  return said;
}

// "20.0 % faster", "31.2× as fast"; by the ratio of times that are not the same.
std::string speed_of(double ratio) {
  if (ratio > 1) return percent(ratio - 1) + " slower";
  const double faster = 1 / ratio;
  return faster < 2 ? percent(faster - 1) + " faster" : fmt::format("{:.1f}× as fast", faster);
}

}  // namespace

std::string WayToFit::figures(const planner::Candidate& from) const {
  const int devices = changed.candidate.shape.devices();
  std::string cost;
  if (changed.cost_of_from > 0) {
    const double ratio = changed.cost / changed.cost_of_from;
    const double more = ratio - 1;
    if (devices != from.shape.devices()) {
      cost = fmt::format(" (on {} devices, {} {} device time)", devices, percent(std::abs(more)),
                         more < 0 ? "less" : "more");
    } else if (std::abs(more) < same_cost) {
      cost = " (as fast)";
    } else if (ratio > 0) {
      cost = fmt::format(" ({})", speed_of(ratio));
    }
  }
  return fmt::format("{} a step{}{}{}", print(changed.verdict.step), cost,
                     changed.verdict.need ? ", " + print(*changed.verdict.need) : "",
                     derived ? "; costs of that size are scaled or fitted" : "");
}

WaysToFit ways_to_fit(const SettingRequest& request, const Setting& setting,
                      const std::vector<Row>& rows, int workers) {
  WaysToFit ways;
  for (const Row& row : rows) {
    if (row.outcome && row.outcome->fit != Fit::no) return ways;
  }
  const std::vector<const Row*> nearest = nearest_rows(rows);
  if (nearest.empty()) return ways;
  ways.row = static_cast<std::size_t>(nearest.front() - rows.data());
  if (request.trace == "-" || request.cluster.cluster == "-") {
    ways.sentences.emplace_back(
        "no change was tried, because standard input cannot be read again; give a file");
    return ways;
  }
  SettingRequest base = request;
  base.device_order = DeviceOrdering::given;  // a search would simulate hundreds of changes
  planner::Evaluator evaluator(base);
  planner::FitQuestion question;
  question.workers = workers;
  for (const Row* const row : nearest) {
    question.from.push_back(
        planner::candidate_of(base, setting, row->asked.spec(), row->asked.device_count()));
    // Rows of one comparison may be cut in several ways.
    if (row->asked.partition() != partition_text(base.partition)) {
      question.from.back().partition = row->asked.partition();
    }
  }
  const auto& fixed = setting.cluster.fixed;
  const int asked = *std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  question.limits.most_devices =
      fixed ? static_cast<int>(fixed->devices.size()) : std::max(asked, most_devices_tried);
  question.limits.hosts = request.cluster.host_link || (fixed && !fixed->hosts.empty());
  ways.search = planner::cheapest_change(evaluator, question);
  const Wording wording(request, setting, evaluator, question.from);
  Named named = named_of(ways.search);
  if (setting.orders_searched) {
    named = in_searched_orders(std::move(named), request, question, nearest);
  }
  for (const planner::ChangedCandidate& one : named.fitting)
    ways.fitting.push_back(wording.way(one));
  if (named.nearest) ways.nearest = wording.way(*named.nearest);
  ways.sentences = sentences_of(ways, wording, missing(*nearest.front()), setting.orders_searched);
  return ways;
}

}  // namespace stageline
