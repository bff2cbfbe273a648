// The generations, oldest first within a family.
#include "cost_models/transformers/software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// Transformer Engine takes cuDNN's attention from Hopper on (its documentation of attention
// backends, read 2026-11-30), PyTorch's SDPA and llm-foundry flash attention.
// cross_entropy_fusion_impl = "te" and grad_reduce_in_fp32 = False in all of them.
constexpr std::string_view bridge =
    "NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs of v0.2.0 to v0.5.1, read 2026-11-29";

constexpr std::array generations{
    SoftwareGeneration{
        "megatron-2021",
        "Megatron-LM and its forks of 2021 to 2023: plain attention, unfused kernels",
        "attention=plain,fused=no,dropout=yes", "",
        "scripts of NVIDIA/Megatron-LM of those years, Korthikanti et al. 2022 (arXiv 2205.05198)"},
    SoftwareGeneration{"deepspeed-2021",
                       "Megatron-DeepSpeed of 2021 and 2022: the same kernels, extents as they are",
                       "attention=plain,fused=no,dropout=yes,alignment=yes", "",
                       "scripts of bigscience-workshop/Megatron-DeepSpeed"},
    SoftwareGeneration{
        "fsdp-2023", "PyTorch FSDP without compilation, with fused attention",
        "attention=flash,fused=no,kernel=28us", "",
        "launches fitted to runs of mosaicml/llm-foundry on fewer than 64 A100 (on H100 43 us)"},
    SoftwareGeneration{"torchtitan-2025",
                       "torchtitan with torch.compile: fused attention and kernels",
                       "attention=flash,fused=yes,loss=torch", "",
                       "pytorch/torchtitan, docs, train configs and components/loss.py"},
    SoftwareGeneration{"megatron-core-2024",
                       "Megatron-Core with Transformer Engine: fused attention and kernels",
                       "attention=cudnn,fused=yes,cp_exchange=p2p", "expert_floor=85us",
                       "NVIDIA/Megatron-LM, core_r0.8 to core_r0.12"},
    SoftwareGeneration{
        "megatron-bridge-2025.11", "Megatron-Bridge 0.1 and 0.2, NeMo containers 25.09 and 25.11",
        "attention=cudnn,fused=yes,loss=fused,cp_exchange=p2p",
        "graphs=partial,dispatch=hybridep,expert_floor=85us,main_gradients=bf16", bridge},
    SoftwareGeneration{
        "megatron-bridge-2026.02", "Megatron-Bridge 0.3 and 0.4, NeMo containers 26.02 and 26.04",
        "attention=cudnn,fused=yes,loss=fused,cp_exchange=p2p",
        "graphs=partial,dispatch=hybridep,expert_floor=85us,main_gradients=bf16", bridge},
    SoftwareGeneration{
        "megatron-bridge-2026.06",
        "Megatron-Bridge from 0.5 on, NeMo containers from 26.06: steps with experts as CUDA graphs",
        "attention=cudnn,fused=yes,loss=fused,cp_exchange=p2p",
        "graphs=full,dispatch=hybridep,expert_floor=85us,main_gradients=bf16", bridge},
};

}  // namespace

std::span<const SoftwareGeneration> software_generations() { return generations; }

const SoftwareGeneration& find_software(std::string_view name) {
  const auto* const found =
      std::find_if(generations.begin(), generations.end(),
                   [&](const SoftwareGeneration& one) { return one.name == name; });
  if (found != generations.end()) return *found;
  std::vector<std::string> known;
  for (const SoftwareGeneration& one : generations) known.emplace_back(one.name);
  throw UsageError(fmt::format("software has no generation '{}'{}; `stageline list` names them",
                               name, did_you_mean(std::string(name), known)));
}

}  // namespace stageline
