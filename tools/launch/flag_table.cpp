#include "tools/launch/flag_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stageline {
namespace {

using Form = LaunchForm;

// NVIDIA/Megatron-LM megatron/training/arguments.py and megatron/core/transformer/
// transformer_config.py, NVIDIA/NeMo examples/nlp/language_modeling/conf, NVIDIA-NeMo/
// Megatron-Bridge src/megatron/bridge/training/config.py, pytorch/torchtitan
// torchtitan/config/job_config.py, deepspeed.ai docs config-json; read 2026-11-29.
constexpr std::array flags{
    LaunchFlag{"tp", "--tp N", Form::value, "tensor-model-parallel-size tp",
               "parallelism.tensor_parallel_degree training.tensor_parallel_degree",
               "tensor_parallel.autotp_size"},
    LaunchFlag{"pp", "--pp N", Form::value, "pipeline-model-parallel-size",
               "parallelism.pipeline_parallel_degree experimental.pipeline_parallel_degree",
               "pipeline.stages"},
    LaunchFlag{"cp", "--cp N", Form::value, "context-parallel-size",
               "parallelism.context_parallel_degree experimental.context_parallel_degree"},
    LaunchFlag{"ep", "--ep N", Form::value, "expert-model-parallel-size",
               "parallelism.expert_parallel_degree"},
    LaunchFlag{"etp", "--etp N", Form::value, "expert-tensor-parallel-size",
               "parallelism.expert_tensor_parallel_degree"},
    LaunchFlag{"dp_shard", "--dp N --zero 3", Form::value, "",
               "parallelism.data_parallel_shard_degree training.data_parallel_shard_degree"},
    LaunchFlag{"dp_replicate", "--dp N --shard-group N", Form::value, "",
               "parallelism.data_parallel_replicate_degree "
               "training.data_parallel_replicate_degree"},
    LaunchFlag{"machines", "--devices N", Form::value, "num-nodes"},
    LaunchFlag{"devices_each", "--devices N", Form::value, "devices"},
    LaunchFlag{"micro_batch", "--microbatch-size N", Form::value,
               "micro-batch-size micro-batch mbs", "parallelism.pipeline_parallel_microbatch_size",
               "train_micro_batch_size_per_gpu"},
    LaunchFlag{"local_batch", "--microbatch-size N", Form::value, "",
               "training.local_batch_size training.batch_size"},
    LaunchFlag{"global_batch",
               "--microbatches N, which is the global batch over --microbatch-size and --dp, and "
               "to `stageline plan` --samples N",
               Form::value, "global-batch-size gbs", "training.global_batch_size",
               "train_batch_size"},
    LaunchFlag{"accumulation", "--microbatches N", Form::value, "", "",
               "gradient_accumulation_steps"},
    LaunchFlag{"chunks", "--schedule interleaved_1f1b:chunks=N", Form::value,
               "num-virtual-stages-per-pipeline-rank vpp vp "
               "virtual-pipeline-model-parallel-size"},
    LaunchFlag{"layers_per_chunk", "--schedule interleaved_1f1b:chunks=N", Form::value,
               "num-layers-per-virtual-pipeline-stage",
               "parallelism.pipeline_parallel_layers_per_stage"},
    LaunchFlag{"schedule", "--schedule NAME", Form::value, "",
               "parallelism.pipeline_parallel_schedule experimental.pipeline_parallel_schedule"},
    LaunchFlag{"group", "--schedule interleaved_1f1b:group=N", Form::value,
               "microbatch-group-size-per-virtual-pipeline-stage "
               "microbatch-group-size-per-vp-stage"},
    LaunchFlag{"expert_overlap", "--schedule 1f1b:overlap=experts", Form::on,
               "overlap-moe-expert-parallel-comm"},
    LaunchFlag{"layout", "--partition LAYOUT", Form::value, "pipeline-model-parallel-layout"},
    LaunchFlag{"first_blocks", "--partition blocks:first=N", Form::value,
               "decoder-first-pipeline-num-layers num-layers-in-first-pipeline-stage"},
    LaunchFlag{"last_blocks", "--partition blocks:last=N", Form::value,
               "decoder-last-pipeline-num-layers num-layers-in-last-pipeline-stage"},
    LaunchFlag{"module_names", "--partition LAYOUT", Form::value, "",
               "parallelism.module_fqns_per_model_part"},
    LaunchFlag{"reshard", "--zero-every microbatch", Form::value, "",
               "parallelism.fsdp_reshard_after_forward"},
    LaunchFlag{"embedding_counts", "--partition blocks:embedding=1", Form::on,
               "account-for-embedding-in-pipeline-split"},
    LaunchFlag{"head_counts", "--partition blocks:head=1", Form::on,
               "account-for-loss-in-pipeline-split"},
    LaunchFlag{"sequence_parallel", "--sequence-parallel", Form::on, "sequence-parallel"},
    LaunchFlag{"distributed_optimizer", "--zero 1", Form::on, "use-distributed-optimizer"},
    LaunchFlag{"fsdp", "--zero 3", Form::on, "use-megatron-fsdp use-custom-fsdp use-torch-fsdp2"},
    LaunchFlag{"fsdp_strategy", "--zero 1, 2 or 3", Form::value, "data-parallel-sharding-strategy"},
    LaunchFlag{"zero", "--zero N", Form::value, "", "", "zero_optimization.stage"},
    LaunchFlag{"optimizer_instances", "--shard-group N", Form::value,
               "num-distributed-optimizer-instances"},
    LaunchFlag{"optimizer_name", "", Form::value, "optim.name"},
    LaunchFlag{"overlap_reduce", "--buckets megatron, or none without it", Form::on,
               "overlap-grad-reduce overlap-grad-sync", "", "zero_optimization.overlap_comm"},
    LaunchFlag{"recompute_core", "--recompute selective", Form::on, "recompute-activations"},
    LaunchFlag{"recompute", "--recompute", Form::value,
               "recompute-granularity activations-checkpoint-granularity",
               "activation_checkpoint.mode"},
    LaunchFlag{"recompute_method", "--recompute every:N or block:N", Form::value,
               "recompute-method activations-checkpoint-method",
               "activation_checkpoint.selective_ac_option"},
    LaunchFlag{"recompute_layers", "--recompute every:N or block:N", Form::value,
               "recompute-num-layers activations-checkpoint-num-layers", "",
               "pipeline.activation_checkpoint_interval"},
    LaunchFlag{"recompute_modules", "--recompute modules:NAME+…", Form::value, "recompute-modules"},
    LaunchFlag{"offload", "--offload block:N", Form::on, "cpu-offloading"},
    LaunchFlag{"offload_layers", "--offload block:N", Form::value, "cpu-offloading-num-layers"},
    LaunchFlag{"bf16", "--precision bf16", Form::on, "bf16", "", "bf16.enabled bfloat16.enabled"},
    LaunchFlag{"fp16", "--precision fp16", Form::on, "fp16", "", "fp16.enabled"},
    LaunchFlag{"precision", "--precision NAME", Form::value, "precision mixed-precision",
               "training.mixed_precision_param"},
    LaunchFlag{"fp8_format", "dtype=fp8-… behind the model's name", Form::value, "fp8-format fp8"},
    LaunchFlag{"fp8_recipe", "dtype=fp8-… behind the model's name", Form::value, "fp8-recipe",
               "quantize.linear.float8.recipe_name float8.recipe_name"},
    LaunchFlag{"fp8_weights", "--precision fp8-current and the like", Form::on,
               "fp8-param-gather fp8-param"},
    LaunchFlag{"reduce_in_bf16", "--precision mixed", Form::on, "grad-reduce-in-bf16"},
    LaunchFlag{"reduce_in_fp32", "--precision bf16", Form::on,
               "accumulate-allreduce-grads-in-fp32 grad-reduce-in-fp32"},
    LaunchFlag{"aware_optimizer", "--precision precision-aware", Form::on,
               "use-precision-aware-optimizer"},
    LaunchFlag{"gradient_dtype", "--precision precision-aware", Form::value, "main-grads-dtype"},
    LaunchFlag{"moment_dtype", "--precision precision-aware", Form::value, "exp-avg-dtype"},
    LaunchFlag{"second_moment_dtype", "--precision precision-aware", Form::value,
               "exp-avg-sq-dtype"},
    LaunchFlag{"transformer_impl", "", Form::value, "transformer-impl"},
    LaunchFlag{"flash", "attention=flash behind the model's name", Form::on, "use-flash-attn"},
    LaunchFlag{"attention_backend", "attention=flash behind the model's name", Form::value,
               "attention-backend"},
    LaunchFlag{"attention_dropout", "dropout=yes behind the model's name", Form::value,
               "attention-dropout"},
    LaunchFlag{"hidden_dropout", "dropout=yes behind the model's name", Form::value,
               "hidden-dropout"},
    LaunchFlag{"loss_fusion", "loss=fused behind the model's name", Form::on,
               "cross-entropy-loss-fusion"},
    LaunchFlag{
        "tp_overlap", "tp_overlap=SHARE behind the model's name", Form::on,
        "tp-comm-overlap ub-tp-comm-overlap",
        "parallelism.enable_async_tensor_parallel experimental.enable_async_tensor_parallel"},
    LaunchFlag{"cp_exchange", "--cp-comm-type NAME", Form::value, "cp-comm-type",
               "parallelism.context_parallel_rotate_method"},
    LaunchFlag{"cp_parts", "--cp-comm-type a2a+p2p:N", Form::value,
               "hierarchical-context-parallel-sizes"},
    LaunchFlag{"compile", "--software torchtitan-2025", Form::on, "",
               "compile.enable training.compile"},
    LaunchFlag{"model_name", "the model's name", Form::value, "", "model.name"},
    LaunchFlag{"model_flavor", "the model's name", Form::value, "", "model.flavor"},
    LaunchFlag{"converters", "dtype=fp8-current behind the model's name", Form::value, "",
               "model.converters"},
    LaunchFlag{"seq", "seq=N behind the model's name", Form::value,
               "seq-length encoder-seq-length sequence-length", "training.seq_len", "seq-length"},
    LaunchFlag{"layers", "layers=N behind the model's name", Form::value,
               "num-layers encoder-num-layers"},
    LaunchFlag{"hidden", "hidden=N behind the model's name", Form::value, "hidden-size"},
    LaunchFlag{"ffn", "ffn=N behind the model's name", Form::value, "ffn-hidden-size"},
    LaunchFlag{"heads", "heads=N behind the model's name", Form::value, "num-attention-heads"},
    LaunchFlag{"grouped", "kv_heads=N behind the model's name", Form::on, "group-query-attention"},
    LaunchFlag{"kv_heads", "kv_heads=N behind the model's name", Form::value, "num-query-groups"},
    LaunchFlag{"head_width", "head_width=N behind the model's name", Form::value, "kv-channels"},
    LaunchFlag{"vocab", "vocab=N behind the model's name", Form::value,
               "padded-vocab-size vocab-size"},
    LaunchFlag{"tokenizer", "", Form::value, "tokenizer-type"},
    LaunchFlag{"gated", "gated=yes behind the model's name", Form::on, "swiglu gated-linear-unit"},
    LaunchFlag{"activation", "gated=yes behind the model's name", Form::value, "activation"},
    LaunchFlag{"tied", "tied=yes behind the model's name", Form::off,
               "untie-embeddings-and-output-weights"},
    LaunchFlag{"tied", "tied=yes behind the model's name", Form::on,
               "share-embeddings-and-output-weights"},
    LaunchFlag{"norm", "norm=rms behind the model's name", Form::value, "normalization"},
    LaunchFlag{"positions", "positions=rotary behind the model's name", Form::value,
               "position-embedding-type"},
    LaunchFlag{"rotary", "positions=rotary behind the model's name", Form::on,
               "use-rotary-position-embeddings"},
    LaunchFlag{"bias", "bias=yes behind the model's name", Form::off, "disable-bias-linear"},
    LaunchFlag{"bias", "bias=yes behind the model's name", Form::on, "add-bias-linear bias"},
    LaunchFlag{"qkv_bias", "qkv_bias=yes behind the model's name", Form::on, "add-qkv-bias"},
    LaunchFlag{"window", "window=N behind the model's name", Form::value, "window-size"},
    LaunchFlag{"experts", "experts=N behind the model's name", Form::value,
               "num-experts num-moe-experts"},
    LaunchFlag{"topk", "topk=N behind the model's name", Form::value, "moe-router-topk"},
    LaunchFlag{"expert_ffn", "expert_ffn=N behind the model's name", Form::value,
               "moe-ffn-hidden-size"},
    LaunchFlag{"shared_ffn", "shared_ffn=N behind the model's name", Form::value,
               "moe-shared-expert-intermediate-size"},
    LaunchFlag{"expert_groups", "expert_groups=N behind the model's name", Form::value,
               "moe-router-num-groups"},
    LaunchFlag{"topk_groups", "topk_groups=N behind the model's name", Form::value,
               "moe-router-group-topk"},
    LaunchFlag{"expert_blocks", "dense_blocks=N behind the model's name", Form::value,
               "moe-layer-freq"},
    LaunchFlag{"capacity", "capacity=N behind the model's name", Form::value,
               "moe-expert-capacity-factor"},
    LaunchFlag{"dispatcher", "dispatch=NAME behind the model's name", Form::value,
               "moe-token-dispatcher-type"},
    LaunchFlag{"deepep", "dispatch=deepep behind the model's name", Form::on, "moe-enable-deepep"},
    LaunchFlag{"dispatch_backend", "dispatch=NAME behind the model's name", Form::value,
               "moe-flex-dispatcher-backend"},
    LaunchFlag{"mtp", "mtp=N behind the model's name", Form::value, "mtp-num-layers"},
    LaunchFlag{"latent", "a model with latent attention by its name", Form::on,
               "multi-latent-attention"},
};

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string_view names_in(Framework framework, const LaunchFlag& flag) {
  if (framework == Framework::torchtitan) return flag.torchtitan;
  return framework == Framework::deepspeed ? flag.deepspeed : flag.megatron;
}

// As a name, or as the path that ends in it: "model.num-layers" is "num-layers".
bool is_called(std::string_view path, std::string_view name) {
  if (!path.ends_with(name)) return false;
  const std::size_t before = path.size() - name.size();
  return before == 0 || path[before - 1] == '.';
}

bool is_among(std::string_view names, std::string_view path) {
  while (!names.empty()) {
    const std::string_view one = names.substr(0, names.find(' '));
    if (is_called(path, one)) return true;
    names.remove_prefix(std::min(one.size() + 1, names.size()));
  }
  return false;
}

// Megatron's are known with dashes, by the last part of their path.
std::string path_of(Framework framework, std::string_view name) {
  return is_megatron(framework) ? with_dashes(name) : std::string(name);
}

}  // namespace

std::span<const LaunchFlag> launch_flags() { return flags; }

const LaunchFlag* find_launch_flag(Framework framework, std::string_view name) {
  const std::string path = path_of(framework, name);
  const auto* const found = std::find_if(flags.begin(), flags.end(), [&](const LaunchFlag& flag) {
    return is_among(names_in(framework, flag), path);
  });
  return found == flags.end() ? nullptr : found;
}

std::string_view written_name(Framework framework, std::string_view fact) {
  for (const LaunchFlag& flag : flags) {
    if (flag.fact != fact) continue;
    const std::string_view names = names_in(framework, flag);
    return names.substr(0, names.find(' '));
  }
  return {};
}

std::string said_by_stageline(const std::string& flag) {
  const std::string name =
      with_dashes(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  for (const LaunchFlag& row : flags) {
    if (row.ours.empty()) continue;
    for (const Framework framework : all_frameworks) {
      const std::string_view names = names_in(framework, row);
      for (std::size_t at = 0; at < names.size();) {
        const std::size_t end = std::min(names.find(' ', at), names.size());
        const std::string_view one = names.substr(at, end - at);
        if (name == with_dashes(one) || name == with_dashes(one.substr(one.rfind('.') + 1))) {
          return fmt::format("stageline says {}", row.ours);
        }
        at = end + 1;
      }
    }
  }
  return "";
}

}  // namespace stageline
