// Declares the flags of stageline-train and checks them.
#include "tools/executor/programs/train_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/lab/datasets/dataset.hpp"

namespace stageline::executor {
namespace {

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

}  // namespace

void add_flags(cli::Flags line, TrainFlags& flags) {
  cli::add_case_flags(line, flags.common);
  line.find("--devices")
      .describe(
          "devices whose time is simulated: a number; default the fewest, from 2 on, that schedule "
          "and cut go on");
  line.find("--json").describe("write the log: JSON, for `stageline time-to-accuracy`");
  line.find("--steps").describe(
      "optimizer steps of the whole training: mini-batches, where each is updated for");
  const cli::Flags model = line.in(SettingGroup::model);
  const cli::Flags training = line.in(SettingGroup::training);
  const cli::Flags output = line.in(SettingGroup::output);
  training.common()
      .option("--epochs", flags.epochs, "the same in passes over the training set")
      .range(std::int64_t{1}, std::int64_t{1000000});
  training.option("--pipelined-steps", flags.pipelined,
                  "the first so many go through the pipeline, the others are plain steps on one "
                  "device (hybrid training); default all");
  model.common().option("--model", flags.model,
                        "the built-in model to train; default the one that the trace is of");
  model.common().option(
      "--data", flags.data,
      "what to learn; default digits or textures, as the model reads (--data-names)");
  training.common()
      .option("--correction", flags.correction,
              "what to do about stale weights: NAME, or several joined by + (--corrections)")
      .default_shown();
  training.common()
      .option("--mode", flags.mode,
              "delayed: on one device, by the program's delays; pipelined: on as many as the "
              "program has, for real. Both give the same weights")
      .default_shown()
      .one_of({"delayed", "pipelined"});
  training.common()
      .option("--on", flags.device, "cpu or cuda: what to train on here")
      .default_shown("cpu");
  model.option("--dtype", flags.dtype, "fp32 or fp64").default_shown().one_of({"fp32", "fp64"});
  training.common().option(
      "--optimizer", flags.optimizer,
      "sgd, momentum, adam (the model's usual); muon: adam with decoupled decay, "
      "but the matrices of hidden layers go by their orthogonal factor");
  training.common().option("--rate", flags.recipe.rate, "learning rate").default_shown();
  training.option("--momentum", flags.recipe.momentum, "of the optimizers momentum and muon")
      .default_shown();
  training.option("--weight-decay", flags.recipe.weight_decay, "L2").default_shown();
  training.option("--warm-up", flags.recipe.warm_up, "steps until the rate is whole")
      .default_shown();
  training.option("--milestones", flags.recipe.milestones, "steps behind which the rate is cut")
      .comma_list();
  training.option("--factor", flags.recipe.factor, "to this share, at each milestone")
      .default_shown();
  training.flag("--augment", flags.augment, "shift images by up to 4 pixels, and mirror them");
  training.option("--seed", flags.seed, "of weights and of the order of the data")
      .default_shown()
      .range(std::uint64_t{0}, std::uint64_t{1} << 62U);
  training
      .option("--evaluate-every", flags.evaluate_every,
              "steps between two looks at the test set; default a twentieth of all")
      .range(std::int64_t{1}, std::int64_t{1} << 40U);
  output.common().option("--csv", flags.csv, "write the log as CSV, a line a step").writes_file();
  output
      .option("--weights-out", flags.weights_out,
              "write the final weights for PyTorch: torch.load(file)")
      .writes_file();
  const cli::Flag checkpoint =
      output.common()
          .option("--checkpoint", flags.checkpoint, "keep the training in this file")
          .writes_file();
  output
      .option("--checkpoint-every", flags.checkpoint_every,
              "steps between two checkpoints; default as --evaluate-every")
      .range(std::int64_t{1}, std::int64_t{1} << 40U)
      .needs(checkpoint);
  output.common()
      .flag("--resume", flags.resume, "go on from the checkpoint, if there is one")
      .needs(checkpoint);
  line.prints(
      "--corrections", [] { return list_of_corrections(); }, "list them");
  line.prints(
      "--data-names", [] { return list_of(lab::data_names()); }, "list them");
  line.footer(
      "Example:\n"
      "  stageline-train lenet5-cpu --schedule stale_weights --partition ppv:1 --devices 3 "
      "--epochs 4 --json run.json\n"
      "Exit code 0: done. 1: it diverged. 2: bad input. 130, 143: interrupted; the checkpoint stays.");
}

std::vector<const Correction*> corrections_of(const TrainFlags& flags, std::string& weights) {
  std::vector<const Correction*> corrections = parse_corrections(flags.correction);
  if (const std::optional<WeightRule> rule = rule_of(corrections)) {
    const std::string wanted(name(*rule));
    if (!weights.empty() && weights != wanted) {
      throw UsageError(fmt::format("--correction {} means --weights {}, not {}", flags.correction,
                                   wanted, weights));
    }
    weights = wanted;
  }
  if (Corrections(corrections).rebuilds() && !weights.empty() && weights != "latest") {
    throw UsageError(fmt::format(
        "--correction {} rebuilds old weights instead of keeping them, so --weights {} has nothing "
        "to say; leave it out",
        flags.correction, weights));
  }
  return corrections;
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

void check_outputs(const TrainFlags& flags) {
  if (flags.checkpoint == "-" || flags.weights_out == "-") {
    throw UsageError("--checkpoint and --weights-out write files; - is for --json or --csv");
  }
  if (flags.common.json == "-" && flags.csv == "-") {
    throw UsageError("only one of --json and --csv can go to standard output (-)");
  }
}

}  // namespace stageline::executor
