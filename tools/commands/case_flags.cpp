// Declares the shared flags and converts them to values.
#include "tools/commands/case_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <utility>

#include "cost_models/state_bytes.hpp"
#include "sim/errors.hpp"
#include "sim/names.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/training_budget.hpp"

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

Degrees degrees_of(const CommonFlags& flags) {
  Degrees degrees;
  degrees.tensor = flags.tensor;
  degrees.context = flags.context;
  degrees.expert = flags.expert;
  degrees.data = flags.data;
  degrees.pipeline = flags.pipeline;
  if (!flags.order.empty()) degrees.order = parse_order(flags.order);
  if (!flags.precision.empty()) degrees.precision = find_precision(flags.precision);
  if (!flags.zero.empty()) degrees.zero = parse_zero(flags.zero, "--zero");
  return degrees;
}

// A list where one number is due. Empty: it is none.
std::string degree_fault(const std::string& text) {
  if (text.find_first_of(",|:@") == std::string::npos) return "";
  return fmt::format(
      "a degree is one whole number, the same for all stages (it is \"{}\"); `stageline plan TRACE "
      "--fix 'tp=2|4'` chooses among several",
      text);
}

// A program without a schedule name gets the name of its file.
Program program_of_flag(const CommonFlags& flags) {
  Program program = read_program(flags.program, flags.quiet);
  if (program.schedule.empty()) program.schedule = flags.program;
  return program;
}

void add_partition_flag(Flags command, CommonFlags& flags, Many cuts) {
  const std::string values =
      "balanced, by_device, uniform, blocks[:…], pipedream[:…], ppv:7[,…], simulated[:most=400][,blocks] (the "
      "best found by simulating as many cuts for each schedule), ranges 0-5,6-11,12-, last layers' "
      "names, or a Megatron layout or a file of one; default: balanced";
  if (cuts == Many::no) {
    command.option("--partition", flags.partition, values);
    return;
  }
  command.option("--partition", flags.partitions, values + "; repeatable, to compare cuts")
      .repeatable();
}

}  // namespace

void add_trace_flags(Flags command, CommonFlags& flags) {
  command
      .option("TRACE", flags.trace,
              "a trace file, model:NAME@DEVICE[,batch=N…] (a shape, a language model such as "
              "llama3-8b, or a config.json), uniform:…, or a bundled trace")
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

void add_calibration_flag(Flags command, CommonFlags& flags) {
  command.option(
      "--calibration", flags.calibration,
      "a file of rates that `stageline calibrate` fitted to measured steps, for language "
      "models and the links; default: the built-in rates of the chip");
}

void add_output_flags(Flags command, CommonFlags& flags) {
  command.option("--json", flags.json, "write the results as JSON to a file, or - for stdout")
      .writes_file();
  command.flag("--quiet", flags.quiet, "no heading and no notes");
}

void add_cluster_flags(Flags command, CommonFlags& flags) {
  command.option("--cluster", flags.cluster,
                 "a cluster file or a bundled cluster, h100x8*4 for four such machines; default: "
                 "that of model:NAME@DEVICE");
  command.option("--link", flags.link, "equal devices with one full-duplex port each: 12GB/s,5us");
  command.option("--memory", flags.memory,
                 "memory of each device, with its unit: 16GB; default: as the cluster says");
  command.option("--reserve", flags.reserve,
                 "memory of each device that training cannot use, for its context and "
                 "communication buffers: 2GB; default: as the cluster says");
  command.option("--host-link", flags.host_link,
                 "a full-duplex link of each equal device to one host, for offloading: "
                 "16GB/s,5us");
  command.option("--host-memory", flags.host_memory, "memory of that host: 256GB");
  command
      .option("--pair-overlap", flags.pair_overlap,
              "hidden share of the shorter op of an overlapped pair: 0 (default) to 1")
      .range(0.0, 1.0);
}

void add_degree_flags(Flags command, CommonFlags& flags) {
  const auto degree = [&](const std::string& name, int& value, const std::string& help) {
    constexpr int most = 1 << 16;
    command.option(name, value, help).check(degree_fault, "").range(1, most);
  };
  degree("--tp", flags.tensor, "tensor-parallel ranks that share each layer");
  degree("--cp", flags.context, "context-parallel ranks that share each sequence");
  degree("--ep", flags.expert, "expert-parallel ranks, among the context- and data-parallel ones");
  degree("--dp", flags.data, "data-parallel replicas of the pipeline");
  degree("--pp", flags.pipeline,
         "pipeline ranks; default: the number of devices over the other degrees");
  command.option("--zero", flags.zero,
                 "state divided among data-parallel ranks: 0 none, 1 optimizer, 2 gradients, too, "
                 "which are then reduced in every backward, 3 weights, too (FSDP); default: 0");
  command.flag("--sequence-parallel", flags.sequence_parallel,
               "tensor-parallel ranks share the norms' and dropouts' activations, too");
  add_layout_flags(command, flags);
}

void add_layout_flags(Flags command, CommonFlags& flags) {
  command.option("--order", flags.order,
                 "nesting of the ranks on the devices, neighbours first; default: tp-cp-ep-dp-pp");
  command.option("--precision", flags.precision,
                 "bytes of weights, gradients and optimizer state for each parameter; default: as "
                 "the trace says");
  command.option("--collectives", flags.collectives,
                 "algorithm of collectives: of all, or by group, such as tp=nvls,dp=ring; default: "
                 "best, the one with the least time for the bytes and ranks");
  command.option("--sharing", flags.sharing,
                 "how transfers share a link: fifo, one after another, or fair, at once at max-min "
                 "fair rates; default: fair with degrees, else fifo");
  command.option("--buckets", flags.buckets,
                 "gradients that are reduced together while the last backward runs: ddp, megatron, "
                 "or none, all of a stage behind it; default: megatron");
  command.flag("--all-pipelines", flags.all_pipelines,
               "simulate every data-parallel replica, also where they are alike");
}

void add_budget_flags(Flags command, CommonFlags& flags) {
  command.option(
      "--tokens", flags.tokens,
      "of a language model: GPU-hours, days and cost of training on so many tokens: 15T, 300B, 1e12");
  command.option("--price", flags.price,
                 "US dollars for an hour of one device; default: as the cluster says");
}

void add_stash_flags(Flags command, CommonFlags& flags) {
  command.option(
      "--recompute", flags.recompute,
      "what each backward has computed again, by any schedule: none, selective (attention's "
      "scores), every:N (blocks of N layers; every:1 is what Megatron calls full) or full (the "
      "stage as one block), for all stages or after @ for some, or for "
      "some layers of the model: every:2@0,2-3,full@1 or full@layers:3-7; layers:3-7 is "
      "every:1@layers:3-7; default: as the schedule does");
  command.option("--recompute-start", flags.recompute_start,
                 "early: recompute while the output gradient is on its way; late: when it is there "
                 "(default: early, or as the program text says)");
  const Flag offload = command.option(
      "--offload", flags.offload,
      "copy stashes to the host until their backward, by any schedule: none, all, or stages such "
      "as @0,2-3; default: as the schedule does");
  command
      .option("--prefetch", flags.prefetch,
              "how many compute ops before its backward an offloaded stash is copied back; "
              "default: 2")
      .range(1, most_microbatches)
      .needs(offload);
}

void add_unequal_flags(Flags command, CommonFlags& flags) {
  command.option(
      "--slow", flags.slow,
      "what if devices or machines were slower: NAME:FACTOR[,…], such as gpu2:1.2 or "
      "host3:1.1 (compute there takes as many times as long), or gpu*:1.05; the model is cut "
      "anew for them: --partition keeps a cut");
  command.option(
      "--device-order", flags.device_order,
      fmt::format("given: stages on the devices in the order of the cluster; search: in the order "
                  "of unequal devices (with degrees, of machines) with the fastest step, by "
                  "simulating up to {} orders a schedule; default: given",
                  most_orders));
}

void add_messages_flag(Flags command, CommonFlags& flags) {
  command.option("--messages", flags.messages,
                 "async: SEND and RECV overlap with compute; blocking: they occupy the compute "
                 "lane until both ends are done; batched: adjacent ones in the list start "
                 "together; default: async, or as the program text says");
}

void add_problem_flags(Flags command, CommonFlags& flags, Many many, Many cuts, Given given) {
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
          : "number of devices, or a sweep such as 2..16 or 2,4,8; default: all of the cluster, or 4");
  add_cluster_flags(command, flags);
  command
      .option("--microbatches", flags.microbatches,
              "micro-batches per step and pipeline (mini-batches where updates are asynchronous); "
              "default: 4 per device")
      .range(1, most_microbatches);
  add_batch_size_flag(command, flags);
  add_calibration_flag(command, flags);
  command
      .option("--steps", flags.steps,
              "steps to simulate; default: 1, or enough to reach a steady pace where updates are "
              "asynchronous")
      .range(1, 1 << 20);
  add_partition_flag(command, flags, cuts);
  command.option("--weights", flags.weights,
                 "weight rule, instead of the schedule's: flush, stash, vertical_sync, "
                 "double_buffer, latest");
  add_unequal_flags(command, flags);
  add_stash_flags(command, flags);
  if (one && given == Given::yes) {
    command
        .option("--program", flags.program,
                "run this program instead of a schedule: our own text or PyTorch's schedule CSV")
        .excludes(schedule);
  }
}

void add_case_flags(Flags command, CommonFlags& flags, Many many, Many cuts, Given given) {
  add_problem_flags(command, flags, many, cuts, given);
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
  request.cluster.reserve = memory_of_flag("--reserve", flags.reserve);
  request.cluster.host_memory = memory_of_flag("--host-memory", flags.host_memory);
  request.cluster.pair_overlap = flags.pair_overlap;
  request.whole_cluster = true;
  if (!flags.devices.empty()) request.devices = parse_devices(flags.devices);
  if (!flags.weights.empty()) request.weights = parse_weight_rule(flags.weights, "--weights");
  if (!flags.messages.empty()) request.messages = parse_messages(flags.messages, "--messages");
  if (!flags.slow.empty()) request.slow = parse_slow(flags.slow, "--slow");
  if (!flags.device_order.empty()) {
    request.device_order = one_of(all_device_orderings, flags.device_order, "--device-order");
  }
  if (!flags.recompute.empty()) {
    request.recomputation = parse_recomputation(flags.recompute, "--recompute");
  }
  if (!flags.recompute_start.empty()) {
    request.recomputation.start = parse_recompute_start(flags.recompute_start, "--recompute-start");
  }
  if (!flags.offload.empty()) request.offloading = parse_offloading(flags.offload, "--offload");
  if (flags.prefetch > 0) request.offloading.ahead = flags.prefetch;
  request.partition = flags.partition;
  if (!flags.partitions.empty()) request.partition = flags.partitions.front();
  if (flags.partitions.size() > 1) request.partitions = flags.partitions;
  request.degrees = degrees_of(flags);
  if (!flags.sharing.empty()) request.sharing = parse_sharing(flags.sharing, "--sharing");
  if (!flags.collectives.empty()) request.collectives = flags.collectives;
  request.all_pipelines = flags.all_pipelines;
  if (!flags.buckets.empty()) request.buckets = flags.buckets;
  request.sequence_parallel = flags.sequence_parallel;
  request.calibration = flags.calibration;
  request.microbatches = flags.microbatches;
  request.steps = flags.steps;
  if (!flags.program.empty()) request.program = program_of_flag(flags);
  return request;
}

TrainingBudget budget_of(const CommonFlags& flags, const Model& model) {
  TrainingBudget budget;
  if (!flags.tokens.empty()) budget.tokens = parse_tokens(flags.tokens, "--tokens");
  if (flags.price) budget.price_per_hour = checked_price(*flags.price, "--price");
  check_budget(budget, model, "--tokens");
  return budget;
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

void add_notes_on_unread(const CommonFlags& flags, const std::string& command, Shows shows,
                         Setting& setting) {
  if (flags.steps > 0) {
    setting.notes.push_back(fmt::format(
        "--steps has no effect on {}: its step is that of a steady pace, of as many steps as that "
        "needs",
        command));
  }
  if (shows == Shows::fit) return;
  std::vector<std::string> given;
  for (const auto& [text, flag] : {std::pair{&flags.memory, "--memory"},
                                   {&flags.reserve, "--reserve"},
                                   {&flags.host_memory, "--host-memory"},
                                   {&flags.weights, "--weights"}}) {
    if (!text->empty()) given.emplace_back(flag);
  }
  if (given.empty()) return;
  setting.notes.push_back(fmt::format(
      "{} is of time alone, which {} change{} no more than by the order of ops that the "
      "schedule derives from {}",
      command, fmt::join(given, ", "), given.size() == 1 ? "s" : "",
      given.size() == 1 ? "it" : "them"));
}

void check_one_count(const Setting& setting, const std::string& command, const std::string& other) {
  if (setting.device_counts.size() == 1) return;
  throw UsageError(
      fmt::format("{} takes one number of devices; `{}` takes a sweep", command, other));
}

}  // namespace stageline
