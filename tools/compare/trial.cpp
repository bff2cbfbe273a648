// Simulates cases that a comparison did not ask for.
#include "tools/compare/trial.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

Trial trial_of(const Outcome& outcome) {
  Trial trial;
  trial.fits = outcome.fit != Fit::no;
  trial.step = outcome.step_time;
  trial.need = tightest(outcome);
  if (outcome.bytes_known()) trial.peak = nth(outcome.memory.device, outcome.peak_device()).peak;
  return trial;
}

}  // namespace

double case_size(const SettingRequest& request, const Setting& setting, int devices) {
  const auto ranked = setting.ranked.find(devices);
  const double simulated = ranked == setting.ranked.end()
                               ? devices
                               : static_cast<double>(ranked->second->ranks().devices.size());
  const double microbatches = request.microbatches > 0 ? request.microbatches : 4 * simulated;
  return simulated * microbatches * std::max(request.steps, 1);
}

std::string Trial::figures() const {
  return fmt::format("{} a step{}", print(step),
                     need   ? ", " + print(*need)
                     : peak ? ", " + print(*peak)
                            : "");
}

std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices) {
  SettingRequest asked = request;
  asked.device_order = DeviceOrdering::given;  // a search would simulate hundreds of trials
  if (planner::is_simulated(asked.partition)) asked.partition = "balanced";
  try {
    return trial_of(study(planner::searched_case(asked, setting, spec, devices)));
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const ProgramError&) {
    return std::nullopt;
  } catch (const Deadlock&) {
    return std::nullopt;
  }
}

}  // namespace stageline
