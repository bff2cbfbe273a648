// Max-min fair rates of flows that share resources, kept up to date while flows come and go.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stageline {

/// A resource that a flow crosses, and the units across it for each unit of the flow, > 0. A
/// collective is one flow with several loads.
struct ResourceLoad {
  std::uint32_t resource = 0;
  double share = 1;
};

/// Maximizes the least rate / weight, then the next, and so on, under Σ rate · share <= capacity by
/// resource and rate <= bound by flow (progressive filling: Bertsekas and Gallager, Data Networks,
/// 1992, 6.5.2; Casanova et al. 2014 for loads). The level of a resource is what is left of its
/// capacity over the sum of share · weight of its flows without a rate. Each round gives every flow
/// whose bound / weight is not above the lowest level its bound; or, if there is none, goes through
/// the resources of that level in order of their numbers and gives their flows level · weight, in
/// order of their ranks. Levels within a relative 1e-12 are equal.
///
/// Only the flows and resources that a change reaches over shared resources are computed anew.
class MaxMin {
 public:
  using Flow = std::uint32_t;
  static constexpr double unbounded = std::numeric_limits<double>::infinity();

  /// By resource, units per unit of time, > 0.
  explicit MaxMin(std::vector<double> capacity);

  /// A flow without a rate until the next update(). `rank` orders flows and differs between any two
  /// at a time. Each resource at most once in `loads`, which must outlive the flow. A flow without
  /// loads gets its bound. Numbers of removed flows are used again.
  Flow add(std::uint32_t rank, std::span<const ResourceLoad> loads, double bound = unbounded,
           double weight = 1);
  void remove(Flow flow);

  /// Whether flows came or went since the last update().
  bool is_changed() const { return !changed_.empty() || !unloaded_.empty(); }
  /// The flows whose rates changed by more than a relative 1e-12, in order of their ranks; other
  /// rates are kept to the bit. O(rounds · entries) of the components that changed.
  const std::vector<Flow>& update();

  double rate(Flow flow) const { return flows_[flow].rate; }
  /// Whether the last rate is the flow's bound.
  bool is_at_bound(Flow flow) const { return flows_[flow].at_bound; }

 private:
  struct State {
    std::span<const ResourceLoad> loads;
    std::vector<std::uint32_t> place;  // by load: index into the resource's users
    double bound = unbounded;
    double weight = 1;
    double rate = 0;
    std::uint32_t rank = 0;
    std::uint32_t seen = 0;  // in this update
    bool fixed = false;
    bool at_bound = false;
  };
  struct User {
    Flow flow = 0;
    std::uint32_t load = 0;  // index into the flow's loads
  };
  struct Resource {
    double capacity = 0;
    double left = 0;    // of the capacity
    double weight = 0;  // Σ share · weight of the flows without a rate
    double level = 0;
    std::uint32_t open = 0;  // flows without a rate
    std::uint32_t seen = 0;  // in this update
    bool changed = false;
    std::vector<User> users;
  };

  void mark(std::uint32_t resource);
  void sort_by_rank(std::vector<Flow>& flows);
  void reach(std::uint32_t resource);
  void fill_one();
  void fill();
  void open_resources();
  double lowest_level();
  bool fix_bounded(double level);
  void fill_through(std::uint32_t resource);
  void fix(Flow flow, double rate, bool at_bound, double level);
  void weigh(Resource& resource);
  void set(Flow flow, double rate, bool at_bound);

  std::vector<State> flows_;
  std::vector<Flow> free_;
  std::vector<Resource> resources_;
  std::vector<std::uint32_t> changed_;  // resources
  std::vector<Flow> unloaded_;          // flows without loads that are new
  std::uint32_t updates_ = 0;
  std::vector<Flow> moved_;          // the result of update()
  std::vector<Flow> flows_here_;     // of one component, by rank
  std::vector<Flow> bounded_here_;   // of these, by bound / weight
  std::size_t bounded_ = 0;          // index into these: the first that may have no rate
  std::vector<std::uint32_t> here_;  // resources of one component
  std::vector<Flow> through_;        // flows of one round
  std::vector<std::uint64_t> keys_;  // of sort_by_rank(): rank and flow
};

}  // namespace stageline
