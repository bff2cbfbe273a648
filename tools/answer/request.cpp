// Reads a request.
#include <fmt/core.h>

#include <limits>

#include "cost_models/state_bytes.hpp"
#include "schedulers/aliases.hpp"
#include "sim/errors.hpp"
#include "sim/names.hpp"
#include "tools/answer/answer.hpp"
#include "tools/base/json.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/training_budget.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

const std::string request_name = "the request";
constexpr std::int64_t most_asked_devices = 4096;
constexpr std::int64_t most_asked_microbatches = std::int64_t{1} << 26U;
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
    node_.check_keys({"trace"}, {"schedule",
                                 "schedules",
                                 "program",
                                 "devices",
                                 "cluster",
                                 "link",
                                 "memory",
                                 "reserve",
                                 "host_link",
                                 "host_memory",
                                 "pair_overlap",
                                 "microbatches",
                                 "microbatch_size",
                                 "profile_batch",
                                 "steps",
                                 "partition",
                                 "weights",
                                 "messages",
                                 "within",
                                 "timeline",
                                 "tp",
                                 "cp",
                                 "ep",
                                 "dp",
                                 "pp",
                                 "order",
                                 "zero",
                                 "precision",
                                 "sharing",
                                 "collectives",
                                 "buckets",
                                 "sequence_parallel",
                                 "all_pipelines",
                                 "calibration",
                                 "slow",
                                 "device_order",
                                 "recompute",
                                 "recompute_start",
                                 "offload",
                                 "prefetch",
                                 "tokens",
                                 "price"});
    Request request;
    SettingRequest& setting = request.setting;
    setting.trace = name_or_object("trace");
    setting.cluster.cluster = name_or_object("cluster");
    read_links(setting.cluster);
    setting.devices = devices();
    setting.microbatches = whole("microbatches", most_asked_microbatches);
    setting.microbatch_size = whole("microbatch_size", most_asked_microbatches);
    setting.profile_batch = whole("profile_batch", std::numeric_limits<int>::max());
    setting.steps = whole("steps", most_steps);
    read_partitions(setting);
    if (const auto rule = node_.find("weights")) {
      setting.weights = parse_weight_rule(rule->text(), "\"weights\"");
    }
    if (const auto messages = node_.find("messages")) {
      setting.messages = parse_messages(messages->text(), "\"messages\"");
    }
    setting.degrees = degrees();
    if (const auto sharing = node_.find("sharing")) {
      setting.sharing = parse_sharing(sharing->text(), "\"sharing\"");
    }
    if (const auto algorithm = node_.find("collectives")) setting.collectives = algorithm->text();
    if (const auto rule = node_.find("buckets")) setting.buckets = rule->text();
    if (const auto divided = node_.find("sequence_parallel")) {
      setting.sequence_parallel = divided->boolean();
    }
    if (const auto all = node_.find("all_pipelines")) setting.all_pipelines = all->boolean();
    if (const auto file = node_.find("calibration")) setting.calibration = file->text();
    if (const auto slow = node_.find("slow")) {
      setting.slow = parse_slow(slow->text(), "\"slow\"");
    }
    if (const auto order = node_.find("device_order")) {
      setting.device_order = one_of(all_device_orderings, order->text(), "\"device_order\"");
    }
    read_stashes(setting);
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
    request.budget = budget();
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

  Degrees degrees() const {
    Degrees degrees;
    const auto degree = [&](std::string_view key, int& value) {
      if (const int given = whole(key, most_asked_devices)) value = given;
    };
    degree("tp", degrees.tensor);
    degree("cp", degrees.context);
    degree("ep", degrees.expert);
    degree("dp", degrees.data);
    degree("pp", degrees.pipeline);
    if (const auto order = node_.find("order")) degrees.order = parse_order(order->text());
    if (const auto precision = node_.find("precision")) {
      degrees.precision = find_precision(precision->text());
    }
    if (const auto zero = node_.find("zero")) {
      degrees.zero = parse_zero(zero->text(), "\"zero\"");
    }
    return degrees;
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
    if (const auto reserve = node_.find("reserve")) cluster.reserve = bytes(*reserve);
    if (const auto memory = node_.find("host_memory")) cluster.host_memory = bytes(*memory);
    if (const auto share = node_.find("pair_overlap")) cluster.pair_overlap = share->number();
  }

  void read_partitions(SettingRequest& setting) const {
    const auto found = node_.find("partition");
    if (!found) return;
    if (!found->is_list()) {
      setting.partition = found->text();
      return;
    }
    for (const JsonNode& item : found->items()) setting.partitions.push_back(item.text());
    if (setting.partitions.empty()) found->refuse("give at least one cut, or leave it out");
    setting.partition = setting.partitions.front();
    if (setting.partitions.size() == 1) setting.partitions.clear();
  }

  void read_stashes(SettingRequest& setting) const {
    if (const auto text = node_.find("recompute")) {
      setting.recomputation = parse_recomputation(text->text(), "\"recompute\"");
    }
    if (const auto start = node_.find("recompute_start")) {
      setting.recomputation.start = parse_recompute_start(start->text(), "\"recompute_start\"");
    }
    if (const auto text = node_.find("offload")) {
      setting.offloading = parse_offloading(text->text(), "\"offload\"");
    }
    if (const int ahead = whole("prefetch", most_asked_microbatches); ahead > 0) {
      setting.offloading.ahead = ahead;
    }
  }

  TrainingBudget budget() const {
    TrainingBudget budget;
    if (const auto tokens = node_.find("tokens")) {
      budget.tokens = parse_tokens(
          tokens->kind() == JsonKind::text ? tokens->text() : fmt::format("{}", tokens->number()),
          "\"tokens\"");
    }
    if (const auto price = node_.find("price")) {
      if (!(budget.tokens > 0)) price->refuse("a price needs \"tokens\", those to train on");
      budget.price_per_hour = checked_price(price->number(), "\"price\"");
    }
    return budget;
  }

  std::vector<int> devices() const {
    const auto found = node_.find("devices");
    if (!found) return {};
    if (!found->is_list()) return {static_cast<int>(found->whole(1, most_asked_devices))};
    std::vector<int> counts;
    for (const JsonNode& item : found->items()) {
      counts.push_back(static_cast<int>(item.whole(1, most_asked_devices)));
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
  return parse_request(parse_json(std::string(json), request_name));
}

Request parse_request(const JsonValue& root) {
  const JsonNode node(root, "", request_name);
  return RequestReader(root, node).read();
}

}  // namespace stageline
