#include "tools/inputs/perturbation_file.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr const char* perturbation_format = "stageline-perturbation 1";

double within(const JsonNode& node, double least, double most) {
  const double value = node.number();
  if (value < least || value > most) {
    node.refuse(fmt::format("must be from {} to {}, not {}", least, most, value));
  }
  return value;
}

double member(const JsonNode& node, std::string_view key, double least, double most,
              double otherwise) {
  const auto found = node.find(key);
  return found ? within(*found, least, most) : otherwise;
}

Jitter jitter_of(const JsonNode& node) {
  node.check_keys({"law"}, {"variation", "samples", "transfers"});
  Jitter jitter;
  const JsonNode law = node.at("law");
  if (const auto transfers = node.find("transfers")) jitter.transfers = transfers->boolean();
  if (law.text() == "log_normal") {
    jitter.variation = within(node.at("variation"), 0, most_variation);
    jitter.law = jitter.variation > 0 ? Jitter::Law::log_normal : Jitter::Law::none;
  } else if (law.text() == "measured") {
    jitter.law = Jitter::Law::measured;
  } else if (law.text() == "samples") {
    jitter.law = Jitter::Law::samples;
    for (const JsonNode& item : node.at("samples").items()) {
      jitter.samples.push_back(within(item, 0, most_slow));
    }
    if (jitter.samples.empty()) node.at("samples").refuse("must have at least one factor");
  } else {
    law.refuse(
        fmt::format("must be log_normal, measured or samples, not {}", in_quotes(law.text())));
  }
  return jitter;
}

}  // namespace

Perturbation read_perturbation(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  const JsonNode root(value, "", file);
  const JsonNode format = root.at("format");
  if (const std::string name = format.text(); name != perturbation_format) {
    format.refuse(fmt::format("a perturbation has \"{}\" here, not {}", perturbation_format,
                              in_quotes(name)));
  }
  root.check_keys({"format"}, {"seed", "jitter", "slow", "pauses"});
  Perturbation result;
  if (const auto seed = root.find("seed")) {
    result.seed = static_cast<std::uint64_t>(seed->whole(0, std::int64_t{1} << 62U));
  }
  if (const auto jitter = root.find("jitter")) result.jitter = jitter_of(*jitter);
  if (const auto slow = root.find("slow")) {
    for (const JsonNode& item : slow->items()) {
      item.check_keys({"name", "factor"}, {"probability"});
      result.slow.push_back({item.at("name").text(),
                             within(item.at("factor"), least_slow, most_slow),
                             member(item, "probability", 0, 1, 1)});
    }
  }
  if (const auto pauses = root.find("pauses")) {
    for (const JsonNode& item : pauses->items()) {
      item.check_keys({"every", "time_us"}, {});
      result.pauses.push_back(
          {within(item.at("every"), 1, 1e9), item.at("time_us").microseconds()});
    }
  }
  return result;
}

Perturbation open_perturbation(const PerturbationTexts& texts) {
  Perturbation asked;
  if (!texts.perturb.empty()) asked = read_perturbation(read_file(texts.perturb), texts.perturb);
  if (!texts.jitter.empty()) asked.jitter = parse_jitter(texts.jitter, "--jitter");
  if (!texts.sometimes.empty()) {
    for (Slow& item : parse_slow_items(texts.sometimes, "--sometimes-slow")) {
      asked.slow.push_back(std::move(item));
    }
  }
  if (!texts.pause.empty()) {
    for (const Pause pause : parse_pauses(texts.pause, "--pause")) asked.pauses.push_back(pause);
  }
  if (!texts.seed.empty()) {
    const auto seed = parse_number<std::uint64_t>(texts.seed);
    if (!seed) {
      throw UsageError(fmt::format("--seed is a whole number from 0, not \"{}\"", texts.seed));
    }
    asked.seed = *seed;
  }
  return asked;
}

}  // namespace stageline
