#include "cost_models/network/pricing_entry.hpp"

#include <fmt/core.h>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The line that holds for the size, of the group that `first` is the first one of.
const MeasuredCollective* line_for(const Cluster& cluster, const MeasuredCollective& first,
                                   Bytes bytes) {
  const MeasuredCollective* own = &first;
  for (const MeasuredCollective& next : cluster.collectives) {
    if (&next <= &first || next.kind != first.kind || next.ranks != first.ranks ||
        next.machines != first.machines) {
      continue;
    }
    if (meeting_size(*own, next).value_or(0) > static_cast<double>(bytes.count)) break;
    own = &next;
  }
  return own;
}

}  // namespace

std::string_view name(PricedBy by) {
  switch (by) {
    case PricedBy::times:
      return "times";
    case PricedBy::beyond:
      return "beyond_times";
    case PricedBy::fit:
      return "fit";
    case PricedBy::table:
      return "table";
    case PricedBy::dispatcher:
      return "dispatcher";
    case PricedBy::nccl:
      return "nccl";
    case PricedBy::links:
      return "links";
  }
  return "";  // unreachable; g++ wants it
}

std::string print(const PricingEntry& entry) {
  switch (entry.by) {
    case PricedBy::times:
      return fmt::format("times of collectives[{}] in the cluster file", entry.number);
    case PricedBy::beyond:
      return fmt::format("times of collectives[{}] in the cluster file, beyond the sizes it has",
                         entry.number);
    case PricedBy::fit:
      return fmt::format("alpha and bandwidth of collectives[{}] in the cluster file",
                         entry.number);
    case PricedBy::table:
      return "a measured table of such devices";
    case PricedBy::dispatcher:
      return "the dispatcher's measured rates";
    case PricedBy::nccl:
      return "NCCL's model";
    case PricedBy::links:
      return "the links as stated";
  }
  return "";  // unreachable; g++ wants it
}

PricingEntry measured_entry(const Cluster& cluster, const MeasuredCollective& first, Bytes bytes) {
  const bool timed = !first.times.empty() && bytes.count > 0;
  const MeasuredCollective& own = timed ? first : *line_for(cluster, first, bytes);
  PricingEntry entry{PricedBy::fit, static_cast<int>(&own - cluster.collectives.data()),
                     own.source};
  if (!timed) return entry;
  const bool within = bytes >= own.times.front().bytes && bytes <= own.times.back().bytes;
  entry.by = within ? PricedBy::times : PricedBy::beyond;
  return entry;
}

MeasuredPace measured_pace(const Cluster& cluster, const PricingEntry& entry, Bytes bytes) {
  const MeasuredCollective& own = nth(cluster.collectives, entry.number);
  if (entry.by != PricedBy::fit) return measured_pace(own, bytes);
  const double rate =
      own.bandwidth.is_unlimited()
          ? 0
          : static_cast<double>(own.bandwidth.bytes_per_second) / bus_factor(own.kind, own.ranks);
  return {to_seconds(own.alpha), rate};
}

}  // namespace stageline
