#include "cost_models/buckets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/checked.hpp"

namespace stageline {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

constexpr std::array<BucketRule, 3> rules{{
    {.name = "ddp",
     .first = {mebibyte},
     .others = {25 * mebibyte},
     .copies = true,
     .source = "PyTorch, torch/csrc/distributed/c10d/reducer.hpp: kDefaultFirstBucketBytes, "
               "kDefaultBucketBytesCap; reducer.cpp: compute_bucket_assignment_by_size; "
               "torch/nn/parallel/distributed.py: gradient_as_bucket_view is false by default, and "
               "would save as much memory as the gradients take"},
    {.name = "megatron",
     .parameters = 40'000'000,
     .parameters_rank = 1'000'000,
     .first_stage_only = true,
     .source = "Megatron-LM, megatron/core/distributed/distributed_data_parallel.py, "
               "param_and_grad_buffer.py, with overlap_grad_reduce"},
    {.name = "none", .behind = true, .source = "one reduction behind the backward"},
}};

}  // namespace

std::span<const BucketRule> bucket_rules() { return rules; }

const BucketRule& find_bucket_rule(const std::string& text) {
  std::vector<std::string> known;
  for (const BucketRule& rule : rules) {
    if (rule.name == text) return rule;
    known.emplace_back(rule.name);
  }
  throw UsageError(fmt::format("no rule for buckets is called '{}' (there are {}){}", text,
                               fmt::join(known, ", "), did_you_mean(text, known)));
}

BucketLimits bucket_limits(const BucketRule& rule, int ranks, double gradient_bytes,
                           bool first_stage) {
  if (rule.first_stage_only && !first_stage) return {};
  if (rule.first > Bytes{}) return {rule.first, rule.others};
  const std::int64_t parameters = std::max(rule.parameters, rule.parameters_rank * ranks);
  const Bytes limit{std::llround(std::ceil(static_cast<double>(parameters) * gradient_bytes))};
  return {limit, limit};
}

std::vector<LayerGradient> backward_order(const Model& model, const Partition& partition, int stage,
                                          WeightKind kind) {
  std::vector<LayerGradient> gradients;
  for (std::size_t l = model.layers.size(); l > 0; --l) {
    const Layer& layer = model.layers[l - 1];
    if (partition.stage_of[l - 1] != stage) continue;
    gradients.push_back({layer.backward, part_of_kind(layer, layer.gradients, kind)});
  }
  return gradients;
}

Bytes GradientBuckets::bytes() const {
  Bytes sum{};
  for (const GradientBucket& bucket : buckets) sum += bucket.bytes;
  return sum;
}

Bytes GradientBuckets::last_bytes() const {
  return buckets.empty() ? Bytes{} : buckets.back().bytes;
}

GradientBuckets fill_buckets(std::span<const LayerGradient> in_order, BucketLimits limits) {
  Time left{};
  for (const LayerGradient& gradient : in_order) left += gradient.time;
  GradientBuckets result;
  GradientBucket open;
  for (const LayerGradient& gradient : in_order) {
    left -= gradient.time;
    if (gradient.bytes == Bytes{}) continue;
    open.bytes += gradient.bytes;
    open.before_end = left;
    const Bytes limit = result.buckets.empty() ? limits.first : limits.others;
    if (limit == Bytes{} || open.bytes < limit) continue;
    result.buckets.push_back(open);
    open = {};
  }
  if (open.bytes > Bytes{}) result.buckets.push_back(open);
  return result;
}

Time behind_backward(std::span<const ReducedBuckets> reduced) {
  struct Queued {
    Time full{};  // 0: when the backward ends
    Time takes{};
  };
  std::vector<Queued> queue;
  for (const ReducedBuckets& one : reduced) {
    for (const GradientBucket& bucket : one.buckets.buckets) {
      queue.push_back(
          {-bucket.before_end, checked_sum(one.setup, transfer_time(bucket.bytes, one.bandwidth))});
    }
  }
  if (queue.empty()) return Time{};
  std::stable_sort(queue.begin(), queue.end(),
                   [](const Queued& a, const Queued& b) { return a.full < b.full; });
  Time end = queue.front().full;  // of the reduction so far
  for (const Queued& bucket : queue) end = checked_sum(std::max(end, bucket.full), bucket.takes);
  return std::max(end, Time{});
}

}  // namespace stageline
