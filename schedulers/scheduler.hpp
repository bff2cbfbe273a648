// A policy is one file and one word: a Scheduler is a constant at the foot of its own .cpp, and its
// name is in the list in schedulers/meson.build, from which the table below is generated.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/problem.hpp"
#include "sim/program.hpp"

namespace stageline {

/// `values`: "never|always|except_last" (one of), "int" (a whole number from 1, or the fallback),
/// or free text that describes the values; `fallback` is the value when the knob is not given.
struct Knob {
  std::string_view name;
  std::string_view values;
  std::string_view fallback;
  std::string_view summary;
  /// Where the sources do not give the rule of the values beside the fallback: which one is
  /// rebuilt, as a clause. Else empty.
  std::string_view rebuilt = {};
};

/// When its updates happen, which decides its block of a comparison.
enum class Synchrony : std::uint8_t { synchronous, asynchronous };

/// What a scheduler that assigns devices itself may know: the units it places (usually one layer
/// each) with their costs on a device of rate 1, and the devices' relative rates.
struct Assignment {
  const Costs& costs;
  std::vector<double> rates;  // by device
  const Knobs& knobs;
};

struct Scheduler {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view source;   // citation
  Synchrony synchrony;
  std::span<const Knob> knobs;
  /// Stages on `devices` devices. Throws UsageError when they do not suit, with the nearest that
  /// do. Null for a scheduler that assigns.
  Placement (*place)(int devices, const Knobs& knobs);
  /// Compute ops only (sim/lower/passes.hpp adds the rest). Throws UsageError on impossible
  /// numbers.
  Program (*schedule)(const Problem& problem);
  /// Where the devices that suit depend on the costs: one stage a unit; neighbours that become
  /// alike may be joined. Null for the others. Throws UsageError as `place` does.
  Placement (*assign)(const Assignment& request) = nullptr;
  /// Where the sources do not give every rule of the schedule: which one is rebuilt and from what,
  /// as a clause ("its order is rebuilt from …"). Else empty.
  std::string_view rebuilt = {};
  /// Whether a program of fewer steps is the beginning of one of more: the ops with lower numbers,
  /// in the same order. False where the length decides what is in flight.
  bool begins_alike = true;
};

/// All schedulers, in the order of --help.
std::span<const Scheduler* const> schedulers();

/// By name; throws UsageError, with the nearest name, when there is none.
const Scheduler& scheduler(std::string_view name);

/// A program that runs where a schedule is named.
struct GivenProgram {
  std::string path;  // as the user wrote it; empty: the program is no file
  Program program;   // its `schedule` is its name in tables
};

/// "gpipe:recompute=always,reverse=yes", or "mine.slp".
struct ScheduleSpec {
  const Scheduler* scheduler = nullptr;         // of a program one of given_scheduler()
  Knobs knobs;                                  // complete: defaults filled in
  std::shared_ptr<const GivenProgram> given{};  // null: the scheduler makes the program

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

/// What is known of a given program: it has no knobs, places nothing, and makes no program.
const Scheduler& given_scheduler(Synchrony synchrony);

/// The program as a schedule.
ScheduleSpec given_schedule(Program program, std::string path = {});

/// As the user would write it: the name, and the knobs that differ from their defaults; the path of
/// a program.
std::string spelled(const ScheduleSpec& spec);

/// As tables name it: spelled(), and of a program its own name.
std::string title(const ScheduleSpec& spec);

/// Whether an item of a list of schedules is a program's file: "mine.slp", "order.csv", any path
/// with a '/', and "-" (standard input).
bool is_program_path(std::string_view item);

/// A list of specs: in "gpipe:recompute=always,reverse=yes,1f1b" an item without '=' starts the
/// next schedule; "all" is every one with its defaults. Throws UsageError on unknown names, knobs,
/// values.
std::vector<ScheduleSpec> parse_schedules(const std::string& text);

}  // namespace stageline
