#include "tools/planner/changes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/planner/space.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::planner {
namespace {

constexpr std::int64_t most_new_microbatches = 1 << 16;
constexpr int most_sizes = 6;     // of micro-batches
constexpr int most_new_cuts = 4;  // of the promising ones

// Knobs whose values change what is held at a time, and not what is trained.
constexpr std::array memory_knobs{"limit",  "chunks",  "waves",    "group",     "policy",
                                  "concat", "reverse", "priority", "placement", "sequence_chunks"};

// The one asynchronous schedule that is proposed: it trains on weights one update old, and holds
// two versions of them.
constexpr std::string_view fewest_versions = "pipedream_2bw";

bool is_pipeline_alone(Degrees degrees) {
  degrees.pipeline = 0;
  return degrees.plain();
}

class Changes {
 public:
  Changes(const Candidate& from, const Case& asked, const Verdict& verdict,
          const ChangeLimits& limits)
      : from_(from), asked_(asked), verdict_(verdict), limits_(limits) {}

  std::vector<Change> all() {
    stages();
    microbatch_sizes();
    knobs();
    schedules();
    zero_levels();
    cuts();
    ranks();
    return std::move(found_);
  }

 private:
  const Candidate& from_;
  const Case& asked_;
  const Verdict& verdict_;
  const ChangeLimits& limits_;
  std::vector<Change> found_;

  void add(ChangeKind kind, std::string what, Candidate candidate) {
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Change& change) {
      return same(change.candidate, candidate);
    });
    if (!known && !same(from_, candidate)) {
      found_.push_back({kind, std::move(what), std::move(candidate)});
    }
  }

  // By device of one pipeline: whether it lacks memory in any of those that are simulated.
  std::vector<bool> lacking() const {
    const std::size_t devices = asked_.cluster.devices.size() / as_size(asked_.pipelines());
    std::vector<bool> lacks(devices);
    for (std::size_t d = 0; d < verdict_.peak.size(); ++d) {
      const std::optional<Bytes> limit = usable_memory(asked_.cluster.devices[d]);
      if (limit && verdict_.peak[d] > *limit) lacks[d % devices] = true;
    }
    return lacks;
  }

  // Lists of stages: of each device that lacks memory the first one, the first two, …
  std::vector<std::vector<int>> stages_of_the_fullest() const {
    const std::vector<bool> lacks = lacking();
    std::vector<std::vector<int>> of(lacks.size());
    try {
      const Placement placement = lay_out(asked_).pipeline;
      for (int stage = 0; stage < placement.stages(); ++stage) {
        for (const int device : nth(placement.stage, stage).replicas) {
          if (nth(lacks, device)) nth(of, device).push_back(stage);
        }
      }
    } catch (const UsageError&) {
      return {};
    }
    std::vector<std::vector<int>> lists;
    for (std::size_t count = 1;; ++count) {
      std::vector<int> list;
      bool more = false;
      for (const std::vector<int>& stages : of) {
        const std::size_t some = std::min(count, stages.size());
        list.insert(list.end(), stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(some));
        more = more || stages.size() >= count;
      }
      if (!more) return lists;
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      lists.push_back(std::move(list));
    }
  }

  static std::vector<NumberRange> ranges_of(const std::vector<int>& stages) {
    std::vector<NumberRange> ranges;
    for (const int stage : stages) {
      if (!ranges.empty() && ranges.back().last == stage - 1) {
        ranges.back().last = stage;
      } else {
        ranges.push_back({stage, stage});
      }
    }
    return ranges;
  }

  void stages() {
    const std::vector<std::vector<int>> lists = stages_of_the_fullest();
    const bool selective =
        std::any_of(asked_.model.layers.begin(), asked_.model.layers.end(),
                    [](const Layer& layer) { return layer.selective_stash > Bytes{}; });
    std::vector<StageRecomputation> ways;
    if (selective) ways.push_back({Rebuild::selective, 1});
    ways.push_back({Rebuild::every, 1});
    ways.push_back({Rebuild::full, 1});
    for (const StageRecomputation& how : ways) {
      const auto word = static_cast<int>(how.rebuild);
      for (std::size_t i = 0; i < lists.size(); ++i) {
        Candidate some = from_;
        some.recomputation.parts.push_back({how, ranges_of(lists[i])});
        add(ChangeKind::recompute, fmt::format("rebuild {} on {}", word, i), std::move(some));
      }
      Candidate all = from_;
      all.recomputation.parts = {{how, {}}};
      add(ChangeKind::recompute, fmt::format("rebuild {} on all", word), std::move(all));
    }
    if (!limits_.hosts) return;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Candidate some = from_;
      for (const NumberRange& range : ranges_of(lists[i])) some.offloading.stages.push_back(range);
      some.offloading.none = false;
      some.offloading.blocks = 0;
      add(ChangeKind::offload, fmt::format("offload {}", i), std::move(some));
    }
    Candidate all = from_;
    all.offloading = {true, {}, from_.offloading.ahead};
    add(ChangeKind::offload, "offload all", std::move(all));
  }

  void microbatch_sizes() {
    const int batch = asked_.model.batch;
    if (limits_.is_fixed) return;
    int sizes = 0;
    for (int size = batch - 1; size >= 1 && sizes < most_sizes; --size) {
      if (batch % size != 0) continue;
      ++sizes;
      const std::int64_t count = std::int64_t{from_.shape.microbatches} * (batch / size);
      if (count > most_new_microbatches) return;
      Candidate smaller = from_;
      smaller.shape.microbatch_size = size;
      smaller.shape.microbatches = static_cast<int>(count);
      add(ChangeKind::microbatch_size, fmt::format("size {}", size), std::move(smaller));
    }
  }

  // Other values of a knob: those that it lists; a half, one less, one more and twice a number.
  std::vector<std::string> values_of(const Knob& knob, const std::string& now) const {
    std::vector<std::string> values;
    if (knob.name == "limit") {
      values = {"memory", "2p", "p"};
      const int ranks = from_.shape.degrees.pipeline;
      for (const int less : {ranks - 1, 3 * ranks / 4, ranks / 2, ranks / 4, 1}) {
        if (less >= 1) values.push_back(fmt::format("{}", less));
      }
    } else if (knob.name == "chunks" || knob.values == "int") {
      const int ranks = from_.shape.degrees.pipeline;
      const int number = parse_number<int>(now).value_or(knob.name == "group" ? ranks : 2);
      for (const int other : {number / 2, number - 1, number + 1, 2 * number}) {
        if (other >= 1 && other <= ranks * 2) values.push_back(fmt::format("{}", other));
      }
    } else {
      const std::string_view text = knob.values;
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('|', at), text.size());
        values.emplace_back(text.substr(at, end - at));
        at = end + 1;
      }
    }
    return values;
  }

  void knobs() {
    for (const Knob& knob : from_.spec.scheduler->knobs) {
      if (std::find(memory_knobs.begin(), memory_knobs.end(), knob.name) == memory_knobs.end()) {
        continue;
      }
      const auto now = from_.spec.knobs.find(std::string(knob.name));
      if (now == from_.spec.knobs.end()) continue;
      for (const std::string& value : values_of(knob, now->second)) {
        Candidate other = from_;
        other.spec.knobs[std::string(knob.name)] = value;
        add(ChangeKind::knob, fmt::format("{}={}", knob.name, value), std::move(other));
      }
    }
  }

  void schedules() {
    const Synchrony synchrony = from_.spec.scheduler->synchrony;
    for (const Scheduler* const scheduler : stageline::schedulers()) {
      if (scheduler == from_.spec.scheduler || scheduler->synchrony != synchrony) continue;
      if (synchrony == Synchrony::asynchronous && scheduler->name != fewest_versions) continue;
      Candidate other = from_;
      other.spec = parse_schedules(std::string(scheduler->name)).front();
      if (cuts_sequences(other.spec)) continue;  // only where it is named
      add(ChangeKind::schedule, std::string(scheduler->name), std::move(other));
    }
  }

  void zero_levels() {
    if (from_.shape.degrees.data == 1 || limits_.is_fixed) return;
    const Degrees& now = from_.shape.degrees;
    for (const Zero level : all_zeros) {
      Candidate other = from_;
      Degrees& degrees = other.shape.degrees;
      degrees.zero = level;
      if (level >= Zero::gradients) degrees.zero_every = every_that_divides(now, now.pipeline);
      if (divided_at_peak(degrees) <= divided_at_peak(now)) continue;
      add(ChangeKind::zero, fmt::format("zero {}", stageline::name(level)), std::move(other));
    }
  }

  void cuts() {
    std::vector<std::string> names{"balanced", "uniform"};
    try {
      if (!blocks_of(asked_.model).empty()) names.emplace_back("blocks");
    } catch (const UsageError&) {  // its blocks are not whole
    }
    for (const std::string& name : names) {
      Candidate other = from_;
      other.partition = name;
      add(ChangeKind::cut, name, std::move(other));
    }
    if (limits_.promising_cuts) promising();
  }

  // By their ranks: after another change they are other cuts.
  void promising() {
    std::vector<std::string> texts;
    try {
      texts = promising_cuts(asked_, most_new_cuts);
    } catch (const UsageError&) {  // the schedule cuts by itself, or there are fewer layers
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Candidate other = from_;
      other.partition = texts[i];
      add(ChangeKind::cut, fmt::format("promising {}", i), std::move(other));
    }
  }

  // Ranks of one degree for ranks of another, or for more devices.
  void ranks() {
    if (limits_.is_fixed) return;
    const Degrees& now = from_.shape.degrees;
    const bool shards = asked_.model.tokens > 0;  // a language model, priced by rank
    if (shards && now.tensor > 1 && !from_.shape.sequence_parallel) {
      Candidate other = from_;
      other.shape.sequence_parallel = true;
      add(ChangeKind::sequence_parallel, "sequence", std::move(other));
    }
    struct Exchange {
      int Degrees::*more;
      int Degrees::*less;  // null: of more devices
      bool of_shards;
    };
    constexpr std::array exchanges{
        Exchange{&Degrees::tensor, &Degrees::data, true},
        Exchange{&Degrees::pipeline, &Degrees::data, false},
        Exchange{&Degrees::tensor, &Degrees::pipeline, true},
        Exchange{&Degrees::pipeline, &Degrees::tensor, true},
        Exchange{&Degrees::pipeline, nullptr, false},
        Exchange{&Degrees::tensor, nullptr, true},
        Exchange{&Degrees::data, nullptr, false},
    };
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      const Exchange& exchange = exchanges[i];
      if (exchange.of_shards && !shards) continue;
      // More replicas hold no less, unless they share what they hold.
      if (exchange.more == &Degrees::data && now.zero == Zero::none) continue;
      Candidate other = from_;
      for (int factor = 2;; factor *= 2) {
        Degrees& degrees = other.shape.degrees;
        std::int64_t count = other.shape.microbatches;
        if (exchange.less != nullptr) {
          if (degrees.*exchange.less % 2 != 0) break;
          degrees.*exchange.less /= 2;
          if (exchange.less == &Degrees::data) count *= 2;
        }
        degrees.*exchange.more *= 2;
        if (exchange.more == &Degrees::data) {
          if (count % 2 != 0) break;
          count /= 2;
        }
        if (count > most_new_microbatches || other.shape.devices() > limits_.most_devices) break;
        if (degrees.pipeline > static_cast<int>(asked_.model.layers.size())) break;
        // A pipeline alone is judged without the groups of a cluster and their reserve of memory:
        // a change does not give that reserve away. Tensor parallelism takes it.
        const bool alone = is_pipeline_alone(degrees);
        if (alone && !is_pipeline_alone(now)) break;
        if (!alone && is_pipeline_alone(now) && exchange.more != &Degrees::tensor) break;
        other.shape.microbatches = static_cast<int>(count);
        const ChangeKind kind =
            exchange.less != nullptr ? ChangeKind::degrees : ChangeKind::devices;
        add(kind, fmt::format("ranks {} by {}", i, factor), other);
        if (exchange.more == &Degrees::tensor && !other.shape.sequence_parallel) {
          Candidate sequence = other;
          sequence.shape.sequence_parallel = true;
          add(kind, fmt::format("ranks {} by {} with sequence", i, factor), std::move(sequence));
        }
      }
    }
  }
};

}  // namespace

std::string_view name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::recompute:
      return "recompute";
    case ChangeKind::offload:
      return "offload";
    case ChangeKind::microbatch_size:
      return "micro-batch size";
    case ChangeKind::knob:
      return "knobs";
    case ChangeKind::schedule:
      return "schedule";
    case ChangeKind::zero:
      return "ZeRO";
    case ChangeKind::cut:
      return "cut";
    case ChangeKind::sequence_parallel:
      return "sequence parallelism";
    case ChangeKind::degrees:
      return "ranks";
    case ChangeKind::devices:
      return "more devices";
  }
  return "";
}

bool same(const Candidate& a, const Candidate& b) {
  return a.shape == b.shape && a.spec == b.spec && a.recomputation == b.recomputation &&
         a.offloading == b.offloading && a.partition == b.partition;
}

bool offloads(const Candidate& candidate) { return candidate.offloading.any(); }

Candidate candidate_of(const SettingRequest& request, const Setting& setting,
                       const ScheduleSpec& spec, int devices) {
  Candidate candidate;
  candidate.shape.degrees = completed(request.degrees, devices);
  candidate.shape.as_ranks = !request.degrees.plain();
  candidate.shape.sequence_parallel = request.sequence_parallel;
  candidate.shape.cp_comm_type = request.cp_comm_type;
  candidate.shape.microbatch_size = request.microbatch_size;
  SettingRequest asked = request;
  asked.device_order = DeviceOrdering::given;  // the number does not depend on it
  candidate.shape.microbatches = make_case(asked, setting, spec, devices).microbatches;
  candidate.spec = spec;
  candidate.recomputation = request.recomputation;
  candidate.offloading = request.offloading;
  candidate.partition = request.partition;
  return candidate;
}

std::vector<Change> single_changes(const Candidate& from, const Case& asked, const Verdict& verdict,
                                   const ChangeLimits& limits) {
  return Changes(from, asked, verdict, limits).all();
}

}  // namespace stageline::planner
