// Reads measured values, and makes steps of them.
#include "tools/answers/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::answers {
namespace {

constexpr double most_apart = 1.05;  // of two values of one step

struct UnitWord {
  std::string_view word;  // in small letters
  MeasuredUnit unit;
  double factor;
};
constexpr std::array unit_words{
    UnitWord{"tflop/s", MeasuredUnit::flops_per_device, 1e12},
    UnitWord{"tflops", MeasuredUnit::flops_per_device, 1e12},
    UnitWord{"tflop/s/gpu", MeasuredUnit::flops_per_device, 1e12},
    UnitWord{"tflops/gpu", MeasuredUnit::flops_per_device, 1e12},
    UnitWord{"tok/s", MeasuredUnit::tokens, 1},
    UnitWord{"tokens/s", MeasuredUnit::tokens, 1},
    UnitWord{"tps", MeasuredUnit::tokens, 1},
    UnitWord{"ktok/s", MeasuredUnit::tokens, 1e3},
    UnitWord{"ktok/s/gpu", MeasuredUnit::tokens_per_device, 1e3},
    UnitWord{"tok/s/gpu", MeasuredUnit::tokens_per_device, 1},
    UnitWord{"tokens/s/gpu", MeasuredUnit::tokens_per_device, 1},
    UnitWord{"tgs", MeasuredUnit::tokens_per_device, 1},
    UnitWord{"tok/s/all", MeasuredUnit::tokens_of_all, 1},
    UnitWord{"tokens/s/all", MeasuredUnit::tokens_of_all, 1},
    UnitWord{"samples/s", MeasuredUnit::samples, 1},
    UnitWord{"sequences/s", MeasuredUnit::samples, 1},
    UnitWord{"%", MeasuredUnit::mfu, 0.01},
    UnitWord{"%mfu", MeasuredUnit::mfu, 0.01},
    UnitWord{"mfu", MeasuredUnit::mfu, 1},
};

std::string in_small_letters(std::string_view text) {
  std::string small;
  for (const char c : text) {
    if (c != ' ') small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return small;
}

[[noreturn]] void refuse_unit(std::string_view text, const std::string& what) {
  throw UsageError(
      fmt::format("{} is a value with its unit, such as 5.83s, 296TFLOP/s (of a device), 851tok/s, "
                  "851tok/s/gpu or 41% (MFU), not \"{}\"",
                  what, text));
}

double factor_of(std::string_view unit, std::string_view word, double factor) {
  return unit == word ? factor : 0;
}

// A step of that many tokens, FLOPs or share a second, where the predicted step has `rate`.
Time step_at_rate(Time predicted, const std::optional<double>& rate, double value,
                  const MeasuredValue& measured, std::string_view lacks) {
  if (!rate || !(*rate > 0)) {
    throw UsageError(
        fmt::format("{} cannot be held against this model: it does not say {}; give "
                    "the time of a step",
                    measured.typed, lacks));
  }
  return from_seconds(to_seconds(predicted) * *rate / value);
}

struct Reading {
  Time step{};
  std::string text;
};

Reading reading_of(const MeasuredValue& one, Time predicted, const TrainingRates& rates,
                   double samples) {
  switch (one.unit) {
    case MeasuredUnit::step:
      return {from_seconds(one.value), "a step"};
    case MeasuredUnit::flops_per_device:
      return {step_at_rate(predicted, rates.flops_per_device_second, one.value, one, "its FLOPs"),
              "of each device, FLOPs of the model"};
    case MeasuredUnit::mfu:
      return {step_at_rate(predicted, rates.mfu, one.value, one, "its FLOPs or the devices' peak"),
              "MFU"};
    case MeasuredUnit::tokens_per_device:
      return {step_at_rate(predicted, rates.tokens_per_device_second, one.value, one, "its tokens"),
              "of each device"};
    case MeasuredUnit::tokens_of_all:
      return {step_at_rate(predicted, rates.tokens_per_second, one.value, one, "its tokens"),
              "of all devices"};
    case MeasuredUnit::samples:
      return {from_seconds(samples / one.value), "of all devices"};
    case MeasuredUnit::tokens:
      break;
  }
  const Time each =
      step_at_rate(predicted, rates.tokens_per_device_second, one.value, one, "its tokens");
  const Time all = step_at_rate(predicted, rates.tokens_per_second, one.value, one, "its tokens");
  const auto off = [&](Time step) {
    return std::abs(std::log(to_seconds(step) / to_seconds(predicted)));
  };
  if (off(each) <= off(all)) return {each, "of each device"};
  return {all, "of all devices"};
}

// A device cannot do more than its peak; the model's FLOPs at it are the shortest step there is.
void check_below_peak(const MeasuredValue& one, const Reading& reading, Time predicted,
                      const TrainingRates& rates) {
  if (!rates.mfu) return;
  const double mfu = *rates.mfu * to_seconds(predicted) / to_seconds(reading.step);
  if (mfu <= 1) return;
  throw UsageError(fmt::format(
      "{} {} is {:.0f} % of the devices' peak, more than there is; check the unit, the number of "
      "devices and the batch",
      one.typed, reading.text, 100 * mfu));
}

}  // namespace

MeasuredValue parse_measured(std::string_view text, const std::string& what) {
  MeasuredValue measured;
  measured.typed = text;
  std::string_view rest = text;
  const std::optional<double> number = take_number<double>(rest);
  if (!number) refuse_unit(text, what);
  if (!(*number > 0) || !std::isfinite(*number)) {
    throw UsageError(fmt::format("{} is above 0, not {}", what, text));
  }
  const std::string unit = in_small_letters(rest);
  for (const UnitWord& word : unit_words) {
    if (factor_of(unit, word.word, word.factor) == 0) continue;
    measured.unit = word.unit;
    measured.value = *number * word.factor;
    return measured;
  }
  try {
    measured.value = to_seconds(parse_time(text));
  } catch (const std::invalid_argument&) {
    refuse_unit(text, what);
  }
  if (!(measured.value > 0)) throw UsageError(fmt::format("{} is above 0, not {}", what, text));
  return measured;
}

StepReading measured_step(const std::vector<MeasuredValue>& measured, Time predicted,
                          const TrainingRates& rates, double samples, int devices) {
  StepReading found;
  const MeasuredValue* first = nullptr;
  for (const MeasuredValue& one : measured) {
    const Reading reading = reading_of(one, predicted, rates, samples);
    check_below_peak(one, reading, predicted, rates);
    if (one.unit == MeasuredUnit::tokens && devices > 1) {
      found.notes.push_back(fmt::format(
          "{} is read as that {}, which is nearer to the prediction; write {} for that "
          "{}",
          one.typed, reading.text, reading.text == "of each device" ? "tok/s/all" : "tok/s/gpu",
          reading.text == "of each device" ? "of all devices" : "of each device"));
    }
    if (first == nullptr) {
      first = &one;
      found.step = reading.step;
      found.read_as = fmt::format("{} {}", one.typed, reading.text);
      continue;
    }
    const double apart = to_seconds(reading.step) / to_seconds(found.step);
    if (apart > most_apart || apart < 1 / most_apart) {
      throw UsageError(fmt::format(
          "{} is a step of {}, and {} one of {}: they contradict each other; check the batch and "
          "the number of devices, or give one of them",
          first->typed, print(found.step), one.typed, print(reading.step)));
    }
  }
  return found;
}

}  // namespace stageline::answers
