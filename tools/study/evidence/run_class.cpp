#include "tools/study/evidence/run_class.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cost_models/transformers/priced_language.hpp"
#include "cost_models/transformers/product_recipes.hpp"
#include "sim/cluster.hpp"
#include "sim/degrees.hpp"

namespace stageline {
namespace {

constexpr std::int64_t long_context = 8192;  // tokens; above

// Boards that published runs were made on, by what titles of kinds hold.
constexpr std::array<std::pair<std::string_view, const char*>, 7> chips{{
    {"GB200", "gb200"},
    {"GB300", "gb200"},
    {"B200 SXM", "b200"},
    {"B300 SXM", "b200"},
    {"H100 SXM", "h100"},
    {"H100 96 GB", "h100"},  // torchtitan's, of 500 W
    {"A100 SXM", "a100"},
}};

std::string chip_word(const std::string& title) {
  for (const auto& [words, chip] : chips) {
    if (title.find(words) != std::string::npos) return chip;
  }
  return other_chip;
}

std::string products_word(const std::string& format) {
  if (find_product_recipe(format) != nullptr) return "quantized";
  return format == "bf16" || format == "fp16" ? "16" : "32";
}

bool has_experts(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return layer.expert_parameters > 0; });
}

bool is_on_several_machines(const Cluster& cluster) {
  std::set<int> machines;
  for (const Device& device : cluster.devices) machines.insert(device.host);
  return machines.size() > 1;
}

bool is_sharded(const RankedCluster* ranked) {
  if (ranked == nullptr) return false;
  const Degrees& degrees = ranked->grid().degrees();
  const ShardSpan span = degrees.shard_group.span;
  const bool within = span == ShardSpan::machine || span == ShardSpan::domain;
  return degrees.zero >= Zero::gradients && !within && is_on_several_machines(ranked->devices());
}

struct TraitWords {
  std::string_view word;
  std::string_view words;
};
constexpr std::array<TraitWords, 2> kinds{
    {{"dense", "dense models"}, {"experts", "models with experts"}}};
constexpr std::array<TraitWords, 5> boards{{{"a100", " on A100"},
                                            {"h100", " on H100"},
                                            {"b200", " on B200 and B300"},
                                            {"gb200", " on GB200 and GB300"},
                                            {other_chip, " on another chip"}}};
constexpr std::array<TraitWords, 3> formats{{{"16", " with 16-bit products"},
                                             {"quantized", " with 8- or 4-bit products"},
                                             {"32", " with 32-bit products"}}};
constexpr std::array<TraitWords, 2> shardings{
    {{"whole", ", not sharded across machines"}, {"sharded", ", sharded across machines"}}};
constexpr std::array<TraitWords, 2> contexts{
    {{"short", ", sequences of up to 8,192 tokens"}, {"long", ", sequences above 8,192 tokens"}}};

template <std::size_t N>
std::string_view words_in(const std::array<TraitWords, N>& table, const std::string& word,
                          std::string_view any = "") {
  for (const TraitWords& one : table) {
    if (one.word == word) return one.words;
  }
  return any;
}

}  // namespace

std::optional<RunClass> run_class(const Model& model, const RankedCluster* ranked) {
  if (model.encoder.count > 0) return std::nullopt;
  const std::optional<PricedLanguage> priced = priced_language(model);
  if (!priced) return std::nullopt;
  return RunClass{priced->software.empty() ? "unknown" : "known",
                  has_experts(model) ? "experts" : "dense",
                  chip_word(model.provenance.device),
                  products_word(priced->format),
                  is_sharded(ranked) ? "sharded" : "whole",
                  model.tokens > long_context ? "long" : "short"};
}

RunClass widened(RunClass of, std::size_t stated) {
  std::fill(of.begin() + static_cast<std::ptrdiff_t>(std::min(stated, of.size())), of.end(),
            any_word);
  return of;
}

std::string words_of(const RunClass& of) {
  const auto& [software, kind, chip, products, sharding, context] = of;
  return fmt::format("{}{}{}{}{}", words_in(kinds, kind, "language models"), words_in(boards, chip),
                     words_in(formats, products), words_in(shardings, sharding),
                     words_in(contexts, context));
}

}  // namespace stageline
