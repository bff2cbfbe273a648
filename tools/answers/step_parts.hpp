// From the devices' peak to the step: how much of it goes to what.
//
//   at the peak        ████                             the model's FLOPs
//   products               ███                          below the peak
//   …                         ████████                  by kind of kernel, by cause of idling
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::answers {

/// A part of the step, of all devices in the mean.
struct StepPart {
  std::string name;    // "products below the peak"
  Time time{};         // below 0 where the step is longer without it, or shorter than predicted
  std::string remedy;  // what makes it smaller; empty: nothing that can be asked for
};

/// The part that a measured step has beside the predicted one; the last of an explanation.
inline constexpr std::string_view unexplained_part = "not explained";

/// The parts of the waterfall's step, which is that of the outcome; they add up to it, to the
/// picosecond. Its ideal compute is taken apart by kind of kernel where the setting's model is a
/// language model, and is one part of any other. Throws what kernels_of() throws.
std::vector<StepPart> step_parts(const SettingRequest& request, const Setting& setting,
                                 const Case& asked, const Outcome& outcome,
                                 const Waterfall& waterfall);

}  // namespace stageline::answers
