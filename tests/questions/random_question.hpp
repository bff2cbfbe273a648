// Questions as users ask them, drawn at random: traces, clusters, schedules with all their knobs,
// cuts, links, limits. Small enough that thousands take a second.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::test {

/// Draws the same questions from the same seed on every machine. Traces and clusters that are
/// files are written into `folder`, which must exist.
class Questions {
 public:
  Questions(unsigned seed, std::string folder) : random_(seed), folder_(std::move(folder)) {}

  /// The words of one problem: trace, schedule, devices, links, memory, micro-batches, cut, rules.
  /// `only`: of such schedules.
  std::vector<std::string> problem(std::optional<Synchrony> only = std::nullopt);

  /// The same problem on several times as many devices, with data parallelism beside the pipeline.
  std::vector<std::string> replicated_problem(std::vector<std::string> problem);

  /// A transformer on machines of unequal sizes, whose devices share NICs or not, with all kinds of
  /// parallelism in any nesting.
  std::vector<std::string> problem_on_machines();

  /// A schedule with some of its knobs, of those that are `only` synchronous or not.
  std::string schedule(int devices, std::optional<Synchrony> only);

  /// A whole number from 0 to `below` - 1.
  int number(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  /// True once in `times`.
  bool once_in(int times) { return number(times) == 0; }
  template <class Value>
  const Value& one_of(const std::vector<Value>& values) {
    return nth(values, number(static_cast<int>(values.size())));
  }

  const std::string& folder() const { return folder_; }

 private:
  std::string trace();
  std::string cluster_file(int devices);
  std::string machines_file(int devices);
  std::string time();
  std::string bytes();
  std::string link();

  std::mt19937 random_;
  std::string folder_;
};

}  // namespace stageline::test
