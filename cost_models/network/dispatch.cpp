// Measured rates of dispatchers, and the links that their copies of tokens load.
#include "cost_models/network/dispatch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"

namespace stageline {
namespace {

constexpr std::string_view deepep = "deepep";
constexpr std::string_view hybridep = "hybridep";

constexpr std::array known{
    Dispatcher{deepep, "DeepEP", Generation::ampere,
               "deepseek-ai/DeepEP, docs/legacy.md; Megatron-Core's flex dispatcher"},
    Dispatcher{hybridep, "HybridEP", Generation::hopper,
               "deepseek-ai/DeepEP, docs/README_Hybrid-EP.md (NVIDIA; needs TMA); Megatron-Core's "
               "flex dispatcher"},
};

// The tables print logical rates: of all copies, those that stay on the rank (in the machine)
// included. Of n ranks (N machines) evenly loaded, (n−1)/n, (N−1)/N of them pass a link.
constexpr double passing(double logical, double among) { return logical * (among - 1) / among; }
constexpr double nvlink_of_h800 = 200;       // GB/s each way
constexpr double nvlink_of_blackwell = 900;  // GB/s each way
constexpr double connectx_7 = 50;            // GB/s

constexpr double mean(double one, double other) { return (one + other) / 2; }

constexpr int any_ranks = std::numeric_limits<int>::max();

// Between two machines of 8, each of a rank's copies to the other machine comes with 5.7 over
// NVLink, which bounds both dispatchers there: 16·(1 − (15/16)^8)·7/8 a token, over 1 − (1/2)^8.
constexpr double nvlink_a_copy = 5.67;
constexpr double forwarded(double logical, double nvlink) {
  return passing(logical, 2) * nvlink_a_copy / nvlink;
}
constexpr double nvlink_of_h100 = 450;  // GB/s each way

// DeepEP's times are of calls that know their layout already: no time beyond the bytes.
constexpr DispatchLegs deepep_hopper_there{
    .nvlink = passing(153, 8) / nvlink_of_h800,
    .forward = forwarded(43, nvlink_of_h800),
    .network = mean(passing(58, 4), passing(51, 8)) / connectx_7};
constexpr DispatchLegs deepep_hopper_back{
    .nvlink = passing(158, 8) / nvlink_of_h800,
    .forward = forwarded(43, nvlink_of_h800),
    .network = mean(passing(57, 4), passing(50, 8)) / connectx_7};
constexpr DispatchLegs deepep_blackwell(double nvlink, double network) {
  return {.nvlink = nvlink / nvlink_of_blackwell,
          .forward = nvlink / nvlink_of_blackwell,
          .network = network / connectx_7};
}
// HybridEP's table has kernels alone and whole calls: a call takes about as much longer at any
// size, by milliseconds that are means of its rows here.
constexpr DispatchLegs hybridep_network(double nvlink, double forward, double network, double call,
                                        double network_call) {
  return {nvlink, forward, network, call * 1e-3, network_call * 1e-3};
}
constexpr double hybridep_there = mean(passing(57.69, 4), passing(49.97, 8)) / connectx_7;
constexpr double hybridep_back = mean(passing(57.46, 4), passing(49.77, 8)) / connectx_7;
constexpr double hybridep_gb200_there =
    mean(passing(706.95, 16), passing(642.23, 32)) / nvlink_of_blackwell;
constexpr double hybridep_gb200_back =
    mean(passing(666.26, 16), passing(605.15, 32)) / nvlink_of_blackwell;

constexpr std::array rate_table{
    DispatchRates{
        deepep, Generation::hopper, any_ranks, deepep_hopper_there, deepep_hopper_back, 20,
        "DeepEP V1 on H800 with 400 Gb/s NICs, 4,096 tokens of 7,168, 8 experts: EP8, "
        "EP16 (forwarding), EP32 and EP64 (docs/legacy.md, 2025); 20 SMs, Megatron-Core's "
        "default"},
    DispatchRates{
        deepep, Generation::blackwell, 16, deepep_blackwell(passing(494, 8), passing(90, 2)),
        deepep_blackwell(passing(420, 8), passing(91, 2)), 24,
        "DeepEP on 8 B200, 24 SMs, bf16 (docs/README_Hybrid-EP.md, 2025; GB200 with 8 and "
        "16 ranks within 5 %); NIC: V2 on SM100 with CX7, 2 machines of 8 (README.md, "
        "2026); forwarding: assumed"},
    DispatchRates{deepep, Generation::blackwell, any_ranks,
                  deepep_blackwell(mean(passing(450, 24), passing(400, 32)), passing(90, 2)),
                  deepep_blackwell(mean(passing(164, 24), passing(190, 32)), passing(91, 2)), 24,
                  "DeepEP on 24 GB200, 24 SMs (docs/README_Hybrid-EP.md, 2025) and on 32 "
                  "(Megatron-Core's report on DeepSeek-V3, 2025-26); NIC as on fewer ranks"},
    DispatchRates{hybridep, Generation::hopper, any_ranks,
                  hybridep_network(passing(734.95, 8) / nvlink_of_blackwell,
                                   forwarded(71.71, nvlink_of_h100), hybridep_there, 0.156, 0.87),
                  hybridep_network(passing(673.84, 8) / nvlink_of_blackwell,
                                   forwarded(62.95, nvlink_of_h100), hybridep_back, 0.123, 0.37),
                  16,
                  "HybridEP on 16 (forwarding), 32 and 64 H100, 16 SMs, bf16 "
                  "(docs/README_Hybrid-EP.md, 2025); within a machine: assumed, as 8 B200"},
    DispatchRates{
        hybridep, Generation::blackwell, 8,
        hybridep_network(passing(764.03, 8) / nvlink_of_blackwell,
                         passing(764.03, 8) / nvlink_of_blackwell, hybridep_there, 0.16, 0.87),
        hybridep_network(passing(737.13, 8) / nvlink_of_blackwell,
                         passing(737.13, 8) / nvlink_of_blackwell, hybridep_back, 0.12, 0.37),
        32,
        "HybridEP on 8 GB200, 32 SMs, bf16 (docs/README_Hybrid-EP.md, 2025; 8 B200 with 16 SMs "
        "within 9 %); NIC and forwarding: assumed, as on H100 and within a domain"},
    DispatchRates{
        hybridep, Generation::blackwell, any_ranks,
        hybridep_network(hybridep_gb200_there, hybridep_gb200_there, hybridep_there, 0.19, 0.87),
        hybridep_network(hybridep_gb200_back, hybridep_gb200_back, hybridep_back, 0.19, 0.37), 32,
        "HybridEP on 16 and 32 GB200, 32 SMs, bf16 (docs/README_Hybrid-EP.md, 2025); NIC and "
        "forwarding: assumed, as on H100 and within a domain"},
};

constexpr int channels_of_nccl = 16;

double choices(int of, int chosen) {
  double count = 1;
  for (int i = 0; i < chosen; ++i) count *= static_cast<double>(of - i) / (i + 1);
  return count;
}

double chance_in_share(double share, int chosen) { return 1 - std::pow(1 - share, chosen); }

bool is_multiple(double number, double of) { return std::fmod(number, of) == 0; }

// ---- transfers: a byte of progress is one of all rows of all chosen experts ----

// The first rank of each domain, and behind the last one.
std::vector<int> firsts_of(const GroupShape& shape) {
  std::vector<int> firsts{0};
  for (const int size : shape.domains) firsts.push_back(firsts.back() + size);
  return firsts;
}

std::vector<RankTransfer> transfers_of_dispatch(CollectiveKind /*kind*/, const GroupShape& shape) {
  const TokenRouting& routing = shape.routing;
  const int ranks = shape.ranks();
  const std::vector<int> firsts = firsts_of(shape);
  const double rows = std::max(routing.chosen, 1);
  const double to_rank = chance_of_part(routing, ranks) / rows;
  std::vector<double> sources(as_size(ranks), 1);  // ranks whose tokens each one passes on
  std::vector<RankTransfer> transfers;
  const auto add = [&](int from, int to, double share) {
    const bool back = routing.combine;
    transfers.push_back({back ? to : from, back ? from : to, share});
  };
  for (int domain = 0; domain < shape.count(); ++domain) {
    const int size = nth(shape.domains, domain);
    const double to_domain = chance_of_part(routing, static_cast<double>(ranks) / size) / rows;
    for (int other = 0; other < shape.count(); ++other) {
      if (other == domain) continue;
      for (int from = nth(firsts, other); from < nth(firsts, other + 1); ++from) {
        const int peer = nth(firsts, domain) + (from - nth(firsts, other)) % size;
        nth(sources, peer) += 1;
        add(from, peer, to_domain);
      }
    }
  }
  for (int domain = 0; domain < shape.count(); ++domain) {
    for (int from = nth(firsts, domain); from < nth(firsts, domain + 1); ++from) {
      for (int to = nth(firsts, domain); to < nth(firsts, domain + 1); ++to) {
        if (to != from) add(from, to, to_rank * nth(sources, from));
      }
    }
  }
  return transfers;
}

bool dispatch_handles(CollectiveKind kind, const GroupShape& shape) {
  if (kind != CollectiveKind::all_to_all) return false;
  const Dispatcher* const own = find_dispatcher(shape.routing.dispatcher);
  return own != nullptr && (shape.chip == nullptr || shape.chip->generation >= own->oldest);
}

// shape.known().
const DispatchLegs& legs_of(const GroupShape& shape) {
  const DispatchRates& rates =
      dispatch_rates_of(shape.routing.dispatcher, shape.chip->generation, shape.largest());
  return shape.routing.combine ? rates.back : rates.there;
}

// Beside the call's time, assumed: the latency of NCCL's messages, one to a peer in each other
// domain.
std::vector<CollectivePace> paces_of_dispatch(CollectiveKind /*kind*/, Bytes /*bytes*/,
                                              const GroupShape& shape) {
  if (shape.known()) {
    NcclGroup group = nccl_group(shape);
    group.ranks = std::max(shape.count(), 2);
    const DispatchLegs& legs = legs_of(shape);
    const double call = shape.count() > 1 ? legs.network_call : legs.call;
    return {{from_microseconds(nccl_direct_latency(group)) + from_seconds(call)}};
  }
  return {{rounds(1, shape.inside_latency) + rounds(shape.count() - 1, shape.across_latency)}};
}

std::array<double, tiers> reached_by_dispatch(const GroupShape& shape) {
  const DispatchLegs& legs = legs_of(shape);
  std::array<double, tiers> shares{1, 1, 1, 1};
  nth(shares, Tier::nvlink) = shape.count() > 1 ? legs.forward : legs.nvlink;
  nth(shares, Tier::network) = legs.network;
  return shares;
}

constexpr Algorithm algorithm_of(std::string_view name, std::string_view summary) {
  return {name,
          summary,
          "dispatch_rates()",
          dispatch_handles,
          transfers_of_dispatch,
          paces_of_dispatch,
          reached_by_dispatch};
}

constexpr std::array algorithm_table{
    algorithm_of(deepep, "it sends tokens, in all-to-alls of GPUs from A100 on"),
    algorithm_of(hybridep, "it sends tokens, in all-to-alls of GPUs from Hopper on"),
};

}  // namespace

std::span<const Dispatcher> dispatchers() { return known; }

std::span<const DispatchRates> dispatch_rates() { return rate_table; }

std::vector<std::string> dispatch_words() {
  std::vector<std::string> words{std::string(plain_dispatch)};
  for (const Dispatcher& one : known) words.emplace_back(one.name);
  return words;
}

const Dispatcher* find_dispatcher(std::string_view name) {
  const auto* const found = std::find_if(known.begin(), known.end(),
                                         [&](const Dispatcher& one) { return one.name == name; });
  return found == known.end() ? nullptr : found;
}

const DispatchRates& dispatch_rates_of(std::string_view dispatcher, Generation generation,
                                       int ranks_in_domain) {
  const Generation row = std::max(generation, Generation::hopper);
  return *std::find_if(rate_table.begin(), rate_table.end(), [&](const DispatchRates& one) {
    return one.dispatcher == dispatcher && one.generation == row &&
           ranks_in_domain <= one.most_ranks;
  });
}

int dispatch_multiprocessors(std::string_view word, Generation generation, int ranks_in_domain) {
  if (find_dispatcher(word) == nullptr) return channels_of_nccl;
  return dispatch_rates_of(word, generation, ranks_in_domain).multiprocessors;
}

double chance_of_part(const TokenRouting& routing, double parts) {
  const int groups = routing.groups;
  const int limit = routing.chosen_groups;
  const int chosen = routing.chosen;
  if (limit < groups && is_multiple(parts, groups)) {
    return static_cast<double>(limit) / groups * chance_in_share(groups / parts / limit, chosen);
  }
  if (limit < groups && is_multiple(groups, parts)) {
    // So many of the part's groups are among those of a token, by chance.
    const int own = static_cast<int>(groups / parts);
    double chance = 0;
    for (int hit = 1; hit <= std::min(own, limit); ++hit) {
      const double weight = choices(own, hit) * choices(groups - own, limit - hit);
      chance += weight * chance_in_share(static_cast<double>(hit) / limit, chosen);
    }
    return chance / choices(groups, limit);
  }
  return chance_in_share(1 / parts, chosen);
}

double copies_between(const TokenRouting& routing, int machines) {
  if (routing.dispatcher.empty()) {
    return static_cast<double>(routing.chosen) * (machines - 1) / machines;
  }
  return (machines - 1) * chance_of_part(routing, machines);
}

const Algorithm& dispatch_algorithm(std::string_view dispatcher) {
  for (const Algorithm& one : algorithm_table) {
    if (one.name == dispatcher) return one;
  }
  const std::vector<std::string> words = dispatch_words();
  throw UsageError(fmt::format("there is no dispatcher of tokens \"{}\"{}; there are {}",
                               dispatcher, did_you_mean(std::string(dispatcher), words),
                               fmt::join(words, ", ")));
}

}  // namespace stageline
