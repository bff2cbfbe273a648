// The commands of the researchers' bench, stageline-lab: a program of its own beside `stageline`.
// `stageline` lists them and becomes it: `stageline replay …` runs `stageline-lab replay …`.
#pragma once

#include <array>
#include <string_view>

namespace stageline::cli {

struct LabCommand {
  std::string_view name;   // as typed
  std::string_view about;  // one line of --help
};

inline constexpr LabCommand time_to_accuracy_at_lab{
    "time-to-accuracy", "Compare logs of stageline-train: accuracy over simulated time"};
inline constexpr LabCommand reproduce_at_lab{
    "reproduce", "The published tables of stale weights, LayerPipe and PipeFB, ours beside theirs"};
inline constexpr LabCommand replay_at_lab{
    "replay", "Predict stored measurements of real runs again, and report the errors"};
inline constexpr LabCommand staleness_at_lab{
    "staleness", "The cost of stale weights in accuracy, from the runs of stageline-study"};

inline constexpr std::array<const LabCommand*, 4> lab_commands_of_stageline{
    &time_to_accuracy_at_lab, &reproduce_at_lab, &replay_at_lab, &staleness_at_lab};

/// Whether the first argument names a command of stageline-lab.
bool is_for_lab(int argc, const char* const* argv);

/// Runs stageline-lab, which stands in the folder of this program, in place of this process, with
/// the same arguments. Returns only where that cannot be: then it has said so on standard error,
/// and the exit code is 2.
int become_lab(int argc, const char* const* argv);

}  // namespace stageline::cli
