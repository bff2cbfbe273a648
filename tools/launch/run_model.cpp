#include "tools/launch/run_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "cost_models/transformers/config.hpp"
#include "schedulers/partition/megatron_layout.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/flag_table.hpp"

namespace stageline {
namespace {

bool holds(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// Sizes that are written as they are.
struct Size {
  std::string_view fact;
  std::string_view option;
};
constexpr std::array sizes{Size{"hidden", "hidden"},
                           Size{"heads", "heads"},
                           Size{"head_width", "head_width"},
                           Size{"experts", "experts"},
                           Size{"topk", "topk"},
                           Size{"expert_ffn", "expert_ffn"},
                           Size{"shared_ffn", "shared_ffn"},
                           Size{"expert_groups", "expert_groups"},
                           Size{"topk_groups", "topk_groups"},
                           Size{"mtp", "mtp"}};

// torchtitan's models and flavors, models/*/__init__.py, read 2026-11-29.
struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view ours;
};
constexpr std::array flavors{
    Flavor{"llama3", "8B", "llama3-8b"},
    Flavor{"llama3", "70B", "llama3-70b"},
    Flavor{"llama3", "405B", "llama3-405b"},
    Flavor{"llama2", "7B", "llama2-7b"},
    Flavor{"llama2", "13B", "llama2-13b"},
    Flavor{"llama2", "70B", "llama2-70b"},
    Flavor{"deepseek_v3", "671B", "deepseek-v3"},
    Flavor{"deepseek_v3", "16B", "deepseek-v2-lite"},
    Flavor{"qwen3", "0.6B", "qwen3-0.6b"},
    Flavor{"qwen3", "1.7B", "qwen3-1.7b"},
    Flavor{"qwen3", "4B", "qwen3-4b"},
    Flavor{"qwen3", "8B", "qwen3-8b"},
    Flavor{"qwen3", "14B", "qwen3-14b"},
    Flavor{"qwen3", "32B", "qwen3-32b"},
    Flavor{"qwen3", "30B-A3B", "qwen3-30b-a3b"},
    Flavor{"qwen3", "235B-A22B", "qwen3-235b-a22b"},
    Flavor{"gpt_oss", "20b", "gpt-oss-20b"},
    Flavor{"gpt_oss", "120b", "gpt-oss-120b"},
};

// Rows of the embedding that a tokenizer needs, before they are padded.
struct Tokenizer {
  std::string_view type;
  int vocab;
};
constexpr std::array tokenizers{Tokenizer{"gpt2bpetokenizer", 50257},
                                Tokenizer{"llama2tokenizer", 32000}};

class ModelWriter {
 public:
  ModelWriter(const RunFacts& facts, const RunModelAsked& asked) : facts_(facts), asked_(asked) {}

  RunModel write() {
    const std::string name = model_name();
    text_ = fmt::format("model:{}@{}", name, asked_.device);
    if (name == "transformer") {
      write_sizes();
    } else {
      write_differences(name);
    }
    if (const std::int64_t seq = facts_.count("seq", 0); seq > 0) {
      add("seq", fmt::format("{}", seq));
    } else if (is_megatron(facts_.framework())) {
      throw TraceError(facts_.file(), "",
                       "the length of a sequence is not said; give it with --set seq-length=N");
    } else {
      note(
          fmt::format("the length of a sequence is not said: the model's own is taken; --set {}=N "
                      "says another",
                      written_name(facts_.framework(), "seq")));
    }
    write_training();
    if (name != "transformer" && facts_.has("layers")) {
      model_.layers = facts_.count("layers", 0);
    }
    model_.trace = text_;
    return std::move(model_);
  }

 private:
  bool megatron() const { return is_megatron(facts_.framework()); }
  void add(std::string_view option, const std::string& value) {
    text_ += fmt::format(",{}={}", option, value);
  }
  void note(std::string sentence) { model_.notes.push_back(std::move(sentence)); }

  std::string model_name() {
    if (!asked_.model.empty()) return asked_.model;
    if (megatron()) {
      if (facts_.yes("latent")) {
        facts_.refuse("latent",
                      "is read for a model by its name alone; give --model, such as deepseek-v3");
      }
      for (const char* const fact : {"layers", "hidden", "heads"}) {
        if (facts_.count(fact, 0) > 0) continue;
        throw TraceError(facts_.file(), "",
                         fmt::format("the model's {} are not said; give --model NAME",
                                     std::string_view(fact) == "hidden" ? "hidden units" : fact));
      }
      return "transformer";
    }
    if (facts_.framework() == Framework::torchtitan) return flavor();
    throw TraceError(facts_.file(), "",
                     "no such file says the model; give --model NAME, such as llama3-8b, or a "
                     "path/config.json");
  }

  std::string flavor() {
    const std::string model = facts_.text("model_name");
    const std::string flavor = facts_.text("model_flavor");
    for (const Flavor& row : flavors) {
      if (row.model == model && row.flavor == flavor) return std::string(row.ours);
    }
    throw TraceError(facts_.file(), "",
                     fmt::format("the model \"{}\" of flavor \"{}\" is not known here; give "
                                 "--model NAME, such as llama3-8b, or a path/config.json",
                                 model, flavor));
  }

  // What a run says besides the name of its model: fewer or more blocks, modules that predict.
  // Another width is another model.
  void write_differences(const std::string& name) {
    if (const FamilyMember* const member = find_family(name)) {
      const TransformerConfig& config = member->config;
      for (const auto& [fact, number] :
           {std::pair{"hidden", config.hidden}, std::pair{"heads", config.heads}}) {
        if (const std::int64_t said = facts_.count(fact, 0); said > 0 && said != number) {
          facts_.refuse(fact, fmt::format("is {}, and that of {} is {}; give another --model", said,
                                          name, number));
        }
      }
      const std::int64_t layers = facts_.count("layers", 0);
      if (layers > 0 && layers != config.layers) add("layers", fmt::format("{}", layers));
    }
    if (const std::int64_t modules = facts_.count("mtp", 0); modules > 0) {
      add("mtp", fmt::format("{}", modules));
    }
  }

  void write_sizes() {
    model_.layers = facts_.count("layers", 0);
    add("layers", fmt::format("{}", model_.layers));
    for (const Size& size : sizes) {
      const std::int64_t number = facts_.count(size.fact, 0);
      if (number > 0) add(size.option, fmt::format("{}", number));
    }
    write_attention_heads();
    write_mlp();
    write_ends();
    write_norms_and_biases();
    write_expert_blocks();
  }

  // Megatron-LM, arguments.py: groups are those of --num-query-groups where
  // --group-query-attention is there; NeMo and Megatron-Bridge have the number alone.
  void write_attention_heads() {
    const bool grouped = facts_.framework() != Framework::megatron || facts_.yes("grouped");
    const std::int64_t number = facts_.count("kv_heads", 0);
    if (grouped && number > 0) add("kv_heads", fmt::format("{}", number));
    const std::string window = facts_.text("window");
    if (!window.empty()) {
      // "4096,0", and of YAML "4096 0"
      const std::string first = window.substr(0, window.find_first_of(", "));
      if (parse_number<std::int64_t>(first)) add("window", first);
    }
  }

  bool gated() const {
    return facts_.yes("gated") || holds(facts_.word("activation"), "swiglu") ||
           holds(facts_.word("activation"), "geglu");
  }

  // Megatron-LM, arguments.py: 4·h, of a gated MLP two thirds of it in steps of 64.
  void write_mlp() {
    const std::int64_t hidden = facts_.count("hidden", 0);
    const std::int64_t usual = gated() ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
    if (gated()) add("gated", "yes");
    add("ffn", fmt::format("{}", facts_.count("ffn", usual)));
    if (facts_.has("experts") && facts_.count("experts", 0) > 0 && !facts_.has("topk")) {
      add("topk", "2");  // the default of --moe-router-topk
    }
  }

  void write_ends() {
    std::int64_t vocab = facts_.count("vocab", 0);
    if (vocab == 0) {
      for (const Tokenizer& row : tokenizers) {
        if (row.type == facts_.word("tokenizer")) vocab = row.vocab;
      }
    }
    if (vocab == 0) {
      vocab = 51200;
      note(
          "the vocabulary is the tokenizer's, which no argument says: 51,200 is assumed; --set "
          "vocab-size=N says another");
    }
    add("vocab", fmt::format("{}", vocab));
    const bool tied = !facts_.has("tied") || facts_.yes("tied");
    add("tied", tied ? "yes" : "no");
  }

  void write_norms_and_biases() {
    add("norm", holds(facts_.word("norm"), "rms") ? "rms" : "layer");
    const std::string positions = facts_.word("positions");
    const bool rotary =
        facts_.yes("rotary") || holds(positions, "rope") || holds(positions, "none");
    add("positions", rotary ? "rotary" : holds(positions, "alibi") ? "alibi" : "learned");
    const bool bias = !facts_.has("bias") || facts_.yes("bias");
    if (facts_.yes("qkv_bias")) add("qkv_bias", "yes");
    if (bias) add("bias", "yes");
  }

  // "1", all; "([0]*3+[1]*58)", dense ones first. Others have no spelling.
  void write_expert_blocks() {
    std::string blocks = facts_.text("expert_blocks");
    std::erase_if(blocks, [](char c) { return c == ' ' || c == '(' || c == ')' || c == '\''; });
    if (blocks.empty() || blocks == "1" || facts_.count("experts", 0) == 0) return;
    std::int64_t dense = 0;
    std::int64_t others = 0;
    std::string_view rest = blocks;
    const auto take = [&rest](std::string_view word, std::int64_t& number) {
      if (!rest.starts_with(word)) return false;
      rest.remove_prefix(word.size());
      const auto read = take_number<std::int64_t>(rest);
      number = read.value_or(0);
      return read.has_value();
    };
    if (take("[0]*", dense) && take("+[1]*", others) && rest.empty() &&
        dense + others == model_.layers) {
      add("dense_blocks", fmt::format("{}", dense));
      return;
    }
    facts_.refuse("expert_blocks",
                  fmt::format("is \"{}\", and blocks with a dense MLP are read where they are the "
                              "first ones, \"([0]*3+[1]*58)\"",
                              facts_.text("expert_blocks")));
  }

  void write_training() {
    write_software();
    write_dtype();
    if (megatron()) write_attention();
    if (facts_.yes("loss_fusion")) add("loss", "fused");
    if (facts_.yes("tp_overlap") && asked_.tensor > 1) {
      add("tp_overlap", "0.46");
      note(
          "of tensor-parallel exchanges 46 % are hidden, as torchtitan's pairs of runs show in bf16");
    }
    if (asked_.context > 1) write_context_exchange();
    write_dispatch();
    if (const double capacity = facts_.number("capacity", 0); capacity > 0) {
      add("capacity", fmt::format("{}", capacity));
    }
  }

  void write_software() {
    if (facts_.framework() == Framework::torchtitan) {
      add("software", facts_.yes("compile") ? "torchtitan-2025" : "fsdp-2023");
    } else if (megatron()) {
      add("software",
          facts_.word("transformer_impl") == "local" ? "megatron-2021" : "megatron-core-2024");
    }
  }

  // Megatron-LM: delayed is the default of --fp8-recipe.
  void write_dtype() {
    const std::string format = facts_.word("fp8_format");
    const std::string recipe = facts_.word("fp8_recipe");
    const bool converted = holds(facts_.word("converters"), "float8");
    const bool titan = facts_.framework() == Framework::torchtitan;
    const bool quantized =
        (!format.empty() && format != "false") || (titan && (converted || !recipe.empty()));
    if (quantized) {
      // torchtitan's float8 without a recipe has a scale a tensor.
      const bool tensorwise = holds(recipe, "tensorwise") || (titan && recipe.empty());
      add("dtype", holds(recipe, "mxfp8")                   ? "mxfp8"
                   : holds(recipe, "rowwise")               ? "fp8-rowwise"
                   : tensorwise && titan                    ? "fp8-tensorwise"
                   : tensorwise || holds(recipe, "current") ? "fp8-current"
                   : holds(recipe, "block")                 ? "fp8-block"
                                                            : "fp8-delayed");
    } else if (facts_.yes("fp16") || holds(facts_.word("precision"), "16-mixed")) {
      if (!holds(facts_.word("precision"), "bf16")) add("dtype", "fp16");
    } else if (megatron() && !facts_.yes("bf16") && !holds(facts_.word("precision"), "bf16")) {
      add("dtype", "fp32");
    }
  }

  void write_attention() {
    const bool local = facts_.word("transformer_impl") == "local";
    const std::string backend = facts_.word("attention_backend");
    if (backend == "unfused" || backend == "local") add("attention", "plain");
    if (local && facts_.yes("flash")) add("attention", "flash");
    const bool dropped =
        facts_.number("attention_dropout", 0.1) > 0 || facts_.number("hidden_dropout", 0.1) > 0;
    if (facts_.framework() == Framework::megatron) {
      if (dropped != local) add("dropout", dropped ? "yes" : "no");
    } else if (facts_.number("attention_dropout", 0) > 0 ||
               facts_.number("hidden_dropout", 0) > 0) {
      add("dropout", "yes");
    }
  }

  // p2p, a ring, is Megatron-Core's default, allgather torchtitan's, whose alltoall is a ring, too.
  void write_context_exchange() {
    const std::string how = facts_.word("cp_exchange");
    if (!megatron()) {
      if (how == "p2p" || how == "alltoall") add("cp_exchange", "p2p");
      return;
    }
    if (holds(how, " ") || holds(how, "[")) {  // by block
      facts_.leave_out("cp_exchange");
    } else if (how == "a2a+p2p") {
      add("cp_exchange", fmt::format("a2a+p2p:{}", ranks_of_part()));
    } else {
      add("cp_exchange", how.empty() ? "p2p" : how);
    }
  }

  // The first of "2 4", "[2, 4]": ranks of an all-to-all.
  std::string ranks_of_part() {
    if (!facts_.has("cp_parts")) {
      facts_.refuse("cp_exchange",
                    "is a2a+p2p, whose all-to-alls are among the first of "
                    "--hierarchical-context-parallel-sizes; give it with --set "
                    "hierarchical-context-parallel-sizes=\"N M\"");
    }
    const std::string text = facts_.text("cp_parts");
    const std::size_t first = std::min(text.find_first_of("0123456789"), text.size());
    return text.substr(first, text.find_first_not_of("0123456789", first) - first);
  }

  void write_dispatch() {
    const std::string backend = facts_.word("dispatch_backend");
    if (backend == "hybridep") {
      add("dispatch", "hybridep");
    } else if (facts_.yes("deepep") || facts_.word("dispatcher") == "flex") {
      add("dispatch", "deepep");
    } else if (facts_.word("dispatcher") == "allgather") {
      facts_.leave_out("dispatcher");
    }
  }

  const RunFacts& facts_;
  const RunModelAsked& asked_;
  RunModel model_;
  std::string text_;
};

bool is_bf16(const RunFacts& facts, const char* fact) { return holds(facts.word(fact), "bf16"); }

}  // namespace

RunModel model_of(const RunFacts& facts, const RunModelAsked& asked) {
  return ModelWriter(facts, asked).write();
}

std::int64_t layout_stages(const std::string& layout) {
  return static_cast<std::int64_t>(parse_megatron(layout).size());
}

// The recipes of cost_models/state_bytes.cpp, which name their sources.
std::string state_precision(const RunFacts& facts) {
  if (facts.framework() == Framework::deepspeed) {
    return facts.yes("bf16") || facts.yes("fp16") ? "mixed" : "fp32";
  }
  if (facts.framework() == Framework::torchtitan) {
    return facts.word("precision") == "float32" ? "fp32" : "bf16";
  }
  if (facts.yes("aware_optimizer")) {
    const bool moments = is_bf16(facts, "moment_dtype") && is_bf16(facts, "second_moment_dtype");
    if (moments) return is_bf16(facts, "gradient_dtype") ? "precision-aware" : "bf16-moments";
    facts.leave_out("aware_optimizer");
  }
  if (facts.yes("fp8_weights")) {
    const std::string recipe = facts.word("fp8_recipe");
    if (holds(recipe, "mxfp8")) return "mxfp8";
    return holds(recipe, "tensorwise") ? "fp8-current" : "fp8-delayed";
  }
  const std::string precision = facts.word("precision");
  if (facts.yes("bf16") || holds(precision, "bf16")) {
    return facts.yes("reduce_in_bf16") ? "mixed" : "bf16";
  }
  if (facts.yes("fp16") || holds(precision, "16")) {
    return facts.yes("reduce_in_fp32") ? "bf16" : "fp16";
  }
  return "fp32";
}

}  // namespace stageline
