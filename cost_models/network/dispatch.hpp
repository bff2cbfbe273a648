// Dispatchers: libraries that send a token once to each machine that has experts for it, and from
// there to the ranks that hold them. One word each, as algorithms of collectives have.
//
//   rank ─► its peer in each other machine (a copy of the token, over the NIC)
//        ─► the ranks there that hold its experts (a copy each, over NVLink)
//
// The way back, combine, is the same in reverse: rows are summed before they leave a machine. Both
// legs run at once, chunk by chunk, so that an exchange takes as long as its fuller link.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/network/algorithm.hpp"
#include "cost_models/network/chips.hpp"
#include "sim/model.hpp"

namespace stageline {

/// The word for all-to-alls of NCCL, in which each row travels by itself.
inline constexpr std::string_view plain_dispatch = "nccl";

struct Dispatcher {
  std::string_view name;  // "deepep"
  std::string_view title;
  Generation oldest = Generation::ampere;  // that it runs on
  std::string_view source;
};
std::span<const Dispatcher> dispatchers();
/// plain_dispatch and those of dispatchers().
std::vector<std::string> dispatch_words();
/// Null where none has that name.
const Dispatcher* find_dispatcher(std::string_view name);

/// What a dispatcher reaches one way: shares of a link's stated rate of the bytes that pass it.
struct DispatchLegs {
  double nvlink = 0;   // within one domain
  double forward = 0;  // NVLink of several domains, of which each forwards what the others send
  double network = 0;
  double call = 0;          // seconds beyond those bytes: of one domain,
  double network_call = 0;  // of several
};
struct DispatchRates {
  std::string_view dispatcher;
  Generation generation = Generation::hopper;
  int most_ranks = 0;  // in an NVLink domain
  DispatchLegs there;
  DispatchLegs back;        // combine
  int multiprocessors = 0;  // SMs that the rates were measured with: compute beside has the others
  std::string_view source;
};
std::span<const DispatchRates> dispatch_rates();
/// The row for a group with so many ranks in a domain; older generations have Hopper's.
/// `dispatcher` is one of dispatchers().
const DispatchRates& dispatch_rates_of(std::string_view dispatcher, Generation generation,
                                       int ranks_in_domain);

/// SMs that sending tokens takes. Of plain_dispatch 16, which is assumed: NCCL's kernels have one
/// for each channel, and 16 channels are assumed elsewhere, too (nccl.hpp).
int dispatch_multiprocessors(std::string_view word, Generation generation, int ranks_in_domain);

/// The chance that a token has an expert in one of `parts` equal parts of them, for experts that
/// are chosen evenly: 1 − (1 − 1/parts)^k; with routing that is limited to g of G groups, in those.
/// Where neither of `parts` and G divides the other the limit is left out, which is an upper bound.
double chance_of_part(const TokenRouting& routing, double parts);

/// Copies of a token that leave its machine, where the ranks of a group are in so many.
double copies_between(const TokenRouting& routing, int machines);

/// Throws UsageError where there is no dispatcher of that name.
const Algorithm& dispatch_algorithm(std::string_view dispatcher);

}  // namespace stageline
