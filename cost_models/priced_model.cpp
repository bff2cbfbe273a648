// The spelling of a priced model: "model:gpt@h100,batch=8,layers=24".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cost_models/roofline.hpp"
#include "cost_models/spec.hpp"
#include "cost_models/transformers/language_spelling.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/letters.hpp"

namespace stageline {
namespace {

const DeviceKind& kind_called(const std::string& name, const std::string& model,
                              const std::vector<DeviceKind>& kinds) {
  std::vector<std::string> known;
  for (const DeviceKind& kind : kinds) {
    if (kind.name == name) return kind;
    if (std::find(known.begin(), known.end(), kind.name) == known.end()) known.push_back(kind.name);
  }
  // A sentence names a few; all of them are in the list.
  constexpr std::size_t most_named = 12;
  const std::string all = known.size() <= most_named
                              ? fmt::format("one of {}", fmt::join(known, ", "))
                              : "one of those that `stageline list` names";
  if (name.empty()) {
    throw UsageError(
        fmt::format("model {} needs a device to be priced for: write model:{}@DEVICE with {}",
                    model, model, all));
  }
  throw UsageError(
      fmt::format("no device is called '{}'{}; a device is {}, or a kind of a cluster file", name,
                  did_you_mean(name, known), all));
}

// "key=value" into the options that all priced models take. Returns false for another key.
bool take_common(const std::string& key, const std::string& value, RooflineOptions& options) {
  if (key == "batch") {
    options.batch = static_cast<int>(whole_number(key, value, std::numeric_limits<int>::max()));
  } else if (key == "dtype") {
    options.dtype = value;
  } else if (key == "optimizer") {
    options.optimizer = value;
  } else if (key == "efficiency") {
    options.efficiency = real_number(key, value, "a number above 0 and at most 1");
  } else if (key == "overhead") {
    try {
      options.overhead = parse_time(value);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("overhead: {}", error.what()));
    }
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void refuse_option(const std::string& model, const std::string& key,
                                std::vector<std::string> known) {
  known.insert(known.end(), {"batch", "dtype", "optimizer", "efficiency", "overhead"});
  throw UsageError(fmt::format("model {} has no option '{}' (there are {}){}", model, key,
                               fmt::join(known, ", "), did_you_mean(key, known)));
}

// "key=value" into the options it belongs to.
void take(const std::string& key, const std::string& value, const std::string& model,
          RooflineOptions& options, ShapeOptions& shape, TrainingForm& form) {
  if (take_common(key, value, options)) return;
  std::vector<std::string> known = model_options(model);
  if (has_forms(model)) known.insert(known.end(), {"tp", "cp", "sp", "dropout"});
  const auto is_known = [&] { return std::find(known.begin(), known.end(), key) != known.end(); };
  if (key == "tp") {
    form.sharding.tensor = parallel_degree(key, value);
  } else if (key == "cp") {
    form.sharding.context = parallel_degree(key, value);
  } else if (key == "ep") {
    form.sharding.expert = parallel_degree(key, value);
  } else if (key == "etp") {
    form.sharding.expert_tensor = parallel_degree(key, value);
  } else if (key == "sp" && is_known()) {
    form.sharding.sequence = yes_or_no(key, value);
  } else if (key == "dropout" && is_known()) {
    form.dropout = yes_or_no(key, value);
  } else if (is_known()) {
    shape[key] = whole_number(key, value);
  } else {
    refuse_option(model, key, std::move(known));
  }
}

// A degree that the spelling and a flag may both state, and else is the usual one.
void unite(int& degree, int asked, std::string_view word, const std::string& spec, int usual = 1) {
  if (asked == usual || asked == degree) return;
  if (degree != usual) {
    throw UsageError(
        fmt::format("'{}' says {}={}, and --{} is {}; state it once, or the same twice", spec, word,
                    degree, word, asked));
  }
  degree = asked;
}

// The degrees of other flags into those of the spelling.
void unite(Sharding& own, const Sharding& asked, const std::string& spec) {
  unite(own.tensor, asked.tensor, "tp", spec);
  unite(own.context, asked.context, "cp", spec);
  unite(own.expert, asked.expert, "ep", spec);
  unite(own.expert_tensor, asked.expert_tensor, "etp", spec, 0);
  if (!own.folded()) own.expert_tensor = 0;
  own.sequence = own.sequence || asked.sequence;
}

// Beside what other flags ask, which their own notes are about.
void note_without_effect(const Sharding& spelled, const Sharding& asked, Model& model) {
  if (!spelled.sequence || spelled.tensor > 1 || asked.tensor > 1) return;
  model.provenance.notes.emplace_back("sp=yes has no effect without tp");
}

std::string_view without_prefix(std::string_view spec) {
  static constexpr std::string_view prefix = "model:";
  return spec.substr(spec.starts_with(prefix) ? prefix.size() : 0);
}

// "gpt@h100" and "path/config.json@h100": a name, a shape's as we write it, and a device behind the
// last '@'.
struct PricedHead {
  std::string name;
  std::string device;  // empty: none
};

std::string name_of_shape(const std::string& typed) {
  for (std::string& name : model_names()) {
    if (same_name(name, typed)) return std::move(name);
  }
  return typed;
}

PricedHead split(const std::string& head) {
  const std::size_t at = head.rfind('@');
  if (at == std::string::npos) return {name_of_shape(head), ""};
  return {name_of_shape(head.substr(0, at)), head.substr(at + 1)};
}

// Throws unless it is a shape, with the nearest of all names.
void check_shape(const std::string& name) {
  std::vector<std::string> known = model_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string shapes = fmt::format("{}", fmt::join(known, ", "));
  for (std::string& language : language_model_names()) known.push_back(std::move(language));
  throw UsageError(
      fmt::format("no model is called '{}' (there are {}, transformer, language models such as "
                  "llama3-8b, and config.json files){}",
                  name, shapes, did_you_mean(name, known)));
}

// A language model as its spelling and the degrees of flags say.
struct SpelledLanguage {
  LanguageSpelling spelling;
  RooflineOptions options;
  Sharding spelled;  // degrees of the spelling alone
};

SpelledLanguage spelled_language(const PricedHead& head, const Spec& words,
                                 const Sharding& sharding, const LanguageInputs& inputs,
                                 const std::string& spec, const SequenceSlice& slice) {
  SpelledLanguage language{LanguageSpelling(head.name, inputs.config), {}, {}};
  LanguageSpelling& spelling = language.spelling;
  language.options.slice = slice;
  for (const auto& [key, value] : words.options) {
    if (key == "software") spelling.take(key, value);
  }
  for (const auto& [key, value] : words.options) {
    if (key == "software") continue;
    if (take_common(key, value, language.options) || spelling.take(key, value)) continue;
    refuse_option(head.name, key, LanguageSpelling::options());
  }
  spelling.complete_software();
  language.spelled = spelling.sharding();
  unite(spelling.sharding(), sharding, spec);
  return language;
}

}  // namespace

Model priced_model(const std::string& spec, const std::vector<DeviceKind>& kinds,
                   const Sharding& sharding, const LanguageInputs& language,
                   const SequenceSlice& slice) {
  const Spec words = parse_spec(without_prefix(spec));
  const PricedHead head = split(words.head);
  const bool is_language = is_language_model(head.name);
  if (!is_language) check_shape(head.name);  // before anything is said about its device
  const DeviceKind& kind = kind_called(head.device, head.name, kinds);
  if (is_language) {
    SpelledLanguage spelled = spelled_language(head, words, sharding, language, spec, slice);
    spelled.options.documents = language.documents;
    Model model = spelled.spelling.priced(kind, spelled.options, language.calibration);
    note_without_effect(spelled.spelled, sharding, model);
    return model;
  }
  RooflineOptions options;
  options.slice = slice;
  ShapeOptions shape;
  TrainingForm form;
  for (const auto& [key, value] : words.options) take(key, value, head.name, options, shape, form);
  const Sharding spelled = form.sharding;
  unite(form.sharding, sharding, spec);
  Model model = roofline(model_shape(head.name, shape, form), kind, options);
  note_without_effect(spelled, sharding, model);
  return model;
}

std::vector<LayerKernelTimes> priced_kernels(const std::string& spec,
                                             const std::vector<DeviceKind>& kinds,
                                             const Sharding& sharding,
                                             const LanguageInputs& language) {
  const Spec words = parse_spec(without_prefix(spec));
  const PricedHead head = split(words.head);
  if (!is_language_model(head.name)) return {};
  const DeviceKind& kind = kind_called(head.device, head.name, kinds);
  const SpelledLanguage spelled = spelled_language(head, words, sharding, language, spec, {});
  return spelled.spelling.kernels(kind, spelled.options, language.calibration);
}

std::string config_file_of(const std::string& spec) {
  const std::string name = split(parse_spec(without_prefix(spec)).head).name;
  return name.ends_with(".json") ? name : "";
}

std::string shape_of_spec(const std::string& spec) {
  const Spec words = parse_spec(without_prefix(spec));
  std::string shape = split(words.head).name;
  if (is_language_model(shape)) {
    throw UsageError(
        fmt::format("{} is priced by its kernels, and has no layers that can run; gpt has", shape));
  }
  const std::vector<std::string> own = model_options(shape);
  for (const auto& [key, value] : words.options) {
    if (std::find(own.begin(), own.end(), key) != own.end())
      shape += fmt::format(",{}={}", key, value);
  }
  return shape;
}

ModelShape parse_shape(const std::string& spec) {
  const Spec words = parse_spec(spec);
  ShapeOptions options;
  for (const auto& [key, value] : words.options) options[key] = whole_number(key, value);
  return model_shape(words.head, options);
}

}  // namespace stageline
