// The flags that several subcommands share, and what they are turned into.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/base/provenance.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// As typed.
struct CommonFlags {
  std::string trace;
  std::vector<std::string> schedules;
  std::string devices;
  std::string cluster;
  std::string link;
  std::string memory;
  std::string host_link;
  std::string host_memory;
  std::optional<double> pair_overlap;
  int microbatches = 0;
  int microbatch_size = 0;
  int profile_batch = 0;
  int steps = 0;
  std::string partition = "balanced";
  std::string weights;
  std::string messages;
  std::string program;
  std::string json;
  bool quiet = false;
};

void add_trace_flags(CLI::App& command, CommonFlags& flags);
/// --microbatch-size.
void add_batch_size_flag(CLI::App& command, CommonFlags& flags);
/// --json and --quiet.
void add_output_flags(CLI::App& command, CommonFlags& flags);
/// --cluster, --link, --memory, --host-link, --host-memory, --pair-overlap.
void add_cluster_flags(CLI::App& command, CommonFlags& flags);
/// What says one problem: trace, cluster, schedule and cut; of `many`, a sweep of devices and a
/// list of schedules, but no program text.
enum class Many : std::uint8_t { no, yes };
void add_problem_flags(CLI::App& command, CommonFlags& flags, Many many = Many::no);

/// --messages.
void add_messages_flag(CLI::App& command, CommonFlags& flags);
std::optional<Messages> parse_messages(const std::string& text);

/// The same with --json and --quiet.
void add_case_flags(CLI::App& command, CommonFlags& flags, Many many = Many::no);

/// The trace, and the cluster it runs on.
struct Setting {
  Model model;
  ClusterChoice cluster;
  std::vector<int> device_counts;  // one, or a sweep
  std::optional<Program> program;  // --program
};
Setting read_setting(const CommonFlags& flags);

/// One case of the setting. Micro-batches default to four a device.
Case make_case(const CommonFlags& flags, const Setting& setting, const ScheduleSpec& spec,
               int devices);

/// The only spec of a command that takes one; "1f1b" when none is named.
ScheduleSpec one_schedule(const CommonFlags& flags);
std::vector<ScheduleSpec> all_schedules(const CommonFlags& flags);

/// Two or three lines: what was priced or measured, on what, cut how. Notes begin with "note: ".
std::string heading(const Setting& setting, const Case& asked, bool sweep);
std::vector<std::string> notes(const Setting& setting);

Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome);

bool colour_wanted();

}  // namespace stageline
