// The profiler's reports and files, as functions of its measurements.
#pragma once

#include <string>
#include <vector>

#include "tools/executor/processes/process.hpp"
#include "tools/executor/profile/profile.hpp"

namespace stageline::executor {

/// The sources of a provenance.
struct Circumstances {
  const ProfileRequest& request;
  const ProcessReport& process;
  const std::vector<std::string>& warned;  // sentences
  const std::vector<Profile>& profiles;    // by batch size
  std::string command;
  std::string date;  // ISO 8601
};
Provenance provenance_of(const Circumstances& circumstances);

/// The ten most expensive layers of each batch size and the check against the whole model.
std::string summary(const std::vector<Model>& models);

/// One sentence when, at some batch size, the layers add up to a time that differs from the whole
/// model's by more than `bound`, a share; else empty.
std::string why_unfit(const std::vector<Model>& models, double bound);

/// "batch,layer,op,round,us": each sample in a line, op as name(Timed) has it; a round is one turn
/// of all kinds of passes, and gives several samples of F and of U.
std::string samples_csv(const std::vector<Profile>& profiles);

/// The models that can be measured, one a line.
std::string list_of_models();

}  // namespace stageline::executor
