// stageline-train: trains a built-in model with exactly the staleness of a schedule, and logs what
// it learns by step and by simulated second.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <optional>

#include "cost_models/roofline.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/common.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/tensors/traced_model.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/trainer.hpp"
#include "tools/study/layout.hpp"
#include "tools/training/times.hpp"

namespace stageline::executor {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::int64_t most_steps = 400'000;  // of a log in JSON (tools/training/README.md)

struct TrainFlags {
  CommonFlags common;
  std::string model;
  std::string data;
  std::string dtype = "fp32";
  std::string optimizer;
  std::string correction = "none";
  std::string mode = "delayed";
  std::string device;
  Recipe recipe;
  std::int64_t epochs = 0;
  std::optional<std::int64_t> pipelined;
  std::uint64_t seed = 1;
  bool augment = false;
  std::int64_t evaluate_every = 0;
  std::string log;
  std::string csv;
  std::string weights_out;
  std::string checkpoint;
  std::int64_t checkpoint_every = 0;
  bool resume = false;
};

std::string list_of(const std::vector<std::pair<std::string, std::string>>& names) {
  std::size_t widest = 0;
  for (const auto& [name, about] : names) widest = std::max(widest, name.size());
  std::string text;
  for (const auto& [name, about] : names) {
    text += fmt::format("  {:<{}}  {}\n", name, widest, about);
  }
  return text;
}

std::string list_of_corrections() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Correction* const one : corrections()) {
    const std::string note = one->rebuilt.empty() ? "" : fmt::format(" ({})", one->rebuilt);
    names.emplace_back(one->name, fmt::format("{}{} [{}]", one->summary, note, one->source));
  }
  return list_of(names);
}

void add_flags(CLI::App& app, TrainFlags& flags) {
  add_case_flags(app, flags.common);
  app.get_option("--devices")
      ->description(
          "devices whose time is simulated: a number; default the fewest, from 2 on, that schedule "
          "and cut go on");
  app.get_option("--json")->description("write the log: JSON, for `stageline time-to-accuracy`");
  app.get_option("--steps")->description(
      "optimizer steps of the whole training: mini-batches, where each is updated for");
  app.add_option("--epochs", flags.epochs, "the same in passes over the training set")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--pipelined-steps", flags.pipelined,
                 "the first so many go through the pipeline, the others are plain steps on one "
                 "device (hybrid training); default all");
  app.add_option("--model", flags.model,
                 "the built-in model to train; default the one that the trace is of");
  app.add_option("--data", flags.data,
                 "what to learn; default digits or textures, as the model reads (--data-names)");
  app.add_option("--correction", flags.correction,
                 "what to do about stale weights: NAME, or several joined by + (--corrections)")
      ->capture_default_str();
  app.add_option("--mode", flags.mode,
                 "delayed: on one device, by the program's delays; pipelined: on as many as the "
                 "program has, for real. Both give the same weights")
      ->capture_default_str()
      ->check(CLI::IsMember({"delayed", "pipelined"}));
  app.add_option("--on", flags.device, "cpu or cuda: what to train on here")->default_str("cpu");
  app.add_option("--dtype", flags.dtype, "fp32 or fp64")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "fp64"}));
  app.add_option("--optimizer", flags.optimizer, "sgd, momentum, adam (the model's usual)");
  app.add_option("--rate", flags.recipe.rate, "learning rate")->capture_default_str();
  app.add_option("--momentum", flags.recipe.momentum)->capture_default_str();
  app.add_option("--weight-decay", flags.recipe.weight_decay, "L2")->capture_default_str();
  app.add_option("--warm-up", flags.recipe.warm_up, "steps until the rate is whole")
      ->capture_default_str();
  app.add_option("--milestones", flags.recipe.milestones, "steps behind which the rate is cut")
      ->delimiter(',');
  app.add_option("--factor", flags.recipe.factor, "to this share, at each milestone")
      ->capture_default_str();
  app.add_flag("--augment", flags.augment, "shift images by up to 4 pixels, and mirror them");
  app.add_option("--seed", flags.seed, "of weights and of the order of the data")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 62U));
  app.add_option("--evaluate-every", flags.evaluate_every,
                 "steps between two looks at the test set; default a twentieth of all")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U));
  app.add_option("--csv", flags.csv, "write the log as CSV, a line a step");
  app.add_option("--weights-out", flags.weights_out,
                 "write the final weights for PyTorch: torch.load(file)");
  CLI::Option* const checkpoint =
      app.add_option("--checkpoint", flags.checkpoint, "keep the training in this file");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "steps between two checkpoints; default as --evaluate-every")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U))
      ->needs(checkpoint);
  app.add_flag("--resume", flags.resume, "go on from the checkpoint, if there is one")
      ->needs(checkpoint);
  app.add_flag_callback(
      "--corrections",
      [] {
        fmt::print("{}", list_of_corrections());
        throw CLI::Success();
      },
      "list them");
  app.add_flag_callback(
      "--data-names",
      [] {
        fmt::print("{}", list_of(data_names()));
        throw CLI::Success();
      },
      "list them");
  app.footer(
      "Example:\n"
      "  stageline-train lenet5-cpu --schedule stale_weights --partition ppv:1 --devices 3 "
      "--epochs 4 --json run.json\n"
      "Exit code 0: done. 1: it diverged. 2: bad input. 130: interrupted; the checkpoint stays.");
}

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

// Each has a place of its own, and only text goes to standard output.
void check_outputs(const std::vector<std::string>& paths, const TrainFlags& flags) {
  if (flags.checkpoint == "-" || flags.weights_out == "-") {
    throw UsageError("--checkpoint and --weights-out write files; - is for --json or --csv");
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    check_writable(paths[i]);
    for (std::size_t k = 0; k < i; ++k) {
      if (paths[i].empty() || paths[k].empty()) continue;
      const bool same = std::filesystem::weakly_canonical(std::filesystem::absolute(paths[i])) ==
                        std::filesystem::weakly_canonical(std::filesystem::absolute(paths[k]));
      if (same) {
        throw UsageError(
            fmt::format("two outputs would go to {}; give each its own file", paths[i]));
      }
    }
  }
}

void check_recipe(const Recipe& recipe) {
  const auto positive = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!positive(recipe.rate) || recipe.rate == 0) throw UsageError("--rate must be above 0");
  if (!(recipe.momentum >= 0 && recipe.momentum < 1)) {
    throw UsageError("--momentum must be from 0 to below 1");
  }
  if (!positive(recipe.weight_decay)) throw UsageError("--weight-decay must be 0 or above");
  if (!positive(recipe.factor) || recipe.factor == 0) throw UsageError("--factor must be above 0");
  if (recipe.warm_up < 0) throw UsageError("--warm-up must be 0 or above");
  for (std::size_t i = 0; i < recipe.milestones.size(); ++i) {
    if (recipe.milestones[i] > (i == 0 ? 0 : recipe.milestones[i - 1])) continue;
    throw UsageError("--milestones must rise, from 1 on, like 300,600");
  }
}

// From 2 on, the fewest that schedule and cut go on, as far as the cluster has devices.
std::string least_devices(CommonFlags common) {
  std::string refusal;
  for (int devices = 2; devices <= 64; ++devices) {
    common.devices = std::to_string(devices);
    std::optional<Case> asked;
    try {
      const Setting setting = read_setting(common);
      asked = make_case(common, setting, one_schedule(common), devices);
    } catch (const UsageError&) {
      if (devices == 2) throw;
      throw UsageError(refusal);  // the cluster has no more
    }
    try {
      lay_out(*asked);
      return common.devices;
    } catch (const UsageError& error) {
      refusal = error.what();
    }
  }
  throw UsageError(refusal);
}

std::int64_t steps_of(const TrainFlags& flags, const DataSource& data, int batch,
                      int microbatches) {
  if (flags.common.steps > 0 && flags.epochs > 0) {
    throw UsageError("--steps and --epochs say the same thing; give one of them");
  }
  if (flags.common.steps > 0) return flags.common.steps;
  const auto size = static_cast<std::int64_t>(data.train.size());
  const std::int64_t steps =
      std::max<std::int64_t>(flags.epochs, 1) * (size / batch) / microbatches;
  return std::max<std::int64_t>(steps, 1);
}

// One line, rewritten on a terminal; a line for each look at the test set elsewhere.
class ProgressLine {
 public:
  ProgressLine(bool wanted, std::int64_t steps, int samples)
      : wanted_(wanted), terminal_(wanted && ::isatty(2) != 0), steps_(steps), samples_(samples) {}

  void operator()(const TrainingProgress& progress) {
    if (!wanted_) return;
    const auto now = Clock::now();
    const bool looked = progress.evaluation != nullptr && progress.evaluation->step > looked_at_;
    if (looked) looked_at_ = progress.evaluation->step;
    if (!terminal_ && !looked) return;
    if (terminal_ && progress.step < steps_ && now - said_ < std::chrono::milliseconds(100)) return;
    said_ = now;
    if (!terminal_ && progress.step > 0) {
      fmt::print(stderr, "{}\n", line(progress, now));
    } else if (terminal_) {
      fmt::print(stderr, "{} {}\033[K\r", bar(progress.step), line(progress, now));
    }
  }
  void end() const {
    if (terminal_) fmt::print(stderr, "\n");
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string bar(std::int64_t step) const {
    constexpr int width = 20;
    const auto full = static_cast<int>(step * width / std::max<std::int64_t>(steps_, 1));
    return "[" + std::string(as_size(full), '=') + std::string(as_size(width - full), ' ') + "]";
  }
  std::string line(const TrainingProgress& progress, Clock::time_point now) const {
    std::string text =
        fmt::format("step {}/{} · loss {:.4f}", progress.step, steps_, progress.loss);
    if (progress.evaluation != nullptr) {
      text += fmt::format(" · accuracy {:.2f} %", progress.evaluation->accuracy * 100);
    }
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const auto done = static_cast<double>(progress.step - progress.resumed_at);
    if (seconds > 0.5 && done > 0) {
      text += fmt::format(" · {:.0f} images/s · {:.0f} s left", done * samples_ / seconds,
                          seconds / done * static_cast<double>(steps_ - progress.step));
    }
    return text;
  }

  bool wanted_;
  bool terminal_;
  std::int64_t steps_;
  int samples_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point said_;
  std::int64_t looked_at_ = 0;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string stage_table(const TrainingLog& log) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < log.stages.size(); ++s) {
    const LoggedStage& stage = log.stages[s];
    rows.push_back({fmt::format("{}", s), fmt::format("{}-{}", stage.first_layer, stage.last_layer),
                    fmt::format("{}", stage.weights), fmt::format("{:g}", stage.staleness_max)});
  }
  return table({{"stage"}, {"layers"}, {"weights"}, {"staleness, updates"}}, rows);
}

void say(const TrainingResult& result) {
  const TrainingLog& log = result.log;
  const Evaluation& last = log.evaluations.back();
  double best = 0;
  for (const Evaluation& one : log.evaluations) best = std::max(best, one.accuracy);
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

int train_command(TrainFlags flags, const std::vector<std::string>& warned,
                  const std::string& command) {
  CommonFlags common = flags.common;
  common.steps = 0;
  if (!common.program.empty()) {
    throw UsageError(
        "a program has the length it has; name its --schedule to train as long as you like");
  }
  check_recipe(flags.recipe);
  const std::vector<const Correction*> corrections = parse_corrections(flags.correction);
  if (const std::optional<WeightRule> rule = rule_of(corrections)) {
    const std::string wanted(name(*rule));
    if (!common.weights.empty() && common.weights != wanted) {
      throw UsageError(fmt::format("--correction {} means --weights {}, not {}", flags.correction,
                                   wanted, common.weights));
    }
    common.weights = wanted;
  }
  if (Corrections(corrections).rebuilds() && !common.weights.empty() &&
      common.weights != "latest") {
    throw UsageError(fmt::format(
        "--correction {} rebuilds old weights instead of keeping them, so --weights {} has nothing "
        "to say; leave it out",
        flags.correction, common.weights));
  }
  if (common.devices.empty() && common.cluster.empty()) common.devices = least_devices(common);
  const Setting setting = read_setting(common);
  const Case asked =
      make_case(common, setting, one_schedule(common), setting.device_counts.front());
  const TracedModel shape = traced_model(flags.model, common.trace, setting.model);
  if (setting.model.batch < 1) {
    throw UsageError("the trace does not say its batch size; give --microbatch-size");
  }
  const std::int64_t channels = shape.shape.layers.front().ops.front().build.in;
  const DataSource data = open_data(!flags.data.empty() ? flags.data
                                    : channels == 1     ? "digits"
                                                        : "textures");

  TrainingRequest request;
  request.asked = asked;
  request.trace = common.trace;
  request.shape = shape.shape;
  request.model = shape.spelled;
  request.optimizer =
      optimizer_called(flags.optimizer.empty() ? shape.shape.usual_optimizer : flags.optimizer);
  request.dtype = flags.dtype == "fp64" ? at::kDouble : at::kFloat;
  request.corrections = corrections;
  request.seed = flags.seed;
  request.data = &data;
  request.augmentation = {flags.augment, flags.augment};
  request.mode = flags.mode == "pipelined" ? TrainingMode::pipelined : TrainingMode::delayed;
  request.recipe = flags.recipe;
  const int microbatches = microbatches_of_step(asked);
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
  check_outputs({common.json, flags.csv, flags.weights_out, flags.checkpoint}, flags);
  set_threads(1);
  const ProcessReport process = inspect_process();
  request.devices = devices_of(flags, static_cast<int>(asked.cluster.devices.size()));
  if (!common.quiet) {
    fmt::print(stderr, "{}\n{}\n", print(process), data.about);
    for (const std::string& warning : warned) fmt::print(stderr, "warning: {}\n", warning);
    for (const std::string& warning : warnings(process)) {
      fmt::print(stderr, "warning: {}\n", warning);
    }
  }
  ProgressLine progress(!common.quiet, request.recipe.steps, setting.model.batch * microbatches);
  TrainingResult result = train(
      request, [&](const TrainingProgress& now) { progress(now); }, &interrupted);
  progress.end();
  result.log.command = command;
  result.log.date = today();
  result.log.software = {print(process)};
  if (!common.json.empty()) write_file(common.json, to_json(result.log));
  if (!flags.csv.empty()) write_file(flags.csv, to_csv(result.log));
  if (!flags.weights_out.empty()) {
    write_weights(flags.weights_out, result.state, result.partition, request.shape);
  }
  if (common.json != "-" && flags.csv != "-") say(result);
  if (std::fflush(stdout) != 0) {
    throw UsageError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  }
  const double loss = result.log.evaluations.back().loss;
  if (std::isfinite(loss)) return 0;
  fmt::print(stderr, "stageline-train: it diverged: the loss is {}; try a lower --rate\n", loss);
  return 1;
}

int refuse(std::string_view message) {
  std::fputs(fmt::format("stageline-train: {}\n", message.substr(0, message.find('\n'))).c_str(),
             stderr);
  return 2;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{
      "Trains a built-in model with exactly the staleness of a schedule, and says what it learns "
      "in how many simulated seconds."};
  app.name("stageline-train");
  app.set_version_flag("--version", "stageline-train " STAGELINE_VERSION);
  TrainFlags flags;
  add_flags(app, flags);
  try {
    const std::vector<std::string> warned = prepare_process(argv);
    app.parse(argc, argv);
    std::signal(SIGINT, [](int) { interrupted = true; });
    std::signal(SIGTERM, [](int) { interrupted = true; });
    std::string command = "stageline-train";
    for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
    return train_command(flags, warned, command);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return refuse(fmt::format("{}; see `stageline-train --help`", error.what()));
  } catch (const Stopped&) {
    const char* kept = "--resume goes on from the last checkpoint";
    if (flags.checkpoint.empty()) kept = "nothing was written (--checkpoint keeps it)";
    std::error_code none;
    if (!flags.checkpoint.empty() && !std::filesystem::exists(flags.checkpoint, none)) {
      kept = "there was no checkpoint yet (--checkpoint-every)";
    }
    std::fputs(fmt::format("\nstageline-train: interrupted; {}\n", kept).c_str(), stderr);
    return 130;
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory; try a smaller --microbatch-size");
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace
}  // namespace stageline::executor

int main(int argc, char** argv) { return stageline::executor::parse_and_run(argc, argv); }
