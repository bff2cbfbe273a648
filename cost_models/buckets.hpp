// Gradients in buckets: a data-parallel reduction begins while the backward still runs.
//
//   backward   L4  L3  L2  L1
//   buckets        └ 1 ┘└─ 2 ┘        1 is full when the gradients of L3 are there
//   reduction          ═══ 1 ═══ 2 ═  2 is never full; its last gradient is that of L1
//                      ├ head start ┤
//
// Only the last backward of a step fills buckets: before it, gradients are accumulated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/state_bytes.hpp"
#include "sim/base/units.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// When a bucket is full. It is closed behind the gradient with which it reaches its limit, which
/// it may exceed.
struct BucketRule {
  std::string_view name;
  Bytes first{};                     // limit of the first bucket to fill; with that of the others,
  Bytes others{};                    // or, where both are 0,
  std::int64_t parameters = 0;       // in parameters: at least so many,
  std::int64_t parameters_rank = 0;  // and so many a data-parallel rank; 0 and 0: one bucket
  bool first_stage_only = false;     // the other stages have one bucket
  bool behind = false;  // reduced when the backward has ended, however early a bucket is full
  bool copies = false;  // gradients are copied into buckets, which are kept for the next step, too;
                        // else they are views of them, and the buckets take no memory of their own
  std::string_view source;
};

/// "ddp", "megatron", "none".
std::span<const BucketRule> bucket_rules();
/// Throws UsageError with the names there are, and the nearest.
const BucketRule& find_bucket_rule(const std::string& text);

/// The rule in bytes for one stage; 0: no limit.
struct BucketLimits {
  Bytes first{};
  Bytes others{};
  friend bool operator==(const BucketLimits&, const BucketLimits&) = default;
};
/// `gradient_bytes`: of a parameter's gradient. `ranks` >= 1.
BucketLimits bucket_limits(const BucketRule& rule, int ranks, double gradient_bytes,
                           bool first_stage);

/// The gradients of a layer, and how long their computation takes.
struct LayerGradient {
  Time time{};
  Bytes bytes{};
  friend bool operator==(const LayerGradient&, const LayerGradient&) = default;
};
/// Those of one stage in the order of its backward, the last layer first. Times are those of B as
/// the model's layers have them: head_start_behind() says what a shorter last op makes of them. A
/// layer's gradients are there when its backward ends, all together. `kind`: only those gradients.
std::vector<LayerGradient> backward_order(const Model& model, const Partition& partition, int stage,
                                          WeightKind kind = WeightKind::all);

struct GradientBucket {
  Bytes bytes{};
  Time before_end{};  // from its last gradient to the end of the stage's last backward
  friend bool operator==(const GradientBucket&, const GradientBucket&) = default;
};
/// In the order in which they fill and are reduced.
struct GradientBuckets {
  std::vector<GradientBucket> buckets;

  Bytes bytes() const;       // of the whole reduction
  Bytes last_bytes() const;  // of the last bucket
};
/// Layers without gradients take time, and are in no bucket.
GradientBuckets fill_buckets(std::span<const LayerGradient> in_order, BucketLimits limits);

/// Buckets of gradients that are reduced among the same ranks, each for `setup` and its bytes at
/// that rate.
struct ReducedBuckets {
  GradientBuckets buckets;
  Time setup{};
  Bandwidth bandwidth;
};
/// How long after the end of the backward the reduction ends: buckets one after the other, in the
/// order in which they are full, each from when it is. Throws as transfer_time.
Time behind_backward(std::span<const ReducedBuckets> reduced);

}  // namespace stageline
