// Declares the shared flags and converts them to values.
#include "tools/commands/case_flags.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "sim/errors.hpp"
#include "tools/inputs/program_files.hpp"

namespace stageline {
namespace {

constexpr int most_microbatches = 1 << 26;  // and samples in one

std::optional<LinkSpec> link_of_flag(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_link(text, flag);
}

std::optional<Bytes> memory_of_flag(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
}

// A program without a schedule name gets the name of its file.
Program program_of_flag(const CommonFlags& flags) {
  Program program = read_program(flags.program, flags.quiet);
  if (program.schedule.empty()) program.schedule = flags.program;
  return program;
}

}  // namespace

void add_trace_flags(Flags command, CommonFlags& flags) {
  command
      .option("TRACE", flags.trace,
              "a trace file, model:NAME@DEVICE[,batch=N…], uniform:…, or a bundled trace")
      .required();
  add_profile_batch_flag(command, flags);
}

void add_profile_batch_flag(Flags command, CommonFlags& flags) {
  command
      .option("--batch", flags.profile_batch,
              "samples in a mini-batch of a PipeDream profile, which does not record it")
      .positive();
}

void add_batch_size_flag(Flags command, CommonFlags& flags) {
  command
      .option("--microbatch-size", flags.microbatch_size,
              "samples in a micro-batch; costs are scaled or interpolated to it; default: as in "
              "the trace")
      .range(1, most_microbatches);
}

void add_output_flags(Flags command, CommonFlags& flags) {
  command.option("--json", flags.json, "write the results as JSON to a file, or - for stdout");
  command.flag("--quiet", flags.quiet, "no heading and no notes");
}

void add_cluster_flags(Flags command, CommonFlags& flags) {
  command.option("--cluster", flags.cluster,
                 "a cluster file or a bundled cluster; default: that of model:NAME@DEVICE");
  command.option("--link", flags.link, "equal devices with one full-duplex port each: 12GB/s,5us");
  command.option("--memory", flags.memory,
                 "memory of each of the equal devices, with its unit: 16GB");
  command.option("--host-link", flags.host_link,
                 "a full-duplex link of each equal device to one host, for offloading: "
                 "16GB/s,5us");
  command.option("--host-memory", flags.host_memory, "memory of that host: 256GB");
  command
      .option("--pair-overlap", flags.pair_overlap,
              "hidden share of the shorter op of an overlapped pair: 0 (default) to 1")
      .range(0.0, 1.0);
}

void add_messages_flag(Flags command, CommonFlags& flags) {
  command.option("--messages", flags.messages,
                 "async: SEND and RECV overlap with compute; blocking: they occupy the compute "
                 "lane until both ends are done; batched: adjacent ones in the list start "
                 "together; default: async, or as the program text says");
}

void add_problem_flags(Flags command, CommonFlags& flags, Many many) {
  const bool one = many == Many::no;
  add_trace_flags(command, flags);
  const Flag schedule =
      command
          .option("--schedule", flags.schedules,
                  one ? "NAME[:knob=value,…]; default: 1f1b"
                      : "NAME[:knob=value,…], a comma list of them, or all; repeatable; "
                        "default: all")
          .repeatable();
  command.option(
      "--devices", flags.devices,
      one ? "number of devices; default: all of the cluster, or 4"
          : "number of devices, or a sweep such as 2..16; default: all of the cluster, or 4");
  add_cluster_flags(command, flags);
  command
      .option(
          "--microbatches", flags.microbatches,
          "micro-batches per step (mini-batches where updates are asynchronous); default: 4 per "
          "device")
      .range(1, most_microbatches);
  add_batch_size_flag(command, flags);
  command
      .option("--steps", flags.steps,
              "steps to simulate; default: 1, or enough to reach a steady pace where updates are "
              "asynchronous")
      .range(1, 1 << 20);
  command.option("--partition", flags.partition,
                 "balanced, uniform, pipedream[:…], ppv:7[,…], ranges 0-5,6-11,12-, last "
                 "layers' names, or a Megatron layout or a file of one; default: balanced");
  command.option("--weights", flags.weights,
                 "weight rule, instead of the schedule's: flush, stash, vertical_sync, "
                 "double_buffer, latest");
  if (one) {
    command
        .option("--program", flags.program,
                "run this program instead of a schedule: our own text or PyTorch's schedule CSV")
        .excludes(schedule);
  }
}

void add_case_flags(Flags command, CommonFlags& flags, Many many) {
  add_problem_flags(command, flags, many);
  add_output_flags(command, flags);
}

SettingRequest request_of(const CommonFlags& flags) {
  SettingRequest request;
  request.trace = flags.trace;
  request.microbatch_size = flags.microbatch_size;
  request.profile_batch = flags.profile_batch;
  request.cluster.cluster = flags.cluster;
  request.cluster.link = link_of_flag("--link", flags.link);
  request.cluster.host_link = link_of_flag("--host-link", flags.host_link);
  request.cluster.memory = memory_of_flag("--memory", flags.memory);
  request.cluster.host_memory = memory_of_flag("--host-memory", flags.host_memory);
  request.cluster.pair_overlap = flags.pair_overlap;
  if (!flags.devices.empty()) request.devices = parse_devices(flags.devices);
  if (!flags.weights.empty()) request.weights = parse_weight_rule(flags.weights, "--weights");
  if (!flags.messages.empty()) request.messages = parse_messages(flags.messages, "--messages");
  request.partition = flags.partition;
  request.microbatches = flags.microbatches;
  request.steps = flags.steps;
  if (!flags.program.empty()) request.program = program_of_flag(flags);
  return request;
}

std::vector<ScheduleSpec> all_schedules(const CommonFlags& flags) {
  std::vector<ScheduleSpec> specs;
  for (const std::string& text : flags.schedules) {
    for (const ScheduleSpec& spec : parse_schedules(text)) specs.push_back(spec);
  }
  if (flags.schedules.empty()) specs = parse_schedules("all");
  return specs;
}

ScheduleSpec one_schedule(const CommonFlags& flags) {
  if (flags.schedules.empty()) return parse_schedules("1f1b").front();
  std::vector<ScheduleSpec> specs = all_schedules(flags);
  if (specs.size() > 1) {
    throw UsageError(fmt::format(
        "this command takes one schedule, and {} were named; `stageline compare` takes many",
        specs.size()));
  }
  return specs.front();
}

}  // namespace stageline
