// Perturbations as a file, and as flags.
#pragma once

#include <string>

#include "cost_models/perturbation/perturbation.hpp"

namespace stageline {

/// {"format": "stageline-perturbation 1", "seed": 1,
///  "jitter": {"law": "log_normal", "variation": 0.05, "transfers": false},
///  "slow": [{"name": "gpu2", "factor": 1.2, "probability": 0.1}],
///  "pauses": [{"every": 100, "time_us": 50000}]}
/// law: log_normal, measured, samples (with "samples": [1, 1.02, 1.5]). Throws TraceError, which
/// begins with `file`, with the JSON pointer, for a negative factor, a probability above 1 and the
/// like.
Perturbation read_perturbation(const std::string& text, const std::string& file);

/// The values of the flags, as typed; empty where one is not given.
struct PerturbationTexts {
  std::string perturb;    // file
  std::string jitter;     // "5%"
  std::string sometimes;  // --sometimes-slow
  std::string pause;
  std::string seed;
};

/// All of them together; opens the file. Throws UsageError and TraceError.
Perturbation open_perturbation(const PerturbationTexts& texts);

}  // namespace stageline
