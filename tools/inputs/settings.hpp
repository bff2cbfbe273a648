// The settings of a question, a row each: made of it are the flags and their groups in --help, the
// keys of a JSON request and its schema, the keys of a sweep, the keys of a plan's --fix, and the
// commands that an answer prints.
//
//     --host-link 16GB/s          ╮                       ╭ SettingRequest::cluster.host_link
//     {"host_link": "16GB/s"}     ├─▶ {host_link, …} ─────┤ printed: --host-link 16GB/s
//     --axis host_link=16GB/s,…   ╯                       ╰ "host_link": {…} of the schema
//
// A new setting is a row of settings.cpp, and a member of SettingRequest where it is of the
// simulated case.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/inputs/setting.hpp"
#include "tools/inputs/setting_group.hpp"

namespace stageline {

/// What a value is: `text`; one of some `word`s; `file`, a name or in JSON the object itself;
/// `texts`, one or in JSON a list; a `count` from 1; `counts`, one or several; a `number`; `yes`,
/// on or off; `amount`, a number or a text with a unit.
enum class SettingForm : std::uint8_t {
  text,
  word,
  file,
  texts,
  count,
  counts,
  number,
  yes,
  amount
};

/// What is opened anew where the value changes: the trace, or the cluster under the same trace.
enum class SettingOpens : std::uint8_t { trace, cluster, nothing };

/// Whose a setting is: a `question`'s, the same for every row of an answer; the `ranks`', or else a
/// `row`'s, both of which a plan chooses for each row; the `schedule`, devices and cut that name a
/// row; a whole `training`'s; what an `answer` shows beside it; or of what is drawn by `chance`,
/// which a request in JSON does not know.
enum class SettingOf : std::uint8_t { question, ranks, row, schedule, training, answer, chance };

/// A value as it was given, and how a refusal names it: "--memory", "\"memory\"".
struct SettingValue {
  std::string what;
  std::vector<std::string> texts;  // one, or those of a list
  std::vector<int> counts;         // of `count` and `counts`
  double number = 0;
  bool yes = false;

  const std::string& text() const { return texts.front(); }
  int count() const { return counts.front(); }
};

struct SettingRow {
  std::string_view key;  // "host_link"
  SettingGroup group = SettingGroup::other;
  bool common = false;  // on the first screen of --help, not only in --help all
  SettingForm form = SettingForm::text;
  SettingOpens opens = SettingOpens::nothing;
  SettingOf of = SettingOf::question;
  std::string_view help;  // one sentence without a full stop, with the default behind a semicolon
  std::string_view words = {};  // of a `word`: "early late"
  std::int64_t most = 0;        // of `count`, `counts` and `number`; least 1, of a `number` 0
  /// Throws UsageError, which begins with SettingValue::what, and std::invalid_argument, which does
  /// not. Null: the setting is not of a SettingRequest, and its reader says what it means.
  void (*set)(const SettingValue& value, SettingRequest& request) = nullptr;
  /// The value as the flag takes it, "true" of a `yes`; empty where it is the default. Those of the
  /// ranks and of a row have one, and what else differs between the candidates of a plan.
  std::string (*print)(const SettingRequest& request) = nullptr;
  bool searched = false;            // by a plan, unless one of its flags or --fix names the values
  std::string_view flag_name = {};  // where it is not made of the key: "batch"

  /// "--host-link"; "TRACE" of the trace.
  std::string flag() const;
};

/// In the order of a request. The keys are each other's once.
std::span<const SettingRow> setting_rows();
/// Null: there is none.
const SettingRow* find_setting(std::string_view key);

/// The JSON Schema (draft 2020-12) of a request.
std::string request_schema();

}  // namespace stageline
