// stageline plan: what to do instead. Searches degrees, micro-batches, schedules, recomputation and
// cuts for the samples of one update, and says how far the answer is from the best possible.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "schedulers/aliases.hpp"
#include "schedulers/partition/megatron.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "tools/answers/planned.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/inputs/training_budget.hpp"
#include "tools/launch/emission.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/json/plan.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/plan.hpp"

namespace stageline::cli {
namespace {

// What a flag says that fixes a searched setting, where its row says it for one value.
struct FixHelp {
  std::string_view key;
  std::string_view help;
};
constexpr std::array fix_helps{
    FixHelp{
        "schedule",
        "NAME[:knob=value,…] or FILE.slp, or a comma list; default: all synchronous ones but seq1f1b"},
    FixHelp{"devices", "how many to use, a list, or a sweep 8..64; default: all of the cluster"},
    FixHelp{"recompute",
            "none, selective, every:N or full, as `stageline simulate` takes it; several by "
            "--fix 'recompute=none|full'"},
    FixHelp{"offload", "none, all, or stages such as @0,2-3; default: none"},
    FixHelp{"partition", "a cut, as `stageline simulate` takes it"},
};

std::string fix_help(const SettingRow& row) {
  for (const FixHelp& one : fix_helps) {
    if (one.key == row.key) return fmt::format("fix {}", one.help);
  }
  return fmt::format("fix {}", row.help.substr(0, row.help.find("; default:")));
}

// A setting whose flag takes the values to search: an item of --fix by another name.
bool is_fixed_by_values(const SettingRow& row) {
  return row.searched && row.form != SettingForm::yes;
}

struct PlanFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  std::vector<Flag> all_flags;
  std::map<std::string_view, std::vector<std::string>> fixed;  // as typed, by the settings' keys
  std::vector<std::string> fix;
  std::optional<std::int64_t> samples;
  std::string tokens_per_step;
  std::string objective;
  std::string within;
  std::string slower_by;
  std::string budget;
  bool thorough = false;
  bool exhaustive = false;
  bool asynchronous = false;
  bool all = false;
  bool with_flags = false;
  std::string emit;
  std::string runs_in;
  int top = 10;
  int threads = 0;
};

std::string key_of(const std::string& item) {
  std::string key = item.substr(0, item.find('='));
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// The values of one flag as an item of --fix: "tp=4|8".
std::string item_of(const SettingRow& row, const std::vector<std::string>& typed) {
  const bool sweep = row.form == SettingForm::counts;
  // Commas separate values that have none of their own.
  const bool commas = sweep || row.form == SettingForm::count || row.form == SettingForm::word;
  std::vector<std::string> values;
  for (std::string value : typed) {
    if (sweep && value.find("..") != std::string::npos) {
      value = fmt::format("{}", fmt::join(parse_devices(value), "|"));
    }
    if (commas) std::replace(value.begin(), value.end(), ',', '|');
    values.push_back(std::move(value));
  }
  const char* const between = row.key == "schedule" ? "," : "|";
  return fmt::format("{}={}", row.flag().substr(2), fmt::join(values, between));
}

planner::PlanSpace space_of(const PlanFlags& flags) {
  planner::PlanSpace space;
  struct Said {
    std::string key;
    std::string how;
  };
  std::vector<Said> said;
  const auto take = [&](const std::string& item, const std::string& how) {
    const std::string key = key_of(item);
    for (const Said& before : said) {
      if (before.key != key) continue;
      throw UsageError(fmt::format("{} is fixed twice, by {} and by {}; name all its values in one",
                                   key, before.how, how));
    }
    said.push_back({key, how});
    planner::fix(space, item);
  };
  for (const auto& [key, typed] : flags.fixed) {
    if (typed.empty()) continue;
    const SettingRow& row = *find_setting(key);
    take(item_of(row, typed), fmt::format("{} {}", row.flag(), fmt::join(typed, " ")));
  }
  if (flags.common.given("sequence_parallel")) {
    space.sequence_parallel = true;
    said.push_back({"sequence-parallel", "--sequence-parallel"});
  }
  for (const std::string& item : flags.fix) take(item, "--fix " + item);
  space.asynchronous = space.asynchronous || flags.asynchronous;
  if (space.asynchronous && !space.schedules.empty()) {
    throw UsageError(
        "asynchronous schedules are added to those that are tried where none is named, and "
        "--schedule names them: leave out --asynchronous, or --schedule");
  }
  return space;
}

// The samples of one update.
std::int64_t samples_of(const PlanFlags& flags, const Model& model) {
  if (flags.samples) return *flags.samples;
  if (flags.tokens_per_step.empty()) {
    throw UsageError(fmt::format(
        "plan compares ways to train with the same update, and needs its size: --samples N{}",
        model.tokens > 0 ? ", or --tokens-per-step N" : ""));
  }
  if (model.tokens == 0) {
    throw UsageError(fmt::format(
        "--tokens-per-step is for language models, and a sample of {} is {}; give --samples N",
        model.name, model.sample.empty() ? "no sequence" : "of another kind: " + model.sample));
  }
  const double tokens = parse_tokens(flags.tokens_per_step, "--tokens-per-step");
  const auto sequence = static_cast<double>(model.tokens);
  const double sequences = std::floor(tokens / sequence);
  if (sequences * sequence != tokens) {
    const double next = (sequences + 1) * sequence;
    throw UsageError(fmt::format(
        "--tokens-per-step is a multiple of the sequence, {} tokens, and {} is none; the nearest: "
        "{}{:.0f}",
        model.tokens, flags.tokens_per_step,
        sequences > 0 ? fmt::format("{:.0f} and ", sequences * sequence) : "", next));
  }
  return static_cast<std::int64_t>(sequences);
}

// One line on standard error, rewritten, where that is a terminal.
class PlanProgressLine {
 public:
  explicit PlanProgressLine(bool wanted) : live_(wanted && ::isatty(STDERR_FILENO) == 1) {}
  void operator()(const planner::PlanProgress& progress) {
    if (!live_) return;
    shown_ = true;
    std::fputs((report::progress_words(progress) + "\033[K\r").c_str(), stderr);
  }
  ~PlanProgressLine() {
    if (shown_) std::fputs("\033[K", stderr);
  }
  PlanProgressLine(const PlanProgressLine&) = delete;
  PlanProgressLine& operator=(const PlanProgressLine&) = delete;

 private:
  bool live_;
  bool shown_ = false;
};

std::vector<std::string> notes_of(const PlanFlags& flags, const answers::PlanAnswer& found) {
  std::vector<std::string> said = read_as_notes(flags.fixed.at("schedule"));
  const auto say = [&](const std::string& note) {
    if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
  };
  for (const std::string& note : notes(found.setting)) say(note);
  for (const planner::PlanPoint& point : found.plan.front) {
    const std::optional<Interval>& interval = point.verdict.intervals.step;
    if (interval) say("range: " + provenance_of(*interval));
  }
  for (const std::string& note : found.plan.ties) say(note);
  for (const std::string& note : found.plan.notes) say(note);
  for (const std::string& note : found.size_notes) say(note);
  if (found.interrupted) {
    say("interrupted: what was found until then");
  } else if (found.plan.partial) {
    say(fmt::format("the search ended with its budget of {}; more may find better, up to the bound",
                    flags.budget));
  }
  return said;
}

planner::PlanRequest plan_request(const PlanFlags& flags) {
  planner::PlanRequest request;
  request.setting = request_of(flags.common);
  request.setting.degrees_are_searched = true;
  request.space = space_of(flags);
  if (!flags.objective.empty()) {
    request.objective = one_of(planner::all_objectives, flags.objective, "--objective");
  }
  if (!flags.within.empty()) request.within = parse_within(flags.within, "--within");
  if (!flags.slower_by.empty()) {
    if (flags.slower_by != "any") request.slower_by = parse_within(flags.slower_by, "--slower-by");
  } else if (request.objective == planner::Objective::time) {
    request.slower_by = 0.5;
  }
  if (!flags.budget.empty()) {
    request.budget = std::chrono::milliseconds(
        std::llround(std::min(seconds_of(flags.budget, "--budget"), 1e9) * 1e3));
  }
  request.threads = flags.threads;
  request.thorough = flags.thorough;
  request.exhaustive = flags.exhaustive;
  request.keep_dropped = flags.all;
  return request;
}

report::PlanView view_of(const PlanFlags& flags) {
  report::PlanView view;
  view.width = text_width();
  view.top = flags.all ? 0 : static_cast<std::size_t>(flags.top);
  view.flags = flags.with_flags;
  view.command = "stageline simulate " + typed_setting(flags.common, flags.all_flags);
  return view;
}

// --runs-in, or the framework that --emit writes for.
std::optional<Framework> framework_of(const PlanFlags& flags) {
  if (!flags.runs_in.empty()) return one_of(all_frameworks, flags.runs_in, "--runs-in");
  if (!flags.emit.empty()) return one_of(emitting_frameworks, flags.emit, "--emit");
  return std::nullopt;
}

// The recommended setting as the flags of the framework; empty where nothing fits.
std::string emitted_text(const PlanFlags& flags, const answers::PlanAnswer& found) {
  if (flags.emit.empty() || found.drawn.empty()) return "";
  const Framework framework = one_of(emitting_frameworks, flags.emit, "--emit");
  const planner::Candidate& candidate = found.plan.front[*found.plan.recommended].candidate;
  EmissionAsked asked{request_of(found.request.setting, candidate), candidate.spec,
                      found.request.samples};
  asked.setting.degrees = candidate.shape.degrees;
  if (candidate.shape.degrees.pipeline > 1) {
    const Outcome& outcome = found.outcomes.front();
    asked.stages = parse_megatron(write_megatron(outcome.plan.partition, outcome.program.placement,
                                                 found.drawn.front().model));
  }
  return fmt::format("\nAs {} has it:\n{}", flags.emit, emitted(framework, asked));
}

answers::PlanAnswer searched(const PlanFlags& flags) {
  answers::PlanQuestion question;
  const std::optional<Framework> framework = framework_of(flags);
  question.request = plan_request(flags);
  question.complete = [&flags, framework](const Setting& setting, planner::PlanRequest& request) {
    if (framework) restrict_to(*framework, setting.model, request.space);
    request.samples = samples_of(flags, setting.model);
    request.training = budget_of(flags.common, setting.model);
  };
  question.drawn = !flags.html.empty() || !flags.emit.empty();
  question.request.stop = &catch_signals(SecondSignal::ends);
  PlanProgressLine progress(!flags.common.quiet);
  question.request.progress = [&](const planner::PlanProgress& now) { progress(now); };
  return answer(question);
}

int run_plan(const PlanFlags& flags) {
  const CommonFlags& common = flags.common;
  Outputs outputs{common.json, flags.svg, flags.html, common.quiet};
  check_outputs(outputs);
  const report::PlanView view = view_of(flags);
  const answers::PlanAnswer found = searched(flags);
  const bool none = found.plan.front.empty();
  const std::string emission = emitted_text(flags, found);
  std::vector<std::string> said = notes_of(flags, found);
  Forms forms;
  forms.json = [&] {
    return report::plan_json(found.setting, found.request, found.plan, view, said);
  };
  if (!none) {
    forms.svg = [&](const report::SvgOptions& options) {
      return report::chart_svg(report::plan_chart(found.setting, found.request, found.plan),
                               options);
    };
  }
  forms.page = [&] { return report::plan_page(found, view, said); };
  forms.text = [&] { return report::plan_text(found, view, common.quiet, flags.all) + emission; };
  forms.notes = [&] { return said; };
  forms.wrote = {"--html"};
  if (!none) forms.wrote.insert(forms.wrote.begin(), {"--svg", "--pdf", "--png"});
  deliver(outputs, forms);
  return found.interrupted ? exit_code_after_signal() : none ? 1 : 0;
}

void add_plan(Flags command) {
  const auto flags = std::make_shared<PlanFlags>();
  CommonFlags& common = flags->common;
  add_trace_flags(command, common);
  add_cluster_flags(command, common);
  add_settings(command, common,
               {"lengths", "lengths_order", "calibration", "software", "cuda_graphs"});
  add_unequal_flags(command, common);
  add_layout_flags(command, common);
  add_setting(command, common, "messages");
  const Flags training = command.in(SettingGroup::training).common();
  const Flags search = command.in(SettingGroup::search);
  const Flags output = command.in(SettingGroup::output);
  const Flag samples =
      training.option("--samples", flags->samples, "of one update, all replicas together")
          .range(std::int64_t{1}, std::int64_t{1} << 40);
  training
      .option("--tokens-per-step", flags->tokens_per_step,
              "of a language model, in place of --samples: tokens of one update (4194304)")
      .excludes(samples);
  for (const SettingRow& row : setting_rows()) {
    if (!is_fixed_by_values(row)) continue;
    place_of(command, row.key)
        .option(row.flag(), flags->fixed[row.key], fix_help(row))
        .repeatable();
  }
  add_setting(command, common, "sequence_parallel")
      .describe("fix that tensor-parallel ranks share the norms' and dropouts' activations, too");
  search.common()
      .option(
          "--fix", flags->fix,
          "KEY=VALUE[|VALUE…]: search these values alone; the keys are those of the flags above "
          "(tp=4|8); repeatable")
      .repeatable();
  search.flag("--asynchronous", flags->asynchronous,
              "also schedules that update without a flush, on stale weights");
  search.common().option("--objective", flags->objective,
                         fmt::format("what to recommend the least of: {}; default: time",
                                     fmt::join(names_of(planner::all_objectives), ", ")));
  search.option("--within", flags->within,
                "recommend the least memory among what is at most this much slower than the "
                "fastest; default: 1%, or where language models tie that with the least time × "
                "memory");
  search.option("--slower-by", flags->slower_by,
                "end the front where a step takes so much longer than the fastest, whatever it "
                "saves in memory; any: nowhere; default: 50% with --objective time, else any");
  search.common().option(
      "--budget", flags->budget,
      "end the search after so long (30s, 5min), with the best so far and the bound");
  search.flag("--thorough", flags->thorough,
              "also simulate what is estimated to be far behind the front, where no bound rules "
              "it out");
  search.flag("--exhaustive", flags->exhaustive,
              "simulate every candidate, also where a bound rules it out");
  add_budget_flags(command, common);
  search
      .option("--threads", flags->threads, "default: all cores; changes no result without a budget")
      .range(1, 1024);
  const Flag top =
      output.option("--top", flags->top, "rows of the table; default: 10").range(1, 1 << 30);
  output
      .flag("--all", flags->all,
            "all rows, what cannot run and why, and what was pruned with its bound")
      .excludes(top);
  output.flag("--flags", flags->with_flags, "the command of every row");
  search.option("--runs-in", flags->runs_in,
                fmt::format("search only what a framework has, schedules above all: {}",
                            fmt::join(names_of(all_frameworks), ", ")));
  const Flag emit = output.option(
      "--emit", flags->emit,
      fmt::format("print the recommended setting as the flags of a framework, and search only what "
                  "it has: {}",
                  fmt::join(names_of(emitting_frameworks), ", ")));
  add_svg_flag(command, flags->svg,
               "write peak memory against the step as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(
      command, flags->html,
      "write an interactive page with the front and the recommended schedule, or - for stdout");
  add_output_flags(command, common);
  emit.excludes(command.find("--json"));
  command.footer(
      "Example:\n  stageline plan resnet50-cpu --samples 256 --devices 4 --link 2.5GB/s --schedule "
      "1f1b,zb_h1\n"
      "Without --schedule all synchronous ones but seq1f1b are tried. The last lines say how far from "
      "the best possible\nthe answer is.\n"
      "Exit code 1: nothing fits into memory. 130, 143: interrupted; the best so far was printed.");
  flags->all_flags = command.all();
  command.runs([flags] { return run_plan(*flags); });
}

}  // namespace

extern const Command plan_command;
const Command plan_command = {
    "plan",
    "What to do instead: searches schedules, degrees, micro-batches, recomputation and cuts",
    add_plan, ""};

}  // namespace stageline::cli
