// stageline-profile: measures a built-in model's layers on this machine and writes a trace.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/tell.hpp"
#include "tools/executor/profile/expected_cost.hpp"
#include "tools/executor/profile/profile.hpp"
#include "tools/executor/profile/profile_text.hpp"
#include "tools/executor/programs/run_notes.hpp"
#include "tools/executor/run/worker_pool.hpp"
#include "traces/traces.hpp"

namespace stageline::executor {
namespace {

struct ProfileFlags {
  std::string model;
  std::vector<int> batches;
  std::string device = "cpu";
  int processors = 0;  // of a part of a GPU; 0: all
  int threads = 1;
  std::vector<int> cores;
  std::string dtype = "fp32";
  std::string optimizer;
  int rounds = 16;
  double seconds = 60;
  double steady = 2;
  double bound = 5;
  std::string out;
  std::string samples;
  bool whole = false;
  bool quiet = false;
};

// Why the text is no percentage above 0 (nan is none), or an empty text.
std::string fault_of_percentage(const std::string& text) {
  const double value = parse_number<double>(text).value_or(0);
  const bool good = value > 0 && value <= 1e6;
  return good ? "" : fmt::format("{} is not a percentage above 0", text);
}

void add_flags(cli::Flags line, ProfileFlags& flags) {
  line.option("MODEL", flags.model, "what to measure: NAME or NAME,option=value (see --models)")
      .required();
  line.option("--batch", flags.batches, "samples in a micro-batch; several: 8,16 (its usual)")
      .comma_list()
      .range(1, 1 << 30);
  line.option("--device", flags.device, "cpu, cuda, cuda:1").default_shown();
  line.option("--sms", flags.processors, "measure on a part of the first GPU with so many SMs")
      .range(1, 100000);
  line.option("--threads", flags.threads, "of one operation on the CPU").default_shown();
  line.option("--cores", flags.cores,
              "cores to stay on: 0,1 (on a CPU the last ones, as many as there are threads)")
      .comma_list();
  line.option("--dtype", flags.dtype, "fp32, fp64, on an accelerator also tf32").default_shown();
  line.option("--optimizer", flags.optimizer, "sgd, momentum, adam (the model's usual)");
  line.flag("--whole", flags.whole,
            "as a device runs layers that has the whole model (Chimera, DualPipe, GEMS, PipeFB, "
            "replicas), not a half of it");
  line.option("--rounds", flags.rounds, "at least so many samples of each time")
      .default_shown()
      .range(4, 100000);
  line.option("--seconds", flags.seconds,
              "at most so long for a batch size, once it has --rounds, steady or not")
      .default_shown()
      .not_negative();
  line.option("--steady", flags.steady,
              "go on until no large layer's median moved by more, in percent")
      .default_shown()
      .positive();
  line.option("--bound", flags.bound,
              "refuse the trace if its layers add up to more or less than the whole model takes, "
              "in percent")
      .default_shown()
      .check(fault_of_percentage, "PERCENT");
  line.option("--out", flags.out, "write the trace to this file; - is standard output")
      .writes_file();
  line.option("--samples", flags.samples, "write all samples to this file, as CSV").writes_file();
  line.flag("--quiet", flags.quiet, "no progress, no table");
  line.prints(
      "--models", [] { return list_of_models(); }, "list what can be measured");
  line.footer(
      "Example:\n"
      "  stageline-profile resnet20 --batch 32,64 --out resnet20.json\n"
      "  stageline compare resnet20.json --devices 4\n"
      "Exit code 0: done. 1: measured, but unfit, so not written. 2: bad input. "
      "130, 143: interrupted, nothing written.");
}

// Before a profile begins; of a long one under --quiet, too.
void print_expected(const ProfileFlags& flags, const ProfileRequest& request,
                    const QuickRates& rates) {
  const ExpectedCost cost = expected_cost(request, rates);
  const double seconds =
      cost.warm_up_seconds + std::max(request.least_rounds * cost.round_seconds,
                                      std::min(request.least_seconds, request.most_seconds));
  if (flags.quiet && seconds <= quiet_for_seconds) return;
  tell("{} batch {}: {} at least, {} of tensors\n", request.shape.name, request.batch,
       about(seconds), print(cost.session()));
}

// One line, rewritten on a terminal.
class ProgressLine {
 public:
  ProgressLine(bool wanted, const ProfileRequest& request)
      : on_(wanted && ::isatty(2) != 0),
        say_end_(wanted),
        what_(fmt::format("{} batch {}", request.shape.name, request.batch)),
        least_(request.least_rounds) {
    if (on_) tell_in_place("{}: warming up", what_);
  }
  void operator()(const Progress& progress) {
    last_ = progress;
    if (on_) tell_in_place("{}", line());
  }
  void end(bool steady) const {
    if (on_) erase_told();
    if (say_end_) tell("{}{}\n", line(), steady ? "" : ": NOT steady");
  }

 private:
  std::string line() const {
    return fmt::format(
        "{}: {} rounds ({} at least), {:.0f} s, step moved {:.1f} %{}", what_, last_.rounds, least_,
        last_.seconds, last_.so_far.step * 100,
        last_.so_far.worst_layer.empty()
            ? ""
            : fmt::format(", {} {:.1f} %", last_.so_far.worst_layer, last_.so_far.worst * 100));
  }
  bool on_;
  bool say_end_;
  std::string what_;
  int least_;
  Progress last_;
};

// Those asked for, else the last ones: the first is where interrupts are served.
std::vector<int> cores_for(const ProfileFlags& flags) {
  if (!flags.cores.empty()) return flags.cores;
  const std::vector<int> allowed = allowed_cores();
  const auto wanted = as_size(std::max(flags.threads, 1));
  return {allowed.end() - static_cast<std::ptrdiff_t>(std::min(allowed.size(), wanted)),
          allowed.end()};
}

int measure(const ProfileFlags& flags, std::vector<std::string> warned,
            const std::string& command) {
  const std::atomic<bool>& interrupted = cli::catch_signals(cli::SecondSignal::ignored);
  cli::end_soon_after_signal("stageline-profile: interrupted; nothing was written\n");
  ProfileRequest request;
  request.shape = parse_shape(flags.model);
  request.optimizer =
      optimizer_called(flags.optimizer.empty() ? request.shape.usual_optimizer : flags.optimizer);
  request.device = device_spelled_out(flags.device);
  if (flags.processors > 0 && request.device != "cuda:0") {
    throw UsageError(fmt::format("--sms goes with --device cuda, not {}", flags.device));
  }
  request.dtype = flags.dtype;
  if (flags.whole) request.share = Share::whole;
  request.least_rounds = flags.rounds;
  request.most_seconds = flags.seconds;
  request.steady = flags.steady / 100;
  request.stop = &interrupted;
  const std::set<int> sorted(flags.batches.begin(), flags.batches.end());
  std::vector<int> batches(sorted.begin(), sorted.end());
  if (batches.empty()) batches = {request.shape.usual_batch};

  // Whoever drives an accelerator has threads of the driver's and of autograd's beside its own.
  if (!flags.cores.empty() || request.device == "cpu") pin_to_cores(cores_for(flags));
  if (flags.processors > 0) {
    Accelerator part = accelerators_called(fmt::format("cuda:1@{}", flags.processors)).at(0);
    part.cores.clear();
    enter(part, LaneKind::compute);
  }
  set_threads(flags.threads);
  const ProcessReport process = inspect_process();
  if (request.device == "cpu") {
    for (const std::string& warning : warnings(process)) warned.push_back(warning);
  }
  if (!flags.quiet) tell("{}\n", print(process));
  for (const std::string& warning : warned) tell("warning: {}\n", warning);

  const QuickRates rates = quick_rates(request.device);
  std::vector<Profile> profiles;
  std::string failed;  // what cannot be measured does not lose what has been
  for (const int batch : batches) {
    request.batch = batch;
    print_expected(flags, request, rates);
    ProgressLine line(!flags.quiet, request);
    try {
      profiles.push_back(profile(request, [&](const Progress& progress) { line(progress); }));
      if (flags.processors > 0) {
        profiles.back().device += fmt::format(", a part of {} SMs", flags.processors);
      }
    } catch (const UsageError& error) {
      if (profiles.empty()) throw;
      failed = error.what();
      break;
    }
    line.end(profiles.back().steady);
  }
  if (interrupted) throw Stopped();
  cli::let_results_be_written();
  const Provenance provenance =
      provenance_of({request, process, warned, profiles, command, today()});
  std::vector<Model> models;
  for (Profile& one : profiles) {
    one.model.provenance = provenance;
    models.push_back(one.model);
  }
  if (!flags.quiet && flags.out != "-") fmt::print("{}", summary(models));
  if (!flags.samples.empty()) write_file(flags.samples, samples_csv(profiles));
  const std::string unfit = why_unfit(models, flags.bound / 100);
  if (!unfit.empty()) {
    tell("stageline-profile: {}\n", unfit);
    return 1;
  }
  if (!flags.out.empty()) write_file(flags.out, write_trace(models));
  if (!failed.empty()) throw UsageError(failed);
  return 0;
}

}  // namespace
}  // namespace stageline::executor

int main(int argc, char** argv) {
  using namespace stageline::executor;
  ProfileFlags flags;
  std::vector<std::string> warned;
  const stageline::cli::ProgramMain program{
      "stageline-profile",
      "Measures what each layer of a built-in model costs on this machine (forward, input gradient, "
      "weight gradient, both at once, optimizer step, bytes) and writes a trace that `stageline` "
      "reads.",
      "there is not enough memory; try a smaller --batch"};
  return stageline::cli::program_main(program, argc, argv, [&](stageline::cli::Flags line) {
    warned = prepare_process(argv);
    add_flags(line, flags);
    line.runs([&] {
      try {
        return measure(flags, warned,
                       command_of("stageline-profile", argc, argv, {"--out", "--samples"}));
      } catch (const Stopped&) {
        throw stageline::cli::Interrupted{"nothing was written", !flags.quiet && ::isatty(2) != 0};
      }
    });
  });
}
