// Which collectives does a layer of a language model have, and of how many bytes?
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cost_models/transformers/product_recipes.hpp"
#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::layer_collectives_tests {
namespace {

using Collectives = std::vector<LayerCollective>;

// Of all passes: what each rank sends and receives, in tensors of one ring pass: an all-reduce is a
// reduce-scatter and an all-gather.
std::int64_t volume(const Collectives& list, Dimension group) {
  std::int64_t sum = 0;
  for (const LayerCollective& c : list) {
    if (c.group != group) continue;
    const int times = c.forward + c.input_grad + c.weight_grad;
    sum += c.bytes.count * times * (c.kind == CollectiveKind::all_reduce ? 2 : 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("an undivided model has no collectives") {
  const LanguageForm form = divided_form(1, 1);
  CHECK(block_collectives(llama_config(), form, 0).empty());
  CHECK(block_collectives(mixtral_config(), form, 0).empty());
  CHECK(embedding_collectives(llama_config(), form).empty());
  CHECK(head_collectives(llama_config(), form).empty());
}

TEST_CASE("tensor parallelism: two all-reduces of the hidden state forward, two backward") {
  const Bytes whole{2 * 8192 * 8192};
  CHECK(block_collectives(llama_config(), divided_form(1, 8), 0) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, whole, 2, 2, 0}});
  CHECK(embedding_collectives(llama_config(), divided_form(1, 8)) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, whole, 1, 0, 0}});
  CHECK(head_collectives(llama_config(), divided_form(1, 8)) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, whole, 0, 1, 0},
                    {CollectiveKind::all_reduce, Dimension::tensor, Bytes{4 * 8192}, 3, 0, 0}});
}

TEST_CASE("tensors travel in the number format, the loss's numbers in fp32") {
  for (const bool sequence : {false, true}) {
    CAPTURE(sequence);
    LanguageForm narrow = divided_form(1, 4, sequence);
    narrow.sharding.expert = 2;
    narrow.sharding.context = 2;
    LanguageForm wide = narrow;
    wide.element_bytes = 4;
    for (const Dimension group : {Dimension::tensor, Dimension::context, Dimension::expert}) {
      CHECK(volume(block_collectives(mixtral_config(), wide, 0), group) ==
            2 * volume(block_collectives(mixtral_config(), narrow, 0), group));
    }
    CHECK(volume(embedding_collectives(mixtral_config(), wide), Dimension::tensor) ==
          2 * volume(embedding_collectives(mixtral_config(), narrow), Dimension::tensor));
    const Collectives head = head_collectives(mixtral_config(), wide);
    const std::int64_t loss = 2 * 3 * 4 * (4096 / 2);
    CHECK(volume(head, Dimension::tensor) - loss ==
          2 * (volume(head_collectives(mixtral_config(), narrow), Dimension::tensor) - loss));
    CHECK(head.back().bytes == Bytes{4 * 4096 / 2});
  }
}

TEST_CASE("tp_overlap is of sequence parallelism's collectives around dense products alone") {
  LanguageForm form = divided_form(1, 8, true);
  form.tp_overlap = 0.5;
  for (const LayerCollective& c : block_collectives(llama_config(), form, 0)) {
    CHECK(c.hidden == 0.5);
  }
  form.sharding.expert = 2;
  int hidden = 0;
  for (const LayerCollective& c : block_collectives(mixtral_config(), form, 0)) {
    if (c.hidden > 0) hidden += c.forward;
  }
  CHECK(hidden == 2);  // attention's
  for (const LayerCollective& c : head_collectives(llama_config(), form)) CHECK(c.hidden == 0);
  form.sharding.sequence = false;
  for (const LayerCollective& c : block_collectives(llama_config(), form, 0)) {
    CHECK(c.hidden == 0);
  }
}

TEST_CASE("a ring moves the bytes of the all-gather, and may hide them all") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.context = 4;
  Collectives waiting = block_collectives(llama_config(), form, 0);
  form.context_exchange = ContextExchange::ring;
  const Collectives ring = block_collectives(llama_config(), form, 0);
  for (LayerCollective& c : waiting) {
    c.hidden = 1;
    c.use.blocks = 4;
  }
  CHECK(ring == waiting);
}

TEST_CASE("sequence parallelism: as many bytes, gathered and scattered") {
  const Bytes whole{2 * 8192 * 8192};
  const Collectives block = block_collectives(llama_config(), divided_form(1, 8, true), 0);
  CHECK(block == Collectives{{CollectiveKind::all_gather, Dimension::tensor, whole, 2, 2, 0},
                             {CollectiveKind::reduce_scatter, Dimension::tensor, whole, 2, 2, 0}});
  CHECK(volume(block, Dimension::tensor) ==
        volume(block_collectives(llama_config(), divided_form(1, 8), 0), Dimension::tensor));
  CHECK(embedding_collectives(llama_config(), divided_form(1, 8, true)) ==
        Collectives{{CollectiveKind::reduce_scatter, Dimension::tensor, whole, 1, 0, 0},
                    {CollectiveKind::all_gather, Dimension::tensor, whole, 0, 0, 1}});
  CHECK(head_collectives(llama_config(), divided_form(1, 8, true)) ==
        Collectives{{CollectiveKind::all_gather, Dimension::tensor, whole, 1, 0, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, whole, 0, 1, 0},
                    {CollectiveKind::all_reduce, Dimension::tensor, Bytes{4 * 8192}, 3, 0, 0}});
}

// Transformer Engine gathers what it has cast, and scatters in 16 bits.
TEST_CASE("rows are gathered for quantized products in their recipe's bytes") {
  LanguageForm form = divided_form(1, 8, true);
  const auto gathered_by = [&](const char* dtype) {
    form.gathered = find_product_recipe(dtype)->gathered;
    Collectives all = block_collectives(llama_config(), form, 0);
    std::erase_if(
        all, [](const LayerCollective& one) { return one.kind != CollectiveKind::all_gather; });
    return all;
  };
  const std::int64_t whole = 8192 * 8192;
  const auto gathers = [](std::int64_t bytes, int forward, int input_grad) {
    return LayerCollective{
        CollectiveKind::all_gather, Dimension::tensor, Bytes{bytes}, forward, input_grad, 0};
  };
  CHECK(gathered_by("fp8-current") == Collectives{gathers(whole, 2, 2)});
  CHECK(gathered_by("fp8-tensorwise") == Collectives{gathers(whole, 2, 2)});
  CHECK(gathered_by("fp8-rowwise") == Collectives{gathers(2 * whole, 2, 2)});
  CHECK(gathered_by("fp8") == Collectives{gathers(2 * whole, 2, 2)});
  // A gradient by rows and by columns.
  CHECK(gathered_by("mxfp8") ==
        Collectives{gathers(whole * 33 / 32, 2, 0), gathers(whole * 33 / 16, 0, 2)});
  form.gathered = find_product_recipe("fp8-current")->gathered;
  Collectives all = block_collectives(llama_config(), form, 0);
  CHECK(all.back() == LayerCollective{CollectiveKind::reduce_scatter, Dimension::tensor,
                                      Bytes{2 * whole}, 2, 2, 0});
}

// GPT-NeoX reduces the sum of both outputs, and the gradient of each half's input.
TEST_CASE("a parallel residual sums the outputs of attention and MLP at once") {
  TransformerConfig config = gpt_config(44, 6144, 64);
  const Bytes whole{2 * 2048 * 6144};
  CHECK(block_collectives(config, divided_form(1, 8), 0) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, whole, 2, 2, 0}});
  config.parallel_residual = true;
  CHECK(block_collectives(config, divided_form(1, 8), 0) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, whole, 1, 2, 0}});
  CHECK(block_collectives(config, divided_form(1, 8, true), 0) ==
        Collectives{{CollectiveKind::all_gather, Dimension::tensor, whole, 2, 1, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, whole, 1, 2, 0}});
  CHECK(block_collectives(config, divided_form(1, 1), 0).empty());
}

TEST_CASE("context parallelism gathers keys and values, by their heads") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.context = 4;
  const Bytes keys_and_values{2 * 2 * 8192 * 8 * 128};
  CHECK(
      block_collectives(llama_config(), form, 0) ==
      Collectives{{CollectiveKind::all_gather, Dimension::context, keys_and_values, 1, 1, 0},
                  {CollectiveKind::reduce_scatter, Dimension::context, keys_and_values, 0, 1, 0}});
  form.sharding.tensor = 8;
  const Collectives divided = block_collectives(llama_config(), form, 0);
  CHECK(volume(divided, Dimension::context) == 3 * keys_and_values.count / 8);
  CHECK(volume(divided, Dimension::tensor) == 2 * 4 * 2 * (8192 / 4) * 8192);
}

TEST_CASE("expert parallelism: two all-to-alls of the chosen rows forward, two backward") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 8;
  const Bytes rows{2 * 4096 * 2 * 4096};
  CHECK(block_collectives(mixtral_config(), form, 0) ==
        Collectives{{CollectiveKind::all_to_all, Dimension::expert, rows, 2, 2, 0}});
  form.imbalance = 1.5;
  CHECK(block_collectives(mixtral_config(), form, 0).front().bytes.count == rows.count * 3 / 2);
  // DeepSeek-V3's first three blocks are dense.
  CHECK(block_collectives(deepseek_config(), form, 2).empty());
  CHECK(block_collectives(deepseek_config(), form, 3).front().kind == CollectiveKind::all_to_all);
}

TEST_CASE(
    "a dispatcher takes the rows there and back, by the experts of a token and their groups") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 64;
  form.dispatcher = "hybridep";
  TransformerConfig config = deepseek_config();
  config.experts->groups = 8;
  config.experts->chosen_groups = 4;
  const Bytes rows{2 * 4096 * 8 * 7168};
  const TokenRouting there{"hybridep", false, 8, 8, 4};
  const TokenRouting back{"hybridep", true, 8, 8, 4};
  CHECK(block_collectives(config, form, 3) ==
        Collectives{{CollectiveKind::all_to_all, Dimension::expert, rows, 1, 1, 0, there},
                    {CollectiveKind::all_to_all, Dimension::expert, rows, 1, 1, 0, back}});
  // 8 bits and a scale of 4 bytes for 128 of them; back in 16 bits.
  form.narrow_dispatch = true;
  const Bytes narrow{rows.count / 2 / 128 * (128 + 4)};
  CHECK(block_collectives(config, form, 3) ==
        Collectives{{CollectiveKind::all_to_all, Dimension::expert, narrow, 1, 1, 0, there},
                    {CollectiveKind::all_to_all, Dimension::expert, rows, 1, 1, 0, back}});
  form.dispatcher = "";
  CHECK(block_collectives(config, form, 3) ==
        Collectives{{CollectiveKind::all_to_all, Dimension::expert, narrow, 1, 1, 0},
                    {CollectiveKind::all_to_all, Dimension::expert, rows, 1, 1, 0}});
  form.sharding.expert = 1;
  CHECK(block_collectives(config, form, 3).empty());
}

TEST_CASE("sequence-parallel ranks send their rows and gather those of the group") {
  LanguageForm form = divided_form(1, 4, true);
  form.sharding.expert = 2;
  const Bytes hidden{2 * 4096 * 4096};
  const Bytes rows{2 * hidden.count};
  CHECK(block_collectives(mixtral_config(), form, 0) ==
        Collectives{{CollectiveKind::all_gather, Dimension::tensor, hidden, 1, 1, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, hidden, 1, 1, 0},
                    {CollectiveKind::all_to_all, Dimension::expert, Bytes{rows.count / 4}, 2, 2, 0},
                    {CollectiveKind::all_gather, Dimension::tensor, rows, 1, 1, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, rows, 1, 1, 0}});
}

TEST_CASE(
    "experts with a tensor degree of their own get rows that only those who share them gather") {
  LanguageForm form = divided_form(1, 4, true);
  form.sharding.expert = 4;
  const Bytes hidden{2 * 4096 * 4096};
  // A quarter of the 4096 tokens, with two experts a token.
  const Bytes sent{2 * (4096 / 4) * 2 * 4096};
  const Collectives attention{{CollectiveKind::all_gather, Dimension::tensor, hidden, 1, 1, 0},
                              {CollectiveKind::reduce_scatter, Dimension::tensor, hidden, 1, 1, 0}};
  Collectives expected = attention;
  expected.push_back({CollectiveKind::all_to_all, Dimension::expert, sent, 2, 2, 0});
  form.sharding.expert_tensor = 1;
  CHECK(block_collectives(mixtral_config(), form, 0) == expected);
  form.sharding.expert_tensor = 2;
  const Bytes gathered{2 * sent.count};  // of two ranks
  expected.push_back({CollectiveKind::all_gather, Dimension::expert_tensor, gathered, 1, 1, 0});
  expected.push_back({CollectiveKind::reduce_scatter, Dimension::expert_tensor, gathered, 1, 1, 0});
  CHECK(block_collectives(mixtral_config(), form, 0) == expected);
  // Each rank has all experts for its own tokens.
  form.sharding.expert = form.sharding.expert_tensor = 1;
  CHECK(block_collectives(mixtral_config(), form, 0) == attention);
  // Shared experts are divided as the rest.
  CHECK(volume(block_collectives(deepseek_config(), form, 3), Dimension::tensor) -
            volume(block_collectives(mixtral_config(), form, 0), Dimension::tensor) >
        4 * 2 * 4096 * 7168 - 4 * 2 * 4096 * 4096);
}

TEST_CASE("latent attention gathers its vectors of low rank") {
  const Bytes hidden{2 * 4096 * 7168};
  const Bytes low{2 * 4096 * (1536 + 512 + 64)};
  CHECK(block_collectives(deepseek_config(), divided_form(1, 8, true), 0) ==
        Collectives{{CollectiveKind::all_gather, Dimension::tensor, low, 1, 0, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, hidden, 2, 1, 0},
                    {CollectiveKind::all_gather, Dimension::tensor, hidden, 1, 2, 0},
                    {CollectiveKind::reduce_scatter, Dimension::tensor, low, 0, 1, 0}});
  CHECK(block_collectives(deepseek_config(), divided_form(1, 8), 0) ==
        Collectives{{CollectiveKind::all_reduce, Dimension::tensor, hidden, 2, 1, 0},
                    {CollectiveKind::all_reduce, Dimension::tensor, low, 0, 1, 0}});
}

TEST_CASE("shared experts are divided as an MLP, with collectives of their own") {
  const Collectives block = block_collectives(deepseek_config(), divided_form(1, 8), 3);
  const std::int64_t hidden = 2 * 4096 * 7168;
  const std::int64_t low = 2 * 4096 * (1536 + 512 + 64);
  // Attention, routed and shared experts.
  CHECK(volume(block, Dimension::tensor) == 2 * (3 * hidden + 2 * hidden + low));
}

}  // namespace stageline::layer_collectives_tests
