#include "traces/logs/lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <initializer_list>

#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

std::int64_t whole(std::optional<double> number) {
  constexpr double most = 1e15;
  return number && *number >= 0 && *number <= most ? std::llround(*number) : 0;
}

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array units{Unit{"GiB", 1024.0 * 1024 * 1024}, Unit{"GB", 1024.0 * 1024 * 1024},
                           Unit{"MiB", 1024.0 * 1024}, Unit{"MB", 1024.0 * 1024}};

// "38.20GiB(48.30%)": frameworks print GB and mean GiB, too.
double bytes_behind(std::string_view line, std::string_view words) {
  const std::optional<double> number = number_behind(line, words);
  if (!number) return 0;
  const std::string_view rest = line.substr(line.find(words) + words.size());
  const auto* const unit = std::min_element(
      units.begin(), units.end(),
      [&](const Unit& a, const Unit& b) { return rest.find(a.name) < rest.find(b.name); });
  return *number * (rest.find(unit->name) == std::string_view::npos ? 0 : unit->bytes);
}

double first_of(std::string_view line, std::initializer_list<std::string_view> words) {
  for (const std::string_view one : words) {
    if (const auto number = number_behind(line, one)) return *number;
  }
  return 0;
}

}  // namespace

std::optional<double> number_behind(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t from = at + words.size();
  while (from < line.size() && line[from] == ' ') ++from;
  std::string digits;
  for (; from < line.size(); ++from) {
    const char c = line[from];
    const bool grouped = c == ',' && from + 3 < line.size() &&
                         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                                     line.begin() + static_cast<std::ptrdiff_t>(from) + 4,
                                     [](unsigned char d) { return std::isdigit(d) != 0; });
    if (grouped) continue;
    const bool sign =
        (c == '+' || c == '-') && (digits.empty() || digits.back() == 'E' || digits.back() == 'e');
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.' && c != 'e' && c != 'E' &&
        !sign) {
      break;
    }
    digits += c;
  }
  std::string_view rest = digits;
  const std::optional<double> number = take_number<double>(rest);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return number;
}

// Megatron-LM, training.py: training_log(), and Megatron-Bridge's after it.
std::optional<PrintedStep> read_megatron_line(std::string_view line) {
  const auto milliseconds = number_behind(line, "elapsed time per iteration (ms):");
  const auto number = number_behind(line, "iteration ");
  if (!milliseconds || !number) return std::nullopt;
  PrintedStep step;
  step.number = whole(number);
  step.seconds = *milliseconds / 1e3;
  step.samples = whole(number_behind(line, "global batch size:"));
  step.device_flops =
      1e12 *
      first_of(line, {"throughput per GPU (TFLOP/s/GPU):", "throughput (TFLOP/s/GPU):", "TFLOPs:"});
  step.skipped = whole(number_behind(line, "number of skipped iterations:"));
  return step;
}

// NeMo 2.0's ProgressPrinter, and the bar of PyTorch Lightning before it.
std::optional<PrintedStep> read_nemo_line(std::string_view line) {
  const double seconds =
      first_of(line, {"train_step_timing in s:", "train_step_timing in s=", "train_step_timing="});
  if (seconds <= 0) return std::nullopt;
  PrintedStep step;
  step.number = whole(first_of(line, {"global_step:", "global_step="}));
  step.seconds = seconds;
  step.samples = whole(first_of(line, {"global_batch_size:", "global_batch_size="}));
  return step;
}

// torchtitan, components/metrics.py.
std::optional<PrintedStep> read_torchtitan_line(std::string_view line) {
  const auto number = number_behind(line, "step:");
  const auto tokens = number_behind(line, "tps:");
  if (!number || !tokens) return std::nullopt;
  PrintedStep step;
  step.number = whole(number);
  step.device_tokens = *tokens;
  step.device_flops = 1e12 * first_of(line, {"tflops:"});
  step.memory = bytes_behind(line, "memory:");
  return step;
}

// DeepSpeed, utils/timer.py (ThroughputTimer) and runtime/pipe/engine.py.
std::optional<PrintedStep> read_deepspeed_line(std::string_view line) {
  PrintedStep step;
  if (const auto seconds = number_behind(line, "iter time (s):")) {
    step.number = whole(number_behind(line, "steps:"));
    step.seconds = *seconds;
    step.samples = whole(*seconds * first_of(line, {"samples/sec:"}));
    return step;
  }
  const auto rate = number_behind(line, "CurrSamplesPerSec=");
  if (!rate || *rate <= 0) return std::nullopt;
  step.number = whole(number_behind(line, "global_step="));
  step.seconds = 1 / *rate;  // of a sample, until the batch is known
  step.memory = bytes_behind(line, "MaxMemAllocated=");
  return step;
}

std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      text += line[i];
      continue;
    }
    while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0) ++i;
  }
  return text;
}

}  // namespace stageline
