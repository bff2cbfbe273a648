// What simulated steps say of the estimates of others.
#pragma once

#include <map>
#include <tuple>
#include <utility>

namespace stageline::planner {

/// Corrects the estimates of families that search their order: simulating one takes as long as
/// judging a hundred others. What is known comes
///   * from families of its own shape whose orders are fixed: gathers, reductions and messages that
///     were not foreseen there make every order longer,
///   * from the same family in other shapes with as many pipeline ranks, which exchange weights as
///     often: what it took beyond that.
/// Each is the least of step / estimate, so that what one costs is not laid on others.
class Corrections {
 public:
  /// Pipeline ranks, whether divided weights are exchanged in every op, and the family.
  using Kind = std::tuple<int, bool, int>;
  /// The shape, and what families of it have in common.
  using Ground = std::pair<int, int>;

  /// So many must be known before an estimate is corrected by them.
  static constexpr int least_known = 3;

  /// `ratio`: the simulated step over its estimate. Whether other estimates changed.
  bool learn_search(const Kind& kind, const Ground& ground, double ratio);
  void learn_fixed(const Ground& ground, double ratio) { fixed_[ground].learn(ratio); }
  /// Nothing more will be learned of it.
  void close_fixed(const Ground& ground) { fixed_[ground].closed = true; }

  /// How many are known.
  int searched(const Kind& kind) const { return known(searched_, kind); }
  int fixed(const Ground& ground) const { return known(fixed_, ground); }

  /// What an estimate is to be multiplied by: the larger of what is told by both; 1 where nothing
  /// is.
  double factor(const Kind& kind, const Ground& ground) const;

 private:
  struct Above {
    int known = 0;
    double least = 0;  // of step / estimate
    bool closed = false;

    bool is_told() const { return known >= least_known || (closed && known > 0); }
    double factor() const { return is_told() && least > 1 ? least : 1; }
    bool learn(double ratio);
  };
  template <class Key>
  static double factor_of(const std::map<Key, Above>& all, const Key& key);
  template <class Key>
  static int known(const std::map<Key, Above>& all, const Key& key) {
    const auto found = all.find(key);
    if (found == all.end()) return 0;
    return found->second.closed ? least_known : found->second.known;
  }

  std::map<Kind, Above> searched_;
  std::map<Ground, Above> fixed_;
};

}  // namespace stageline::planner
