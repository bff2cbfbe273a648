// Finds the source of a trace and reads it.
#include "tools/inputs/traces.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_models/batch.hpp"
#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "cost_models/transformers/language_spelling.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/bundled.hpp"
#include "tools/inputs/clusters.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "traces/json/tree.hpp"
#include "traces/simai/workload.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

bool is_priced(std::string_view text) { return text.starts_with("model:"); }

// "model:resnet50@h100,batch=32" with another batch size.
std::string with_option(const std::string& spec, std::string_view option, std::int64_t value) {
  std::string text;
  std::size_t at = 0;
  while (at <= spec.size()) {
    const std::size_t end = std::min(spec.find(',', at), spec.size());
    const std::string item = spec.substr(at, end - at);
    if (!item.starts_with(fmt::format("{}=", option))) text += (text.empty() ? "" : ",") + item;
    at = end + 1;
  }
  return fmt::format("{},{}={}", text, option, value);
}

// A language model refuses it by itself.
void check_kind(const Calibration& calibration, const std::string& trace) {
  const std::string kind = priced_device(trace);
  if (is_calibrated_for(calibration, kind)) return;
  throw UsageError(
      fmt::format("the calibration is of {0}, and the model is priced for {1}; calibrate on "
                  "points of {1}, or leave the calibration out",
                  calibration.kind, kind));
}

// What flags say of the software, as the spelling says it; refused where both do.
std::string with_software(std::string spec, const TraceRequest& request) {
  if (!request.software.empty()) spec += ",software=" + request.software;
  if (!request.cuda_graphs.empty()) spec += ",graphs=" + request.cuda_graphs;
  if (!request.cp_comm_type.empty()) spec += ",cp_exchange=" + request.cp_comm_type;
  return spec;
}

void check_software(const TraceRequest& request) {
  const std::string_view flag = !request.software.empty()       ? "software"
                                : !request.cuda_graphs.empty()  ? "cuda-graphs"
                                : !request.cp_comm_type.empty() ? "cp-comm-type"
                                                                : "";
  if (flag.empty() || has_kernels(request.text)) return;
  throw UsageError(
      fmt::format("--{} is of a language model, whose kernels are priced (model:NAME@DEVICE), and "
                  "the times of \"{}\" are as they are; leave it out",
                  flag, request.text));
}

// What a priced model is priced with.
struct PricedInputs {
  std::string spec;
  std::vector<DeviceKind> kinds;
  LanguageInputs language;
};

PricedInputs priced_inputs(const std::string& text, const TraceRequest& request) {
  PricedInputs inputs{with_software(text, request), request.more_kinds, {}};
  for (const DeviceKind& kind : known_kinds()) inputs.kinds.push_back(kind);
  if (const std::string file = config_file_of(text); !file.empty()) {
    inputs.language.config = read_text(file);
  }
  if (request.calibration) inputs.language.calibration = &*request.calibration;
  if (request.batch > 0) inputs.spec = with_option(inputs.spec, "batch", request.batch);
  if (!request.documents.empty()) {
    inputs.spec = with_option(inputs.spec, "seq", tokens_of(request.documents));
  }
  if (request.documents.size() > 1) inputs.language.documents = request.documents;
  return inputs;
}

std::vector<Model> price(const std::string& text, const std::string&, const TraceRequest& request) {
  const PricedInputs inputs = priced_inputs(text, request);
  std::vector<Model> models{
      priced_model(inputs.spec, inputs.kinds, request.sharding, inputs.language, request.slice)};
  if (request.calibration) check_kind(*request.calibration, text);
  return models;
}

constexpr std::string_view uniform_prefix = "uniform:";

bool is_uniform(std::string_view text) {
  return text.starts_with(uniform_prefix) || text == "uniform";
}

std::vector<Model> make_uniform(const std::string& text, const std::string&, const TraceRequest&) {
  return {uniform_model(text.substr(std::min(text.size(), uniform_prefix.size())))};
}

// Before the first " -- " of a profile there is a node's name only; JSON begins with a brace.
bool is_profile(std::string_view content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] != '{' &&
         content.find(" -- ") != std::string_view::npos;
}

std::vector<Model> read_profile(const std::string& content, const std::string& file,
                                const TraceRequest& request) {
  return {read_pipedream_profile(content, file, request.profile_batch)};
}

std::vector<Model> read_simai(const std::string& content, const std::string& file,
                              const TraceRequest&) {
  return {read_workload(content, file)};
}

// Last: the errors of its reader describe any file that is no trace.
bool is_any(std::string_view) { return true; }

std::vector<Model> read_native(const std::string& content, const std::string& file,
                               const TraceRequest&) {
  return read_trace(content, file);
}

constexpr TraceSource sources[] = {
    {"model", "model:NAME@DEVICE[,batch=N…]",
     "a shape priced by a roofline, or a language model by its kernels", true, false, is_priced,
     price},
    {"uniform", "uniform:…", "equal layers in a chain", false, false, is_uniform, make_uniform},
    {"pipedream", "", "a PipeDream profile, graph.txt", false, true, is_profile, read_profile},
    {"simai", "", "a workload of SimAI or ASTRA-sim 1.0, a row a layer", false, false, is_workload,
     read_simai},
    {"native", "", "a trace of our own, JSON", false, false, is_any, read_native},
};

// The nearest trace; of a model without its prefix ("llama3-8b@h100") how it is written.
std::string meant(const std::string& text, const std::vector<std::string>& known) {
  const std::string name = text.substr(0, text.find_first_of("@,"));
  const bool priced = text.find('@') != std::string::npos;
  std::string trace = priced ? "" : did_you_mean(text, known);
  const std::vector<std::string> shapes = model_names();
  const bool is_shape = std::find(shapes.begin(), shapes.end(), name) != shapes.end();
  if (!trace.empty() || (!is_shape && !is_language_model(name))) return trace;
  if (!priced && name.ends_with(".json")) return "";  // a file that is not there
  if (priced) return fmt::format(" (did you mean \"model:{}\"?)", text);
  return fmt::format(" (a model is written model:{}@DEVICE)", name);
}

[[noreturn]] void refuse_name(const std::string& text) {
  const std::vector<std::string> known = bundled_names(bundled_traces());
  std::string spellings;
  for (const TraceSource& source : sources) {
    if (!source.spelling.empty()) spellings += fmt::format("{}, ", source.spelling);
  }
  throw UsageError(fmt::format(
      "there is no trace \"{}\"{}; a trace is a file, {}or a bundled one; see `stageline list traces`",
      text, meant(text, known), spellings));
}

// A model's config.json from Hugging Face, and no trace.
bool is_config(const std::string& text) {
  const auto has = [&](const char* key) { return text.find(key) != std::string::npos; };
  return text.starts_with('{') && has("\"model_type\"") && !has("\"format\"");
}

// The text of a trace file, unpacked. Refuses files of other kinds, and says where they belong.
std::string trace_text(const std::string& file) {
  Content content = read_content(file);
  if (content.format == nullptr) {
    std::string text = std::move(content.named.text);
    if (is_program_text(text)) {
      throw UsageError(fmt::format(
          "{0} is a program, not a trace; `stageline simulate TRACE --program {0}` takes it",
          file));
    }
    if (file.ends_with(".json") && is_config(text)) {
      throw UsageError(fmt::format(
          "{0} is the config.json of a language model, not a trace; it is read as model:{0}@h100",
          file));
    }
    return text;
  }
  if (content.format->by_rank) {
    throw UsageError(fmt::format(
        "{0} is a profile of PyTorch, not a trace; make one of the profiles of all ranks by "
        "`stageline import kineto {0} … --out trace.json`",
        file));
  }
  throw UsageError(fmt::format(
      "{} is a timeline ({}), not a trace; `stageline overlay` and `stageline diff` read it", file,
      content.format->summary));
}

// A source and what it reads.
struct Found {
  const TraceSource* source = nullptr;
  std::string text;
  std::string file;
};

Found find_source(const std::string& text) {
  for (const TraceSource& source : sources) {
    if (!source.spelling.empty() && source.recognises(text)) return {&source, text, text};
  }
  Found found{nullptr, "", text};
  if (text.starts_with('{')) {
    found.text = text;
    found.file = "the trace";
  } else if (is_input_file(text)) {
    found.text = trace_text(text);
  } else if (const Bundled* const bundled = find_bundled(bundled_traces(), text)) {
    found.text = bundled->text;
  } else {
    refuse_name(text);
  }
  for (const TraceSource& source : sources) {
    if (!source.spelling.empty() || !source.recognises(found.text)) continue;
    found.source = &source;
    break;
  }
  return found;
}

std::vector<Model> read_sizes(const Found& found, const TraceRequest& request) {
  check_software(request);
  if (request.profile_batch != 0 && !found.source->takes_batch) {
    throw UsageError(
        fmt::format("--batch is for a PipeDream profile, which does not say its own, and \"{}\" is "
                    "none; leave it out",
                    request.text));
  }
  return found.source->read(found.text, found.file, request);
}

// A file of another format is named before its keys are looked at.
void check_is_calibration(const std::string& text, const std::string& file) {
  constexpr std::string_view prefix = "stageline-calibration ";
  const JsonValue value = parse_json(text, file);
  if (value.kind != JsonKind::object) return;
  const auto format = JsonNode(value, "", file).find("format");
  if (!format) return;
  const std::string name = format->text();
  if (name.starts_with(prefix)) return;
  format->refuse(fmt::format("a calibration has \"{}1\" here, not {}", prefix, in_quotes(name)));
}

}  // namespace

std::span<const TraceSource> trace_sources() { return sources; }

std::vector<Model> open_trace_sizes(const TraceRequest& request) {
  return read_sizes(find_source(request.text), request);
}

Model open_trace(const TraceRequest& request) {
  const Found found = find_source(request.text);
  std::vector<Model> sizes = read_sizes(found, request);
  if (request.batch > 0 && !found.source->makes_batches) return at_batch(sizes, request.batch);
  // Several sizes and no wish: the largest, where fixed costs weigh least.
  if (sizes.size() > 1) {
    std::string list;
    for (const Model& size : sizes)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", size.batch);
    sizes.back().provenance.notes.push_back(
        request.all_sizes
            ? fmt::format("the trace was measured at batch sizes {}", list)
            : fmt::format(
                  "the trace was measured at batch sizes {}; {} is taken, --microbatch-size "
                  "chooses another",
                  list, sizes.back().batch));
  }
  return std::move(sizes.back());
}

std::vector<LayerKernelTimes> open_kernels(const TraceRequest& request) {
  if (!has_kernels(request.text)) return {};
  const PricedInputs inputs = priced_inputs(request.text, request);
  return priced_kernels(inputs.spec, inputs.kinds, request.sharding, inputs.language);
}

std::optional<Calibration> open_calibration(const std::string& file) {
  if (file.empty()) return std::nullopt;
  if (file.starts_with('{')) return read_calibration(file, "the calibration");
  const std::string text = read_text(file);
  check_is_calibration(text, file);
  return read_calibration(text, file);
}

bool is_calibrated_for(const Calibration& calibration, std::string_view kind) {
  return kind == calibration.kind || kind.substr(0, kind.find('-')) == calibration.kind;
}

std::string no_effect_on_kernels(const TraceRequest& request, const Model& model) {
  if (!request.calibration || has_kernels(request.text)) return "";
  KernelRates usual = rates_of(request.calibration->kind).rates;
  usual.nvlink = request.calibration->rates.nvlink;
  usual.network = request.calibration->rates.network;
  if (request.calibration->rates == usual) return "";
  return fmt::format(
      "the calibration's rates of kernels have no effect: {} {}",
      model.name.empty() ? "the model" : model.name,
      is_priced(request.text) ? "is priced by a roofline, not by kernels" : "has times of its own");
}

bool has_kernels(const std::string& trace) {
  constexpr std::size_t prefix = std::string_view("model:").size();
  if (!is_priced(trace)) return false;
  return !config_file_of(trace).empty() ||
         is_language_model(trace.substr(prefix, trace.find_first_of("@,") - prefix));
}

bool prices_slices(const TraceRequest& request) { return is_priced(request.text); }

std::string priced_device(const std::string& trace) {
  if (!is_priced(trace)) return "";
  const std::string head = trace.substr(0, trace.find(','));
  const std::size_t at = head.rfind('@');
  return at == std::string::npos ? "" : head.substr(at + 1);
}

}  // namespace stageline
