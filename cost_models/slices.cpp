// Whether slices divide a sequence, and one of equal shares.
#include "cost_models/slices.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "cost_models/microbatch_fields.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

std::int64_t share(std::int64_t whole, int slices) {
  return whole / slices + (whole % slices > 0 ? 1 : 0);
}

// The nearest numbers of slices that divide `most` rows: below and above.
std::string nearest(std::int64_t most, int slices) {
  std::int64_t below = slices;
  while (most % below != 0) --below;
  std::int64_t above = slices;
  while (above < most && most % above != 0) ++above;
  return above > most ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

}  // namespace

int ranks_of_slices(const Sharding& sharding) {
  return sharding.context * (sharding.sequence ? sharding.tensor : 1);
}

void check_slices(const std::string& model, std::int64_t tokens, const Sharding& sharding,
                  int slices) {
  const int ranks = ranks_of_slices(sharding);
  const std::int64_t each = tokens / ranks;
  if (tokens % ranks == 0 && each % slices == 0) return;
  const std::string_view by = sharding.sequence && sharding.tensor > 1 ? "cp·tp" : "cp";
  throw UsageError(fmt::format(
      "{}: {} equal slices do not divide a sequence of {} tokens{}; take {}", model, slices, tokens,
      ranks > 1 ? fmt::format(", {} on each of {} {} ranks", each, ranks, by) : "",
      nearest(each, slices)));
}

void check_slices(const std::string& model, std::int64_t tokens, const Sharding& sharding,
                  const SequenceSlice& slice) {
  if (slice.tokens == 0) return check_slices(model, tokens, sharding, slice.count);
  const std::int64_t ranks = ranks_of_slices(sharding);
  if (slice.tokens % ranks == 0 && slice.begin + slice.tokens <= tokens) return;
  throw UsageError(
      fmt::format("{}: a slice of {} tokens behind {} of {} does not divide among {} ranks", model,
                  slice.tokens, slice.begin, tokens, ranks));
}

Model equal_share(Model model, int slices) {
  if (slices == 1) return model;
  for (Layer& layer : model.layers) {
    const bool is_sum = layer.backward == layer.input_grad + layer.weight_grad;
    for (const auto field : microbatch_times) {
      layer.*field = Time{share((layer.*field).count(), slices)};
    }
    if (is_sum) layer.backward = layer.input_grad + layer.weight_grad;
    for (const auto field : microbatch_sizes)
      layer.*field = Bytes{share((layer.*field).count, slices)};
    for (const auto field : microbatch_flops) layer.*field = share(layer.*field, slices);
    const auto divide = [&](std::vector<LayerCollective>& collectives) {
      for (LayerCollective& one : collectives) one.bytes = Bytes{share(one.bytes.count, slices)};
    };
    divide(layer.collectives);
    for (LayerModule& module : layer.modules) {
      module.forward = Time{share(module.forward.count(), slices)};
      module.stash = Bytes{share(module.stash.count, slices)};
      module.flops = share(module.flops, slices);
      divide(module.collectives);
    }
  }
  model.input = Bytes{share(model.input.count, slices)};
  model.whole = {};
  return model;
}

}  // namespace stageline
