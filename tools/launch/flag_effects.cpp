// What arguments without a row of the table do to times and memory.
#include <algorithm>
#include <array>
#include <string>

#include "tools/launch/flag_table.hpp"

namespace stageline {
namespace {

// What changes times or memory and has no row: by Megatron's names, then the others'. A name that
// ends in * is the beginning of several.
constexpr auto with_effect = std::to_array<std::string_view>({
    "overlap-param-gather",
    "overlap-param-gather-with-optimizer-step",
    "overlap-param-gather-with-step",
    "overlap-param-sync",
    "align-grad-reduce",
    "align-param-gather",
    "no-overlap-p2p-communication",
    "overlap-p2p-*",
    "cpu-offloading*",
    "optimizer-cpu-offload",
    "optimizer-offload-fraction",
    "use-torch-optimizer-for-cpu-offload",
    "overlap-cpu-optimizer-*",
    "fine-grained-activation-offloading",
    "offload-modules",
    "delay-wgrad-compute",
    "defer-embedding-wgrad-compute",
    "wgrad-deferral-limit",
    "no-gradient-accumulation-fusion",
    "gradient-accumulation-fusion",
    "no-*-fusion",
    "qk-layernorm",
    "qk-l2-norm",
    "rampup-batch-size",
    "ddp-bucket-size",
    "ddp-num-buckets",
    "enable-cuda-graph",
    "external-cuda-graph",
    "cuda-graph-*",
    "full-cuda-graph",
    "deterministic-mode",
    "moe-pad-expert-input-to-capacity",
    "moe-layer-recompute",
    "moe-shared-expert-overlap",
    "distribute-saved-activations",
    "tp-comm-*",
    "ub-*",
    "first-last-*",
    "num-layers-at-*",
    "fp4*",
    "expert-bias",
    "empty-unused-memory-level",
    "optimizer",
    "is-hybrid-model",
    "hybrid-*",
    "mamba-*",
    "vision-*",
    "encoder-*-parallel-size",
    "standalone-embedding-stage",
    "parallel-attention",
    "apply-layernorm-1p",
    "window-attn-skip-freq",
    "q-lora-rank",
    "*-fusion",
    "ffn-dropout",
    "num-micro-batches-with-partial-*",
    "activations-checkpoint-layers-per-pipeline",
    "grad-allreduce-chunk-size-mb",
    "megatron-amp-*",
});
constexpr auto with_effect_in_documents = std::to_array<std::string_view>({
    "parallelism.enable_compiled_autograd",
    "parallelism.pipeline_parallel_split_points",

    "parallelism.pipeline_parallel_first_stage_less_layers",
    "parallelism.pipeline_parallel_last_stage_less_layers",
    "parallelism.disable_loss_parallel",
    "parallelism.expert_parallel_comm_backend",
    "training.enable_cpu_offload",
    "training.mixed_precision_reduce",
    "quantize.*",
    "float8.*",
    "mx.*",
    "optimizer.*",
    "activation_checkpoint.*",

    "zero_optimization.offload_*",
    "zero_optimization.stage3_*",
    "zero_optimization.reduce_*",
    "zero_optimization.zero_*",
    "zero_optimization.*bucket*",
    "activation_checkpointing.*",
    "data_types.*",
    "sequence_parallel*",
});

// What is without effect on times and memory.
constexpr auto without_effect = std::to_array<std::string_view>({
    "data-path",
    "data-*",
    "*-data-path",
    "tokenizer-*",
    "vocab-file",
    "merge-file",
    "split",
    "save",
    "load",
    "save-*",
    "eval-*",
    "log-*",
    "lr",
    "lr-*",
    "min-lr",
    "weight-decay*",
    "clip-grad",
    "adam-*",
    "sgd-*",
    "init-method*",
    "seed",
    "train-iters",
    "train-samples",
    "train-*",
    "tensorboard-*",
    "wandb-*",
    "distributed-*",
    "exit-*",
    "norm-epsilon",
    "layernorm-epsilon",
    "rotary-*",
    "rope-*",
    "use-rope-scaling",
    "use-mcore-models",
    "use-legacy-models",
    "max-position-embeddings",
    "make-vocab-size-divisible-by",
    "no-load-*",
    "no-save-*",
    "ckpt-*",
    "dist-ckpt*",
    "use-dist-ckpt*",
    "use-checkpoint-*",
    "async-save",
    "num-workers",
    "timing-*",
    "initial-loss-scale",
    "loss-scale*",
    "hysteresis",
    "min-loss-scale",
    "moe-router-*",
    "moe-aux-loss-coeff",
    "moe-z-loss-coeff",
    "moe-input-jitter-eps",
    "moe-grouped-gemm",
    "moe-permute-fusion",
    "moe-per-layer-logging",
    "manual-gc*",
    "profile*",
    "te-rng-tracker",
    "mock-data",
    "override-opt_param-scheduler",
    "override-opt-param-scheduler",
    "finetune",
    "no-mmap-bin-files",
    "no-create-attention-mask-in-dataloader",
    "no-check-for-nan-in-loss-and-grad",
    "check-for-nan-*",
    "dataloader-type",
    "reset-*",
    "eod-mask-loss",
    "squared-relu",
    "attention-softmax-in-fp32",
    "apply-query-key-layer-scaling",
    "ckpt-format",
    "local-rank",
    "rerun-mode",
    "rank",
    "master-*",
    "node-rank",
    "one-logger-*",
    "fp8-margin",
    "fp8-interval",
    "fp8-amax-*",
    "fp8-amax*",
    "mtp-loss-scaling-factor",
    "non-persistent-*",
    "start-weight-decay",
    "end-weight-decay",
    "decoupled-*",
    "inference-*",
    "rl-*",
    "no-rope-freq",
    "cross-entropy-fusion-impl",
    "create-*",
    "use-tokenizer-*",
    "yaml-cfg",
    "pre-process",
    "post-process",
    "mcore-gpt",
    "use-scaled-init-method",
    "do-layer-norm-weight-decay",
    "persist-layer-norm",
    "transformer-block-type",
    "normalize-attention-scores",
    "attention-type",
    "native-amp-*",
    "gradient-as-bucket-view",
    "get-attention-mask-from-fusion",
    "apex-transformer-log-level",
    "onnx-safe",
    "transformer-engine",
    "reduce-amax",
    "batch-p2p-comm",
    "resume-*",
    "restore-from-path",
    "calculate-per-token-loss",
    "tiktoken-*",
    "no-position-embedding",
});
constexpr auto without_effect_in_documents = std::to_array<std::string_view>({
    "job.*",
    "profiling.*",
    "metrics.*",
    "lr_scheduler.*",
    "checkpoint.*",
    "comm.*",
    "validation.*",
    "experimental.custom_*",
    "training.steps",
    "training.dataset*",
    "hf_assets_path",
    "profiler.*",
    "dataloader.*",
    "validator.*",
    "training.max_norm",
    "training.seed",
    "training.gc_*",
    "training.deterministic",
    "optimizer.lr",
    "optimizer.eps",
    "optimizer.name",
    "optimizer.beta*",
    "optimizer.weight_decay",
    "optimizer.params.*",
    "optimizer.type",
    "model.hf_assets_path",
    "model.tokenizer_path",
    "model.norm_type",
    "model.print_after_conversion",
    "compile.components",
    "fault_tolerance.*",
    "memory_estimation.*",
    "scheduler.*",
    "gradient_clipping",
    "steps_per_print",
    "wall_clock_breakdown",
    "fp16.*",
    "bf16.*",
    "tensorboard.*",
    "wandb.*",
    "csv_monitor.*",
    "flops_profiler.*",
    "prescale_gradients",
    "zero_allow_untested_optimizer",
});

// Sections of NeMo's and Megatron-Bridge's documents without effect but for what has a row.
constexpr auto sections_without_effect = std::to_array<std::string_view>(
    {"name", "exp-manager.*", "trainer.*", "*tokenizer.*", "*.data.*", "*optim.*",
     "*nsys-profile.*", "dataset.*", "checkpoint.*", "logger.*", "scheduler.*", "optimizer.*",
     "rng.*", "train.*", "dist.*", "validation.*", "profiling.*"});

// "save-*" of "save-interval", "no-*-fusion" of "no-rope-fusion".
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star);
  if (!name.starts_with(before)) return false;
  const std::string_view after = pattern.substr(star + 1);
  for (std::size_t at = before.size(); at <= name.size(); ++at) {
    if (matches(after, name.substr(at))) return true;
  }
  return false;
}

template <std::size_t n>
bool any_matches(const std::array<std::string_view, n>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return matches(pattern, name); });
}

}  // namespace

LaunchEffect effect_of(Framework framework, std::string_view name) {
  std::string key(name);
  if (is_megatron(framework)) {
    std::replace(key.begin(), key.end(), '_', '-');
    if (any_matches(sections_without_effect, key)) return LaunchEffect::none;
    key.erase(0, key.rfind('.') + 1);
    if (any_matches(without_effect, key)) return LaunchEffect::none;
    return any_matches(with_effect, key) ? LaunchEffect::left_out : LaunchEffect::unknown;
  }
  if (any_matches(without_effect_in_documents, key)) return LaunchEffect::none;
  return any_matches(with_effect_in_documents, key) ? LaunchEffect::left_out
                                                    : LaunchEffect::unknown;
}

}  // namespace stageline
