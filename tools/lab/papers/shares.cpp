// The share of the weights that is read stale: those before the last pair of registers.
#include <fmt/core.h>

#include "cost_models/roofline.hpp"
#include "tools/lab/papers/named.hpp"
#include "tools/lab/papers/published.hpp"
#include "tools/lab/papers/sections.hpp"

namespace stageline::lab {

Section stale_shares() {
  Section section;
  section.source = "Zhang & Abdelrahman, arXiv 1912.12675, percentages of stale weights";
  section.says = {
      "The weights before the last pair of pipeline registers are stale, the others are not. The "
      "registers are behind the first (16-channel) group of each CIFAR-10 ResNet; we count the "
      "parameters of our own shapes."};
  for (const ZhangShare& row : zhang_shares) {
    const ModelShape shape = parse_shape(std::string(row.model));
    std::int64_t before = 0;
    const std::size_t cut = layers_before(shape, row.ppv);
    for (std::size_t i = 0; i < cut; ++i) before += shape.layers[i].parameters;
    if (row.parameters > 0) {
      section.findings.push_back(judged({fmt::format("{}, parameters", row.title),
                                         claim_of({static_cast<double>(row.parameters), 0, ""}),
                                         Number{static_cast<double>(shape.parameters), 0, ""}, 0,
                                         Basis::counted, Rule::quoted}));
    }
    section.findings.push_back(judged(
        {fmt::format("{}, PPV ({}), stale share", row.title, row.ppv),
         claim_of({row.percent, 2, " %"}),
         Number{100 * static_cast<double>(before) / static_cast<double>(shape.parameters), 2, " %"},
         0.005, Basis::counted, Rule::quoted}));
  }
  section.headline = "Every parameter and every printed digit of the shares.";
  return section;
}

}  // namespace stageline::lab
