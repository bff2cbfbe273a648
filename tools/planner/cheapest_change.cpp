#include "tools/planner/cheapest_change.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <tuple>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/base/parallel.hpp"
#include "tools/study/cases_at_a_time.hpp"

namespace stageline::planner {
namespace {

// Sizes are devices of a pipeline times micro-batches: about a microsecond or two each.
constexpr double most_single_work = 400'000;
constexpr double most_pair_work = 400'000;
constexpr std::size_t least_simulated = 12;  // singles, however large
constexpr std::size_t most_pairs = 192;
constexpr double near_enough = 1.1;   // a pair whose estimated fullness is above it is tried last
constexpr double without_end = 1e9;   // fullness where memory grows as long as it runs
constexpr double least_gain = 0.999;  // fullness after a change over the one before it

// Schedulers that search their order take as long as many simulations, and have an account of their
// own.
constexpr std::array searching{"zb_auto", "zb_v", "v_half", "v_min", "list", "cyclic"};
constexpr std::size_t most_single_searches = 6;
constexpr std::size_t most_pair_searches = 3;

bool searches(const Candidate& candidate) {
  return std::find(searching.begin(), searching.end(), candidate.spec.scheduler->name) !=
         searching.end();
}

double work_of(const Candidate& candidate) {
  return static_cast<double>(candidate.shape.degrees.pipeline) * candidate.shape.microbatches;
}

// A change that was judged, and where it came from.
struct Judged {
  ChangedCandidate changed;
  std::string what;     // of the last change
  std::string why_not;  // where it did not run
  bool ran = false;

  bool fits() const { return ran && changed.fits(); }
};

auto preference(const ChangedCandidate& one) {
  return std::tuple(one.cost, one.changes.size(), one.candidate.shape.devices(),
                    one.verdict.fullest());
}

bool cheaper(const ChangedCandidate& a, const ChangedCandidate& b) {
  return preference(a) < preference(b);
}

Bytes missing(const ChangedCandidate& one) {
  return one.verdict.need ? one.verdict.need->missing() : Bytes{};
}

class FitSearch {
 public:
  FitSearch(Evaluator& evaluator, const FitQuestion& question)
      : evaluator_(evaluator), question_(question) {}

  CheapestChange search() {
    judge_starts();
    singles();
    pairs();
    return result();
  }

 private:
  // A candidate of the question: what is known of it.
  struct Start {
    Judgement judged;
    double samples = 1;  // of a step
    double cost = 0;
  };
  // A change to be judged.
  struct Asked {
    std::size_t from = 0;
    std::vector<ChangeKind> changes;
    std::string what;
    Candidate candidate;
  };

  Evaluator& evaluator_;
  const FitQuestion& question_;
  std::vector<Start> starts_;
  std::vector<Judged> judged_;  // singles first, then pairs
  std::vector<Candidate> known_;
  int thinnings_ = 0;  // simulated
  bool cut_short_ = false;

  void run(std::size_t count, double largest, const std::function<void(std::size_t)>& work) const {
    in_parallel(count, cases_at_a_time(largest, question_.workers), work);
  }

  double cost_of(const Candidate& candidate, const Verdict& verdict, const Start& start) const {
    return to_seconds(verdict.step) * candidate.shape.devices() / start.samples;
  }

  void judge_starts() {
    starts_.resize(question_.from.size());
    double largest = 1;
    for (const Candidate& from : question_.from) largest = std::max(largest, work_of(from));
    run(starts_.size(), largest, [&](std::size_t i) {
      const Candidate& from = question_.from[i];
      Start& start = starts_[i];
      start.judged = evaluator_.judge(from);
      if (!start.judged.verdict) return;
      if (start.judged.verdict->fit != Fit::no) {
        start.judged.verdict.reset();
        return;
      }
      const int batch = evaluator_.setting(from.shape)->model.batch;
      start.samples = static_cast<double>(from.shape.microbatches) * from.shape.degrees.data *
                      std::max(batch, 1);
      start.cost = cost_of(from, *start.judged.verdict, start);
    });
    known_ = question_.from;
  }

  // Adds it unless it is known already.
  void add(std::vector<Asked>& asked, Asked one) {
    const bool known = std::any_of(known_.begin(), known_.end(), [&](const Candidate& other) {
      return same(other, one.candidate);
    });
    if (known) return;
    known_.push_back(one.candidate);
    asked.push_back(std::move(one));
  }

  std::vector<Change> changes_of(const Candidate& candidate, const Verdict& verdict,
                                 bool promising_cuts = true) const {
    ChangeLimits limits = question_.limits;
    limits.promising_cuts = promising_cuts;
    try {
      return single_changes(candidate, evaluator_.case_of(candidate), verdict, limits);
    } catch (const std::exception&) {  // this one cannot be changed; the others can
      return {};
    }
  }

  // Copies to the host that do not suffice may cost more than all that makes them needless: no
  // copies, alone and with each change of what is then asked for.
  std::vector<Change> changes_without_copies(const Candidate& from) const {
    Candidate plain = from;
    plain.offloading = {};
    std::vector<Change> changes{{ChangeKind::offload, "no copies", plain}};
    const Judgement judgement = evaluator_.judge(plain);
    if (!judgement.verdict) return changes;
    for (Change& change : changes_of(plain, *judgement.verdict)) {
      if (offloads(change.candidate)) continue;
      change.what = "no copies, " + change.what;
      changes.push_back(std::move(change));
    }
    return changes;
  }

  // As many of the first as there is room for.
  void judge(const std::vector<Asked>& asked, double most, std::size_t most_searches,
             std::size_t least) {
    std::vector<const Asked*> taken;
    double spent = 0;
    std::size_t searched = 0;
    double largest = 1;
    for (const Asked& one : asked) {
      const double work = work_of(one.candidate);
      const bool slow = searches(one.candidate);
      if ((taken.size() >= least && spent + work > most) || (slow && searched == most_searches)) {
        cut_short_ = true;
        continue;
      }
      spent += work;
      if (slow) ++searched;
      largest = std::max(largest, work);
      taken.push_back(&one);
    }
    std::vector<Judged> found(taken.size());
    run(taken.size(), largest, [&](std::size_t i) {
      const Asked& one = *taken[i];
      const Start& start = starts_[one.from];
      Judgement judgement = evaluator_.judge(one.candidate);
      Judged& result = found[i];
      result.what = one.what;
      result.ran = judgement.verdict.has_value();
      result.changed.candidate = one.candidate;
      result.changed.changes = one.changes;
      result.changed.from = one.from;
      result.changed.cost_of_from = start.cost;
      if (!result.ran) {
        result.why_not = std::move(judgement.why_not);
        return;
      }
      result.changed.cost = cost_of(one.candidate, *judgement.verdict, start);
      result.changed.verdict = std::move(*judgement.verdict);
    });
    for (Judged& one : found) judged_.push_back(std::move(one));
  }

  // The first of each kind and candidate, then the second, and so on, so that where there are too
  // many, there are some of all.
  void singles() {
    std::vector<std::vector<Change>> of(starts_.size());
    std::vector<std::vector<Change>> without(starts_.size());  // copies to the host
    run(starts_.size(), 1, [&](std::size_t i) {
      const std::optional<Verdict>& verdict = starts_[i].judged.verdict;
      if (!verdict) return;
      of[i] = changes_of(question_.from[i], *verdict);
      if (offloads(question_.from[i])) without[i] = changes_without_copies(question_.from[i]);
    });
    struct Turn {
      std::size_t round = 0;
      std::size_t start = 0;
      Change* change = nullptr;
    };
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < of.size(); ++i) {
      for (std::vector<Change>* const changes : {&of[i], &without[i]}) {
        std::array<std::size_t, all_change_kinds.size()> rounds{};
        for (Change& change : *changes) {
          turns.push_back({rounds[static_cast<std::size_t>(change.kind)]++, i, &change});
        }
      }
    }
    std::stable_sort(turns.begin(), turns.end(),
                     [](const Turn& a, const Turn& b) { return a.round < b.round; });
    std::vector<Asked> asked;
    for (const Turn& turn : turns) {
      Change& change = *turn.change;
      std::vector<ChangeKind> kinds{change.kind};
      const bool copies = offloads(question_.from[turn.start]);
      if (copies && !offloads(change.candidate) && change.kind != ChangeKind::offload)
        kinds.push_back(ChangeKind::offload);
      std::sort(kinds.begin(), kinds.end());
      add(asked,
          {turn.start, std::move(kinds), std::move(change.what), std::move(change.candidate)});
    }
    judge(asked, most_single_work, most_single_searches, least_simulated);
  }

  std::optional<double> least_cost() const {
    std::optional<double> least;
    for (const Judged& one : judged_) {
      if (one.fits() && (!least || one.changed.cost < *least)) least = one.changed.cost;
    }
    return least;
  }

  struct Pair {
    bool near = false;
    double cost = 0;
    std::size_t first = 0;   // into judged_
    std::size_t second = 0;  // the same change, by itself
  };

  // Pairs of singles that lower the peak, by what each does alone: those that should fit first, the
  // cheapest of them first.
  std::vector<Pair> promising_pairs() const {
    const std::optional<double> best = least_cost();
    std::vector<Pair> pairs;
    for (std::size_t a = 0; a < judged_.size(); ++a) {
      for (std::size_t b = 0; b < judged_.size(); ++b) {
        const Judged& first = judged_[a];
        const Judged& second = judged_[b];
        if (a == b || first.changed.from != second.changed.from) continue;
        if (!lowers(first) || !lowers(second) || first.fits()) continue;
        if (first.changed.changes == second.changed.changes) continue;
        const Start& start = starts_[first.changed.from];
        const double full = fullness(*start.judged.verdict);
        const double estimate =
            fullness(first.changed.verdict) * fullness(second.changed.verdict) / full;
        const double cost = start.cost > 0 ? first.changed.cost * second.changed.cost / start.cost
                                           : first.changed.cost;
        if (best && cost >= *best) continue;
        pairs.push_back({estimate <= near_enough, cost, a, b});
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& other) {
      return std::tuple(!one.near, one.cost) < std::tuple(!other.near, other.cost);
    });
    if (pairs.size() > most_pairs) pairs.resize(most_pairs);
    return pairs;
  }

  bool lowers(const Judged& one) const {
    const Start& start = starts_[one.changed.from];
    return one.ran && fullness(one.changed.verdict) < least_gain * fullness(*start.judged.verdict);
  }

  void pairs() {
    const std::vector<Pair> promising = promising_pairs();
    std::vector<std::size_t> firsts;
    for (const Pair& pair : promising) firsts.push_back(pair.first);
    std::sort(firsts.begin(), firsts.end());
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    std::vector<std::vector<Change>> after(firsts.size());
    const auto is_cut = [&](const Pair& pair) {
      return judged_[pair.second].changed.changes.front() == ChangeKind::cut;
    };
    run(firsts.size(), 1, [&](std::size_t i) {
      const ChangedCandidate& first = judged_[firsts[i]].changed;
      const bool with_cut = std::any_of(promising.begin(), promising.end(), [&](const Pair& pair) {
        return pair.first == firsts[i] && is_cut(pair);
      });
      after[i] = changes_of(first.candidate, first.verdict, with_cut);
    });
    std::vector<Asked> asked;
    for (const Pair& pair : promising) {
      const auto at = std::lower_bound(firsts.begin(), firsts.end(), pair.first) - firsts.begin();
      const Judged& first = judged_[pair.first];
      const Judged& second = judged_[pair.second];
      for (const Change& change : after[static_cast<std::size_t>(at)]) {
        if (change.kind != second.changed.changes.front() || change.what != second.what) continue;
        std::vector<ChangeKind> kinds = first.changed.changes;
        kinds.push_back(change.kind);
        std::sort(kinds.begin(), kinds.end());
        add(asked, {first.changed.from, std::move(kinds), change.what, change.candidate});
      }
    }
    judge(asked, most_pair_work, most_pair_searches, 0);
  }

  // Leaves out stages whose recomputation or copies are not needed, the last ones first.
  ChangedCandidate thinned(ChangedCandidate best) {
    const Start& start = starts_[best.from];
    const auto without = [&](Candidate candidate) {
      Judgement judgement = evaluator_.judge(candidate);
      ++thinnings_;
      if (!judgement.verdict || judgement.verdict->fit == Fit::no) return;
      const double cost = cost_of(candidate, *judgement.verdict, start);
      if (cost > best.cost) return;
      best.candidate = std::move(candidate);
      best.verdict = std::move(*judgement.verdict);
      best.cost = cost;
    };
    const Candidate& from = question_.from[best.from];
    if (best.candidate.recomputation.parts.size() > from.recomputation.parts.size() &&
        !searches(best.candidate)) {
      for (const int stage : stages_of(best.candidate.recomputation.parts.back().stages)) {
        Candidate fewer = best.candidate;
        std::vector<NumberRange>& ranges = fewer.recomputation.parts.back().stages;
        ranges = without_stage(ranges, stage);
        if (!ranges.empty()) without(std::move(fewer));
      }
    }
    return best;
  }

  // The last first; none where all are meant.
  static std::vector<int> stages_of(const std::vector<NumberRange>& ranges) {
    std::vector<int> stages;
    for (const NumberRange& range : ranges) {
      for (int stage = range.first; stage <= range.last.value_or(range.first); ++stage) {
        stages.push_back(stage);
      }
    }
    std::reverse(stages.begin(), stages.end());
    return stages;
  }

  static std::vector<NumberRange> without_stage(const std::vector<NumberRange>& ranges, int stage) {
    std::vector<NumberRange> left;
    for (const NumberRange& range : ranges) {
      if (stage < range.first || (range.last && stage > *range.last)) {
        left.push_back(range);
        continue;
      }
      if (stage > range.first) left.push_back({range.first, stage - 1});
      if (!range.last || stage < *range.last) left.push_back({stage + 1, range.last});
    }
    return left;
  }

  bool gives_up_copies(const ChangedCandidate& one) const {
    return offloads(question_.from[one.from]) && !offloads(one.candidate);
  }

  CheapestChange result() {
    CheapestChange found;
    std::vector<const ChangedCandidate*> fitting;
    const ChangedCandidate* nearest = nullptr;
    for (const Judged& one : judged_) {
      if (!one.ran) {
        if (found.refused++ == 0) found.why_not = one.why_not;
        continue;
      }
      if (one.fits()) {
        fitting.push_back(&one.changed);
      } else if (nearest == nullptr || missing(one.changed) < missing(*nearest)) {
        nearest = &one.changed;
      }
      for (const ChangeKind kind : one.changed.changes) {
        if (std::find(found.tried.begin(), found.tried.end(), kind) == found.tried.end()) {
          found.tried.push_back(kind);
        }
      }
    }
    std::sort(found.tried.begin(), found.tried.end());
    if (fitting.empty() && nearest != nullptr) found.nearest = *nearest;
    std::stable_sort(
        fitting.begin(), fitting.end(),
        [](const ChangedCandidate* a, const ChangedCandidate* b) { return cheaper(*a, *b); });
    for (const ChangedCandidate* const one : fitting) {
      // Nor what does the same and more, and costs no less.
      const bool has = std::any_of(
          found.fitting.begin(), found.fitting.end(), [&](const ChangedCandidate& other) {
            return other.changes == one->changes ||
                   (gives_up_copies(*one) &&
                    std::includes(one->changes.begin(), one->changes.end(), other.changes.begin(),
                                  other.changes.end()));
          });
      if (!has) found.fitting.push_back(*one);
    }
    if (!found.fitting.empty()) found.fitting.front() = thinned(found.fitting.front());
    found.simulated = static_cast<int>(judged_.size()) - found.refused + thinnings_;
    found.cut_short = cut_short_;
    return found;
  }
};

}  // namespace

double fullness(const Verdict& verdict) {
  if (verdict.need && verdict.need->grows) return without_end;
  if (!verdict.need || verdict.need->limit.count <= 0) return 0;
  return static_cast<double>(verdict.need->peak.count) /
         static_cast<double>(verdict.need->limit.count);
}

CheapestChange cheapest_change(Evaluator& evaluator, const FitQuestion& question) {
  return FitSearch(evaluator, question).search();
}

}  // namespace stageline::planner
