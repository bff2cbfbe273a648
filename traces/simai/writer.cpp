// Writes layers as a workload text of SimAI.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/errors.hpp"
#include "traces/simai/workload.hpp"

namespace stageline {
namespace {

constexpr std::int64_t picoseconds_in_a_nanosecond = 1000;

std::string_view word_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "ALLREDUCE";
    case CollectiveKind::all_gather:
      return "ALLGATHER";
    case CollectiveKind::reduce_scatter:
      return "REDUCESCATTER";
    case CollectiveKind::all_to_all:
      return "ALLTOALL";
    case CollectiveKind::broadcast:
      return "BROADCAST";
  }
  return "NONE";  // unreachable; g++ wants it
}

std::string text_of(const Layer& layer, const LayerCollective& collective) {
  if (collective.group != Dimension::tensor && collective.group != Dimension::expert) {
    throw UsageError(fmt::format(
        "layer \"{}\" has a collective among its {} ranks, and a workload of SimAI has those of "
        "tensor and expert parallelism alone",
        layer.name, name(collective.group)));
  }
  return fmt::format("{}{}\t{}", word_of(collective.kind),
                     collective.group == Dimension::expert ? "_EP" : "", collective.bytes.count);
}

// What a layer waits for, one after the other, in each of its passes.
std::array<std::vector<std::string>, 3> collectives_of(const Layer& layer) {
  std::array<std::vector<std::string>, 3> passes;
  for (const LayerCollective& one : layer.collectives) {
    const std::array counts{one.forward, one.input_grad, one.weight_grad};
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      for (int i = 0; i < counts[pass]; ++i) passes[pass].push_back(text_of(layer, one));
    }
  }
  return passes;
}

std::int64_t nanoseconds(Time time) {
  return (time.count() + picoseconds_in_a_nanosecond / 2) / picoseconds_in_a_nanosecond;
}

// Names are one word.
std::string one_word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ' ' || c == '\t' || c == ','; }, '_');
  return text;
}

}  // namespace

std::string write_workload(const Model& model) {
  std::string rows;
  int count = 0;
  for (const Layer& layer : model.layers) {
    const auto passes = collectives_of(layer);
    const std::size_t most =
        std::max({passes[0].size(), passes[1].size(), passes[2].size(), std::size_t{1}});
    const std::array times{layer.forward, layer.input_grad, layer.weight_grad};
    for (std::size_t row = 0; row < most; ++row) {
      rows += fmt::format("{}\t-1", one_word(layer.name));
      for (std::size_t pass = 0; pass < passes.size(); ++pass) {
        rows += fmt::format("\t{}\t{}", row == 0 ? nanoseconds(times[pass]) : 0,
                            row < passes[pass].size() ? passes[pass][row] : "NONE\t0");
      }
      rows += fmt::format("\t{}\n", row == 0 ? nanoseconds(layer.update) : 0);
      ++count;
    }
  }
  return fmt::format(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {} ep: {} pp: 1 vpp: {} ga: 1 "
      "all_gpus: {} checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n{}\n{}",
      model.sharding.tensor, model.sharding.expert, model.layers.size(),
      model.sharding.tensor * model.sharding.expert, count, rows);
}

std::vector<std::string> lost_in_workload(const Model& model) {
  std::vector<std::string> lost{
      "a workload has the layers of one micro-batch on one rank: stages, their order and the bytes "
      "that they hold are left out, and so is what overlaps"};
  const bool chain = model.edges.empty() ||
                     std::all_of(model.edges.begin(), model.edges.end(),
                                 [](const LayerEdge& edge) { return edge.to == edge.from + 1; });
  if (!chain) lost.emplace_back("the rows follow each other, and the layers are no chain");
  return lost;
}

}  // namespace stageline
