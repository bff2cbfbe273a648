// The search behind plan(): shapes, families and cuts, the most promising first.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/planner/corrections.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/front.hpp"
#include "tools/planner/grounds.hpp"
#include "tools/planner/planner.hpp"
#include "tools/planner/space.hpp"

namespace stageline::planner {

/// All work is done in batches, which depend on earlier results and not on the time they took: the
/// answer is the same with any number of threads, unless a budget ends it.
class Search {
 public:
  explicit Search(const PlanRequest& request);

  /// Walks the shapes and their families, prunes by their bounds, and simulates the others.
  void walk();
  /// Changes the members of the front, and those that lack little to fit, as long as that helps.
  void refine();
  /// Where nothing fits: finds what lacks least.
  void find_nearest();

  const Front& front() const { return front_; }
  const PlanProgress& counts() const { return counts_; }
  const std::optional<PlanMissing>& missing() const { return missing_; }
  /// What lacked least so far, one after the other: the last lacks least.
  const std::vector<Candidate>& nearest() const { return nearest_; }
  /// No candidate is faster, simulated or not; where layers are in groups, also none that cuts
  /// within these.
  Time bound() const;
  bool partial() const { return partial_; }
  /// Whether what is left was left because of its estimates.
  bool left_behind() const { return left_behind_; }
  /// Whether a job of some candidate may stand on racks in another way, which only members of the
  /// front were tried with.
  bool placements_left() const { return placements_left_; }
  /// Whether every cut of every family was simulated, or pruned.
  bool all_cuts() const { return all_cuts_; }
  Evaluator& evaluator() { return evaluator_; }
  /// What was pruned or refused, where the request wants to know.
  std::vector<PlanDropped> take_dropped() { return std::move(dropped_); }

 private:
  using Clock = std::chrono::steady_clock;
  /// The families of all shapes with as many pipeline ranks.
  struct FamilySet {
    std::vector<Family> families;
    std::vector<int> stages;        // by family; 0: it cuts by itself
    std::vector<int> like;          // by family: the first that recomputes and offloads the same
    std::vector<std::string> cuts;  // to try first
    std::int64_t refused = 0;       // cannot be placed
    std::int64_t all_cuts = 0;      // of all families, as far as they are counted
    int layers = 0;
  };
  /// A shape, or a family of it, with its bounds.
  struct Node {
    Time step{};
    Bytes memory{};
    int shape = 0;
    int family = -1;      // -1: all families of the shape
    double alone = 0;     // the estimate of its step in seconds, no bound
    double estimate = 0;  // the same, so much longer the later it comes among its shape's families
    double need = 0;      // bytes of the fullest device, estimated
    double share = 0;     // of what it has to beat: by that they are looked at

    bool is_shape() const { return family < 0; }
  };
  struct Rated {
    std::vector<Node> nodes;
    Time work{};          // ShapeLoads::least_work(), where layers are in groups
    std::string why_not;  // that the shape cannot be
  };

  /// Stopped, or beyond the budget.
  bool is_over() const;
  bool ended();
  void report(bool now);
  Rated rated(int shape, bool families);
  void add_set(const Shape& shape, KnobReach reach);
  void add_sets();
  void rate_shapes();
  void expand(const std::vector<int>& shapes);
  void expand_all();
  const FamilySet& set_of(int shape) const;
  std::int64_t candidates_in(const Node& node) const;
  /// The families of the shape with their estimates, the best first.
  struct Estimated {
    Estimates::Estimate estimate;
    int family = 0;
    double later = 0;  // its step, longer where it searches its order: by that they are looked at
  };
  bool is_tried(const Shape& shape, const Family& family) const;
  std::vector<Estimated> by_estimate(int shape, const Grounds::Found& found) const;
  /// Looks next at what is estimated to be farthest below the front.
  void weigh(Node& node) const;
  bool cannot_fit(const Node& node) const;
  bool pruned(const Node& node);
  void prune_all();
  void note_bound(const Node& node);
  bool is_whole(const Node& node) const;
  std::vector<Candidate> candidates_of(const Node& node) const;
  /// Keeps what was pruned, where the request wants to know.
  void drop(const Node& node, std::int64_t candidates);
  bool walk_batch(std::size_t most);
  bool in_groups() const { return request_.setting.groups != nullptr; }
  bool all_behind() const;
  /// Whether what does not fit is a start for refining. What is too large by its bounds is not, so
  /// that an exhaustive search refines what any other does.
  enum class Refined { yes, no };
  struct Judged {
    bool changed = false;                    // the front
    std::vector<std::optional<Time>> steps;  // by candidate; empty: no verdict now
  };
  Judged judge(const std::vector<Candidate>& candidates, Refined refined = Refined::yes);
  bool searches(const Node& node) const;
  /// Whether others of this family are to be judged first; `taken` of each are in this batch.
  bool awaits(const Node& node, std::map<Corrections::Kind, int>& taken) const;
  Corrections::Kind kind_of(const Node& node) const;
  Corrections::Ground ground_of(const Node& node) const;
  /// Takes families of fixed order of the node's ground from those not looked at yet, the best
  /// estimated first, as many as are missing to correct its estimate.
  std::vector<Node> take_probes(const Node& node);
  /// Whether other estimates are corrected by it.
  bool learn(const Node& node, Time step);
  /// Judges each candidate, in several threads; empty where the search ended before or while it was
  /// simulated, which makes the answer partial.
  std::vector<std::optional<Judgement>> judgements_of(
      const std::vector<const Candidate*>& candidates);
  bool enter(const Candidate& candidate, const Judgement& judgement,
             Refined refined = Refined::yes);
  /// Whether the order of micro-batches is open, and makes a difference.
  bool orders_differ(const Shape& shape) const;
  std::vector<Candidate> neighbours(const FrontPoint& point);
  std::vector<Candidate> lighter(const FrontPoint& point) const;
  bool fit_by_recomputing();
  bool search_cuts();

  const PlanRequest& request_;
  Evaluator evaluator_;
  Grounds grounds_;
  int workers_ = 1;
  Clock::time_point began_;
  Clock::time_point reported_;
  std::vector<Shape> shapes_;
  std::vector<std::optional<Bytes>> limit_;  // by shape: the most that a device may hold
  std::map<int, FamilySet> sets_;            // by pipeline degree
  std::vector<Node> nodes_;                  // not looked at yet; a heap, the least share first
  std::vector<Node> too_large_;              // that cannot fit
  Corrections corrections_;
  Front front_;
  std::map<std::pair<Time, std::string>, FrontPoint> nearly_;  // do not fit, the fastest
  std::unordered_set<std::string> seen_;                       // flags of those judged
  PlanProgress counts_;
  std::optional<PlanMissing> missing_;
  std::vector<Candidate> nearest_;
  std::optional<Time> least_bound_;     // of what was looked at and may fit
  std::optional<Time> least_work_;      // of all shapes, where layers are in groups
  std::optional<std::string> refused_;  // the first sentence
  std::vector<PlanDropped> dropped_;
  std::int64_t left_ = 0;  // candidates in nodes_
  bool all_cuts_ = false;
  bool rated_all_ = false;
  bool partial_ = false;
  bool left_behind_ = false;
  bool placements_left_ = false;
};

}  // namespace stageline::planner
