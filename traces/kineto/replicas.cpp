// Tells ranks that are stages of one pipeline from replicas, shards and ranks of several pipelines,
// where ranges do not name their stage.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

bool has_messages(const KinetoRank& rank) {
  return rank.traffic.messages() ||
         std::any_of(rank.ranges.begin(), rank.ranges.end(), [](const KinetoRange& range) {
           return class_of(range.ops[0].kind) == OpClass::message;
         });
}

constexpr std::string_view one_of_them =
    "give the profiles of one pipeline (of one replica alone), or name the stage in each range "
    "(import kineto --names FILE)";

// Refuses replicas whose ranges do not name their stage. They reduce gradients, or nothing where
// one process holds them; stages send activations and gradients to each other.
void refuse_replicas(const std::vector<KinetoRank>& ranks) {
  const auto silent = std::find_if(ranks.begin(), ranks.end(),
                                   [](const KinetoRank& rank) { return !has_messages(rank); });
  if (silent == ranks.end()) return;
  const bool recorded = std::any_of(ranks.begin(), ranks.end(), [](const KinetoRank& rank) {
    return rank.traffic.collectives() || has_messages(rank);
  });
  // The ranges of PyTorch's own schedules, and of a GPU's projection (NVTX), may come without any
  // communication: see check_order().
  const bool projected =
      silent->source == RangeSource::gpu && silent->style != KinetoStyle::operators;
  if (!recorded && (projected || silent->style == KinetoStyle::plain)) return;
  throw TraceError(
      silent->file, "",
      fmt::format("its rank sends no message to another and receives none{}, so it is no stage of "
                  "a pipeline of {}: replicas, and shards of tensor parallelism, each run their "
                  "forwards and backwards from the first layer to the last; {}",
                  silent->traffic.collectives() ? ", but takes part in collectives" : "",
                  ranks.size(), one_of_them));
}

// The first stage of a pipeline begins a step by sending and ends it by receiving; the others begin
// by receiving and end by sending.
void refuse_mixtures(const std::vector<KinetoRank>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::optional<MessageWay> first = ranks[i].traffic.first();
    const std::optional<MessageWay> last = ranks[i].traffic.last();
    if (!first || !last) continue;
    const bool of_first = *first == MessageWay::send && *last == MessageWay::receive;
    const bool of_other = *first == MessageWay::receive && *last == MessageWay::send;
    if (i == 0 ? !of_other : !of_first) continue;
    throw TraceError(
        ranks[i].file, "",
        fmt::format("its rank {}, as {} of a pipeline does, but is number {} of the {} ranks that "
                    "are given: they are no pipeline in the order of their ranks; {}",
                    of_first ? "begins by sending a message and ends by receiving one"
                             : "begins by receiving a message and ends by sending one",
                    of_first ? "the first stage" : "a later stage", i + 1, ranks.size(),
                    one_of_them));
  }
}

}  // namespace

bool are_replicas(const std::vector<KinetoRank>& ranks) {
  if (ranks.size() < 2 || ranks[0].named_by_stage) return false;
  if (std::any_of(ranks.begin(), ranks.end(), has_messages)) return false;
  return std::all_of(ranks.begin(), ranks.end(), [](const KinetoRank& rank) {
    return rank.traffic.collectives() || rank.style == KinetoStyle::operators;
  });
}

void check_messages(const std::vector<KinetoRank>& ranks) {
  if (ranks.size() == 1 || ranks[0].named_by_stage) return;
  refuse_replicas(ranks);
  refuse_mixtures(ranks);
}

// Where no communication is recorded, times alone tell stages from replicas: a stage's forward
// begins when the one before it has ended, on the CPU inside of its range.
//
//   stage 0  |F0  |F1  |           replica 0  |F0  |F1  |
//   stage 1       |F0  |F1  |      replica 1  |F0  |F1  |
void check_order(const std::vector<KinetoRank>& ranks) {
  if (ranks[0].named_by_stage) return;
  std::map<int, std::vector<bool>> early;  // by rank that reads
  for (const KinetoMessage& message : messages_of(ranks)) {
    const KinetoRank& reads = nth(ranks, message.to);
    if (has_messages(nth(ranks, message.from)) || has_messages(reads)) continue;
    if (message.reader.kind != OpKind::forward) continue;
    const std::int64_t own = message.read->end - message.read->start;
    const std::int64_t least = reads.source == RangeSource::gpu
                                   ? own / 2
                                   : std::min(own, message.made->end - message.made->start) / 20;
    early[message.to].push_back(message.read->end - message.made->end < least);
  }
  for (const auto& [rank, list] : early) {
    const auto count = std::count(list.begin(), list.end(), true);
    if (2 * count <= std::ssize(list)) continue;
    throw TraceError(
        nth(ranks, rank).file, "",
        fmt::format("{} of its {} forwards are done, or half done, before {} has made their input, "
                    "and no message is recorded: these are no stages of one pipeline, but its "
                    "replicas or other ranks; {}",
                    count, list.size(), nth(ranks, rank - 1).file, one_of_them));
  }
}

}  // namespace stageline
