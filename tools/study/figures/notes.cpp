#include "tools/study/figures/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/block_offload.hpp"
#include "cost_models/tied_weights.hpp"
#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

// Why the step is a mean, where it is one; else empty.
std::string unsettled_note(const Case& asked, const Outcome& outcome) {
  if (outcome.grows) {
    return fmt::format(
        "{}: a link or a device has more to do than the pace leaves it time for, so that memory and "
        "versions grow as long as it runs; peaks are those of {} steps, and the step is a mean",
        outcome.schedule, outcome.program.steps);
  }
  if (outcome.settled) return "";
  if (!asked.program || outcome.synchrony == Synchrony::synchronous) {
    return outcome.schedule + ": no exact rhythm was found; its step is a mean";
  }
  const Program& program = outcome.program;
  const int enough = steps_of_a_stream(program);
  if (program.steps >= enough) {
    return outcome.schedule + ": no exact rhythm was found; its step is a mean";
  }
  const std::uint32_t microbatches =
      program.total_microbatches() / static_cast<std::uint32_t>(program.settings.sequence_chunks);
  return fmt::format(
      "{}: a program of {} micro-batch{} is too short to show a steady pace; the step is the mean "
      "of the whole program, filling and draining included, and peaks are those of so few (write "
      "the program with --steps {} to see both)",
      outcome.schedule, microbatches, microbatches == 1 ? "" : "es", enough);
}

// "; on the devices of --placement fill, with segment 1.2 s"; empty where one way was searched.
std::string placement_words(const DeviceOrder& found) {
  if (found.placement.empty()) return "";
  const std::string_view other = found.placement == "fill" ? "segment" : "fill";
  std::string text = fmt::format("; on the devices of --placement {}, ", found.placement);
  if (!found.elsewhere) return text + fmt::format("it cannot run on those of {}", other);
  text += fmt::format("the best order on those of {} takes {}", other, print(*found.elsewhere));
  return found.elsewhere_fits || !found.fits ? text : text + " and does not fit into memory";
}

std::string order_note(const Case& asked, const Outcome& outcome) {
  if (!asked.device_order) return "";
  const DeviceOrder& found = *asked.device_order;
  const bool is_given = std::is_sorted(found.order.begin(), found.order.end());
  const std::string units = found.machines ? "machines" : "devices";
  const std::string tried =
      found.orders == 1 ? fmt::format("the {} are alike: there is no other", units)
      : found.all()
          ? fmt::format("simulated: all {:.0f} that differ", found.orders)
          : fmt::format("simulated: {} of {:.3g} that differ", found.simulated, found.orders);
  if (is_given) {
    return fmt::format("{}: no better order of the {} than the given one was found ({}){}",
                       outcome.schedule, units, tried, placement_words(found));
  }
  std::string gain = "the given order cannot run";
  if (found.given && !found.given_fits) {
    gain =
        fmt::format("the given order does not fit into memory, and takes {}", print(*found.given));
  } else if (found.given) {
    const double less = 1 - to_seconds(found.found) / to_seconds(*found.given);
    gain = fmt::format("{:.1f} % less than the {} in the given order", 100 * less,
                       print(*found.given));
  }
  return fmt::format("{}: {} in the order {}: {} a step, {} ({}){}", outcome.schedule, units,
                     fmt::join(found.names, ", "), print(found.found), gain, tried,
                     placement_words(found));
}

std::string cut_note(const Case& asked, const Outcome& outcome) {
  if (!asked.found_cut || asked.found_cut->simulated == 0) return "";
  const FoundCut& found = *asked.found_cut;
  const std::string cuts = found.all ? fmt::format("all {} cuts", found.simulated)
                                     : fmt::format("{} cuts", found.simulated);
  std::string gain;
  if (!found.plain_step) {
    gain = fmt::format("{} cannot run", found.plain);
  } else if (!found.plain_fits && found.fits) {
    gain = fmt::format("{} does not fit into memory, and takes {}", found.plain,
                       print(*found.plain_step));
  } else if (*found.plain_step == found.found) {
    gain = fmt::format("as {}", found.plain);
  } else {
    const double more = 100 * (to_seconds(found.found) / to_seconds(*found.plain_step) - 1);
    gain = fmt::format("{:.1f} % {} than the {} of {}", std::abs(more), more < 0 ? "less" : "more",
                       print(*found.plain_step), found.plain);
  }
  return fmt::format("{}: cut {} found by simulating {}: {} a step, {}", outcome.schedule,
                     asked.partition, cuts, print(found.found), gain);
}

// Megatron, Hugging Face and Korthikanti et al. (arXiv 2205.05198) mean every block by itself.
std::string whole_stage_note(const Case& asked, const Outcome& outcome) {
  if (asked.program || asked.model.tokens == 0) return "";
  const std::vector<Recomputation::Part>& parts = asked.recomputation.parts;
  const bool is_asked = std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.how.rebuild == Rebuild::full && part.layers.empty();
  });
  if (!is_asked || outcome.plan.partition.stages == static_cast<int>(asked.model.layers.size())) {
    return "";
  }
  return fmt::format(
      "{}: recompute full keeps the input of a stage, and makes the stashes of all its layers again "
      "at once; full recomputation of Megatron and Hugging Face, layer by layer, is every:1",
      outcome.schedule);
}

bool recomputes(const Outcome& outcome) {
  const std::vector<std::int64_t>& repeats = outcome.figures.repeats;
  return std::any_of(repeats.begin(), repeats.end(), [](std::int64_t count) { return count > 0; });
}

bool has_stashes(const Outcome& outcome) {
  return std::any_of(outcome.figures.stage.begin(), outcome.figures.stage.end(),
                     [](const StageFigures& one) { return one.stash > Bytes{}; });
}

// Equal devices have a host only where --host-link or --host-memory asks for one.
bool host_is_asked(const Case& asked) {
  const Cluster& cluster = asked.ranked ? asked.ranked->devices() : asked.cluster;
  return !cluster.hosts.empty() && cluster.name.find(" equal device") != std::string::npos;
}

// How far to trust what pairs hide: Megatron-Core's overlap hid 36.6 % of the communication of
// Qwen3-30B on 16 H100, and made its step 15 % shorter (measured, 2026).
std::string pairs_note(const Outcome& outcome) {
  const Figures& figures = outcome.figures;
  if (!figures.has_pairs || !figures.pairs_derived || !figures.pairs_hide) return "";
  return fmt::format(
      "{}: overlapped pairs hide of the experts' exchange what two chains can at best; measured "
      "runs hide less (--pair-overlap states a share)",
      outcome.schedule);
}

bool overlaps_experts(const Case& asked) {
  const auto overlap = asked.spec.knobs.find("overlap");
  return !asked.program && overlap != asked.spec.knobs.end() && overlap->second == "experts";
}

// What is asked of ops that the program has none of. What the request alone shows to be without
// effect is in tools/inputs/setting.cpp. Without the name of the schedule: of several, one says it.
std::vector<std::string> notes_on_no_effect(const Case& asked, const Outcome& outcome) {
  const bool copies = outcome.figures.copies != HostCopies::none;
  const struct {
    bool asked;
    bool has_effect;
    const char* sentence;
  } each[] = {
      {asked.recomputation.start.has_value(), recomputes(outcome),
       "--recompute-start has no effect where nothing is recomputed"},
      {asked.cluster.pair_overlap.value_or(0) > 0, outcome.figures.has_pairs,
       "--pair-overlap has no effect where no ops run as overlapped pairs, which dualpipe, "
       "dualpipe_v and overlap=experts have"},
      {overlaps_experts(asked) && !asked.cluster.pair_overlap, outcome.figures.pairs_hide,
       "overlap=experts hides nothing: no op exchanges tokens with experts of other devices (--ep)"},
      {asked.offloading.of_stages(), !copies || has_stashes(outcome),
       "--offload copies nothing: the stashes of the trace have no bytes"},
      {host_is_asked(asked), copies || asked.offloading.blocks > 0,
       "--host-link and --host-memory have no effect where nothing is copied to the host"},
  };
  std::vector<std::string> notes;
  for (const auto& one : each) {
    if (one.asked && !one.has_effect) notes.emplace_back(one.sentence);
  }
  return notes;
}

// What --offload block:N copies, and what waits for it: of the stage that waits the longest, and of
// those of one that copies the most.
std::string block_copies_note(const Case& asked, const Outcome& outcome) {
  const Network& known = outcome.costs.network;
  const Network network = known.to_host.empty() ? costs_of(asked, lay_out(asked)).network : known;
  const std::vector<BlockCopies> stages =
      block_copies(asked.model, outcome.plan.partition, outcome.program.placement, asked.cluster,
                   network, asked.offloading.blocks);
  if (stages.empty()) return "";
  const auto fullest = std::max_element(stages.begin(), stages.end(),
                                        [](const BlockCopies& one, const BlockCopies& other) {
                                          return std::pair(one.backward_wait, one.bytes) <
                                                 std::pair(other.backward_wait, other.bytes);
                                        });
  std::string time =
      fmt::format("copies there take {}, and nothing waits for them", print(fullest->copying));
  if (fullest->copying == Time{}) {
    time = "copies are free: no --host-link and no cluster with one was given";
  } else if (fullest->forward_wait > Time{} || fullest->backward_wait > Time{}) {
    time = fmt::format("copies there take {}; F waits {} for them, and the backward {}",
                       print(fullest->copying), print(fullest->forward_wait),
                       print(fullest->backward_wait));
  }
  return fmt::format(
      "{}: activations of {} of a stage's {} blocks, {} of each micro-batch, wait in the host's "
      "memory, whose limit does not count them; {}",
      outcome.schedule, fullest->copied, fullest->blocks, print(fullest->bytes), time);
}

// That --offload copies nothing, or over no link.
std::string offload_note(const Case& asked, const Outcome& outcome) {
  if (asked.offloading.blocks > 0) return block_copies_note(asked, outcome);
  const HostCopies copies = outcome.figures.copies;
  if (copies == HostCopies::free) {
    return fmt::format(
        "{}: copies to the host are free: no --host-link and no cluster with one was given",
        outcome.schedule);
  }
  if (copies != HostCopies::none || !asked.offloading.of_stages()) return "";
  return fmt::format(
      "{}: --offload copies nothing: with --prefetch {} every stash would have to come back before "
      "another op has run",
      outcome.schedule, asked.offloading.ahead);
}

}  // namespace

std::string rebuilt_note(const Case& asked) {
  if (asked.program) return "";
  const Scheduler& scheduler = *asked.spec.scheduler;
  if (!scheduler.rebuilt.empty()) return fmt::format("{}: {}", scheduler.name, scheduler.rebuilt);
  for (const Knob& knob : scheduler.knobs) {
    const auto value = asked.spec.knobs.find(std::string(knob.name));
    if (knob.rebuilt.empty() || value == asked.spec.knobs.end()) continue;
    if (value->second != knob.fallback) {
      return fmt::format("{}: {}", spelled(asked.spec), knob.rebuilt);
    }
  }
  return "";
}

// How many times as long all slices together take as the micro-batch at once.
double slicing_cost(const Case& asked, int slices) {
  const double once = to_seconds(forward_backward(asked.model));
  if (once == 0) return 1;
  double all = 0;
  for (const auto& kind : asked.kinds) all += to_seconds(forward_backward(*kind));
  return (asked.kinds.empty() ? slices * to_seconds(forward_backward(*asked.slice)) : all) / once;
}

// What unequal micro-batches are taken to be.
std::string lengths_note(const Case& asked) {
  const std::string replicas = asked.pipelines() * asked.copies() > 1
                                   ? "; each data-parallel replica takes the same ones"
                                   : "";
  if (!asked.kinds.empty() && !asked.slice) {
    const auto shorter = [](const auto& a, const auto& b) { return a->tokens < b->tokens; };
    const auto [least, most] = std::minmax_element(asked.kinds.begin(), asked.kinds.end(), shorter);
    return fmt::format(
        "micro-batches differ: sequences have {} to {} tokens, {:.0f} in the mean, and each is priced "
        "by its own kernels{}",
        (*least)->tokens, (*most)->tokens,
        asked.mean_of([](const Model& model) { return static_cast<double>(model.tokens); }),
        replicas);
  }
  if (asked.factors.empty()) return "";
  const auto [least, most] = std::minmax_element(asked.factors.begin(), asked.factors.end());
  return fmt::format(
      "micro-batches differ: they take {:.3g} to {:.3g} times what the trace says, in proportion to "
      "their tokens; the trace does not say what attention adds, which grows with their square{}",
      *least, *most, replicas);
}

// Whether a given program says what its micro-batches cost.
bool own_costs(const Case& asked) {
  return asked.program && !asked.program->settings.costs.empty();
}

std::string chunks_note(const Case& asked) {
  int chunks = 1;
  if (asked.program) {
    chunks = asked.program->settings.sequence_chunks;
  } else if (const auto knob = asked.spec.knobs.find("sequence_chunks");
             knob != asked.spec.knobs.end()) {
    chunks = parse_number<int>(knob->second).value_or(1);
  }
  if (chunks == 1) return "";
  const std::string name = asked.program ? asked.program->schedule : spelled(asked.spec);
  if (!asked.slice) {
    return fmt::format(
        "{}: a chunk is assumed to take an equal share of a micro-batch's time, a lower bound: "
        "launches do not get shorter, smaller products run less efficiently, and later chunks attend "
        "to more tokens{}",
        name,
        asked.model.sample == "sequence" && asked.model.tokens == 0
            ? "; the trace does not say how many tokens its sequences have, which chunks must divide"
            : "");
  }
  std::string_view rest =
      ". All take their mean, though later chunks attend to more tokens; gradients of keys and "
      "values that wait for earlier chunks are not counted in memory";
  if (own_costs(asked)) {
    rest =
        ". The program's costs say what each takes of their mean; gradients of keys and values that "
        "wait for earlier chunks are not counted in memory";
  }
  if (!asked.kinds.empty()) {
    rest = "; keys and values of a chunk wait for later ones, and their gradients for it";
  }
  return fmt::format(
      "{}: a chunk is priced by kernels of as many tokens as it has{}; {} together take {:.2f} "
      "times as long as a micro-batch at once{}",
      name, asked.kinds.empty() ? "" : " and of attention to those before it",
      asked.slice_lengths.empty()
          ? fmt::format("{} of them", chunks)
          : fmt::format("{} of them, of {} tokens,", chunks, fmt::join(asked.slice_lengths, ", ")),
      slicing_cost(asked, chunks), rest);
}

// What is not priced where every device has a share of the vocabulary.
std::string vocabulary_note(const Case& asked) {
  if (asked.program || vocabulary_barriers(asked.spec.knobs) == VocabularyBarriers::whole)
    return "";
  return fmt::format(
      "{}: a share of the head takes an equal part of its time, a lower bound, since smaller products "
      "run less efficiently; the embedding's lookups are done beside the share's passes, and the "
      "all-reduce of their rows, which the paper hides, is not priced",
      spelled(asked.spec));
}

std::vector<UsedAlgorithm> used_algorithms(const Case& asked, const Outcome& outcome) {
  if (!asked.ranked) return {};
  const Partition& partition = outcome.plan.partition;
  const Placement& placement = outcome.program.placement;
  return asked.ranked->algorithms(exchanged_model(asked, partition, placement), partition,
                                  placement);
}

std::string algorithms_note(const Case& asked, const Outcome& outcome) {
  std::string text;
  const std::vector<UsedAlgorithm> used = used_algorithms(asked, outcome);
  const bool alike = std::all_of(used.begin(), used.end(), [&](const UsedAlgorithm& one) {
    return one.entry == used.front().entry;
  });
  for (const UsedAlgorithm& one : used) {
    const std::string bytes = one.least == one.most
                                  ? print(one.most)
                                  : fmt::format("{} to {}", print(one.least), print(one.most));
    text += fmt::format("{}{} {} of {} by {}", text.empty() ? "collectives: " : ", ",
                        name(one.dimension), name(one.kind), bytes, one.algorithm);
    if (!alike) text += fmt::format(" (priced by {})", print(one.entry));
    if (has_op_times(one)) {
      text += fmt::format(" ({} exposed and {} hidden a micro-batch)", print(one.exposed),
                          print(one.hidden));
    }
  }
  if (alike && !used.empty()) text += fmt::format("; priced by {}", print(used.front().entry));
  return text;
}

std::string copies_note(const Case& asked, const Outcome& outcome) {
  if (!holds_copies(asked.model, outcome.plan.partition, outcome.program.placement)) return "";
  std::vector<std::string> others;  // than the head
  for (std::size_t l = 0; l + 1 < asked.model.layers.size(); ++l) {
    const Layer& layer = asked.model.layers[l];
    if (layer.tied_weights != Bytes{}) others.push_back(layer.name);
  }
  return fmt::format(
      "{}; both hold them, since they are on different devices{}",
      others.empty() ? "the head's weights are the embedding's"
                     : fmt::format("weights of {} are the embedding's", fmt::join(others, ", ")),
      asked.ranked ? "" : ", and the reduction of their gradients is left out (--pp counts it)");
}

bool are_held_twice(const Placement& placement, int pipelines) {
  return std::any_of(placement.stage.begin(), placement.stage.end(), [&](const StagePlace& stage) {
    return stage.replicas.size() > as_size(pipelines);
  });
}

// Whether replicas of the same rank stand on one machine, and the pipeline's ranks on several.
bool replicas_share_machines(const RankedCluster& ranked) {
  const RankGrid& grid = ranked.grid();
  const std::vector<Device>& devices = ranked.devices().devices;
  const auto host = [&](int device) { return nth(devices, device).host; };
  bool share = false;
  bool spread = false;
  for (int p = 0; p < grid.degrees().pipeline; ++p) {
    const std::vector<int> holders = grid.holders(p, 0);
    spread = spread || host(holders.front()) != host(grid.holders(0, 0).front());
    for (std::size_t i = 1; i < holders.size(); ++i) {
      share = share || host(holders[i]) == host(holders[i - 1]);
    }
  }
  return share && spread;
}

// A ring among all that hold a stage crosses the links of one replica and not of another, so that
// these are not as alike as each rank's own groups are.
std::string held_twice_note(const Case& asked, const Outcome& outcome) {
  const int pipelines = asked.pipelines();
  if (pipelines * asked.copies() == 1) return "";
  if (!are_held_twice(outcome.program.placement, pipelines)) return "";
  if (asked.sharing == Sharing::fifo) {
    return fmt::format(
        "{}: stages are held twice, and under --sharing fifo an all-reduce takes its links as soon "
        "as one of its members may start, ahead of other replicas' last messages: with all replicas "
        "(--all-pipelines) gems takes up to 2.3 % longer than with one for all, chimera and "
        "dualpipe as long",
        outcome.schedule);
  }
  if (asked.copies() == 1 || !replicas_share_machines(*asked.ranked)) return "";
  return fmt::format(
      "{}: stages are held twice, and one replica stands for all, though the rings among all that "
      "hold a stage may load its links more than another's: with all replicas (--all-pipelines) "
      "steps were up to 0.9 % longer",
      outcome.schedule);
}

std::string zero_note(const Case& asked) {
  if (!asked.ranked) return "";
  const Degrees& degrees = asked.ranked->grid().degrees();
  const bool is_default = degrees.zero >= Zero::gradients && !degrees.zero_every;
  if (!is_default || reduces_in_every_backward(degrees)) return "";
  return fmt::format(
      "ZeRO {} beside a pipeline: {}gradients are reduced once a step, and held whole until then "
      "(--zero-every microbatch: in every micro-batch, as FSDP without a pipeline)",
      name(degrees.zero), degrees.zero == Zero::weights ? "weights are gathered and " : "");
}

std::string shard_note(const Case& asked) {
  if (!asked.ranked) return "";
  const Degrees& degrees = asked.ranked->grid().degrees();
  if (shard_groups(degrees) == 1) return "";
  const int experts = ranks_that_divide(degrees, WeightKind::experts);
  return fmt::format(
      "ZeRO {} divides state among {} of the {} ranks that hold the same weights{}, and {} groups add "
      "up their parts of the gradients once a step",
      name(degrees.zero), degrees.shard_group.ranks, ranks_that_hold(degrees, WeightKind::dense),
      degrees.expert > 1 ? fmt::format(" (of experts among {})", experts) : "",
      shard_groups(degrees));
}

std::vector<std::string> setting_notes(const Case& asked, const Outcome& outcome) {
  std::vector<std::string> notes{order_note(asked, outcome), cut_note(asked, outcome),
                                 pairs_note(outcome), lengths_note(asked)};
  if (asked.offloading.any()) notes.push_back(offload_note(asked, outcome));
  std::erase(notes, "");
  for (std::string& note : notes_on_no_effect(asked, outcome)) notes.push_back(std::move(note));
  return notes;
}

std::vector<std::string> setting_notes(const Case& asked) {
  const bool any = asked.recomputation.start || asked.cluster.pair_overlap.value_or(0) > 0 ||
                   asked.offloading.any() || host_is_asked(asked) || asked.device_order ||
                   asked.found_cut || overlaps_experts(asked);
  if (any) return setting_notes(asked, study(asked));
  std::vector<std::string> notes{lengths_note(asked)};
  std::erase(notes, "");
  return notes;
}

std::vector<std::string> stream_notes(const Case& asked, const Outcome& outcome) {
  std::vector<std::string> notes;
  if (const std::string note = rebuilt_note(asked); !note.empty()) notes.push_back(note);
  if (const std::string note = pairs_note(outcome); !note.empty()) notes.push_back(note);
  if (const std::string note = chunks_note(asked); !note.empty()) notes.push_back(note);
  if (std::string note = vocabulary_note(asked); !note.empty()) notes.push_back(std::move(note));
  if (const std::string note = lengths_note(asked); !note.empty()) notes.push_back(note);
  const int data_ranks = outcome.program.settings.data_ranks;
  if (data_ranks > 1 && !asked.ranked) {
    notes.push_back(fmt::format(
        "the program says \"data_ranks: {}\": reductions among these ranks take no time here; "
        "--dp {} prices them",
        data_ranks, data_ranks));
  }
  if (const std::string note = order_note(asked, outcome); !note.empty()) notes.push_back(note);
  if (const std::string note = cut_note(asked, outcome); !note.empty()) notes.push_back(note);
  if (std::string note = whole_stage_note(asked, outcome); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (const std::string note = copies_note(asked, outcome); !note.empty()) notes.push_back(note);
  if (std::string note = held_twice_note(asked, outcome); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (std::string note = zero_note(asked); !note.empty()) notes.push_back(std::move(note));
  if (std::string note = shard_note(asked); !note.empty()) notes.push_back(std::move(note));
  if (std::string note = offload_note(asked, outcome); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (std::string note = reserved_note(asked, outcome); !note.empty()) {
    notes.push_back(std::move(note));
  }
  for (std::string& note : notes_on_no_effect(asked, outcome)) notes.push_back(std::move(note));
  if (repeats(asked)) {
    notes.push_back(fmt::format(
        "{}: the program is of one step; the step's time is the pace of that step repeated",
        outcome.schedule));
  }
  if (const std::string note = unsettled_note(asked, outcome); !note.empty()) {
    notes.push_back(note);
  }
  if (!outcome.reordered.empty()) {
    notes.push_back(fmt::format(
        "{}: messages are placed as in an asynchronous run, for in the usual order (RECV before its "
        "reader, SEND after its maker) under messages: {} {}",
        outcome.schedule, name(outcome.program.settings.messages), outcome.reordered));
  }
  return notes;
}

}  // namespace stageline
