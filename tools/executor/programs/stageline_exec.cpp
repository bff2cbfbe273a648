// stageline-exec: runs a program for real, on tensors, and says what `stageline simulate` says of
// it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/roofline.hpp"
#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"
#include "sim/lower/passes.hpp"
#include "sim/varied_costs.hpp"
#include "tools/answers/predicted.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/launch.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/place.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/tell.hpp"
#include "tools/executor/programs/run_notes.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/run/measured_outcome.hpp"
#include "tools/executor/tensors/traced_model.hpp"
#include "tools/inputs/case_slices.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/timeline/chrome_trace.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::executor {
namespace {

using stageline::print;  // of times

struct ExecFlags {
  cli::CommonFlags common;
  std::string model;
  std::string dtype = "fp32";
  std::string optimizer;
  double rate = 0.01;
  std::uint64_t seed = 1;
  int runs = 5;
  int replicas = 1;
  int zero = 0;
  bool imitate = false;
  bool shared_cores = false;
  std::string svg;
  std::string chrome;
};

void add_flags(cli::Flags line, ExecFlags& flags) {
  cli::add_case_flags(line, flags.common);
  line.find("--devices")
      .describe(
          "cpu:N, so many cores as accelerators; cuda:N, so many GPUs, or parts of one; "
          "cuda:N@K, parts of K SMs; process:N, as many processes of one core, which torchrun may "
          "have started on several machines; default cpu:2");
  const cli::Flags model = line.in(SettingGroup::model);
  const cli::Flags parallelism = line.in(SettingGroup::parallelism).common();
  const cli::Flags training = line.in(SettingGroup::training);
  const cli::Flags output = line.in(SettingGroup::output).common();
  model.common().option("--model", flags.model,
                        "the built-in model to run; default the one that the trace is of");
  model.common()
      .option("--dtype", flags.dtype, "fp32 or fp64")
      .default_shown()
      .one_of({"fp32", "fp64"});
  training.common().option("--optimizer", flags.optimizer,
                           "sgd, momentum, adam (the model's usual)");
  training.option("--rate", flags.rate, "learning rate").default_shown();
  training.option("--seed", flags.seed, "of weights and data").default_shown();
  training.common()
      .option("--runs", flags.runs, "of the whole program, behind one that warms up")
      .default_shown()
      .range(1, 100000);
  parallelism
      .option("--replicas", flags.replicas,
              "of the whole pipeline (data parallelism), each on its share of the accelerators; "
              "--microbatches are each replica's")
      .default_shown()
      .range(1, max_parts);
  parallelism
      .option("--zero", flags.zero,
              "1: each replica of a stage keeps the optimizer's state of its share of the weights "
              "(ZeRO stage 1)")
      .default_shown()
      .range(0, 1);
  training.flag(
      "--imitate", flags.imitate,
      "ops wait for their predicted times instead of computing, so that devices may outnumber "
      "the cores: a test of order, messages and runtime, not of arithmetic");
  training.flag(
      "--shared-cores", flags.shared_cores,
      "accelerators may outnumber the cores: results are those of cores of their own, times "
      "are not");
  output.option("--svg", flags.svg, "draw the run of median length to an SVG file").writes_file();
  output.option("--chrome", flags.chrome, "write it as a Chrome trace (opens in Perfetto)")
      .writes_file();
  line.footer(
      "Example:\n"
      "  stageline-exec resnet20-cpu --schedule 1f1b --devices cpu:2 --microbatches 8 "
      "--link 200MB/s,500us\n"
      "The trace says where to cut and what to expect; --link is imitated. Exit code 0: done. 2: "
      "bad input. 130, 143: interrupted, nothing written.");
}

double share_of(Time some, Time whole) {
  return whole > Time{} ? to_seconds(some) / to_seconds(whole) - 1 : 0;
}

// Durations of one kind of op of one stage, as measured: the median, or of micro-batches that
// differ the mean, as their predicted costs are.
Time typical(const Execution& run, int stage, OpKind kind, bool alike) {
  std::vector<Time> times;
  for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
    const Op op = run.graph.op[task];
    if (op.stage == stage && op.kind == kind) times.push_back(run.graph.duration[task]);
  }
  if (alike || times.empty()) return median(std::move(times));
  return std::accumulate(times.begin(), times.end(), Time{}) / std::ssize(times);
}

std::string stage_table(const Outcome& predicted, const Execution& run) {
  std::vector<std::vector<std::string>> rows;
  for (int s = 0; s < predicted.program.stages(); ++s) {
    const StageCosts& costs = nth(predicted.costs.stage, s);
    const auto both = [&](OpKind kind, Time expected) {
      const Time measured = typical(run, s, kind, predicted.costs.kinds.empty());
      if (measured == Time{}) return std::string("–");
      return fmt::format("{} ({})", print(measured), signed_share(share_of(expected, measured)));
    };
    rows.push_back(
        {fmt::format("{}", s), both(OpKind::forward, costs.forward),
         both(OpKind::backward, costs.backward), both(OpKind::input_grad, costs.input_grad),
         both(OpKind::weight_grad, costs.weight_grad), both(OpKind::update, costs.update)});
  }
  return table({{"stage"}, {"F"}, {"B"}, {"I"}, {"W"}, {"U"}}, rows);
}

std::string device_table(const Outcome& predicted, const Outcome& measured,
                         const std::vector<HeldBytes>& held, bool sharded) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < measured.metrics.device.size(); ++d) {
    const DeviceMetrics& was = measured.metrics.device[d];
    const DeviceMetrics& expected = predicted.metrics.device[d];
    const auto bytes = [&](std::int64_t count) {
      return held[d].peak > 0 ? print(Bytes{count}) : std::string("–");  // imitated: none
    };
    rows.push_back({measured.program.devices[d], print(was.busy), print(expected.busy),
                    print(was.idle), print(expected.idle), bytes(held[d].peak),
                    print(predicted.memory.device[d].peak), bytes(held[d].stash)});
    if (sharded) rows.back().push_back(print(Bytes{held[d].optimizer}));
  }
  std::vector<Column> columns{
      {"device", true}, {"busy"},        {"predicted"}, {"idle"},
      {"predicted"},    {"peak memory"}, {"predicted"}, {"stash"},
  };
  if (sharded) columns.push_back({"optimizer state"});
  return table(columns, rows);
}

struct Ran {
  std::vector<Execution> runs;
  std::vector<HeldBytes> held;
  std::size_t middle = 0;  // the run of median length
};

Ran run_all(Executor& executor, int runs, const std::atomic<bool>& interrupted) {
  Ran ran;
  ran.held = executor.run_counted(&interrupted);  // warms up, too
  for (int i = 0; i < runs; ++i) ran.runs.push_back(executor.run(&interrupted));
  std::vector<std::size_t> order(ran.runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return makespan(ran.runs[a].times) < makespan(ran.runs[b].times);
  });
  ran.middle = order[(order.size() - 1) / 2];
  return ran;
}

report::MeasuredRuns measured_runs(const Ran& ran, const Outcome& predicted,
                                   const std::string& devices, const std::string& title) {
  report::MeasuredRuns result;
  result.devices = devices;
  result.device_title = title;
  for (const Execution& run : ran.runs) {
    result.makespan.push_back(makespan(run.times));
    result.losses.push_back(run.losses);
  }
  for (const HeldBytes& held : ran.held) {
    result.peak.push_back(held.peak);
    result.stash.push_back(held.stash);
  }
  result.predicted_makespan = predicted.metrics.makespan;
  return result;
}

// "process:2" → 2.
int count_in(const std::string& devices) {
  const std::string digits = devices.substr(devices.find(':') + 1);
  const int count = parse_number<int>(digits).value_or(0);
  if (count >= 1) return count;
  throw UsageError(fmt::format("--devices {}: write process:2 for two processes", devices));
}

// The accelerators of a process among others: its own, a core for each process on this machine.
std::vector<Accelerator> accelerators_of(const Place& place) {
  const std::vector<Accelerator> local =
      accelerators_called(fmt::format("cpu:{}", place.local_size));
  std::vector<Accelerator> all(as_size(place.size));
  nth(all, place.rank) = nth(local, place.local_rank);
  return all;
}

std::vector<Accelerator> accelerators_for(const ExecFlags& flags,
                                          const std::optional<Place>& place) {
  if (flags.imitate) return unpinned_accelerators(flags.common.text("devices"), "--imitate");
  if (flags.shared_cores)
    return unpinned_accelerators(flags.common.text("devices"), "--shared-cores");
  return place ? accelerators_of(*place) : accelerators_called(flags.common.text("devices"));
}

bool is_processes(const std::string& devices) { return devices.rfind("process:", 0) == 0; }

// Tokens of each sequence of micro-batch n of a step, or of slice n of a sequence; empty: alike.
std::vector<std::int64_t> lengths_of_job(const cli::CommonFlags& flags, const Case& asked,
                                         const Program& program, int replicas) {
  const std::string text = flags.text("lengths");
  if (text.empty()) return asked.slice_lengths;
  const std::string order = flags.text("lengths_order");
  const Sharding undivided;
  std::vector<Documents> lengths =
      lengths_of(text, program.microbatches / replicas, length_step(undivided));
  if (!order.empty()) {
    lengths = ordered(std::move(lengths), one_of(all_lengths_orders, order, "--lengths-order"),
                      [](const Documents& one) { return static_cast<double>(tokens_of(one)); });
  }
  return side_by_side(plain_tokens(lengths), replicas);
}

// What the prediction leaves out of micro-batches that differ; the trace has one size.
std::string note_on_tokens(const Case& asked, const Training& training) {
  if (!asked.kinds.empty()) return "";
  if (slices_in(asked) > 1) {
    return "slices are predicted as equal shares of a micro-batch: launches do not get shorter, and "
           "later slices attend to more tokens; `stageline-validate` profiles each";
  }
  if (training.lengths.empty()) return "";
  const auto [least, most] = std::minmax_element(training.lengths.begin(), training.lengths.end());
  const std::int64_t sum =
      std::accumulate(training.lengths.begin(), training.lengths.end(), std::int64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(training.lengths.size());
  const bool said = asked.model.tokens > 0;
  return fmt::format(
      "sequences have {} to {} tokens; the trace is {} {:.6g}, and each micro-batch is predicted in "
      "proportion to its tokens, without what attention adds with their square; `stageline-validate "
      "--lengths` profiles each length",
      *least, *most, said ? "of" : "taken to be of their mean,",
      said ? static_cast<double>(asked.model.tokens) : mean);
}

Training training_of(const ExecFlags& flags, const Setting& setting) {
  Training training;
  training.shape = traced_model(flags.model, flags.common.trace(), setting.model).shape;
  if (setting.model.batch < 1) {
    throw UsageError("the trace does not say its batch size; give --microbatch-size");
  }
  training.batch = setting.model.batch;
  training.optimizer =
      optimizer_called(flags.optimizer.empty() ? training.shape.usual_optimizer : flags.optimizer);
  training.dtype = flags.dtype == "fp64" ? at::kDouble : at::kFloat;
  training.recipe.rate = flags.rate;
  training.seed = flags.seed;
  return training;
}

int execute(const ExecFlags& flags, const std::vector<std::string>& warned,
            const std::optional<Place>& place, const std::atomic<bool>& interrupted) {
  const std::vector<Accelerator> accelerators = accelerators_for(flags, place);
  const std::string title = title_of(accelerators);
  std::unique_ptr<Peers> peers;
  if (place) peers = std::make_unique<Peers>(*place, std::chrono::seconds(60));
  const bool leads = !place || place->rank == 0;
  cli::CommonFlags common = flags.common;
  common.at("devices").text.clear();  // these are accelerators, not a number
  const auto devices = static_cast<int>(accelerators.size());
  answers::PredictionQuestion question{
      {cli::request_of_one(common)}, devices, flags.replicas, flags.imitate};
  question.setting.devices = {std::max(devices / flags.replicas, 1)};
  answers::PredictionAnswer prediction = answer(question);
  const Setting& setting = prediction.setting;
  const Case& asked = prediction.asked;
  Outcome& predicted = prediction.outcome;
  if (peers) predicted.program = add_transfers(std::move(predicted.program));
  Job job{predicted.program, stage_graph(predicted.program), predicted.plan.partition, {}, false};
  job.imitated = flags.imitate;
  job.sharded_optimizer = flags.zero > 0;
  if (!flags.imitate) {
    job.training = training_of(flags, setting);
    job.training.lengths = lengths_of_job(common, asked, predicted.program, flags.replicas);
  }
  const std::string on_tokens = note_on_tokens(asked, job.training);
  const std::string model = job.training.shape.name;

  set_threads(1);
  const ProcessReport process = inspect_process();
  if (leads) {
    if (!common.quiet) tell("{}\n", print(process));
    if (!common.quiet && !title.empty()) tell("{}\n", title);
    print_warnings(warned, process);
  }
  Executor executor(std::move(job), predicted.costs, accelerators, peers.get());
  const Ran ran = run_all(executor, flags.runs, interrupted);
  cli::let_results_be_written();
  if (!leads) return 0;
  const Execution& middle = ran.runs[ran.middle];
  const Outcome measured = measured_outcome(predicted, middle, ran.held);

  if (!common.json.empty()) {
    report::MeasuredRuns runs = measured_runs(ran, predicted, flags.common.text("devices"), title);
    runs.imitated = flags.imitate;
    write_file(common.json,
               report::outcome_json(setting, asked, measured, /*timeline=*/true, &runs));
  }
  report::Drawing drawing = report::drawing_of(setting, asked, measured);
  drawing.subtitle = fmt::format("measured on {}, one of {} runs{}", flags.common.text("devices"),
                                 flags.runs, flags.imitate ? ", compute imitated" : "");
  if (!flags.svg.empty()) write_file(flags.svg, report::svg(drawing));
  if (!flags.chrome.empty()) write_file(flags.chrome, report::chrome_trace(drawing));
  if (common.json == "-") return 0;

  std::vector<Time> spans;
  for (const Execution& run : ran.runs) spans.push_back(makespan(run.times));
  const Time typical_span = median(spans);
  const std::string replicas =
      flags.replicas > 1 ? fmt::format(", {} replicas", flags.replicas) : "";
  fmt::print("{} on {}{}{}: {} measured (± {}, {} runs), {} predicted ({})\n", measured.schedule,
             flags.common.text("devices"), replicas, flags.imitate ? ", imitated" : "",
             print(typical_span), print(half_interquartile(spans)), flags.runs,
             print(predicted.metrics.makespan),
             signed_share(share_of(predicted.metrics.makespan, typical_span)));
  fmt::print("step {} · {:.5g} {}", print(measured.step_time), measured.throughput,
             measured.throughput_unit);
  if (!flags.imitate) {
    fmt::print(" · loss {:.4g} first, {:.4g} last", ran.runs.front().losses.front(),
               ran.runs.back().losses.back());
  }
  fmt::print("\n\n");
  fmt::print("{}\n{}\n", device_table(predicted, measured, ran.held, flags.zero > 0),
             stage_table(predicted, middle));
  fmt::print("{}", report::space_time(measured.timeline,
                                      {Time{}, cli::figure_columns(), cli::colour_wanted()}));
  if (!common.quiet) {
    fmt::print("{}\nnote: in brackets, what the trace predicts against what was measured\n",
               report::space_time_legend({&measured.timeline}));
    fmt::print("note: cut \"{}\"\n", print(measured.plan.partition));
    if (!on_tokens.empty()) fmt::print("note: {}\n", on_tokens);
    if (flags.shared_cores && !flags.imitate) {
      fmt::print("note: accelerators shared cores: the measured times say little\n");
    }
    if (flags.imitate) {
      fmt::print(
          "note: compute was imitated by timed waits: this tests order, messages and the "
          "runtime, not arithmetic\n");
    } else if (setting.model.provenance.origin != Origin::measured) {
      fmt::print("note: the trace is {}; `stageline-profile {}` measures this machine's\n",
                 name(setting.model.provenance.origin), model);
    }
  }
  return 0;
}

int run_command(ExecFlags flags, const std::vector<std::string>& warned, char** argv) {
  const std::atomic<bool>& interrupted = cli::catch_signals(cli::SecondSignal::ignored);
  cli::end_soon_after_signal("stageline-exec: interrupted; nothing was written\n");
  if (!flags.common.given("devices")) flags.common.at("devices").text = "cpu:2";
  std::optional<Place> place;
  if (is_processes(flags.common.text("devices"))) {
    place = place_from_environment();
    if (!place) return launch(count_in(flags.common.text("devices")), argv);
  }
  try {
    return execute(flags, warned, place, interrupted);
  } catch (const Stopped&) {
    throw cli::Interrupted{"nothing was written"};
  }
}

}  // namespace
}  // namespace stageline::executor

int main(int argc, char** argv) {
  using namespace stageline::executor;
  ExecFlags flags;
  std::vector<std::string> warned;
  const stageline::cli::ProgramMain program{
      "stageline-exec",
      "Runs a program for real: a built-in model, cut and scheduled as `stageline simulate` would, "
      "with tensors and an optimizer.",
      "there is not enough memory; try a smaller --microbatch-size"};
  return stageline::cli::program_main(program, argc, argv, [&](stageline::cli::Flags line) {
    warned = prepare_process(argv);
    add_flags(line, flags);
    line.runs([&] { return run_command(flags, warned, argv); });
  });
}
