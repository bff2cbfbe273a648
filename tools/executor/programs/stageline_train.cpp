// stageline-train: trains a built-in model with exactly the staleness of a schedule, and logs what
// it learns by step and by simulated second.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "cost_models/roofline.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/answers/question.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/tell.hpp"
#include "tools/executor/programs/progress_line.hpp"
#include "tools/executor/programs/run_notes.hpp"
#include "tools/executor/programs/train_flags.hpp"
#include "tools/executor/run/worker_pool.hpp"
#include "tools/executor/tensors/traced_model.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/trainer.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::executor {
namespace {

using stageline::print;  // of times

constexpr std::int64_t most_steps = 400'000;  // of a log in JSON (tools/lab/training/README.md)

std::vector<Accelerator> devices_of(const TrainFlags& flags, int needed) {
  if (flags.device.empty() || flags.device == "cpu") {
    // Threads wherever there is room: what is learned does not depend on how long it takes here.
    return std::vector<Accelerator>(flags.mode == "delayed" ? 1 : as_size(needed));
  }
  if (flags.device != "cuda") {
    throw UsageError(fmt::format("--on {}: write cpu or cuda", flags.device));
  }
  return accelerators_called(fmt::format("cuda:{}", flags.mode == "delayed" ? 1 : needed));
}

std::int64_t steps_of(const TrainFlags& flags, const lab::DataSource& data, int batch,
                      int microbatches) {
  if (flags.common.given("steps") && flags.epochs > 0) {
    throw UsageError("--steps and --epochs say the same thing; give one of them");
  }
  if (flags.common.given("steps")) return flags.common.count("steps");
  const auto size = static_cast<std::int64_t>(data.train.size());
  const std::int64_t steps =
      std::max<std::int64_t>(flags.epochs, 1) * (size / batch) / microbatches;
  return std::max<std::int64_t>(steps, 1);
}

std::string stage_table(const lab::TrainingLog& log) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < log.stages.size(); ++s) {
    const lab::LoggedStage& stage = log.stages[s];
    rows.push_back({fmt::format("{}", s), fmt::format("{}-{}", stage.first_layer, stage.last_layer),
                    fmt::format("{}", stage.weights), fmt::format("{:g}", stage.staleness_max)});
  }
  return table({{"stage"}, {"layers"}, {"weights"}, {"staleness, updates"}}, rows);
}

void say(const TrainingResult& result) {
  const lab::TrainingLog& log = result.log;
  const lab::Evaluation& last = log.evaluations.back();
  double best = 0;
  for (const lab::Evaluation& one : log.evaluations) best = std::max(best, one.accuracy);
  fmt::print(
      "{} under {} ({}, cut {}): accuracy {:.2f} % after {} steps (best {:.2f} %), loss {:.4f}\n",
      log.settings.model, log.settings.schedule, log.settings.weights, log.settings.partition,
      last.accuracy * 100, last.step, best * 100, last.loss);
  fmt::print("{} simulated on {} device{} · {:.1f} s here, {} · weights {}\n\n", print(last.end),
             log.settings.devices, log.settings.devices == 1 ? "" : "s", log.wall_seconds, log.mode,
             result.digest);
  fmt::print("{}", stage_table(log));
  if (log.settings.pipelined > 0) {
    fmt::print("stale share of the weights: {:.2f} %\n", log.stale_share() * 100);
  }
}

// At any time of a training; consequence() says more where it ends by itself.
std::string last_words(const std::string& checkpoint) {
  return checkpoint.empty()
             ? "stageline-train: interrupted; nothing was written (--checkpoint keeps it)\n"
             : "stageline-train: interrupted; --resume goes on from the last checkpoint, if there "
               "is one\n";
}

int train_command(const TrainFlags& flags, const std::vector<std::string>& warned,
                  const std::string& command) {
  const std::atomic<bool>& interrupted = cli::catch_signals(cli::SecondSignal::ignored);
  cli::end_soon_after_signal(last_words(flags.checkpoint));
  cli::CommonFlags common = flags.common;
  common.at("steps").count = 0;  // of the training, not of a simulation
  if (!common.program.empty()) {
    throw UsageError(
        "a program has the length it has; name its --schedule to train as long as you like");
  }
  check_recipe(flags.recipe);
  const std::vector<const Correction*> corrections =
      corrections_of(flags, common.at("weights").text);
  const answers::SettingQuestion question{cli::request_of_one(common)};
  const bool fewest = question.setting.devices.empty() && !common.given("cluster");
  const answers::OpenedCase opened =
      fewest ? answers::opened_on_fewest(question) : answers::opened_case(question);
  const Setting& setting = opened.setting;
  const Case& asked = opened.asked;
  const TracedModel shape = traced_model(flags.model, common.trace(), setting.model);
  if (setting.model.batch < 1) {
    throw UsageError("the trace does not say its batch size; give --microbatch-size");
  }
  const std::int64_t channels = shape.shape.layers.front().ops.front().build.in;
  const lab::DataSource data = lab::open_data(!flags.data.empty() ? flags.data
                                              : channels == 1     ? "digits"
                                                                  : "textures");

  TrainingRequest request;
  request.asked = asked;
  request.trace = common.trace();
  request.shape = shape.shape;
  request.model = shape.spelled;
  request.optimizer = trained_optimizer_called(flags.optimizer.empty() ? shape.shape.usual_optimizer
                                                                       : flags.optimizer);
  request.dtype = flags.dtype == "fp64" ? at::kDouble : at::kFloat;
  request.corrections = corrections;
  request.seed = flags.seed;
  request.data = &data;
  request.augmentation = {flags.augment, flags.augment};
  request.mode = flags.mode == "pipelined" ? TrainingMode::pipelined : TrainingMode::delayed;
  request.recipe = flags.recipe;
  const int microbatches = lab::microbatches_of_step(asked);
  request.recipe.steps = steps_of(flags, data, setting.model.batch, microbatches);
  if (request.recipe.steps > most_steps && !common.json.empty()) {
    throw UsageError(
        fmt::format("a log of {} steps would be larger than what is read again; train at most {}, "
                    "or leave --json out and take --csv",
                    request.recipe.steps, most_steps));
  }
  request.pipelined = flags.pipelined.value_or(request.recipe.steps);
  request.evaluate_every = flags.evaluate_every > 0
                               ? flags.evaluate_every
                               : std::max<std::int64_t>(request.recipe.steps / 20, 1);
  request.checkpoint = flags.checkpoint;
  request.checkpoint_every =
      flags.checkpoint_every > 0 ? flags.checkpoint_every : request.evaluate_every;
  request.resume = flags.resume;
  request.before_checkpoint = cli::let_results_be_written;
  request.after_checkpoint = [&flags] {
    cli::catch_signals(cli::SecondSignal::ignored);
    cli::end_soon_after_signal(last_words(flags.checkpoint));
  };
  check_outputs(flags);
  set_threads(1);
  const ProcessReport process = inspect_process();
  request.devices = devices_of(flags, static_cast<int>(asked.cluster.devices.size()));
  if (!common.quiet) {
    tell("{}\n{}\n", print(process), data.about);
    print_warnings(warned, process);
  }
  ProgressLine progress(!common.quiet, request.recipe.steps, setting.model.batch * microbatches);
  TrainingResult result = train(
      request, [&](const TrainingProgress& now) { progress(now); }, &interrupted);
  cli::let_results_be_written();
  progress.end();
  result.log.command = command;
  result.log.date = today();
  result.log.software = {print(process)};
  if (!common.json.empty()) write_file(common.json, lab::to_json(result.log));
  if (!flags.csv.empty()) write_file(flags.csv, lab::to_csv(result.log));
  if (!flags.weights_out.empty()) {
    write_weights(flags.weights_out, result.state, result.partition, request.shape);
  }
  if (common.json != "-" && flags.csv != "-") say(result);
  const double loss = result.log.evaluations.back().loss;
  if (std::isfinite(loss)) return 0;
  tell("stageline-train: it diverged: the loss is {}; try a lower --rate\n", loss);
  return 1;
}

// What is left of an interrupted training.
std::string consequence(const std::string& checkpoint) {
  if (checkpoint.empty()) return "nothing was written (--checkpoint keeps it)";
  std::error_code none;
  if (!std::filesystem::exists(checkpoint, none)) {
    return "there was no checkpoint yet (--checkpoint-every)";
  }
  return "--resume goes on from the last checkpoint";
}

}  // namespace
}  // namespace stageline::executor

int main(int argc, char** argv) {
  using namespace stageline::executor;
  TrainFlags flags;
  std::vector<std::string> warned;
  const stageline::cli::ProgramMain program{
      "stageline-train",
      "Trains a built-in model with exactly the staleness of a schedule, and says what it learns in "
      "how many simulated seconds.",
      "there is not enough memory; try a smaller --microbatch-size"};
  return stageline::cli::program_main(program, argc, argv, [&](stageline::cli::Flags line) {
    warned = prepare_process(argv);
    add_flags(line, flags);
    line.runs([&] {
      try {
        return train_command(flags, warned, command_of("stageline-train", argc, argv));
      } catch (const Stopped&) {
        throw stageline::cli::Interrupted{consequence(flags.checkpoint), true};
      }
    });
  });
}
