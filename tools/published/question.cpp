// Turns a published row into the question that it answers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <string_view>
#include <utility>

#include "cost_models/state_bytes.hpp"
#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/published/hardware.hpp"
#include "tools/published/point_model.hpp"
#include "tools/published/points.hpp"
#include "tools/published/recipes.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_stages = 0xffff;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool holds(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// The software of a row, as far as its kernels and its memory differ.
enum class Software : std::uint8_t {
  megatron_2021,  // Megatron-LM and its forks of 2021 to 2023: plain attention, unfused kernels
  deepspeed,      // Megatron-DeepSpeed of 2021 and 2022: the same kernels
  megatron_core,  // Megatron-LM with Transformer Engine
  bridge,         // Megatron-Bridge, by its container
  fsdp_eager,     // PyTorch FSDP without compilation, with flash attention
  fsdp_compiled,
  closed_form,  // no run: the paper's formulas
};

Software software_of(const Point& point) {
  const std::string framework = lower_case(point.framework);
  if (holds(point.kind, "closed form")) return Software::closed_form;
  if (holds(framework, "deepspeed")) return Software::deepspeed;
  if (holds(framework, "fsdp")) return Software::fsdp_eager;
  if (holds(framework, "torchtitan")) {
    return holds(lower_case(point.precision), "compile") ? Software::fsdp_compiled
                                                         : Software::fsdp_eager;
  }
  if (holds(framework, "bridge")) return Software::bridge;
  if (holds(framework, "megatron-core") || holds(framework, "megascale") ||
      holds(point.source, "SimuMax") || holds(point.source, "Megatron-Core") || point.context > 1 ||
      point.expert > 1 || point.config.experts) {
    return Software::megatron_core;
  }
  return Software::megatron_2021;
}

// As `--software` spells it.
std::string_view generation_of(Software software, int container) {
  switch (software) {
    case Software::megatron_2021:
    case Software::closed_form:
      return "megatron-2021";
    case Software::deepspeed:
      return "deepspeed-2021";
    case Software::megatron_core:
      return "megatron-core-2024";
    case Software::bridge:
      if (container >= 2606) return "megatron-bridge-2026.06";
      return container >= 2602 ? "megatron-bridge-2026.02" : "megatron-bridge-2025.11";
    case Software::fsdp_eager:
      return "fsdp-2023";
    case Software::fsdp_compiled:
      return "torchtitan-2025";
  }
  return "";  // unreachable; g++ wants it
}

bool is_plain(Software software) {
  return software == Software::megatron_2021 || software == Software::deepspeed ||
         software == Software::closed_form;
}

// The notes of Megatron-Bridge's table without a column of precision say that the numbers in
// brackets are of another granularity of quantization: those before them are of FP8 as well.
bool bracketed(const Point& point) {
  return holds(point.framework, "Bridge") && holds(point.precision, "(fp8");
}

// The recipe of quantized products (cost_models/transformers/product_recipes.hpp), by the words of
// NVIDIA's tables (CS, DS, SC and MX for current, delayed, sub-channel and microscaling) and of
// torchao (tensorwise, rowwise); "" where none is quantized. Where they say "fp8" and no more, it
// is current scaling of Megatron-Bridge's recipes (their other recipes of 8 bits are named), of
// torchtitan's tensorwise, its default.
std::string quantized_products(const Point& point) {
  const std::string words = lower_case(point.precision);
  if (holds(words, "fp4") && words.find('(') == std::string::npos) return "nvfp4";
  if (!holds(words, "fp8")) return "";
  if (holds(words, "mxfp8") || holds(words, "fp8-mx")) return "mxfp8";
  const bool by_torchao = holds(lower_case(point.framework), "torchtitan");
  if (holds(words, "rowwise")) return "fp8-rowwise";
  if (holds(words, "tensorwise")) return by_torchao ? "fp8-tensorwise" : "fp8-current";
  if (holds(words, "fp8-cs") || holds(words, "current")) return "fp8-current";
  if (holds(words, "fp8-ds") || holds(words, "delayed")) return "fp8-delayed";
  if (holds(words, "fp8-sc") || holds(words, "block")) return "fp8-block";
  if (by_torchao) return "fp8-tensorwise";
  return software_of(point) == Software::bridge ? "fp8-current" : "fp8";
}

RecipePrecision products_of(const Point& point) {
  const std::string products = quantized_products(point);
  if (products.empty()) return RecipePrecision::bf16;
  if (products == "nvfp4") return RecipePrecision::nvfp4;
  return products == "mxfp8" ? RecipePrecision::mxfp8 : RecipePrecision::current_scaling;
}

class QuestionWriter {
 public:
  QuestionWriter(const Point& point, const std::optional<Calibration>& calibration,
                 const RunPace& pace)
      : point_(point),
        calibration_(calibration),
        software_(software_of(point)),
        hardware_(hardware_of(point, pace)),
        recipe_(software_ == Software::bridge
                    ? bridge_recipe(point, hardware_.kind, products_of(point))
                    : nullptr) {}

  Question write() {
    question_.assumptions = hardware_.assumptions;
    if (const std::string note = rates_of(hardware_.kind).note; !note.empty() && !calibration_) {
      question_.assumptions.push_back(note);
    }
    question_.why_not = fault();
    if (!question_.why_not.empty()) return std::move(question_);
    SettingRequest& setting = question_.request.setting;
    setting.cluster.cluster = hardware_.cluster;
    setting.trace = trace();
    setting.microbatch_size = static_cast<int>(micro_batch_);
    setting.microbatches = static_cast<int>(microbatches_of(with_micro_batch()));
    if (calibration_) setting.calibration = print_calibration(*calibration_);
    set_degrees(setting);
    set_schedule(setting);
    if (question_.why_not.empty()) set_recomputation(setting);
    set_offloading(setting);
    question_.blocks_alone = software_ == Software::closed_form;
    if (is_torchtitan()) question_.counter = MemoryCounter::reserved;
    if (holds(point_.source, "BigScience")) question_.counter = MemoryCounter::driver;
    if (question_.counter == MemoryCounter::reserved && point_.memory) {
      assume("memory is printed as torch's allocator reserves it");
    }
    if (question_.counter == MemoryCounter::driver && point_.memory) {
      assume("memory is printed as the driver reports it, with context and communicators");
    }
    return std::move(question_);
  }

 private:
  void assume(std::string what) { question_.assumptions.push_back(std::move(what)); }

  Point with_micro_batch() const {
    Point point = point_;
    point.micro_batch = micro_batch_;
    point.global_batch = global_batch_;
    return point;
  }

  std::string fault() {
    if (!hardware_.why_not.empty()) return hardware_.why_not;
    const TransformerConfig& config = point_.config;
    if (config.layers < 1 || config.hidden < 1 || config.heads < 1) {
      return fmt::format("the sizes of \"{}\" are not printed, and it is no model by name",
                         point_.model);
    }
    if (const std::string why = fault_of_experts(); !why.empty()) return why;
    if (!known_precision()) {
      return fmt::format("the precision \"{}\" is not known; bf16, fp16, fp8 and nvfp4 are",
                         point_.precision);
    }
    if (point_.seq < 1) return "the length of a sequence is not printed";
    if (const std::string why = fault_of_batch(); !why.empty()) return why;
    const double ranks = 1.0 * point_.tensor * point_.context * point_.data * point_.pipeline;
    if (ranks != point_.gpus) {
      return fmt::format("its degrees multiply to {:.0f} devices, and it has {}", ranks,
                         point_.gpus);
    }
    return batch_fault();
  }

  // "DeepSeekV3 (w/ MTP)".
  bool predicts_more() const { return holds(lower_case(point_.model), "(w/ mtp)"); }

  // Those that a model by name does not have, or whose number a token chooses is not said.
  std::string fault_of_experts() const {
    if (point_.experts <= 1 && point_.chosen <= 1) return "";
    if (point_.config.experts) return "";
    if (family_of(point_) != nullptr) {
      return fmt::format("{} has no experts, and the row has {}", point_.config.name,
                         point_.experts > 1 ? fmt::format("{}", point_.experts) : "topk");
    }
    return fmt::format("it has {}, and {} is not printed",
                       point_.experts > 1 ? fmt::format("{} experts", point_.experts)
                                          : fmt::format("topk {}", point_.chosen),
                       point_.experts > 1 ? "how many of them a token chooses (topk)"
                                          : "the number of its experts");
  }

  bool known_precision() const {
    const std::string words = lower_case(point_.precision);
    constexpr std::array<std::string_view, 6> formats{"bf16", "fp16",     "fp8",
                                                      "fp4",  "bfloat16", "float16"};
    return words.empty() || std::any_of(formats.begin(), formats.end(),
                                        [&](std::string_view one) { return holds(words, one); });
  }

  // A rate of tokens says the step where the batch is known. Without a pipeline a replica of
  // torchtitan has one micro-batch of one sequence where nothing else is asked (its default
  // recipe).
  std::string fault_of_batch() {
    global_batch_ = point_.global_batch;
    if (global_batch_ > 0) return "";
    if (point_.pipeline > 1 || !holds(lower_case(point_.framework), "torchtitan")) {
      return "the global batch is not printed";
    }
    const std::int64_t each = std::max<std::int64_t>(point_.micro_batch, 1);
    global_batch_ = each * point_.data;
    assume(fmt::format("the global batch is not printed: one micro-batch of {} {} a replica", each,
                       each == 1 ? "sequence" : "sequences"));
    return "";
  }

  std::string batch_fault() {
    if (global_batch_ % point_.data != 0) {
      return fmt::format("the global batch of {} does not divide by {} replicas", global_batch_,
                         point_.data);
    }
    const std::int64_t each = global_batch_ / point_.data;
    micro_batch_ = point_.micro_batch;
    if (micro_batch_ == 0 && point_.pipeline == 1) {
      micro_batch_ = each;
      assume(fmt::format("the micro-batch is not printed: all {} sequences of a replica at once",
                         each));
    } else if (micro_batch_ == 0 && holds(point_.framework, "torchtitan") &&
               each % point_.pipeline == 0) {
      // torchtitan/config_manager.py, December 2024: pipeline_parallel_microbatches is by default
      // the pipeline's degree.
      micro_batch_ = each / point_.pipeline;
      assume(fmt::format(
          "the micro-batch is not printed: {} sequences, as many micro-batches as pipeline ranks",
          micro_batch_));
    } else if (micro_batch_ == 0) {
      micro_batch_ = 1;
      assume("the micro-batch is not printed: 1 sequence");
    }
    if (each % micro_batch_ != 0) {
      return fmt::format("{} sequences of a replica do not divide by the micro-batch of {}", each,
                         micro_batch_);
    }
    return "";
  }

  std::string trace() {
    const SpelledModel spelled = spelled_model(point_);
    std::string text = fmt::format("model:{}@{}{},seq={}", spelled.name, hardware_.kind,
                                   spelled.options, point_.seq);
    text += fmt::format(",software={}", generation_of(software_, container_of(point_)));
    if (recipe_ != nullptr) text += recipe_options();
    if (predicts_more()) text += ",mtp=1";
    if (const std::string products = quantized_products(point_); !products.empty()) {
      text += ",dtype=" + products;
    }
    if (hardware_.kind.starts_with("v100")) text += ",dtype=fp16";  // it has no bf16
    if (bracketed(point_)) {
      assume(
          "products in FP8 with current scaling: the table's notes say that the numbers in brackets "
          "are of another granularity of quantization");
    }
    text += kernels_of_their_time();
    if (!holds(lower_case(point_.note), "flash")) {
      assume(is_plain(software_) ? "attention is not fused, and there is dropout"
                                 : "attention is fused");
    }
    if (point_.config.experts) {
      assume("tokens are balanced among the experts");
      if (family_of(point_) == nullptr) {
        assume(
            "each expert is an MLP of two matrices of the width ffn, in every block, and none is shared");
      }
    }
    if (holds(lower_case(point_.framework), "megascale")) {
      assume("no parallel blocks and no sliding window, which MegaScale has");
    }
    if (software_ == Software::megatron_2021 && !point_.framework.empty() &&
        !holds(lower_case(point_.framework), "megatron")) {
      assume(fmt::format("\"{}\" is not known: kernels and memory of Megatron-LM of 2021 to 2023",
                         point_.framework));
    }
    return text;
  }

  // The dispatcher matters where ranks share the experts.
  std::string recipe_options() {
    const bool dispatches = point_.config.experts && point_.expert > 1;
    assume(fmt::format(
        "as its recipe in the container's Megatron-Bridge sets them: CUDA graphs {}{}",
        recipe_->graphs, dispatches ? fmt::format(", experts by {}", recipe_->dispatch) : ""));
    return fmt::format(",graphs={}{}", recipe_->graphs,
                       dispatches ? fmt::format(",dispatch={}", recipe_->dispatch) : "");
  }

  std::string recipe_recomputation() const {
    if (recipe_ == nullptr) return "";
    if (recipe_->block_layers > 0) return fmt::format("block:{}", recipe_->block_layers);
    return recipe_->modules.empty() ? "" : fmt::format("modules:{}", recipe_->modules);
  }

  // torchtitan prints the most that is reserved (components/metrics.py, read 2026-11-29), and its
  // loss is cross_entropy() of logits in fp32.
  bool is_torchtitan() const { return holds(lower_case(point_.framework), "torchtitan"); }

  // PyTorch FSDP without compilation, as fitted to its runs on fewer than 64 devices
  // (mosaicml/llm-foundry): what a kernel costs to launch, products slowed by communication beside
  // them (0.829 of the peak over 1.05 on A100, 0.714 over 1.08 on H100), and the fused attention of
  // 2023 (Triton's), which is not that of the built-in rates.
  std::string kernels_of_their_time() {
    if (is_plain(software_) && software_ != Software::closed_form && point_.data > 1 &&
        !calibration_) {
      // As vTrain's runs on 64 to 512 devices show; runs of one replica have the built-in 0.05 s.
      assume("0.3 s a step for data, clipping and waiting among replicas");
      return ",step=0.3";
    }
    if (software_ != Software::fsdp_eager) return "";
    const bool hopper = hardware_.kind.starts_with("h");
    const bool triton = holds(point_.framework, "Composer");
    assume(fmt::format("kernels are launched by PyTorch without compilation{}",
                       triton ? ", with the fused attention of 2023" : ""));
    std::string options = hopper ? ",kernel=43us" : "";
    if (is_torchtitan()) options += ",loss=torch";
    if (triton) {
      if (!calibration_) options += fmt::format(",gemm={}", hopper ? 0.66 : 0.79);
      options += fmt::format(",attention_flash={}", hopper ? 0.2 : 0.33);
    }
    return options;
  }

  Precision recipe() {
    switch (software_) {
      case Software::megatron_2021:
        if (point_.precision.empty()) {
          assume("fp16 with gradients in fp16, 20 bytes a parameter, as in the scripts");
        }
        return find_precision("fp16");
      case Software::deepspeed:
        assume("fp16 with 16 bytes a parameter, as DeepSpeed has it");
        return find_precision("mixed");
      case Software::fsdp_eager:
      case Software::fsdp_compiled:
        if (holds(point_.framework, "torchtitan")) {
          assume("weights gathered in bf16, gradients reduced in fp32");
          return find_precision("bf16");
        }
        assume("weights and gradients communicated in bf16");
        return find_precision("mixed");
      case Software::bridge:
        return bridge_state();
      case Software::megatron_core:
        if (point_.precision.find("fp32 gradient") == std::string::npos) {
          assume("bf16 with gradients in fp32, 18 bytes a parameter");
        }
        return find_precision("bf16");
      case Software::closed_form:
        return find_precision("bf16");
    }
    return {};  // unreachable; g++ wants it
  }

  // scripts/performance/configs: grad_reduce_in_fp32 = False; recipes/deepseek: moments in bf16 by
  // the precision-aware optimizer, which Megatron-FSDP does not have; read 2026-11-29.
  Precision bridge_state() {
    const std::string& model = point_.config.name;
    const bool aware =
        (model.starts_with("deepseek") || model.starts_with("kimi")) && point_.zero < 3;
    assume(aware ? "gradients and moments in bf16, as its recipes have them"
                 : "gradients in bf16, as its recipes have them");
    const RecipePrecision products = products_of(point_);
    if (aware) {
      return find_precision(products == RecipePrecision::mxfp8 ? "mxfp8-precision-aware"
                                                               : "precision-aware");
    }
    return find_precision(products == RecipePrecision::current_scaling ? "fp8-mixed" : "mixed");
  }

  // Megatron-Bridge sets expert_tensor_parallel_size to 1 for Qwen3 and DeepSeek-V3
  // (scripts/performance/configs, *_workload_base_configs.py, read 2026-11-29); Megatron-LM's own
  // default is the tensor degree.
  int expert_tensor() {
    if (point_.expert == 1 || point_.tensor == 1) return 0;
    if (point_.expert_tensor > 0) return point_.expert_tensor;
    if (software_ != Software::bridge) return 0;
    assume("experts are not divided by tensor parallelism (etp 1), which is not printed");
    return 1;
  }

  void set_degrees(SettingRequest& setting) {
    setting.degrees.tensor = point_.tensor;
    setting.degrees.context = point_.context;
    setting.degrees.expert = point_.expert;
    setting.degrees.expert_tensor = expert_tensor();
    setting.degrees.data = point_.data;
    setting.degrees.pipeline = point_.pipeline;
    setting.degrees.zero = static_cast<Zero>(point_.zero);
    setting.degrees.precision = recipe();
    setting.sequence_parallel = point_.sequence_parallel && point_.tensor > 1;
    if (software_ == Software::bridge && point_.tensor > 1 && !point_.sequence_parallel) {
      setting.sequence_parallel = true;
      assume("sequence parallelism, which is not printed");
    }
    if (software_ == Software::deepspeed || software_ == Software::megatron_2021 ||
        holds(point_.source, "SimuMax")) {
      setting.buckets = "none";
      if (point_.data > 1) assume("gradients are reduced behind the last backward");
    }
  }

  // The schedule as Stageline spells it: by its name in any spelling, with the row's chunks.
  std::string spelled_schedule() {
    const std::string printed = lower_case(point_.schedule);
    if (printed.empty()) {
      const std::string usual = point_.chunks > 1 ? "interleaved_1f1b" : "1f1b";
      if (point_.pipeline > 1) assume("the schedule is not printed: " + usual);
      return usual;
    }
    const std::string known = read_schedule_name(printed);
    const std::string& name = known.empty() ? printed : known;
    return name == "1f1b" && point_.chunks > 1 ? "interleaved_1f1b" : name;
  }

  // Where Megatron-Core has it: on one device, or with stages that interleave.
  bool overlaps_experts(SettingRequest& setting) {
    const bool runs = recipe_ != nullptr && recipe_->overlap && point_.config.experts &&
                      point_.expert > 1 && (point_.pipeline == 1 || point_.chunks > 1);
    if (!runs) return false;
    const bool whole = recipe_->graphs == "full";
    // Qwen3-30B on 16 H100 got 15 % faster, a DeepSeek-V3 of 14 layers on 64 H100 7.8 %: 0.37 and
    // 0.2 of the shorter pass (Megatron-Core's pages, 2026). Nobody measured it within a rack.
    if (!whole) setting.cluster.pair_overlap = 0.3;
    assume(
        fmt::format("experts' exchanges overlap with another micro-batch, as its recipe has it: {}",
                    whole ? "as well as they can" : "0.3 of the shorter pass, as on H100"));
    return true;
  }

  void set_schedule(SettingRequest& setting) {
    std::string spelled = spelled_schedule();
    if (spelled == "interleaved_1f1b" && (point_.pipeline == 1 || point_.chunks == 1)) {
      spelled = "1f1b";
    }
    // Megatron-LM sends and receives in one batch, which ends when both are done.
    if (lower_case(point_.schedule) != "interleaved_1f1b" && spelled == "1f1b" &&
        software_ == Software::megatron_2021) {
      setting.messages = Messages::batched;
    }
    try {
      std::vector<ScheduleSpec>& asked = question_.request.setting.schedules;
      asked = parse_schedules(spelled);
      const Scheduler& scheduler = *asked.front().scheduler;
      const auto chunks = std::find_if(scheduler.knobs.begin(), scheduler.knobs.end(),
                                       [](const Knob& knob) { return knob.name == "chunks"; });
      if (point_.chunks > 1 && chunks != scheduler.knobs.end()) {
        asked = parse_schedules(
            fmt::format("{}{}chunks={}", spelled, holds(spelled, ":") ? "," : ":", point_.chunks));
      }
      if (overlaps_experts(setting)) {
        asked = parse_schedules(stageline::spelled(asked.front()) +
                                (asked.front().knobs.empty() ? ":" : ",") + "overlap=experts");
      }
    } catch (const UsageError&) {
      question_.why_not = fmt::format("there is no schedule \"{}\"", point_.schedule);
      return;
    }
    set_partition(setting);
  }

  // Into as many stages as the schedule has on the row's pipeline; 0: its stages are its own.
  std::int64_t stages_of(const ScheduleSpec& spec) {
    if (spec.scheduler->place == nullptr) return 0;
    return spec.scheduler->place(point_.pipeline, spec.knobs).stages();
  }

  // As ranges of layers: the embedding is layer 0, the head the last one.
  void set_partition(SettingRequest& setting) {
    const ScheduleSpec& spec = question_.request.setting.schedules.front();
    const std::int64_t printed = std::int64_t{1} * point_.pipeline * point_.chunks;
    if (printed > std::min<std::int64_t>(point_.config.layers + 2, most_stages)) {
      question_.why_not =
          fmt::format("{} blocks are too few for {} stages", point_.config.layers, printed);
      return;
    }
    std::int64_t stages = 0;
    try {
      stages = stages_of(spec);
    } catch (const UsageError& error) {
      question_.why_not = error.what();
      return;
    }
    if (point_.chunks > 1 && stages != printed && point_.pipeline > 1) {
      question_.why_not =
          fmt::format("{} has {} stages on {} devices, and vp {} makes {}", spelled(spec), stages,
                      point_.pipeline, point_.chunks, printed);
      return;
    }
    if (stages <= 1) return;
    const std::vector<std::int64_t> blocks = blocks_by_stage(point_, stages);
    if (blocks.empty()) {
      question_.why_not =
          fmt::format("{} blocks are too few for {} stages", point_.config.layers, stages);
      return;
    }
    const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
    if (*least != *most) {
      assume(fmt::format("{} blocks on the first stage, {} on the last, {} at most", blocks.front(),
                         blocks.back(), *most));
    }
    setting.partition.clear();
    std::int64_t next = 0;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const bool last = stage + 1 == blocks.size();
      const std::int64_t ends = (stage == 0 ? 1 : 0) + (last ? (predicts_more() ? 2 : 1) : 0);
      const std::int64_t count = blocks[stage] + ends;
      setting.partition += fmt::format("{}{}-{}", stage > 0 ? "," : "", next, next + count - 1);
      next += count;
    }
  }

  // As --recompute takes it; empty: it is not known.
  std::string recomputation(const std::string& asked) {
    if (asked == "full") return "every:1";
    if (asked == "selective per op") return "ops";
    if (asked != "selective") return "";
    if (holds(point_.framework, "torchtitan")) {
      // selective_ac_option = "op" (torchtitan/train_configs/llama3_8b.toml, 2025).
      assume("selective recomputation is by ops, as in the recipe");
      return "ops";
    }
    if (!is_plain(software_)) {
      assume("selective recomputation runs the fused attention again, whose output is kept");
    }
    return asked;
  }

  void set_recomputation(SettingRequest& setting) {
    const std::string asked = lower_case(point_.recompute);
    std::string words = asked.empty() ? recipe_recomputation() : recomputation(asked);
    if (asked.empty()) {
      assume(words.empty()
                 ? "recomputation is not printed: none"
                 : fmt::format("recomputation is not printed: {}, as its recipe has it", words));
    }
    if ((asked.empty() && words.empty()) || asked == "none") return;
    if (words.empty()) {
      question_.why_not = fmt::format("recomputation \"{}\" is not known", point_.recompute);
      return;
    }
    setting.recomputation = parse_recomputation(words, "recompute");
    // Checkpointing runs the forward again inside the backward, when the gradient is there.
    setting.recomputation.start = RecomputeStart::late;
  }

  void set_offloading(SettingRequest& setting) {
    if (recipe_ == nullptr || recipe_->offloaded == 0) return;
    if (!setting.recomputation.parts.empty()) {
      assume(fmt::format("its recipe offloads {} layers where nothing is recomputed: none is here",
                         recipe_->offloaded));
      return;
    }
    setting.offloading.blocks = recipe_->offloaded;
    assume(fmt::format("activations of {} layers wait in the host's memory, as its recipe has it",
                       recipe_->offloaded));
  }

  const Point& point_;
  const std::optional<Calibration>& calibration_;
  Software software_;
  PointHardware hardware_;
  const BridgeRecipe* recipe_;  // null: none is known
  std::int64_t micro_batch_ = 0;
  std::int64_t global_batch_ = 0;
  Question question_;
};

}  // namespace

std::int64_t microbatches_of(const Point& point) {
  const std::int64_t each = point.micro_batch * point.data;
  return each > 0 ? point.global_batch / each : 0;
}

std::vector<std::int64_t> blocks_by_stage(const Point& point, std::int64_t stages) {
  const std::int64_t layers = point.config.layers;
  std::vector<std::int64_t> blocks;
  // Embedding and head count as a block each.
  const std::int64_t units = layers + 2;
  if (stages < 1 || stages > units) return blocks;
  if (holds(point.framework, "DeepSpeed")) {
    const std::int64_t most = (layers + stages - 1) / stages;
    for (std::int64_t left = layers; as_size(stages) > blocks.size();) {
      blocks.push_back(std::min(left, most));
      left -= blocks.back();
    }
    if (stages > 1 && blocks[blocks.size() - 2] == 0) blocks.clear();
    return blocks;
  }
  if (layers % stages == 0) return std::vector<std::int64_t>(as_size(stages), layers / stages);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    blocks.push_back(units / stages + (stage < units % stages ? 1 : 0));
  }
  blocks.front() -= 1;
  blocks.back() -= 1;
  return blocks;
}

Question question_of(const Point& point, const std::optional<Calibration>& calibration,
                     const RunPace& pace) {
  return QuestionWriter(point, calibration, pace).write();
}

}  // namespace stageline
