// Settings by their keys, from text to a request.
#include "tools/sweep/words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/text.hpp"
#include "tools/inputs/settings.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

// A sweep is of one schedule a row, and shows what it shows.
bool is_varied(const SettingRow& row) {
  return row.of != SettingOf::answer && row.of != SettingOf::training && row.key != "schedules" &&
         row.key != "program";
}

const SettingRow& row_called(std::string_view key) {
  const SettingRow* const row = find_setting(key);
  if (row == nullptr || !is_varied(*row)) {
    throw UsageError(fmt::format("there is no setting \"{}\"{}", key,
                                 did_you_mean(std::string(key), sweep_keys())));
  }
  return *row;
}

bool boolean(const SettingWord& word) {
  if (word.text == "true") return true;
  if (word.text == "false") return false;
  throw UsageError(fmt::format("{} is true or false, not \"{}\"", word.key, word.text));
}

std::int64_t whole(const SettingWord& word) {
  const auto number = parse_number<std::int64_t>(word.text);
  if (number && *number >= 0) return *number;
  throw UsageError(fmt::format("{} is a whole number from 0, not \"{}\"", word.key, word.text));
}

JsonValue value_of(const SettingRow& row, const SettingWord& word) {
  switch (row.form) {
    case SettingForm::yes:
      return {JsonKind::boolean, boolean(word) ? "true" : "false", {}, {}};
    case SettingForm::count:
    case SettingForm::counts:
    case SettingForm::number:
      if (!parse_number<double>(word.text)) {
        throw UsageError(
            fmt::format("{} is one number, not \"{}\"; several are an axis", word.key, word.text));
      }
      return {JsonKind::number, word.text, {}, {}};
    default:
      return {JsonKind::text, word.text, {}, {}};
  }
}

void set_uncertain(const SettingWord& word, SweepQuestion& question) {
  PerturbationTexts& texts = question.perturbation;
  if (word.key == "jitter") {
    texts.jitter = word.text;
  } else if (word.key == "sometimes_slow") {
    texts.sometimes = word.text;
  } else if (word.key == "pause") {
    texts.pause = word.text;
  } else if (word.key == "perturb") {
    texts.perturb = word.text;
  } else if (word.key == "seed") {
    texts.seed = word.text;
  } else if (word.key == "scenarios") {
    question.scenarios = whole(word);
  } else if (word.key == "freeze") {
    question.freeze = boolean(word);
  } else {
    question.scenario = whole(word);
  }
}

// A row may use a part of a named cluster, which the command does only where --devices says so.
std::string part_of_cluster(const std::vector<SettingWord>& words) {
  const auto text_of = [&](std::string_view key) {
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const SettingWord& word) { return word.key == key; });
    return found == words.end() ? std::string() : found->text;
  };
  if (text_of("cluster").empty() || text_of("pp").empty() || !text_of("devices").empty()) return "";
  int devices = 1;
  for (const char* const key : {"tp", "cp", "dp", "pp"}) {
    devices *= parse_number<int>(text_of(key)).value_or(1);
  }
  return fmt::format(" --devices {}", devices);
}

}  // namespace

const std::vector<std::string>& sweep_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const SettingRow& row : setting_rows()) {
      if (is_varied(row)) all.emplace_back(row.key);
    }
    return all;
  }();
  return names;
}

bool is_sweep_key(const std::string& key) {
  return std::find(sweep_keys().begin(), sweep_keys().end(), key) != sweep_keys().end();
}

bool decides_model(std::string_view key) { return row_called(key).opens == SettingOpens::trace; }

bool decides_setting(std::string_view key) {
  return row_called(key).opens != SettingOpens::nothing;
}

SweepQuestion question_of(const std::vector<SettingWord>& words) {
  SweepQuestion question;
  JsonValue root;
  root.kind = JsonKind::object;
  for (const SettingWord& word : words) {
    const SettingRow& row = row_called(word.key);
    if (row.of == SettingOf::chance) {
      set_uncertain(word, question);
    } else {
      root.keys.push_back(word.key);
      root.items.push_back(value_of(row, word));
    }
  }
  question.request = answers::parse_request(root);
  std::vector<ScheduleSpec>& schedules = question.request.setting.schedules;
  if (schedules.empty()) schedules = {answers::default_schedule()};
  question.request.setting.replicas_vary = !open_perturbation(question.perturbation).none();
  if (schedules.size() > 1) {
    throw UsageError(
        "a scenario of a sweep has one schedule; several of them are an axis: --axis schedule=…");
  }
  return question;
}

bool asks_for_scenarios(const SweepQuestion& question) {
  const PerturbationTexts& texts = question.perturbation;
  return !texts.jitter.empty() || !texts.sometimes.empty() || !texts.pause.empty() ||
         !texts.perturb.empty();
}

Perturbation perturbation_of(const SweepQuestion& question) {
  Perturbation asked = open_perturbation(question.perturbation);
  if (question.scenarios && *question.scenarios < 1) {
    throw UsageError("scenarios is a whole number from 1, not 0");
  }
  if (!asked.none() || asks_for_scenarios(question)) return asked;
  for (const auto& [given, key] : {std::pair{question.scenario.has_value(), "scenario"},
                                   {question.scenarios.has_value(), "scenarios"},
                                   {!question.perturbation.seed.empty(), "seed"},
                                   {question.freeze, "freeze"}}) {
    if (!given) continue;
    throw UsageError(
        fmt::format("{} has nothing to apply to, since nothing is uncertain; give "
                    "jitter, sometimes_slow, pause or perturb",
                    key));
  }
  return asked;
}

std::string flags_of(const std::vector<SettingWord>& words) {
  std::string trace;
  std::string flags = part_of_cluster(words);
  for (const SettingWord& word : words) {
    if (word.key == "trace") {
      trace = shell_word(word.text);
      continue;
    }
    const SettingRow& row = row_called(word.key);
    const bool yes = row.form == SettingForm::yes;
    if (yes && word.text == "false") continue;
    flags += " " + row.flag();
    if (!yes) flags += " " + shell_word(word.text);
  }
  return trace + flags;
}

}  // namespace stageline
