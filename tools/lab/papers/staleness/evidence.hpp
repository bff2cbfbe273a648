// The runs of the staleness study as a file, from which its report is made without training again.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/papers/staleness/cases.hpp"
#include "tools/lab/training/log.hpp"

namespace stageline::lab {

struct StudyRun {
  std::string net;                       // "lenet5"
  StudyGroup group = StudyGroup::plain;  // of the case
  std::string name;                      // of the case: "10-stage"
  double copies = 0;  // weight tensors kept beside the newest ones, in copies of all the weights
  TrainingLog log;    // without its steps
};

struct StalenessEvidence {
  int seeds = 3;               // requested: 1, 2, …
  std::vector<StudyRun> runs;  // in the order of the cases, then by seed
};

/// The run of this case and seed, made with exactly these arguments; null where there is none.
const StudyRun* find_run(const StalenessEvidence& evidence, const StudyNet& net,
                         const StudyCase& one, std::uint64_t seed);

/// Inserts the run in its place, replacing one of the same case and seed.
void keep_run(StalenessEvidence& evidence, StudyRun run);

/// JSON, "format": "stageline-staleness 1"; tools/lab/training/README.md lists the keys.
std::string to_json(const StalenessEvidence& evidence);
/// Throws TraceError with file and JSON pointer.
StalenessEvidence parse_staleness_evidence(const std::string& text, const std::string& file);

}  // namespace stageline::lab
