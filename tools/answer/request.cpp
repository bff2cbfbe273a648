// Reads a request.
#include <fmt/core.h>

#include <limits>

#include "schedulers/aliases.hpp"
#include "sim/errors.hpp"
#include "tools/answer/answer.hpp"
#include "tools/base/json.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

const std::string request_name = "the request";
constexpr std::int64_t most_devices = 4096;
constexpr std::int64_t most_microbatches = std::int64_t{1} << 26U;
constexpr std::int64_t most_steps = std::int64_t{1} << 20U;

// The value as JSON text, with its digits as they were written.
std::string as_text(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
    case JsonKind::number:
      return value.text;
    case JsonKind::text:
      return json_string(value.text);
    case JsonKind::list: {
      std::string items;
      for (const JsonValue& item : value.items) items += (items.empty() ? "" : ",") + as_text(item);
      return "[" + items + "]";
    }
    case JsonKind::object: {
      std::string members;
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        members += (members.empty() ? "" : ",") + json_string(value.keys[i]) + ":" +
                   as_text(value.items[i]);
      }
      return "{" + members + "}";
    }
  }
  return "";
}

class RequestReader {
 public:
  RequestReader(const JsonValue& root, const JsonNode& node) : root_(root), node_(node) {}

  Request read() const {
    node_.check_keys({"trace"}, {"schedule", "schedules", "program", "devices", "cluster", "link",
                                 "memory", "host_link", "host_memory", "pair_overlap",
                                 "microbatches", "microbatch_size", "profile_batch", "steps",
                                 "partition", "weights", "messages", "within", "timeline"});
    Request request;
    SettingRequest& setting = request.setting;
    setting.trace = name_or_object("trace");
    setting.cluster.cluster = name_or_object("cluster");
    read_links(setting.cluster);
    setting.devices = devices();
    setting.microbatches = whole("microbatches", most_microbatches);
    setting.microbatch_size = whole("microbatch_size", most_microbatches);
    setting.profile_batch = whole("profile_batch", std::numeric_limits<int>::max());
    setting.steps = whole("steps", most_steps);
    if (const auto partition = node_.find("partition")) setting.partition = partition->text();
    if (const auto rule = node_.find("weights")) {
      setting.weights = parse_weight_rule(rule->text(), "\"weights\"");
    }
    if (const auto messages = node_.find("messages")) {
      setting.messages = parse_messages(messages->text(), "\"messages\"");
    }
    if (const auto program = node_.find("program")) {
      setting.program = parse_program(program->text());
    }
    request.schedules = schedules();
    request.notes = read_as_notes(schedule_texts());
    if (const auto within = node_.find("within")) {
      request.within = parse_within(within->text(), "\"within\"");
    }
    if (setting.program && !request.schedules.empty()) {
      node_.refuse("a program runs instead of a schedule; leave one of them out");
    }
    if (const auto timeline = node_.find("timeline")) request.timeline = timeline->boolean();
    return request;
  }

 private:
  const JsonValue& root_;
  const JsonNode& node_;

  std::string name_or_object(std::string_view key) const {
    for (std::size_t i = 0; i < root_.keys.size(); ++i) {
      if (root_.keys[i] == key && root_.items[i].kind == JsonKind::object) {
        return as_text(root_.items[i]);
      }
    }
    return node_.text_or_empty(key);
  }

  int whole(std::string_view key, std::int64_t most) const {
    const auto found = node_.find(key);
    return found ? static_cast<int>(found->whole(1, most)) : 0;
  }

  void read_links(ClusterRequest& cluster) const {
    const auto bytes = [](const JsonNode& node) {
      try {
        return parse_bytes(node.text());
      } catch (const std::invalid_argument& error) {
        node.refuse(error.what());
      }
    };
    if (const auto link = node_.find("link")) {
      cluster.link = parse_link(link->text(), "\"link\"");
    }
    if (const auto link = node_.find("host_link")) {
      cluster.host_link = parse_link(link->text(), "\"host_link\"");
    }
    if (const auto memory = node_.find("memory")) cluster.memory = bytes(*memory);
    if (const auto memory = node_.find("host_memory")) cluster.host_memory = bytes(*memory);
    if (const auto share = node_.find("pair_overlap")) cluster.pair_overlap = share->number();
  }

  std::vector<int> devices() const {
    const auto found = node_.find("devices");
    if (!found) return {};
    if (!found->is_list()) return {static_cast<int>(found->whole(1, most_devices))};
    std::vector<int> counts;
    for (const JsonNode& item : found->items()) {
      counts.push_back(static_cast<int>(item.whole(1, most_devices)));
    }
    return counts;
  }

  std::vector<std::string> schedule_texts() const {
    const auto one = node_.find("schedule");
    const auto many = node_.find("schedules");
    if (one && many) node_.refuse("\"schedule\" and \"schedules\" exclude each other");
    if (one) return {one->text()};
    if (!many) return {};
    if (!many->is_list()) return {many->text()};
    std::vector<std::string> texts;
    for (const JsonNode& item : many->items()) texts.push_back(item.text());
    return texts;
  }

  std::vector<ScheduleSpec> schedules() const {
    std::vector<ScheduleSpec> all;
    for (const std::string& text : schedule_texts()) {
      for (const ScheduleSpec& spec : parse_schedules(text)) all.push_back(spec);
    }
    return all;
  }
};

}  // namespace

Request parse_request(std::string_view json) {
  const JsonValue root = parse_json(std::string(json), request_name);
  const JsonNode node(root, "", request_name);
  return RequestReader(root, node).read();
}

}  // namespace stageline
