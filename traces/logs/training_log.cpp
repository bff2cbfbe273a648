#include "traces/logs/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/errors.hpp"
#include "traces/json/tree.hpp"
#include "traces/logs/lines.hpp"

namespace stageline {
namespace {

constexpr std::array forms{
    LogForm{"Megatron-LM", read_megatron_line}, LogForm{"NeMo", read_nemo_line},
    LogForm{"torchtitan", read_torchtitan_line}, LogForm{"DeepSpeed", read_deepspeed_line}};

// Where several ranks write one log, the first one counts: "[rank3]: …".
bool is_of_another_rank(std::string_view line) {
  const auto rank = number_behind(line.substr(0, 40), "[rank");
  return rank && *rank > 0;
}

bool in_order(const PrintedStep& step, PrintedLog& log, const std::string& file) {
  if (log.steps.empty()) return true;
  const PrintedStep& before = log.steps.back();
  if (step.number == before.number) return false;
  if (step.number > before.number) return true;
  throw TraceError(file, fmt::format("line {}", step.line),
                   fmt::format("the run began again, at step {} after step {} (line {}); keep the "
                               "lines of one run",
                               step.number, before.number, before.line));
}

// Megatron-LM's report of a rank: "memory (MB) | allocated: … | max allocated: 61234.5 | …".
void take_memory(std::string_view line, double& most) {
  constexpr double mib = 1024.0 * 1024;
  if (line.find("memory (MB)") == std::string_view::npos) return;
  if (const auto held = number_behind(line, "max allocated:")) most = std::max(most, *held * mib);
}

PrintedLog read_lines(const std::string& text, const std::string& file) {
  PrintedLog log;
  const LogForm* form = nullptr;
  double memory = 0;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    if (end == text.size() || text[end] == '\n') ++number;
    const std::string line = without_colours(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (is_of_another_rank(line)) continue;
    take_memory(line, memory);
    for (const LogForm& one : forms) {
      if (form != nullptr && form != &one) continue;
      std::optional<PrintedStep> step = one.read(line);
      if (!step) continue;
      form = &one;
      step->line = number;
      if (in_order(*step, log, file)) log.steps.push_back(*step);
      break;
    }
  }
  if (form == nullptr) {
    throw TraceError(file, "",
                     "no line is a step of Megatron-LM (\"elapsed time per iteration (ms): …\"), "
                     "torchtitan (\"step: … tps: …\"), NeMo (\"train_step_timing\"), DeepSpeed "
                     "(\"CurrSamplesPerSec\"), and it is no trainer_state.json");
  }
  log.framework = form->framework;
  for (PrintedStep& step : log.steps) step.memory = std::max(step.memory, memory);
  return log;
}

// The Trainer's state: what it measured stands in the last entry of its history.
PrintedLog read_trainer_state(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  const JsonNode state(value, "", file);
  const std::optional<JsonNode> history =
      value.kind == JsonKind::object ? state.find("log_history") : std::nullopt;
  if (!history) {
    throw TraceError(file, "",
                     "this is JSON without \"log_history\", which a trainer_state.json of "
                     "transformers has");
  }
  PrintedLog log{"the Trainer of transformers", {}, true};
  for (const JsonNode& entry : history->items()) {
    const std::optional<JsonNode> rate = entry.find("train_steps_per_second");
    if (!rate) continue;
    PrintedStep step;
    step.seconds = 1 / rate->positive();
    if (const auto samples = entry.find("train_samples_per_second")) {
      step.samples = std::llround(samples->positive() * step.seconds);
    }
    if (const auto number = entry.find("step")) {
      step.number = std::llround(number->number());
    }
    log.steps = {step};
  }
  if (log.steps.empty()) {
    throw TraceError(file, "/log_history",
                     "no entry has \"train_steps_per_second\", which the Trainer writes at the end "
                     "of a run; this one did not end");
  }
  if (log.steps.front().number == 1) {
    throw TraceError(file, "/log_history", "it is of a single step, which is a warm-up");
  }
  return log;
}

template <class Get>
double median(const std::vector<PrintedStep>& steps, std::size_t from, Get get) {
  std::vector<double> values;
  for (std::size_t i = from; i < steps.size(); ++i) values.push_back(get(steps[i]));
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// What is longer the slower a step is.
double length_of(const PrintedStep& step) {
  if (step.seconds > 0) return step.seconds;
  return step.device_tokens > 0 ? 1 / step.device_tokens : 0;
}

std::size_t warm_up_of(const std::vector<PrintedStep>& steps) {
  const double usual = median(steps, 1, length_of);
  std::size_t first = 1;
  while (first + 1 < steps.size() && length_of(steps[first]) > 1.5 * usual) ++first;
  return first;
}

}  // namespace

PrintedLog read_printed_log(const std::string& text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw TraceError(file, "", "the log is empty");
  return text[first] == '{' && text.find("\"log_history\"") != std::string::npos
             ? read_trainer_state(text, file)
             : read_lines(text, file);
}

LogSummary summary_of(const PrintedLog& log, const std::string& file) {
  const std::vector<PrintedStep>& steps = log.steps;
  if (steps.size() < 2 && !log.mean_of_run) {
    throw TraceError(file, fmt::format("line {}", steps.front().line),
                     "this is the only step of the log, and the first one is a warm-up; give a log "
                     "of several steps");
  }
  LogSummary all;
  all.warm_up = log.mean_of_run ? 0 : warm_up_of(steps);
  all.steps = steps.size() - all.warm_up;
  const auto middle = [&](auto get) { return median(steps, all.warm_up, get); };
  all.seconds = middle([](const PrintedStep& step) { return step.seconds; });
  all.device_tokens = middle([](const PrintedStep& step) { return step.device_tokens; });
  all.device_flops = middle([](const PrintedStep& step) { return step.device_flops; });
  all.samples = steps.back().samples;
  all.least = all.most = all.seconds;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all.skipped += steps[i].skipped;
    all.memory = std::max(all.memory, steps[i].memory);
    if (i < all.warm_up) continue;
    all.least = std::min(all.least, steps[i].seconds);
    all.most = std::max(all.most, steps[i].seconds);
    if (steps[i].samples == all.samples) continue;
    throw TraceError(file, fmt::format("line {}", steps[i].line),
                     fmt::format("the batch changes, from {} to {} samples an update; keep the "
                                 "lines of one batch",
                                 steps[i].samples, all.samples));
  }
  return all;
}

std::vector<std::string> log_notes(const PrintedLog& log, const LogSummary& summary) {
  std::vector<std::string> notes;
  if (log.mean_of_run) {
    notes.emplace_back(
        "a mean over all of the run, its first steps, logs and checkpoints included");
  }
  if (summary.skipped > 0) {
    notes.push_back(fmt::format(
        "{} updates were skipped, as a loss scale that is too large makes them: such a step has no "
        "update, and is shorter",
        summary.skipped));
  }
  return notes;
}

}  // namespace stageline
