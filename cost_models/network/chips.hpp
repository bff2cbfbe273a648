// What collectives reach on devices that were measured.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/model.hpp"

namespace stageline {

/// NVIDIA's generations, by which NCCL chooses its constants.
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };

/// A kind of device, by the name that cluster files give it. Rates of collectives are bus
/// bandwidths of nccl-tests in bytes a second; 0: not measured, and links carry what the cluster
/// states. Where a cluster states another rate of NVLink than the data sheet, as a calibrated one
/// does, collectives reach the same share of it.
struct Chip {
  std::string_view kind;  // "h100"; also of "h100-nvl" and the like
  Generation generation = Generation::ampere;
  double nvlink = 0;          // of a device's NVLink each way, as the data sheet states it
  double all_reduce = 0;      // large ring all-reduce over NVLink, 8 ranks
  double all_gather = 0;      // 0: as all_reduce
  double reduce_scatter = 0;  // 0: as all_reduce
  std::string_view source;
};
std::span<const Chip> chips();

/// Null where the kind is none of chips(). "a100-40gb" is "a100".
const Chip* chip_of(std::string_view kind);

/// SMs of the generation's largest boards: V100 80, A100 108, H100 SXM5 132, B200 148 (data
/// sheets).
int multiprocessors(Generation generation);

/// The bus bandwidth of a large ring over NVLink among that many ranks, in bytes a second; 0 where
/// nothing was measured.
double nvlink_ring_rate(const Chip& chip, CollectiveKind kind, int ranks);

/// The share of a NIC's nominal rate that large collectives reach: 0.80, by two independent fits to
/// measured steps (A100, 200 Gb/s HDR InfiniBand, vTrain's multi-node rows and FSDP's); B200 on EFA
/// reaches 0.73.
inline constexpr double reached_of_nic = 0.80;

/// A line of a measured table, fitted: α + f·S/β, of the sizes where it is the least.
struct MeasuredLine {
  std::string_view kind;       // of device
  std::string_view algorithm;  // that NCCL had chosen
  CollectiveKind collective = CollectiveKind::all_reduce;
  int ranks = 0;
  double alpha = 0;      // seconds
  double bandwidth = 0;  // bus bandwidth, bytes a second
  std::string_view source;
};
std::span<const MeasuredLine> measured_lines();

}  // namespace stageline
