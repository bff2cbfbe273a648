#include "cost_models/transformers/priced_language.hpp"

namespace stageline {

std::optional<PricedLanguage> priced_language(const Model& model) {
  const std::string& method = model.provenance.method;
  if (!method.starts_with(language_method)) return std::nullopt;
  PricedLanguage priced;
  const std::size_t format = language_method.size() + 2;  // behind ", "
  if (format < method.size()) {
    priced.format = method.substr(format, method.find(',', format) - format);
  }
  for (const std::string& note : model.provenance.notes) {
    const std::size_t colon = note.find(':');
    if (!note.starts_with(software_note) || colon == std::string::npos) continue;
    priced.software = note.substr(software_note.size(), colon - software_note.size());
  }
  return priced;
}

}  // namespace stageline
