// Prices slices by their own kernels, and chooses their lengths.
#include "tools/inputs/case_slices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/slices.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/inputs/priced_slices.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/slice_lengths.hpp"

namespace stageline {
namespace {

// "even", "balanced", lengths or a file.
std::string slices_knob(const Case& asked) {
  if (asked.program) {
    const std::vector<std::int64_t>& lengths = asked.program->settings.slices;
    return lengths.empty() ? "even" : fmt::format("{}", fmt::join(lengths, "-"));
  }
  const auto knob = asked.spec.knobs.find("slices");
  return knob == asked.spec.knobs.end() ? "even" : knob->second;
}

class CasePricing {
 public:
  CasePricing(const SettingRequest& request, PricedSlices& slices, int count, Case& asked)
      : request_(request), slices_(slices), count_(count), asked_(asked) {}

  // Returns whether slices are equal.
  bool choose_lengths(const std::string& how) {
    if (how == "even") return true;
    const CutSequence cut{asked_.model.tokens, count_, ranks_of_slices(asked_.model.sharding)};
    std::vector<std::int64_t> lengths =
        how == "balanced" ? balanced_slices(cut,
                                            [&](const SequenceSlice& one) {
                                              return to_seconds(forward_backward(*slices_.of(one)));
                                            })
                          : given_slices(how, cut);
    if (slice_of(lengths, 0).tokens == 0) return true;
    asked_.slice_lengths = std::move(lengths);
    return false;
  }

  // The mean slice; of unequal ones one of about as many tokens. False: the model is not the
  // trace's.
  bool price_mean(bool equal) {
    SequenceSlice mean{count_, -1, 0, 0};
    if (!equal) {
      const std::int64_t ranks = ranks_of_slices(asked_.model.sharding);
      mean.tokens = std::max<std::int64_t>(asked_.model.tokens / count_ / ranks, 1) * ranks;
    }
    Model slice = cut(mean);
    if (slice.layers.size() != asked_.model.layers.size()) return false;
    asked_.slice = std::make_shared<const Model>(std::move(slice));
    return true;
  }

  // Slices are alike where nothing attends to the earlier ones.
  void price_each() {
    const auto of = [&](int number) {
      const SequenceSlice one = asked_.slice_lengths.empty()
                                    ? SequenceSlice{count_, number, 0, 0}
                                    : slice_of(asked_.slice_lengths, number);
      return std::make_shared<const Model>(cut(one));
    };
    std::shared_ptr<const Model> first = of(0);
    if (asked_.slice_lengths.empty() && first->layers == of(count_ - 1)->layers) return;
    for (int number = 0; number < count_; ++number) {
      asked_.kinds.push_back(number == 0 ? first : of(number));
      asked_.kind_of.push_back(static_cast<std::uint16_t>(number));
    }
  }

 private:
  Model cut(const SequenceSlice& one) const {
    return cut_by_layout(*slices_.of(one), request_.partition);
  }

  const SettingRequest& request_;
  PricedSlices& slices_;
  int count_;
  Case& asked_;
};

}  // namespace

int slices_in(const Case& asked) {
  if (asked.program) return asked.program->settings.sequence_chunks;
  const auto knob = asked.spec.knobs.find("sequence_chunks");
  return knob == asked.spec.knobs.end() ? 1 : parse_number<int>(knob->second).value_or(1);
}

void price_slices(const SettingRequest& request, const Setting& setting, Case& asked) {
  const int slices = slices_in(asked);
  if (slices <= 1 || asked.model.sample == "image") return;
  const std::string how = slices_knob(asked);
  const bool has_kernels = setting.slices && asked.model.tokens > 0;
  if (how != "even" && !has_kernels) {
    asked.slices_refused = fmt::format(
        "slices={} needs a language model whose slices are priced by their kernels (model:…); "
        "{}",
        how, asked.program ? "leave the line \"slices:\" out" : "take slices=even");
    return;
  }
  if (!setting.slices) return;
  try {
    CasePricing pricing(request, *setting.slices, slices, asked);
    if (!pricing.price_mean(pricing.choose_lengths(how))) return;
    const bool says_costs = asked.program && !asked.program->settings.costs.empty();
    if (!says_costs) pricing.price_each();
  } catch (const UsageError& error) {
    asked.slices_refused = error.what();
  }
}

}  // namespace stageline
