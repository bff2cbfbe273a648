#include "traces/native/groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "traces/json/parts.hpp"

namespace stageline {
namespace {

constexpr std::int64_t highest_degree = 1 << 16;
constexpr std::int64_t most_collectives = 10'000;  // of one kind in one pass of a layer

// The groups whose collectives are part of F, I and W.
constexpr std::array blocking_groups{Dimension::tensor, Dimension::context, Dimension::expert,
                                     Dimension::expert_tensor};

// The value that is called so.
template <class Values>
auto called(const JsonNode& node, std::string_view what, const Values& values) {
  const std::string word = node.text();
  std::vector<std::string> known;
  for (const auto value : values) {
    if (name(value) == word) return value;
    known.emplace_back(name(value));
  }
  node.refuse(fmt::format("{} is not {}; there are {}{}", in_quotes(word), what,
                          fmt::join(known, ", "), suggestion(word, known)));
}

struct DegreeField {
  const char* key;
  int Sharding::*member;
};
constexpr std::array<DegreeField, 3> degree_fields{{{"tensor", &Sharding::tensor},
                                                    {"context", &Sharding::context},
                                                    {"expert", &Sharding::expert}}};

struct CountField {
  const char* key;
  int LayerCollective::*member;
};
constexpr std::array<CountField, 3> count_fields{{{"forward", &LayerCollective::forward},
                                                  {"input_grad", &LayerCollective::input_grad},
                                                  {"weight_grad", &LayerCollective::weight_grad}}};

struct RoutingField {
  const char* key;
  int TokenRouting::*member;
};
constexpr std::array<RoutingField, 3> routing_fields{
    {{"chosen", &TokenRouting::chosen},
     {"groups", &TokenRouting::groups},
     {"chosen_groups", &TokenRouting::chosen_groups}}};
constexpr std::int64_t most_experts = 1 << 16;

TokenRouting read_routing(const JsonNode& node, const LayerCollective& collective) {
  if (collective.kind != CollectiveKind::all_to_all || collective.group != Dimension::expert) {
    node.refuse("tokens are routed by an all-to-all of \"ep\" alone");
  }
  node.check_keys({"dispatcher"}, {"combine", "chosen", "groups", "chosen_groups"});
  TokenRouting routing;
  routing.dispatcher = node.at("dispatcher").text();
  if (routing.dispatcher.empty()) {
    node.at("dispatcher").refuse("a dispatcher has a name; without one, leave \"routing\" out");
  }
  if (const auto found = node.find("combine")) routing.combine = found->boolean();
  for (const RoutingField& field : routing_fields) {
    if (const auto found = node.find(field.key)) {
      routing.*field.member = static_cast<int>(found->whole(1, most_experts));
    }
  }
  if (routing.chosen_groups > routing.groups) {
    node.refuse(fmt::format("a token's experts are in at most all {} groups, not in {}",
                            routing.groups, routing.chosen_groups));
  }
  return routing;
}

std::string routing_text(const TokenRouting& routing) {
  std::string text = fmt::format("{{\"dispatcher\": {}", in_quotes(routing.dispatcher));
  if (routing.combine) text += ", \"combine\": true";
  for (const RoutingField& field : routing_fields) {
    const int number = routing.*field.member;
    if (number != 1) text += fmt::format(", \"{}\": {}", field.key, number);
  }
  return text + "}";
}

constexpr std::int64_t most_in_use = 1 << 16;

GroupUse read_use(const JsonNode& node) {
  node.check_keys({}, {"part", "across", "blocks"});
  GroupUse use;
  if (const auto found = node.find("part"))
    use.part = static_cast<int>(found->whole(2, most_in_use));
  if (const auto found = node.find("across")) use.across = found->boolean();
  if (const auto found = node.find("blocks")) {
    use.blocks = static_cast<int>(found->whole(2, most_in_use));
  }
  if (use.across && use.part == 0) {
    node.refuse("a collective across parts says of how many ranks each is, as \"part\"");
  }
  return use;
}

std::string use_text(const GroupUse& use) {
  std::vector<std::string> words;
  if (use.part > 0) words.push_back(fmt::format("\"part\": {}", use.part));
  if (use.across) words.emplace_back("\"across\": true");
  if (use.blocks > 0) words.push_back(fmt::format("\"blocks\": {}", use.blocks));
  return fmt::format("{{{}}}", fmt::join(words, ", "));
}

// The products beside it.
struct BesideField {
  const char* key;
  Time LayerCollective::*member;
};
constexpr std::array<BesideField, 2> beside_fields{
    {{"forward_beside_us", &LayerCollective::forward_beside},
     {"backward_beside_us", &LayerCollective::backward_beside}}};

// At every batch size.
std::vector<LayerCollective> read_collective(const JsonNode& node, const TraceSizes& batches) {
  node.check_keys({"kind", "group", "bytes"},
                  {"forward", "input_grad", "weight_grad", "routing", "use", "hidden",
                   "forward_beside_us", "backward_beside_us"});
  LayerCollective common;
  common.kind = called(node.at("kind"), "a collective", all_collective_kinds);
  common.group =
      called(node.at("group"), "a group whose collectives are part of a layer", blocking_groups);
  bool any = false;
  for (const CountField& field : count_fields) {
    if (const auto found = node.find(field.key)) {
      common.*field.member = static_cast<int>(found->whole(0, most_collectives));
    }
    any = any || common.*field.member > 0;
  }
  if (const auto found = node.find("routing")) common.routing = read_routing(*found, common);
  if (const auto found = node.find("use")) common.use = read_use(*found);
  if (!any) {
    node.refuse(
        "a collective is part of F, I or W: forward, input_grad or weight_grad must be "
        "above 0");
  }
  if (const auto found = node.find("hidden")) {
    common.hidden = found->positive();
    if (common.hidden > 1) {
      found->refuse(fmt::format("a share is at most 1 (it is {})", common.hidden));
    }
  }
  const std::vector<Bytes> bytes = by_batch(node.at("bytes"), batches, PerBatch::may,
                                            [](const JsonNode& value) { return value.bytes(); });
  std::vector<LayerCollective> sizes(bytes.size(), common);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i].bytes = bytes[i];
  for (const BesideField& field : beside_fields) {
    const auto found = node.find(field.key);
    if (!found) continue;
    if (common.hidden == 0) found->refuse("products hide a collective that says \"hidden\"");
    const std::vector<Time> times = by_batch(
        *found, batches, PerBatch::may, [](const JsonNode& value) { return value.microseconds(); });
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i].*field.member = times[i];
  }
  return sizes;
}

}  // namespace

Sharding read_sharding(const JsonNode& node) {
  node.check_keys({}, {"tensor", "context", "expert", "sequence", "expert_tensor"});
  Sharding sharding;
  for (const DegreeField& field : degree_fields) {
    if (const auto found = node.find(field.key)) {
      sharding.*field.member = static_cast<int>(found->whole(1, highest_degree));
    }
  }
  if (const auto found = node.find("sequence")) {
    sharding.sequence = found->boolean();
    if (sharding.sequence && sharding.tensor == 1) {
      found->refuse(
          "sequence parallelism divides what tensor parallelism leaves whole, but "
          "\"tensor\" is 1");
    }
  }
  if (const auto found = node.find("expert_tensor")) {
    sharding.expert_tensor = static_cast<int>(found->whole(1, highest_degree));
    if (!sharding.folded()) sharding.expert_tensor = 0;
  }
  return sharding;
}

std::vector<std::vector<LayerCollective>> read_collectives(const JsonNode& node,
                                                           const TraceSizes& batches) {
  std::vector<std::vector<LayerCollective>> by_size(batches.sizes.size());
  const std::vector<JsonNode> items = node.items();
  if (items.empty()) node.refuse("a list of collectives must not be empty; leave it out");
  for (const JsonNode& item : items) {
    const std::vector<LayerCollective> sizes = read_collective(item, batches);
    for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i].push_back(sizes[i]);
  }
  return by_size;
}

std::string in_microseconds(Time time) {
  std::string text = fmt::format("{}.{:06}", time.count() / 1'000'000, time.count() % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string sharding_text(const Sharding& sharding) {
  std::vector<std::string> members;
  for (const DegreeField& field : degree_fields) {
    const int degree = sharding.*field.member;
    if (degree != 1) members.push_back(fmt::format("\"{}\": {}", field.key, degree));
  }
  if (sharding.sequence) members.emplace_back("\"sequence\": true");
  if (sharding.folded()) {
    members.push_back(fmt::format("\"expert_tensor\": {}", sharding.expert_tensor));
  }
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

std::string collectives_text(const std::vector<const std::vector<LayerCollective>*>& by_size,
                             std::string_view indent) {
  const std::vector<LayerCollective>& first = *by_size.front();
  std::string list;
  for (std::size_t c = 0; c < first.size(); ++c) {
    std::vector<std::int64_t> bytes;
    for (const auto* const collectives : by_size) bytes.push_back((*collectives)[c].bytes.count);
    const bool same = std::all_of(bytes.begin(), bytes.end(),
                                  [&](std::int64_t count) { return count == bytes.front(); });
    list += fmt::format(
        "{}\n{}{{\"kind\": \"{}\", \"group\": \"{}\", \"bytes\": {}", list.empty() ? "[" : ",",
        indent, name(first[c].kind), name(first[c].group),
        same ? fmt::format("{}", bytes.front()) : fmt::format("[{}]", fmt::join(bytes, ", ")));
    for (const CountField& field : count_fields) {
      const int count = first[c].*field.member;
      if (count > 0) list += fmt::format(", \"{}\": {}", field.key, count);
    }
    if (!first[c].routing.dispatcher.empty()) {
      list += fmt::format(", \"routing\": {}", routing_text(first[c].routing));
    }
    if (first[c].use != GroupUse{}) {
      list += fmt::format(", \"use\": {}", use_text(first[c].use));
    }
    if (first[c].hidden > 0) list += fmt::format(", \"hidden\": {}", first[c].hidden);
    for (const BesideField& field : beside_fields) {
      std::vector<std::string> times;
      for (const auto* const collectives : by_size) {
        times.push_back(in_microseconds((*collectives)[c].*field.member));
      }
      const bool all_same = std::equal(times.begin() + 1, times.end(), times.begin());
      if (all_same && times.front() == "0") continue;
      list += fmt::format(", \"{}\": {}", field.key,
                          all_same ? times.front() : fmt::format("[{}]", fmt::join(times, ", ")));
    }
    list += "}";
  }
  return list + "]";
}

bool same_exchange(const std::vector<LayerCollective>& one,
                   const std::vector<LayerCollective>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](LayerCollective a, const LayerCollective& b) {
                      a.bytes = b.bytes;
                      a.forward_beside = b.forward_beside;
                      a.backward_beside = b.backward_beside;
                      return a == b;
                    });
}

}  // namespace stageline
