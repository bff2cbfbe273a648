// Flags that several subcommands share, and the request that they make up.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/answers/question.hpp"
#include "tools/commands/flags.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::cli {

/// A value as it was typed, by the form of its setting.
struct TypedSetting {
  std::string text;
  std::vector<std::string> texts;
  int count = 0;
  std::optional<double> number;
  bool yes = false;

  bool operator==(const TypedSetting&) const = default;
  bool given() const { return !text.empty() || !texts.empty() || count != 0 || number || yes; }
};

/// What was typed, by the keys of the settings (tools/inputs/settings.hpp).
struct CommonFlags {
  std::map<std::string, TypedSetting, std::less<>> typed;
  std::vector<std::string> schedules;  // lists, as read_schedules() takes them
  std::string program;                 // one file in their place
  std::string json;
  bool quiet = false;

  bool given(std::string_view key) const { return typed_of(key).given(); }
  /// Empty or 0 where the flag is not given, or the command has none.
  const std::string& text(std::string_view key) const { return typed_of(key).text; }
  const std::vector<std::string>& texts(std::string_view key) const { return typed_of(key).texts; }
  int count(std::string_view key) const { return typed_of(key).count; }
  const std::string& trace() const { return text("trace"); }
  /// The variable of the flag, which stays where it is.
  TypedSetting& at(std::string_view key) { return typed[std::string(key)]; }

 private:
  const TypedSetting& typed_of(std::string_view key) const;
};

/// The command, where --help has what is added as the row of that setting says.
Flags place_of(Flags command, std::string_view key);

/// The flag of a setting; its name, help and range are those of the setting's row.
Flag add_setting(Flags command, CommonFlags& flags, std::string_view key);
void add_settings(Flags command, CommonFlags& flags, std::initializer_list<std::string_view> keys);

/// TRACE and --batch.
void add_trace_flags(Flags command, CommonFlags& flags);
/// --json and --quiet.
void add_output_flags(Flags command, CommonFlags& flags);
/// --cluster, --link, --memory, --reserve, --host-link, --host-memory, --pair-overlap.
void add_cluster_flags(Flags command, CommonFlags& flags);
/// --tp, --cp, --ep, --dp, --pp, --zero, --sequence-parallel, and those of add_layout_flags().
void add_degree_flags(Flags command, CommonFlags& flags);
/// --zero-every, --shard-group, --order, --precision, --collectives, --sharing, --buckets,
/// --all-pipelines.
void add_layout_flags(Flags command, CommonFlags& flags);
/// --tokens, --price.
void add_budget_flags(Flags command, CommonFlags& flags);
/// --slow, --device-order.
void add_unequal_flags(Flags command, CommonFlags& flags);
/// The flags of one problem: trace, cluster, schedule and cut; with Many::yes, a sweep of devices
/// and a list of schedules, but no program text; `cuts`: whether also several cuts; `given`:
/// whether a program may take the place of a schedule (--program).
enum class Many : std::uint8_t { no, yes };
enum class Given : std::uint8_t { no, yes };
/// `recomputations`: whether also several of them.
void add_problem_flags(Flags command, CommonFlags& flags, Many many = Many::no,
                       Many cuts = Many::no, Given given = Given::yes,
                       Many recomputations = Many::no);

/// The same with --json and --quiet.
void add_case_flags(Flags command, CommonFlags& flags, Many many = Many::no, Many cuts = Many::no,
                    Given given = Given::yes, Many recomputations = Many::no);

/// The flags as values; reads the programs that they name. Throws UsageError and ProgramError.
SettingRequest request_of(const CommonFlags& flags);
/// The same of a command that takes one schedule. Throws UsageError also for several.
SettingRequest request_of_one(const CommonFlags& flags);

/// What is asked of a whole training.
TrainingBudget typed_budget(const CommonFlags& flags);
/// The same. Throws UsageError also where the model has no tokens.
TrainingBudget budget_of(const CommonFlags& flags, const Model& model);

/// Refuses a sweep of devices, which `other` takes.
void check_one_count(const Setting& setting, const std::string& command,
                     const std::string& other = "stageline compare");

/// The question of a command that takes one schedule on one number of devices.
answers::SettingQuestion case_question(const CommonFlags& flags, const std::string& command);

/// Notes on flags that a command reads and whose figures it does not show: --steps of one that runs
/// as many as it needs, and memory and weights of one that speaks of time alone.
enum class Shows : std::uint8_t { fit, time };
std::vector<std::string> notes_on_unread(const CommonFlags& flags, const std::string& command,
                                         Shows shows);

}  // namespace stageline::cli
