// What a link's transport makes of its rate. Measured by others, with NVIDIA's
// p2pBandwidthLatencyTest and nccl-tests; nothing of it was measured by us.
#pragma once

#include <string_view>

#include "sim/base/units.hpp"
#include "sim/cluster.hpp"

namespace stageline {

/// "tcp", as in cluster files; "" of a link as it is stated.
std::string_view name(Transport transport);

/// The most that a link over TCP carries each way: the middle of 10 to 20 Gb/s, which NCCL reaches
/// over one connection. Measured, in GB/s of all-reduces over NICs of so many Gb/s: 1.7 over 25
/// (NVIDIA/nccl-tests issue 83, 2021); over 100 1.3 to 2.3, and 4 to 6 where channels were tuned by
/// hand (NVIDIA/nccl issues 209, 2019, and 450, 2021). One run over 40 is ten times slower.
inline constexpr Bandwidth most_over_tcp{15'000'000'000 / 8};

/// The share of a link's rate at which devices that do not reach each other copy through the host's
/// memory, of both directions together. Measured: one way 20 to 22 of 31.5 GB/s between RTX 4090
/// and 36 to 38 of 63 between H100 (NVIDIA/nccl issues 814, 2023, and 1264, 2024); both ways at
/// once 19 to 21 of 31.5 in sum between A40, 21 to 31 between RTX 4090 (nccl-tests issue 74, 2021).
inline constexpr double share_through_host = 0.65;

/// Bytes that such a link carries each way for a byte of what one device sends another, on its way
/// or against it; 1 of other links, on the way alone.
inline double staged_load(const Link& link) {
  return link.transport == Transport::host ? 1 / share_through_host : 1;
}

}  // namespace stageline
