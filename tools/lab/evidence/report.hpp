// Reports a replay: on the terminal, as JSON, as a page with pictures.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/evidence/judge.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::lab {

/// The summary for the terminal: figure, value, aim, and whether the aim is met.
std::string replay_text(const Evidence& evidence, const EvidenceJudgement& judgement);

/// Everything, with each case, as JSON. The keys are documented in tools/report/json/README.md and
/// stable.
std::string replay_json(const Evidence& evidence, const EvidenceJudgement& judgement);

struct Picture {
  std::string file;     // "errors.svg"
  std::string caption;  // a sentence or two
  std::string svg;
};

/// errors.svg, diagonal.svg, and timeline-N.svg of each case N (from 1) with a stored timeline.
/// Empty where there is no case.
std::vector<Picture> replay_pictures(const Evidence& evidence, const EvidenceJudgement& judgement);

/// The page with all pictures.
std::string replay_markdown(const Evidence& evidence, const EvidenceJudgement& judgement,
                            const std::vector<Picture>& pictures);

/// Error of the predicted time against zero, a strip per schedule, a point per case, with the noise
/// as a band. Throws UsageError where there is no case.
///
///   gpipe  |     o  [ | ]  o          |    3 cases  mean 2.1 %  worst -4.0 %
///   1f1b   |        [o|o]             |    2 cases  mean 0.4 %  worst +0.5 %
///         -8 %       0       +8 %
std::string errors_svg(const Evidence& evidence, const EvidenceJudgement& judgement,
                       const report::SvgOptions& options = {});

/// Predicted over measured time on logarithmic axes, one series per model.
std::string diagonal_svg(const Evidence& evidence, const EvidenceJudgement& judgement,
                         const report::SvgOptions& options = {});

/// The measured timeline of a case above the predicted one, device by device, over the same time.
std::string timelines_svg(const MeasuredCase& measured, const CaseJudgement& judged,
                          const report::SvgOptions& options = {});

}  // namespace stageline::lab
