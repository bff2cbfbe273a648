// The figures of a replay that are kept beside its evidence, so that a simulator that has become
// worse is noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/evidence/judge.hpp"

namespace stageline {

inline constexpr std::string_view kept_format = "stageline-replay 1";

/// Errors that grow by less are not reported: half a tenth of a percentage point.
inline constexpr double kept_tolerance = 0.0005;

/// The summaries of a judgement as JSON, as in replay_json.
std::string kept_json(const Judgement& judgement);

/// What has become worse since `kept` was written, a sentence each; nothing where all is as good as
/// it was, or better. Mean and worst errors of the time, of cases held out and of those seen; pairs
/// that are not in order; stashes that are not exact. Throws TraceError where `kept` is no such
/// file or is of other cases. `file` is for messages.
std::vector<std::string> worse_than_kept(const std::string& kept, const std::string& file,
                                         const Judgement& judgement);

}  // namespace stageline
