// What somebody measured of a step, in the unit that their framework prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::answers {

/// `tokens` may be those of all devices or of one: frameworks print either.
enum class MeasuredUnit : std::uint8_t {
  step,
  flops_per_device,
  tokens,
  tokens_per_device,
  tokens_of_all,
  samples,  // of all devices
  mfu
};
struct MeasuredValue {
  std::string typed;  // "296TFLOP/s"
  MeasuredUnit unit = MeasuredUnit::step;
  double value = 0;  // seconds; FLOPs, tokens or samples a second; a share
};

/// "5.83s", "583 ms", "296TFLOP/s" (of a device), "851tok/s", "851tok/s/gpu", "54k tok/s/all",
/// "12.3samples/s" (of all devices), "41%" (MFU). Throws UsageError, which begins with `what`, for
/// another unit and for a value that is not above 0.
MeasuredValue parse_measured(std::string_view text, const std::string& what);

/// The step that was measured.
struct StepReading {
  Time step{};
  std::string read_as;               // "851 tok/s of each device, a step of 5.83 s"
  std::vector<std::string> notes{};  // how a value was read that can be read in two ways
};

/// `predicted` and `rates`: of the run as it is predicted, of `samples` a step, on `devices`
/// devices. Tokens that may be
/// of all devices or of one are read as what is nearer to the prediction. Throws UsageError where
/// several values are of steps that differ by more than 5 %, where a value is above what the peak
/// allows, and where the model has no tokens or no FLOPs that the unit needs.
StepReading measured_step(const std::vector<MeasuredValue>& measured, Time predicted,
                          const TrainingRates& rates, double samples, int devices);

}  // namespace stageline::answers
