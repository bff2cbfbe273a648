#include "tools/planner/grounds.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/inputs/case_lengths.hpp"

namespace stageline::planner {
namespace {

// The device that all are, but for their names and machines.
std::optional<Device> common_device(const Cluster& cluster) {
  const Device& first = cluster.devices.front();
  for (const Device& device : cluster.devices) {
    Device same = device;
    same.name = first.name;
    same.host = first.host;
    if (same != first) return std::nullopt;
  }
  return first;
}

// So few replicas that their ranks hold all experts.
int least_replicas(const Degrees& degrees) {
  const int in_one = degrees.tensor * degrees.context;
  return degrees.expert_width() / std::gcd(degrees.expert_width(), in_one);
}

Bytes larger(const std::optional<Bytes>& a, Bytes b) { return std::max(a.value_or(Bytes{}), b); }

std::optional<Bytes> largest_memory(const Cluster& cluster, const Model& model) {
  std::optional<Bytes> most;
  for (const Device& device : cluster.devices) {
    const std::optional<Bytes> usable = usable_memory(device);
    if (!usable || !model.bytes_known) return std::nullopt;
    most = larger(most, *usable);
  }
  return most;
}

// By layer the lesser of both; none where one of them says nothing.
std::vector<BlockingTimes> lesser(std::vector<BlockingTimes> one,
                                  const std::vector<BlockingTimes>& other) {
  if (one.size() != other.size()) return {};
  for (std::size_t l = 0; l < one.size(); ++l) {
    for (Time BlockingTimes::*const of :
         {&BlockingTimes::forward, &BlockingTimes::input_grad, &BlockingTimes::weight_grad,
          &BlockingTimes::backward, &BlockingTimes::recompute, &BlockingTimes::update}) {
      one[l].*of = std::min(one[l].*of, other[l].*of);
    }
  }
  return one;
}

}  // namespace

struct Grounds::Ground {
  std::once_flag once;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Model> least;  // of micro-batches that differ; null: they do not
  LayerBlocking blocking;
  std::exception_ptr refused;
};

struct Grounds::Gathers {
  std::once_flag once;
  std::vector<BlockingTimes> times;  // by layer
};

Grounds::Grounds(Evaluator& evaluator) : evaluator_(evaluator) {
  SettingRequest request = evaluator.base();
  if (!request.slow.empty() || request.all_pipelines) return;
  request.degrees = Degrees{};
  request.schedules.clear();
  request.partition = SettingRequest{}.partition;
  const Setting setting = read_setting(request);
  const auto most = std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  const Cluster cluster = cluster_of(setting.cluster, *most);
  device_ = common_device(cluster);
  pair_overlap_ = cluster.pair_overlap;
  reach_ = reach_of(cluster);
}
Grounds::~Grounds() = default;

std::shared_ptr<Grounds::Ground> Grounds::ground(const Shape& shape) {
  const Degrees& degrees = shape.degrees;
  const std::tuple key(degrees.tensor, degrees.context, degrees.expert,
                       degrees.expert_tensor_ranks(), shape.sequence_parallel, shape.cp_comm_type,
                       shape.microbatch_size);
  const std::lock_guard<std::mutex> lock(access_);
  std::shared_ptr<Ground>& found = grounds_[key];
  if (!found) found = std::make_shared<Ground>();
  return found;
}

// All that a shape on unequal devices is.
Grounds::Found Grounds::opened(const Shape& shape) {
  Candidate any;
  any.shape = shape;
  any.spec = parse_schedules("1f1b").front();
  Case asked = evaluator_.case_of(any);
  const std::optional<Bytes> limit = largest_memory(asked.cluster, asked.model);
  if (evaluator_.base().lengths.empty()) {
    return {ShapeLoads(asked), limit, std::make_shared<const Model>(asked.model)};
  }
  const SettingRequest request = request_of(evaluator_.base(), any);
  LengthsRange range = range_of_lengths(request, *evaluator_.setting(shape));
  auto mean = std::make_shared<const Model>(std::move(range.mean));
  asked.model = *mean;
  ShapeLoads usual(asked);
  asked.model = std::move(range.least);
  return {ShapeLoads(asked), limit, std::move(mean), std::move(usual)};
}

Grounds::Found Grounds::of(const Shape& shape) {
  if (!device_) return opened(shape);
  const std::shared_ptr<Ground> found = ground(shape);
  std::call_once(found->once, [&] {
    try {
      // One tensor-, context- and expert-parallel group: no more of them share a link than in the
      // whole run.
      Candidate least;
      least.shape = shape;
      Degrees& degrees = least.shape.degrees;
      degrees.data = least_replicas(degrees);
      degrees.pipeline = 1;
      degrees.zero = Zero::none;
      const SettingRequest request = request_of(evaluator_.base(), least);
      const Setting setting = read_setting(request);
      LengthsRange range = range_of_lengths(request, setting);
      found->blocking = setting.ranked.empty()
                            ? no_blocking(range.least)
                            : least_blocking(*setting.ranked.begin()->second, range.least);
      found->model = std::make_shared<const Model>(std::move(range.mean));
      if (!request.lengths.empty()) {
        found->least = std::make_shared<const Model>(std::move(range.least));
      }
    } catch (const UsageError&) {
      found->refused = std::current_exception();
    } catch (const TraceError&) {
      found->refused = std::current_exception();
    }
  });
  if (found->refused) std::rethrow_exception(found->refused);
  Cluster pipeline;
  pipeline.pair_overlap = pair_overlap_;
  pipeline.devices.assign(static_cast<std::size_t>(shape.degrees.pipeline), *device_);
  const auto loads = [&](const Model& model) {
    return ShapeLoads(model, shape, found->blocking, pipeline);
  };
  const std::optional<Bytes> limit = largest_memory(pipeline, *found->model);
  if (!found->least) return {loads(*found->model), limit, found->model};
  return {loads(*found->least), limit, found->model, loads(*found->model)};
}

void Grounds::add_gathers(const Shape& shape, ShapeLoads& loads, const Model& model) {
  const Degrees& degrees = shape.degrees;
  if (!device_ || degrees.zero != Zero::weights || degrees.data == 1) return;
  if (!reduces_in_every_backward(degrees) || degrees.shard_group != ShardGroup{}) return;
  if (degrees.context > 1 || degrees.expert > 1 || degrees.folded()) return;
  std::shared_ptr<Gathers> found;
  {
    const std::tuple key(degrees.tensor, degrees.data, degrees.pipeline);
    const std::lock_guard<std::mutex> lock(access_);
    std::shared_ptr<Gathers>& kept = gathers_[key];
    if (!kept) kept = std::make_shared<Gathers>();
    found = kept;
  }
  // Weights do not depend on the micro-batches.
  std::call_once(found->once, [&] {
    const auto times_of = [&](const Shape& placed) {
      const std::shared_ptr<const Setting> setting = evaluator_.setting(placed);
      if (setting->ranked.empty()) return std::vector<BlockingTimes>{};
      return least_gathers(*setting->ranked.begin()->second, model);
    };
    found->times = times_of(shape);
    Shape elsewhere = shape;
    elsewhere.placement = evaluator_.other_placement(shape);
    if (elsewhere.placement.empty()) return;
    found->times = lesser(std::move(found->times), times_of(elsewhere));
  });
  loads.add_gathers(found->times);
}

}  // namespace stageline::planner
