// What slows runs down, or speeds them up, beyond what was asked: each as a change of the question,
// so that it can be simulated.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "tools/inputs/setting.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

/// The run that is explained.
struct PredictedRun {
  const SettingRequest& request;
  const Case& asked;
  const Outcome& outcome;
};

/// An ailment, or what makes a run faster than predicted. A new one is a row of ailments().
struct Ailment {
  std::string_view name;   // "slow network"
  std::string_view words;  // with the strength as {}: "the network carries 1/{} of its rate"
  std::string_view check;  // what would show it
  /// How strong it is, mildest first; 0: there is no such strength. {1}: it is so or not.
  std::array<double, 3> strengths{};
  double surprise = 1;  // natural logarithm of how much rarer it is than the commonest; assumed
  bool slower = true;   // than predicted
  /// Changes the request; returns whether it says anything of this run.
  bool (*apply)(const PredictedRun& run, double strength, SettingRequest& request) = nullptr;
  /// The flags, or the option of the model, that asks for the same: "imbalance={}". What --slow
  /// and --microbatches name is made of the changed request.
  std::string_view flags;
};
std::span<const Ailment> ailments();

/// The words with the strength in their place: "4", "1.5".
std::string with_strength(std::string_view words, double strength);

}  // namespace stageline::answers
