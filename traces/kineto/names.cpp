// Rules for the names of ranges, and the presets.
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of std::regex itself where sanitizers are on (GCC bug 105562).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "traces/kineto/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <regex>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/text/visible.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

struct NamePattern {
  std::regex regex;
};

namespace {

constexpr std::size_t longest_name = 1000;  // bytes; std::regex recurses by the character
constexpr std::size_t longest_pattern = 1000;
constexpr std::size_t most_rules = 1000;

constexpr std::array<std::pair<std::string_view, RangeMeaning>, 13> range_words{{
    {"forward", RangeMeaning::forward},
    {"backward", RangeMeaning::backward},
    {"input_grad", RangeMeaning::input_grad},
    {"weight_grad", RangeMeaning::weight_grad},
    {"recompute", RangeMeaning::recompute},
    {"optimizer", RangeMeaning::optimizer},
    {"send_forward", RangeMeaning::send_forward},
    {"receive_forward", RangeMeaning::receive_forward},
    {"send_backward", RangeMeaning::send_backward},
    {"receive_backward", RangeMeaning::receive_backward},
    {"ignore", RangeMeaning::ignored},
    {"interleaved", RangeMeaning::interleaved},
    {"layer", RangeMeaning::layer},
}};

struct PresetRule {
  std::string_view preset;
  std::string_view pattern;
  RangeMeaning first;
  std::optional<RangeMeaning> second = std::nullopt;
};

// Names such as "schedules.py(308): forward_step" are Python functions, which torch.profiler
// records with with_stack=True. Sources:
// torch      PyTorch 2.13, torch/distributed/pipelining/schedules.py and stage.py
// megatron   Megatron-LM, megatron/core/pipeline_parallel/schedules.py and p2p_communication.py at
//            commit 4dabc623; the names with dashes are those of its timers
// deepspeed  DeepSpeed, deepspeed/runtime/pipe/engine.py (_INSTRUCTION_MAP) and schedule.py at
//            commit e787c163
constexpr PresetRule preset_rules[] = {
    {"torch", R"(^Forward (?<microbatch>\d+)$)", RangeMeaning::forward},
    {"torch", R"(^Backward (?<microbatch>\d+)$)", RangeMeaning::backward},
    {"torch", R"(distributed/pipelining/stage\.py\(\d+\): forward_one_chunk$)",
     RangeMeaning::forward},
    {"torch", R"(distributed/pipelining/stage\.py\(\d+\): backward_one_chunk$)",
     RangeMeaning::backward},

    {"megatron", "forward_backward_pipelining_with_interleaving", RangeMeaning::interleaved},
    {"megatron", R"(pipeline_parallel/schedules\.py\(\d+\): forward_step$|^forward-compute$)",
     RangeMeaning::forward},
    {"megatron", R"(pipeline_parallel/schedules\.py\(\d+\): backward_step$|^backward-compute$)",
     RangeMeaning::backward},
    {"megatron",
     R"(p2p_communication\.py\(\d+\): send_forward_recv_backward$|^forward-send-backward-recv$)",
     RangeMeaning::send_forward, RangeMeaning::receive_backward},
    {"megatron",
     R"(p2p_communication\.py\(\d+\): send_backward_recv_forward$|^backward-send-forward-recv$)",
     RangeMeaning::send_backward, RangeMeaning::receive_forward},
    {"megatron", R"(p2p_communication\.py\(\d+\): recv_forward$|^forward-recv$)",
     RangeMeaning::receive_forward},
    {"megatron", R"(p2p_communication\.py\(\d+\): recv_backward$|^backward-recv$)",
     RangeMeaning::receive_backward},
    {"megatron", R"(p2p_communication\.py\(\d+\): send_forward$|^forward-send$)",
     RangeMeaning::send_forward},
    {"megatron", R"(p2p_communication\.py\(\d+\): send_backward$|^backward-send$)",
     RangeMeaning::send_backward},
    {"megatron", R"(megatron/core/optimizer/\w+\.py\(\d+\): step$)", RangeMeaning::optimizer},

    {"deepspeed", R"((^|: |\.)_exec_forward_pass$|^ForwardPass(\(|$))", RangeMeaning::forward},
    {"deepspeed", R"((^|: |\.)_exec_backward_pass$|^BackwardPass(\(|$))", RangeMeaning::backward},
    {"deepspeed", R"((^|: |\.)_exec_optimizer_step$|^OptimizerStep(\(|$))",
     RangeMeaning::optimizer},
    {"deepspeed", R"((^|: |\.)_exec_send_activations$|^SendActivation(\(|$))",
     RangeMeaning::send_forward},
    {"deepspeed", R"((^|: |\.)_exec_recv_activations$|^RecvActivation(\(|$))",
     RangeMeaning::receive_forward},
    {"deepspeed", R"((^|: |\.)_exec_send_grads$|^SendGrad(\(|$))", RangeMeaning::send_backward},
    {"deepspeed", R"((^|: |\.)_exec_recv_grads$|^RecvGrad(\(|$))", RangeMeaning::receive_backward},
};

// A regular expression whose named groups have become numbered ones, which std::regex knows.
struct NumberedGroups {
  std::string pattern;
  std::size_t stage = 0;
  std::size_t microbatch = 0;
};

class GroupNumberer {
 public:
  explicit GroupNumberer(std::string_view pattern) : text_(pattern) {}

  NumberedGroups number() {
    while (at_ < text_.size()) step();
    return std::move(result_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      digits_end(at_ + 1);
      copy(2);
      return;
    }
    if (c == '{' && !in_class_) count();
    if (in_class_) {
      in_class_ = c != ']';
    } else if (c == '[') {
      in_class_ = true;
    } else if (c == '(') {
      open();
      return;
    }
    copy(1);
  }

  void open() {
    std::string_view rest = text_.substr(at_ + 1);
    if (!rest.starts_with('?')) {
      ++groups_;
      copy(1);
      return;
    }
    const std::size_t name = rest.starts_with("?P<") ? 3 : rest.starts_with("?<") ? 2 : 0;
    if (name == 0) {  // "(?:", "(?=", "(?!"
      copy(2);
      return;
    }
    rest.remove_prefix(name);
    const std::size_t end = rest.find('>');
    const std::string_view group = rest.substr(0, end);
    if (end == std::string_view::npos || (group != "stage" && group != "microbatch")) {
      throw UsageError(fmt::format(
          "a named group is (?<stage>…) or (?<microbatch>…), not \"(?<{}\"", head_of(group, 20)));
    }
    std::size_t& number = group == "stage" ? result_.stage : result_.microbatch;
    if (number > 0) throw UsageError(fmt::format("it has two groups named {}", group));
    number = ++groups_;
    result_.pattern += '(';
    at_ += 1 + name + end + 1;
  }

  // std::regex builds what is counted so many times, and goes through all of it by the character.
  void count() {
    constexpr int most = 100;
    const std::size_t end = digits_end(at_ + 1);
    std::string_view last = text_.substr(at_ + 1, end - at_ - 1);
    if (end < text_.size() && text_[end] == ',' && digits_end(end + 1) > end + 1) {
      last = text_.substr(end + 1, digits_end(end + 1) - end - 1);
    }
    copies_ *= std::max(1, parse_number<int>(last).value_or(1));
    if (copies_ > most) {
      throw UsageError(fmt::format(
          "the counts of a pattern, such as {{{}}}, multiply to {} at most", last, most));
    }
  }

  // Where the number at `begin` ends, which std::regex reads without looking for an overflow.
  std::size_t digits_end(std::size_t begin) const {
    constexpr std::size_t most = 4;
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", begin), text_.size());
    if (end - begin > most) {
      throw UsageError(fmt::format("a group's number or a count has at most {} digits, not {}",
                                   most, end - begin));
    }
    return end;
  }

  void copy(std::size_t bytes) {
    result_.pattern += text_.substr(at_, bytes);
    at_ += bytes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t groups_ = 0;
  bool in_class_ = false;
  int copies_ = 1;
  NumberedGroups result_;
};

NameRule compiled(std::string_view pattern, std::vector<RangeMeaning> meanings,
                  std::regex::flag_type more = {}) {
  if (pattern.empty() || pattern.size() > longest_pattern) {
    throw UsageError(
        fmt::format("a pattern has 1 to {} bytes (it has {})", longest_pattern, pattern.size()));
  }
  const NumberedGroups numbered = GroupNumberer(pattern).number();
  try {
    auto compiled = std::make_shared<NamePattern>();
    compiled->regex.assign(numbered.pattern, std::regex::ECMAScript | std::regex::optimize | more);
    return {std::move(compiled), std::move(meanings), numbered.stage, numbered.microbatch};
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("{} is not a regular expression (ECMAScript): {}",
                                 in_quotes(pattern), error.what()));
  }
}

std::vector<NameRule> rules_of(std::string_view preset) {
  std::vector<NameRule> rules;
  for (const PresetRule& rule : preset_rules) {
    if (rule.preset != preset) continue;
    std::vector<RangeMeaning> meanings{rule.first};
    if (rule.second) meanings.push_back(*rule.second);
    rules.push_back(compiled(rule.pattern, std::move(meanings)));
  }
  return rules;
}

const std::vector<RangeNames>& presets() {
  static const std::vector<RangeNames> all = [] {
    std::vector<RangeNames> list;
    for (const std::string& preset : name_presets()) list.emplace_back(preset, rules_of(preset));
    return list;
  }();
  return all;
}

using Found = std::match_results<std::string_view::const_iterator>;

bool is_found(std::string_view name, const std::regex& pattern, Found& found) {
  try {
    return std::regex_search(name.begin(), name.end(), found, pattern);
  } catch (const std::regex_error&) {
    throw UsageError(fmt::format("a pattern takes too long for the name {}; make it simpler",
                                 in_quotes(head_of(name, 100))));
  }
}

RangeMeaning meaning_of(const JsonNode& node) {
  const std::string word = node.text();
  const std::optional<RangeMeaning> meaning = range_meaning(word);
  if (!meaning) {
    node.refuse(fmt::format("{} is none of {}{}", in_quotes(word),
                            fmt::join(range_meaning_words(), ", "),
                            suggestion(word, range_meaning_words())));
  }
  return *meaning;
}

std::string_view word_of(RangeMeaning meaning) {
  const auto* const found =
      std::find_if(range_words.begin(), range_words.end(),
                   [meaning](const auto& word) { return word.second == meaning; });
  return found->first;  // every meaning has one
}

bool is_op_of_compute(RangeMeaning meaning) {
  switch (meaning) {
    case RangeMeaning::forward:
    case RangeMeaning::backward:
    case RangeMeaning::input_grad:
    case RangeMeaning::weight_grad:
    case RangeMeaning::recompute:
    case RangeMeaning::optimizer:
      return true;
    case RangeMeaning::send_forward:
    case RangeMeaning::receive_forward:
    case RangeMeaning::send_backward:
    case RangeMeaning::receive_backward:
    case RangeMeaning::ignored:
    case RangeMeaning::interleaved:
    case RangeMeaning::layer:
      return false;
  }
  return false;  // unreachable; g++ requires it
}

// Each meaning of a range has the whole of its time: messages may, ops of one lane would count it
// several times.
void check_together(const std::vector<RangeMeaning>& meanings, const JsonNode& is) {
  for (std::size_t i = 0; i < meanings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool both = is_op_of_compute(meanings[i]) && is_op_of_compute(meanings[j]);
      if (!both && meanings[i] != meanings[j]) continue;
      is.refuse(fmt::format(
          "one range cannot be {} and {}: its time would count twice; name a range for each, inside "
          "of this one, and leave this one out",
          word_of(meanings[j]), word_of(meanings[i])));
    }
  }
}

NameRule rule_of(const JsonNode& node) {
  node.check_keys({"pattern", "is"}, {});
  std::vector<RangeMeaning> meanings;
  const JsonNode is = node.at("is");
  if (is.is_list()) {
    for (const JsonNode& one : is.items()) meanings.push_back(meaning_of(one));
    if (meanings.empty()) is.refuse("a rule needs at least one meaning");
    check_together(meanings, is);
  } else {
    meanings.push_back(meaning_of(is));
  }
  const JsonNode pattern = node.at("pattern");
  try {
    return name_rule(pattern.text(), std::move(meanings));
  } catch (const UsageError& error) {
    pattern.refuse(error.what());
  }
}

}  // namespace

std::optional<RangeName> RangeNames::find(std::string_view name) const {
  if (name.size() > longest_name) return {};
  Found found;
  for (const NameRule& rule : rules_) {
    if (!is_found(name, rule.pattern->regex, found)) continue;
    RangeName result{rule.meanings, {}, {}};
    if (rule.stage_group > 0) result.stage = found[rule.stage_group].str();
    if (rule.microbatch_group > 0) result.microbatch = found[rule.microbatch_group].str();
    return result;
  }
  return {};
}

NameRule name_rule(std::string_view pattern, std::vector<RangeMeaning> meanings) {
#ifdef __GLIBCXX__
  // Backtracking takes 2ⁿ steps for "(a*)*b" of n letters. It is three times as fast for patterns
  // without such nests, as those of the presets are.
  return compiled(pattern, std::move(meanings), std::regex_constants::__polynomial);
#else
  return compiled(pattern, std::move(meanings));  // libc++ gives up: error_complexity
#endif
}

std::optional<RangeMeaning> range_meaning(std::string_view word) {
  for (const auto& [text, meaning] : range_words) {
    if (text == word) return meaning;
  }
  return {};
}

std::vector<std::string> range_meaning_words() {
  std::vector<std::string> list;
  for (const auto& [text, meaning] : range_words) list.emplace_back(text);
  return list;
}

std::vector<std::string> name_presets() {
  std::vector<std::string> list;
  for (const PresetRule& rule : preset_rules) {
    if (list.empty() || list.back() != rule.preset) list.emplace_back(rule.preset);
  }
  return list;
}

const RangeNames& name_preset(std::string_view preset) {
  for (const RangeNames& names : presets()) {
    if (names.title() == preset) return names;
  }
  const std::vector<std::string> known = name_presets();
  throw UsageError(fmt::format("presets of names are {} (not {}{})", fmt::join(known, ", "),
                               in_quotes(preset), did_you_mean(std::string(preset), known)));
}

RangeNames read_range_names(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  const JsonNode root(value, "", file);
  root.check_keys({"format"}, {"preset", "rules"});
  constexpr std::string_view format = "stageline-names 1";
  if (root.at("format").text() != format) {
    root.at("format").refuse(fmt::format("this must be \"{}\"", format));
  }
  std::vector<NameRule> rules;
  if (const std::optional<JsonNode> list = root.find("rules")) {
    for (const JsonNode& node : list->items()) {
      if (rules.size() == most_rules) {
        list->refuse(fmt::format("a mapping has at most {} rules", most_rules));
      }
      rules.push_back(rule_of(node));
    }
  }
  if (const std::optional<JsonNode> preset = root.find("preset")) {
    try {
      const std::vector<NameRule>& more = name_preset(preset->text()).rules();
      rules.insert(rules.end(), more.begin(), more.end());
    } catch (const UsageError& error) {
      preset->refuse(error.what());
    }
  }
  if (rules.empty()) root.refuse("a mapping needs \"rules\" or a \"preset\"");
  return {file, std::move(rules)};
}

}  // namespace stageline
