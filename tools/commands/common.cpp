#include "tools/commands/common.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include "schedulers/partition/megatron.hpp"
#include "sim/errors.hpp"
#include "tools/base/table.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/study/staleness_facts.hpp"

namespace stageline {
namespace {

int whole_number(const std::string& text, const std::string& flag) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < 1 || value > 4096) {
    throw UsageError(
        fmt::format("{} must be a whole number from 1 to 4096 (it is \"{}\")", flag, text));
  }
  return value;
}

// "8" or "2..16"
std::vector<int> parse_devices(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {whole_number(text, "--devices")};
  const int from = whole_number(text.substr(0, dots), "--devices (from)");
  const int to = whole_number(text.substr(dots + 2), "--devices (to)");
  if (from > to) {
    throw UsageError(
        fmt::format("--devices {}: a sweep goes upwards; write {}..{}", text, to, from));
  }
  std::vector<int> counts;
  for (int count = from; count <= to; ++count) counts.push_back(count);
  return counts;
}

std::optional<WeightRule> parse_weights(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_weight_rule(text, "--weights");
}

}  // namespace

std::optional<Messages> parse_messages(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<std::string> known;
  for (const Messages messages : {Messages::async, Messages::blocking, Messages::batched}) {
    if (name(messages) == text) return messages;
    known.emplace_back(name(messages));
  }
  throw UsageError(fmt::format("--messages is one of async, blocking, batched (not \"{}\"{})", text,
                               did_you_mean(text, known)));
}

void add_messages_flag(CLI::App& command, CommonFlags& flags) {
  command.add_option(
      "--messages", flags.messages,
      "async: SEND and RECV beside the computing; blocking: in turn with it, and both "
      "ends wait for each other; batched: neighbours in the list go together; "
      "default async, or as the program text says");
}

void add_trace_flags(CLI::App& command, CommonFlags& flags) {
  command
      .add_option("TRACE", flags.trace,
                  "a trace file, model:NAME@DEVICE[,batch=N…], uniform:…, or a bundled trace")
      ->required();
  command
      .add_option("--batch", flags.profile_batch,
                  "samples in a minibatch of a PipeDream profile, which does not say")
      ->check(CLI::PositiveNumber);
}

void add_batch_size_flag(CLI::App& command, CommonFlags& flags) {
  command
      .add_option("--microbatch-size", flags.microbatch_size,
                  "samples in a micro-batch; costs are scaled or interpolated to it; default as in "
                  "the trace")
      ->check(CLI::Range(1, 1 << 26));
}

void add_output_flags(CLI::App& command, CommonFlags& flags) {
  command.add_option("--json", flags.json, "write the results as JSON to a file, or - for stdout");
  command.add_flag("--quiet", flags.quiet, "no heading and no notes");
}

void add_cluster_flags(CLI::App& command, CommonFlags& flags) {
  command.add_option("--cluster", flags.cluster,
                     "a cluster file or a bundled cluster; default that of model:NAME@DEVICE");
  command.add_option("--link", flags.link,
                     "equal devices with one full-duplex port each: 12GB/s,5us");
  command.add_option("--memory", flags.memory, "memory of each of the equal devices: 16GB");
  command.add_option("--host-link", flags.host_link,
                     "a full-duplex link of each equal device to one host, for offloading: "
                     "16GB/s,5us");
  command.add_option("--host-memory", flags.host_memory, "of that host: 256GB");
  command
      .add_option("--pair-overlap", flags.pair_overlap,
                  "of the shorter op of an overlapped pair, the share hidden: 0 (default) to 1")
      ->check(CLI::Range(0.0, 1.0));
}

void add_problem_flags(CLI::App& command, CommonFlags& flags, Many many) {
  const bool one = many == Many::no;
  add_trace_flags(command, flags);
  CLI::Option* const schedule =
      command
          .add_option("--schedule", flags.schedules,
                      one ? "NAME[:knob=value,…]; default 1f1b"
                          : "NAME[:knob=value,…], a comma list of them, or all; repeatable; "
                            "default all")
          ->allow_extra_args(false);
  command.add_option("--devices", flags.devices,
                     one ? "how many; default all of the cluster, or 4"
                         : "how many, or a sweep such as 2..16; default all of the cluster, or 4");
  add_cluster_flags(command, flags);
  command
      .add_option("--microbatches", flags.microbatches,
                  "per step (mini-batches where updates are asynchronous); default 4 a device")
      ->check(CLI::Range(1, 1 << 26));
  add_batch_size_flag(command, flags);
  command
      .add_option("--steps", flags.steps,
                  "steps to simulate; default 1, or enough to run steadily where updates are "
                  "asynchronous")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--partition", flags.partition,
                     "balanced, uniform, pipedream[:…], ppv:7[,…], ranges 0-5,6-11,12-, last "
                     "layers' names, or a Megatron layout or a file of one; default balanced");
  command.add_option("--weights", flags.weights,
                     "the weight rule instead of the schedule's: flush, stash, vertical_sync, "
                     "double_buffer, latest");
  if (one) {
    command
        .add_option("--program", flags.program,
                    "this program instead of a schedule: our own text or PyTorch's schedule CSV")
        ->excludes(schedule);
  }
}

void add_case_flags(CLI::App& command, CommonFlags& flags, Many many) {
  add_problem_flags(command, flags, many);
  add_output_flags(command, flags);
}

namespace {

std::optional<Bytes> memory_of_flag(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
}

}  // namespace

Setting read_setting(const CommonFlags& flags) {
  Setting setting;
  ClusterRequest request;
  request.cluster = flags.cluster;
  if (!flags.link.empty()) request.link = parse_link(flags.link);
  if (!flags.host_link.empty()) request.host_link = parse_link(flags.host_link);
  request.memory = memory_of_flag("--memory", flags.memory);
  request.host_memory = memory_of_flag("--host-memory", flags.host_memory);
  request.pair_overlap = flags.pair_overlap;
  if (flags.pair_overlap && !(*flags.pair_overlap >= 0 && *flags.pair_overlap <= 1)) {
    throw UsageError(
        fmt::format("--pair-overlap is a share from 0 to 1 (it is {})", *flags.pair_overlap));
  }
  request.priced_for = priced_device(flags.trace);
  setting.cluster = choose_cluster(request);
  TraceRequest trace{flags.trace, flags.microbatch_size, flags.profile_batch, {}};
  if (setting.cluster.fixed) trace.more_kinds = setting.cluster.fixed->kinds;
  setting.model = cut_by_layout(open_trace(trace), flags.partition);
  if (!flags.program.empty()) {
    setting.program = read_program(flags.program, flags.quiet);
    if (setting.program->schedule.empty()) setting.program->schedule = flags.program;
    if (flags.microbatches > 0 || flags.steps > 0 || !flags.weights.empty()) {
      throw UsageError(
          "--program already says its micro-batches, steps and weights; leave out --microbatches, "
          "--steps and --weights, or change the program text");
    }
  }
  if (setting.program) {
    const int have = static_cast<int>(setting.program->devices.size());
    if (!flags.devices.empty() && parse_devices(flags.devices) != std::vector<int>{have}) {
      throw UsageError(fmt::format("the program is for {} devices; leave out --devices {}", have,
                                   flags.devices));
    }
    setting.device_counts = {have};
  } else if (!flags.devices.empty()) {
    setting.device_counts = parse_devices(flags.devices);
  } else if (setting.cluster.fixed) {
    setting.device_counts = {static_cast<int>(setting.cluster.fixed->devices.size())};
  } else {
    setting.device_counts = {4};
  }
  return setting;
}

Case make_case(const CommonFlags& flags, const Setting& setting, const ScheduleSpec& spec,
               int devices) {
  Case asked;
  asked.model = setting.model;
  asked.cluster = cluster_of(setting.cluster, devices);
  asked.spec = spec;
  asked.program = setting.program;
  asked.partition = partition_text(flags.partition);
  asked.weights = parse_weights(flags.weights);
  asked.messages = parse_messages(flags.messages);
  asked.microbatches = flags.microbatches > 0 ? flags.microbatches : 4 * devices;
  asked.steps = flags.steps;
  return asked;
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

std::vector<std::string> notes(const Setting& setting) {
  std::vector<std::string> all = setting.model.provenance.notes;
  if (!setting.cluster.note.empty()) all.push_back(setting.cluster.note);
  if (!setting.model.bytes_known) {
    all.emplace_back(
        "the trace does not say bytes: what memory it takes is unknown, and so is whether it fits; "
        "messages take the latency of their links alone");
  }
  return all;
}

std::string heading(const Setting& setting, const Case& asked, bool sweep) {
  const Model& model = setting.model;
  const auto layers = std::count_if(model.layers.begin(), model.layers.end(),
                                    [](const Layer& layer) { return layer.kind != pass_kind; });
  const std::string sample = model.sample.empty() ? "sample" : model.sample;
  std::string text =
      fmt::format("{} · {} layers · {} a micro-batch on one device ({})\n", model.name, layers,
                  print(forward_backward(model)), origin_of(model.provenance));
  const std::string size =
      model.batch > 0 ? fmt::format(" of {} {}{}", model.batch, sample, model.batch == 1 ? "" : "s")
                      : "";
  const bool shown = asked.cluster.name.empty();
  text += sweep ? fmt::format("{}–{} devices", setting.device_counts.front(),
                              setting.device_counts.back())
                : fmt::format("{} device{}", asked.cluster.devices.size(),
                              asked.cluster.devices.size() == 1 ? "" : "s");
  if (setting.cluster.fixed && !shown) text += fmt::format(" of {}", asked.cluster.name);
  const int microbatches = asked.program
                               ? asked.program->microbatches / asked.program->sequence_chunks
                               : asked.microbatches;
  text += sweep ? fmt::format(" · micro-batches{}", size)
                : fmt::format(" · {} micro-batches{} a step", microbatches, size);
  const bool assigns = !asked.program && !sweep && asked.spec.scheduler->assign != nullptr;
  return text + fmt::format(" · cut: {}\n", assigns ? "the schedule's own" : asked.partition);
}

Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome) {
  Drawing drawing;
  drawing.title = fmt::format("{} · {}", outcome.schedule, setting.model.name);
  const std::string size = outcome.microbatch_size > 0
                               ? fmt::format(" of {} {}{}", outcome.microbatch_size,
                                             outcome.sample.empty() ? "sample" : outcome.sample,
                                             outcome.microbatch_size == 1 ? "" : "s")
                               : "";
  drawing.subtitle = fmt::format(
      "{}{} · {} micro-batches{}{} · step {} · bubble {}", outcome.devices,
      outcome.devices == 1 ? " device" : " devices", outcome.microbatches, size,
      outcome.program.steps > 1 ? fmt::format(", {} steps shown", outcome.program.steps) : "",
      print(outcome.step_time), percent(outcome.bubble_fraction));
  drawing.footnotes.push_back(fmt::format(
      "Costs {}.{}", described(setting.model.provenance),
      asked.cluster.name.empty() ? "" : fmt::format(" Cluster: {}.", asked.cluster.name)));
  if (!setting.cluster.note.empty())
    drawing.footnotes.push_back("Note: " + setting.cluster.note + ".");
  for (const std::string& note : stream_notes(asked, outcome)) {
    drawing.footnotes.push_back("Note: " + note + ".");
  }
  drawing.program = outcome.program;
  drawing.timeline = outcome.timeline;
  if (outcome.bytes_known()) drawing.memory = outcome.memory;
  drawing.memory_limit = outcome.memory_limit;
  drawing.hosts = outcome.costs.network.hosts;
  drawing.host_limit = outcome.host_limit;
  drawing.idle = outcome.metrics.idle;
  drawing.versions = outcome.versions;
  return drawing;
}

bool colour_wanted() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

}  // namespace stageline
