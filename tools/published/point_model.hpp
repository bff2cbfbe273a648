// The language model that a row names, or whose sizes it states.
#pragma once

#include "tools/published/points.hpp"

namespace stageline {

/// The sizes that the row's columns state; 0: not printed.
struct PrintedSizes {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 0;
  double parameters = 0;
};

/// The member of families() whose name the row's model is, written in any way ("LLAMA3.1_405B",
/// "llama3-70b cut to 12 layers", "Qwen3_30B_a3B (tokendrop)"). Null where there is none.
const FamilyMember* family_of(const Point& point);

/// A family's model with the sizes that the row states, or a GPT of these sizes: layer norms, a
/// dense MLP of 4·hidden, learned positions, biases; MosaicML's without biases, BLOOM's with
/// alibi; with gated experts where its parameters as printed are nearer to those. A row without
/// sizes whose model is not known has a config of 0 layers.
TransformerConfig config_of(const Point& point, const PrintedSizes& printed);

/// "llama3-70b,layers=12", "transformer,layers=22,hidden=2304,…": what priced_model() takes before
/// and behind the device.
struct SpelledModel {
  std::string name;
  std::string options;  // ",layers=12"; empty: none
};
SpelledModel spelled_model(const Point& point);

}  // namespace stageline
