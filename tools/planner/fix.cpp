// One item of --fix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/planner/planner.hpp"

namespace stageline::planner {
namespace {

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> all;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Whole numbers from 1.
std::vector<int> numbers(const std::string& key, const std::vector<std::string>& texts) {
  std::vector<int> all;
  for (const std::string& text : texts) {
    const int value = parse_number<int>(text).value_or(0);
    if (value < 1) {
      throw UsageError(fmt::format(
          "--fix {}= takes whole numbers from 1, such as {}=4|8 (not \"{}\")", key, key, text));
    }
    all.push_back(value);
  }
  return all;
}

bool yes_or_no(const std::string& key, const std::vector<std::string>& texts) {
  if (texts.size() == 1 && (texts[0] == "yes" || texts[0] == "no")) return texts[0] == "yes";
  throw UsageError(fmt::format("--fix {}= is yes or no (not \"{}\")", key, fmt::join(texts, "|")));
}

using Texts = std::vector<std::string>;
struct FixKey {
  std::string_view key;  // of the settings, whose flag names it, or of the space alone
  void (*set)(PlanSpace& space, const std::string& key, const Texts& texts);
};

template <std::vector<int> PlanSpace::*member>
void set_numbers(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.*member = numbers(key, texts);
}

void set_zero(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.zero.clear();
  for (const std::string& text : texts) {
    space.zero.push_back(parse_zero(text, fmt::format("--fix {}=", key)));
  }
}

void set_schedules(PlanSpace& space, const std::string&, const Texts& texts) {
  space.schedules = read_schedules(texts, /*quiet=*/true);
}

void set_recomputation(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.recomputation.clear();
  for (const std::string& text : texts) {
    Recomputation rebuilt;
    // Parts for the same stages are meant as alternatives: only the last of them would count.
    const std::string what = fmt::format("--fix {}= (bars are between values to search)", key);
    if (text != "none") rebuilt = parse_recomputation(text, what);
    space.recomputation.push_back(std::move(rebuilt));
  }
}

void set_offloading(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.offloading.clear();
  for (const std::string& text : texts) {
    Offloading copied;
    if (text != "none") copied = parse_offloading(text, fmt::format("--fix {}=", key));
    space.offloading.push_back(std::move(copied));
  }
}

// A layout in Megatron's notation has bars of its own.
void set_partitions(PlanSpace& space, const std::string&, const Texts& texts) {
  const std::string whole = fmt::format("{}", fmt::join(texts, "|"));
  const bool layout =
      whole.find_first_not_of("EtmL*|(),0123456789") == std::string::npos && whole.front() == 'E';
  space.partitions = layout ? Texts{whole} : texts;
}

void set_sequence_parallel(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.sequence_parallel = yes_or_no(key, texts);
}

void set_comm_types(PlanSpace& space, const std::string&, const Texts& texts) {
  space.cp_comm_type = texts;
}

void set_asynchronous(PlanSpace& space, const std::string& key, const Texts& texts) {
  space.asynchronous = yes_or_no(key, texts);
}

constexpr std::array<FixKey, 16> fix_keys{{
    {"devices", set_numbers<&PlanSpace::devices>},
    {"tp", set_numbers<&PlanSpace::tensor>},
    {"cp", set_numbers<&PlanSpace::context>},
    {"cp_comm_type", set_comm_types},
    {"ep", set_numbers<&PlanSpace::expert>},
    {"etp", set_numbers<&PlanSpace::expert_tensor>},
    {"dp", set_numbers<&PlanSpace::data>},
    {"pp", set_numbers<&PlanSpace::pipeline>},
    {"microbatch_size", set_numbers<&PlanSpace::microbatch_size>},
    {"zero", set_zero},
    {"schedule", set_schedules},
    {"recompute", set_recomputation},
    {"offload", set_offloading},
    {"partition", set_partitions},
    {"sequence_parallel", set_sequence_parallel},
    {"asynchronous", set_asynchronous},
}};

std::string name_of(const FixKey& key) {
  const SettingRow* const row = find_setting(key.key);
  return row == nullptr ? std::string(key.key) : row->flag().substr(2);
}

}  // namespace

std::vector<std::string> fix_names() {
  std::vector<std::string> names;
  for (const FixKey& key : fix_keys) names.push_back(name_of(key));
  return names;
}

void fix(PlanSpace& space, const std::string& item) {
  const std::vector<std::string> known = fix_names();
  const std::size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const auto found = std::find_if(fix_keys.begin(), fix_keys.end(),
                                  [&](const FixKey& key) { return name_of(key) == name; });
  if (found == fix_keys.end()) {
    throw UsageError(fmt::format("--fix knows no \"{}\" (there are {}){}", name,
                                 fmt::join(known, ", "), did_you_mean(name, known)));
  }
  if (equals == std::string::npos || equals + 1 == item.size()) {
    throw UsageError(
        fmt::format("--fix {} wants a value, as in --fix tp=4|8; it is \"{}\"", name, item));
  }
  found->set(space, name, alternatives(item.substr(equals + 1)));
}

}  // namespace stageline::planner
