// Computes accuracies, differences and findings of the staleness study.
#include "tools/lab/papers/staleness/judge.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/lab/papers/published.hpp"

namespace stageline::lab {
namespace {

// Tolerance, so that a number equal to its limit is not beyond it by rounding.
constexpr double accuracy_tolerance = 1e-9;

CaseResult result_of(const StudyCase& asked, const std::vector<const StudyRun*>& runs) {
  CaseResult result;
  result.asked = &asked;
  for (const StudyRun* const run : runs) {
    const Evaluation& last = run->log.evaluations.back();
    // A diverged net guesses; it gets no credit for that.
    const bool number = std::isfinite(last.accuracy);
    result.percents.push_back(number ? 100 * last.accuracy : 0);
    if (!number || !std::isfinite(last.loss)) ++result.diverged;
    result.total += last.end;
    result.loss += last.loss / static_cast<double>(runs.size());
    result.wall_seconds += run->log.wall_seconds;
  }
  const TrainingLog& log = runs.front()->log;
  result.accuracy = accuracy_over(result.percents);
  result.stale_share = log.stale_share();
  for (const LoggedStage& stage : log.stages) {
    result.staleness = std::max(result.staleness, stage.staleness_max);
  }
  if (log.settings.pipelined == 0) result.staleness = 0;
  result.total = result.total / static_cast<std::int64_t>(runs.size());
  result.copies = runs.front()->copies;
  return result;
}

const ZhangLoss* published_loss(const StudyNet& net) {
  for (const ZhangLoss& one : zhang_losses) {
    if (one.model == net.model) return &one;
  }
  return nullptr;
}

std::string lost(const Difference& loss) {
  return fmt::format("{:.2f} ± {:.2f} points lost", loss.points, loss.spread);
}

void add_depth(std::vector<StudyFinding>& all, const NetResult& one) {
  const ZhangLoss* const theirs = published_loss(*one.net);
  const Accuracy& plain = one.plain()->accuracy;
  const CaseResult& shallow = *one.shallowest();
  const CaseResult& deep = *one.deepest();
  all.push_back(
      {fmt::format("{} within {} points of non-pipelined", shallow.asked->name, shallow_points),
       one.net->title, costs_little(plain, shallow.accuracy),
       lost(difference(plain, shallow.accuracy)),
       theirs == nullptr ? "–" : fmt::format("{} points lost", theirs->early)});
  all.push_back({fmt::format("{} measurably worse", deep.asked->name), one.net->title,
                 costs_much(plain, deep.accuracy), lost(difference(plain, deep.accuracy)),
                 theirs == nullptr || theirs->deep == 0
                     ? "–"
                     : fmt::format("up to {} points lost", theirs->deep)});
}

// The published recovery of the deeper nets with a loss.
std::string published_recovery() {
  std::string text;
  for (const ZhangAccuracy& one : zhang_accuracies) {
    const double loss = one.non_pipelined - one.pipelined;
    if (loss <= 0) continue;
    text += fmt::format("{}{}: {:.0f} %", text.empty() ? "" : ", ", one.title,
                        100 * (one.hybrid - one.pipelined) / loss);
  }
  return text;
}

void add_hybrid(std::vector<StudyFinding>& all, const NetResult& one) {
  const CaseResult* const half = one.find(StudyGroup::hybrid, "switch at 1/2");
  if (half == nullptr) return;
  const Accuracy& plain = one.plain()->accuracy;
  const Accuracy& deep = one.deepest()->accuracy;
  const std::optional<double> share = recovered(plain, deep, half->accuracy);
  all.push_back(
      {fmt::format("hybrid at one half recovers half of what {} lost", one.deepest()->asked->name),
       one.net->title, recovers_half(plain, deep, half->accuracy),
       share ? fmt::format("{:.0f} % of the loss recovered", 100 * *share)
             : "nothing was lost beyond the spread",
       one.net->model.rfind("resnet", 0) == 0 ? published_recovery() : "–"});
}

// Points that an optimizer loses to delay, against itself without.
std::optional<Accuracy> lost_under(const NetResult& one, const std::string& title,
                                   const std::string& schedule) {
  const CaseResult* const plain = one.row(title, "");
  const CaseResult* const late = one.row(title, schedule);
  if (plain == nullptr || late == nullptr) return std::nullopt;
  const Difference loss = difference(plain->accuracy, late->accuracy);
  return Accuracy{loss.points, loss.spread, plain->accuracy.seeds};
}

void add_loses_less(std::vector<StudyFinding>& all, const NetResult& one, const std::string& what,
                    const std::string& schedule, const std::array<std::string, 2>& titles,
                    const std::string& published) {
  const auto less = lost_under(one, titles[0], schedule);
  const auto more = lost_under(one, titles[1], schedule);
  if (!less || !more) return;
  const Difference gain = difference(*more, *less);
  const Holds holds = gain.above() ? Holds::yes : gain.below() ? Holds::no : Holds::within_spread;
  all.push_back({what, one.net->title, holds,
                 fmt::format("{:.2f} ± {:.2f} against {:.2f} ± {:.2f} points lost", less->mean,
                             less->half, more->mean, more->half),
                 published});
}

// Published figures: validation loss of a language model of 360 million weights after one update of
// delay, above that without (Zmushko et al., as summaries of the paper quote it).
void add_optimizers(std::vector<StudyFinding>& all, const NetResult& one) {
  add_loses_less(all, one, "10-stage: Nesterov loses less than momentum", "stale_weights",
                 {"Nesterov", "momentum"}, "better than other asynchronous methods");
  if (const auto loss = lost_under(one, "Nesterov", "pipedream")) {
    const Holds holds = loss->mean > loss->half    ? Holds::no
                        : loss->mean < -loss->half ? Holds::yes
                                                   : Holds::within_spread;
    all.push_back({"pipedream: Nesterov above its non-pipelined", one.net->title, holds,
                   fmt::format("{:.2f} ± {:.2f} points lost", loss->mean, loss->half),
                   "above synchronous training"});
  }
  add_loses_less(all, one, "one update late: Muon loses less than Adam", "pipedream_2bw",
                 {"Muon", "Adam"}, "loss 0.012 against 0.278 higher");
  for (const char* const title : {"Adam", "Muon"}) {
    const CaseResult* const late = one.row(title, "pipedream_2bw");
    const CaseResult* const fed = one.row(title, "pipedream_2bw", "error_feedback");
    if (late == nullptr || fed == nullptr) continue;
    const Difference gain = difference(fed->accuracy, late->accuracy);
    const Holds holds = gain.above() ? Holds::yes : gain.below() ? Holds::no : Holds::within_spread;
    all.push_back({fmt::format("one update late: error feedback gains with {}", title),
                   one.net->title, holds,
                   fmt::format("{:.2f} ± {:.2f} points gained", gain.points, gain.spread),
                   "50 to 90 % of the gap"});
  }
}

void add_order(std::vector<StudyFinding>& all, const NetResult& one, const std::string& what,
               const std::vector<Caused>& cases) {
  const PairsInOrder order = order_of(cases);
  all.push_back(
      {what, one.net->title, falls(order),
       fmt::format("{} of {} pairs that differ beyond the spread", order.falling, order.decided),
       "–"});
}

}  // namespace

Accuracy accuracy_over(const std::vector<double>& percents) {
  Accuracy accuracy;
  accuracy.seeds = static_cast<int>(percents.size());
  if (percents.empty()) return accuracy;
  const auto [least, most] = std::minmax_element(percents.begin(), percents.end());
  for (const double one : percents) accuracy.mean += one / accuracy.seeds;
  accuracy.half = (*most - *least) / 2;
  return accuracy;
}

Difference difference(const Accuracy& a, const Accuracy& b) {
  return {a.mean - b.mean, a.half + b.half + accuracy_tolerance};
}

std::string_view name(Holds holds) {
  switch (holds) {
    case Holds::yes:
      return "agrees";
    case Holds::no:
      return "differs";
    case Holds::within_spread:
      return "within the spread";
  }
  return "";
}

Holds costs_little(const Accuracy& plain, const Accuracy& shallow, double most) {
  const Difference loss = difference(plain, shallow);
  if (loss.points + loss.spread <= most + 2 * accuracy_tolerance) return Holds::yes;
  return loss.points - loss.spread > most ? Holds::no : Holds::within_spread;
}

Holds costs_much(const Accuracy& plain, const Accuracy& deep) {
  const Difference loss = difference(plain, deep);
  if (loss.above()) return Holds::yes;
  return loss.below() ? Holds::no : Holds::within_spread;
}

std::optional<double> recovered(const Accuracy& plain, const Accuracy& deep,
                                const Accuracy& hybrid) {
  const Difference loss = difference(plain, deep);
  if (!loss.above()) return std::nullopt;
  return (hybrid.mean - deep.mean) / loss.points;
}

Holds recovers_half(const Accuracy& plain, const Accuracy& deep, const Accuracy& hybrid) {
  if (!difference(plain, deep).above()) return Holds::within_spread;
  const Accuracy middle{(plain.mean + deep.mean) / 2, (plain.half + deep.half) / 2, 0};
  const Difference over = difference(hybrid, middle);
  if (over.above()) return Holds::yes;
  return over.below() ? Holds::no : Holds::within_spread;
}

PairsInOrder order_of(const std::vector<Caused>& cases) {
  PairsInOrder order;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Caused& less = cases[i].cause < cases[j].cause ? cases[i] : cases[j];
      const Caused& more = &less == &cases[i] ? cases[j] : cases[i];
      const Difference fall = difference(less.accuracy, more.accuracy);
      if (less.cause == more.cause || !fall.decided()) continue;
      ++order.decided;
      if (fall.above()) ++order.falling;
    }
  }
  return order;
}

Holds falls(const PairsInOrder& order) {
  if (order.decided == 0) return Holds::within_spread;
  return order.falling == order.decided ? Holds::yes : Holds::no;
}

const CaseResult* NetResult::find(StudyGroup group, const std::string& name) const {
  for (const CaseResult& one : cases) {
    if (one.asked->group == group && one.asked->name == name) return &one;
  }
  return nullptr;
}

std::vector<const CaseResult*> NetResult::of(StudyGroup group) const {
  std::vector<const CaseResult*> some;
  for (const CaseResult& one : cases) {
    if (one.asked->group == group) some.push_back(&one);
  }
  return some;
}

const CaseResult* NetResult::row(const std::string& title, const std::string& schedule,
                                 const std::string& correction) const {
  for (const CaseResult& one : cases) {
    const StudyCase& asked = *one.asked;
    if (asked.title != title || (asked.pipelined == 0) != schedule.empty()) continue;
    if (schedule.empty()) return &one;
    const bool fed = asked.correction.find("error_feedback") != std::string::npos;
    if (asked.schedule == schedule && fed == (correction == "error_feedback")) return &one;
  }
  return nullptr;
}

const CaseResult* NetResult::plain() const {
  const auto some = of(StudyGroup::plain);
  return some.empty() ? nullptr : some.front();
}

const CaseResult* NetResult::shallowest() const {
  const auto some = of(StudyGroup::depth);
  return some.empty() ? nullptr : some.front();
}

const CaseResult* NetResult::deepest() const {
  const auto some = of(StudyGroup::depth);
  return some.empty() ? nullptr : some.back();
}

std::vector<NetResult> results_of(const StalenessEvidence& evidence) {
  std::vector<NetResult> results;
  for (const StudyNet& net : staleness_nets()) {
    NetResult result;
    result.net = &net;
    for (const StudyCase& asked : net.cases) {
      std::vector<const StudyRun*> runs;
      for (int seed = 1; seed <= evidence.seeds; ++seed) {
        const StudyRun* const run =
            find_run(evidence, net, asked, static_cast<std::uint64_t>(seed));
        if (run != nullptr) runs.push_back(run);
      }
      if (!runs.empty()) result.cases.push_back(result_of(asked, runs));
    }
    if (!result.cases.empty()) results.push_back(std::move(result));
  }
  return results;
}

std::vector<StudyFinding> findings_of(const std::vector<NetResult>& results) {
  std::vector<StudyFinding> all;
  for (const NetResult& one : results) {
    if (one.plain() == nullptr || one.deepest() == nullptr) continue;
    add_depth(all, one);
    add_hybrid(all, one);
    std::vector<Caused> by_depth = {{2, one.plain()->accuracy}};
    std::vector<Caused> by_share = {{0, one.plain()->accuracy}};
    for (const CaseResult* const deep : one.of(StudyGroup::depth)) {
      by_depth.push_back({static_cast<double>(stages_of(*deep->asked)), deep->accuracy});
      if (deep->asked->ppv.size() == 1) by_share.push_back({deep->stale_share, deep->accuracy});
    }
    add_order(all, one, "the deeper, the worse", by_depth);
    add_optimizers(all, one);
    const auto sliding = one.of(StudyGroup::sliding);
    if (sliding.empty()) continue;
    for (const CaseResult* const pair : sliding) {
      by_share.push_back({pair->stale_share, pair->accuracy});
    }
    add_order(all, one, "one register pair: the more stale weights, the worse", by_share);
  }
  return all;
}

}  // namespace stageline::lab
