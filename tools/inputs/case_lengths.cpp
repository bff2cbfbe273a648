// Prices micro-batches by their sequences' lengths.
#include "tools/inputs/case_lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "cost_models/microbatch_fields.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/inputs/case_slices.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/inputs/priced_slices.hpp"
#include "tools/inputs/program_files.hpp"

namespace stageline {
namespace {

double mean_tokens(const std::vector<Documents>& lengths) {
  double sum = 0;
  for (const Documents& documents : lengths) sum += static_cast<double>(tokens_of(documents));
  return sum / static_cast<double>(lengths.size());
}

// What a micro-batch takes beside others: seconds by its kernels, or tokens. That of documents
// follows from two sequences that are priced: a token takes its part, and a pair of tokens.
std::function<double(const Documents&)> cost_by(const Setting& setting,
                                                const std::vector<Documents>& lengths) {
  if (!setting.lengths) {
    return [](const Documents& documents) { return static_cast<double>(tokens_of(documents)); };
  }
  std::int64_t longest = 1;
  for (const Documents& documents : lengths) longest = std::max(longest, tokens_of(documents));
  const std::int64_t step = length_step(setting.model.sharding);
  const std::int64_t half = std::max<std::int64_t>(longest / 2 / step, 1) * step;
  const auto seconds = [&](const Documents& documents) {
    return to_seconds(forward_backward(*setting.lengths->of(documents)));
  };
  const double whole = seconds({2 * half});
  const double in_two = seconds({half, half});
  const auto tokens = static_cast<double>(2 * half);
  // whole = a·t + b·t², in two = a·t + b·t²/2.
  const double of_pair = 2 * (whole - in_two) / (tokens * tokens);
  const double of_token = (2 * in_two - whole) / tokens;
  return [=](const Documents& documents) {
    double sum = 0;
    for (const std::int64_t one : documents) {
      const auto length = static_cast<double>(one);
      sum += of_token * length + of_pair * length * length;
    }
    return sum;
  };
}

// Lengths that the program says, or the request.
std::vector<Documents> lengths_for(const SettingRequest& request, const Setting& setting,
                                   const Case& asked) {
  const ProgramSettings* const own = asked.program ? &asked.program->settings : nullptr;
  const bool of_program = own != nullptr && !own->lengths.empty();
  if (!of_program && request.lengths.empty()) return {};
  if (of_program && !request.lengths.empty()) {
    throw UsageError(
        "--lengths: the program already says its micro-batches' lengths; leave it out");
  }
  if (own != nullptr && !own->costs.empty()) {
    throw UsageError("--lengths: the program already says its micro-batches' costs; leave it out");
  }
  if (slices_in(asked) > 1) {
    throw UsageError(
        "--lengths: slices of sequences of unequal lengths are not priced; take a schedule "
        "that does not cut sequences");
  }
  if (asked.model.sample == "image") {
    throw UsageError(fmt::format("--lengths: a sample of {} is an image, which has no length",
                                 asked.model.name));
  }
  std::vector<Documents> lengths =
      of_program ? own->lengths
                 : lengths_of(request.lengths,
                              asked.program ? asked.program->microbatches : asked.microbatches,
                              length_step(asked.model.sharding));
  const LengthsOrder order = request.lengths_order.value_or(LengthsOrder::given);
  if (order == LengthsOrder::given) return lengths;
  const auto cost = cost_by(setting, lengths);
  return ordered(std::move(lengths), order, cost);
}

// By micro-batch, of a trace without kernels.
std::vector<double> factors_of(const std::vector<Documents>& lengths, const Model& model) {
  const double mean = model.tokens > 0 ? static_cast<double>(model.tokens) : mean_tokens(lengths);
  std::vector<double> factors;
  for (const Documents& documents : lengths) {
    factors.push_back(static_cast<double>(tokens_of(documents)) / mean);
  }
  return factors;
}

using LengthModels = std::vector<std::shared_ptr<const Model>>;

const Model& shortest_of(const LengthModels& models) {
  return **std::min_element(models.begin(), models.end(),
                            [](const auto& a, const auto& b) { return a->tokens < b->tokens; });
}

// The shortest one's collectives and modules, and of times and bytes the least.
Model least_of_models(const LengthModels& models) {
  Model least = shortest_of(models);
  for (std::size_t l = 0; l < least.layers.size(); ++l) {
    Layer& layer = least.layers[l];
    for (const auto& model : models) {
      const Layer& other = model->layers[l];
      for (const auto field : microbatch_times) {
        layer.*field = std::min(layer.*field, other.*field);
      }
      for (const auto field : microbatch_sizes) {
        layer.*field = std::min(layer.*field, other.*field);
      }
    }
  }
  return least;
}

// `like`, with the mean times and bytes of the models.
Model mean_of_models(const LengthModels& models, Model like) {
  const auto mean = [&](std::size_t l, auto&& of) {
    double sum = 0;
    for (const auto& model : models) sum += static_cast<double>(of(model->layers[l]));
    return std::llround(sum / static_cast<double>(models.size()));
  };
  for (std::size_t l = 0; l < like.layers.size(); ++l) {
    Layer& layer = like.layers[l];
    for (const auto field : microbatch_times) {
      layer.*field = Time{mean(l, [&](const Layer& one) { return (one.*field).count(); })};
    }
    for (const auto field : microbatch_sizes) {
      layer.*field = Bytes{mean(l, [&](const Layer& one) { return (one.*field).count; })};
    }
  }
  return like;
}

Model scaled_layers(Model model, double factor) {
  for (Layer& layer : model.layers) {
    for (const auto field : microbatch_times) {
      layer.*field = Time{static_cast<std::int64_t>(
          std::floor(static_cast<double>((layer.*field).count()) * factor))};
    }
    for (const auto field : microbatch_sizes) {
      layer.*field = Bytes{static_cast<std::int64_t>(
          std::floor(static_cast<double>((layer.*field).count) * factor))};
    }
  }
  return model;
}

// Each document of its own: no sequence that they are dealt to has less than one.
std::vector<Documents> each_apart(const std::vector<Documents>& lengths) {
  std::vector<Documents> all;
  for (const Documents& documents : lengths) {
    for (const std::int64_t tokens : documents) all.push_back({tokens});
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

void take_lengths(const SettingRequest& request, const Setting& setting, Case& asked) {
  std::vector<Documents> lengths = lengths_for(request, setting, asked);
  if (lengths.empty()) return;
  if (!setting.lengths) {
    asked.factors = factors_of(lengths, asked.model);
    if (asked.program) {
      asked.program->settings.lengths.clear();
      asked.program->settings.costs = asked.factors;
    }
    return;
  }
  std::map<Documents, std::uint16_t> known;
  for (const Documents& documents : lengths) {
    const auto [kind, is_new] =
        known.try_emplace(documents, static_cast<std::uint16_t>(asked.kinds.size()));
    asked.kind_of.push_back(kind->second);
    if (!is_new) continue;
    asked.kinds.push_back(std::make_shared<const Model>(
        cut_by_layout(*setting.lengths->of(documents), request.partition)));
  }
  if (asked.program) asked.program->settings.lengths = lengths;
  asked.lengths = std::move(lengths);
}

LengthsRange range_of_lengths(const SettingRequest& request, const Setting& setting) {
  if (request.lengths.empty()) return {setting.model, setting.model};
  const std::vector<Documents> lengths =
      lengths_of(request.lengths, request.microbatches, length_step(setting.model.sharding));
  const std::vector<Documents> single = each_apart(lengths);
  if (!setting.lengths) {
    const std::vector<double> least = factors_of(single, setting.model);
    const std::vector<double> given = factors_of(lengths, setting.model);
    const double mean =
        std::accumulate(given.begin(), given.end(), 0.0) / static_cast<double>(given.size());
    const double over = setting.model.tokens > 0 ? 1 : mean_tokens(single) / mean_tokens(lengths);
    return {scaled_layers(setting.model, *std::min_element(least.begin(), least.end()) * over),
            scaled_layers(setting.model, mean)};
  }
  LengthModels of_single;
  for (const Documents& one : single) of_single.push_back(setting.lengths->of(one));
  LengthModels of_given;
  for (const Documents& one : lengths) of_given.push_back(setting.lengths->of(one));
  return {least_of_models(of_single), mean_of_models(of_given, shortest_of(of_given))};
}

}  // namespace stageline
