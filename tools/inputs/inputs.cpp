#include "tools/inputs/inputs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "cost_models/batch.hpp"
#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

const Bundled* find(const std::vector<Bundled>& table, const std::string& name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Bundled& b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return path == "-" || std::filesystem::exists(path, ignored);
}

// "model:resnet50@h100,batch=32" with another batch size.
std::string with_batch(const std::string& spec, int batch) {
  std::string text;
  std::size_t at = 0;
  while (at <= spec.size()) {
    const std::size_t end = std::min(spec.find(',', at), spec.size());
    const std::string item = spec.substr(at, end - at);
    if (!item.starts_with("batch=")) text += (text.empty() ? "" : ",") + item;
    at = end + 1;
  }
  return fmt::format("{},batch={}", text, batch);
}

void refuse_profile_batch(const TraceRequest& request) {
  if (request.profile_batch == 0) return;
  throw UsageError(
      fmt::format("--batch is for a PipeDream profile, which does not say its own, and \"{}\" is "
                  "none; leave it out",
                  request.text));
}

[[noreturn]] void refuse_name(const std::string& text) {
  std::vector<std::string> known;
  std::string bundled;
  for (const Bundled& one : bundled_traces()) {
    known.emplace_back(one.name);
    bundled += (bundled.empty() ? "" : ", ") + known.back();
  }
  throw UsageError(
      fmt::format("there is no trace \"{}\"{}; a trace is a file, model:NAME@DEVICE[,batch=N…], "
                  "uniform:…, or a "
                  "bundled one ({}); see `stageline list`",
                  text, did_you_mean(text, known), bundled));
}

}  // namespace

std::vector<DeviceKind> known_kinds() {
  std::vector<DeviceKind> kinds;
  for (const Bundled& bundled : bundled_clusters()) {
    for (const DeviceKind& kind :
         read_cluster(std::string(bundled.text), std::string(bundled.name)).kinds) {
      const bool known = std::any_of(kinds.begin(), kinds.end(),
                                     [&](const DeviceKind& k) { return k.name == kind.name; });
      if (!known) kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<Model> open_trace_sizes(const TraceRequest& request) {
  const std::string& text = request.text;
  if (text.starts_with("model:")) {
    refuse_profile_batch(request);
    std::vector<DeviceKind> kinds = request.more_kinds;
    for (const DeviceKind& kind : known_kinds()) kinds.push_back(kind);
    return {priced_model(request.batch > 0 ? with_batch(text, request.batch) : text, kinds)};
  }
  if (text.starts_with('{')) {
    refuse_profile_batch(request);
    return read_trace(text, "the trace");
  }
  if (text.starts_with("uniform:") || text == "uniform") {
    refuse_profile_batch(request);
    return {uniform_model(text.size() > 8 ? text.substr(8) : "")};
  }
  if (const Bundled* const bundled = find(bundled_traces(), text); bundled && !is_file(text)) {
    refuse_profile_batch(request);
    return read_trace(std::string(bundled->text), text);
  }
  if (!is_file(text)) refuse_name(text);
  const std::string content = read_text(text);
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  // Before the first " -- " of a profile there is a node's name only; JSON begins with a brace.
  const bool profile = first != std::string::npos && content[first] != '{' &&
                       content.find(" -- ") != std::string::npos;
  if (profile) return {read_pipedream_profile(content, text, request.profile_batch)};
  refuse_profile_batch(request);
  return read_trace(content, text);
}

Model open_trace(const TraceRequest& request) {
  std::vector<Model> sizes = open_trace_sizes(request);
  if (request.batch > 0 && !request.text.starts_with("model:")) {
    return at_batch(sizes, request.batch);
  }
  // Several sizes and no wish: the largest, where fixed costs weigh least.
  if (sizes.size() > 1) {
    std::string list;
    for (const Model& size : sizes)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", size.batch);
    sizes.back().provenance.notes.push_back(
        fmt::format("the trace was measured at batch sizes {}; {} is taken, --microbatch-size "
                    "chooses another",
                    list, sizes.back().batch));
  }
  return std::move(sizes.back());
}

std::string priced_device(const std::string& trace) {
  if (!trace.starts_with("model:")) return "";
  const std::size_t at = trace.find('@');
  if (at == std::string::npos) return "";
  return trace.substr(at + 1, trace.find(',', at) - at - 1);
}

ClusterChoice choose_cluster(const ClusterRequest& request) {
  ClusterChoice choice;
  choice.pair_overlap = request.pair_overlap;
  if (!request.cluster.empty()) {
    if (request.link || request.memory || request.host_link || request.host_memory) {
      throw UsageError(
          "--cluster already says its links and memories; leave out --link, --memory, --host-link "
          "and --host-memory, or --cluster");
    }
    if (request.cluster.starts_with('{')) {
      choice.fixed = read_cluster(request.cluster, "the cluster");
      return choice;
    }
    const Bundled* const bundled = find(bundled_clusters(), request.cluster);
    if (bundled && !is_file(request.cluster)) {
      choice.fixed = read_cluster(std::string(bundled->text), request.cluster);
      return choice;
    }
    if (!is_file(request.cluster)) {
      std::vector<std::string> known;
      std::string list;
      for (const Bundled& one : bundled_clusters()) {
        known.emplace_back(one.name);
        list += (list.empty() ? "" : ", ") + known.back();
      }
      throw UsageError(fmt::format("there is no cluster \"{}\"{}; a cluster is a file or one of {}",
                                   request.cluster, did_you_mean(request.cluster, known), list));
    }
    choice.fixed = read_cluster(read_text(request.cluster), request.cluster);
    return choice;
  }
  choice.link = request.link;
  choice.memory = request.memory;
  choice.host_link = request.host_link;
  choice.host_memory = request.host_memory;
  const bool equal = request.link || request.memory || request.host_link || request.host_memory;
  if (!equal && !request.priced_for.empty()) {
    for (const Bundled& bundled : bundled_clusters()) {
      Cluster cluster = read_cluster(std::string(bundled.text), std::string(bundled.name));
      const bool has =
          std::any_of(cluster.kinds.begin(), cluster.kinds.end(),
                      [&](const DeviceKind& kind) { return kind.name == request.priced_for; });
      if (!has) continue;
      choice.fixed = std::move(cluster);
      return choice;
    }
  }
  if (!request.memory) {
    for (const DeviceKind& kind : known_kinds()) {
      if (kind.name == request.priced_for) choice.memory = kind.memory;
    }
  }
  if (!choice.link) {
    choice.note = "communication is free: no --cluster and no --link was given";
  }
  return choice;
}

Cluster cluster_of(const ClusterChoice& choice, int devices) {
  Cluster cluster = choice.fixed ? first_devices(*choice.fixed, devices)
                                 : uniform_cluster(devices, choice.link, choice.memory,
                                                   choice.host_link, choice.host_memory);
  if (choice.pair_overlap) cluster.pair_overlap = *choice.pair_overlap;
  return cluster;
}

LinkSpec parse_link(const std::string& text) {
  const std::size_t comma = text.find(',');
  LinkSpec link;
  try {
    link.bandwidth = parse_bandwidth(text.substr(0, comma));
    if (comma != std::string::npos) link.latency = parse_time(text.substr(comma + 1));
  } catch (const std::invalid_argument& error) {
    throw UsageError(
        fmt::format("--link {}: {}; a link is BANDWIDTH[,LATENCY]", text, error.what()));
  }
  return link;
}

WeightRule parse_weight_rule(const std::string& text, const std::string& what) {
  std::vector<std::string> known;
  for (const WeightRule rule : {WeightRule::flush, WeightRule::stash, WeightRule::vertical_sync,
                                WeightRule::double_buffer, WeightRule::latest}) {
    if (name(rule) == text) return rule;
    known.emplace_back(name(rule));
  }
  throw UsageError(
      fmt::format("{} is one of flush, stash, vertical_sync, double_buffer, latest (not \"{}\"{})",
                  what, text, did_you_mean(text, known)));
}

}  // namespace stageline
