// Reads one profile in the way that it allows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/errors.hpp"
#include "traces/gzip.hpp"
#include "traces/json/tree.hpp"
#include "traces/kineto/found.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

std::string list_of(const NameCounts& seen) {
  std::string list;
  for (const auto& [name, count] : seen) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", in_quotes(name), count);
  }
  return list;
}

[[noreturn]] void refuse(const std::string& file, const RangeNames* names, const NameCounts& seen) {
  const std::string found = seen.empty() ? "it has no annotations of its own"
                                         : "its most frequent ranges are " + list_of(seen);
  if (names != nullptr) {
    throw TraceError(file, "",
                     fmt::format("{} names no forward, or no backward, among its ranges; {}",
                                 names->title(), found));
  }
  throw TraceError(
      file, "",
      fmt::format(
          "it has no range that is named like \"PP:2F0\" or \"Forward 0\"; PyTorch's "
          "_PipelineScheduleRuntime and ScheduleGPipe write them. Nor has it Python functions of "
          "Schedule1F1B, Megatron-LM or DeepSpeed (with_stack=True), or operators of autograd with "
          "their sequence numbers; {}: a mapping file says which are forwards and backwards "
          "(import kineto --names FILE)",
          found));
}

// A look at the text alone, which is a tenth of the time of reading it.
bool may_have_actions(std::string_view json) {
  constexpr std::array<std::string_view, 3> names{"\"PP:", "\"Forward ", "\"Backward "};
  return std::any_of(names.begin(), names.end(), [json](std::string_view name) {
    return json.find(name) != std::string_view::npos;
  });
}

// Every preset names forwards so.
bool may_have_names(std::string_view json) { return json.find("orward") != std::string_view::npos; }

}  // namespace

KinetoRank read_kineto_rank(const NamedText& profile, const RangeNames* names) {
  const std::string packed = is_gzip(profile.text) ? gunzip(profile.text, profile.file) : "";
  const std::string& json = packed.empty() ? profile.text : packed;
  if ((names == nullptr || names->title() == "torch") && may_have_actions(json)) {
    if (std::optional<KinetoRank> rank = read_action_rank(profile.file, json)) return *rank;
  }
  std::vector<const RangeNames*> candidates;
  if (names != nullptr) {
    candidates.push_back(names);
  } else {
    for (const std::string& preset : name_presets()) candidates.push_back(&name_preset(preset));
  }
  KinetoRank rank;
  rank.file = profile.file;
  NameCounts seen;
  const bool skipped = names == nullptr && !may_have_names(json);
  if (!skipped && find_by_names(profile.file, json, candidates, rank, seen)) return rank;
  if (names == nullptr && find_by_operators(profile.file, json, rank)) return rank;
  if (skipped) find_by_names(profile.file, json, candidates, rank, seen);  // for what it saw
  refuse(profile.file, names, seen);
}

}  // namespace stageline
