// Equal numbers of transformer blocks a stage, as training frameworks cut language models. Layers
// before the first block are the first stage's, those behind the last block the last one's, and
// those between two blocks belong to the one before them.
//
//   10 blocks, 4 stages            first=1,last=1           embedding=1,head=1
//   E ttt | ttt | tt | tt L        E t | tttt | tttt | t L  E tt | ttt | ttt | tt L
//
// `first` and `last` are Megatron-LM's --decoder-first-pipeline-num-layers and
// --decoder-last-pipeline-num-layers: blocks of all stages on the first and on the last device.
// `embedding` and `head` are its --account-for-embedding-in-pipeline-split and
// --account-for-loss-in-pipeline-split, which count 1. As there, the two pairs exclude each other.
// Where numbers do not divide, Megatron-LM refuses; here the larger stages come first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::blocks_partitioner {
namespace {

constexpr int most_counted = 1 << 20;  // of an option

struct BlockOptions {
  std::optional<int> first;
  std::optional<int> last;
  int embedding = 0;
  int head = 0;

  bool uneven() const { return first.has_value() || last.has_value(); }
};

BlockOptions parse_block_options(const std::string& text) {
  BlockOptions options;
  if (text.empty()) return options;
  for (const std::string& item : split_at_commas(text)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const bool of_device = key == "first" || key == "last";
    if (!of_device && key != "embedding" && key != "head") {
      throw UsageError(
          fmt::format("blocks: option \"{}\" is not known (first, last, embedding, head){}", key,
                      did_you_mean(key, {"first", "last", "embedding", "head"})));
    }
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    const int least = of_device ? 1 : 0;
    const int count = parse_number<int>(value).value_or(-1);
    if (count < least || count > most_counted) {
      throw UsageError(fmt::format("blocks: {} must be a whole number from {} to {}, not \"{}\"",
                                   key, least, most_counted, value));
    }
    if (key == "first") options.first = count;
    if (key == "last") options.last = count;
    if (key == "embedding") options.embedding = count;
    if (key == "head") options.head = count;
  }
  if (options.uneven() && options.embedding + options.head > 0) {
    throw UsageError(
        "blocks: give first= and last=, or embedding= and head=: these count towards equal shares, "
        "which the others replace");
  }
  return options;
}

// Larger shares first.
void share_out(int blocks, const std::vector<int>& stages, std::vector<int>& counts) {
  const int among = static_cast<int>(stages.size());
  for (int i = 0; i < among; ++i) {
    nth(counts, nth(stages, i)) += blocks / among + (i < blocks % among ? 1 : 0);
  }
}

// Blocks by stage where the first or the last device has as many as asked.
std::vector<int> uneven_counts(const PartitionRequest& request, const BlockOptions& options,
                               int blocks) {
  std::vector<int> first;
  std::vector<int> last;
  std::vector<int> others;
  const std::vector<int> first_home = devices_of_stage(request, 0);
  const std::vector<int> last_home = devices_of_stage(request, request.stages - 1);
  for (int stage = 0; stage < request.stages; ++stage) {
    const std::vector<int> home = devices_of_stage(request, stage);
    const bool on_first = options.first && home == first_home;
    const bool on_last = options.last && home == last_home;
    if (on_first && on_last) {
      throw UsageError(fmt::format(
          "blocks: first={} and last={} are both for device {}, which has the first and the last "
          "of {} stages; give one of them",
          *options.first, *options.last, home.front(), request.stages));
    }
    (on_first ? first : on_last ? last : others).push_back(stage);
  }
  const int rest = blocks - options.first.value_or(0) - options.last.value_or(0);
  if (rest < 0 || (others.empty() && rest > 0)) {
    std::vector<std::string> given;
    if (options.first) given.push_back(fmt::format("first={}", *options.first));
    if (options.last) given.push_back(fmt::format("last={}", *options.last));
    throw UsageError(
        fmt::format("blocks: {} {} for {}, but \"{}\" has {} blocks for {} stages",
                    fmt::join(given, ","), given.size() == 1 ? "is" : "are",
                    others.empty() ? "all stages" : "the first and the last device at most",
                    request.model.name, blocks, request.stages));
  }
  std::vector<int> counts(as_size(request.stages));
  if (!first.empty()) share_out(options.first.value_or(0), first, counts);
  if (!last.empty()) share_out(options.last.value_or(0), last, counts);
  if (!others.empty()) share_out(rest, others, counts);
  return counts;
}

std::vector<int> equal_counts(const PartitionRequest& request, const BlockOptions& options,
                              int blocks) {
  std::vector<int> stages(as_size(request.stages));
  std::iota(stages.begin(), stages.end(), 0);
  std::vector<int> counts(stages.size());
  share_out(blocks + options.embedding + options.head, stages, counts);
  counts.front() -= options.embedding;
  counts.back() -= options.head;
  return counts;
}

void check_counts(const PartitionRequest& request, const BlockOptions& options,
                  const std::vector<BlockLayers>& blocks, const std::vector<int>& counts) {
  const int layers = static_cast<int>(request.model.layers.size());
  for (int stage = 0; stage < request.stages; ++stage) {
    const int count = nth(counts, stage);
    const bool embedding_alone = stage == 0 && options.embedding > 0 && blocks.front().first > 0;
    const bool head_alone =
        stage + 1 == request.stages && options.head > 0 && blocks.back().last + 1 < layers;
    if (count > 0 || (count == 0 && (embedding_alone || head_alone))) continue;
    std::string counted;
    if (options.embedding > 0)
      counted += fmt::format(", with the embedding as {}", options.embedding);
    if (options.head > 0) counted += fmt::format(", with the head as {}", options.head);
    throw UsageError(fmt::format(
        "blocks: the {} blocks of \"{}\"{}{} leave none for stage {} of {}; use fewer stages{}",
        blocks.size(), request.model.name, counted, counted.empty() ? "" : ",", stage,
        request.stages, counted.empty() ? "" : ", or count them as fewer blocks"));
  }
}

// "3", "3×2, 2×2"
std::string counts_text(const std::vector<int>& counts) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    runs.push_back(end - i == 1 || end - i == counts.size()
                       ? fmt::format("{}", counts[i])
                       : fmt::format("{}×{}", counts[i], end - i));
    i = end;
  }
  return fmt::format("{} block{} a stage", fmt::join(runs, ", "),
                     runs.size() == 1 && counts.front() == 1 ? "" : "s");
}

PartitionPlan plan(const PartitionRequest& request) {
  check_stages(request);
  const BlockOptions options = parse_block_options(request.options);
  const std::vector<BlockLayers> blocks = blocks_of(request.model);
  const int count = static_cast<int>(blocks.size());
  if (count == 0) {
    throw UsageError(fmt::format(
        "partitioner \"blocks\" is for transformers, and {} has no blocks (layers of kind attention "
        "and mlp, or block)",
        request.model.name));
  }
  const std::vector<int> counts = options.uneven() ? uneven_counts(request, options, count)
                                                   : equal_counts(request, options, count);
  check_counts(request, options, blocks, counts);
  std::vector<int> last_layers;
  int done = 0;
  for (int stage = 0; stage + 1 < request.stages; ++stage) {
    done += nth(counts, stage);
    last_layers.push_back(done < count ? nth(blocks, done).first - 1 : blocks.back().last);
  }
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  const int counted = count + options.embedding + options.head;
  std::string why;
  if (!options.uneven() && counted % request.stages != 0) {
    why = fmt::format(", larger stages first: {} {} not divide by {}", counted,
                      counted == 1 ? "does" : "do", request.stages);
  }
  plan.reason =
      fmt::format("{}{}; {}", counts_text(counts), why, balance_of(request, plan.partition));
  return plan;
}

}  // namespace

extern const Partitioner entry = {
    "blocks", "equal numbers of transformer blocks, larger stages first",
    "Megatron-LM, megatron/core/transformer/transformer_block.py: get_num_layers_to_build",
    "first=N, last=N  (blocks of the first and of the last device), or embedding=N, head=N  (count "
    "as so many blocks)",
    plan};

}  // namespace stageline::blocks_partitioner
