// Declares the shared flags and converts them to values.
#include "tools/commands/case_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/inputs/training_budget.hpp"

namespace stageline::cli {
namespace {

// What a row of settings reads.
SettingValue value_of(const SettingRow& row, const TypedSetting& typed) {
  SettingValue value{row.flag(), typed.texts, {}, typed.number.value_or(0), typed.yes};
  if (!typed.text.empty()) value.texts = {typed.text};
  if (row.form == SettingForm::counts) value.counts = parse_devices(typed.text);
  if (row.form == SettingForm::count) value.counts = {typed.count};
  return value;
}

const SettingRow& row_of(std::string_view key) {
  const SettingRow* const row = find_setting(key);
  if (row == nullptr) throw std::logic_error("there is no setting " + std::string(key));
  return *row;
}

// A list where one number is due. Empty: it is none.
std::string degree_fault(const std::string& text) {
  if (text.find_first_of(",|:@") == std::string::npos) return "";
  return fmt::format(
      "a degree is one whole number, the same for all stages (it is \"{}\"); `stageline plan TRACE "
      "--fix 'tp=2|4'` chooses among several",
      text);
}

}  // namespace

const TypedSetting& CommonFlags::typed_of(std::string_view key) const {
  static const TypedSetting none;
  const auto found = typed.find(key);
  return found == typed.end() ? none : found->second;
}

Flags place_of(Flags command, std::string_view key) {
  const SettingRow& row = row_of(key);
  return command.in(row.group).common(row.common);
}

Flag add_setting(Flags command, CommonFlags& flags, std::string_view key) {
  const SettingRow* const row = &row_of(key);
  command = place_of(command, key);
  const std::string name = row->flag();
  const std::string help(row->help);
  TypedSetting& typed = flags.at(key);
  switch (row->form) {
    case SettingForm::yes:
      return command.flag(name, typed.yes, help);
    case SettingForm::number: {
      const Flag flag = command.option(name, typed.number, help);
      return row->set == nullptr ? flag : flag.range(0.0, static_cast<double>(row->most));
    }
    case SettingForm::count: {
      const Flag flag = command.option(name, typed.count, help);
      if (row->most == std::numeric_limits<int>::max()) return flag.positive();
      if (row->of == SettingOf::ranks) flag.check(degree_fault, "");
      return flag.range(1, static_cast<int>(row->most));
    }
    default:
      return command.option(name, typed.text, help);
  }
}

void add_settings(Flags command, CommonFlags& flags, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) add_setting(command, flags, key);
}

void add_trace_flags(Flags command, CommonFlags& flags) {
  add_setting(command, flags, "trace").required();
  add_setting(command, flags, "profile_batch");
}

void add_output_flags(Flags command, CommonFlags& flags) {
  const Flags output = command.in(SettingGroup::output);
  output.common()
      .option("--json", flags.json, "write the results as JSON to a file, or - for stdout")
      .writes_file();
  output.flag("--quiet", flags.quiet, "no heading and no notes");
}

void add_cluster_flags(Flags command, CommonFlags& flags) {
  add_settings(
      command, flags,
      {"cluster", "link", "memory", "reserve", "host_link", "host_memory", "pair_overlap"});
}

void add_degree_flags(Flags command, CommonFlags& flags) {
  add_settings(command, flags, {"tp", "cp", "ep", "etp", "dp", "pp", "zero", "sequence_parallel"});
  add_settings(command, flags, {"encoder", "encoder_pp", "encoder_tp", "frozen_encoder"});
  add_layout_flags(command, flags);
}

void add_layout_flags(Flags command, CommonFlags& flags) {
  add_settings(command, flags,
               {"zero_every", "shard_group", "order", "precision", "collectives", "sharing",
                "buckets", "all_pipelines"});
}

void add_budget_flags(Flags command, CommonFlags& flags) {
  add_settings(command, flags, {"tokens", "price"});
}

void add_unequal_flags(Flags command, CommonFlags& flags) {
  add_settings(command, flags, {"slow", "device_order", "placement"});
}

namespace {

// --recompute, --recompute-start, --offload, --prefetch.
void add_stash_flags(Flags command, CommonFlags& flags, Many recomputations) {
  if (recomputations == Many::no) {
    add_setting(command, flags, "recompute");
  } else {
    const SettingRow& row = row_of("recompute");
    place_of(command, row.key)
        .option(row.flag(), flags.at(row.key).texts,
                std::string(row.help) + "; repeatable, to compare them")
        .repeatable();
  }
  add_setting(command, flags, "recompute_start");
  const Flag offload = add_setting(command, flags, "offload");
  add_setting(command, flags, "prefetch").needs(offload);
}

}  // namespace

void add_problem_flags(Flags command, CommonFlags& flags, Many many, Many cuts, Given given,
                       Many recomputations) {
  const bool one = many == Many::no;
  add_trace_flags(command, flags);
  const Flag schedule =
      place_of(command, "schedule")
          .option("--schedule", flags.schedules,
                  one ? "NAME[:knob=value,…], or a program, FILE.slp; default: 1f1b"
                      : "NAME[:knob=value,…] or a program, FILE.slp; a comma list of them, or all; "
                        "repeatable; default: all")
          .repeatable();
  const Flag devices = add_setting(command, flags, "devices");
  if (one) devices.describe("number of devices; default: all of the cluster, or 4");
  add_cluster_flags(command, flags);
  add_settings(command, flags,
               {"microbatches", "microbatch_size", "lengths", "lengths_order", "calibration",
                "software", "cuda_graphs", "cp_comm_type", "steps"});
  if (cuts == Many::no) {
    add_setting(command, flags, "partition");
  } else {
    const SettingRow& row = row_of("partition");
    place_of(command, row.key)
        .option(row.flag(), flags.at(row.key).texts,
                std::string(row.help) + "; repeatable, to compare cuts")
        .repeatable();
  }
  add_setting(command, flags, "weights");
  add_unequal_flags(command, flags);
  add_stash_flags(command, flags, recomputations);
  if (one && given == Given::yes) {
    place_of(command, "program")
        .option("--program", flags.program, std::string(row_of("program").help))
        .excludes(schedule);
  }
}

void add_case_flags(Flags command, CommonFlags& flags, Many many, Many cuts, Given given,
                    Many recomputations) {
  add_problem_flags(command, flags, many, cuts, given, recomputations);
  add_output_flags(command, flags);
}

SettingRequest request_of(const CommonFlags& flags) {
  SettingRequest request;
  request.whole_cluster = true;
  for (const SettingRow& row : setting_rows()) {
    const auto typed = flags.typed.find(row.key);
    if (row.set == nullptr || typed == flags.typed.end() || !typed->second.given()) continue;
    try {
      row.set(value_of(row, typed->second), request);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{}: {}", row.flag(), error.what()));
    }
  }
  request.schedules = read_schedules(flags.schedules, flags.quiet);
  if (!flags.program.empty()) {
    request.schedules = {read_schedule_file(flags.program, flags.quiet)};
  }
  return request;
}

SettingRequest request_of_one(const CommonFlags& flags) {
  SettingRequest request = request_of(flags);
  if (request.schedules.size() > 1) {
    throw UsageError(fmt::format(
        "this command takes one schedule, and {} were named; `stageline compare` takes many",
        request.schedules.size()));
  }
  return request;
}

TrainingBudget typed_budget(const CommonFlags& flags) {
  TrainingBudget budget;
  if (flags.given("tokens")) budget.tokens = parse_tokens(flags.text("tokens"), "--tokens");
  if (const auto price = flags.typed.find("price");
      price != flags.typed.end() && price->second.number) {
    budget.price_per_hour = checked_price(*price->second.number, "--price");
  }
  return budget;
}

TrainingBudget budget_of(const CommonFlags& flags, const Model& model) {
  const TrainingBudget budget = typed_budget(flags);
  check_budget(budget, model, "--tokens");
  return budget;
}

std::vector<std::string> notes_on_unread(const CommonFlags& flags, const std::string& command,
                                         Shows shows) {
  std::vector<std::string> notes;
  if (flags.given("steps")) {
    notes.push_back(fmt::format(
        "--steps has no effect on {}: its step is that of a steady pace, of as many steps as that "
        "needs",
        command));
  }
  if (shows == Shows::fit) return notes;
  std::vector<std::string> given;
  for (const char* const key : {"memory", "reserve", "host_memory", "weights"}) {
    if (flags.given(key)) given.push_back(row_of(key).flag());
  }
  if (given.empty()) return notes;
  notes.push_back(fmt::format(
      "{} is of time alone, which {} change{} no more than by the order of ops that the "
      "schedule derives from {}",
      command, fmt::join(given, ", "), given.size() == 1 ? "s" : "",
      given.size() == 1 ? "it" : "them"));
  return notes;
}

answers::SettingQuestion case_question(const CommonFlags& flags, const std::string& command) {
  answers::SettingQuestion question{request_of_one(flags)};
  question.check = [command](const Setting& setting) { check_one_count(setting, command); };
  return question;
}

void check_one_count(const Setting& setting, const std::string& command, const std::string& other) {
  if (setting.device_counts.size() == 1) return;
  throw UsageError(
      fmt::format("{} takes one number of devices; `{}` takes a sweep", command, other));
}

}  // namespace stageline::cli
