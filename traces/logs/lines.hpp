// One line of a log as a step.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/logs/training_log.hpp"

namespace stageline {

/// A framework's line, recognised by its words.
struct LogForm {
  std::string_view framework;
  /// Empty: the line is none of its steps.
  std::optional<PrintedStep> (*read)(std::string_view line);
};

std::optional<PrintedStep> read_megatron_line(std::string_view line);
std::optional<PrintedStep> read_nemo_line(std::string_view line);
std::optional<PrintedStep> read_torchtitan_line(std::string_view line);
std::optional<PrintedStep> read_deepspeed_line(std::string_view line);

/// The number behind the words, with commas between its digits; empty where they are not there.
std::optional<double> number_behind(std::string_view line, std::string_view words);

/// The line without the colours of a terminal.
std::string without_colours(std::string_view line);

}  // namespace stageline
