#include "tools/commands/explained_run.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/launch/launched_run.hpp"
#include "tools/launch/run_setting.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline::cli {
namespace {

// A value of a run as its flag would have it.
TypedSetting typed_as_flag(const SettingRow& row, const std::string& value) {
  TypedSetting typed;
  switch (row.form) {
    case SettingForm::count:
      typed.count = parse_number<int>(value).value_or(0);
      break;
    case SettingForm::number:
      typed.number = parse_number<double>(value);
      break;
    case SettingForm::yes:
      typed.yes = true;
      break;
    default:
      typed.text = value;
  }
  return typed;
}

std::string in_words(const TypedSetting& typed) {
  if (typed.count != 0) return fmt::format("{}", typed.count);
  if (typed.number) return fmt::format("{:g}", *typed.number);
  return typed.yes ? "given" : typed.text;
}

void take_schedule(CommonFlags& flags, const std::string& value, const std::string& file) {
  if (!flags.schedules.empty() && flags.schedules != std::vector<std::string>{value}) {
    throw UsageError(fmt::format("--schedule is {}, and {} says {}; leave the flag out",
                                 flags.schedules.front(), file, value));
  }
  flags.schedules = {value};
}

void take_setting(CommonFlags& flags, const std::string& key, const std::string& value,
                  const std::string& file) {
  if (key == "schedule") {
    take_schedule(flags, value, file);
    return;
  }
  const SettingRow& row = *find_setting(key);
  const TypedSetting said = typed_as_flag(row, value);
  TypedSetting& typed = flags.at(key);
  if (typed.given() && typed != said) {
    throw UsageError(
        fmt::format("{} is {}, and {} says {}; leave the flag out, or change the file's argument "
                    "with --set",
                    row.flag(), in_words(typed), file, in_words(said)));
  }
  typed = said;
}

int number_of_devices(const CommonFlags& flags) {
  const std::string& text = flags.text("devices");
  if (text.empty()) return 0;
  const std::vector<int> counts = parse_devices(text);
  if (counts.size() > 1) {
    throw UsageError(fmt::format("explain takes one number of devices, and --devices is {}", text));
  }
  return counts.front();
}

// A log has the number that ran; what launches a run may be started on another.
void check_devices(const LaunchedRun& printed, const CommonFlags& flags) {
  const int typed = number_of_devices(flags);
  const int ran = printed.arguments.devices_each;
  if (typed == 0 || ran == 0 || typed == ran) return;
  throw UsageError(fmt::format("--devices is {}, and {} says {}; leave the flag out", typed,
                               printed.arguments.file, ran));
}

void take_run(const LaunchedRun& run, const ExplainedRunFlags& flags, ExplainedRun& found) {
  const LaunchAdditions additions = parse_additions(flags.additions);
  RunAround around;
  around.model = flags.model;
  around.device_flag = "--kind";
  around.device_said = !run.device.empty() || !flags.kind.empty();
  if (!run.device.empty()) around.device = run.device;
  if (!flags.kind.empty()) around.device = flags.kind;
  around.cluster = found.common.text("cluster");
  around.devices = number_of_devices(found.common);
  const RunSetting setting = setting_of(RunFacts(run.framework, run.arguments, additions), around);
  for (const auto& [key, value] : setting.values) {
    take_setting(found.common, key, value, run.arguments.file);
  }
  found.notes.push_back(fmt::format("{} is read as a run of {}: `{}`", run.arguments.file,
                                    name(run.framework), command_of(setting)));
  found.notes.insert(found.notes.end(), setting.notes.begin(), setting.notes.end());
}

// The step, or the rate that the framework prints in its place.
answers::MeasuredValue measured_of(const PrintedLog& log, const LogSummary& summary,
                                   const std::string& file) {
  const auto typed = [&](double value, const char* unit) {
    return fmt::format("{}: {:.4g}{}", file, value, unit);
  };
  // DeepSpeed prints samples a second, and no batch: what is read is the time of one.
  if (log.framework == "DeepSpeed" && summary.samples == 0 && summary.seconds > 0) {
    const double rate = 1 / summary.seconds;
    return {typed(rate, " samples/s"), answers::MeasuredUnit::samples, rate};
  }
  if (summary.seconds > 0) {
    return {typed(summary.seconds, "s"), answers::MeasuredUnit::step, summary.seconds};
  }
  if (summary.device_tokens > 0) {
    return {typed(summary.device_tokens, " tok/s/gpu"), answers::MeasuredUnit::tokens_per_device,
            summary.device_tokens};
  }
  if (summary.device_flops > 0) {
    return {typed(summary.device_flops / 1e12, " TFLOP/s"), answers::MeasuredUnit::flops_per_device,
            summary.device_flops};
  }
  throw TraceError(file, "", "no line has the time of a step, or a rate");
}

void take_log(const std::string& text, const std::string& file, ExplainedRun& found) {
  const PrintedLog log = read_printed_log(text, file);
  const LogSummary summary = summary_of(log, file);
  found.measured.values.push_back(measured_of(log, summary, file));
  found.measured.samples = summary.samples;
  if (summary.memory > 0) {
    found.measured.memory = Bytes{static_cast<std::int64_t>(summary.memory)};
  }
  if (!log.mean_of_run) {
    found.notes.push_back(
        fmt::format("{}: the median of {} logged steps of {}, after {} of warm-up", file,
                    summary.steps, log.framework, summary.warm_up));
  }
  for (const std::string& note : log_notes(log, summary)) {
    found.notes.push_back(fmt::format("{}: {}", file, note));
  }
}

[[noreturn]] void refuse_nothing(const ExplainedRunFlags& flags) {
  if (!flags.log.empty()) {
    throw UsageError(
        fmt::format("{} does not print the arguments of its run; state it as TRACE with its flags, "
                    "or by --launch FILE",
                    flags.log));
  }
  throw UsageError(
      "explain needs the run: TRACE with its flags, --launch FILE, or a --log that prints its "
      "arguments");
}

void check_flags_of_files(const ExplainedRunFlags& flags, bool reads_run) {
  const std::pair<const char*, bool> given[] = {{"--model", !flags.model.empty()},
                                                {"--kind", !flags.kind.empty()},
                                                {"--set", !flags.additions.empty()}};
  for (const auto& [flag, is_given] : given) {
    if (!is_given || reads_run) continue;
    throw UsageError(fmt::format(
        "{} is of a run that is read from --launch or --log; TRACE says it itself", flag));
  }
}

}  // namespace

void add_explained_run_flags(Flags command, ExplainedRunFlags& flags) {
  const Flags output = command.in(SettingGroup::model);
  output.common().option(
      "--launch", flags.launch,
      "instead of TRACE and its flags: the script, command line or configuration that launches the "
      "run in Megatron-LM, Megatron-Bridge, NeMo, torchtitan or DeepSpeed");
  output.common().option(
      "--log", flags.log,
      "what the training printed: its steps are measured, and without TRACE and --launch its "
      "arguments are the run");
  output.option("--model", flags.model,
                "with --launch or --log: the model by its name (llama3-8b) or a path/config.json, "
                "instead of its sizes in the file");
  output.option("--kind", flags.kind,
                "with --launch or --log: the kind of device that it runs on, h100, a100, b200, …; "
                "default: as the log says, or h100");
  output
      .option("--set", flags.additions,
              "with --launch or --log: NAME=VALUE, a variable of the script, or an argument by the "
              "framework's name; repeatable")
      .repeatable();
}

ExplainedRun explained_run(const ExplainedRunFlags& flags, const CommonFlags& common) {
  ExplainedRun found{common, {}, {}};
  const std::string log = flags.log.empty() ? "" : read_text(flags.log);
  if (!flags.log.empty()) take_log(log, flags.log, found);
  const bool typed = !common.trace().empty();
  check_flags_of_files(flags, !typed);
  if (typed) return found;
  if (!flags.launch.empty()) {
    take_run(
        read_launched_run(read_text(flags.launch), flags.launch, parse_additions(flags.additions)),
        flags, found);
    return found;
  }
  const std::optional<LaunchedRun> printed = printed_run(log, flags.log);
  if (!printed) refuse_nothing(flags);
  check_devices(*printed, common);
  take_run(*printed, flags, found);
  return found;
}

}  // namespace stageline::cli
