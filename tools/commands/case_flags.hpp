// Flags that several subcommands share, and the request that they make up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/flags.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/training_rates.hpp"

namespace stageline {

/// The values as typed; empty or 0 where the flag is not given.
struct CommonFlags {
  std::string trace;
  std::vector<std::string> schedules;
  std::string devices;
  std::string cluster;
  std::string link;
  std::string memory;
  std::string reserve;
  std::string host_link;
  std::string host_memory;
  std::optional<double> pair_overlap;
  int microbatches = 0;
  int microbatch_size = 0;
  int profile_batch = 0;
  int steps = 0;
  std::string partition = "balanced";
  std::vector<std::string> partitions;  // instead of `partition`, of a command that takes several
  std::string weights;
  std::string messages;
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int data = 1;
  int pipeline = 0;
  std::string order;
  std::string zero;
  std::string precision;
  std::string sharing;
  std::string collectives;
  std::string buckets;
  bool sequence_parallel = false;
  bool all_pipelines = false;
  std::string recompute;
  std::string recompute_start;
  std::string offload;
  int prefetch = 0;
  std::string program;
  std::string slow;
  std::string device_order;
  std::string calibration;
  std::string tokens;
  std::optional<double> price;
  std::string json;
  bool quiet = false;
};

/// TRACE and --batch.
void add_trace_flags(Flags command, CommonFlags& flags);
/// --batch.
void add_profile_batch_flag(Flags command, CommonFlags& flags);
/// --microbatch-size.
void add_batch_size_flag(Flags command, CommonFlags& flags);
/// --calibration.
void add_calibration_flag(Flags command, CommonFlags& flags);
/// --json and --quiet.
void add_output_flags(Flags command, CommonFlags& flags);
/// --cluster, --link, --memory, --reserve, --host-link, --host-memory, --pair-overlap.
void add_cluster_flags(Flags command, CommonFlags& flags);
/// --tp, --cp, --ep, --dp, --pp, --zero, --sequence-parallel, and those of add_layout_flags().
void add_degree_flags(Flags command, CommonFlags& flags);
/// --order, --precision, --collectives, --sharing, --buckets, --all-pipelines.
void add_layout_flags(Flags command, CommonFlags& flags);
/// --tokens, --price.
void add_budget_flags(Flags command, CommonFlags& flags);
/// --slow, --device-order.
void add_unequal_flags(Flags command, CommonFlags& flags);
/// --recompute, --recompute-start, --offload, --prefetch.
void add_stash_flags(Flags command, CommonFlags& flags);
/// --messages.
void add_messages_flag(Flags command, CommonFlags& flags);

/// The flags of one problem: trace, cluster, schedule and cut; with Many::yes, a sweep of devices
/// and a list of schedules, but no program text; `cuts`: whether also several cuts; `given`:
/// whether a program may take the place of a schedule (--program).
enum class Many : std::uint8_t { no, yes };
enum class Given : std::uint8_t { no, yes };
void add_problem_flags(Flags command, CommonFlags& flags, Many many = Many::no,
                       Many cuts = Many::no, Given given = Given::yes);

/// The same with --json and --quiet.
void add_case_flags(Flags command, CommonFlags& flags, Many many = Many::no, Many cuts = Many::no,
                    Given given = Given::yes);

/// The flags as values; reads the file of --program. Throws UsageError and ProgramError.
SettingRequest request_of(const CommonFlags& flags);

/// What is asked of a whole training. Throws UsageError also where the model has no tokens.
TrainingBudget budget_of(const CommonFlags& flags, const Model& model);

/// Refuses a sweep of devices, which `other` takes.
void check_one_count(const Setting& setting, const std::string& command,
                     const std::string& other = "stageline compare");

/// Adds a note for flags that a command reads and whose figures it does not show: --steps of one
/// that runs as many as it needs, and memory and weights of one that speaks of time alone.
enum class Shows : std::uint8_t { fit, time };
void add_notes_on_unread(const CommonFlags& flags, const std::string& command, Shows shows,
                         Setting& setting);

/// The schedule of a command that takes one; "1f1b" by default. Throws UsageError for several.
ScheduleSpec one_schedule(const CommonFlags& flags);
/// The schedules of a command that takes many; by default all that exist.
std::vector<ScheduleSpec> all_schedules(const CommonFlags& flags);

}  // namespace stageline
