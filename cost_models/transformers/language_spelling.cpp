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

#include "cost_models/network/chips.hpp"
#include "cost_models/network/dispatch.hpp"
#include "cost_models/spec.hpp"
#include "cost_models/transformers/attention_rates.hpp"
#include "cost_models/transformers/context_exchange.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view open_name = "transformer";
constexpr std::int64_t longest_sequence = 1 << 24;  // tokens
constexpr double most_imbalance = 1024;
constexpr std::int64_t most_padding = 4096;  // rows of an expert
constexpr int most_predictions = 16;
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

double capacity_of(const std::string& text) {
  static constexpr std::string_view rule = "a number above 0 and up to 1024";
  const double value = real_number("capacity", text, rule);
  if (value > 0 && value <= most_imbalance) return value;
  throw UsageError(fmt::format("capacity must be {}, not {}", rule, text));
}

// "deepep"; NCCL is none.
std::string dispatcher_called(const std::string& text) {
  if (text == plain_dispatch) return "";
  const std::vector<std::string> words = dispatch_words();
  if (find_dispatcher(text) != nullptr) return text;
  throw UsageError(fmt::format("dispatch is one of {} (not \"{}\"{})", fmt::join(words, ", "), text,
                               did_you_mean(text, words)));
}

// One of two numbers of bits or bytes: whether it is the first.
bool is_first(std::string_view key, const std::string& text, const std::string& first,
              const std::string& second) {
  if (text == first) return true;
  if (text == second) return false;
  throw UsageError(fmt::format("{} is {} or {}, not {}", key, first, second, text));
}

// Megatron-LM's loss makes its gradients where its probabilities were, and casts them
// (core/tensor_parallel/cross_entropy.py, counted as 4 bytes). torch's cross_entropy() of
// logits.float() keeps the logarithms of the probabilities, and its backward makes their gradients
// (nll_loss) before those of the logits (log_softmax): 4 bytes each. Of logits that ranks share,
// its loss_parallel() makes the one, the probabilities, and their sum
// (torch/distributed/tensor/parallel/loss.py, read 2026-11-30).
void set_loss(LanguageForm& form, const std::string& text) {
  form.fused_loss = text == "fused";
  form.loss_gradient_bytes = text == "torch" ? 8 : 4;
  form.split_loss_gradient_bytes = text == "torch" ? 12 : 4;
  if (form.fused_loss || text == "plain" || text == "torch") return;
  throw UsageError(fmt::format("loss is one of plain, torch, fused (not \"{}\"{})", text,
                               did_you_mean(text, {"plain", "torch", "fused"})));
}

// 0 is none.
int predictions_of(const std::string& text) {
  const auto value = parse_number<int>(text);
  if (value && *value >= 0 && *value <= most_predictions) return *value;
  throw UsageError(
      fmt::format("mtp is the number of modules that predict one more token each, from 0 to {}, "
                  "not {}",
                  most_predictions, text));
}

// 0 as well.
std::int64_t blocks_of(const std::string& key, const std::string& value) {
  return value == "0" ? 0 : whole_number(key, value, most_blocks);
}

double tp_overlap_of(const std::string& text) {
  static constexpr std::string_view rule = "a share from 0 to 1";
  const double value = real_number("tp_overlap", text, rule);
  if (value >= 0 && value <= 1) return value;
  throw UsageError(fmt::format("tp_overlap must be {}, not {}", rule, text));
}

TransformerConfig config_called(const std::string& name, const std::string& config) {
  if (is_config_file(name)) return read_hugging_face(config, name);
  if (same_name(name, open_name)) return open_form();
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

std::string_view name(CudaGraphs graphs) {
  switch (graphs) {
    case CudaGraphs::none:
      return "none";
    case CudaGraphs::partial:
      return "partial";
    case CudaGraphs::full:
      return "full";
  }
  return "none";  // unreachable; g++ wants it
}

bool is_language_model(std::string_view name) {
  return is_config_file(name) || same_name(name, open_name) || find_family(name) != nullptr;
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
    : config_(config_called(name, config)), open_(same_name(name, open_name)) {}

std::vector<std::string> LanguageSpelling::options() {
  std::vector<std::string> names = transformer_options();
  names.insert(names.end(), {"seq",
                             "tp",
                             "cp",
                             "ep",
                             "etp",
                             "sp",
                             "attention",
                             "fused",
                             "dropout",
                             "alignment",
                             "graphs",
                             "tp_overlap",
                             "cp_exchange",
                             "cp_balance",
                             "bf16_start",
                             "bf16_end",
                             "software",
                             "loss",
                             "mtp",
                             "imbalance",
                             "capacity",
                             "expert_padding",
                             "dispatch",
                             "dispatch_bits",
                             "main_gradients"});
  for (const KernelConstant& constant : kernel_constants()) {
    // The optimizer's time a parameter has no word here: optimizer=adam is the algorithm.
    if (constant.name != "optimizer") names.emplace_back(constant.name);
  }
  return names;
}

bool LanguageSpelling::take_of_experts(const std::string& key, const std::string& value) {
  if (key == "imbalance") {
    form_.imbalance = imbalance_of(value);
  } else if (key == "capacity") {
    form_.capacity = capacity_of(value);
  } else if (key == "expert_padding") {
    form_.expert_padding = static_cast<int>(whole_number(key, value, most_padding));
  } else if (key == "dispatch") {
    form_.dispatcher = dispatcher_called(value);
  } else if (key == "dispatch_bits") {
    form_.narrow_dispatch = is_first(key, value, "8", "16");
  } else if (key == "main_gradients") {
    form_.main_gradient_bytes = is_first(key, value, "bf16", "fp32") ? 2 : 4;
  } else {
    return false;
  }
  return true;
}

bool LanguageSpelling::take(const std::string& key, const std::string& value) {
  if (key == "software") {
    software_ = &find_software(value);
    set_of_software(software_->options);
    return true;
  }
  said_.push_back(key);
  return set(key, value);
}

// Its options are those of a spelling, of which any may be said otherwise.
void LanguageSpelling::set_of_software(std::string_view options) {
  for (const auto& [key, value] : parse_spec(fmt::format(",{}", options)).options) {
    if (std::find(said_.begin(), said_.end(), key) != said_.end()) continue;
    const std::size_t rates = rates_.size();
    set(key, value);
    if (rates_.size() > rates) rates_.back().of_software = true;
    of_software_ += fmt::format("{}{}={}", of_software_.empty() ? "" : ",", key, value);
  }
}

void LanguageSpelling::complete_software() {
  if (software_ != nullptr && completed(config_).experts) set_of_software(software_->experts);
}

bool LanguageSpelling::set(const std::string& key, const std::string& value) {
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
  } else if (key == "tp_overlap") {
    form_.tp_overlap = tp_overlap_of(value);
  } else if (key == "cp_exchange") {
    set_context_exchange(form_, value);
  } else if (key == "cp_balance") {
    form_.context_balanced = is_first(key, value, "zigzag", "none");
  } else if (key == "graphs") {
    form_.graphs = one_of(all_cuda_graphs, value, "graphs");
  } else if (key == "loss") {
    set_loss(form_, value);
  } else if (key == "mtp") {
    form_.predictions = predictions_of(value);
  } else if (take_of_experts(key, value)) {
    return true;
  } else if (const KernelConstant* const constant = constant_called(key)) {
    rates_.push_back({constant, rate_of(*constant, value)});
  } else {
    if (!set_option(config_, key, value, given_)) return false;
    given_.push_back(key);
  }
  return true;
}

// The software's dispatcher, on a chip that it does not run on: NCCL sends the tokens.
void LanguageSpelling::drop_foreign_dispatcher(const DeviceKind& device, LanguageForm& form,
                                               std::string& of_software) const {
  const Dispatcher* const by = find_dispatcher(form.dispatcher);
  if (by == nullptr || std::find(said_.begin(), said_.end(), "dispatch") != said_.end()) return;
  const Chip* const chip = chip_of(device.name);
  if (chip != nullptr && chip->generation >= by->oldest) return;
  const std::string option = fmt::format(",dispatch={}", by->name);
  if (const std::size_t at = of_software.find(option); at != std::string::npos) {
    of_software.erase(at, option.size());
  }
  form.dispatcher.clear();
}

// The software's attention, on a chip that nobody measured it on: fused, by no kernel in
// particular.
void LanguageSpelling::drop_unmeasured_attention(const DeviceKind& device, LanguageForm& form,
                                                 std::string& of_software) const {
  if (std::find(said_.begin(), said_.end(), "attention") != said_.end()) return;
  if (!has_curve(form.attention)) return;
  if (find_attention_curves(form.attention, device.name) != nullptr) return;
  const std::string option = fmt::format("attention={}", name(form.attention));
  form.attention = AttentionKernel::flash;
  if (const std::size_t at = of_software.find(option); at != std::string::npos) {
    of_software.replace(at, option.size(), "attention=flash");
  }
}

// The software's exchange, where there is none, or by a kernel that has all scores at once.
void LanguageSpelling::drop_idle_exchange(LanguageForm& form, std::string& of_software) const {
  if (std::find(said_.begin(), said_.end(), "cp_exchange") != said_.end()) return;
  if (form.sharding.context > 1 && form.attention != AttentionKernel::plain) return;
  const std::string option = fmt::format(",cp_exchange={}", exchange_text(form));
  if (const std::size_t at = of_software.find(option); at != std::string::npos) {
    of_software.erase(at, option.size());
  }
  form.context_exchange = ContextExchange::all_gather;
}

LanguageSpelling::Taken LanguageSpelling::taken(const DeviceKind& device,
                                                const Calibration* calibration) const {
  Taken taken{config_, form_, rates_for(device, calibration), of_software_};
  if (open_ && form_.seq > 0) taken.config.seq = form_.seq;
  taken.config = completed(std::move(taken.config));
  // The open form's table of positions is as long as its sequences.
  if (open_ && taken.config.positions == Positions::learned) {
    taken.config.places = std::max(taken.config.places, form_.seq);
  }
  drop_foreign_dispatcher(device, taken.form, taken.of_software);
  drop_unmeasured_attention(device, taken.form, taken.of_software);
  drop_idle_exchange(taken.form, taken.of_software);
  taken.form.fused = fused_.value_or(taken.form.attention != AttentionKernel::plain);
  for (const GivenRate& given : rates_) {
    taken.rates.rates.*given.constant->member = given.value;
    taken.rates.source += fmt::format("; {} {}", given.constant->name,
                                      given.of_software ? "of the software" : "as given");
  }
  return taken;
}

std::vector<LayerKernelTimes> LanguageSpelling::kernels(const DeviceKind& device,
                                                        const RooflineOptions& options,
                                                        const Calibration* calibration) const {
  const Taken all = taken(device, calibration);
  return language_kernels(all.config, all.form, device, options, all.rates.rates);
}

Model LanguageSpelling::priced(const DeviceKind& device, const RooflineOptions& options,
                               const Calibration* calibration) const {
  const Taken all = taken(device, calibration);
  const LanguageForm& form = all.form;
  const TakenRates& rates = all.rates;
  Model model = language_model(all.config, form, device, options, rates.rates, rates.source);
  if (software_ != nullptr) {
    model.provenance.notes.push_back(fmt::format("{}{}: {}, where nothing else is said",
                                                 software_note, software_->name, all.of_software));
  }
  if (!rates.note.empty()) model.provenance.notes.push_back(rates.note);
  const bool by_hand = std::any_of(rates_.begin(), rates_.end(),
                                   [](const GivenRate& given) { return !given.of_software; });
  if (calibration != nullptr && !by_hand) {
    for (const CalibratedRuns& runs : calibration->rests_on) {
      model.provenance.notes.push_back(calibrated_note(runs));
    }
  }
  for (const char* const key : {"expert_groups", "topk_groups"}) {
    const bool given = std::find(given_.begin(), given_.end(), key) != given_.end();
    if (!given || (!form.dispatcher.empty() && form.sharding.expert > 1)) continue;
    model.provenance.notes.push_back(fmt::format(
        "{} has no effect without a dispatcher that sends tokens by machine (dispatch) and --ep",
        key));
  }
  for (const GivenRate& given : rates_) {
    const bool by_curve = has_curve(form.attention);
    if ((given.constant->member == &KernelRates::attention_flash && by_curve) ||
        (given.constant->member == &KernelRates::attention_kernel && !by_curve)) {
      model.provenance.notes.push_back(fmt::format("{} has no effect with attention={}",
                                                   given.constant->name,
                                                   stageline::name(form.attention)));
    }
    if (!is_of_links(*given.constant)) continue;
    model.provenance.notes.push_back(
        fmt::format("{} is a rate of links, and changes no time of a layer", given.constant->name));
  }
  return model;
}

}  // namespace stageline
