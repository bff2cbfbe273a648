// Reads a request.
#include <fmt/core.h>

#include <stdexcept>

#include "schedulers/aliases.hpp"
#include "tools/answers/answer.hpp"
#include "tools/base/json.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/inputs/training_budget.hpp"
#include "traces/json/tree.hpp"

namespace stageline::answers {
namespace {

const std::string request_name = "the request";

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
    std::vector<std::string> optional;
    for (const SettingRow& row : setting_rows()) {
      if (row.of != SettingOf::chance && row.key != "trace") optional.emplace_back(row.key);
    }
    node_.check_keys({"trace"}, optional);
    Request request;
    for (const SettingRow& row : setting_rows()) {
      if (row.set == nullptr) continue;
      if (const auto found = node_.find(row.key)) set(row, *found, request.setting);
    }
    const std::vector<std::string> schedules = schedule_texts();
    request.setting.schedules = read_schedules(schedules, /*quiet=*/true);
    request.notes = read_as_notes(schedules);
    if (const auto program = node_.find("program")) {
      if (!schedules.empty()) {
        node_.refuse("a program runs instead of a schedule; leave one of them out");
      }
      request.setting.schedules = {given_schedule(parse_program(program->text()))};
    }
    if (const auto within = node_.find("within")) {
      request.within = parse_within(within->text(), "\"within\"");
    }
    request.budget = budget();
    if (const auto timeline = node_.find("timeline")) request.timeline = timeline->boolean();
    return request;
  }

 private:
  const JsonValue& root_;
  const JsonNode& node_;

  void set(const SettingRow& row, const JsonNode& node, SettingRequest& setting) const {
    const SettingValue value = value_of(row, node);
    try {
      row.set(value, setting);
    } catch (const std::invalid_argument& error) {
      node.refuse(error.what());
    }
  }

  SettingValue value_of(const SettingRow& row, const JsonNode& node) const {
    SettingValue value{json_string(std::string(row.key)), {}, {}};
    const auto whole = [&](const JsonNode& one) {
      value.counts.push_back(static_cast<int>(one.whole(1, row.most)));
    };
    switch (row.form) {
      case SettingForm::text:
      case SettingForm::word:
        value.texts = {node.text()};
        break;
      case SettingForm::file:
        value.texts = {name_or_object(row.key)};
        break;
      case SettingForm::texts:
        value.texts = texts_of(node);
        break;
      case SettingForm::count:
        whole(node);
        break;
      case SettingForm::counts:
        if (node.is_list()) {
          for (const JsonNode& item : node.items()) whole(item);
        } else {
          whole(node);
        }
        break;
      case SettingForm::number:
        value.number = node.number();
        break;
      case SettingForm::yes:
        value.yes = node.boolean();
        break;
      case SettingForm::amount:
        value.texts = {amount_of(node)};
        break;
    }
    return value;
  }

  static std::vector<std::string> texts_of(const JsonNode& node) {
    if (!node.is_list()) return {node.text()};
    std::vector<std::string> texts;
    for (const JsonNode& item : node.items()) texts.push_back(item.text());
    if (texts.empty()) node.refuse("give at least one, or leave it out");
    return texts;
  }

  static std::string amount_of(const JsonNode& node) {
    return node.kind() == JsonKind::text ? node.text() : fmt::format("{}", node.number());
  }

  std::string name_or_object(std::string_view key) const {
    for (std::size_t i = 0; i < root_.keys.size(); ++i) {
      if (root_.keys[i] == key && root_.items[i].kind == JsonKind::object) {
        return as_text(root_.items[i]);
      }
    }
    return node_.text_or_empty(key);
  }

  TrainingBudget budget() const {
    TrainingBudget budget;
    if (const auto tokens = node_.find("tokens")) {
      budget.tokens = parse_tokens(amount_of(*tokens), "\"tokens\"");
    }
    if (const auto price = node_.find("price")) {
      if (!(budget.tokens > 0)) price->refuse("a price needs \"tokens\", those to train on");
      budget.price_per_hour = checked_price(price->number(), "\"price\"");
    }
    return budget;
  }

  std::vector<std::string> schedule_texts() const {
    const auto one = node_.find("schedule");
    const auto many = node_.find("schedules");
    if (one && many) node_.refuse("\"schedule\" and \"schedules\" exclude each other");
    if (one) return {one->text()};
    return many ? texts_of(*many) : std::vector<std::string>{};
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

}  // namespace stageline::answers
