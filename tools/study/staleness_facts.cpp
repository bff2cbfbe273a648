#include "tools/study/staleness_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/index.hpp"
#include "sim/op.hpp"
#include "sim/text/words.hpp"
#include "tools/study/layout.hpp"
#include "tools/study/pace.hpp"

namespace stageline {
namespace {

bool ends_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::weight_grad || kind == OpKind::input_grad;
}

std::string spaced(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

// Everything on one device: weights, gradients, optimizer, one stash of every stage.
Bytes without_pipeline(const Costs& costs) {
  Bytes sum{};
  Bytes workspace{};
  for (const StageCosts& stage : costs.stage) {
    sum += stage.weights + stage.gradients + stage.optimizer_state + stage.stash();
    workspace = std::max(workspace, stage.workspace);
  }
  return sum + workspace;
}

// Why the step is a mean, where it is one; else empty.
std::string unsettled_note(const Case& asked, const Outcome& outcome) {
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
      program.total_microbatches() / static_cast<std::uint32_t>(program.sequence_chunks);
  return fmt::format(
      "{}: a program of {} micro-batch{} is too short to show a steady pace; the step is the mean "
      "of the whole program, filling and draining included (write the program with --steps {} to "
      "see the pace)",
      outcome.schedule, microbatches, microbatches == 1 ? "" : "es", enough);
}

// "+71 % over no pipeline", "6 % under no pipeline".
std::string beside_no_pipeline(double increase) {
  const double percent = std::round(increase * 100) + 0.0;  // no "-0"
  return percent < 0 ? fmt::format("{:.0f} % under no pipeline", -percent)
                     : fmt::format("{:+.0f} % over no pipeline", percent);
}

}  // namespace

std::vector<int> live_microbatches(const Program& program, const Timeline& timeline) {
  struct Life {
    Time start = Time::max();
    Time end{};
  };
  std::vector<std::vector<Life>> lives(as_size(program.stages()),
                                       std::vector<Life>(as_size(program.total_microbatches())));
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const Span& span : timeline.lane(static_cast<int>(device), LaneKind::compute)) {
      if (!counts_microbatches(span.op.kind)) continue;
      Life& life = lives[span.op.stage][span.op.microbatch];
      if (span.op.kind == OpKind::forward) life.start = span.start;
      if (ends_backward(span.op.kind)) life.end = std::max(life.end, span.end);
    }
  }
  std::vector<int> most;
  for (const std::vector<Life>& stage : lives) {
    // At one moment first those end that began before, then others begin, and last those end that
    // take no time.
    struct Change {
      Time at;
      int turn;
      int change;
    };
    std::vector<Change> changes;
    for (const Life& life : stage) {
      if (life.start == Time::max()) continue;
      changes.push_back({life.start, 1, +1});
      changes.push_back({life.end, life.start < life.end ? 0 : 2, -1});
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.turn < b.turn;
    });
    int now = 0;
    int peak = 0;
    for (const Change& change : changes) peak = std::max(peak, now += change.change);
    most.push_back(peak);
  }
  return most;
}

StreamFacts stream_facts(const Outcome& outcome) {
  StreamFacts facts;
  facts.live = live_microbatches(outcome.program, outcome.timeline);
  Bytes all{};
  Bytes stale{};
  for (std::size_t s = 0; s < outcome.versions.size(); ++s) {
    const auto degree = static_cast<int>(outcome.versions[s].staleness_max);
    facts.degree.push_back(degree);
    all += outcome.costs.stage[s].weights;
    if (degree > 0) stale += outcome.costs.stage[s].weights;
  }
  if (all > Bytes{}) {
    facts.stale_share = static_cast<double>(stale.count) / static_cast<double>(all.count);
  }
  double peaks = 0;
  for (const DeviceMemory& device : outcome.memory.device) {
    peaks += static_cast<double>(device.peak.count);
  }
  const auto plain = static_cast<double>(without_pipeline(outcome.costs).count);
  if (plain > 0) facts.memory_increase = peaks / plain - 1;
  if (outcome.program.schedule == "stale_weights") {
    facts.cycles =
        static_cast<int>(outcome.program.total_microbatches()) + 2 * (outcome.program.stages() - 1);
  }
  return facts;
}

std::string stream_report(const Outcome& outcome) {
  std::string text;
  if (outcome.synchrony == Synchrony::asynchronous) {
    const StreamFacts facts = stream_facts(outcome);
    text += fmt::format(
        "stale weights {}; by stage: degree of staleness {} updates, live mini-batches {}\n",
        outcome.bytes_known() ? fmt::format("{:.2f} % of all", facts.stale_share * 100) : "unknown",
        spaced(facts.degree), spaced(facts.live));
    text += fmt::format(
        "utilization {:.1f} %; memory of all devices {}{}\n", (1 - outcome.bubble_fraction) * 100,
        outcome.bytes_known() ? beside_no_pipeline(facts.memory_increase) : "unknown",
        facts.cycles > 0 ? fmt::format("; {} mini-batches in {} cycles",
                                       outcome.program.total_microbatches(), facts.cycles)
                         : "");
  }
  const auto& delay = outcome.program.delay;
  if (!delay.empty()) {
    text += fmt::format("delays by stage (F reads weights so many updates old): {}\n",
                        by_stage(delay, no_delay));
  }
  if (!outcome.program.window.empty()) {
    text += fmt::format("windows by stage (mini-batches in flight at most): {}\n",
                        by_stage(outcome.program.window, no_window));
  }
  for (std::size_t h = 0; h < outcome.memory.host.size(); ++h) {
    const DeviceMemory& host = outcome.memory.host[h];
    if (host.peak == Bytes{}) continue;
    const auto limit = h < outcome.host_limit.size() ? outcome.host_limit[h] : std::nullopt;
    text += fmt::format("host memory: peak {} on {} at {}{}\n", print(host.peak),
                        outcome.costs.network.hosts[h], print(host.peak_at),
                        !limit               ? std::string(" (how much it has is unknown)")
                        : host.peak > *limit ? fmt::format(": does NOT fit in {}", print(*limit))
                                             : fmt::format(" of {}: fits", print(*limit)));
  }
  return text;
}

std::string rebuilt_note(const Case& asked) {
  if (asked.program) return "";
  const Scheduler& scheduler = *asked.spec.scheduler;
  if (scheduler.name == "layerpipe") {
    return "layerpipe: which device does what is rebuilt from the papers' abstracts";
  }
  if (scheduler.name == "pipefb") return "pipefb: its rules are rebuilt from the paper's abstract";
  if (scheduler.name == "gems")
    return "gems: its rule is rebuilt from how other papers describe it";
  if (scheduler.name == "hanayo") return "hanayo: its order is rebuilt from the rule of the waves";
  const auto concat = asked.spec.knobs.find("concat");
  if (concat != asked.spec.knobs.end() && concat->second == "doubling") {
    return fmt::format("{}: the order is rebuilt", spelled(asked.spec));
  }
  const auto transfer = asked.spec.knobs.find("transfer");
  if (transfer == asked.spec.knobs.end() || transfer->second == "none") return "";
  return fmt::format("{}: the data transfer's rules are rebuilt", spelled(asked.spec));
}

std::vector<std::string> stream_notes(const Case& asked, const Outcome& outcome) {
  std::vector<std::string> notes;
  if (const std::string note = rebuilt_note(asked); !note.empty()) notes.push_back(note);
  bool offloads = false;
  bool free = true;
  for (std::size_t device = 0; device < outcome.program.ops.size(); ++device) {
    for (const Op op : outcome.program.ops[device]) {
      if (op.kind != OpKind::offload) continue;
      offloads = true;
      free = free && outcome.costs.network.to_host[device].is_free();
    }
  }
  if (offloads && free) {
    notes.push_back(fmt::format(
        "{}: copies to the host are free: no --host-link and no cluster with one was given",
        outcome.schedule));
  }
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
        "{}: messages stand where they are in an asynchronous run, for in the usual order (RECV "
        "before its reader, SEND behind its maker) under messages: {} {}",
        outcome.schedule, name(outcome.program.messages), outcome.reordered));
  }
  return notes;
}

std::string placed(const Program& program, int stage) {
  const StagePlace& place = nth(program.placement.stage, stage);
  const auto name = [&](int device) { return nth(program.devices, device); };
  std::string text;
  for (const int device : place.replicas) text += (text.empty() ? "" : "+") + name(device);
  if (!place.apart()) return text;
  const std::vector<int>& w = place.weight_grad.empty() ? place.replicas : place.weight_grad;
  const std::vector<int>& i = place.input_grad.empty() ? place.replicas : place.input_grad;
  if (i == w) return fmt::format("F {}, B {}", text, name(w[0]));
  std::string parts;
  for (std::size_t part = 0; part < i.size(); ++part) {
    if (part > 0) parts += " + ";
    if (i.size() > 1) parts += fmt::format("{:.0f} % ", place.share[part] * 100);
    parts += name(i[part]);
  }
  return fmt::format("F {}, I {}, W {}", text, parts, name(w[0]));
}

}  // namespace stageline
