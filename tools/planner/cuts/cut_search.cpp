// Searches the best cut by simulation: best first, from the promising cuts on. Among the cuts that
// were simulated the best one that has moves left is moved on, so that the search climbs, walks
// along ridges of equal steps, and from a summit goes on with the next best cut.
#include "tools/planner/cuts/cut_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/parallel.hpp"
#include "tools/planner/cuts/cut_space.hpp"

namespace stageline::planner {
namespace {

constexpr int most_promising = 24;
constexpr std::size_t at_once = 8;        // moves of one cut that are simulated together
constexpr int most_asked_cuts = 1 << 20;  // that a user may ask for
constexpr double most_in_cuts = 1 << 20;  // micro-batches on devices, of all cuts together

struct TriedCut {
  Begins cut;
  std::optional<Verdict> verdict;  // empty: it cannot run
  std::string why_not;
  int reach = 0;                // of the moves that were listed so far
  std::vector<Begins> moves{};  // still to be simulated, the most promising last
};

// Smaller is better.
using Standing = std::tuple<bool, bool, Bytes, Time, Bytes>;

Standing standing(const std::optional<Verdict>& verdict) {
  if (!verdict) return {true, true, {}, {}, {}};
  const bool fits = verdict->fit != Fit::no;
  const Bytes missing = fits || !verdict->need ? Bytes{} : verdict->need->missing();
  return {false, !fits, missing, verdict->step, verdict->fullest()};
}

// Boundaries first..last moved by so many units; empty where a stage would be left without any.
std::optional<Begins> moved(const CutSpace& space, Begins cut, std::size_t first, std::size_t last,
                            int by) {
  for (std::size_t i = first; i <= last; ++i) cut[i] += by;
  const int before = first == 0 ? 0 : cut[first - 1];
  const int behind = last + 1 == cut.size() ? space.units() : cut[last + 1];
  if (cut[first] <= before || cut[last] >= behind) return std::nullopt;
  return cut;
}

class CutSearch {
 public:
  CutSearch(const Case& asked, Judge& judge, const CutSpace& space, int most)
      : asked_(asked), judge_(judge), space_(space), most_(as_size(most)) {
    const double size =
        static_cast<double>(asked.cluster.devices.size()) * std::max(asked.microbatches, 1);
    workers_ = static_cast<int>(std::clamp<double>(most_in_cuts / size, 1, available_cores()));
  }

  void run() {
    for (const char* const plain : plain_partitioners) {
      if (const auto cut = space_.cut_by(plain)) try_all({*cut});
    }
    if (space_.cuts() <= static_cast<double>(most_)) {
      try_everything();
      return;
    }
    try_all(promising_cuts(space_, most_promising));
    while (tried_.size() < most_) {
      TriedCut* const from = best_with_moves();
      if (from == nullptr) break;
      std::vector<Begins> next;
      while (next.size() < at_once && !from->moves.empty()) {
        if (known_.count(from->moves.back()) == 0) next.push_back(from->moves.back());
        from->moves.pop_back();
      }
      try_all(next);
    }
  }

  bool all() const { return static_cast<double>(tried_.size()) >= space_.cuts(); }
  int simulated() const { return static_cast<int>(tried_.size()); }
  const TriedCut& best() const { return tried_[best_]; }
  const TriedCut* find(const Begins& cut) const {
    const auto found = known_.find(cut);
    return found == known_.end() ? nullptr : &tried_[found->second];
  }
  const std::vector<TriedCut>& tried() const { return tried_; }

 private:
  void try_everything() {
    std::vector<Begins> cuts;
    Begins cut = space_.first_cut();
    do {
      cuts.push_back(cut);
    } while (space_.next_cut(cut));
    try_all(cuts);
  }

  // Those that are not known yet, as far as `most` allows.
  void try_all(const std::vector<Begins>& cuts) {
    const std::size_t before = tried_.size();
    for (const Begins& cut : cuts) {
      if (tried_.size() == most_) break;
      if (known_.emplace(cut, tried_.size()).second) tried_.push_back({cut, {}, "", 0, {}});
    }
    in_parallel(tried_.size() - before, workers_,
                [&](std::size_t i) { simulate(tried_[before + i]); });
    for (std::size_t i = before; i < tried_.size(); ++i) {
      const Standing here = standing(tried_[i].verdict);
      if (here < standing(tried_[best_].verdict)) best_ = i;
      if (tried_[i].verdict) open_.emplace(here, i);
    }
  }

  void simulate(TriedCut& one) const {
    Case asked = asked_;
    asked.partition = space_.text(one.cut);
    try {
      one.verdict = judge_.verdict(asked);
    } catch (const UsageError& error) {
      one.why_not = error.what();
    } catch (const ProgramError& error) {
      one.why_not = error.what();
    } catch (const Deadlock& error) {
      one.why_not = error.what();
    }
  }

  TriedCut* best_with_moves() {
    while (!open_.empty()) {
      TriedCut& one = tried_[open_.begin()->second];
      while (one.moves.empty() && one.reach < furthest) list_moves(one);
      if (!one.moves.empty()) return &one;
      open_.erase(open_.begin());
    }
    return nullptr;
  }

  static constexpr int furthest = 4;

  // Reach 1: one boundary, or two neighbouring ones, by a unit. 2: also a stage wider or narrower
  // on both sides, any run of boundaries by a unit, and one boundary by two. 3 and 4: by more.
  void list_moves(TriedCut& from) const {
    const int reach = ++from.reach;
    const std::size_t boundaries = from.cut.size();
    std::vector<std::pair<double, Begins>> found;
    const auto add = [&](std::optional<Begins> cut) {
      if (!cut || known_.count(*cut) > 0) return;
      const double order = space_.estimate(*cut).order();
      found.emplace_back(order, *std::move(cut));
    };
    const std::size_t longest = reach == 1 ? 2 : reach == 2 ? boundaries : 2;
    const int by = reach <= 2 ? 1 : reach == 3 ? 3 : 8;
    for (std::size_t first = 0; first < boundaries; ++first) {
      for (const int way : {-1, 1}) {
        const std::size_t end = std::min(boundaries, first + longest);
        for (std::size_t last = first; last < end; ++last) {
          if (reach == 2 && last < first + 2) continue;
          add(moved(space_, from.cut, first, last, way * by));
        }
        if (reach != 2) continue;
        add(moved(space_, from.cut, first, first, way * 2));
        if (first + 1 == boundaries) continue;
        if (const auto half = moved(space_, from.cut, first, first, way)) {
          add(moved(space_, *half, first + 1, first + 1, -way));
        }
      }
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    for (auto& [order, cut] : found) from.moves.push_back(std::move(cut));
  }

  const Case& asked_;
  Judge& judge_;
  const CutSpace& space_;
  std::size_t most_;
  int workers_ = 1;
  std::map<Begins, std::size_t> known_;  // into tried_
  std::vector<TriedCut> tried_;          // in the order in which they were found
  std::size_t best_ = 0;
  std::set<std::pair<Standing, std::size_t>> open_;  // that may have moves left
};

struct CutOptions {
  int most = 400;
  bool whole_blocks = false;
};

constexpr const char* search_word = "simulated";

CutOptions parse_options(const std::string& partition) {
  CutOptions options;
  const std::size_t colon = partition.find(':');
  if (colon == std::string::npos) return options;
  for (const std::string& item : split_at_commas(partition.substr(colon + 1))) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    if (item == "blocks") {
      options.whole_blocks = true;
    } else if (key == "most") {
      const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
      options.most = parse_number<int>(value).value_or(0);
      if (options.most < 1 || options.most > most_asked_cuts) {
        throw UsageError(
            fmt::format("{}: most is the number of cuts to simulate, from 1 to {}, not \"{}\"",
                        search_word, most_asked_cuts, value));
      }
    } else {
      throw UsageError(fmt::format("{}: option \"{}\" is not known (most=N, blocks){}", search_word,
                                   item, did_you_mean(key, {"most", "blocks"})));
    }
  }
  return options;
}

}  // namespace

SearchedCut search_cut(const Case& asked, Judge& judge, int most, bool whole_blocks) {
  const CutSpace space(asked, whole_blocks);
  CutSearch search(asked, judge, space, most);
  search.run();
  if (!search.best().verdict) throw UsageError(search.tried().front().why_not);
  SearchedCut found;
  found.partition = space.text(search.best().cut);
  found.verdict = *search.best().verdict;
  found.simulated = search.simulated();
  found.all = search.all();
  const std::string plain = whole_blocks ? "blocks" : "balanced";
  const std::optional<Begins> cut = space.cut_by(plain);
  const TriedCut* first = cut ? search.find(*cut) : nullptr;
  if (first != nullptr && first->verdict) {
    found.plain = plain;
  } else {
    first = &*std::find_if(search.tried().begin(), search.tried().end(),
                           [](const TriedCut& one) { return one.verdict.has_value(); });
  }
  found.first = *first->verdict;
  return found;
}

bool is_simulated(const std::string& partition) {
  return partition.substr(0, partition.find(':')) == search_word;
}

Case with_searched_cut(Case asked) {
  if (!is_simulated(asked.partition)) return asked;
  if (asked.program) {
    throw UsageError(fmt::format(
        "--partition {} searches the best cut for a schedule, and a given program was written for "
        "its own stages; give a cut, or leave it out for balanced",
        asked.partition));
  }
  const CutOptions options = parse_options(asked.partition);
  if (asked.spec.scheduler->assign != nullptr) return asked;
  FoundCut found;
  found.asked = std::exchange(asked.partition, options.whole_blocks ? "blocks" : "balanced");
  if (options.whole_blocks && blocks_of(asked.model).empty()) {
    throw UsageError(fmt::format(
        "{} keeps the blocks of transformers whole, and {} has none (layers of kind attention and "
        "mlp, or block)",
        found.asked, asked.model.name));
  }
  try {
    Judge judge;
    const SearchedCut cut = search_cut(asked, judge, options.most, options.whole_blocks);
    found.simulated = cut.simulated;
    found.all = cut.all;
    found.found = cut.verdict.step;
    found.fits = cut.verdict.fit != Fit::no;
    found.plain = asked.partition;
    if (!cut.plain.empty()) found.plain_step = cut.first.step;
    found.plain_fits = cut.first.fit != Fit::no;
    asked.partition = cut.partition;
  } catch (const UsageError&) {  // study() says it of the plain cut
  }
  asked.found_cut = std::move(found);
  return asked;
}

}  // namespace stageline::planner
