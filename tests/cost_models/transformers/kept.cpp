// Are the bytes that a language model keeps those of the papers?
#include <doctest/doctest.h>

#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::kept_tests {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

double all(const KeptBytes& bytes) { return bytes.input_grad + bytes.weight_grad; }

LanguageForm megatron(std::int64_t batch, int tensor, bool sequence) {
  LanguageForm form = divided_form(batch, tensor, sequence);
  form.attention = AttentionKernel::plain;
  form.dropout = true;
  return form;
}

// Korthikanti et al. 2022, arXiv 2205.05198, figure 1: the first stage's activations, GiB.
struct Published {
  const char* name;
  TransformerConfig config;
  std::int64_t batch;
  int stages;
  int chunks;  // a device
  double none, sequence, selective, both;
};

// 1F1B: the first stage holds min(m, p) micro-batches of its L/p blocks; interleaved p·v + p − 1
// of its chunks of L/(p·v) blocks.
double blocks_held(const Published& row) {
  const double interleaved = row.chunks > 1 ? (row.stages - 1.0) / (row.stages * row.chunks) : 0;
  return static_cast<double>(row.config.layers) * (1 + interleaved);
}

}  // namespace

TEST_CASE("activations of the first stage are those of Korthikanti et al. 2022") {
  const Published rows[] = {
      {"22B", gpt_config(48, 6144, 64), 4, 1, 1, 59.25, 39.5625, 29.25, 9.5625},
      {"175B", gpt_config(96, 12288, 96), 1, 8, 3, 66.84375, 41.4140625, 37.78125, 12.3515625},
      {"530B", gpt_config(105, 20480, 128), 1, 35, 3, 114.0234375, 66.513671875, 70.5859375,
       23.076171875},
      {"1T", gpt_config(128, 25600, 160), 1, 64, 1, 131.25, 76.5625, 81.25, 26.5625},
  };
  for (const Published& row : rows) {
    CAPTURE(row.name);
    const double scale = blocks_held(row) / gib;
    const KeptBytes tensor = kept_by_block(row.config, megatron(row.batch, 8, false), 0);
    const KeptBytes sequence = kept_by_block(row.config, megatron(row.batch, 8, true), 0);
    CHECK(all(tensor) * scale == doctest::Approx(row.none).epsilon(1e-12));
    CHECK(all(sequence) * scale == doctest::Approx(row.sequence).epsilon(1e-12));
    CHECK((all(tensor) - tensor.selective) * scale ==
          doctest::Approx(row.selective).epsilon(1e-12));
    CHECK((all(sequence) - sequence.selective) * scale == doctest::Approx(row.both).epsilon(1e-12));
  }
}

TEST_CASE("an undivided GPT block keeps s·b·h·(34 + 5·a·s/h), of which W needs 32·s·b·h") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  const double a = 2048.0 * 2 * 2048;
  const KeptBytes kept = kept_by_block(config, megatron(2, 1, false), 0);
  CHECK(all(kept) == a * (34 + 5.0 * 16 * 2048 / 2048));
  CHECK(kept.weight_grad == a * 32);  // Zero Bubble, arXiv 2401.10241
  CHECK(kept.gradient == 0);
  CHECK(kept.selective == a * 5.0 * 16 * 2048 / 2048);
}

TEST_CASE("without dropout there are no masks, and one copy of the probabilities") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 1, false);
  form.dropout = false;
  const double a = 2048.0 * 2 * 2048;
  const KeptBytes kept = kept_by_block(config, form, 0);
  CHECK(all(kept) == a * (32 + 2.0 * 16 * 2048 / 2048));
  CHECK(kept.selective == a * 2.0 * 16 * 2048 / 2048);
}

TEST_CASE("a fused attention keeps four bytes a token and head instead of the scores") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 8, true);
  form.attention = AttentionKernel::flash;
  const double a = 2048.0 * 2 * 2048;
  const KeptBytes kept = kept_by_block(config, form, 0);
  CHECK(all(kept) == a * 34 / 8 + 4.0 * 2 * 2048 * 16 / 8);
  CHECK(kept.selective == 0);
}

TEST_CASE("general widths: 18 + 4·f/h, keys and values by their heads, three tensors if gated") {
  TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 1, false);
  const double a = 2048.0 * 2 * 2048;
  const double scores = all(kept_by_block(config, form, 0)) - a * 34;
  config.ffn = 5632;
  CHECK(all(kept_by_block(config, form, 0)) - scores == a * (18 + 4.0 * 5632 / 2048));
  config.gated = true;
  CHECK(all(kept_by_block(config, form, 0)) - scores == a * (18 + 6.0 * 5632 / 2048));
  config.kv_heads = 4;
  CHECK(all(kept_by_block(config, form, 0)) - scores ==
        a * (18 - 4 + 4 * 4.0 / 16 + 6.0 * 5632 / 2048));
}

TEST_CASE("I leaves what W needs and did not keep: output gradients of row-parallel products") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 8, true);
  form.attention = AttentionKernel::flash;
  form.dropout = false;
  const double a = 2048.0 * 2 * 2048;
  const KeptBytes kept = kept_by_block(config, form, 0);
  // W: two normed inputs, q k v and context, both tensors of the MLP, each 1/8; two whole.
  CHECK(kept.weight_grad + kept.gradient == a * ((4 + 8 + 16) / 8.0 + 4));
  CHECK(kept.input_grad == 0);
  CHECK(kept.weight_grad == a * 32 / 8 + 4.0 * 2 * 2048 * 16 / 8);
}

TEST_CASE("norms of a parallel residual have one input, which is kept once") {
  TransformerConfig config = gpt_config(24, 2048, 16);
  const KeptBytes two = kept_by_block(config, megatron(2, 1, false), 0);
  config.parallel_residual = true;
  const KeptBytes one = kept_by_block(config, megatron(2, 1, false), 0);
  CHECK(all(two) - all(one) == 2 * 2048.0 * 2 * 2048);
  CHECK(one.weight_grad == two.weight_grad);
}

TEST_CASE("context parallelism divides what a block keeps") {
  LanguageForm form = divided_form(1, 4, true);
  const double whole = all(kept_by_block(llama_config(), form, 0));
  form.sharding.context = 4;
  CHECK(all(kept_by_block(llama_config(), form, 0)) == whole / 4);
}

TEST_CASE("latent attention keeps the vectors of low rank and each head's keys and values") {
  const KeptBytes kept = kept_by_block(deepseek_config(), divided_form(1, 1), 0);
  const double tokens = 4096;
  const double low = 2 * (1536 + 512);
  const double heads = 128 * (192 + 192 + 128 + 128);
  const double mlp = 3 * 18432;
  CHECK(all(kept) == tokens * (2 * (4 * 7168 + low + heads + mlp) + 4 * 128));
}

TEST_CASE("experts keep a row for each chosen expert, more on the most loaded rank") {
  const TransformerConfig config = mixtral_config();
  LanguageForm form = divided_form(1, 1);
  form.fused = true;
  form.sharding.expert = 4;
  const double tokens = 4096;
  const double attention = 2 * (4096 + 2 * 8 * 128 + 4096) + 4 * 32;
  const double norms = 2 * 4 * 4096;
  const double routed = 2 * 2 * (4096 + 3 * 14336);
  const double router = 4 * 8;
  CHECK(all(kept_by_block(config, form, 0)) == tokens * (attention + norms + routed + router));
  form.imbalance = 1.5;
  CHECK(all(kept_by_block(config, form, 0)) ==
        tokens * (attention + norms + 1.5 * routed + router));
  form.imbalance = 1;
  form.fused = false;  // the weighing reads the outputs
  CHECK(all(kept_by_block(config, form, 0)) ==
        tokens * (attention + norms + routed + router + 2 * 2 * 4096));
}

TEST_CASE("shared experts keep the tensors of an MLP on all tokens") {
  TransformerConfig config = deepseek_config();
  const LanguageForm form = divided_form(1, 1);
  const double with = all(kept_by_block(config, form, 3));
  config.experts->shared_ffn = 0;
  CHECK(with - all(kept_by_block(config, form, 3)) == 4096 * 2.0 * 3 * 2048);
}

TEST_CASE("4-byte formats double activations; masks, logits and probabilities keep their width") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 1, false);
  form.element_bytes = 4;
  const double a = 2048.0 * 2 * 2048;
  // Of the 34 + 5·a·s/h bytes an element, 2 and a·s/h are masks.
  CHECK(all(kept_by_block(config, form, 0)) == a * (2 * 32 + 2 + (2 * 4 + 1) * 16.0 * 2048 / 2048));
  CHECK(kept_by_embedding(config, form).weight_grad == 2 * 2048 * (8.0 + 2048));
  CHECK(kept_by_embedding(config, form).gradient == 4 * a);
  CHECK(all(kept_by_head(config, form)) == 2 * 4 * a + 4 * 2 * 2048 * 51200.0);
  LanguageForm flash = form;
  flash.attention = AttentionKernel::flash;
  CHECK(all(kept_by_block(config, flash, 0)) == a * (2 * 32 + 2) + 4.0 * 2 * 2048 * 16);
  // The router's probabilities.
  const auto kept = [](TransformerConfig experts, std::int64_t count, double bytes) {
    experts.experts->count = count;
    LanguageForm one = divided_form(1, 1);
    one.element_bytes = bytes;
    return all(kept_by_block(experts, one, 0));
  };
  CHECK(kept(mixtral_config(), 16, 4) - kept(mixtral_config(), 8, 4) == 4.0 * 4096 * 8);
}

TEST_CASE("a fused loss keeps gradients of the number format instead of logits in fp32") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  LanguageForm form = megatron(2, 1, false);
  const double logits = 2.0 * 2048 * 51200;
  const double plain = all(kept_by_head(config, form));
  form.fused_loss = true;
  CHECK(plain - all(kept_by_head(config, form)) == (4 - 2) * logits);
  const auto bytes_of_loss = [&](const std::vector<Kernel>& pass) {
    double bytes = 0;
    for (const Kernel& kernel : pass) bytes += kernel.name == "loss" ? kernel.bytes : 0;
    return bytes;
  };
  const LayerKernels kernels = head_kernels(config, form);
  CHECK(bytes_of_loss(kernels.forward) == 6 * logits);
  CHECK(bytes_of_loss(kernels.input_grad) == 4 * logits);
}

TEST_CASE("embedding: token ids and the mask; head: 4·s·b·h·(1 + V/h)") {
  const TransformerConfig config = gpt_config(24, 2048, 16);
  const double tokens = 2 * 2048;
  const KeptBytes embedding = kept_by_embedding(config, megatron(2, 1, false));
  CHECK(embedding.input_grad == 0);
  CHECK(embedding.weight_grad == 8 * tokens + tokens * 2048);
  CHECK(embedding.gradient == 2 * tokens * 2048);
  const KeptBytes head = kept_by_head(config, megatron(2, 1, false));
  CHECK(all(head) == 4 * tokens * (2048 + 51200));
  CHECK(head.weight_grad == 2 * tokens * (2048 + 51200));
  const KeptBytes part = kept_by_head(config, megatron(2, 8, true));
  CHECK(all(part) == 4 * tokens * (2048 + 51200) / 8);
}

}  // namespace stageline::kept_tests
