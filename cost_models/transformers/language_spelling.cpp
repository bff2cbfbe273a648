// Takes the options of a language model and finds the rates to price it with.
#include "cost_models/transformers/language_spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/spec.hpp"
#include "cost_models/transformers/attention_rates.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::string_view open_name = "transformer";
constexpr std::int64_t longest_sequence = 1 << 24;  // tokens
constexpr double most_imbalance = 1024;
constexpr std::int64_t most_blocks = 1 << 20;

bool is_config_file(std::string_view name) { return name.ends_with(".json"); }

AttentionKernel attention_called(const std::string& text) {
  std::vector<std::string> known;
  for (const NamedAttention& one : attention_kernels()) {
    if (one.name == text) return one.kernel;
    known.emplace_back(one.name);
  }
  throw UsageError(fmt::format("attention is one of {} (not \"{}\"{})", fmt::join(known, ", "),
                               text, did_you_mean(text, known)));
}

double imbalance_of(const std::string& text) {
  static constexpr std::string_view rule = "a number from 1 to 1024";
  const double value = real_number("imbalance", text, rule);
  if (value >= 1 && value <= most_imbalance) return value;
  throw UsageError(fmt::format("imbalance must be {}, not {}", rule, text));
}

// 0 as well.
std::int64_t blocks_of(const std::string& key, const std::string& value) {
  return value == "0" ? 0 : whole_number(key, value, most_blocks);
}

TransformerConfig config_called(const std::string& name, const std::string& config) {
  if (is_config_file(name)) return read_hugging_face(config, name);
  if (name == open_name) return open_form();
  const FamilyMember* const member = find_family(name);
  if (member == nullptr) throw UsageError(fmt::format("no language model is called '{}'", name));
  return member->config;
}

const KernelConstant* constant_called(const std::string& key) {
  const auto constants = kernel_constants();
  const auto found = std::find_if(constants.begin(), constants.end(),
                                  [&](const KernelConstant& one) { return one.name == key; });
  return found == constants.end() ? nullptr : &*found;
}

// "0.7"; of a time also "28us".
double rate_of(const KernelConstant& constant, const std::string& text) {
  double value = 0;
  try {
    const bool time = constant.unit == "s" && !text.empty() && text.back() == 's';
    value = time ? to_seconds(parse_time(text)) : real_number(constant.name, text, "a number");
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}", constant.name, error.what()));
  }
  if (value >= constant.least && value <= constant.most) return value;
  throw UsageError(fmt::format("{} ({}) must be from {:g} to {:g}{}, not {}", constant.name,
                               constant.meaning, constant.least, constant.most,
                               constant.unit == "s" ? " s" : "", text));
}

bool is_of_links(const KernelConstant& constant) {
  return constant.member == &KernelRates::nvlink || constant.member == &KernelRates::network;
}

// "a100-40gb" is an a100.
bool is_of_kind(std::string_view calibrated, std::string_view kind) {
  return kind == calibrated || kind.substr(0, kind.find('-')) == calibrated;
}

TakenRates rates_for(const DeviceKind& device, const Calibration* calibration) {
  if (calibration != nullptr) {
    if (!is_of_kind(calibration->kind, device.name)) {
      throw UsageError(
          fmt::format("the calibration is of {0}, and the model is priced for {1}; calibrate on "
                      "points of {1}, or leave the calibration out",
                      calibration->kind, device.name));
    }
    return {calibration->rates,
            fmt::format("calibrated{}{}{}{}", calibration->date.empty() ? "" : " on ",
                        calibration->date, calibration->source.empty() ? "" : ": ",
                        calibration->source),
            ""};
  }
  return rates_of(device.name);
}

}  // namespace

bool is_language_model(std::string_view name) {
  return is_config_file(name) || name == open_name || find_family(name) != nullptr;
}

std::vector<std::string> language_model_names() {
  std::vector<std::string> names{std::string(open_name)};
  for (const FamilyMember& member : families()) names.push_back(member.config.name);
  return names;
}

bool take_link_rates(const std::string& spec, KernelRates& rates) {
  constexpr std::string_view prefix = "model:";
  if (!spec.starts_with(prefix)) return false;
  const Spec words = parse_spec(std::string_view(spec).substr(prefix.size()));
  if (!is_language_model(std::string_view(words.head).substr(0, words.head.rfind('@'))))
    return false;
  bool any = false;
  for (const auto& [key, value] : words.options) {
    const KernelConstant* const constant = constant_called(key);
    if (constant == nullptr || !is_of_links(*constant)) continue;
    rates.*constant->member = rate_of(*constant, value);
    any = true;
  }
  return any;
}

LanguageSpelling::LanguageSpelling(const std::string& name, const std::string& config)
    : config_(config_called(name, config)), open_(name == open_name) {}

std::vector<std::string> LanguageSpelling::options() {
  std::vector<std::string> names = transformer_options();
  names.insert(names.end(), {"seq", "tp", "cp", "ep", "etp", "sp", "attention", "fused", "dropout",
                             "alignment", "imbalance", "bf16_start", "bf16_end"});
  for (const KernelConstant& constant : kernel_constants()) {
    // The optimizer's time a parameter has no word here: optimizer=adam is the algorithm.
    if (constant.name != "optimizer") names.emplace_back(constant.name);
  }
  return names;
}

bool LanguageSpelling::take(const std::string& key, const std::string& value) {
  if (key == "seq") {
    form_.seq = whole_number(key, value, longest_sequence);
  } else if (key == "tp") {
    form_.sharding.tensor = parallel_degree(key, value);
  } else if (key == "cp") {
    form_.sharding.context = parallel_degree(key, value);
  } else if (key == "ep") {
    form_.sharding.expert = parallel_degree(key, value);
  } else if (key == "etp") {
    form_.sharding.expert_tensor = parallel_degree(key, value);
  } else if (key == "sp") {
    form_.sharding.sequence = yes_or_no(key, value);
  } else if (key == "attention") {
    form_.attention = attention_called(value);
  } else if (key == "fused") {
    fused_ = yes_or_no(key, value);
  } else if (key == "dropout") {
    form_.dropout = yes_or_no(key, value);
  } else if (key == "alignment") {
    form_.alignment = yes_or_no(key, value);
  } else if (key == "bf16_start") {
    form_.wide_start = blocks_of(key, value);
  } else if (key == "bf16_end") {
    form_.wide_end = blocks_of(key, value);
  } else if (key == "imbalance") {
    form_.imbalance = imbalance_of(value);
  } else if (const KernelConstant* const constant = constant_called(key)) {
    rates_.emplace_back(constant, rate_of(*constant, value));
  } else {
    if (!set_option(config_, key, value, given_)) return false;
    given_.push_back(key);
  }
  return true;
}

Model LanguageSpelling::priced(const DeviceKind& device, const RooflineOptions& options,
                               const Calibration* calibration) const {
  TransformerConfig config = config_;
  if (open_ && form_.seq > 0) config.seq = form_.seq;
  config = completed(std::move(config));
  // The open form's table of positions is as long as its sequences.
  if (open_ && config.positions == Positions::learned) {
    config.places = std::max(config.places, form_.seq);
  }
  LanguageForm form = form_;
  form.fused = fused_.value_or(form.attention != AttentionKernel::plain);
  TakenRates rates = rates_for(device, calibration);
  for (const auto& [constant, value] : rates_) {
    rates.rates.*constant->member = value;
    rates.source += fmt::format("; {} as given", constant->name);
  }
  Model model = language_model(config, form, device, options, rates.rates, rates.source);
  if (!rates.note.empty()) model.provenance.notes.push_back(rates.note);
  for (const auto& [constant, value] : rates_) {
    const bool by_curve = has_curve(form.attention);
    if ((constant->member == &KernelRates::attention_flash && by_curve) ||
        (constant->member == &KernelRates::attention_kernel && !by_curve)) {
      model.provenance.notes.push_back(fmt::format(
          "{} has no effect with attention={}", constant->name, stageline::name(form.attention)));
    }
    if (!is_of_links(*constant)) continue;
    model.provenance.notes.push_back(
        fmt::format("{} is a rate of links, and changes no time of a layer", constant->name));
  }
  return model;
}

}  // namespace stageline
