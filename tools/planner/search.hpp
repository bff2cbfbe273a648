// The search behind plan(): shapes, families and cuts, the most promising first.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/planner/evaluator.hpp"
#include "tools/planner/front.hpp"
#include "tools/planner/planner.hpp"
#include "tools/planner/space.hpp"

namespace stageline {

/// All work is done in batches, which depend on earlier results and not on the time they took: the
/// answer is the same with any number of threads, unless a budget ends it.
class Search {
 public:
  explicit Search(const PlanRequest& request);

  /// Opens the shapes, and walks their families by their bounds.
  void walk();
  /// Changes the members of the front, and those that lack little to fit, as long as that helps.
  void refine();
  /// Where nothing fits: finds what lacks least.
  void find_nearest();

  const Front& front() const { return front_; }
  const PlanProgress& counts() const { return counts_; }
  const std::optional<PlanMissing>& missing() const { return missing_; }
  /// No candidate is faster, simulated or not.
  Time bound() const;
  bool partial() const { return partial_; }
  /// Whether every cut of every family was simulated, or pruned.
  bool all_cuts() const { return all_cuts_; }
  /// Which bound it was that most families were pruned by, and the like.
  std::vector<std::string> notes() const;
  Evaluator& evaluator() { return evaluator_; }
  /// What was pruned or refused, where the request wants to know.
  std::vector<PlanDropped> take_dropped() { return std::move(dropped_); }

 private:
  using Clock = std::chrono::steady_clock;
  /// A shape with what its families share.
  struct OpenShape {
    Shape shape;
    std::vector<Family> families;
    std::vector<std::string> cuts;  // to try first
    int layers = 0;
    std::optional<Bytes> limit;  // the most that a device may hold; empty: unknown
  };
  /// A family of a shape, with its bounds.
  struct Node {
    Time step{};
    Bytes memory{};
    int shape = 0;
    int family = 0;
    int stages = 0;  // 0: it cuts by itself
  };

  bool ended();
  void report(bool now);
  void open(std::size_t from, std::size_t to);
  bool cannot_fit(const Node& node) const;
  std::vector<std::string> cuts_of(const Node& node) const;
  std::vector<Candidate> candidates_of(const Node& node) const;
  /// A shape that is refused, or a family of it.
  PlanDropped refused(Candidate any, const Family* family, const std::string& why) const;
  void drop(const Node& node);
  bool walk_batch();
  bool judge(const std::vector<Candidate>& candidates);
  bool enter(const Candidate& candidate, const Judgement& judgement);
  std::vector<Candidate> neighbours(const FrontPoint& point) const;
  bool fit_by_recomputing();
  void search_cuts();

  const PlanRequest& request_;
  Evaluator evaluator_;
  int workers_ = 1;
  Clock::time_point began_;
  Clock::time_point reported_;
  std::vector<Shape> shapes_;
  std::vector<OpenShape> open_;
  std::vector<Node> nodes_;      // those not walked yet form a heap, the best bound first
  std::vector<Node> too_large_;  // that cannot fit
  Front front_;
  std::map<std::pair<Time, std::string>, FrontPoint> nearly_;  // do not fit, the fastest
  std::unordered_set<std::string> seen_;                       // flags of those judged
  PlanProgress counts_;
  std::optional<PlanMissing> missing_;
  std::optional<Time> least_bound_;     // of all families that may fit
  std::optional<std::string> refused_;  // the first sentence
  std::vector<PlanDropped> dropped_;
  std::size_t opened_ = 0;
  bool all_cuts_ = false;
  bool partial_ = false;
};

}  // namespace stageline
