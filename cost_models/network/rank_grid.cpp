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
      return 1;  // among the data- and context-parallel ranks
    case Dimension::data:
      return degrees.data;
    case Dimension::pipeline:
      return degrees.pipeline;
  }
  return 1;
}

void check_degrees(const Degrees& degrees) {
  const std::pair<std::string_view, int> all[] = {{"--tp", degrees.tensor},
                                                  {"--cp", degrees.context},
                                                  {"--ep", degrees.expert},
                                                  {"--dp", degrees.data},
                                                  {"--pp", degrees.pipeline}};
  for (const auto& [flag, degree] : all) {
    if (degree < 1) {
      throw UsageError(fmt::format("{} is a whole number from 1 (it is {})", flag, degree));
    }
  }
  check_product(degrees);
  if (std::int64_t{degrees.data} * degrees.context % degrees.expert != 0) {
    const bool context = degrees.context > 1;
    throw UsageError(fmt::format(
        "--ep {} does not divide --dp {}{}: experts are spread over the data-parallel{} ranks; make "
        "the one a multiple of the other",
        degrees.expert, degrees.data, context ? fmt::format(" × --cp {}", degrees.context) : "",
        context ? " and context-parallel" : ""));
  }
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
  int stride = 1;
  for (const Dimension dimension : degrees.order) {
    stride_[static_cast<std::size_t>(dimension)] = stride;
    stride *= degree_of(degrees, dimension);
  }
}

int RankGrid::device(const GridPlace& place) const {
  const auto stride = [&](Dimension dimension) {
    return stride_[static_cast<std::size_t>(dimension)];
  };
  return place.tensor * stride(Dimension::tensor) + place.context * stride(Dimension::context) +
         place.data * stride(Dimension::data) + place.pipeline * stride(Dimension::pipeline);
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

std::vector<int> RankGrid::expert_holders(int pipeline, int tensor, int expert, int data) const {
  std::vector<int> found;
  for (int position = expert; position < degrees_.data * degrees_.context;
       position += degrees_.expert) {
    const GridPlace place = place_among_holders(position, pipeline, tensor);
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
  switch (dimension) {
    case Dimension::tensor:
      for (int d = first; d < last; ++d) {
        for (int c = 0; c < degrees_.context; ++c) {
          std::vector<int>& group = all.emplace_back();
          for (int t = 0; t < degrees_.tensor; ++t) group.push_back(device({t, c, d, pipeline}));
        }
      }
      break;
    case Dimension::context:
      for (int d = first; d < last; ++d) {
        for (int t = 0; t < degrees_.tensor; ++t) {
          std::vector<int>& group = all.emplace_back();
          for (int c = 0; c < degrees_.context; ++c) group.push_back(device({t, c, d, pipeline}));
        }
      }
      break;
    case Dimension::expert:
      for (int at = 0; at < degrees_.data * degrees_.context; at += degrees_.expert) {
        for (int t = 0; t < degrees_.tensor; ++t) {
          std::vector<int>& group = all.emplace_back();
          for (int e = 0; e < degrees_.expert; ++e) {
            group.push_back(device(place_among_holders(at + e, pipeline, t)));
          }
        }
      }
      break;
    case Dimension::data:
      for (int t = 0; t < degrees_.tensor; ++t) all.push_back(holders(pipeline, t, data));
      break;
    case Dimension::pipeline:
      for (int d = first; d < last; ++d) {
        for (int c = 0; c < degrees_.context; ++c) {
          for (int t = 0; t < degrees_.tensor; ++t) {
            std::vector<int>& group = all.emplace_back();
            for (int p = 0; p < degrees_.pipeline; ++p) group.push_back(device({t, c, d, p}));
          }
        }
      }
      break;
  }
  return all;
}

std::array<Dimension, 5> parse_order(std::string_view text) {
  std::vector<Dimension> named;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('-', at), text.size());
    named.push_back(one_of(all_dimensions, std::string(text.substr(at, end - at)), "--order"));
    at = end + 1;
  }
  if (std::find(named.begin(), named.end(), Dimension::expert) == named.end()) {
    const auto data = std::find(named.begin(), named.end(), Dimension::data);
    named.insert(data, Dimension::expert);
  }
  std::array<Dimension, 5> order{};
  for (const Dimension dimension : all_dimensions) {
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
