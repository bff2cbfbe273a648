// Settings by their key_table, from text to a request.
#include "tools/sweep/words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/errors.hpp"
#include "sim/numbers.hpp"
#include "tools/base/text.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

enum class Form : std::uint8_t { text, number, boolean, uncertain };
// What is opened anew where the value changes: the trace, or the cluster under the same trace.
enum class Opens : std::uint8_t { trace, cluster, nothing };

struct SweepKey {
  std::string_view name;
  Form form;
  Opens opens;
};

constexpr std::array key_table{
    SweepKey{"trace", Form::text, Opens::trace},
    SweepKey{"schedule", Form::text, Opens::nothing},
    SweepKey{"devices", Form::number, Opens::cluster},
    SweepKey{"cluster", Form::text, Opens::trace},
    SweepKey{"link", Form::text, Opens::cluster},
    SweepKey{"memory", Form::text, Opens::cluster},
    SweepKey{"reserve", Form::text, Opens::cluster},
    SweepKey{"host_link", Form::text, Opens::cluster},
    SweepKey{"host_memory", Form::text, Opens::cluster},
    SweepKey{"pair_overlap", Form::number, Opens::cluster},
    SweepKey{"microbatches", Form::number, Opens::nothing},
    SweepKey{"microbatch_size", Form::number, Opens::trace},
    SweepKey{"profile_batch", Form::number, Opens::trace},
    SweepKey{"steps", Form::number, Opens::nothing},
    SweepKey{"partition", Form::text, Opens::trace},
    SweepKey{"weights", Form::text, Opens::nothing},
    SweepKey{"messages", Form::text, Opens::nothing},
    SweepKey{"tp", Form::number, Opens::trace},
    SweepKey{"cp", Form::number, Opens::trace},
    SweepKey{"ep", Form::number, Opens::trace},
    SweepKey{"dp", Form::number, Opens::trace},
    SweepKey{"pp", Form::number, Opens::trace},
    SweepKey{"order", Form::text, Opens::trace},
    SweepKey{"zero", Form::text, Opens::trace},
    SweepKey{"precision", Form::text, Opens::trace},
    SweepKey{"sharing", Form::text, Opens::nothing},
    SweepKey{"collectives", Form::text, Opens::cluster},
    SweepKey{"buckets", Form::text, Opens::cluster},
    SweepKey{"sequence_parallel", Form::boolean, Opens::trace},
    SweepKey{"all_pipelines", Form::boolean, Opens::cluster},
    SweepKey{"calibration", Form::text, Opens::trace},
    SweepKey{"slow", Form::text, Opens::cluster},
    SweepKey{"device_order", Form::text, Opens::cluster},
    SweepKey{"recompute", Form::text, Opens::nothing},
    SweepKey{"recompute_start", Form::text, Opens::nothing},
    SweepKey{"offload", Form::text, Opens::nothing},
    SweepKey{"prefetch", Form::number, Opens::nothing},
    SweepKey{"jitter", Form::uncertain, Opens::cluster},
    SweepKey{"sometimes_slow", Form::uncertain, Opens::cluster},
    SweepKey{"pause", Form::uncertain, Opens::cluster},
    SweepKey{"perturb", Form::uncertain, Opens::cluster},
    SweepKey{"seed", Form::uncertain, Opens::nothing},
    SweepKey{"scenarios", Form::uncertain, Opens::nothing},
    SweepKey{"freeze", Form::uncertain, Opens::nothing},
    SweepKey{"scenario", Form::uncertain, Opens::nothing},
};

const SweepKey& key_of(std::string_view name) {
  const auto found = std::find_if(key_table.begin(), key_table.end(),
                                  [&](const SweepKey& key) { return key.name == name; });
  if (found == key_table.end()) {
    throw UsageError(fmt::format("there is no setting \"{}\"{}", name,
                                 did_you_mean(std::string(name), sweep_keys())));
  }
  return *found;
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

JsonValue value_of(const SweepKey& key, const SettingWord& word) {
  if (key.form == Form::text) return {JsonKind::text, word.text, {}, {}};
  if (key.form == Form::boolean) {
    return {JsonKind::boolean, boolean(word) ? "true" : "false", {}, {}};
  }
  if (!parse_number<double>(word.text)) {
    throw UsageError(
        fmt::format("{} is one number, not \"{}\"; several are an axis", word.key, word.text));
  }
  return {JsonKind::number, word.text, {}, {}};
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
    for (const SweepKey& key : key_table) all.emplace_back(key.name);
    return all;
  }();
  return names;
}

bool is_sweep_key(const std::string& key) {
  return std::find(sweep_keys().begin(), sweep_keys().end(), key) != sweep_keys().end();
}

bool decides_model(std::string_view key) { return key_of(key).opens == Opens::trace; }

bool decides_setting(std::string_view key) { return key_of(key).opens != Opens::nothing; }

SweepQuestion question_of(const std::vector<SettingWord>& words) {
  SweepQuestion question;
  JsonValue root;
  root.kind = JsonKind::object;
  for (const SettingWord& word : words) {
    const SweepKey& key = key_of(word.key);
    if (key.form == Form::uncertain) {
      set_uncertain(word, question);
    } else {
      root.keys.push_back(word.key);
      root.items.push_back(value_of(key, word));
    }
  }
  question.request = parse_request(root);
  if (question.request.schedules.empty()) question.request.schedules = parse_schedules("1f1b");
  question.request.setting.replicas_vary = !open_perturbation(question.perturbation).none();
  if (question.request.schedules.size() > 1) {
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
    if (word.text == "false" && key_of(word.key).form == Form::boolean) continue;
    std::string flag = word.key == "profile_batch" ? "batch" : word.key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const bool valued =
        !(word.text == "true" && (key_of(word.key).form == Form::boolean || word.key == "freeze"));
    flags += fmt::format(" --{}{}", flag, valued ? " " + shell_word(word.text) : "");
  }
  return trace + flags;
}

}  // namespace stageline
