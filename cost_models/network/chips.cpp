// Measured rates of collectives: every number with the table it was read from.
#include "cost_models/network/chips.hpp"

#include <algorithm>
#include <array>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::string_view vtrain =
    "nccl-tests on A100 SXM, all-reduce of 1 MiB to 1 GiB in steps of 1 MiB: VIA-Research/vTrain, "
    "trace/a100";
constexpr std::string_view h200 =
    "nccl-tests on 8 H200, 16 GiB: stas00/ml-engineering, network/benchmarks (ring 367, all-gather "
    "361, reduce-scatter 363 GB/s)";
constexpr std::string_view hopper = "as the H200, whose NVLink and NVSwitch are the same";
constexpr std::string_view h200_sizes =
    "two lines through nccl-tests on 8 H200 with NVLS, 1 MiB to 1 GiB: stas00/ml-engineering, "
    "network/benchmarks";
constexpr std::string_view source_of_b200 =
    "derived from the measured NVLS bandwidth (750 GB/s) by NCCL's efficiency of NVLS, 0.74";
constexpr std::string_view b200_sizes =
    "two lines through nccl-tests on 8 B200, 1 MiB to 1 GiB: stas00/ml-engineering, "
    "network/benchmarks";
constexpr std::string_view same_as_b200 = "as the B200, whose NVLink and NVSwitch are the same";
constexpr std::string_view share_of_a100 =
    "derived: of its own NVLink the share that the A100 reaches, 0.76";
constexpr std::string_view share_of_h200 =
    "derived: of its own NVLink the share that the H200 reaches, 0.81; DeepEP's documentation says "
    "160 GB/s (deepseek-ai/DeepEP, docs/legacy.md)";
constexpr std::string_view no_table = "no table: links as the cluster states them";

constexpr std::array known_chips{
    Chip{"v100", Generation::volta, 150e9, 0, 0, 0, no_table},
    Chip{"a100", Generation::ampere, 300e9, 228.2e9, 0, 0, vtrain},
    Chip{"a800", Generation::ampere, 200e9, 152e9, 0, 0, share_of_a100},
    Chip{"rtx3090", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"a6000", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"a10", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"rtx4090", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"l40s", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"l4", Generation::ampere, 0, 0, 0, 0, no_table},
    Chip{"rtx5090", Generation::blackwell, 0, 0, 0, 0, no_table},
    Chip{"h100", Generation::hopper, 450e9, 367e9, 361e9, 363e9, hopper},
    Chip{"h200", Generation::hopper, 450e9, 367e9, 361e9, 363e9, h200},
    Chip{"h20", Generation::hopper, 450e9, 367e9, 361e9, 363e9, hopper},
    Chip{"h800", Generation::hopper, 200e9, 163e9, 160e9, 161e9, share_of_h200},
    Chip{"b200", Generation::blackwell, 900e9, 652e9, 0, 0, source_of_b200},
    Chip{"gb200", Generation::blackwell, 900e9, 652e9, 0, 0, source_of_b200},
    Chip{"b300", Generation::blackwell, 900e9, 652e9, 0, 0, same_as_b200},
    Chip{"gb300", Generation::blackwell, 900e9, 652e9, 0, 0, same_as_b200},
};

// 2 to 8 ranks.
constexpr std::array a100_all_reduce{193e9, 210e9, 219e9, 223e9, 225e9, 227e9, 228.2e9};

constexpr double a100_alpha(int ranks) { return (36.8 + 6.15 * ranks) * 1e-6; }

constexpr MeasuredLine ring_of_a100(int ranks) {
  return {"a100",
          "ring",
          CollectiveKind::all_reduce,
          ranks,
          a100_alpha(ranks),
          nth(a100_all_reduce, ranks - 2),
          vtrain};
}

// Small sizes among 2 and 4 GPUs lie below the law above.
constexpr MeasuredLine of_small_a100(int ranks, double alpha, double bandwidth) {
  return {"a100", "ring", CollectiveKind::all_reduce, ranks, alpha, bandwidth, vtrain};
}

constexpr MeasuredLine of_nvls(std::string_view kind, double alpha, double bandwidth,
                               std::string_view source) {
  return {kind, "nvls", CollectiveKind::all_reduce, 8, alpha, bandwidth, source};
}

constexpr std::array line_table{
    ring_of_a100(2),
    ring_of_a100(3),
    ring_of_a100(4),
    ring_of_a100(5),
    ring_of_a100(6),
    ring_of_a100(7),
    ring_of_a100(8),
    of_small_a100(2, 40e-6, 180e9),
    of_small_a100(4, 46e-6, 200e9),
    of_nvls("h100", 40e-6, 300e9, hopper),
    of_nvls("h100", 95e-6, 475e9, hopper),
    of_nvls("h200", 40e-6, 300e9, h200_sizes),
    of_nvls("h200", 95e-6, 475e9, h200_sizes),
    of_nvls("h20", 40e-6, 300e9, hopper),
    of_nvls("h20", 95e-6, 475e9, hopper),
    of_nvls("b200", 52e-6, 420e9, b200_sizes),
    of_nvls("b200", 110e-6, 750e9, b200_sizes),
    of_nvls("gb200", 52e-6, 420e9, b200_sizes),
    of_nvls("gb200", 110e-6, 750e9, b200_sizes),
    of_nvls("b300", 52e-6, 420e9, same_as_b200),
    of_nvls("b300", 110e-6, 750e9, same_as_b200),
    of_nvls("gb300", 52e-6, 420e9, same_as_b200),
    of_nvls("gb300", 110e-6, 750e9, same_as_b200),
};

}  // namespace

int multiprocessors(Generation generation) {
  switch (generation) {
    case Generation::volta:
      return 80;
    case Generation::ampere:
      return 108;
    case Generation::hopper:
      return 132;
    case Generation::blackwell:
      return 148;
  }
  return 132;  // unreachable; g++ wants it
}

std::span<const Chip> chips() { return known_chips; }

const Chip* chip_of(std::string_view kind) {
  const std::string_view family = kind.substr(0, kind.find('-'));
  const auto* const found = std::find_if(known_chips.begin(), known_chips.end(),
                                         [&](const Chip& chip) { return chip.kind == family; });
  return found == known_chips.end() ? nullptr : found;
}

double nvlink_ring_rate(const Chip& chip, CollectiveKind kind, int ranks) {
  if (chip.kind == "a100") {
    return nth(a100_all_reduce, std::clamp(ranks, 2, 8) - 2);
  }
  switch (kind) {
    case CollectiveKind::all_gather:
      return chip.all_gather > 0 ? chip.all_gather : chip.all_reduce;
    case CollectiveKind::reduce_scatter:
      return chip.reduce_scatter > 0 ? chip.reduce_scatter : chip.all_reduce;
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      return chip.all_reduce;
  }
  return 0;
}

std::span<const MeasuredLine> measured_lines() { return line_table; }

}  // namespace stageline
