// Writes training logs as JSON and as CSV.
#include <fmt/core.h>

#include <cmath>

#include "tools/lab/training/log.hpp"
#include "traces/json/parts.hpp"

namespace stageline::lab {
namespace {

// The shortest text that is read back as the same number.
std::string number_text(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

std::string text_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + json_text(text);
  return "[" + list + "]";
}

// "key": a list broken over many lines.
std::string number_list(std::string_view key, const std::vector<std::string>& numbers) {
  if (numbers.empty()) return fmt::format("    \"{}\": []", key);
  return fmt::format("    \"{}\": [{}]", key, json_lines(numbers, "      ").substr(1));
}

std::string settings_text(const TrainingSettings& settings) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}\n    \"{}\": {}", text.empty() ? "" : ",", key, value);
  };
  add("model", json_text(settings.model));
  add("trace", json_text(settings.trace));
  add("schedule", json_text(settings.schedule));
  add("partition", json_text(settings.partition));
  add("weights", json_text(settings.weights));
  add("correction", json_text(settings.correction));
  add("devices", fmt::format("{}", settings.devices));
  add("microbatches", fmt::format("{}", settings.microbatches));
  add("batch", fmt::format("{}", settings.batch));
  add("data", json_text(settings.data));
  add("optimizer", json_text(settings.optimizer));
  add("recipe", json_text(settings.recipe));
  add("number_format", json_text(settings.number_format));
  add("steps", fmt::format("{}", settings.steps));
  add("pipelined", fmt::format("{}", settings.pipelined));
  return "{" + text + "\n  }";
}

std::string stages_text(const std::vector<LoggedStage>& stages) {
  std::string text;
  for (const LoggedStage& stage : stages) {
    text += fmt::format(
        "{}\n    {{\"first_layer\": {}, \"last_layer\": {}, \"weights\": {}, "
        "\"staleness_mean\": {}, \"staleness_max\": {}}}",
        text.empty() ? "" : ",", stage.first_layer, stage.last_layer, stage.weights,
        number_text(stage.staleness_mean), number_text(stage.staleness_max));
  }
  return text.empty() ? "[]" : "[" + text + "\n  ]";
}

std::string steps_text(const std::vector<LoggedStep>& steps) {
  std::vector<std::string> ends;
  std::vector<std::string> losses;
  for (const LoggedStep& step : steps) {
    ends.push_back(fmt::format("{}", step.end.count()));
    losses.push_back(number_text(step.loss));
  }
  return "{\n" + number_list("end_ps", ends) + ",\n" + number_list("loss", losses) + "\n  }";
}

std::string evaluations_text(const std::vector<Evaluation>& evaluations) {
  std::string text;
  for (const Evaluation& one : evaluations) {
    text += fmt::format("{}\n    {{\"step\": {}, \"end_ps\": {}, \"loss\": {}, \"accuracy\": {}}}",
                        text.empty() ? "" : ",", one.step, one.end.count(), number_text(one.loss),
                        number_text(one.accuracy));
  }
  return text.empty() ? "[]" : "[" + text + "\n  ]";
}

// The document's keys, one a line, without the format and the steps.
std::string head_text(const TrainingLog& log) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "" : ",", key, value);
  };
  add("settings", settings_text(log.settings));
  add("seed", fmt::format("{}", log.seed));
  add("mode", json_text(log.mode));
  add("stages", stages_text(log.stages));
  add("software", text_list(log.software));
  add("command", json_text(log.command));
  add("date", json_text(log.date));
  add("wall_seconds", number_text(log.wall_seconds));
  add("evaluations", evaluations_text(log.evaluations));
  return text;
}

// 1500000000001 ps: "1.500000000001"
std::string exact_seconds(Time time) {
  constexpr std::int64_t second = 1'000'000'000'000;
  return fmt::format("{}.{:012}", time.count() / second, time.count() % second);
}

}  // namespace

std::string to_json(const TrainingLog& log) {
  return fmt::format("{{\n  \"format\": \"{}\",{},\n  \"steps\": {}\n}}\n", training_format,
                     head_text(log), steps_text(log.steps));
}

std::string without_steps(const TrainingLog& log, std::size_t columns) {
  const std::string blanks(columns, ' ');
  std::string text = "{";
  for (const char c : head_text(log)) {
    text += c;
    if (c == '\n') text += blanks;
  }
  return text + "\n" + blanks + "}";
}

std::string to_csv(const TrainingLog& log) {
  const std::int64_t in_step =
      std::int64_t{log.settings.microbatches} * std::int64_t{log.settings.batch};
  std::string text = "step,samples,simulated_seconds,loss,test_loss,test_accuracy\n";
  auto next = log.evaluations.begin();
  const auto line = [&](std::int64_t step, Time end, const std::string& loss) {
    std::string test = ",";
    if (next != log.evaluations.end() && next->step == step) {
      test = fmt::format("{},{}", next->loss, next->accuracy);
      ++next;
    }
    text += fmt::format("{},{},{},{},{}\n", step, step * in_step, exact_seconds(end), loss, test);
  };
  if (next != log.evaluations.end() && next->step == 0) line(0, Time{}, "");
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    line(static_cast<std::int64_t>(i) + 1, log.steps[i].end, fmt::format("{}", log.steps[i].loss));
  }
  return text;
}

}  // namespace stageline::lab
