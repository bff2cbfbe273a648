// Do options make the language model that they spell?
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "sim/base/errors.hpp"

namespace stageline::open_form_tests {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

TransformerConfig with(TransformerConfig config, const Options& options) {
  std::vector<std::string> given;
  for (const auto& option : options) {
    CAPTURE(option.first);
    const bool known = set_option(config, option.first, option.second, given);
    REQUIRE(known);
    given.push_back(option.first);
  }
  return completed(config);
}

TransformerConfig form(const Options& options) { return with(open_form(), options); }

TransformerConfig changed(const char* name, const Options& options) {
  const FamilyMember* const member = find_family(name);
  REQUIRE(member != nullptr);
  return with(member->config, options);
}

std::string refusal(const char* name, const Options& options) {
  try {
    if (std::string(name).empty()) {
      form(options);
    } else {
      changed(name, options);
    }
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("three sizes make a model, the others follow from them") {
  const TransformerConfig config = form({{"layers", "24"}, {"hidden", "2048"}, {"heads", "16"}});
  CHECK(config.name == "transformer");
  CHECK(config.layers == 24);
  CHECK(config.kv_heads == 16);
  CHECK(config.head_width == 128);
  CHECK(config.ffn == 8192);
  CHECK_FALSE(config.gated);
  CHECK(config.vocab == 51200);
  CHECK_FALSE(config.tied);
  CHECK(config.norm == NormKind::rms);
  CHECK(config.positions == Positions::rotary);
  CHECK(config.places == 0);
  CHECK_FALSE(config.experts.has_value());
  const std::int64_t h = 2048;
  CHECK(parameters(config) == 24 * (4 * h * h + 2 * h * 8192 + 2 * h) + 2 * 51200 * h + h);
}

TEST_CASE("a gated MLP is two thirds as wide, in steps of 256") {
  // Llama 2 7B: 11008, 13B: 13824 (multiple_of 256).
  const Options small = {{"layers", "1"}, {"hidden", "4096"}, {"heads", "32"}, {"gated", "yes"}};
  CHECK(form(small).ffn == 11008);
  CHECK(form({{"gated", "yes"}, {"layers", "1"}, {"hidden", "5120"}, {"heads", "40"}}).ffn ==
        13824);
}

TEST_CASE("the open form spells published models") {
  const auto same = [](TransformerConfig config, const char* name) {
    const TransformerConfig& other = find_family(name)->config;
    config.name = other.name;
    config.family = other.family;
    config.source = other.source;
    config.seq = other.seq;
    CHECK_MESSAGE(config == other, name);
  };
  same(form({{"layers", "32"},
             {"hidden", "4096"},
             {"heads", "32"},
             {"kv_heads", "8"},
             {"ffn", "14336"},
             {"gated", "yes"},
             {"vocab", "128256"}}),
       "llama3-8b");
  same(form({{"layers", "32"},
             {"hidden", "4096"},
             {"heads", "32"},
             {"kv_heads", "8"},
             {"ffn", "14336"},
             {"gated", "yes"},
             {"vocab", "32000"},
             {"experts", "8"},
             {"topk", "2"}}),
       "mixtral-8x7b");
  same(form({{"layers", "24"},
             {"hidden", "2304"},
             {"heads", "24"},
             {"tied", "yes"},
             {"norm", "layer"},
             {"bias", "yes"},
             {"positions", "learned"}}),
       "megatron-1.7b");
  same(form({{"layers", "24"},
             {"hidden", "896"},
             {"heads", "14"},
             {"kv_heads", "2"},
             {"ffn", "4864"},
             {"gated", "yes"},
             {"vocab", "151936"},
             {"tied", "yes"},
             {"qkv_bias", "yes"}}),
       "qwen2.5-0.5b");
  same(form({{"layers", "32"},
             {"hidden", "4096"},
             {"heads", "32"},
             {"kv_heads", "8"},
             {"ffn", "14336"},
             {"gated", "yes"},
             {"vocab", "32000"},
             {"window", "4096"}}),
       "mistral-7b");
}

TEST_CASE("experts take the MLP's width unless theirs is given") {
  const Options sizes = {{"layers", "4"}, {"hidden", "512"}, {"heads", "8"}};
  Options options = sizes;
  options.insert(options.end(),
                 {{"experts", "16"}, {"topk", "4"}, {"shared_ffn", "1024"}, {"dense_blocks", "1"}});
  TransformerConfig config = form(options);
  REQUIRE(config.experts.has_value());
  CHECK(*config.experts ==
        Experts{.count = 16, .chosen = 4, .ffn = 2048, .shared_ffn = 1024, .dense_blocks = 1});
  options.emplace_back("expert_ffn", "256");
  config = form(options);
  CHECK(config.experts->ffn == 256);
  CHECK(config.ffn == 2048);
  CHECK_FALSE(changed("mixtral-8x7b", {{"experts", "0"}}).experts.has_value());
}

TEST_CASE("what followed from a changed size follows it again") {
  CHECK(changed("llama2-7b", {}) == find_family("llama2-7b")->config);

  const TransformerConfig wide = changed("llama2-7b", {{"hidden", "8192"}});
  CHECK(wide.head_width == 256);
  CHECK(wide.ffn == 22016);
  CHECK(wide.kv_heads == 32);

  const TransformerConfig more = changed("llama2-7b", {{"heads", "64"}});
  CHECK(more.kv_heads == 64);
  CHECK(more.head_width == 64);

  // Llama 3's ffn and kv_heads follow from nothing, Qwen 3's head_width neither.
  const TransformerConfig third = changed("llama3-8b", {{"hidden", "2048"}, {"heads", "16"}});
  CHECK(third.ffn == 14336);
  CHECK(third.kv_heads == 8);
  CHECK(third.head_width == 128);
  CHECK(changed("qwen3-0.6b", {{"hidden", "2048"}}).head_width == 128);

  const TransformerConfig experts = changed("mixtral-8x7b", {{"ffn", "7168"}});
  CHECK(experts.experts->ffn == 7168);
  CHECK(changed("qwen3-30b-a3b", {{"ffn", "7168"}}).experts->ffn == 768);
}

TEST_CASE("a size that is given stays, in any order") {
  const Options first = {{"head_width", "128"},
                         {"kv_heads", "32"},
                         {"ffn", "11008"},
                         {"hidden", "8192"},
                         {"heads", "64"}};
  const Options last = {{"hidden", "8192"},
                        {"heads", "64"},
                        {"ffn", "11008"},
                        {"kv_heads", "32"},
                        {"head_width", "128"}};
  CHECK(changed("llama2-7b", first) == changed("llama2-7b", last));
  CHECK(changed("llama2-7b", first).kv_heads == 32);
  CHECK(changed("llama2-7b", first).ffn == 11008);

  const TransformerConfig biased = form(
      {{"qkv_bias", "no"}, {"bias", "yes"}, {"layers", "1"}, {"hidden", "64"}, {"heads", "1"}});
  CHECK_FALSE(biased.query_key_value_bias);
  CHECK(biased.mlp_bias);
  CHECK(biased.projection_bias);
}

TEST_CASE("every option changes something, and no other key is one") {
  for (const std::string& key : transformer_options()) {
    CAPTURE(key);
    const std::string value = key == "norm"                                         ? "layer"
                              : key == "positions"                                  ? "alibi"
                              : key == "tied" || key == "bias" || key == "qkv_bias" ? "yes"
                              : key == "gated"                                      ? "no"
                                                                                    : "4";
    const TransformerConfig before = find_family("llama3-8b")->config;
    TransformerConfig config = before;
    REQUIRE(set_option(config, key, value));
    CHECK(config != before);
  }
  TransformerConfig config = open_form();
  const TransformerConfig before = config;
  CHECK_FALSE(set_option(config, "batch", "4"));
  CHECK_FALSE(set_option(config, "Layers", "4"));
  CHECK(config == before);
}

TEST_CASE("what cannot be is refused in one sentence") {
  const Options sizes = {{"layers", "4"}, {"hidden", "512"}, {"heads", "8"}};
  const auto plus = [&](const char* key, const char* value) {
    Options all = sizes;
    all.emplace_back(key, value);
    return all;
  };
  CHECK(refusal("", {{"layers", "4"}, {"heads", "8"}}) ==
        "transformer needs its layers, hidden and heads, and hidden is missing; write hidden=N "
        "behind its name");
  CHECK(refusal("", {{"layers", "4"}, {"hidden", "512"}, {"heads", "7"}}) ==
        "transformer: hidden must be a multiple of heads where head_width is not given, and 512 is "
        "not one of 7");
  CHECK(refusal("", plus("topk", "2")) ==
        "transformer: topk, expert_ffn, shared_ffn and dense_blocks describe experts, and there "
        "are none; write experts=N behind its name");
  CHECK(refusal("", plus("gated", "true")) == "gated must be yes or no, not 'true'");
  CHECK(refusal("", plus("norm", "batch")) == "norm must be layer or rms, not 'batch'");
  CHECK(refusal("", plus("positions", "sine")) ==
        "positions must be learned, rotary or alibi, not 'sine'");
  CHECK(refusal("", plus("ffn", "0")) == "ffn must be a whole number from 1 to 16777216, not 0");
  CHECK(refusal("", plus("vocab", "99999999999999999999")) ==
        "vocab must be a whole number from 1 to 16777216, not '99999999999999999999'");
  CHECK(refusal("", plus("window", "-1")) ==
        "window must be a whole number from 0 to 16777216, not -1");
  CHECK(refusal("", plus("kv_heads", "3")) ==
        "transformer: heads must be a multiple of kv_heads, since so many heads share the keys and "
        "values of one, and 8 is not one of 3");
  CHECK(refusal("mixtral-8x7b", {{"topk", "9"}}) ==
        "mixtral-8x7b: a token can choose at most all 8 experts, and topk is 9");
  CHECK(refusal("llama3-8b", {{"hidden", "16777216"}}) ==
        "llama3-8b: hidden must be from 1 to 65536, and it is 16777216");
}

TEST_CASE("latent attention has no sizes of other attention") {
  for (const auto& [key, value] :
       Options{{"kv_heads", "8"}, {"head_width", "64"}, {"qkv_bias", "yes"}}) {
    CHECK(
        refusal("deepseek-v3", {{key, value}}) ==
        "deepseek-v3 has latent attention, whose keys and values come from a vector of low rank: " +
            key + " is none of its sizes");
  }
}

}  // namespace
}  // namespace stageline::open_form_tests
