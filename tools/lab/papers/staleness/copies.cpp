// Counts the weight copies of a case by simulating it.
#include "tools/lab/papers/staleness/copies.hpp"

#include "tools/inputs/setting.hpp"
#include "tools/lab/training/retime.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::lab {
namespace {

constexpr std::int64_t enough_steps = 64;  // well past the warm-up of ten stages

}  // namespace

double kept_copies(const StudyNet& net, const StudyCase& one, const TrainingLog& log) {
  if (log.settings.pipelined == 0) return 0;
  SettingRequest request;
  request.trace = net.trace;
  if (!net.link.empty()) request.cluster.link = parse_link(net.link);
  request.microbatch_size = log.settings.batch;
  request.devices = {log.settings.devices};
  const Setting setting = read_setting(request);
  const Case asked = case_of(log, setting.model, cluster_of(setting.cluster, log.settings.devices));
  const TrainingProgram training = training_program(asked, enough_steps);
  const std::vector<StageVersions> versions = versions_of(training.program, training.timeline);
  double kept = 0;
  double all = 0;
  for (std::size_t s = 0; s < log.stages.size(); ++s) {
    const auto weights = static_cast<double>(log.stages[s].weights);
    const int held = versions[s].held_peak;
    const bool stale = log.stages[s].staleness_max > 0;
    kept += weights * (held - 1 + (stale ? one.kept_beside * held : 0));
    all += weights;
  }
  return all > 0 ? kept / all : 0;
}

}  // namespace stageline::lab
