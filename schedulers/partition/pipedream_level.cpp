#include "schedulers/partition/pipedream_level.hpp"

#include <fmt/core.h>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {

int pipedream_devices(const PipedreamQuestion& question) {
  std::int64_t devices = 1;
  for (const PipedreamLevel& level : question.levels) devices *= level.machines;
  return static_cast<int>(devices);
}

void PlanSteps::add(std::size_t tried) {
  constexpr std::uint64_t most = 2'000'000'000;
  tried_ += tried;
  if (tried_ <= most) return;
  throw UsageError(fmt::format(
      "pipedream: a plan of {} layers for {} devices weighs more than {} splits; merge layers, use "
      "fewer devices or give --partition balanced",
      question_.time.size(), pipedream_devices(question_), most));
}

LevelTimes level_times(const PipedreamQuestion& question, std::size_t number) {
  const PipedreamLevel& asked = question.levels[number];
  LevelTimes level;
  level.cost = question.cost;
  level.replicate = question.replicate;
  for (std::size_t l = 0; l < number; ++l) level.below *= question.levels[l].machines;
  level.compute.push_back(0);
  level.reduce.push_back(0);
  Bytes weights;
  double longest = 0;  // ps; whatever is added up below stays under it
  const double ps_per_byte = asked.bandwidth.is_unlimited()
                                 ? 0
                                 : 1e12 / static_cast<double>(asked.bandwidth.bytes_per_second);
  for (std::size_t i = 0; i < question.time.size(); ++i) {
    longest += static_cast<double>(question.time[i].count()) +
               4 * ps_per_byte * static_cast<double>(question.weights[i].count);
    const double move = 2 * ps_per_byte * static_cast<double>(question.crossing[i].count);
    if ((longest + move) * pipedream_devices(question) > 4e18) {
      throw UsageError(fmt::format(
          "pipedream: times, all-reduces and transfers of {} layers at {} on {} devices "
          "add up to over {:.0f} s, which is more than its tables hold; give a larger "
          "bandwidth",
          question.time.size(), print(asked.bandwidth), pipedream_devices(question), 4e6));
    }
    weights += question.weights[i];
    level.compute.push_back(level.compute.back() + question.time[i].count());
    level.reduce.push_back(transfer_time(weights * 4, asked.bandwidth).count());
    level.move.push_back(
        question.transfers ? transfer_time(question.crossing[i] * 2, asked.bandwidth).count() : 0);
  }
  return level;
}

Time pipedream_stage_time(const PipedreamQuestion& question, int first, int last, int replicas) {
  const LevelTimes level = level_times(question, 0);
  const auto i = as_size(first);
  const auto j = as_size(last);
  return Time{level.stage_time(level.compute[j + 1] - level.compute[i], i, j, replicas)};
}

}  // namespace stageline
