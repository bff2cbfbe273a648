#include "tools/launch/titan_registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/python_values.hpp"

namespace stageline {
namespace {

// Defaults of torchtitan/config/configs.py and trainer.py, commit b5bcd76, 2026-08-21.
constexpr std::int64_t usual_tokens = 16384;  // of a micro-batch of a data-parallel rank
constexpr std::int64_t usual_context = 2048;
constexpr std::string_view usual_float8 = "rowwise";

// Models by the beginnings of their functions' names, the longest first.
constexpr std::array<std::string_view, 5> models{"deepseek_v3", "gpt_oss", "llama3", "llama2",
                                                 "qwen3"};

std::string place(const PythonValue& value) { return fmt::format("line {}", value.line); }

class Registry {
 public:
  Registry(const std::string& text, const std::string& file, const LaunchAdditions& additions)
      : python_(text, file), file_(file), additions_(additions) {}

  LaunchArguments read() {
    const std::string function = chosen();
    const PythonResult result = python_.result_of(function);
    for (const PythonUnread& one : result.unread) {
      if (one.may_set) {
        refuse(fmt::format("line {}", one.line),
               fmt::format("\"{}\" in {} may change what it returns, and is not read; write the "
                           "keywords that it leads to",
                           one.text, function));
      }
      add(fmt::format("\"{}\"", one.text), "true", fmt::format("line {}", one.line));
    }
    if (!is_configuration(result.value)) {
      refuse("", fmt::format("{} returns what is not read; it must return a call such as "
                             "Trainer.Config(…) with keywords",
                             function));
    }
    all_.file = file_;
    if (const std::string model = model_of(function); !model.empty()) add("model.name", model, "");
    for (const auto& [key, value] : result.value.items) take(key, value);
    take_batch(result.value);
    if (!result.value.find("activation_checkpoint")) take_recomputation(selective());
    return std::move(all_);
  }

 private:
  [[noreturn]] void refuse(const std::string& where, const std::string& why) const {
    throw TraceError(file_, where, why);
  }
  static bool is_configuration(const PythonValue& value) {
    return value.kind == PythonKind::call && value.text.ends_with(".Config");
  }
  static PythonValue selective() { return {PythonKind::call, "SelectiveAC.Config", {}, 0}; }

  std::string chosen() const {
    for (const auto& [name, value] : additions_) {
      if (name != "config") continue;
      const std::vector<std::string> known = python_.functions();
      if (std::find(known.begin(), known.end(), value) != known.end()) return value;
      refuse("", fmt::format("there is no function {}{}", value, did_you_mean(value, known)));
    }
    std::vector<std::string> found;
    for (const std::string& function : python_.functions()) {
      if (is_configuration(python_.result_of(function).value)) found.push_back(function);
    }
    if (found.size() == 1) return found[0];
    if (found.empty()) {
      refuse("", "no function of it without arguments returns a call such as Trainer.Config(…)");
    }
    refuse("", fmt::format("{} functions return a configuration; name one with --set config=NAME: "
                           "{}",
                           found.size(), fmt::join(found, ", ")));
  }

  // By the function's name, or the folder of config_registry.py.
  std::string model_of(const std::string& function) const {
    for (const std::string_view model : models) {
      const bool begins = function.starts_with(model);
      if (begins && (function.size() == model.size() || function[model.size()] == '_')) {
        return std::string(model);
      }
    }
    const std::filesystem::path path(file_);
    return path.filename() == "config_registry.py" ? path.parent_path().filename().string() : "";
  }

  void add(const std::string& name, const std::string& value, const std::string& where) {
    all_.given.push_back({name, value, where});
  }

  static std::string text_of(const std::string& path, const PythonValue& value) {
    if (value.kind == PythonKind::unread) {
      return fmt::format("\x01{}, which is computed: {}\x01", path, value.text);
    }
    if (value.kind != PythonKind::list) return value.text;
    std::string all;
    for (const auto& [key, item] : value.items) {
      all += (all.empty() ? "" : item.kind == PythonKind::list ? "|" : " ") + text_of(path, item);
    }
    return all;
  }

  // Each value by the path of its keywords.
  void flatten(const std::string& path, const PythonValue& value) {
    if (value.kind == PythonKind::none) return;
    if (value.kind != PythonKind::call) {
      add(path, text_of(path, value), place(value));
      return;
    }
    for (const auto& [key, item] : value.items) {
      if (!key.empty()) flatten(path + "." + key, item);
    }
  }

  void take(const std::string& key, const PythonValue& value) {
    if (key == "model_spec") {
      take_model(value);
    } else if (key == "activation_checkpoint") {
      take_recomputation(value);
    } else if (key == "compile") {
      take_compilation(value);
    } else if (key == "training" || key == "parallelism") {
      take_named(key, value);
    } else {
      flatten(key, value);
    }
  }

  void take_named(const std::string& key, const PythonValue& value) {
    if (value.kind != PythonKind::call) {
      refuse(place(value), fmt::format("{} is computed, and is not read: {}", key, value.text));
    }
    for (const auto& [name, item] : value.items) {
      const bool of_batch = name == "num_tokens_per_microbatch_per_dp_rank" ||
                            name == "max_context_length" || name == "num_pp_microbatches" ||
                            name == "num_tokens_per_train_step";
      if (!of_batch) flatten(key + "." + name, item);
    }
  }

  void take_model(const PythonValue& value) {
    const bool registry = value.kind == PythonKind::call && value.text == "model_registry";
    if (!registry || value.items.empty() || value.items[0].second.kind != PythonKind::text) {
      refuse(place(value), fmt::format("model_spec is not read: {}; it must be "
                                       "model_registry(\"8B\")",
                                       value.text));
    }
    add("model.flavor", value.items[0].second.text, place(value));
    for (const auto& [key, item] : value.items) {
      if (key == "converters") {
        for (const auto& converter : item.items) take_converter(converter.second);
        if (item.kind != PythonKind::list) refuse(place(item), "converters are not read");
      } else if (!key.empty()) {
        flatten("model_spec." + key, item);
      }
    }
  }

  void take_converter(const PythonValue& converter) {
    const bool float8 = converter.text == "Float8LinearConverter.Config";
    if (!float8 && converter.text != "MXFP8LinearConverter.Config") {
      refuse(
          place(converter),
          fmt::format("{} changes products or adds some, and is not read; leave it out, and give "
                      "dtype=… behind the model's name of the command that is written",
                      converter.text));
    }
    const PythonValue* const recipe = converter.find("recipe_name");
    add("model.converters", "float8", place(converter));
    add("float8.recipe_name",
        !float8             ? "mxfp8"
        : recipe == nullptr ? std::string(usual_float8)
                            : text_of("recipe_name", *recipe),
        place(converter));
    for (const char* const key : {"fqns", "filter_fqns"}) {
      if (const PythonValue* const names = converter.find(key)) flatten(key, *names);
    }
  }

  void take_recomputation(const PythonValue& value) {
    const std::string mode = "activation_checkpoint.mode";
    if (value.kind == PythonKind::none) {
      add(mode, "none", place(value));
    } else if (value.text == "FullAC.Config") {
      add(mode, "full", place(value));
    } else if (value.text == "SelectiveAC.Config") {
      add(mode, "selective", value.line > 0 ? place(value) : "");
      add("activation_checkpoint.selective_ac_option", "op", "");
    } else {
      refuse(place(value), fmt::format("activation_checkpoint is not read: {}; it may be "
                                       "FullAC.Config(), SelectiveAC.Config() and None",
                                       value.text));
    }
    flatten("activation_checkpoint", value);
  }

  // The model is compiled where its part is among the components, as it is by default.
  void take_compilation(const PythonValue& value) {
    const PythonValue* const components = value.find("components");
    for (const auto& [key, item] : value.items) {
      if (key == "enable_async_tensor_parallel") {
        flatten("parallelism." + key, item);
      } else if (key == "enable") {
        const bool model =
            components == nullptr ||
            std::any_of(components->items.begin(), components->items.end(),
                        [](const auto& part) { return part.second.text == "model"; });
        add("compile.enable", model ? text_of("compile.enable", item) : "false", place(item));
      } else if (key != "components") {
        flatten("compile." + key, item);
      }
    }
  }

  // As an addition says, or else the file.
  std::int64_t number_of(const PythonValue& root, const std::string& section,
                         const std::string& key, std::int64_t otherwise) const {
    const PythonValue* const of = root.find(section);
    const PythonValue* const said = of == nullptr ? nullptr : of->find(key);
    PythonValue value = said == nullptr ? PythonValue{} : *said;
    for (const auto& [name, text] : additions_) {
      if (name == section + "." + key) value = {PythonKind::number, text, {}, 0};
    }
    if (value.kind == PythonKind::none) return otherwise;
    const auto number = parse_number<std::int64_t>(value.text);
    if (value.kind == PythonKind::number && number && (*number > 0 || *number == -1)) {
      return *number;
    }
    refuse(value.line > 0 ? place(value) : "",
           fmt::format("{}.{} must be a whole number that is written out, not {}", section, key,
                       value.text));
  }

  // Tokens are sequences of the longest context here, as packing makes them.
  void take_batch(const PythonValue& root) {
    const std::int64_t tokens =
        number_of(root, "training", "num_tokens_per_microbatch_per_dp_rank", usual_tokens);
    const std::int64_t context = number_of(root, "training", "max_context_length", usual_context);
    const std::int64_t step = number_of(root, "training", "num_tokens_per_train_step", -1);
    const bool pipeline = number_of(root, "parallelism", "pipeline_parallel_degree", 1) > 1;
    const std::int64_t parts =  // without a pipeline the number is ignored
        pipeline ? number_of(root, "parallelism", "num_pp_microbatches", 1) : 1;
    if (context < 1 || tokens < context || tokens % context != 0 ||
        (step > 0 && step % context != 0)) {
      refuse("",
             fmt::format("a micro-batch of {} tokens{} is no whole number of sequences of {} "
                         "(max_context_length)",
                         tokens, step > 0 ? fmt::format(", or a step of {},", step) : "", context));
    }
    add("training.seq_len", fmt::format("{}", context), "");
    add("parallelism.pipeline_parallel_microbatch_size", fmt::format("{}", tokens / context), "");
    add("training.local_batch_size", fmt::format("{}", tokens / context * parts), "");
    if (step > 0) add("training.global_batch_size", fmt::format("{}", step / context), "");
  }

  PythonFile python_;
  const std::string& file_;
  const LaunchAdditions& additions_;
  LaunchArguments all_;
};

}  // namespace

bool is_titan_registry(const std::string& text) {
  return text.find("Trainer.Config") != std::string::npos && text.find("def ") != std::string::npos;
}

LaunchArguments read_titan_registry(const std::string& text, const std::string& file,
                                    const LaunchAdditions& additions) {
  return Registry(text, file, additions).read();
}

}  // namespace stageline
