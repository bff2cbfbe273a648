// The constants of the cost model of language models: their priors, and their values by chip.
#include "cost_models/transformers/kernel_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/bus_bandwidth.hpp"
#include "sim/measured_collective.hpp"

namespace stageline {
namespace {

// Priors: a fit to 109 multi-node runs of vTrain on A100, with widths by which other data sets
// differ from it. A share of an 8-bit peak may be below the 0.4 that 16-bit products keep.
constexpr std::array constants{
    KernelConstant{"gemm", "e_g", "", &KernelRates::gemm, 0.15, 0.2, 0.95,
                   "share of the peak that a large product reaches"},
    KernelConstant{"gemm_8bit", "e_8", "", &KernelRates::gemm_8bit, 0.2, 0.1, 0.95,
                   "share of the 8-bit peak that a large 8-bit product reaches"},
    KernelConstant{"gemm_4bit", "x_4", "", &KernelRates::gemm_4bit, 0.1, 1, 4,
                   "FLOPs a second of 4-bit products over those of 8-bit ones"},
    KernelConstant{"gemm_rows", "M0", "rows", &KernelRates::gemm_rows, 1.0, 0, 5000,
                   "rows at which a product reaches half of that"},
    KernelConstant{"gemm_columns", "N0", "columns", &KernelRates::gemm_columns, 1.0, 0, 5000,
                   "the same of the other two extents, as harmonic mean"},
    KernelConstant{"attention_plain", "e_att", "", &KernelRates::attention_plain, 0.5, 0.02, 1,
                   "share of the peak of attention's products, scores in memory"},
    KernelConstant{"attention_flash", "e_flash", "", &KernelRates::attention_flash, 0.5, 0.02, 1,
                   "share of the peak of fused attention, of the FLOPs below the diagonal"},
    KernelConstant{"attention_kernel", "x_att", "", &KernelRates::attention_kernel, 0.2, 0.2, 2,
                   "of the rates that were measured of attention by fa2, fa3 or cudnn"},
    KernelConstant{"memory", "e_m", "", &KernelRates::memory, 0.2, 0.1, 1,
                   "share of the memory's bandwidth that elementwise kernels reach"},
    KernelConstant{"kernel", "t_k", "s", &KernelRates::kernel, 0.7, 0, 1e-3,
                   "time of a kernel beyond its work"},
    KernelConstant{"layer_floor", "t_cpu", "s", &KernelRates::layer_floor, 0.5, 0, 0.1,
                   "time of the CPU to issue the forward of a block"},
    KernelConstant{"expert_floor", "t_exp", "s", &KernelRates::expert_floor, 0.7, 0, 1e-2,
                   "time of the CPU to cast and issue the forward of one expert in 8 bits"},
    KernelConstant{"optimizer", "t_opt", "s", &KernelRates::optimizer, 0.3, 0, 1e-9,
                   "time of the optimizer a parameter; 0: 30 bytes at the memory's bandwidth"},
    KernelConstant{"step", "t_iter", "s", &KernelRates::step, 0.7, 0, 60,
                   "time a step of data, clipping and logging"},
    KernelConstant{"misaligned", "x_64", "", &KernelRates::misaligned, 0.1, 1, 3,
                   "factor on a product with an extent that is no multiple of 64"},
    KernelConstant{"nvlink", "f_ar", "", &KernelRates::nvlink, 0.15, 0.1, 2,
                   "of the rate that collectives reach over NVLink in nccl-tests"},
    KernelConstant{"network", "f_ib", "", &KernelRates::network, 0.3, 0.1, 2,
                   "of the rate that transfers reach over the network"},
};

// By name, so that a new constant moves none of these.
constexpr KernelRates a100() {
  KernelRates rates;
  rates.gemm = 0.839;
  rates.gemm_rows = 250;
  rates.gemm_columns = 60;
  rates.attention_plain = 0.35;
  rates.attention_flash = 0.33;
  rates.memory = 0.75;
  rates.kernel = 10e-6;
  rates.layer_floor = 2.2e-3;
  rates.optimizer = 15e-12;
  rates.step = 0.05;
  return rates;
}

constexpr KernelRates h100() {
  KernelRates rates;
  rates.gemm = 0.71;
  rates.gemm_8bit = 0.60;
  rates.gemm_rows = 223;
  rates.gemm_columns = 223;
  rates.attention_plain = 0.35;
  rates.attention_flash = 0.20;
  rates.memory = 0.86;
  rates.kernel = 10e-6;
  rates.layer_floor = 2.2e-3;
  rates.step = 0.05;
  return rates;
}

constexpr KernelRates b200() {
  KernelRates rates;
  rates.gemm = 0.46;
  rates.gemm_4bit = 1.42;
  rates.gemm_rows = 83;
  rates.gemm_columns = 83;
  rates.attention_plain = 0.35;
  rates.attention_flash = 0.40;
  rates.memory = 0.67;
  rates.kernel = 10e-6;
  rates.layer_floor = 2.2e-3;
  rates.step = 0.05;
  return rates;
}

constexpr KernelRates gb200() {
  KernelRates rates = b200();
  rates.gemm = 0.60;
  rates.gemm_8bit = 0.52;
  return rates;
}

constexpr KernelRates gb300() {
  KernelRates rates = b200();
  rates.gemm = 0.62;
  rates.gemm_8bit = 0.61;
  rates.gemm_4bit = 1.9;
  return rates;
}

constexpr std::string_view source_of_a100 =
    "share of the peak fitted to 73 multi-node runs of vTrain (arXiv 2312.12391, 512 GPUs at most; "
    "PyTorch FSDP's runs of mosaicml/llm-foundry give 0.829 and 183 product sizes of "
    "MooreThreads/SimuMax on A100 PCIe 0.79); size curve, attention, memory, launch and CPU time "
    "and optimizer fitted to vTrain's profiled layers; flash attention and 0.05 s a step: "
    "llm-foundry and Korthikanti et al. 2022 (arXiv 2205.05198)";
constexpr std::string_view of_h100 =
    "products and memory fitted to PyTorch FSDP's runs on fewer than 64 H100 (mosaicml/llm-foundry, "
    "scripts/train/benchmarking); 8-bit products to six runs of Llama 3 with Megatron-Bridge (NeMo "
    "containers 25.09 and 25.11) beside cuDNN's measured attention and gathers in 8 bits (0.604, "
    "2026-11-30), which leave 3.0 %; fused "
    "attention of PyTorch's to those of llm-foundry and six of torchtitan, which leave 5.7 %; launch "
    "and CPU time and plain attention as on A100";
constexpr std::string_view of_h200 =
    "as the H100, which has the same arithmetic; the memory's share is assumed to be the same of "
    "its own bandwidth";
constexpr std::string_view of_b200 =
    "products and fused attention fitted to 23 measured steps of Llama 3 on 8 B200 "
    "(MooreThreads/SimuMax v1.2), which leave 3.5 % when a model is left out (514 product sizes "
    "timed by the same project reach 0.505, the best of all sizes 0.776: stas00/ml-engineering); "
    "size curve and memory: that project's products and elementwise kernels; 4-bit products: 1.42 "
    "times as fast as 8-bit ones on a B300 (Transformer Engine's GEMM Profiling Tutorial, 9.147 and "
    "6.453 ms, read 2026-11-29); launch and CPU time and plain attention as on A100";
constexpr std::string_view of_gb200 =
    "products of 16 bits fitted to six runs of Nemotron-4 340B (NVIDIA DGX Cloud Benchmarking, 2025) "
    "beside cuDNN's curve of attention (0.597, 2026-11-30), which leave 1.8 %; of 8 bits to those in "
    "FP8 and eleven of Llama 3 70B with Megatron-Bridge (NeMo containers 25.11 to 26.06) beside one "
    "constant of attention (4.0 %; beside the curve the two models disagree, 0.493 leaves 5.1 % and "
    "predicts the other model worse); others as the B200";
constexpr std::string_view of_gb300 =
    "products of 16 bits: a block's twelve on a B300 (Transformer Engine's GEMM Profiling Tutorial, "
    "read 2026-11-29); of 8 bits fitted to nine runs of Llama 3 70B with Megatron-Bridge (NeMo "
    "containers 26.02 to 26.06), which leave 2.5 %, and of 4 bits to four, which leave 7 %; others as the B200";

constexpr std::array known{
    ChipRates{"a100", a100(), source_of_a100}, ChipRates{"h100", h100(), of_h100},
    ChipRates{"h200", h100(), of_h200},        ChipRates{"b200", b200(), of_b200},
    ChipRates{"gb200", gb200(), of_gb200},     ChipRates{"gb300", gb300(), of_gb300},
};

// Kinds that nobody fitted, each with the chip of its architecture: the same die with other memory,
// links or power, or its successor.
struct Relative {
  std::string_view kind;
  std::string_view chip;
};
constexpr std::array relatives{
    Relative{"a800", "a100"},     Relative{"h800", "h100"},      Relative{"h20", "h100"},
    Relative{"h100-nvl", "h100"}, Relative{"h100-pcie", "h100"}, Relative{"gh200", "h100"},
    Relative{"b300", "gb300"},
};

Bandwidth times(Bandwidth bandwidth, double factor) {
  if (bandwidth.is_unlimited()) return bandwidth;
  const double rate = static_cast<double>(bandwidth.bytes_per_second) * factor;
  return Bandwidth{std::max<std::int64_t>(1, std::llround(rate))};
}

}  // namespace

std::span<const KernelConstant> kernel_constants() { return constants; }

std::string_view family_of_kind(std::string_view kind) { return kind.substr(0, kind.find('-')); }

Architecture architecture_of(std::string_view kind) {
  constexpr std::array<std::string_view, 5> hopper{"h100", "h200", "h800", "h20", "gh200"};
  constexpr std::array<std::string_view, 4> blackwell{"b200", "b300", "gb200", "gb300"};
  const std::string_view family = family_of_kind(kind);
  const auto has = [&](const auto& kinds) {
    return std::find(kinds.begin(), kinds.end(), family) != kinds.end();
  };
  if (has(hopper)) return Architecture::hopper;
  return has(blackwell) ? Architecture::blackwell : Architecture::other;
}

std::span<const ChipRates> chip_rates() { return known; }

const ChipRates* find_chip_rates(std::string_view kind) {
  const std::string_view family = family_of_kind(kind);
  const auto* const found = std::find_if(
      known.begin(), known.end(), [&](const ChipRates& chip) { return chip.kind == family; });
  return found == known.end() ? nullptr : found;
}

TakenRates rates_of(std::string_view kind) {
  const auto* found = std::find_if(relatives.begin(), relatives.end(), [&](const Relative& one) {
    return one.kind == kind || one.kind == family_of_kind(kind);
  });
  if (found != relatives.end()) {
    const ChipRates& chip = *find_chip_rates(found->chip);
    return {chip.rates, fmt::format("none are known of {}: those of {}", kind, chip.kind),
            fmt::format("kernel rates of {}: nobody fitted them, the shares of its peak are those "
                        "of the {}",
                        kind, chip.kind)};
  }
  if (const ChipRates* const own = find_chip_rates(kind)) {
    return {own->rates, std::string(own->source), ""};
  }
  return {{},
          fmt::format("none are known of {}: near those of an A100", kind),
          fmt::format("kernel rates of {}: nobody fitted them, the shares of its peak are near "
                      "those of an A100",
                      kind)};
}

Cluster calibrated(Cluster cluster, const KernelRates& rates) {
  for (Link& link : cluster.links) {
    switch (link.tier) {
      case Tier::nvlink:
        link.bandwidth = times(link.bandwidth, rates.nvlink);
        break;
      case Tier::network:
        link.bandwidth = times(link.bandwidth, rates.network);
        break;
      case Tier::other:
      case Tier::pcie:
        break;
    }
  }
  // What was measured on the cluster goes before its links: within one machine, and among several.
  for (MeasuredCollective& measured : cluster.collectives) {
    const double rate = measured.machines == 1 ? rates.nvlink : rates.network;
    measured.bandwidth = times(measured.bandwidth, rate);
    scale_times(measured, rate);
  }
  return cluster;
}

}  // namespace stageline
