// PipeDream's partitioner as one word: its options, and its plan as a sentence. The dynamic program
// and its rules are in pipedream.hpp.
#include "schedulers/partition/pipedream.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::pipedream_partitioner {
namespace {

struct Options {
  PipedreamCost cost = PipedreamCost::code;
  bool transfers = true;
  std::optional<bool> replicate;  // nothing: as the schedule can
  std::optional<Bandwidth> bandwidth;
  std::vector<PipedreamLevel> levels;
};

bool one_of(const std::string& key, const std::string& value, const std::string& yes,
            const std::string& no) {
  if (value == yes) return true;
  if (value == no) return false;
  throw UsageError(
      fmt::format("pipedream: {}=\"{}\" is neither \"{}\" nor \"{}\"", key, value, yes, no));
}

Bandwidth bandwidth_of(const std::string& text) {
  try {
    return parse_bandwidth(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("pipedream: {}", error.what()));
  }
}

// "4@12GB/s"
PipedreamLevel level_of(const std::string& text) {
  const std::size_t at = text.find('@');
  PipedreamLevel level;
  level.machines = parse_number<int>(text.substr(0, at)).value_or(0);
  if (at == std::string::npos || level.machines < 1) {
    throw UsageError(
        fmt::format("pipedream: level \"{}\" is not \"<machines>@<bandwidth>\" with at "
                    "least 1 machine, like levels=4@12GB/s,2@1GB/s",
                    text));
  }
  level.bandwidth = bandwidth_of(text.substr(at + 1));
  return level;
}

Options parse_options(const std::string& text) {
  Options options;
  if (text.empty()) return options;
  std::string key;
  for (const std::string& item : split_at_commas(text)) {
    const std::size_t equals = item.find('=');
    std::string value = item;
    if (equals != std::string::npos) {
      key = item.substr(0, equals);
      value = item.substr(equals + 1);
    } else if (key != "levels") {  // whose value holds commas itself
      throw UsageError(
          fmt::format("pipedream: \"{}\" in \"{}\" has no value; write key=value", item, text));
    }
    if (key == "cost") {
      options.cost =
          one_of(key, value, "code", "paper") ? PipedreamCost::code : PipedreamCost::paper;
    } else if (key == "transfers") {
      options.transfers = one_of(key, value, "yes", "no");
    } else if (key == "replicate") {
      options.replicate = one_of(key, value, "yes", "no");
    } else if (key == "bandwidth") {
      options.bandwidth = bandwidth_of(value);
    } else if (key == "levels") {
      options.levels.push_back(level_of(value));
    } else {
      throw UsageError(fmt::format(
          "pipedream: option \"{}\" is not known (cost, transfers, replicate, bandwidth, levels){}",
          key, did_you_mean(key, {"cost", "transfers", "replicate", "bandwidth", "levels"})));
    }
  }
  if (options.bandwidth && !options.levels.empty()) {
    throw UsageError("pipedream: give bandwidth= or levels=, not both; each level has its own");
  }
  return options;
}

// The devices of a plan in its order, their rates, and the routes between them.
struct PlanDevices {
  std::vector<Rates> rates;
  std::vector<Bandwidth> between;  // devices × devices
  Bandwidth narrowest = Bandwidth::unlimited();
  bool rates_alike = true;
  bool routes_alike = true;  // a device's way to itself aside
};

PlanDevices plan_devices_of(const PartitionRequest& request, int count, bool by_stage) {
  PlanDevices devices;
  const Network network = network_of(request.cluster);
  for (int from = 0; from < network.devices; ++from) {
    for (int to = 0; to < network.devices; ++to) {
      devices.narrowest = std::min(devices.narrowest, network.between(from, to).bandwidth);
    }
  }
  std::vector<int> own;
  for (int d = 0; d < count; ++d) {
    own.push_back(by_stage ? devices_of_stage(request, d).front() : d);
    devices.rates.push_back(rates_of(nth(request.cluster.devices, own.back())));
    devices.rates_alike = devices.rates_alike && devices.rates.back() == devices.rates.front();
  }
  std::optional<Bandwidth> usual;
  for (const int from : own) {
    for (const int to : own) {
      devices.between.push_back(
          std::min(network.between(from, to).bandwidth, network.between(to, from).bandwidth));
      if (from == to) continue;
      devices.routes_alike = devices.routes_alike && (!usual || *usual == devices.between.back());
      usual = devices.between.back();
    }
  }
  return devices;
}

PipedreamQuestion question_of(const PartitionRequest& request, const Options& options) {
  PipedreamQuestion question;
  for (const Layer& layer : request.model.layers) {
    question.time.push_back(layer.forward + layer.backward);
    question.memory_bound.push_back(layer.memory_bound);
    question.weights.push_back(layer.weights);
  }
  question.crossing = crossing_bytes(request.model);
  question.cost = options.cost;
  question.transfers = options.transfers;
  question.replicas = request.replicas;  // win over the option replicate
  const bool fixed = !question.replicas.empty();
  if (fixed && !options.levels.empty()) {
    throw UsageError(fmt::format(
        "pipedream: levels= chooses the replicas of every stage, but the schedule has fixed them "
        "at {}; leave out levels= or the schedule's replicas",
        fmt::join(question.replicas, "-")));
  }
  question.replicate = !fixed && options.replicate.value_or(request.replicate);
  if (question.replicate && !request.replicate) {
    throw UsageError(
        "pipedream: replicate=yes needs a schedule that can replicate stages, like pipedream; give "
        "replicate=no");
  }
  const int devices = question.replicate || fixed ? static_cast<int>(request.cluster.devices.size())
                                                  : request.stages;
  const PlanDevices known = plan_devices_of(request, devices, !question.replicate && !fixed);
  question.levels = options.levels;
  const bool by_routes = question.levels.empty() && !options.bandwidth;
  if (question.levels.empty()) {
    question.levels.push_back({devices, options.bandwidth.value_or(known.narrowest)});
  }
  double held = 1;
  for (const PipedreamLevel& level : question.levels) held *= level.machines;
  if (held != devices) {
    throw UsageError(
        fmt::format("pipedream: the levels hold {:.0f} device{}, but the plan is for {}; their "
                    "product must be the same",
                    held, held == 1 ? "" : "s", devices));
  }
  if (known.rates_alike && (known.routes_alike || !by_routes)) {
    const Rates rates = known.rates.empty() ? Rates{} : known.rates.front();
    for (std::size_t l = 0; l < question.time.size(); ++l) {
      const Time time = question.time[l];
      question.time[l] = at_rates({time, question.memory_bound[l] ? time : Time{}}, rates);
    }
    return question;
  }
  if (question.levels.size() > 1) {
    throw UsageError(fmt::format(
        "pipedream: levels= takes all devices as equally fast, but {} has rate {:g} and others "
        "do not; leave levels= out, then the plan weighs each device's rates and routes",
        request.cluster.devices.front().name, request.cluster.devices.front().rate));
  }
  question.rates = known.rates;
  if (by_routes) question.between = known.between;
  return question;
}

// Which kind of thing sets the pace, where one level makes that a plain question.
std::string slowest_part(const PipedreamQuestion& question, const PipedreamPlan& plan) {
  if (question.levels.size() > 1) return "stage or transfer";
  for (const PipedreamStage& stage : plan.stages) {
    if (pipedream_stage_time(question, stage) == plan.bottleneck) return "stage";
  }
  return "transfer";
}

PartitionPlan plan(const PartitionRequest& request) {
  const Options options = parse_options(request.options);
  const PipedreamQuestion question = question_of(request, options);
  if (!question.replicate) check_stages(request);
  const PipedreamPlan found = pipedream_plan(question);
  std::vector<int> last_layers;
  for (const PipedreamStage& stage : found.stages) last_layers.push_back(stage.last);
  last_layers.pop_back();
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  plan.replicas.clear();
  for (const PipedreamStage& stage : found.stages) {
    plan.replicas.push_back(static_cast<int>(stage.devices.size()));
    if (question.levels.size() > 1) plan.devices.push_back(stage.devices);
  }
  plan.reason = fmt::format("plan {}, slowest {} {} a minibatch", print(found),
                            slowest_part(question, found), print(found.bottleneck));
  if (found.bottleneck > Time{}) {
    plan.reason +=
        fmt::format(", {:.2f}× one device", static_cast<double>(found.single.count()) /
                                                static_cast<double>(found.bottleneck.count()));
  }
  return plan;
}

}  // namespace

extern const Partitioner entry = {
    "pipedream", "PipeDream's dynamic program, with replicated stages and levels of machines",
    "Harlap et al., arXiv 1806.03377; Narayanan et al., SOSP'19",
    "cost=code|paper, transfers=yes|no, replicate=yes|no, bandwidth=1GB/s, "
    "levels=4@12GB/s,2@1GB/s (the innermost first)",
    plan};

}  // namespace stageline::pipedream_partitioner
