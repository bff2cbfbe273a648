// stageline import log: the steps that a training printed.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/units.hpp"
#include "tools/base/files.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline::cli {
namespace {

struct LogFlags {
  std::string file;
  std::string json;
  std::optional<std::int64_t> sequence;
  std::optional<std::int64_t> samples;
};

constexpr double bytes_each_gb = 1e9;

// The measured figures, with the samples and tokens that follow from them.
struct LogFigures {
  LogSummary summary;
  double tokens = 0;  // a second, of all devices
};

LogFigures figures_of(const LogFlags& flags, const PrintedLog& log) {
  LogFigures figures{summary_of(log, flags.file)};
  LogSummary& summary = figures.summary;
  const bool each_sample = log.framework == "DeepSpeed" && summary.samples == 0;
  if (flags.samples) {
    if (summary.samples > 0 && summary.samples != *flags.samples) {
      throw UsageError(fmt::format("--samples is {}, and the log says {} samples an update",
                                   *flags.samples, summary.samples));
    }
    summary.samples = *flags.samples;
    if (each_sample) {
      const auto number = static_cast<double>(*flags.samples);
      summary.seconds *= number;
      summary.least *= number;
      summary.most *= number;
    }
  } else if (each_sample) {
    throw UsageError(fmt::format(
        "{} has samples a second and no batch; give --samples N of one update", flags.file));
  }
  if (flags.sequence && summary.seconds > 0) {
    figures.tokens = static_cast<double>(*flags.sequence * summary.samples) / summary.seconds;
  }
  return figures;
}

std::string log_text(const PrintedLog& log, const LogFigures& figures) {
  const LogSummary& summary = figures.summary;
  std::string text = fmt::format(
      "{}: {}", log.framework,
      log.mean_of_run
          ? fmt::format("a run of {} steps", log.steps.back().number)
          : fmt::format("{} logged steps after {} of warm-up", summary.steps, summary.warm_up));
  text += "\n";
  const auto line = [&](const char* title, const std::string& value) {
    text += fmt::format("{:<10}  {}\n", title, value);
  };
  if (summary.seconds > 0) {
    line("step", log.mean_of_run || summary.steps < 2
                     ? fmt::format("{:.4g} s", summary.seconds)
                     : fmt::format("{:.4g} s, median of {:.4g} to {:.4g} s", summary.seconds,
                                   summary.least, summary.most));
    line("rate", fmt::format("{:.4g} steps/s", 1 / summary.seconds));
  }
  if (summary.samples > 0) {
    line("batch",
         fmt::format("{} samples an update{}", summary.samples,
                     summary.seconds > 0
                         ? fmt::format(", {:.4g} a second",
                                       static_cast<double>(summary.samples) / summary.seconds)
                         : ""));
  }
  if (figures.tokens > 0) line("tokens", fmt::format("{:.0f} a second", figures.tokens));
  if (summary.device_tokens > 0) {
    line("tokens", fmt::format("{:.0f} a second and device", summary.device_tokens));
  }
  if (summary.device_flops > 0) {
    line("FLOPs", fmt::format("{:.1f} TFLOP/s a device, as {} counts them",
                              summary.device_flops / 1e12, log.framework));
  }
  if (summary.memory > 0) {
    line("memory", fmt::format("{:.2f} GB at most", summary.memory / bytes_each_gb));
  }
  return text;
}

std::string log_json(const PrintedLog& log, const LogFigures& figures,
                     const std::vector<std::string>& notes) {
  const LogSummary& summary = figures.summary;
  nlohmann::ordered_json all;
  all["framework"] = log.framework;
  const auto add = [&](const char* key, double value) {
    if (value > 0) all[key] = value;
  };
  all["steps"] = summary.steps;
  all["warm_up"] = summary.warm_up;
  add("step_s", summary.seconds);
  add("least_s", summary.least);
  add("most_s", summary.most);
  if (summary.samples > 0) all["samples"] = summary.samples;
  add("tokens_per_s", figures.tokens);
  add("device_tokens_per_s", summary.device_tokens);
  add("device_flops_per_s", summary.device_flops);
  add("memory_bytes", summary.memory);
  all["skipped"] = summary.skipped;
  all["notes"] = notes;
  return all.dump(2) + "\n";
}

int import_log(const LogFlags& flags) {
  const PrintedLog log = read_printed_log(read_text(flags.file), flags.file);
  const LogFigures figures = figures_of(flags, log);
  const std::vector<std::string> notes = log_notes(log, figures.summary);
  if (!flags.json.empty()) write_file(flags.json, log_json(log, figures, notes));
  if (flags.json == "-") return 0;
  show("{}", log_text(log, figures));
  for (const std::string& note : notes) print_wrapped("note: " + note + "\n");
  return 0;
}

void add_import_log(Flags command) {
  const auto flags = std::make_shared<LogFlags>();
  command
      .option("LOG", flags->file, "what the training printed, or a trainer_state.json; - for stdin")
      .required();
  command
      .option("--samples", flags->samples,
              "of one update, all replicas together, where the log does not say it")
      .range(std::int64_t{1}, std::int64_t{1} << 40);
  command.option("--sequence", flags->sequence, "tokens of one sample, which makes tokens a second")
      .range(std::int64_t{1}, std::int64_t{1} << 30);
  command.option("--json", flags->json, "write it as JSON to a file, or - for stdout")
      .writes_file();
  command.footer(
      "Example:\n  stageline import log train.log --sequence 4096\n"
      "Reads Megatron-LM, NeMo, torchtitan, DeepSpeed and the Trainer of transformers. The first "
      "step is a warm-up, and so are those after it that are half as long again as the median.");
  command.runs([flags] { return import_log(*flags); });
}

}  // namespace

extern const Command import_log_command;
const Command import_log_command = {"log", "Read the steps that a training printed", add_import_log,
                                    "import"};

}  // namespace stageline::cli
