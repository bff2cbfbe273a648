// stageline time-to-accuracy: compares training logs by accuracy over simulated time.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/lab.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/lab/training/accuracy_report.hpp"
#include "tools/lab/training/retime.hpp"

namespace stageline::lab {
namespace {

struct AccuracyFlags {
  cli::CommonFlags common;
  std::vector<std::string> logs;
  std::string target;
  cli::SvgFlags svg;
  std::string switch_svg;
};

// "97%", "97 %", "0.97"
std::optional<double> target_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const bool in_percent = text.back() == '%';
  std::string digits = text.substr(0, text.size() - (in_percent ? 1 : 0));
  while (!digits.empty() && digits.back() == ' ') digits.pop_back();
  const std::optional<double> value = parse_number<double>(digits);
  if (!value || !std::isfinite(*value)) {
    throw UsageError(fmt::format("--target is an accuracy like 97% or 0.97, not \"{}\"", text));
  }
  if (!in_percent && *value > 1) {
    throw UsageError(
        fmt::format("--target {}: a share is at most 1; write {}% for percent", text, text));
  }
  return in_percent ? *value / 100 : *value;
}

std::vector<NamedLog> read_logs(const std::vector<std::string>& files) {
  std::vector<NamedLog> logs;
  for (const std::string& file : files) {
    logs.push_back({file, parse_training_log(read_text(file), file)});
  }
  return logs;
}

// Whether a file is standard output, which then has nothing else.
bool goes_to_stdout(const AccuracyFlags& flags) {
  std::vector<cli::OutputFile> files = cli::picture_files(flags.svg);
  files.insert(files.begin(), {"--json", flags.common.json});
  files.push_back({"--switch-svg", flags.switch_svg});
  return cli::to_stdout(files);
}

void check_flags(const AccuracyFlags& flags) {
  if (flags.switch_svg.empty()) cli::check_pictures(flags.svg);
  const cli::CommonFlags& common = flags.common;
  const bool devices = common.given("cluster") || common.given("link") || common.given("memory") ||
                       common.given("reserve") || common.given("host_link") ||
                       common.given("host_memory") || common.given("pair_overlap") ||
                       common.given("messages");
  if (devices && common.trace().empty()) {
    throw UsageError(
        "--cluster, --link and the like say on which devices the trainings are to be simulated "
        "again; name the layers' costs with --trace as well");
  }
}

// Simulates trainings again, once for all logs of the same training.
class Retiming {
 public:
  explicit Retiming(const cli::CommonFlags& flags)
      : trace_(flags.trace()), link_(flags.text("link")), request_(request_of(flags)) {}

  void apply(NamedLog& named) {
    TrainingLog& log = named.log;
    try {
      const std::string key = to_json({log.settings, 0, "", log.stages, {}, "", "", 0, {}, {}});
      const auto found = ends_.find(key);
      const std::vector<Time>& ends = found != ends_.end() ? found->second : simulate(key, named);
      set_times(log, ends);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", named.file, error.what()));
    }
    log.settings.trace = trace_;
  }

  TimesFrom from() const {
    std::string clusters;
    for (const std::string& one : clusters_) clusters += (clusters.empty() ? "" : ", ") + one;
    return {trace_, clusters};
  }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const std::vector<Time>& simulate(const std::string& key, const NamedLog& named) {
    const TrainingSettings& settings = named.log.settings;
    // A trace of unknown batch size keeps its times.
    const bool sized =
        open_trace_sizes({request_.trace, 0, request_.profile_batch, {}}).front().batch > 0;
    request_.microbatch_size = sized ? settings.batch : 0;
    const Setting setting = read_setting(request_);
    const Cluster cluster = cluster_of(setting.cluster, settings.devices);
    Case asked = case_of(named.log, setting.model, cluster);
    asked.messages = request_.messages;
    clusters_.insert(described(setting, cluster));
    for (const std::string& note : stageline::notes(setting)) add_note(note);
    if (!sized) {
      add_note(
          fmt::format("{} does not say the size of its micro-batches; its times are taken for "
                      "those of the logs",
                      trace_));
    }
    const std::string stale = staleness_note(asked, named.log);
    if (!stale.empty()) add_note(fmt::format("{}: {}", named.file, stale));
    return ends_[key] = ends_of(asked, named.log);
  }

  std::string described(const Setting& setting, const Cluster& cluster) const {
    const std::size_t devices = cluster.devices.size();
    const char* const many = devices == 1 ? "" : "s";
    std::string text = setting.cluster.fixed
                           ? fmt::format("{} device{} of {}", devices, many, cluster.name)
                           : fmt::format("{} equal device{}", devices, many);
    if (!link_.empty()) text += " with links of " + link_;
    return text;
  }

  void add_note(const std::string& note) {
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }

  std::string trace_;
  std::string link_;  // as typed
  SettingRequest request_;
  std::map<std::string, std::vector<Time>> ends_;
  std::set<std::string> clusters_;
  std::vector<std::string> notes_;
};

// Without title and footnotes: the text around the chart has them.
std::string plain_text(report::Chart chart, int rows) {
  chart.title = chart.subtitle = "";
  chart.footnotes.clear();
  return report::chart_text(chart, cli::text_width_up_to(76), rows);
}

int run(const AccuracyFlags& flags) {
  check_flags(flags);
  const bool silent = goes_to_stdout(flags);
  const std::optional<double> target = target_of(flags.target);
  std::vector<NamedLog> logs = read_logs(flags.logs);
  Retiming retiming(flags.common);
  if (!flags.common.trace().empty()) {
    for (NamedLog& log : logs) retiming.apply(log);
  }
  AccuracyStudy study = accuracy_study(std::move(logs), target);
  for (const std::string& note : retiming.notes()) study.notes.push_back(note);
  const std::vector<SwitchFamily> families = switch_families(study);
  const TimesFrom from = retiming.from();

  const bool any = std::any_of(study.curves.begin(), study.curves.end(),
                               [](const AccuracyCurve& curve) { return curve.reached.seeds > 0; });
  const bool by_switch = std::any_of(families.begin(), families.end(),
                                     [](const SwitchFamily& family) { return family.best; });
  if (!flags.switch_svg.empty() && families.empty()) {
    throw UsageError(
        "--switch-svg draws the time to the target by switch, but no logs differ only in how many "
        "of their steps are pipelined");
  }
  if (!flags.common.json.empty()) {
    write_file(flags.common.json, accuracy_json(study, families, from));
  }
  const report::Chart chart = accuracy_chart(study, from);
  const auto picture = [&](const report::Chart& drawn) {
    return cli::picture(flags.svg, [&](const report::SvgOptions& options) {
      return report::chart_svg(drawn, options);
    });
  };
  if (cli::any_picture(flags.svg)) cli::write_pictures(flags.svg, picture(chart));
  if (!flags.switch_svg.empty() && by_switch) {
    write_file(flags.switch_svg, picture(switch_chart(study, families)));
  }
  const int exit_code = any ? 0 : 1;
  if (silent) return exit_code;

  if (!flags.common.quiet) cli::print_wrapped(accuracy_heading(study, from) + "\n");
  cli::show("{}\n{}", accuracy_table(study, cli::text_width()), plain_text(chart, 16));
  for (const SwitchFamily& family : families) {
    cli::show("\n{}: by switch from the pipeline to one device\n{}", family.name,
              switch_table(study, family, cli::text_width()));
    for (const std::string& words : switch_words(study, family)) cli::print_wrapped(words + "\n");
  }
  if (by_switch) cli::show("\n{}", plain_text(switch_chart(study, families), 12));
  if (!any) {
    cli::show("\nno curve reaches {:.2f} %{}\n", 100 * study.target,
              flags.switch_svg.empty() ? "" : ", so there is nothing to draw by switch");
  }
  if (flags.common.quiet) return exit_code;
  cli::show("\n");
  for (const std::string& note : accuracy_notes(study)) cli::print_wrapped("note: " + note + "\n");
  return exit_code;
}

void add_time_to_accuracy(cli::Flags command) {
  const auto flags = std::make_shared<AccuracyFlags>();
  command
      .option("LOG", flags->logs,
              "training logs; those that differ in nothing but their seed are averaged")
      .required();
  command.in(SettingGroup::training)
      .option("--target", flags->target,
              "the accuracy to reach, 97% or 0.97; default: the highest that the mean of "
              "every curve reaches");
  cli::place_of(command, "trace")
      .option("--trace", flags->common.at("trace").text,
              "simulate the steps again with these costs of the layers, instead of taking "
              "the times of the logs: a trace as `stageline simulate` takes it");
  cli::add_setting(command, flags->common, "profile_batch");
  cli::add_cluster_flags(command, flags->common);
  cli::add_setting(command, flags->common, "messages");
  cli::add_svg_flag(command, flags->svg,
                    "draw accuracy against simulated time as SVG into a file, or - for stdout");
  cli::add_svg_style_flags(command, flags->svg);
  command.in(SettingGroup::output)
      .option("--switch-svg", flags->switch_svg,
              "draw the time to the target against the switch of hybrid training into a "
              "file, or - for stdout")
      .writes_file();
  cli::add_output_flags(command, flags->common);
  command.footer(
      "Schedule, cut, steps and number of devices are those of the logs, always.\n"
      "Example:\n  stageline time-to-accuracy plain.json stale.json hybrid.json --target 90% --svg "
      "accuracy.svg\n"
      "  stageline time-to-accuracy plain.json stale.json --trace model:lenet5@h100 --link "
      "12GB/s,5us\n"
      "Exit code 1: no curve reaches the target.");
  command.runs([flags] { return run(*flags); });
}

}  // namespace

extern const cli::Command time_to_accuracy_lab_command;
const cli::Command time_to_accuracy_lab_command = {cli::time_to_accuracy_at_lab.name,
                                                   cli::time_to_accuracy_at_lab.about,
                                                   add_time_to_accuracy, ""};

}  // namespace stageline::lab
