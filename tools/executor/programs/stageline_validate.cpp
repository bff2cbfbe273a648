// stageline-validate: runs programs for real, predicts them, and says how far off the simulator is.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/launch.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/place.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/tell.hpp"
#include "tools/executor/profile/expected_cost.hpp"
#include "tools/executor/programs/run_notes.hpp"
#include "tools/executor/programs/validation.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/evidence/calibrate.hpp"
#include "tools/lab/evidence/kept.hpp"
#include "tools/lab/evidence/report.hpp"
#include "traces/gzip.hpp"

namespace stageline::executor {
namespace {

using stageline::print;  // of times

struct ValidateFlags {
  std::vector<std::string> models;
  std::vector<std::string> schedules;
  std::vector<std::string> seen;
  std::string devices = "cpu:2";
  std::string link;
  std::string host_link;
  std::string lengths;
  int microbatches = 0;
  int rounds = 0;
  double seconds = 0;
  std::string memory_of;
  std::string out;
  bool calibrate = false;
  bool imitate = false;
  bool every = false;
  bool quick = false;
  bool quiet = false;
};

void add_flags(cli::Flags line, ValidateFlags& flags) {
  line.option(
          "--devices", flags.devices,
          "cpu:N, cores as accelerators; cuda:N, GPUs or parts of one; cuda:N@K, parts of K SMs; "
          "with --imitate, cpu:N and process:N")
      .default_shown();
  line.option("--model", flags.models,
              "a built-in model and its sizes of micro-batch: resnet20@8,16; repeat for several "
              "(three models at three sizes)");
  const cli::Flag schedule = line.option(
      "--schedule", flags.schedules,
      "a schedule to run, NAME:knob=value; repeat for several (twelve, and two for a calibration)");
  line.option("--link", flags.link, "with --schedule: links as slow as 200MB/s,500us");
  line.option("--host-link", flags.host_link,
              "with --schedule: likewise, of each device to its host");
  const cli::Flag microbatches =
      line.option("--microbatches", flags.microbatches, "in a step (8)").range(1, 65536);
  const cli::Flag lengths = line.option(
      "--lengths", flags.lengths,
      "with --model gpt: tokens of each sequence, one number a micro-batch of a step, as `stageline "
      "simulate` takes them; each length is profiled");
  const cli::Flag rounds =
      line.option("--rounds", flags.rounds, "runs of each program (5)").range(1, 1 << 20);
  const cli::Flag seconds =
      line.option("--seconds", flags.seconds,
                  "begin no further round that would end later than this; each program runs once")
          .range(1.0, 1e6);
  const cli::Flag seen =
      line.option("--seen", flags.seen, "like --schedule, for a calibration to see");
  const cli::Flag calibrate =
      line.flag("--calibrate", flags.calibrate,
                "fit the cluster (rate, overhead of an op) to the programs that are not held out, "
                "and judge the others with it");
  const cli::Flag imitate = line.flag(
      "--imitate", flags.imitate,
      "ops wait for their profiled times instead of computing, so that lanes may outnumber the "
      "cores: a test of order, messages and runtime, not of arithmetic");
  const cli::Flag every =
      line.flag("--every", flags.every,
                "every schedule that two devices hold, with the knobs that change memory");
  const cli::Flag quick =
      line.flag("--quick", flags.quick, "one model at one size, three runs: to see that it works");
  const cli::Flag memory_of = line.option(
      "--memory-of", flags.memory_of,
      "run no program for its time, but count the memory of those in this evidence again; --model "
      "says of which models they are, where these are not the usual ones");
  for (const cli::Flag other :
       {schedule, microbatches, lengths, rounds, seconds, seen, calibrate, imitate, every, quick}) {
    memory_of.excludes(other);
  }
  line.writes_also(
      line.option("--out", flags.out,
                  "write the evidence to FILE.json, or packed to FILE.json.gz, and its figures to "
                  "FILE.summary.json beside it")
          .writes_file(),
      {"{stem}.summary.json"});
  line.flag("--quiet", flags.quiet, "no progress");
  line.footer(
      "Example:\n  stageline-validate --model resnet20@8 --schedule gpipe --schedule 1f1b --rounds "
      "5\n`stageline replay FILE.json --report DIR` draws what was written.\n"
      "Exit code 0: done. 2: bad input. 130, 143: interrupted, nothing written.");
}

ModelSizes parse_sizes(const std::string& text) {
  const std::size_t at = text.rfind('@');
  ModelSizes sizes{text.substr(0, at), {}};
  std::size_t from = at;
  while (from != std::string::npos) {
    const std::size_t to = text.find(',', from + 1);
    const std::string word = text.substr(from + 1, to == std::string::npos ? to : to - from - 1);
    const int batch = parse_number<int>(word).value_or(0);
    if (batch < 1) {
      throw UsageError(fmt::format(
          "--model {}: '{}' is no size of a micro-batch; write resnet20@8,16", text, word));
    }
    sizes.batches.push_back(batch);
    from = to;
  }
  if (sizes.batches.empty()) sizes.batches = {parse_shape(sizes.shape).usual_batch};
  return sizes;
}

ValidationPlan plan_of(const ValidateFlags& flags) {
  if (flags.every && (flags.calibrate || !flags.schedules.empty())) {
    throw UsageError(
        "--every names its schedules itself, none of them to calibrate on; leave out " +
        std::string(flags.calibrate ? "--calibrate" : "--schedule"));
  }
  ValidationPlan plan = flags.every ? every_plan() : usual_plan();
  plan.devices = flags.devices;
  // Before anything is profiled.
  if (!flags.link.empty()) parse_link(flags.link);
  if (!flags.host_link.empty()) parse_link(flags.host_link, "--host-link");
  if (flags.quick) {
    plan.models = {{plan.models[0].shape, {plan.models[0].batches[0]}}};
    plan.rounds = 3;
  }
  if (!flags.models.empty()) {
    plan.models.clear();
    for (const std::string& model : flags.models) plan.models.push_back(parse_sizes(model));
  }
  if (!flags.schedules.empty()) {
    plan.variants.clear();
    for (const std::string& schedule : flags.schedules) {
      plan.variants.push_back({schedule, flags.link, "balanced", true, flags.host_link});
    }
  } else if (!flags.link.empty() || !flags.host_link.empty()) {
    throw UsageError(
        fmt::format("{} goes with --schedule; the usual programs have links of their own",
                    flags.link.empty() ? "--host-link" : "--link"));
  }
  if (!flags.seen.empty() && flags.schedules.empty()) {
    throw UsageError("--seen goes with --schedule; the usual programs have some of their own");
  }
  for (const std::string& schedule : flags.seen) {
    plan.variants.push_back({schedule, flags.link, "balanced", false, flags.host_link});
  }
  plan.calibrate = flags.calibrate;
  plan.imitate = flags.imitate;
  if (flags.calibrate && flags.imitate) {
    throw UsageError("--calibrate fits the times of ops that compute; leave out --imitate");
  }
  if (flags.devices.rfind("process:", 0) == 0 && !flags.imitate) {
    throw UsageError(
        "--devices process:N goes with --imitate here; stageline-exec runs processes that compute");
  }
  if (flags.microbatches > 0) plan.microbatches = flags.microbatches;
  if (!flags.lengths.empty() && flags.imitate) {
    throw UsageError("--lengths are those of micro-batches that compute; leave out --imitate");
  }
  if (!flags.lengths.empty()) {
    plan.lengths =
        plain_tokens(lengths_of(flags.lengths, plan.microbatches, length_step(Sharding{})));
  }
  if (flags.rounds > 0) plan.rounds = flags.rounds;
  if (flags.seconds > 0 && flags.devices.rfind("process:", 0) == 0) {
    throw UsageError("--seconds is one process's clock; leave it out with --devices process:N");
  }
  if (flags.seconds > 0) plan.seconds = flags.seconds;
  return plan;
}

// What says so on standard error. `rounds`: 0 where there are none.
class Teller {
 public:
  Teller(const ValidateFlags& flags, int rounds)
      : quiet_(flags.quiet), live_(!flags.quiet && ::isatty(2) != 0), rounds_(rounds) {}

  void show(const ValidationProgress& progress) {
    if (!std::exchange(said_expected_, true) && progress.expected_seconds > 0 &&
        (!quiet_ || progress.expected_seconds > quiet_for_seconds)) {
      tell("the validation: {}, up to {} of tensors\n", about(progress.expected_seconds),
           print(progress.expected_memory));
    }
    const std::string round =
        rounds_ > 0 ? fmt::format("round {} of {}", progress.round, rounds_) : "memory";
    if (live_) {
      tell_in_place("{}, {:.0f} s: {}", round, progress.seconds, progress.doing);
    } else if (!quiet_ && progress.round != said_) {
      said_ = progress.round;
      tell("{}: {} programs, {:.0f} s\n", round, progress.cases, progress.seconds);
    }
  }
  void finish() const {
    if (live_) erase_told();
  }

 private:
  bool quiet_;
  bool live_;
  int rounds_;
  int said_ = -1;
  bool said_expected_ = false;
};

std::string software_of(const ProcessReport& process, bool cores) {
  return cores ? fmt::format("LibTorch {}, oneDNN {}, {}", process.libtorch, process.onednn,
                             process.blas.name)
               : fmt::format("LibTorch {}, {}", process.libtorch,
                             libraries_of(device_called("cuda")));
}

bool is_packed(const std::string& out) { return out.ends_with(".gz"); }

// FILE.summary.json, of FILE.json and of FILE.json.gz.
std::string beside(const std::string& out) {
  std::filesystem::path path(out);
  if (is_packed(out)) path.replace_extension();
  return path.replace_extension(".summary.json").string();
}

int report(const ValidateFlags& flags, const lab::Evidence& evidence) {
  const lab::EvidenceJudgement judgement = lab::judge(evidence);
  if (!flags.out.empty()) {
    const std::string text = lab::write_evidence(evidence);
    write_file(flags.out, is_packed(flags.out) ? gzipped(text) : text);
    write_file(beside(flags.out), lab::kept_json(judgement));
  }
  fmt::print("{}", lab::replay_text(evidence, judgement));
  return 0;
}

int validate_all(const ValidateFlags& flags, const std::vector<std::string>& warned,
                 const std::string& command, char** argv) {
  const std::atomic<bool>& interrupted = cli::catch_signals(cli::SecondSignal::ignored);
  cli::end_soon_after_signal("stageline-validate: interrupted; nothing was written\n");
  const ValidationPlan plan = plan_of(flags);
  std::unique_ptr<Peers> peers;
  std::optional<Place> place;
  if (plan.devices.rfind("process:", 0) == 0) {
    const auto count = static_cast<int>(unpinned_accelerators(plan.devices, "--imitate").size());
    place = place_from_environment();
    if (!place) return launch(count, argv);
    peers = std::make_unique<Peers>(*place, std::chrono::seconds(60));
  }
  set_threads(1);
  if (place && place->rank > 0) {
    run_validation(
        plan, [](const ValidationProgress&) {}, &interrupted, peers.get());
    return 0;
  }
  const ProcessReport process = inspect_process();
  std::vector<std::string> notes = warned;
  for (const std::string& warning : warnings(process)) notes.push_back(warning);
  if (!flags.quiet) tell("{}\n", print(process));
  for (const std::string& note : notes) tell("warning: {}\n", note);

  Teller teller(flags, plan.rounds);
  lab::Evidence evidence = run_validation(
      plan, [&](const ValidationProgress& progress) { teller.show(progress); }, &interrupted,
      peers.get());
  cli::let_results_be_written();
  teller.finish();
  evidence.date = today();
  const bool cores = evidence.device.empty();
  const std::string device = cores ? process.cpu.model : evidence.device;
  evidence.device = fmt::format("{}, {}", device, plan.devices);
  evidence.software = software_of(process, cores);
  const int rounds = evidence.cases.empty()
                         ? plan.rounds
                         : static_cast<int>(evidence.cases.front().makespan.size());
  const std::string lengths =
      plan.lengths.empty() ? "" : fmt::format(" of {} tokens", fmt::join(plan.lengths, ", "));
  evidence.settings =
      fmt::format("{}, {} rounds, {} micro-batches{}{}", plan.dtype, rounds, plan.microbatches,
                  lengths, plan.imitate ? ", compute imitated" : "");
  evidence.command = command;
  evidence.notes.insert(evidence.notes.begin(), notes.begin(), notes.end());
  for (std::vector<Model>* const traces : {&evidence.traces, &evidence.whole_traces}) {
    for (Model& trace : *traces) {
      trace.provenance.origin = Origin::measured;
      trace.provenance.device = device;
      trace.provenance.method = plan.imitate ? "layers profiled before the programs"
                                             : "layers profiled by turns with the programs";
      trace.provenance.software = evidence.software;
      trace.provenance.settings = evidence.settings;
      trace.provenance.date = evidence.date;
    }
  }
  if (plan.calibrate) {
    const lab::DeviceFit fit = lab::calibrate(evidence);
    evidence.notes.push_back(fmt::format(
        "calibrated on {} busy times: rate {:.4f}, overhead of an op {}; their mean error was "
        "{:.2f} % before and is {:.2f} % with it",
        fit.observations, fit.rate, print(fit.op_overhead), fit.before * 100, fit.after * 100));
    evidence.cluster = calibrated(evidence.cluster, fit);
  }
  lab::drop_derived_programs(evidence);
  if (!flags.quiet) {
    for (std::size_t i = notes.size(); i < evidence.notes.size(); ++i) {
      tell("{}\n", evidence.notes[i]);
    }
  }
  return report(flags, evidence);
}

int count_again(const ValidateFlags& flags) {
  const std::atomic<bool>& interrupted = cli::catch_signals(cli::SecondSignal::ignored);
  cli::end_soon_after_signal("stageline-validate: interrupted; nothing was written\n");
  const ValidationPlan plan = plan_of(flags);
  lab::Evidence evidence =
      lab::read_evidence(read_content(flags.memory_of).named.text, flags.memory_of);
  if (evidence.imitated) {
    throw UsageError(fmt::format("{}: imitated ops hold no memory", flags.memory_of));
  }
  set_threads(1);
  const ProcessReport process = inspect_process();
  Teller teller(flags, 0);
  evidence = count_memory_again(
      plan, std::move(evidence), [&](const ValidationProgress& progress) { teller.show(progress); },
      &interrupted);
  cli::let_results_be_written();
  teller.finish();
  evidence.notes.push_back(fmt::format("memory counted again on {}: {}", today(),
                                       software_of(process, plan.devices.rfind("cpu:", 0) == 0)));
  return report(flags, evidence);
}

}  // namespace
}  // namespace stageline::executor

int main(int argc, char** argv) {
  using namespace stageline::executor;
  ValidateFlags flags;
  std::vector<std::string> warned;
  const stageline::cli::ProgramMain program{
      "stageline-validate",
      "Runs programs for real, predicts them, and says how far off the simulator is.",
      "there is not enough memory; try smaller micro-batches (--model)"};
  return stageline::cli::program_main(program, argc, argv, [&](stageline::cli::Flags line) {
    warned = prepare_process(argv);
    add_flags(line, flags);
    line.runs([&] {
      try {
        if (!flags.memory_of.empty()) return count_again(flags);
        return validate_all(flags, warned, command_of("stageline-validate", argc, argv, {"--out"}),
                            argv);
      } catch (const Stopped&) {
        throw stageline::cli::Interrupted{"nothing was written", true};
      }
    });
  });
}
