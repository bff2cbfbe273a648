// Simulates cases that a comparison did not ask for.
#include "tools/compare/trial.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
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

}  // namespace

std::string Trial::figures() const {
  return fmt::format("{} a step{}{}", print(step),
                     need   ? ", " + print(*need)
                     : peak ? ", " + print(*peak)
                            : "",
                     derived ? " (costs of that size are scaled or fitted)" : "");
}

std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices, std::string flags) {
  try {
    return trial_of(study(make_case(request, setting, spec, devices)), std::move(flags));
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const ProgramError&) {
    return std::nullopt;
  } catch (const Deadlock&) {
    return std::nullopt;
  }
}

}  // namespace stageline
