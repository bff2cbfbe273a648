// The table of ailments. How rare each is, nobody measured: they are ranked as the threads of
// users' forums name them (Megatron-LM, torchtitan, NeMo, DeepSpeed, read 2026-11), by hand. How
// far strengths go follows from data sheets: eight ports of 400 Gbit/s beside one of 25 to 100
// Gbit/s with TCP are 1/32 to 1/128, and NVLink's 450 GB/s beside PCIe's 12 to 25 GB/s a way 1/18
// to 1/37.
#include "tools/answers/ailments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::answers {
namespace {

using Run = const PredictedRun&;
using Changed = SettingRequest&;

bool is_model(Run run) { return run.request.trace.starts_with("model:"); }

bool says(Run run, std::string_view key) {
  return run.request.trace.find(fmt::format(",{}=", key)) != std::string::npos;
}

// An option of the model's spelling, which must not be there yet.
bool with_option(Run run, std::string_view key, const std::string& value, Changed request) {
  if (!is_model(run) || says(run, key)) return false;
  request.trace += fmt::format(",{}={}", key, value);
  return true;
}

bool with_slow(const std::string& name, double factor, Changed request) {
  request.slow.push_back({name, factor});
  return true;
}

// Devices that are slower must not move the stages' borders: the run has those that it has.
void keep_cut(Run run, Changed request) {
  const std::vector<int>& stage_of = run.outcome.plan.partition.stage_of;
  if (!std::is_sorted(stage_of.begin(), stage_of.end())) return;
  std::string ranges;
  for (std::size_t first = 0; first < stage_of.size();) {
    const auto end = std::upper_bound(stage_of.begin(), stage_of.end(), stage_of[first]);
    const std::size_t last = as_size(end - stage_of.begin()) - 1;
    ranges += fmt::format("{}{}-{}", ranges.empty() ? "" : ",", first, last);
    first = last + 1;
  }
  request.partition = ranges;
}

bool slow_network(Run, double factor, Changed request) {
  return with_slow("network", factor, request);
}

bool slow_nvlink(Run, double factor, Changed request) {
  return with_slow("nvlink", factor, request);
}

bool slow_device(Run run, double factor, Changed request) {
  const Cluster& all = run.asked.all_devices();
  if (all.devices.size() < 2) return false;
  keep_cut(run, request);
  return with_slow(all.devices[all.devices.size() / 2].name, factor, request);
}

bool slow_devices(Run run, double factor, Changed request) {
  keep_cut(run, request);
  return with_slow("*", factor, request);
}

bool plain_attention(Run run, double, Changed request) {
  return with_option(run, "attention", "plain", request);
}

bool unfused(Run run, double, Changed request) { return with_option(run, "fused", "no", request); }

bool slow_launches(Run run, double milliseconds, Changed request) {
  return run.request.cuda_graphs != "full" &&
         with_option(run, "layer_floor", fmt::format("{:g}ms", milliseconds), request);
}

bool no_graphs(Run run, double, Changed request) {
  if (run.request.cuda_graphs.empty() || run.request.cuda_graphs == "none") return false;
  request.cuda_graphs = "none";
  return true;
}

bool fp32_products(Run run, double, Changed request) {
  if (!is_model(run)) return false;
  const std::size_t at = run.request.trace.find(",dtype=tf32");
  if (at == std::string::npos) return false;
  request.trace.replace(at, std::string_view(",dtype=tf32").size(), ",dtype=fp32");
  return true;
}

bool wide_products(Run run, double, Changed request) {
  const std::size_t at = run.request.trace.find(",dtype=");
  if (at == std::string::npos) return false;
  const std::size_t end = std::min(run.request.trace.find(',', at + 1), run.request.trace.size());
  const std::string dtype = run.request.trace.substr(at + 7, end - at - 7);
  if (dtype == "bf16" || dtype == "fp16" || dtype == "fp32" || dtype == "tf32") return false;
  request.trace.replace(at, end - at, ",dtype=bf16");
  return true;
}

// Without autocast, or where the framework's flag of 16 bits is missing.
bool products_in_tf32(Run run, double, Changed request) {
  if (!is_model(run)) return false;
  if (!says(run, "dtype")) return with_option(run, "dtype", "tf32", request);
  for (const std::string_view narrow : {",dtype=bf16", ",dtype=fp16"}) {
    const std::size_t at = run.request.trace.find(narrow);
    if (at == std::string::npos) continue;
    request.trace.replace(at, narrow.size(), ",dtype=tf32");
    return true;
  }
  return false;
}

bool recomputing(Run run, double, Changed request) {
  if (!run.request.recomputation.parts.empty()) return false;
  request.recomputation = parse_recomputation("every:1", "--recompute");
  return true;
}

bool reductions_behind(Run run, double, Changed request) {
  if (run.request.buckets == "none" || run.request.degrees.data < 2) return false;
  request.buckets = "none";
  return true;
}

bool gathers_every_time(Run run, double, Changed request) {
  const Degrees& degrees = run.request.degrees;
  const bool divides = degrees.zero == Zero::gradients || degrees.zero == Zero::weights;
  const bool usual_once = run.outcome.devices > 1;  // beside a pipeline
  const bool once = degrees.zero_every ? *degrees.zero_every == ZeroEvery::step : usual_once;
  if (!divides || !once) return false;
  request.degrees.zero_every = ZeroEvery::microbatch;
  return true;
}

bool even_blocks(Run run, double, Changed request) {
  if (!is_model(run) || run.request.partition != "balanced") return false;
  request.partition = "blocks";
  return true;
}

bool fewer_microbatches(Run run, double divisor, Changed request) {
  const int pipelines = run.asked.pipelines();
  const int each = run.outcome.microbatches / std::max(1, pipelines);
  const auto fewer = static_cast<int>(each / divisor);
  if (fewer < 1 || fewer == each) return false;
  request.microbatches = fewer;
  return true;
}

bool one_microbatch(Run run, double, Changed request) {
  const int each = run.outcome.microbatches / std::max(1, run.asked.pipelines());
  if (each < 2 || run.outcome.devices < 2) return false;
  request.microbatches = 1;
  return true;
}

bool uneven_experts(Run run, double factor, Changed request) {
  return run.request.degrees.expert > 1 &&
         with_option(run, "imbalance", fmt::format("{:g}", factor), request);
}

// Over the links that most of the tokens take.
bool slow_exchange(Run run, double factor, Changed request) {
  const Degrees& degrees = run.request.degrees;
  if (degrees.expert < 2) return false;
  const std::vector<Device>& devices = run.asked.all_devices().devices;
  const int host = devices.front().host;
  const auto beside = std::count_if(devices.begin(), devices.end(),
                                    [&](const Device& device) { return device.host == host; });
  return with_slow(degrees.expert > beside ? "network" : "nvlink", factor, request);
}

bool by_nccl(Run run, double, Changed request) {
  return run.request.degrees.expert > 1 && with_option(run, "dispatch", "nccl", request);
}

bool blocking_messages(Run run, double, Changed request) {
  if (run.outcome.devices < 2 || run.request.messages) return false;
  request.messages = Messages::blocking;
  return true;
}

// ---- faster than predicted ----

bool not_recomputing(Run run, double, Changed request) {
  if (run.request.recomputation.parts.empty()) return false;
  request.recomputation = parse_recomputation("none", "--recompute");
  return true;
}

bool with_graphs(Run run, double, Changed request) {
  if (!is_model(run) || run.request.cuda_graphs == "full" || says(run, "graphs")) return false;
  request.cuda_graphs = "full";
  return true;
}

bool better_attention(Run run, double, Changed request) {
  return with_option(run, "attention", "cudnn", request);
}

bool hidden_tensor_exchange(Run run, double share, Changed request) {
  return run.request.degrees.tensor > 1 && run.request.sequence_parallel &&
         with_option(run, "tp_overlap", fmt::format("{:g}", share), request);
}

bool fast_dispatch(Run run, double, Changed request) {
  return run.request.degrees.expert > 1 && with_option(run, "dispatch", "deepep", request);
}

constexpr std::array known_ailments{
    Ailment{"slow network",
            "the network between machines carries 1/{} of its rate (at 1/20 to 1/100 like TCP in "
            "place of RDMA)",
            "all_reduce_perf of nccl-tests over all machines; NCCL_DEBUG=INFO names NET/IB or "
            "NET/Socket",
            {2, 10, 100},
            0.3,
            true,
            slow_network,
            "--slow"},
    Ailment{"slow links in a machine",
            "links between devices of a machine carry 1/{} of their rate (as PCIe in place of "
            "NVLink)",
            "nvidia-smi topo -m, and all_reduce_perf of nccl-tests in one machine",
            {2, 6, 30},
            1.2,
            true,
            slow_nvlink,
            "--slow"},
    Ailment{"one slow device",
            "one device takes {} times as long, and all wait for it",
            "nvidia-smi -q -d CLOCK,PERFORMANCE on every machine: a lower clock, or a throttle",
            {1.1, 1.3, 2},
            0.9,
            true,
            slow_device,
            "--slow"},
    Ailment{"lower clocks",
            "all devices take {} times as long (a power cap, or heat)",
            "nvidia-smi --query-gpu=clocks.sm,power.draw,power.limit while it trains",
            {1.05, 1.15, 1.3},
            1.0,
            true,
            slow_devices,
            "--slow"},
    Ailment{"attention is not fused",
            "attention writes and reads its scores",
            "a profile: softmax kernels and batched products in place of flash or fmha kernels",
            {1, 0, 0},
            0.5,
            true,
            plain_attention,
            "attention=plain"},
    Ailment{"kernels are not fused",
            "norms, activations and adds are kernels of their own",
            "a profile: many elementwise kernels between products; no torch.compile, no "
            "Transformer Engine",
            {1, 0, 0},
            0.5,
            true,
            unfused,
            "fused=no"},
    Ailment{"the CPU issues kernels slowly",
            "the CPU takes {} ms to issue the forward of a block",
            "a profile: gaps between kernels; py-spy, CPU affinity, --cuda-graphs",
            {5, 10, 30},
            0.6,
            true,
            slow_launches,
            "layer_floor={}ms"},
    Ailment{"no CUDA graphs",
            "steps are not recorded as CUDA graphs",
            "a profile: no graph launch",
            {1, 0, 0},
            0.5,
            true,
            no_graphs,
            "--cuda-graphs none"},
    Ailment{"fp32 products",
            "products are in fp32, not in TF32",
            "torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision()",
            {1, 0, 0},
            0.1,
            true,
            fp32_products,
            "dtype=fp32"},
    Ailment{"products in 32 bits",
            "products are in TF32, not in 16 bits",
            "--bf16, autocast; a profile: kernels named tf32 or s1688",
            {1, 0, 0},
            0.9,
            true,
            products_in_tf32,
            "dtype=tf32"},
    Ailment{"products in 16 bits",
            "products are in bf16, not in 8 or 4 bits",
            "a profile: no e4m3 or nvfp4 kernels",
            {1, 0, 0},
            0.6,
            true,
            wide_products,
            "dtype=bf16"},
    Ailment{"recomputation",
            "all blocks are recomputed",
            "the launch command: --recompute-granularity full, activation checkpointing",
            {1, 0, 0},
            0.5,
            true,
            recomputing,
            "--recompute every:1"},
    Ailment{"gradients are reduced behind the backward",
            "reductions of gradients do not overlap with the backward",
            "a profile: reduce-scatters behind the last backward; --overlap-grad-reduce",
            {1, 0, 0},
            0.4,
            true,
            reductions_behind,
            "--buckets none"},
    Ailment{"weights are gathered for every micro-batch",
            "ZeRO gathers weights or reduces gradients in every micro-batch",
            "reshard_after_forward, no_sync(), gradient accumulation with FSDP",
            {1, 0, 0},
            0.5,
            true,
            gathers_every_time,
            "--zero-every microbatch"},
    Ailment{"blocks are dealt evenly",
            "stages have equally many blocks, and embedding and head besides",
            "the layers of the first and last stage; --decoder-first-pipeline-num-layers, "
            "--pipeline-model-parallel-layout",
            {1, 0, 0},
            0.3,
            true,
            even_blocks,
            "--partition blocks"},
    Ailment{"fewer micro-batches",
            "a step has 1/{} of the micro-batches",
            "global batch / (micro-batch · dp) of the launch command",
            {2, 4, 8},
            0.8,
            true,
            fewer_microbatches,
            "--microbatches"},
    Ailment{"one micro-batch",
            "a step has one micro-batch, which fills and drains the pipeline",
            "global batch / (micro-batch · dp) of the launch command",
            {1, 0, 0},
            1.0,
            true,
            one_microbatch,
            "--microbatches"},
    Ailment{"experts are loaded unevenly",
            "the most loaded rank's experts take {} times the mean",
            "tokens per expert in the log, or all-to-alls of unequal size in a profile",
            {1.3, 2, 3},
            0.3,
            true,
            uneven_experts,
            "imbalance={}"},
    Ailment{"dispatch of tokens is slow",
            "sending tokens to experts and back takes {} times as long",
            "a profile: the share of dispatch and combine kernels; DeepEP's or HybridEP's own test",
            {2, 5, 20},
            0.3,
            true,
            slow_exchange,
            "--slow"},
    Ailment{"tokens go to experts by NCCL",
            "all-to-alls of NCCL send tokens to experts",
            "--moe-token-dispatcher-type, --moe-flex-dispatcher-backend",
            {1, 0, 0},
            0.5,
            true,
            by_nccl,
            "dispatch=nccl"},
    Ailment{"messages block",
            "sends and receives between stages wait for one another",
            "a profile: SendRecv kernels that last as long as the other stage's compute",
            {1, 0, 0},
            0.9,
            true,
            blocking_messages,
            "--messages blocking"},

    Ailment{"no recomputation",
            "nothing is recomputed",
            "the launch command",
            {1, 0, 0},
            0.5,
            false,
            not_recomputing,
            "--recompute none"},
    Ailment{"CUDA graphs",
            "steps are recorded as CUDA graphs",
            "the launch command",
            {1, 0, 0},
            0.7,
            false,
            with_graphs,
            "--cuda-graphs full"},
    Ailment{"a faster attention kernel",
            "attention is cuDNN's",
            "a profile: the kernels' names",
            {1, 0, 0},
            0.5,
            false,
            better_attention,
            "attention=cudnn"},
    Ailment{"tensor-parallel exchange is hidden",
            "{} of it runs under products",
            "--tp-comm-overlap, async TP",
            {0.3, 0.6, 1},
            0.4,
            false,
            hidden_tensor_exchange,
            "tp_overlap={}"},
    Ailment{"a faster dispatcher",
            "DeepEP sends tokens to experts",
            "--moe-flex-dispatcher-backend",
            {1, 0, 0},
            0.4,
            false,
            fast_dispatch,
            "dispatch=deepep"},
    Ailment{"fewer micro-batches",
            "a step has 1/{} of the micro-batches",
            "global batch / (micro-batch · dp) of the launch command",
            {2, 4, 8},
            0.6,
            false,
            fewer_microbatches,
            "--microbatches"},
};

}  // namespace

std::span<const Ailment> ailments() { return known_ailments; }

std::string with_strength(std::string_view words, double strength) {
  const std::size_t at = words.find("{}");
  if (at == std::string_view::npos) return std::string(words);
  return fmt::format("{}{:.3g}{}", words.substr(0, at), strength, words.substr(at + 2));
}

}  // namespace stageline::answers
