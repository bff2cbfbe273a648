// Table 9: the additional memory of pipelined over non-pipelined training.
#include <fmt/core.h>

#include <string>

#include "cost_models/roofline.hpp"
#include "sim/base/index.hpp"
#include "tools/lab/papers/named.hpp"
#include "tools/lab/papers/published.hpp"
#include "tools/lab/papers/sections.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {
namespace {

constexpr double megabyte = 1 << 20;  // as in the paper's tool

// Elements that the forward ops of a network's first layers write, for one image: the paper's tool
// counts activations this way.
std::int64_t written(const ModelShape& shape, std::size_t layers) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < layers; ++i) {
    sum += total(shape.layers[i], &Primitive::forward).writes;
  }
  return sum;
}

// The share of all written elements that the layers before the registers write.
double activation_share(const ZhangMemory& row) {
  const ModelShape shape = parse_shape(std::string(row.model));
  return static_cast<double>(written(shape, layers_before(shape, row.ppv))) /
         static_cast<double>(written(shape, shape.layers.size()));
}

// Activations and their gradients in fp32.
double activation_megabytes(const ModelShape& shape) {
  return 2 * 4 * static_cast<double>(written(shape, shape.layers.size())) / megabyte;
}

// The memory that the table counts, at each device's peak, all devices together.
struct Counted {
  Bytes weights{};  // and their older versions
  Bytes stashes{};
};
Counted counted(const Outcome& outcome) {
  Counted sum;
  for (const DeviceMemory& device : outcome.memory.device) {
    const auto of = [&](MemoryKind kind) { return nth(device.at_peak, kind); };
    sum.weights += of(MemoryKind::weights) + of(MemoryKind::versions);
    sum.stashes += of(MemoryKind::stash);
  }
  return sum;
}

// Additional memory over one device, in percent of the paper's base: weights, activations, and the
// latter's size again for their gradients.
double percent_more(const ZhangMemory& row, const std::string& schedule) {
  Case asked;
  asked.model = trace_named(fmt::format("model:{}@gtx1060,batch={}", row.model, row.batch));
  asked.cluster = cluster_named("gtx1060x2", 1);
  asked.spec = parse_schedules("naive").front();
  asked.microbatches = 1;
  const Counted plain = counted(study(asked));
  asked.cluster = cluster_named("gtx1060x2", 2);
  asked.spec = parse_schedules(schedule).front();
  asked.partition = fmt::format("ppv:{}", row.ppv);
  asked.microbatches = 8;
  const Counted pipelined = counted(study(asked));
  const Bytes more = pipelined.weights + pipelined.stashes - plain.weights - plain.stashes;
  const Bytes base = plain.weights + plain.stashes * 2;
  return 100 * static_cast<double>(more.count) / static_cast<double>(base.count);
}

// The stale-weights column as copies of the non-pipelined activations.
std::string implied_copies() {
  std::string text =
      "The stale-weights column as extra copies of the non-pipelined activations `A·B`, beside "
      "the rule's prediction, a staleness of 2 times the forward half of the first stage's share; "
      "and `A` beside twice the elements that our layers write, ReLUs included:\n\n"
      "| | published | by the rule | A, published | A, ours |\n|---|--:|--:|--:|--:|\n";
  for (const ZhangMemory& row : zhang_table9) {
    const double activations = row.activations * row.batch;
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} MB | {:.2f} MB |\n", row.title,
                        row.stale_percent / 100 * (activations + row.weights) / activations,
                        activation_share(row), row.activations,
                        activation_megabytes(parse_shape(std::string(row.model))));
  }
  return text;
}

Finding weights_finding(const ZhangMemory& row) {
  const double elements = static_cast<double>(parse_shape(std::string(row.model)).parameters);
  return judged({fmt::format("{}, weights", row.title), claim_of({row.weights, 2, " MB"}),
                 Number{4 * elements / megabyte, 2, " MB"}, 0.005, Basis::counted,
                 row.layers_printed ? Rule::quoted : Rule::rebuilt});
}

}  // namespace

Section stale_memory() {
  Section section;
  section.source = "Zhang & Abdelrahman, arXiv 1912.12675, table 9";
  section.says = {
      "Additional memory over non-pipelined training, which takes `A·B + W` (A: "
      "activations and their gradients at batch 1, B: batch, W: weights). "
      "In every row the two columns differ by four copies of *all* weights, `4W/(A·B + W)`: "
      "that is the paper's model of PipeDream. PipeDream's own rule, S − s versions at stage s, "
      "keeps one more copy of the first stage's weights only.",
      "The layers of AlexNet and VGG-16 for CIFAR-10 are not printed. Ours are **rebuilt** from "
      "the printed weights: VGG-16 with linear layers of 512, 512 and 10 and no batch norm, "
      "AlexNet in one tower with 3×3 convolutions after the first of 11×11, pools of 2×2 and "
      "linear layers of 4096, 4096 and 10. AlexNet's two dropouts, which our shapes leave out, "
      "would bring `A` to the printed 0.88 MB; no VGG-16 that we tried has 3.30 MB."};
  for (const ZhangMemory& row : zhang_table9) section.findings.push_back(weights_finding(row));
  for (const ZhangMemory& row : zhang_table9) {
    const double base = row.activations * row.batch + row.weights;
    section.findings.push_back(judged(
        {fmt::format("{}, PipeDream − stale weights", row.title),
         claim_of({row.pipedream_percent - row.stale_percent, 0, " %"}),
         Number{100 * 4 * row.weights / base, 1, " %"}, 1, Basis::their_inputs, Rule::quoted}));
  }
  for (const ZhangMemory& row : zhang_table9) {
    const double activations = row.activations * row.batch;
    const double base = activations + row.weights;
    section.findings.push_back(
        judged({fmt::format("{}, stale weights", row.title), claim_of({row.stale_percent, 0, " %"}),
                Number{100 * activation_share(row) * activations / base, 1, " %"}, 1,
                Basis::counted, Rule::rebuilt}));
  }
  for (const ZhangMemory& row : zhang_table9) {
    for (const bool stale : {true, false}) {
      Finding finding{fmt::format("{}, {}", row.title, stale ? "stale weights" : "PipeDream"),
                      claim_of({stale ? row.stale_percent : row.pipedream_percent, 0, " %"}),
                      {},
                      10,
                      Basis::roofline_costs,
                      row.layers_printed ? Rule::quoted : Rule::rebuilt};
      const char* const schedule = stale ? "stale_weights:mapping=paired" : "pipedream";
      finding.ours = Number{percent_more(row, schedule), 1, " %"};
      section.findings.push_back(judged(finding));
    }
  }
  section.remarks.push_back(implied_copies());
  section.headline =
      "The paper's formula for PipeDream, in all rows. Of the stale-weights column the rule "
      "explains ResNet-20, AlexNet but for two points, and about half of VGG-16.";
  return section;
}

}  // namespace stageline::lab
