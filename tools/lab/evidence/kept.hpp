// The figures of a replay that are stored beside its evidence, so that a simulator that has become
// less accurate is noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/lab/evidence/judge.hpp"

namespace stageline::lab {

inline constexpr std::string_view kept_format = "stageline-replay 1";

/// Errors that grow by less are not reported: half a tenth of a percentage point.
inline constexpr double kept_tolerance = 0.0005;

/// The summaries of a judgement as JSON, as in replay_json.
std::string kept_json(const EvidenceJudgement& judgement);

/// The regressions since `kept` was written, a sentence each; empty where nothing got worse. Checks
/// mean and worst errors of the time, of cases held out and of those seen; pairs in the wrong
/// order; stashes that are not exact. Throws TraceError where `kept` is not such a file or is of
/// other cases. `file` is for messages.
std::vector<std::string> worse_than_kept(const std::string& kept, const std::string& file,
                                         const EvidenceJudgement& judgement);

}  // namespace stageline::lab
