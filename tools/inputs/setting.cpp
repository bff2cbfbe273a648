// Opens the trace and the cluster of a question, and makes its cases.
#include "tools/inputs/setting.hpp"

#include <fmt/core.h>

#include "sim/errors.hpp"
#include "sim/names.hpp"
#include "sim/numbers.hpp"
#include "tools/inputs/program_files.hpp"

namespace stageline {
namespace {

int whole_number(const std::string& text, const std::string& flag) {
  const int value = parse_number<int>(text).value_or(0);
  if (value < 1 || value > 4096) {
    throw UsageError(
        fmt::format("{} must be a whole number from 1 to 4096 (it is \"{}\")", flag, text));
  }
  return value;
}

void check_pair_overlap(const std::optional<double>& share) {
  if (share && !(*share >= 0 && *share <= 1)) {
    throw UsageError(fmt::format("--pair-overlap is a share from 0 to 1 (it is {})", *share));
  }
}

// A program fixes the number of devices and all that a schedule would be asked for.
std::vector<int> devices_of_program(const SettingRequest& request) {
  if (request.microbatches > 0 || request.steps > 0 || request.weights) {
    throw UsageError(
        "--program already says its micro-batches, steps and weights; leave out --microbatches, "
        "--steps and --weights, or change the program text");
  }
  std::vector<int> have{static_cast<int>(request.program->devices.size())};
  const std::vector<int>& asked = request.devices;
  if (!asked.empty() && asked != have) {
    throw UsageError(fmt::format("the program is for {} devices; leave out --devices {}{}",
                                 have.front(), asked.front(),
                                 asked.size() > 1 ? fmt::format("..{}", asked.back()) : ""));
  }
  return have;
}

}  // namespace

Setting read_setting(const SettingRequest& request) {
  check_pair_overlap(request.cluster.pair_overlap);
  Setting setting;
  ClusterRequest cluster = request.cluster;
  cluster.priced_for = priced_device(request.trace);
  setting.cluster = choose_cluster(cluster);
  TraceRequest trace{request.trace, request.microbatch_size, request.profile_batch, {}};
  if (setting.cluster.fixed) trace.more_kinds = setting.cluster.fixed->kinds;
  setting.model = cut_by_layout(open_trace(trace), request.partition);
  setting.program = request.program;
  if (request.program) {
    setting.device_counts = devices_of_program(request);
  } else if (!request.devices.empty()) {
    setting.device_counts = request.devices;
  } else if (setting.cluster.fixed) {
    setting.device_counts = {static_cast<int>(setting.cluster.fixed->devices.size())};
  } else {
    setting.device_counts = {4};
  }
  return setting;
}

Case make_case(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
               int devices) {
  Case asked;
  asked.model = setting.model;
  asked.cluster = cluster_of(setting.cluster, devices);
  asked.spec = spec;
  asked.program = setting.program;
  asked.partition = partition_text(request.partition);
  asked.weights = request.weights;
  asked.messages = request.messages;
  asked.microbatches = request.microbatches > 0 ? request.microbatches : 4 * devices;
  asked.steps = request.steps;
  return asked;
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

Messages parse_messages(const std::string& text, const std::string& what) {
  return one_of(all_messages, text, what);
}

}  // namespace stageline
