// Writes plans for other pipeline runtimes: PipeDream's configuration (msr-fiddle/pipedream,
// runtime/: the JSON of optimizer/convert_graph_to_model.py) and torchgpipe's balance.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/programs.hpp"

namespace stageline {
namespace {

// The number of forwards before the first backward; the runtime then alternates one forward and one
// backward, and ends with the remaining backwards.
int depth_of(const Program& program, std::size_t device) {
  std::vector<Op> work;
  for (const Op op : program.ops[device]) {
    if (op.kind == OpKind::forward || op.kind == OpKind::backward) {
      work.push_back(op);
    } else if (lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update) {
      throw UsageError(fmt::format("PipeDream's runtime has F and B only, and {} does {}",
                                   program.devices[device], print(op)));
    } else if (op.kind == OpKind::offload) {
      throw UsageError(fmt::format("PipeDream's runtime keeps its stashes, and {} does {}",
                                   program.devices[device], print(op)));
    }
  }
  std::size_t forwards = 0;
  while (forwards < work.size() && work[forwards].kind == OpKind::forward) ++forwards;
  const std::size_t depth = forwards == 0 ? 0 : forwards - 1;
  const std::size_t count = work.size() / 2;
  // Forward i is followed by backward i - depth, if that exists.
  std::vector<OpKind> expected;
  for (std::size_t i = 0; i < count + depth; ++i) {
    if (i < count) expected.push_back(OpKind::forward);
    if (i >= depth) expected.push_back(OpKind::backward);
  }
  std::uint32_t next[2] = {0, 0};
  for (std::size_t i = 0; i < work.size(); ++i) {
    std::uint32_t& before = next[work[i].kind == OpKind::backward ? 1 : 0];
    const bool in_turn = i < expected.size() && work[i].kind == expected[i];
    if (in_turn && work[i].microbatch >= before) {
      before = work[i].microbatch + 1;
      continue;
    }
    throw UsageError(
        fmt::format("PipeDream's runtime runs {} forward{} and then alternates one "
                    "forward and one backward, and {} does {} there",
                    depth, depth == 1 ? "" : "s", program.devices[device], print(work[i])));
  }
  return static_cast<int>(depth);
}

}  // namespace

std::string write_pipedream_runtime(const Program& program) {
  validate(program);
  std::vector<int> stage_on(program.devices.size(), -1);
  std::string modules;
  std::string ranks;
  std::string depths;
  if (program.steps > 1 && program.settings.weights == WeightRule::flush) {
    throw UsageError(fmt::format(
        "PipeDream's runtime does not flush between steps, and the program has {}; take --steps 1",
        program.steps));
  }
  for (int s = 0; s < program.stages(); ++s) {
    const StagePlace& place = nth(program.placement.stage, s);
    if (place.apart()) {
      throw UsageError(
          fmt::format("PipeDream's runtime keeps forward and backward of a stage on one device, "
                      "and stage {} splits them",
                      s));
    }
    for (const int device : place.replicas) {
      int& stage = nth(stage_on, device);
      if (stage >= 0) {
        throw UsageError(fmt::format(
            "PipeDream's runtime has one stage on a device, and {} has stages {} and {}",
            nth(program.devices, device), stage, s));
      }
      stage = s;
    }
  }
  for (int s = 0; s < program.stages(); ++s) {
    const StagePlace& place = nth(program.placement.stage, s);
    int depth = -1;
    for (const int device : place.replicas) {
      const int here = depth_of(program, as_size(device));
      if (depth >= 0 && here != depth) {
        throw UsageError(fmt::format(
            "PipeDream's runtime has one depth a stage, and stage {} does {} forwards ahead on {}, {} on {}; take a number of micro-batches that its {} replicas divide",
            s, depth, nth(program.devices, place.replicas.front()), here,
            nth(program.devices, device), place.replicas.size()));
      }
      depth = here;
    }
    const char* const separator = s == 0 ? "" : ",";
    modules += fmt::format("{}, ", s);
    ranks += fmt::format("{}\n        \"{}\": [{}]", separator, s, fmt::join(place.replicas, ", "));
    depths += fmt::format("{}\n        \"{}\": {}", separator, s, depth);
  }
  // The last module is the loss.
  return fmt::format(
      "{{\n    \"module_to_stage_map\": [{}{}],\n    \"stage_to_rank_map\": {{{}\n    }},\n"
      "    \"stage_to_depth_map\": {{{}\n    }}\n}}\n",
      modules, program.stages() - 1, ranks, depths);
}

std::vector<std::string> lost_in_pipedream(const Program& program) {
  std::vector<std::string> lost;
  const ProgramSettings& settings = program.settings;
  if (settings.weights == WeightRule::flush) {
    lost.emplace_back(
        "PipeDream's runtime does not flush: behind these micro-batches it goes on with the next "
        "ones, where \"weights: flush\" updates first");
  } else if (settings.weights != WeightRule::stash) {
    lost.push_back(fmt::format(
        "PipeDream's configuration does not record \"weights: {}\"; its runtime stashes",
        name(settings.weights)));
  }
  if (settings.correction != "none") {
    lost.push_back(fmt::format("PipeDream's configuration does not record \"correction: {}\"",
                               settings.correction));
  }
  if (settings.data_ranks != 1) {
    lost.push_back(fmt::format("PipeDream's configuration does not record \"data_ranks: {}\"",
                               settings.data_ranks));
  }
  return lost;
}

std::string write_torchgpipe_balance(const Partition& partition, const Placement& placement) {
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    if (!place.apart() && place.replicas == std::vector<int>{static_cast<int>(s)}) continue;
    throw UsageError(fmt::format(
        "torchgpipe puts partition k on device k, and stage {} does not live on device {} alone", s,
        s));
  }
  std::vector<int> layers(as_size(partition.stages));
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    const int stage = partition.stage_of[layer];
    if (layer > 0 && stage < partition.stage_of[layer - 1]) {
      throw UsageError(
          fmt::format("torchgpipe's partitions are runs of layers, "
                      "and layer {} of stage {} comes after one of stage {}",
                      layer, stage, partition.stage_of[layer - 1]));
    }
    ++nth(layers, stage);
  }
  const auto empty = std::find(layers.begin(), layers.end(), 0);
  if (empty != layers.end()) {
    throw UsageError(
        fmt::format("torchgpipe's partitions have a layer at least, and stage {} has "
                    "none",
                    empty - layers.begin()));
  }
  std::string text = "[";
  for (const int count : layers) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", count);
  return text + "]\n";
}

}  // namespace stageline
