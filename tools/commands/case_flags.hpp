// Flags that several subcommands share, and the request that they make up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/flags.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline {

/// The values as typed; empty or 0 where the flag is not given.
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

/// TRACE and --batch.
void add_trace_flags(Flags command, CommonFlags& flags);
/// --batch.
void add_profile_batch_flag(Flags command, CommonFlags& flags);
/// --microbatch-size.
void add_batch_size_flag(Flags command, CommonFlags& flags);
/// --json and --quiet.
void add_output_flags(Flags command, CommonFlags& flags);
/// --cluster, --link, --memory, --host-link, --host-memory, --pair-overlap.
void add_cluster_flags(Flags command, CommonFlags& flags);
/// --messages.
void add_messages_flag(Flags command, CommonFlags& flags);

/// The flags of one problem: trace, cluster, schedule and cut; with Many::yes, a sweep of devices
/// and a list of schedules, but no program text.
enum class Many : std::uint8_t { no, yes };
void add_problem_flags(Flags command, CommonFlags& flags, Many many = Many::no);

/// The same with --json and --quiet.
void add_case_flags(Flags command, CommonFlags& flags, Many many = Many::no);

/// The flags as values; reads the file of --program. Throws UsageError and ProgramError.
SettingRequest request_of(const CommonFlags& flags);

/// The schedule of a command that takes one; "1f1b" by default. Throws UsageError for several.
ScheduleSpec one_schedule(const CommonFlags& flags);
/// The schedules of a command that takes many; by default all that exist.
std::vector<ScheduleSpec> all_schedules(const CommonFlags& flags);

}  // namespace stageline
