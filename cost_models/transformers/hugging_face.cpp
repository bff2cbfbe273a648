// Reads config.json of Hugging Face's transformers.
//
// Where a key is missing, the value is that of the configuration classes of transformers
// (src/transformers/models/*/configuration_*.py).
#include "cost_models/transformers/hugging_face.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "cost_models/transformers/family_reader.hpp"
#include "cost_models/transformers/family_table.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"
#include "cost_models/transformers/hugging_face_readers.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// The class of a model without a head, "MistralModel"; empty of one with the head of a language
// model. One with another head ("LlamaForSequenceClassification") has other sizes.
std::string class_without_head(const Keys& keys) {
  const std::vector<std::string> classes = keys.texts("architectures");
  if (classes.empty()) return "";
  const std::string& name = classes.front();
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("ForCausalLM") || has("LMHead")) return "";
  if (has("ForMaskedLM")) {
    const FamilyRow* const row = find_family_row(keys.type());
    if (row != nullptr && row->encoder) return "";
  }
  if (has("ForConditionalGeneration") && keys.holds("vision_config")) return "";
  if (has("For") || has("Heads")) {
    keys.refuse("architectures",
                fmt::format("{} has another head than a language model's, over the vocabulary; "
                            "remove architectures to price the language model of these sizes",
                            name));
  }
  return name;
}

// Letters in lower case, and digits.
std::string letters_of(std::string_view type) {
  std::string letters;
  for (const char c : type) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// A suggestion where the type is a known one in another spelling. The nearest by letters is another
// architecture: gemma is not gemma2, whose blocks have two more norms and a window.
std::string respelled(const std::string& type) {
  for (const std::string& known : hugging_face_types()) {
    if (letters_of(known) == letters_of(type)) {
      return fmt::format(" (did you mean \"{}\"?)", known);
    }
  }
  return "";
}

bool is_type(std::string_view type) {
  return find_family_row(type) != nullptr ||
         std::any_of(coded_readers().begin(), coded_readers().end(),
                     [&](const Reader& reader) { return reader.type == type; });
}

// The type that a class is of, "DeepseekV3ForCausalLM"; or "".
std::string_view type_of_class(std::string_view name) {
  for (const Reader& reader : coded_readers()) {
    if (reader.causal_class == name) return reader.type;
  }
  for (const FamilyRow& row : family_rows()) {
    if (row.causal_class == name) return row.type;
  }
  return "";
}

// The type that the file is read as: its own, one with the same keys, or that of its class.
std::string known_type(const Keys& keys) {
  if (!keys.has("model_type")) {
    keys.refuse("", "the key \"model_type\" is missing, which says how the others are read");
  }
  std::string type = keys.model_type();
  if (is_type(type)) return type;
  for (const TypeAlias& alias : type_aliases()) {
    if (alias.type == type) return std::string(alias.as);
  }
  for (const RefusedType& refused : refused_types()) {
    if (refused.type != type) continue;
    keys.refuse("model_type",
                fmt::format("model_type \"{}\" is not priced: {}", type, refused.why));
  }
  const std::vector<std::string> classes = keys.texts("architectures");
  if (!classes.empty()) {
    if (const std::string_view by_class = type_of_class(classes.front()); !by_class.empty()) {
      return std::string(by_class);
    }
  }
  keys.refuse("model_type", fmt::format("model_type \"{}\" is not known (there are {}){}", type,
                                        fmt::join(hugging_face_types(), ", "), respelled(type)));
}

TransformerConfig read_type(const Keys& keys, const std::string& type) {
  for (const Reader& reader : coded_readers()) {
    if (reader.type == type) return reader.read(keys);
  }
  return read_family(keys, *find_family_row(type));
}

constexpr std::string_view text_inside = "text_config";

TransformerConfig read_keys(Keys& keys, bool inside) {
  const std::string type = known_type(keys);
  keys.read_as(type);
  TransformerConfig config = read_type(keys, type);
  if (!inside) config.headless = class_without_head(keys);
  keys.refuse_rest(config.query_key_norm != QueryKeyNorm::none);
  config.family = type;
  const std::vector<std::string> notes = keys.notes();
  config.notes.insert(config.notes.end(), notes.begin(), notes.end());
  return config;
}

// The language model of one that reads images, too. Its head is tied as the whole says.
TransformerConfig read_inside(const Keys& keys) {
  const std::unique_ptr<Keys> text = keys.inside(std::string(text_inside));
  TransformerConfig config = read_keys(*text, true);
  if (keys.has("tie_word_embeddings") && !text->holds("tie_word_embeddings")) {
    config.tied = keys.flag_or("tie_word_embeddings", config.tied);
  }
  for (std::string& note : keys.notes()) config.notes.push_back(std::move(note));
  config.notes.push_back(fmt::format(
      "the language model of {}'s text_config is priced; what reads images or sound, and what "
      "joins it, is left out",
      keys.model_type()));
  return config;
}

}  // namespace

TransformerConfig read_hugging_face(const std::string& text, const std::string& file) {
  Keys keys(text, file);
  TransformerConfig config =
      keys.is_object(std::string(text_inside)) ? read_inside(keys) : read_keys(keys, false);
  config.name = file;
  config.source = file;
  try {
    return completed(std::move(config));
  } catch (const UsageError& error) {
    const std::string message = error.what();
    const std::string start = file + ": ";
    throw TraceError(file, "", message.starts_with(start) ? message.substr(start.size()) : message);
  }
}

std::vector<std::string> hugging_face_types() {
  std::vector<std::string> types;
  for (const Reader& reader : coded_readers()) types.emplace_back(reader.type);
  for (const FamilyRow& row : family_rows()) types.emplace_back(row.type);
  return types;
}

}  // namespace stageline
