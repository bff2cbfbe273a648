#include "cost_models/network/rank_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/checked.hpp"

namespace stageline {
namespace {

int degree_of(const Degrees& degrees, Dimension dimension) {
  switch (dimension) {
    case Dimension::tensor:
      return degrees.tensor;
    case Dimension::context:
      return degrees.context;
    case Dimension::expert:
    case Dimension::expert_tensor:
      return 1;  // among the devices of the others
    case Dimension::data:
      return degrees.data;
    case Dimension::pipeline:
      return degrees.pipeline;
  }
  return 1;
}

// The largest degree up to the given one, so many of which fill the devices of a pipeline rank.
int nearest_expert_degree(int asked, std::int64_t parts) {
  for (int degree = asked; degree > 1; --degree) {
    if (parts % degree == 0) return degree;
  }
  return 1;
}

void check_experts(const Degrees& degrees) {
  const int shared = degrees.expert_tensor_ranks();
  const std::int64_t width = degrees.width();
  if (!degrees.folded() && degrees.tensor == 1) {
    if (width % degrees.expert == 0) return;
    const bool context = degrees.context > 1;
    throw UsageError(fmt::format(
        "--ep {} does not divide --dp {}{}: experts are spread over the data-parallel{} ranks; make "
        "the one a multiple of the other",
        degrees.expert, degrees.data, context ? fmt::format(" × --cp {}", degrees.context) : "",
        context ? " and context-parallel" : ""));
  }
  const std::int64_t together = std::int64_t{degrees.expert} * shared;
  if (width % together == 0) return;
  std::string hint = "--etp 1";
  if (shared == 1 || width % degrees.expert != 0) {
    hint = width % shared == 0
               ? fmt::format("--ep {}", nearest_expert_degree(degrees.expert, width / shared))
               : fmt::format("--etp 1 --ep {}", nearest_expert_degree(degrees.expert, width));
  }
  throw UsageError(fmt::format(
      "--ep {} × --etp {} = {} does not divide --tp {} × --cp {} × --dp {} = {}; give {}",
      degrees.expert, shared, together, degrees.tensor, degrees.context, degrees.data, width,
      hint));
}

void check_degrees(const Degrees& degrees) {
  const std::pair<std::string_view, int> all[] = {
      {"--tp", degrees.tensor}, {"--cp", degrees.context},
      {"--ep", degrees.expert}, {"--etp", degrees.expert_tensor == 0 ? 1 : degrees.expert_tensor},
      {"--dp", degrees.data},   {"--pp", degrees.pipeline}};
  for (const auto& [flag, degree] : all) {
    if (degree < 1) {
      throw UsageError(fmt::format("{} is a whole number from 1 (it is {})", flag, degree));
    }
  }
  check_product(degrees);
  check_experts(degrees);
}

// The first degree that an encoder is not modelled with; empty: none.
std::string degree_beside_encoder(const Degrees& degrees) {
  if (degrees.context > 1) return fmt::format("--cp {}", degrees.context);
  if (degrees.expert > 1) return fmt::format("--ep {}", degrees.expert);
  return degrees.folded() ? fmt::format("--etp {}", degrees.expert_tensor) : "";
}

void check_encoder(const Degrees& degrees) {
  const EncoderDegrees& encoder = degrees.encoder;
  if (encoder.pipeline == 0) return;
  if (encoder.pipeline >= degrees.pipeline) {
    throw UsageError(fmt::format(
        "--encoder-pp {} leaves no pipeline rank of --pp {} to the model behind the encoder; give "
        "--pp {} or more",
        encoder.pipeline, degrees.pipeline, encoder.pipeline + 1));
  }
  if (const std::string beside = degree_beside_encoder(degrees); !beside.empty()) {
    throw UsageError(fmt::format(
        "{} beside an encoder is not modelled: its ranks would have to be divided, too; leave it "
        "out, or leave out --encoder",
        beside));
  }
  if (degrees.order.back() != Dimension::pipeline) {
    throw UsageError(fmt::format(
        "--order {}: an encoder's devices come before the model's, so pp is the last of the order",
        print_order(degrees.order)));
  }
}

std::array<int, 5> strides(const Degrees& degrees) {
  std::array<int, 5> strides{};
  int stride = 1;
  for (const Dimension dimension : degrees.order) {
    strides[static_cast<std::size_t>(dimension)] = stride;
    stride *= degree_of(degrees, dimension);
  }
  return strides;
}

// There are as many groups of experts.
void check_shard_group(const Degrees& degrees) {
  const ShardGroup& group = degrees.shard_group;
  if (group.span != ShardSpan::ranks || degrees.zero == Zero::none) return;
  const int holders = ranks_that_hold(degrees, WeightKind::dense);
  if (group.ranks < 1 || holders % group.ranks != 0) {
    throw UsageError(fmt::format(
        "--shard-group {} does not divide the {} ranks that hold the same weights (--dp {} × --cp "
        "{}); take a divisor of {}",
        group.ranks, holders, degrees.data, degrees.context, holders));
  }
  const int experts = ranks_that_hold(degrees, WeightKind::experts);
  if (degrees.expert > 1 && experts % shard_groups(degrees) != 0) {
    throw UsageError(fmt::format(
        "--shard-group {} makes {} groups, which do not divide the {} ranks that hold the same "
        "experts; take a multiple of --ep {}",
        group.ranks, shard_groups(degrees), experts, degrees.expert));
  }
}

}  // namespace

RankGrid::RankGrid(const Degrees& degrees) : degrees_(degrees) {
  check_degrees(degrees);
  check_shard_group(degrees);
  check_encoder(degrees);
  stride_ = strides(degrees);
  stride_of_encoder_ = strides(degrees_at(0));
}

Degrees RankGrid::degrees_at(int pipeline) const {
  Degrees own = degrees_;
  own.tensor = degrees_.tensor_at(pipeline);
  return own;
}

int RankGrid::device(const GridPlace& place) const {
  const int ranks_of_encoder = degrees_.encoder.pipeline;
  const std::array<int, 5>& strides =
      place.pipeline < ranks_of_encoder ? stride_of_encoder_ : stride_;
  const auto stride = [&](Dimension dimension) {
    return strides[static_cast<std::size_t>(dimension)];
  };
  const int first = ranks_of_encoder > 0 ? degrees_.devices_of(place.pipeline)
                                         : place.pipeline * stride(Dimension::pipeline);
  return place.tensor * stride(Dimension::tensor) + place.context * stride(Dimension::context) +
         place.data * stride(Dimension::data) + first;
}

std::vector<int> RankGrid::members(int pipeline, int data) const {
  std::vector<int> all;
  for (int t = 0; t < degrees_.tensor_at(pipeline); ++t) {
    const std::vector<int> part = holders(pipeline, t, data);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<int> RankGrid::holders(int pipeline, int tensor, int data) const {
  std::vector<int> found;
  const int last = data < 0 ? degrees_.data : data + 1;
  for (int d = std::max(data, 0); d < last; ++d) {
    for (int c = 0; c < degrees_.context; ++c) found.push_back(device({tensor, c, d, pipeline}));
  }
  return found;
}

// By the position of its device among the holders of the same weights.
GridPlace RankGrid::place_among_holders(int position, int pipeline, int tensor) const {
  const bool context_first = stride_[static_cast<std::size_t>(Dimension::context)] <
                             stride_[static_cast<std::size_t>(Dimension::data)];
  return context_first
             ? GridPlace{tensor, position % degrees_.context, position / degrees_.context, pipeline}
             : GridPlace{tensor, position / degrees_.data, position % degrees_.data, pipeline};
}

// By its position among the devices of a pipeline rank, as their experts are nested: those that
// share one are neighbours.
GridPlace RankGrid::place_among_experts(int position, int pipeline) const {
  if (!degrees_.folded()) {
    const int tensor = degrees_.tensor_at(pipeline);
    return place_among_holders(position / tensor, pipeline, position % tensor);
  }
  GridPlace place;
  place.pipeline = pipeline;
  for (const Dimension dimension : degrees_.order) {
    int* const rank = dimension == Dimension::tensor    ? &place.tensor
                      : dimension == Dimension::context ? &place.context
                      : dimension == Dimension::data    ? &place.data
                                                        : nullptr;
    if (rank == nullptr) continue;
    *rank = position % degree_of(degrees_, dimension);
    position /= degree_of(degrees_, dimension);
  }
  return place;
}

std::vector<int> RankGrid::expert_holders(int pipeline, int tensor, int expert, int data) const {
  std::vector<int> found;
  const Degrees own = degrees_at(pipeline);
  for (int at = tensor + expert * own.expert_tensor_ranks(); at < own.width();
       at += own.expert_width()) {
    const GridPlace place = place_among_experts(at, pipeline);
    if (data < 0 || data == place.data) found.push_back(device(place));
  }
  return found;
}

std::vector<std::vector<int>> RankGrid::shards_of(std::vector<int> holders) const {
  const int groups = shard_groups(degrees_);
  std::sort(holders.begin(), holders.end());
  std::vector<std::vector<int>> all;
  const std::ptrdiff_t each = std::ssize(holders) / groups;
  for (int group = 0; group < groups; ++group) {
    all.emplace_back(holders.begin() + group * each, holders.begin() + (group + 1) * each);
  }
  return all;
}

std::vector<std::vector<int>> RankGrid::groups(Dimension dimension, int pipeline, int data) const {
  std::vector<std::vector<int>> all;
  const int first = std::max(data, 0);
  const int last = data < 0 ? degrees_.data : data + 1;
  const int tensor = degrees_.tensor_at(pipeline);
  switch (dimension) {
    case Dimension::tensor:
      for (int d = first; d < last; ++d) {
        for (int c = 0; c < degrees_.context; ++c) {
          std::vector<int>& group = all.emplace_back();
          for (int t = 0; t < tensor; ++t) group.push_back(device({t, c, d, pipeline}));
        }
      }
      break;
    case Dimension::context:
      for (int d = first; d < last; ++d) {
        for (int t = 0; t < tensor; ++t) {
          std::vector<int>& group = all.emplace_back();
          for (int c = 0; c < degrees_.context; ++c) group.push_back(device({t, c, d, pipeline}));
        }
      }
      break;
    case Dimension::expert:
    case Dimension::expert_tensor: {
      const Degrees own = degrees_at(pipeline);
      const int shared = own.expert_tensor_ranks();
      const bool same_part = dimension == Dimension::expert;
      const int ranks = same_part ? degrees_.expert : shared;
      const int apart = same_part ? shared : 1;
      const int block = ranks * apart;
      for (int at = 0; at < own.width(); at += block) {
        for (int first_rank = at; first_rank < at + apart; ++first_rank) {
          std::vector<int>& group = all.emplace_back();
          for (int r = 0; r < ranks; ++r) {
            group.push_back(device(place_among_experts(first_rank + r * apart, pipeline)));
          }
        }
      }
      break;
    }
    case Dimension::data:
      for (int t = 0; t < tensor; ++t) all.push_back(holders(pipeline, t, data));
      break;
    case Dimension::pipeline: {
      const int most = std::max(degrees_.tensor_at(0), degrees_.tensor);
      for (int d = first; d < last; ++d) {
        for (int c = 0; c < degrees_.context; ++c) {
          for (int t = 0; t < most; ++t) {
            std::vector<int>& group = all.emplace_back();
            for (int p = 0; p < degrees_.pipeline; ++p) {
              group.push_back(device({t * degrees_.tensor_at(p) / most, c, d, p}));
            }
          }
        }
      }
      break;
    }
  }
  return all;
}

std::array<Dimension, 5> parse_order(std::string_view text) {
  std::vector<Dimension> named;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('-', at), text.size());
    named.push_back(one_of(nested_dimensions, std::string(text.substr(at, end - at)), "--order"));
    at = end + 1;
  }
  if (std::find(named.begin(), named.end(), Dimension::expert) == named.end()) {
    const auto data = std::find(named.begin(), named.end(), Dimension::data);
    named.insert(data, Dimension::expert);
  }
  std::array<Dimension, 5> order{};
  for (const Dimension dimension : nested_dimensions) {
    const auto times = std::count(named.begin(), named.end(), dimension);
    if (times != 1) {
      throw UsageError(fmt::format(
          "--order {} names {} {} times; it names each of tp, cp, dp and pp once, from the ranks "
          "that are neighbours to those that are farthest apart",
          text, name(dimension), times));
    }
  }
  std::copy(named.begin(), named.end(), order.begin());
  const auto expert = std::find(order.begin(), order.end(), Dimension::expert);
  if (expert + 1 == order.end() || *(expert + 1) != Dimension::data) {
    throw UsageError(fmt::format(
        "--order {}: ep comes right before dp, since expert-parallel ranks are data-parallel ones",
        text));
  }
  return order;
}

std::string print_order(const std::array<Dimension, 5>& order) {
  std::string text;
  for (const Dimension dimension : order) {
    text += fmt::format("{}{}", text.empty() ? "" : "-", name(dimension));
  }
  return text;
}

}  // namespace stageline
