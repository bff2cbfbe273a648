// Runs a validation: profiles and measured runs by turns.
#include "tools/executor/programs/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/shared_text.hpp"
#include "tools/executor/profile/handover_profile.hpp"
#include "tools/executor/profile/lane_profiles.hpp"
#include "tools/executor/programs/expected_effort.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/run/runnable.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/evidence/judge.hpp"
#include "tools/lab/evidence/whole_device.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {
namespace {

// Ranges of layers as --partition takes them: the same cut, whatever the next profile says.
std::string ranges(const Partition& partition) {
  std::string text;
  int first = 0;
  const auto layers = static_cast<int>(partition.stage_of.size());
  for (int layer = 0; layer < layers; ++layer) {
    const bool last = layer + 1 == layers ||
                      partition.stage_of[as_size(layer) + 1] != nth(partition.stage_of, layer);
    if (!last) continue;
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, layer);
    first = layer + 1;
  }
  return text;
}

// No clock here is better.
double to_four_digits(double value) { return std::round(value * 1e4) / 1e4; }

at::ScalarType scalar_called(const std::string& dtype) {
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "fp64") return at::kDouble;
  throw UsageError(fmt::format("validation runs in fp32 or fp64, not '{}'", dtype));
}

// One model at one size, profiled by turns with its cases.
struct Subject {
  ModelShape shape;
  int batch = 1;
  Optimizer optimizer = Optimizer::momentum;
  ProfileRequest request;
  std::unique_ptr<LaneProfiles> profiles;
  std::unique_ptr<LaneProfiles> whole;  // of devices that have the whole model; null: no case's do
  // The same for micro-batches that differ.
  std::map<std::pair<Share, lab::TokenPart>, std::unique_ptr<LaneProfiles>> parts{};
};

// Tokens of the slices of a sequence, where the schedule cuts it.
std::vector<std::int64_t> lengths_of_slices(const ScheduleSpec& spec, const ModelShape& shape) {
  const auto knob = spec.knobs.find("sequence_chunks");
  const int count = knob == spec.knobs.end() ? 1 : parse_number<int>(knob->second).value_or(1);
  if (count <= 1) return {};
  const auto how = spec.knobs.find("slices");
  if (how != spec.knobs.end() && how->second != "even") {
    throw UsageError(fmt::format("{}: slices are validated where they are equal; take slices=even",
                                 spelled(spec)));
  }
  const std::int64_t tokens = most_tokens(shape);
  if (tokens == 0 || tokens % count != 0) {
    throw UsageError(fmt::format("{}: {} equal slices do not divide a sequence of {} tokens of {}",
                                 spelled(spec), count, tokens, shape.name));
  }
  return std::vector<std::int64_t>(as_size(count), tokens / count);
}

struct Running {
  Subject* subject = nullptr;
  std::size_t at = 0;  // of the case in the evidence
  Job job;
  Costs costs;
  std::unique_ptr<Executor> executor;  // only while it runs
  std::vector<Execution> runs;
};

std::vector<Accelerator> lanes_of(const ValidationPlan& plan) {
  return plan.imitate ? unpinned_accelerators(plan.devices, "--imitate")
                      : accelerators_called(plan.devices);
}

class Validation {
 public:
  Validation(const ValidationPlan& plan, const std::function<void(const ValidationProgress&)>& tell,
             const std::atomic<bool>* stop, Peers* peers)
      : plan_(plan),
        tell_(tell),
        stop_(stop),
        peers_(peers),
        accelerators_(lanes_of(plan)),
        profiled_(plan.imitate ? accelerators_called("cpu:1") : accelerators_),
        begin_(std::chrono::steady_clock::now()) {
    evidence_.cluster =
        uniform_cluster(static_cast<int>(accelerators_.size()), std::nullopt, std::nullopt);
    evidence_.cluster.name = plan.devices;
    evidence_.device = title_of(accelerators_);
    evidence_.imitated = plan.imitate;
    // Profiles run in this thread, as the last accelerator's ops do in theirs.
    if (!plan.imitate) enter(accelerators_.back(), LaneKind::compute);
    set_threads(1);
    if (!leads()) return;
    const Effort effort = expected_effort(plan, accelerators_.size(), profiled_.back());
    progress_.expected_seconds = effort.seconds;
    progress_.expected_memory = effort.tensors;
  }

  lab::Evidence run() {
    for (const ModelSizes& model : plan_.models) {
      for (const int batch : model.batches) prepare(model.shape, batch);
    }
    share_traces();
    for (Subject& subject : subjects_) make_cases(subject);
    // Cases that keep their timelines, spread over the first subject's.
    const std::size_t of_one = plan_.variants.size();
    for (int i = 0; i < plan_.timelines && of_one > 0; ++i) {
      keeps_timeline_.insert(as_size(i) * of_one / as_size(plan_.timelines));
    }
    double longest_round = 0;
    for (int round = 1; round <= plan_.rounds; ++round) {
      const double began = seconds();
      if (round > 1 && began + longest_round > plan_.seconds) {
        evidence_.notes.push_back(
            fmt::format("{} of {} rounds were run in {:.0f} s; --seconds left out the others",
                        round - 1, plan_.rounds, began));
        break;
      }
      progress_.round = round;
      for (Running& running : running_) {
        say(lab::name_of(evidence_.cases[running.at]));
        // In turns with every case, so that a slow minute is slow for both. What waits for profiled
        // times waits for the same times to the end.
        profile(running);
        profile_handover();
        start(running);
        // A training loop finds its memory and the caches as its last step left them.
        for (int i = 0; i < warm_up_runs(plan_); ++i) running.executor->run(stop_);
        running.runs.push_back(running.executor->run(stop_));
        end(running);
      }
      longest_round = std::max(longest_round, seconds() - began);
    }
    if (!plan_.imitate) describe_lanes();
    collect();
    return std::move(evidence_);
  }

  lab::Evidence count_again(lab::Evidence evidence) {
    evidence_ = std::move(evidence);
    progress_.expected_seconds = 0;  // of rounds that are not run
    for (const ModelSizes& model : plan_.models) {
      for (const int batch : model.batches) name_subject(model.shape, batch);
    }
    for (std::size_t at = 0; at < evidence_.cases.size(); ++at) {
      lab::MeasuredCase& measured = evidence_.cases[at];
      Running running = ready(subject_of(measured), at, measured.lengths,
                              study(lab::case_of(evidence_, measured)));
      for (lab::MeasuredDevice& device : measured.devices) device.peaks = device.stashes = {};
      measured.counted.reset();
      running_.push_back(std::move(running));
    }
    for (Running& running : running_) count_memory(running, evidence_.cases[running.at]);
    return std::move(evidence_);
  }

 private:
  void profile(const Running& running) {
    if (plan_.imitate) return;
    const lab::MeasuredCase& measured = evidence_.cases[running.at];
    add_rounds(measured.whole ? *running.subject->whole : *running.subject->profiles);
    std::set<lab::TokenPart> seen;
    for (const lab::TokenPart part : lab::parts_of(measured)) {
      if (!seen.insert(part).second) continue;
      add_rounds(*running.subject->parts.at({share_of(measured), part}));
    }
  }

  static Share share_of(const lab::MeasuredCase& measured) {
    return measured.whole ? Share::whole : Share::half;
  }

  void add_rounds(LaneProfiles& profiles) const {
    for (int i = 0; i < plan_.profile_rounds; ++i) profiles.rounds_alone();
    for (int i = 0; i < plan_.profile_rounds; ++i) profiles.round_together();
  }

  Subject& subject_of(const lab::MeasuredCase& measured) {
    for (Subject& subject : subjects_) {
      if (subject.shape.name == measured.model && subject.batch == measured.batch) return subject;
    }
    throw UsageError(
        fmt::format("{}: no --model is that one at that size", lab::name_of(measured)));
  }

  // The processes of an imitated validation compute nothing.
  void profile_handover() {
    if (plan_.imitate) return;
    if (!handover_) handover_ = std::make_unique<HandoverProfile>(accelerators_);
    handover_->round();
  }

  bool leads() const { return peers_ == nullptr || peers_->rank() == 0; }

  void start(Running& running) {
    running.executor =
        std::make_unique<Executor>(running.job, running.costs, accelerators_, peers_);
  }

  // One case at a time has threads and tensors, however many there are; and the processes have one
  // connection for the messages of all.
  void end(Running& running) {
    if (peers_ != nullptr) peers_->barrier();
    running.executor.reset();
  }

  void share_traces() {
    if (peers_ == nullptr) return;
    lab::Evidence traces;  // and no cases: a form in which several models can travel
    traces.cluster = evidence_.cluster;
    traces.traces = evidence_.traces;
    const std::string mine = leads() ? lab::write_evidence(traces) : "";
    evidence_.traces =
        lab::read_evidence(shared_text(*peers_, mine, stop_), "the profile of rank 0").traces;
  }

  void say(const std::string& doing) {
    if (stop_ != nullptr && *stop_) throw Stopped();
    progress_.doing = doing;
    progress_.cases = static_cast<int>(running_.size());
    progress_.seconds = seconds();
    tell_(progress_);
  }

  // Since the validation began.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  Subject& name_subject(const std::string& shape, int batch) {
    Subject& subject = subjects_.emplace_back();
    subject.request = profile_request(plan_, shape, batch, profiled_.back());
    subject.request.stop = stop_;
    subject.shape = subject.request.shape;
    subject.batch = batch;
    subject.optimizer = subject.request.optimizer;
    return subject;
  }

  void prepare(const std::string& shape, int batch) {
    Subject& subject = name_subject(shape, batch);
    if (!leads()) return;
    subject.profiles = profiles_of(subject, Share::half);
    evidence_.traces.push_back(subject.profiles->result().model);
    if (plan_.imitate) subject.profiles.reset();
  }

  std::unique_ptr<LaneProfiles> profiles_of(const Subject& subject, Share share,
                                            lab::TokenPart part = {}) {
    say(fmt::format("{} batch {}: warming up", subject.shape.name, subject.batch));
    ProfileRequest request = subject.request;
    request.share = share;
    request.begin = part.begin;
    request.tokens = part.tokens;
    auto profiles = std::make_unique<LaneProfiles>(request, profiled_);
    for (int i = 0; i < preparing_rounds; ++i) profiles->rounds_alone();
    return profiles;
  }

  void make_cases(Subject& subject) {
    for (const Variant& variant : plan_.variants) {
      lab::MeasuredCase measured;
      measured.model = subject.shape.name;
      measured.batch = subject.batch;
      measured.schedule = variant.schedule;
      measured.partition = variant.partition;
      measured.microbatches = plan_.microbatches;
      const ScheduleSpec spec = parse_schedules(variant.schedule).at(0);
      if (spec.scheduler->synchrony == Synchrony::asynchronous) {
        measured.steps = plan_.asynchronous_steps;
      }
      if (!plan_.imitate) {
        measured.lengths = lengths_of_slices(spec, subject.shape);
        if (measured.lengths.empty()) measured.lengths = plan_.lengths;
      }
      prepare_parts(subject, measured);
      measured.link = variant.link;
      measured.host_link = variant.host_link;
      measured.held_out = variant.held_out;
      measured.devices.resize(accelerators_.size());
      Outcome outcome = study(lab::case_of(evidence_, measured));
      measured.whole = !plan_.imitate &&
                       lab::has_whole_device(lab::trace_of(evidence_, measured),
                                             outcome.plan.partition, outcome.program.placement);
      if (measured.whole) {
        if (!subject.whole) {
          subject.whole = profiles_of(subject, Share::whole);
          evidence_.whole_traces.push_back(subject.whole->result().model);
        }
        prepare_parts(subject, measured);
        outcome = study(lab::case_of(evidence_, measured));
      }
      // From here on the same cut and order, whatever the whole profile says in the end.
      measured.partition = ranges(outcome.plan.partition);
      measured.program = print(outcome.program);
      running_.push_back(ready(subject, evidence_.cases.size(), measured.lengths, outcome));
      evidence_.cases.push_back(std::move(measured));
    }
  }

  // Profiles of its micro-batches, where these differ.
  void prepare_parts(Subject& subject, const lab::MeasuredCase& measured) {
    const Share share = share_of(measured);
    const std::int64_t most = most_tokens(subject.shape);
    for (const lab::TokenPart part : lab::parts_of(measured)) {
      if (subject.parts.contains({share, part})) continue;
      if (part.begin + part.tokens > most) {
        throw UsageError(fmt::format("--lengths: a sequence of {} has at most {} tokens, not {}",
                                     subject.shape.name, most, part.begin + part.tokens));
      }
      subject.parts[{share, part}] = profiles_of(subject, share, part);
      (measured.whole ? evidence_.whole_traces : evidence_.traces)
          .push_back(trace_of_part(subject, share, part));
    }
  }

  static Model trace_of_part(const Subject& subject, Share share, lab::TokenPart part) {
    Model trace = subject.parts.at({share, part})->result().model;
    trace.name = lab::part_name(subject.shape.name, part);
    return trace;
  }

  // What cannot run is refused before anything does.
  Running ready(Subject& subject, std::size_t at, const std::vector<std::int64_t>& lengths,
                const Outcome& outcome) const {
    Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, {}, false};
    job.training = {subject.shape, subject.batch, subject.optimizer, scalar_called(plan_.dtype)};
    job.training.recipe.rate = 0;
    job.training.distinct = 4;
    job.training.lengths = lengths;
    job.imitated = plan_.imitate;
    check_runnable(job, accelerators_, peers_);
    lowered(job, outcome.costs);
    return {&subject, at, std::move(job), outcome.costs, {}, {}};
  }

  // What the lanes are to each other, as profiled: the mean over the subjects.
  void describe_lanes() {
    const auto subjects = static_cast<double>(subjects_.size());
    std::vector<double> rates(accelerators_.size());
    double slowdown = 0;
    for (const Subject& subject : subjects_) {
      const std::vector<double> of_subject = subject.profiles->rates();
      for (std::size_t d = 0; d < rates.size(); ++d) rates[d] += of_subject[d] / subjects;
      slowdown += subject.profiles->slowdown() / subjects;
      if (accelerators_.size() < 2) continue;
      evidence_.notes.push_back(fmt::format(
          "{} batch {}: alone, the lanes run at rates of {:.3f}, and together of {:.3f}; together, an "
          "op takes {:.3f} times as long",
          subject.shape.name, subject.batch, fmt::join(of_subject, ", "),
          fmt::join(subject.profiles->rates(Company::beside_others), ", "),
          subject.profiles->slowdown()));
    }
    for (std::size_t d = 0; d < rates.size(); ++d) {
      evidence_.cluster.devices[d].rate = to_four_digits(rates[d]);
    }
    if (handover_) evidence_.cluster.handover = handover_->result();
    // Measured with one lane and with all of them at work; between these in proportion.
    const std::size_t others = accelerators_.size() - 1;
    for (std::size_t k = 1; k <= others; ++k) {
      evidence_.cluster.interference.push_back(to_four_digits(
          1 + (slowdown - 1) * static_cast<double>(k) / static_cast<double>(others)));
    }
  }

  void collect() {
    if (!plan_.imitate) {
      evidence_.traces.clear();
      evidence_.whole_traces.clear();
      for (const Subject& subject : subjects_) {
        evidence_.traces.push_back(subject.profiles->result().model);
        for (const auto& one : subject.parts) {
          const auto& [share, part] = one.first;
          (share == Share::whole ? evidence_.whole_traces : evidence_.traces)
              .push_back(trace_of_part(subject, share, part));
        }
        if (subject.whole) {
          evidence_.whole_traces.push_back(subject.whole->result().model);
        }
      }
    }
    for (Running& running : running_) {
      lab::MeasuredCase& measured = evidence_.cases[running.at];
      if (!plan_.imitate) count_memory(running, measured);
      for (const Execution& run : running.runs) take(run, measured);
      if (keeps_timeline_.count(running.at) > 0) keep_timeline(running, measured);
    }
  }

  // How messages and copies meet ops differs from run to run, and with it what is held.
  void count_memory(Running& running, lab::MeasuredCase& measured) {
    start(running);
    for (int i = 0; i < plan_.counted_runs && (i == 0 || seconds() < plan_.seconds); ++i) {
      say(lab::name_of(measured) + ": its memory");
      const std::vector<HeldBytes> held = running.executor->run_counted(stop_);
      for (std::size_t d = 0; d < measured.devices.size(); ++d) {
        lab::MeasuredDevice& device = measured.devices[d];
        device.peaks.push_back(Bytes{held[d].peak});
        device.stashes.push_back(Bytes{held[d].stash});
      }
      if (i == 0 && !lab::counted_as_predicted(evidence_, measured)) {
        const Execution run = running.executor->last_run();
        measured.counted = timeline_of(running.job.program, run.graph, run.times);
      }
    }
    end(running);
  }

  void take(const Execution& run, lab::MeasuredCase& measured) {
    std::vector<Time> busy(measured.devices.size());
    std::vector<Time> transfer(measured.devices.size());
    for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
      const Lane& lane = run.graph.lanes[run.graph.lane[task]];
      const auto d = as_size(lane.device);
      if (lane.kind == LaneKind::compute) busy[d] += run.graph.duration[task];
      if (is_send(run.graph.op[task].kind)) transfer[d] += run.graph.duration[task];
    }
    measured.makespan.push_back(makespan(run.times));
    for (std::size_t d = 0; d < busy.size(); ++d) {
      measured.devices[d].busy.push_back(busy[d]);
      measured.devices[d].transfer.push_back(transfer[d]);
    }
  }

  void keep_timeline(const Running& running, lab::MeasuredCase& measured) {
    const Time middle = median(measured.makespan);
    const auto distance = [&](const Execution& run) {
      return std::chrono::abs(makespan(run.times) - middle);
    };
    const auto nearest = std::min_element(
        running.runs.begin(), running.runs.end(),
        [&](const Execution& a, const Execution& b) { return distance(a) < distance(b); });
    const Outcome outcome = study(lab::case_of(evidence_, measured));
    measured.timeline = timeline_of(outcome.program, nearest->graph, nearest->times);
  }

  const ValidationPlan& plan_;
  const std::function<void(const ValidationProgress&)>& tell_;
  const std::atomic<bool>* stop_;
  Peers* peers_;  // null: one process
  std::vector<Accelerator> accelerators_;
  std::vector<Accelerator> profiled_;  // of imitated lanes: one core
  std::chrono::steady_clock::time_point begin_;
  ValidationProgress progress_;
  lab::Evidence evidence_;
  std::vector<Subject> subjects_;
  std::unique_ptr<HandoverProfile> handover_;
  std::vector<Running> running_;
  std::set<std::size_t> keeps_timeline_;
};

}  // namespace

lab::Evidence run_validation(const ValidationPlan& plan,
                             const std::function<void(const ValidationProgress&)>& tell,
                             const std::atomic<bool>* stop, Peers* peers) {
  return Validation(plan, tell, stop, peers).run();
}

lab::Evidence count_memory_again(const ValidationPlan& plan, lab::Evidence evidence,
                                 const std::function<void(const ValidationProgress&)>& tell,
                                 const std::atomic<bool>* stop) {
  return Validation(plan, tell, stop, nullptr).count_again(std::move(evidence));
}

}  // namespace stageline::executor
