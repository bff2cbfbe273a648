// Reads training logs.
#include <fmt/core.h>

#include <limits>

#include "sim/base/index.hpp"
#include "tools/lab/training/log.hpp"
#include "traces/json/parts.hpp"

namespace stageline::lab {
namespace {

constexpr std::int64_t most_devices = 4096;
constexpr std::int64_t most_int = std::numeric_limits<int>::max();
constexpr std::int64_t most_whole = std::int64_t{1} << 62U;

// A number, or NaN for null.
double read_number(const JsonNode& node) {
  if (node.kind() == JsonKind::null) return std::numeric_limits<double>::quiet_NaN();
  return node.number();
}

double read_staleness(const JsonNode& node) {
  const double number = node.number();
  if (number < 0) node.refuse(fmt::format("staleness must not be negative (it is {:g})", number));
  return number;
}

TrainingSettings read_settings(const JsonNode& node) {
  node.check_keys({"model", "trace", "schedule", "partition", "weights", "correction", "devices",
                   "microbatches", "batch", "data", "optimizer", "recipe", "number_format", "steps",
                   "pipelined"},
                  {});
  TrainingSettings settings;
  settings.model = node.at("model").text();
  settings.trace = node.at("trace").text();
  settings.schedule = node.at("schedule").text();
  settings.partition = node.at("partition").text();
  settings.weights = node.at("weights").text();
  settings.correction = node.at("correction").text();
  settings.devices = static_cast<int>(node.at("devices").whole(1, most_devices));
  settings.microbatches = static_cast<int>(node.at("microbatches").whole(1, most_int));
  settings.batch = static_cast<int>(node.at("batch").whole(1, most_int));
  settings.data = node.at("data").text();
  settings.optimizer = node.at("optimizer").text();
  settings.recipe = node.at("recipe").text();
  settings.number_format = node.at("number_format").text();
  settings.steps = node.at("steps").whole(1, most_whole);
  settings.pipelined = node.at("pipelined").whole(0, settings.steps);
  return settings;
}

// The stages in model order, which cover its layers without a gap.
std::vector<LoggedStage> read_stages(const JsonNode& list) {
  std::vector<LoggedStage> stages;
  for (const JsonNode& node : list.items()) {
    node.check_keys({"first_layer", "last_layer", "weights", "staleness_mean", "staleness_max"},
                    {});
    const int expected = stages.empty() ? 0 : stages.back().last_layer + 1;
    LoggedStage stage;
    stage.first_layer = static_cast<int>(node.at("first_layer").whole(0, most_int));
    if (stage.first_layer != expected) {
      node.at("first_layer")
          .refuse(fmt::format("stages follow one another in the model: "
                              "the first layer of this one must be {} (it is {})",
                              expected, stage.first_layer));
    }
    stage.last_layer = static_cast<int>(node.at("last_layer").whole(expected, most_int - 1));
    stage.weights = node.at("weights").whole(0, most_whole);
    stage.staleness_mean = read_staleness(node.at("staleness_mean"));
    stage.staleness_max = read_staleness(node.at("staleness_max"));
    if (stage.staleness_mean > stage.staleness_max) {
      node.at("staleness_mean")
          .refuse(fmt::format("the mean must not be above the maximum ({:g} is above {:g})",
                              stage.staleness_mean, stage.staleness_max));
    }
    stages.push_back(stage);
  }
  return stages;
}

Time read_end(const JsonNode& node) {
  return Time{node.whole(0, std::numeric_limits<std::int64_t>::max() / 2)};
}

std::vector<LoggedStep> read_steps(const JsonNode& node, std::int64_t most) {
  node.check_keys({"end_ps", "loss"}, {});
  const std::vector<JsonNode> ends = node.at("end_ps").items();
  const std::vector<JsonNode> losses = node.at("loss").items();
  if (losses.size() != ends.size()) {
    node.at("loss").refuse(
        fmt::format("there must be a loss for each of the {} steps of end_ps (this list has {})",
                    ends.size(), losses.size()));
  }
  if (static_cast<std::int64_t>(ends.size()) > most) {
    node.at("end_ps").refuse(
        fmt::format("the training has {} steps (this list has {})", most, ends.size()));
  }
  std::vector<LoggedStep> steps;
  steps.reserve(ends.size());
  Time before{};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Time end = read_end(ends[i]);
    if (end < before) {
      ends[i].refuse(fmt::format("a step must not end before the one before it ({} is before {})",
                                 end.count(), before.count()));
    }
    steps.push_back({end, read_number(losses[i])});
    before = end;
  }
  return steps;
}

// An evaluation at a step from `least` to `most`.
Evaluation read_evaluation(const JsonNode& node, std::int64_t least, std::int64_t most) {
  node.check_keys({"step", "end_ps", "loss", "accuracy"}, {});
  Evaluation one;
  one.step = node.at("step").whole(0, most);
  if (one.step < least) {
    node.at("step").refuse(fmt::format("evaluations are in order of their steps ({} follows {})",
                                       one.step, least - 1));
  }
  one.end = read_end(node.at("end_ps"));
  one.loss = read_number(node.at("loss"));
  one.accuracy = read_number(node.at("accuracy"));
  if (one.accuracy < 0 || one.accuracy > 1) {
    node.at("accuracy")
        .refuse(fmt::format("an accuracy is a share from 0 to 1 (it is {:g})", one.accuracy));
  }
  return one;
}

// The evaluations, each after at most `most` steps.
std::vector<Evaluation> read_evaluations(const JsonNode& list, std::int64_t most) {
  std::vector<Evaluation> all;
  for (const JsonNode& node : list.items()) {
    const std::int64_t least = all.empty() ? 0 : all.back().step + 1;
    all.push_back(read_evaluation(node, least, most));
  }
  return all;
}

// Checks that each evaluation ends with its step.
void check_ends(const JsonNode& list, const TrainingLog& log) {
  const std::vector<JsonNode> nodes = list.items();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Evaluation& one = log.evaluations[i];
    const Time end = one.step == 0 ? Time{} : log.steps[as_size(one.step) - 1].end;
    if (one.end == end) continue;
    nodes[i].at("end_ps").refuse(
        fmt::format("step {} ends at {} (this has {})", one.step, end.count(), one.end.count()));
  }
}

// The same for a log without steps: the times present must ascend.
void check_order(const JsonNode& list, const TrainingLog& log) {
  const std::vector<JsonNode> nodes = list.items();
  Time before{};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Time end = log.evaluations[i].end;
    if (end < before) {
      nodes[i].at("end_ps").refuse(
          fmt::format("a step must not end before one before it ({} is before {})", end.count(),
                      before.count()));
    }
    before = end;
  }
}

// Reads everything but the steps and the evaluations.
TrainingLog read_head(const JsonNode& root) {
  TrainingLog log;
  log.settings = read_settings(root.at("settings"));
  log.seed = static_cast<std::uint64_t>(root.at("seed").whole(0, most_whole));
  log.mode = root.at("mode").text();
  log.stages = read_stages(root.at("stages"));
  if (const auto software = root.find("software")) {
    for (const JsonNode& one : software->items()) log.software.push_back(one.text());
  }
  log.command = root.text_or_empty("command");
  log.date = root.text_or_empty("date");
  if (const auto wall = root.find("wall_seconds")) {
    log.wall_seconds = wall->number();
    if (log.wall_seconds < 0) wall->refuse("a time must not be negative");
  }
  return log;
}

}  // namespace

TrainingLog parse_training_log(const std::string& text, const std::string& file) {
  const JsonValue tree = parse_json(text, file);
  const JsonNode root(tree, "", file);
  if (root.kind() != JsonKind::object) root.refuse("a training log is one JSON object");
  if (const std::string format = root.at("format").text(); format != training_format) {
    root.at("format").refuse(
        fmt::format("a training log has \"{}\" here, not {}", training_format, in_quotes(format)));
  }
  root.check_keys({"format", "settings", "seed", "mode", "stages", "evaluations", "steps"},
                  {"software", "command", "date", "wall_seconds"});
  TrainingLog log = read_head(root);
  log.steps = read_steps(root.at("steps"), log.settings.steps);
  const auto most = static_cast<std::int64_t>(log.steps.size());
  log.evaluations = read_evaluations(root.at("evaluations"), most);
  check_ends(root.at("evaluations"), log);
  return log;
}

TrainingLog read_without_steps(const JsonNode& node) {
  node.check_keys({"settings", "seed", "mode", "stages", "evaluations"},
                  {"software", "command", "date", "wall_seconds"});
  TrainingLog log = read_head(node);
  log.evaluations = read_evaluations(node.at("evaluations"), log.settings.steps);
  check_order(node.at("evaluations"), log);
  return log;
}

}  // namespace stageline::lab
