// The shapes of a cluster: degrees that multiply to its devices, and micro-batches that add up to
// the samples.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/planner/planner.hpp"

namespace stageline::planner {
namespace {

// Context parallelism divides sequences; shorter parts than this are not worth their collectives.
constexpr std::int64_t least_tokens_a_part = 4096;
constexpr std::int64_t most_microbatches = 1 << 20;

std::vector<int> divisors(std::int64_t of) {
  std::vector<int> all;
  for (std::int64_t d = 1; d * d <= of; ++d) {
    if (of % d != 0) continue;
    all.push_back(static_cast<int>(d));
    if (d * d != of && of / d <= 1 << 30) all.push_back(static_cast<int>(of / d));
  }
  std::sort(all.begin(), all.end());
  return all;
}

// What the trace and the cluster allow, before any shape is fixed.
struct Ground {
  Model model;  // of one rank of the least degrees
  int devices = 0;
  int in_a_machine = 0;
  bool language = false;
};

SettingRequest without_shape(const SettingRequest& base) {
  SettingRequest request = base;
  request.degrees = Degrees{};
  request.degrees.order = base.degrees.order;
  request.whole_cluster = false;  // which is asked of a shape
  request.schedules.clear();
  request.recomputation = {};
  request.offloading = {};
  request.partition = SettingRequest{}.partition;
  return request;
}

// Whether the trace has the layers of one rank of these degrees.
bool is_priced(const SettingRequest& base, const Sharding& sharding, int microbatch_size,
               const std::string& cp_comm_type = {}) {
  SettingRequest request = without_shape(base);
  request.degrees.tensor = sharding.tensor;
  request.degrees.context = sharding.context;
  request.degrees.expert = sharding.expert;
  request.degrees.data = std::max(1, sharding.expert / sharding.context);
  request.degrees.pipeline = 1;
  request.devices.clear();
  request.sequence_parallel = sharding.sequence;
  if (!cp_comm_type.empty()) request.cp_comm_type = cp_comm_type;
  request.microbatch_size = microbatch_size;
  try {
    read_setting(request);
    return true;
  } catch (const UsageError&) {
    return false;
  } catch (const TraceError&) {
    return false;
  }
}

Ground ground_of(const PlanRequest& request) {
  SettingRequest any = without_shape(request.setting);
  Setting setting = read_setting(any);
  Ground ground;
  ground.devices = *std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  const Cluster cluster = cluster_of(setting.cluster, ground.devices);
  ground.in_a_machine = static_cast<int>(std::count_if(
      cluster.devices.begin(), cluster.devices.end(),
      [&](const Device& device) { return device.host == cluster.devices.front().host; }));
  ground.model = std::move(setting.model);
  ground.language = ground.model.tokens > 0;
  return ground;
}

class Shapes {
 public:
  explicit Shapes(const PlanRequest& request) : request_(request), ground_(ground_of(request)) {
    const std::string& lengths = request.setting.lengths;
    if (!lengths.empty()) lengths_ = count_of_lengths(lengths);
  }

  std::vector<Shape> all() {
    if (request_.samples < 1) {
      throw UsageError(fmt::format("the samples of an update are a positive number (they are {})",
                                   request_.samples));
    }
    for (const int devices : device_counts()) add_for(devices);
    if (shapes_.empty()) refuse();
    return std::move(shapes_);
  }

 private:
  const PlanRequest& request_;
  Ground ground_;
  std::vector<Shape> shapes_;
  std::map<std::pair<int, int>, std::vector<std::string>> comm_types_;  // by tp and cp
  std::set<int> width_left_;    // numbers of samples a replica that no size divides
  std::set<int> devices_seen_;  // products of degrees that were refused for the number of layers
  bool any_degrees_ = false;
  bool any_experts_ = false;
  bool any_samples_ = false;
  bool any_size_ = false;     // divides the samples
  std::int64_t lengths_ = 0;  // that the micro-batches of a step have; 0: they are alike

  const PlanSpace& space() const { return request_.space; }
  const Degrees& given() const { return request_.setting.degrees; }

  std::vector<int> device_counts() const {
    if (!space().devices.empty()) return space().devices;
    if (!request_.setting.devices.empty()) return request_.setting.devices;
    return {ground_.devices};
  }

  // The values of a degree: what the space says, what the setting says, or all that divide.
  static std::vector<int> choose(const std::vector<int>& fixed, int given, int least,
                                 const std::vector<int>& all) {
    if (!fixed.empty()) return fixed;
    if (given > least) return {given};
    return all;
  }

  std::vector<int> tensor_degrees() const {
    if (!space().tensor.empty()) return space().tensor;
    if (given().tensor > 1) return {given().tensor};
    std::vector<int> degrees;
    for (const int degree : divisors(ground_.in_a_machine)) {
      if (degree == ground_.model.sharding.tensor ||
          is_priced(request_.setting, {degree, 1, 1, false}, request_.setting.microbatch_size)) {
        degrees.push_back(degree);
      }
    }
    return degrees;
  }

  std::vector<int> context_degrees() const {
    if (!space().context.empty()) return space().context;
    if (given().context > 1) return {given().context};
    std::vector<int> degrees{1};
    for (int degree = 2; degree <= ground_.in_a_machine; degree *= 2) {
      if (!ground_.language || ground_.model.tokens / degree < least_tokens_a_part) break;
      if (is_priced(request_.setting, {1, degree, 1, false}, request_.setting.microbatch_size)) {
        degrees.push_back(degree);
      }
    }
    return degrees;
  }

  // How context-parallel ranks exchange; empty: as the setting says. A hierarchy is for groups that
  // are in several machines, its all-to-alls within one.
  const std::vector<std::string>& comm_types(int tensor, int context) {
    static const std::vector<std::string> of_setting{""};
    if (context == 1) return of_setting;
    if (!space().cp_comm_type.empty()) return space().cp_comm_type;
    const SettingRequest& setting = request_.setting;
    const bool said =
        !setting.cp_comm_type.empty() || setting.trace.find(",cp_exchange=") != std::string::npos;
    if (said || !ground_.language) return of_setting;
    const auto [found, is_new] = comm_types_.try_emplace({tensor, context});
    if (!is_new) return found->second;
    std::vector<std::string> all{"all_gather", "p2p", "a2a"};
    const int part = std::gcd(context, std::max(1, ground_.in_a_machine / tensor));
    if (part > 1 && part < context) all.push_back(fmt::format("a2a+p2p:{}", part));
    for (const std::string& one : all) {
      if (is_priced(setting, {tensor, context, 1, false}, setting.microbatch_size, one)) {
        found->second.push_back(one);
      }
    }
    if (found->second.empty()) found->second = of_setting;
    return found->second;
  }

  bool has_experts() const {
    return std::any_of(ground_.model.layers.begin(), ground_.model.layers.end(),
                       [](const Layer& layer) { return layer.expert_parameters > 0; });
  }

  // Whether experts are tried whole, too (etp 1), as Megatron-LM's recipes have them.
  bool folds() const {
    return space().expert_tensor.empty() && given().expert_tensor == 0 && ground_.language &&
           has_experts();
  }

  std::vector<int> expert_tensor_degrees(int tensor) const {
    if (!space().expert_tensor.empty()) return space().expert_tensor;
    if (folds() && tensor > 1) return {0, 1};
    return {given().expert_tensor};
  }

  // Among so many ranks that hold the same part of experts.
  std::vector<int> expert_degrees(int holders) const {
    if (!space().expert.empty()) return space().expert;
    if (given().expert > 1) return {given().expert};
    if (!has_experts()) return {1};
    return divisors(holders);
  }

  std::vector<Zero> zeros(int holders) const {
    if (!space().zero.empty()) return space().zero;
    if (given().zero != Zero::none) return {given().zero};
    if (holders == 1) return {Zero::none};
    return {Zero::none, Zero::optimizer, Zero::weights};
  }

  // Beside a pipeline both: once a step is faster, in every micro-batch holds less.
  std::vector<std::optional<ZeroEvery>> everies(Zero zero, int pipeline) const {
    if (zero < Zero::gradients) return {std::nullopt};
    if (given().zero_every || pipeline == 1) return {given().zero_every};
    return {std::nullopt, ZeroEvery::microbatch};
  }

  std::vector<bool> sequence_parallel(int tensor) const {
    if (space().sequence_parallel) return {*space().sequence_parallel};
    if (request_.setting.sequence_parallel) return {true};
    if (tensor == 1 || !ground_.language) return {false};
    return {false, true};
  }

  std::vector<int> sizes(std::int64_t samples) {
    std::vector<int> all;
    const std::vector<int>& fixed = space().microbatch_size;
    if (!fixed.empty()) {
      all = fixed;
    } else if (ground_.model.batch == 0) {
      all = {0};
    } else if (request_.setting.microbatch_size > 0) {
      all = {request_.setting.microbatch_size};
    } else {
      all = divisors(samples);
    }
    std::vector<int> dividing;
    for (const int size : all) {
      const std::int64_t each = std::max(size, 1);
      if (samples % each != 0) continue;
      any_size_ = true;
      if (samples / each > most_microbatches) continue;
      if (lengths_ > 0 && samples / each != lengths_) continue;
      dividing.push_back(size);
    }
    return dividing;
  }

  void add_for(int devices) {
    if (devices < 1 || devices > ground_.devices) {
      // Equal devices can be made in any number.
      if (devices < 1 || !request_.setting.cluster.cluster.empty()) {
        throw UsageError(fmt::format("the cluster has {} devices, and devices={} are asked for",
                                     ground_.devices, devices));
      }
    }
    const int layers = static_cast<int>(ground_.model.layers.size());
    for (const int tensor : tensor_degrees()) {
      for (const int context : context_degrees()) {
        const std::int64_t inner = std::int64_t{tensor} * context;
        if (inner < 1 || inner > devices || devices % inner != 0) continue;
        const int left = devices / static_cast<int>(inner);
        for (const int data : choose(space().data, given().data, 1, divisors(left))) {
          if (data < 1 || left % data != 0) continue;
          const int pipeline = left / data;
          if (!allowed(space().pipeline, given().pipeline, pipeline) || pipeline > layers) continue;
          any_degrees_ = true;
          if (request_.samples % data != 0) continue;
          any_samples_ = true;
          add_for(tensor, context, data, pipeline);
        }
      }
    }
  }

  static bool allowed(const std::vector<int>& fixed, int given, int value) {
    if (!fixed.empty()) return std::find(fixed.begin(), fixed.end(), value) != fixed.end();
    return given == 0 || given == value;
  }

  void add_for(int tensor, int context, int data, int pipeline) {
    const int width = tensor * context * data;
    for (const int expert_tensor : expert_tensor_degrees(tensor)) {
      const int shared = expert_tensor > 0 ? expert_tensor : tensor;
      if (width % shared != 0) continue;
      any_experts_ = true;
      for (const int expert : expert_degrees(width / shared)) {
        if (folds() && expert_tensor == 1 && expert == 1) continue;  // nothing is won
        Degrees degrees = given();
        degrees.tensor = tensor;
        degrees.context = context;
        degrees.expert = expert;
        degrees.expert_tensor = expert_tensor;
        degrees.data = data;
        degrees.pipeline = pipeline;
        add_zeros(degrees);
      }
    }
  }

  void add_zeros(Degrees degrees) {
    const ShardGroup given_group = degrees.shard_group;
    for (const Zero zero : zeros(degrees.data * degrees.context)) {
      for (const std::optional<ZeroEvery> every : everies(zero, degrees.pipeline)) {
        degrees.zero = zero;
        degrees.zero_every = every;
        degrees.shard_group = zero == Zero::none ? ShardGroup{} : given_group;
        add_with(degrees);
      }
    }
  }

  void add_with(const Degrees& degrees) {
    const std::int64_t samples = request_.samples / degrees.data;
    for (const bool sequence : sequence_parallel(degrees.tensor)) {
      if (folds() && degrees.folded() && !sequence) continue;  // would be refused
      for (const std::string& comm_type : comm_types(degrees.tensor, degrees.context)) {
        for (const int size : sizes(samples)) {
          Shape shape;
          shape.degrees = degrees;
          shape.sequence_parallel = sequence;
          shape.cp_comm_type = comm_type;
          shape.microbatch_size = size;
          shape.microbatches = static_cast<int>(samples / std::max(size, 1));
          shape.as_ranks = has_tied_weights(ground_.model);
          shapes_.push_back(shape);
        }
      }
    }
  }

  [[noreturn]] void refuse() const {
    if (!any_degrees_) {
      throw UsageError(fmt::format(
          "no degrees that are left multiply to {} devices with at most {} pipeline ranks, the number of layers; fix fewer of tp, cp, dp, pp, or other devices",
          fmt::join(device_counts(), " or "), ground_.model.layers.size()));
    }
    if (!any_samples_) {
      throw UsageError(
          fmt::format("no data-parallel degree that is left divides the {} samples; give --samples "
                      "a multiple, or fix another dp",
                      request_.samples));
    }
    if (!any_experts_) {
      throw UsageError(fmt::format(
          "no tp × cp × dp that is left is a multiple of etp {}; fix fewer of them, or another etp",
          fmt::join(expert_tensor_degrees(1), " or ")));
    }
    if (any_size_ && lengths_ > 0) {
      throw UsageError(fmt::format(
          "--lengths: there are {0}, one for each micro-batch of a step, and with the micro-batch "
          "sizes and data-parallel degrees that are left the {1} samples of an update are no {0} "
          "micro-batches; give --samples {0}, or a multiple of it",
          lengths_, request_.samples));
    }
    if (any_size_) {
      throw UsageError(fmt::format(
          "with the micro-batch sizes and data-parallel degrees that are left, the {} samples of an "
          "update are more than {} micro-batches a pipeline; give fewer --samples, or larger sizes",
          request_.samples, most_microbatches));
    }
    throw UsageError(fmt::format(
        "no micro-batch size that is left divides the {} samples of an update; give --samples a "
        "multiple of {}, or fix another microbatch-size",
        request_.samples,
        space().microbatch_size.empty() ? std::max(1, request_.setting.microbatch_size)
                                        : space().microbatch_size.front()));
  }
};

}  // namespace

std::vector<Shape> shapes_of(const PlanRequest& request) { return Shapes(request).all(); }

}  // namespace stageline::planner
