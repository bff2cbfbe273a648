// Simulates cases that a comparison did not ask for.
#include "tools/compare/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/parallel.hpp"
#include "tools/study/cut_search.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

Trial trial_of(const Outcome& outcome, std::string flags) {
  Trial trial;
  trial.flags = std::move(flags);
  trial.fits = outcome.fit != Fit::no;
  trial.step = outcome.step_time;
  trial.throughput = outcome.throughput;
  trial.need = tightest(outcome);
  if (outcome.bytes_known()) trial.peak = nth(outcome.memory.device, outcome.peak_device()).peak;
  return trial;
}

// The sizes of all cases under way. A case takes up to 3 kB for each micro-batch on a device.
constexpr double most_at_a_time = 1 << 20;

}  // namespace

double case_size(const SettingRequest& request, const Setting& setting, int devices) {
  const auto ranked = setting.ranked.find(devices);
  const double simulated = ranked == setting.ranked.end()
                               ? devices
                               : static_cast<double>(ranked->second->ranks().devices.size());
  const double microbatches = request.microbatches > 0 ? request.microbatches : 4 * simulated;
  return simulated * microbatches * std::max(request.steps, 1);
}

int cases_at_a_time(double size, int workers) {
  if (workers == 0) workers = available_cores();
  return static_cast<int>(std::clamp<double>(most_at_a_time / size, 1, workers));
}

std::string Trial::figures() const {
  return fmt::format("{} a step{}{}", print(step),
                     need   ? ", " + print(*need)
                     : peak ? ", " + print(*peak)
                            : "",
                     derived ? " (costs of that size are scaled or fitted)" : "");
}

std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices, std::string flags) {
  SettingRequest asked = request;
  asked.device_order = DeviceOrdering::given;  // a search would simulate hundreds of trials
  if (is_simulated(asked.partition)) asked.partition = "balanced";
  try {
    return trial_of(study(make_case(asked, setting, spec, devices)), std::move(flags));
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const ProgramError&) {
    return std::nullopt;
  } catch (const Deadlock&) {
    return std::nullopt;
  }
}

}  // namespace stageline
