#include "cost_models/network/allocation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cost_models/network/rank_grid.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/model.hpp"

namespace stageline {
namespace {

using Rule = AllocationRequest::Rule;

std::vector<int> first_of(int devices) {
  std::vector<int> all(as_size(devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The first `each` devices of every rack, until there are enough.
std::vector<int> shares_of(int devices, int each, int rack) {
  std::vector<int> all;
  all.reserve(as_size(devices));
  for (int rank = 0; rank < devices; ++rank) all.push_back(rank / each * rack + rank % each);
  return all;
}

std::vector<int> named_devices(const Cluster& cluster, int devices,
                               const std::vector<std::string>& names) {
  if (static_cast<int>(names.size()) < devices) {
    throw UsageError(fmt::format(
        "--placement names {} device{}, and the run has {}; name one for each rank, in their order",
        names.size(), names.size() == 1 ? "" : "s", devices));
  }
  std::unordered_map<std::string_view, int> number;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    number.emplace(cluster.devices[d].name, static_cast<int>(d));
  }
  std::vector<int> all;
  std::vector<bool> taken(cluster.devices.size());
  for (int rank = 0; rank < devices; ++rank) {
    const std::string& name = nth(names, rank);
    const auto found = number.find(name);
    if (found == number.end()) {
      throw UsageError(fmt::format("--placement: \"{}\" has no device \"{}\"; its first is \"{}\"",
                                   cluster.name, name, cluster.devices.front().name));
    }
    if (taken[as_size(found->second)]) {
      throw UsageError(
          fmt::format("--placement names \"{}\" twice; each rank has a device of its own", name));
    }
    taken[as_size(found->second)] = true;
    all.push_back(found->second);
  }
  return all;
}

// Groups of ranks that belong together, by name. Shard groups of a machine or a domain are in one.
std::map<std::string, std::vector<std::vector<int>>> groups_of(const RankGrid& grid) {
  std::map<std::string, std::vector<std::vector<int>>> all;
  const Degrees& degrees = grid.degrees();
  const auto add = [&](const std::string& name, std::vector<std::vector<int>> groups) {
    std::vector<std::vector<int>>& known = all[name];
    known.insert(known.end(), std::make_move_iterator(groups.begin()),
                 std::make_move_iterator(groups.end()));
  };
  for (int p = 0; p < degrees.pipeline; ++p) {
    for (const Dimension one : {Dimension::tensor, Dimension::context, Dimension::expert}) {
      add(std::string(name(one)), grid.groups(one, p));
    }
    if (shard_groups(degrees) == 1) continue;
    for (int t = 0; t < degrees.tensor_at(p); ++t) {
      add("shard-group", grid.shards_of(grid.holders(p, t)));
    }
  }
  return all;
}

// Those that are in several racks, rank r being on device `device[r]`.
std::vector<Straddling> straddling_groups(const std::optional<RankGrid>& grid,
                                          const std::vector<int>& device, int rack) {
  std::vector<Straddling> all;
  if (!grid) return all;
  for (const auto& [name, groups] : groups_of(*grid)) {
    Straddling found{name, 0, 0};
    for (const std::vector<int>& group : groups) {
      const auto rack_of = [&](int rank) { return nth(device, rank) / rack; };
      const int first = rack_of(group.front());
      const bool together =
          std::all_of(group.begin(), group.end(), [&](int rank) { return rack_of(rank) == first; });
      if (together) continue;
      found.ranks = static_cast<int>(group.size());
      ++found.groups;
    }
    if (found.groups > 0) all.push_back(found);
  }
  return all;
}

// Devices of each rack, from the usual share down, and then full racks.
std::vector<int> shares_to_try(const Racks& racks, int devices, int have) {
  std::vector<int> shares;
  if (devices % racks.devices == 0) {
    const int machines = devices / racks.devices;
    for (int each = machines_of_a_rack(machines, racks.machines); each >= 1; --each) {
      if (machines % each == 0 && machines / each <= have) shares.push_back(each * racks.devices);
    }
  }
  if (shares.empty() || shares.front() != racks.size()) shares.push_back(racks.size());
  return shares;
}

int racks_in(const std::vector<int>& devices, int rack) {
  std::vector<int> all;
  for (const int device : devices) all.push_back(device / rack);
  std::sort(all.begin(), all.end());
  return static_cast<int>(std::unique(all.begin(), all.end()) - all.begin());
}

// The devices of a job that is larger than a rack.
std::pair<std::vector<int>, Allocation> shared_out(const Racks& racks, int have, int devices,
                                                   const std::optional<RankGrid>& grid) {
  const std::vector<int> shares = shares_to_try(racks, devices, have);
  std::pair<std::vector<int>, Allocation> best;
  for (const int each : shares) {
    std::pair<std::vector<int>, Allocation> found{shares_of(devices, each, racks.size()), {}};
    found.second.straddling = straddling_groups(grid, found.first, racks.size());
    const bool holds_all = found.second.straddling.empty();
    found.second.rule = "segment";
    found.second.each = devices % each == 0 ? each : 0;
    if (!best.first.empty() && !holds_all) continue;
    best = std::move(found);
    if (holds_all) break;
  }
  if (devices % racks.devices == 0) {
    const int machines = devices / racks.devices;
    const int needed = machines / machines_of_a_rack(machines, racks.machines);
    if (needed > have) best.second.needed = needed;
  }
  return best;
}

}  // namespace

int machines_of_a_rack(int machines, int in_rack) {
  if (machines < 1 || in_rack < 1) {
    throw UsageError(fmt::format("{} machines in racks of {}: both are whole numbers from 1",
                                 machines, in_rack));
  }
  for (int each = std::min(machines, in_rack); each > 1; --each) {
    if (machines % each == 0) return each;
  }
  return 1;
}

Cluster allocated(Cluster cluster, int devices, const AllocationRequest& request,
                  const Degrees& degrees) {
  const int have = static_cast<int>(cluster.devices.size());
  const int rack = cluster.racks.size();
  const bool several = rack > 0 && devices > rack;
  if (request.rule != Rule::named && (!several || devices >= have)) {
    const bool notes = several && devices == have;
    cluster = first_devices(std::move(cluster), devices);
    if (!notes) return cluster;
  }
  std::optional<RankGrid> grid;
  if (degrees.pipeline > 0) grid.emplace(degrees);
  std::vector<int> chosen;
  Allocation allocation;
  if (request.rule == Rule::named) {
    chosen = named_devices(cluster, devices, request.devices);
  } else if (request.rule == Rule::fill) {
    chosen = first_of(devices);
  } else {
    std::tie(chosen, allocation) = shared_out(cluster.racks, have / rack, devices, grid);
  }
  if (request.rule != Rule::segment) {
    allocation.rule = request.rule == Rule::fill ? "fill" : "file";
    if (rack > 0) allocation.straddling = straddling_groups(grid, chosen, rack);
  }
  if (rack > 0) allocation.racks = racks_in(chosen, rack);
  cluster.allocation = std::move(allocation);
  cluster = with_devices(std::move(cluster), chosen);
  if (request.rule == Rule::named) cluster.racks = {};  // their order is no longer that of racks
  return cluster;
}

std::vector<std::string> allocation_notes(const Cluster& cluster) {
  std::vector<std::string> notes;
  if (!cluster.allocation) return notes;
  const bool named = cluster.allocation->rule == "file";
  if (!named && cluster.allocation->racks < 2) return notes;
  const Allocation& found = *cluster.allocation;
  const int rack = cluster.racks.size();
  const auto devices = cluster.devices.size();
  if (named) {
    notes.push_back(fmt::format("{} devices in the order that --placement names them{}", devices,
                                found.racks > 1 ? fmt::format(", on {} racks", found.racks) : ""));
  } else if (found.needed > 0) {
    notes.push_back(fmt::format(
        "{} devices fill {} racks of {}: equal shares would take {} racks, and {} has fewer",
        devices, found.racks, rack, found.needed, cluster.name));
  } else if (found.rule == "segment" && found.each > 0) {
    notes.push_back(
        fmt::format("{} devices on {} racks, {} of each one's {}, as schedulers of jobs place them "
                    "(--placement fill takes all of a rack first)",
                    devices, found.racks, found.each, rack));
  } else {
    notes.push_back(fmt::format("{} devices on {} racks of {}, each filled before the next",
                                devices, found.racks, rack));
  }
  const std::string hint =
      named ? "name devices of one rack for each"
            : fmt::format("a degree that divides the {} devices of a rack avoids it",
                          found.each > 0 ? found.each : rack);
  for (const Straddling& one : found.straddling) {
    const bool single = one.groups == 1;
    notes.push_back(fmt::format(
        "{} group{} of --{} {} {} in several racks, and exchange{} through NICs instead of NVLink; {}",
        one.groups, single ? "" : "s", one.group, one.ranks, single ? "is" : "are",
        single ? "s" : "", hint));
  }
  return notes;
}

}  // namespace stageline
