// Writes the stored figures of a replay and finds regressions.
#include "tools/lab/evidence/kept.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "traces/json/tree.hpp"

namespace stageline::lab {
namespace {

const JsonValue* find(const JsonValue& object, std::string_view key) {
  if (object.kind != JsonKind::object) return nullptr;
  const auto at = std::find(object.keys.begin(), object.keys.end(), key);
  return at == object.keys.end() ? nullptr : &object.items[as_size(at - object.keys.begin())];
}

// The number at a JSON pointer, or 0 where null precedes it: no case was judged.
double number_at(const JsonValue& kept, const std::string& pointer, const std::string& file) {
  const JsonValue* node = &kept;
  std::string where;
  for (std::size_t at = 1; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    const std::string key = pointer.substr(at, end - at);
    if (node->kind == JsonKind::null) return 0;
    where += "/" + key;
    node = find(*node, key);
    if (node == nullptr) throw TraceError(file, where, "it is missing");
    at = end + 1;
  }
  if (node->kind != JsonKind::number) throw TraceError(file, where, "this must be a number");
  const std::optional<double> number = parse_number<double>(node->text);
  if (!number) throw TraceError(file, where, fmt::format("{} is beyond all numbers", node->text));
  return *number;
}

JsonValue parse_kept(const std::string& kept, const std::string& file) {
  try {
    return parse_json(kept, file);
  } catch (const TraceError&) {
    throw TraceError(file, "", "this is not JSON");
  }
}

void compare(const JsonValue& kept, const std::string& file, const std::string& group,
             const Summary& now, std::vector<std::string>& worse) {
  const auto was = [&](const std::string& key) { return number_at(kept, group + key, file); };
  const auto cases = static_cast<double>(now.cases.size());
  if (was("/cases") != cases) {
    throw TraceError(file, group + "/cases",
                     fmt::format("these figures are of {:.0f} cases, and there are {:.0f}; "
                                 "write them anew with `stageline replay … --summary`",
                                 was("/cases"), cases));
  }
  const std::string of = group == "/held_out" ? "held out" : "calibrated on";
  const auto grown = [&](const char* what, const std::string& key, double is) {
    const double before = std::abs(was(key));
    if (std::abs(is) <= before + kept_tolerance) return;
    worse.push_back(fmt::format("the {} error of the cases {} grew from {:.2f} % to {:.2f} %", what,
                                of, 100 * before, 100 * std::abs(is)));
  };
  grown("mean", "/mean_error", now.mean_error);
  grown("worst", "/worst_error/value", now.worst_error.value);
  const double wrong = was("/ranking/discordant") + was("/ranking/tied");
  if (now.ranking.discordant + now.ranking.tied > wrong) {
    worse.push_back(fmt::format("{} pairs of the cases {} are not in order; they were {:.0f}",
                                now.ranking.discordant + now.ranking.tied, of, wrong));
  }
  const auto exact = was("/stash_exact");
  if (now.stash_exact < exact) {
    worse.push_back(fmt::format("the stash of {} cases {} is exact; it was of {:.0f}",
                                now.stash_exact, of, exact));
  }
}

}  // namespace

std::vector<std::string> worse_than_kept(const std::string& kept, const std::string& file,
                                         const EvidenceJudgement& judgement) {
  const JsonValue json = parse_kept(kept, file);
  const JsonValue* const format = find(json, "format");
  if (format == nullptr || format->text != kept_format) {
    throw TraceError(file, "/format", fmt::format("a kept summary has \"{}\" here", kept_format));
  }
  std::vector<std::string> worse;
  compare(json, file, "/held_out", judgement.held_out, worse);
  compare(json, file, "/calibrated", judgement.calibrated, worse);
  return worse;
}

}  // namespace stageline::lab
