// Table 9: how much more memory pipelined training takes than plain.
#include <fmt/format.h>

#include <string>

#include "cost_models/roofline.hpp"
#include "tools/reproduce/named.hpp"
#include "tools/reproduce/published.hpp"
#include "tools/reproduce/sections.hpp"
#include "tools/study.hpp"

namespace stageline {
namespace {

// Of all that the forward ops of a network write, what the layers before the registers write: as
// the paper's tool counts activations.
double activation_share(const ZhangMemory& row) {
  const ModelShape shape = parse_shape(std::string(row.model));
  const std::size_t cut = layers_before(shape, row.ppv);
  std::int64_t before = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const std::int64_t writes = total(shape.layers[i], &Primitive::forward).writes;
    all += writes;
    if (i < cut) before += writes;
  }
  return static_cast<double>(before) / static_cast<double>(all);
}

// What the table counts, at each device's peak, all devices together.
struct Counted {
  Bytes weights{};  // and their older versions
  Bytes stashes{};
};
Counted counted(const Outcome& outcome) {
  Counted sum;
  for (const DeviceMemory& device : outcome.memory.device) {
    const auto of = [&](MemoryKind kind) { return device.at_peak[static_cast<std::size_t>(kind)]; };
    sum.weights += of(MemoryKind::weights) + of(MemoryKind::versions);
    sum.stashes += of(MemoryKind::stash);
  }
  return sum;
}

// More than on one device, in percent of the paper's base: weights, activations and as many bytes
// again for the gradients of these.
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

std::string no_shape(const ZhangMemory& row) {
  return row.title == "AlexNet" ? "a CIFAR AlexNet; our shape is ImageNet's, of 61 million weights"
                                : "we have no VGG-16 for CIFAR";
}

// What the stale-weights column implies, in copies of the non-pipelined activations.
std::string implied_copies() {
  std::string text =
      "The stale-weights column as extra copies of the non-pipelined activations `A·B`, beside "
      "what "
      "the rule asks for, a staleness of 2 times the forward half of the first stage's share:\n\n"
      "| | published | by the rule |\n|---|--:|--:|\n";
  for (const ZhangMemory& row : zhang_table9) {
    const double activations = row.activations * row.batch;
    text += fmt::format("| {} | {:.2f} | {} |\n", row.title,
                        row.stale_percent / 100 * (activations + row.weights) / activations,
                        row.model.empty() ? "–" : fmt::format("{:.2f}", activation_share(row)));
  }
  return text;
}

}  // namespace

Section stale_memory() {
  Section section;
  section.source = "Zhang & Abdelrahman, arXiv 1912.12675, table 9";
  section.says = {
      "More memory than non-pipelined training takes, which is `A·B + W` (A: activations and their "
      "gradients at batch 1, B: batch, W: weights). In every row the two columns differ by four "
      "copies of *all* weights, `4W/(A·B + W)`: that is the paper's model of PipeDream. "
      "PipeDream's "
      "own rule, S − s versions at stage s, keeps one copy more of the first stage's weights "
      "only."};
  for (const ZhangMemory& row : zhang_table9) {
    const double base = row.activations * row.batch + row.weights;
    section.findings.push_back(judged(
        {fmt::format("{}, PipeDream − stale weights", row.title),
         claim_of({row.pipedream_percent - row.stale_percent, 0, " %"}),
         Number{100 * 4 * row.weights / base, 1, " %"}, 1, Basis::their_inputs, Rule::quoted}));
  }
  for (const ZhangMemory& row : zhang_table9) {
    if (row.model.empty()) continue;
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
                      Rule::quoted};
      if (row.model.empty()) {
        section.findings.push_back(not_comparable(finding, no_shape(row)));
        continue;
      }
      const char* const schedule = stale ? "stale_weights:mapping=paired" : "pipedream";
      finding.ours = Number{percent_more(row, schedule), 1, " %"};
      section.findings.push_back(judged(finding));
    }
  }
  section.remarks.push_back(implied_copies());
  section.headline =
      "The paper's formula for PipeDream, in all rows. Of the stale-weights column the rule "
      "explains "
      "ResNet-20, and for VGG-16 about half.";
  return section;
}

}  // namespace stageline
