// Do ranks nest on the devices as Megatron's do?
#include "cost_models/network/rank_grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline::rank_grid_tests {
namespace {

using Groups = std::vector<std::vector<int>>;

Degrees degrees_of(int tensor, int context, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.context = context;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

TEST_CASE("tp is nested in dp, and dp in pp") {
  // The example of Megatron-LM's initialize_model_parallel: 16 GPUs, tp 2, pp 4, so dp 2.
  const RankGrid grid(degrees_of(2, 1, 2, 4));
  CHECK(grid.devices() == 16);
  CHECK(grid.groups(Dimension::tensor, 0) == Groups{{0, 1}, {2, 3}});
  CHECK(grid.groups(Dimension::tensor, 3) == Groups{{12, 13}, {14, 15}});
  CHECK(grid.groups(Dimension::data, 0) == Groups{{0, 2}, {1, 3}});
  CHECK(grid.groups(Dimension::data, 2) == Groups{{8, 10}, {9, 11}});
  CHECK(grid.groups(Dimension::pipeline, 0) ==
        Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
}

TEST_CASE("data-parallel groups include the context-parallel ranks, which hold the same weights") {
  const RankGrid grid(degrees_of(2, 2, 2, 1));
  CHECK(grid.groups(Dimension::context, 0) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(grid.groups(Dimension::data, 0) == Groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(grid.groups(Dimension::data, 0, 1) == Groups{{4, 6}, {5, 7}});
}

TEST_CASE(
    "an encoder's devices come before the model's, as many a rank as its tensor degree makes") {
  Degrees degrees = degrees_of(2, 1, 2, 3);
  degrees.encoder = {2, 1};
  const RankGrid grid(degrees);
  CHECK(grid.devices() == 8);
  CHECK(grid.members(0) == std::vector{0, 1});
  CHECK(grid.members(1) == std::vector{2, 3});
  CHECK(grid.members(2) == std::vector{4, 6, 5, 7});
  CHECK(grid.members(2, 1) == std::vector{6, 7});
  CHECK(grid.groups(Dimension::tensor, 0) == Groups{{0}, {1}});
  CHECK(grid.groups(Dimension::tensor, 2) == Groups{{4, 5}, {6, 7}});
  CHECK(grid.groups(Dimension::data, 1) == Groups{{2, 3}});
  CHECK(grid.groups(Dimension::data, 2) == Groups{{4, 6}, {5, 7}});
  CHECK(grid.groups(Dimension::pipeline, 0) == Groups{{0, 2, 4}, {0, 2, 5}, {1, 3, 6}, {1, 3, 7}});
  CHECK(grid.groups(Dimension::expert, 0) == Groups{{0}, {1}});
  degrees.order = parse_order("dp-tp-cp-pp");
  CHECK(RankGrid(degrees).members(0) == std::vector{0, 1});
  CHECK(RankGrid(degrees).groups(Dimension::tensor, 2) == Groups{{4, 6}, {5, 7}});
  degrees.encoder.tensor = 4;
  CHECK(RankGrid(degrees).groups(Dimension::tensor, 1) == Groups{{8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(RankGrid(degrees).groups(Dimension::tensor, 2) == Groups{{16, 18}, {17, 19}});
}

TEST_CASE("an encoder without the model's own degrees changes no device") {
  for (const int tensor : {1, 2, 4}) {
    const Degrees plain = degrees_of(tensor, 1, 2, 4);
    Degrees degrees = plain;
    degrees.encoder = {2, tensor};
    for (const Dimension dimension : all_dimensions) {
      CHECK(RankGrid(degrees).groups(dimension, 1) == RankGrid(plain).groups(dimension, 1));
      CHECK(RankGrid(degrees).groups(dimension, 3) == RankGrid(plain).groups(dimension, 3));
    }
  }
}

TEST_CASE("an encoder leaves the model a rank, and stands beside tp and dp alone") {
  Degrees degrees = degrees_of(2, 1, 2, 2);
  degrees.encoder = {2, 1};
  CHECK_THROWS_AS(RankGrid{degrees}, UsageError);
  degrees.encoder.pipeline = 1;
  CHECK_NOTHROW(RankGrid{degrees});
  degrees.order = parse_order("tp-cp-pp-dp");
  CHECK_THROWS_AS(RankGrid{degrees}, UsageError);
  degrees.order = Degrees{}.order;
  degrees.expert = 2;
  CHECK_THROWS_AS(RankGrid{degrees}, UsageError);
  degrees = degrees_of(2, 2, 1, 2);
  degrees.encoder = {1, 1};
  CHECK_THROWS_AS(RankGrid{degrees}, UsageError);
}

TEST_CASE("shard groups are neighbours among the ranks that hold the same weights") {
  Degrees degrees = degrees_of(2, 1, 8, 1);
  degrees.zero = Zero::optimizer;
  degrees.shard_group = {ShardSpan::ranks, 4};
  const RankGrid grid(degrees);
  CHECK(grid.shards_of(grid.holders(0, 1)) == Groups{{1, 3, 5, 7}, {9, 11, 13, 15}});
  // Context-parallel ranks count: cp 2 × dp 4 hold the same weights.
  Degrees both = degrees_of(1, 2, 4, 1);
  both.zero = Zero::weights;
  both.shard_group = {ShardSpan::ranks, 2};
  CHECK(shard_groups(both) == 4);
  CHECK(RankGrid(both).shards_of(RankGrid(both).holders(0, 0)) ==
        Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  // Of experts each group has those of its ranks that hold the same ones.
  degrees.expert = 2;
  const RankGrid experts(degrees);
  CHECK(experts.shards_of(experts.expert_holders(0, 0, 1)) == Groups{{2, 6}, {10, 14}});
  degrees.shard_group = {};
  CHECK(RankGrid(degrees).shards_of({6, 2}) == Groups{{2, 6}});
}

TEST_CASE("shard groups that do not divide the ranks are refused, where ZeRO divides anything") {
  Degrees degrees = degrees_of(1, 2, 6, 1);
  degrees.zero = Zero::weights;
  degrees.shard_group = {ShardSpan::ranks, 8};
  CHECK_THROWS_WITH_AS(RankGrid{degrees},
                       "--shard-group 8 does not divide the 12 ranks that hold the same weights "
                       "(--dp 6 × --cp 2); take a divisor of 12",
                       UsageError);
  degrees.zero = Zero::none;
  CHECK_NOTHROW(RankGrid{degrees});
  degrees.zero = Zero::weights;
  degrees.expert = 4;
  degrees.shard_group.ranks = 6;
  CHECK_THROWS_WITH_AS(RankGrid{degrees},
                       "--shard-group 6 makes 2 groups, which do not divide the 3 ranks that hold "
                       "the same experts; take a multiple of --ep 4",
                       UsageError);
  degrees.shard_group.ranks = 4;
  CHECK_NOTHROW(RankGrid{degrees});
}

TEST_CASE("expert-parallel ranks are neighbours among the data-parallel ones") {
  Degrees degrees = degrees_of(2, 1, 4, 1);
  degrees.expert = 2;
  CHECK(RankGrid(degrees).groups(Dimension::expert, 0) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
}

TEST_CASE("experts are divided among context-parallel ranks too, in the order of the devices") {
  Degrees degrees = degrees_of(1, 2, 4, 1);
  degrees.expert = 4;
  const RankGrid grid(degrees);
  CHECK(grid.groups(Dimension::expert, 0) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(grid.expert_holders(0, 0, 1) == std::vector<int>{1, 5});
  CHECK(grid.expert_holders(0, 0, 1, 2) == std::vector<int>{5});
  CHECK(grid.expert_holders(0, 0, 1, 1).empty());
  degrees.data = 1;
  degrees.expert = 2;  // does not divide --dp
  CHECK(RankGrid(degrees).groups(Dimension::expert, 0) == Groups{{0, 1}});
}

TEST_CASE(
    "with a tensor degree of their own, experts are spread over all devices of a pipeline rank") {
  Degrees degrees = degrees_of(2, 1, 4, 1);
  degrees.expert = 8;
  degrees.expert_tensor = 1;
  const RankGrid all(degrees);
  CHECK(all.groups(Dimension::expert, 0) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(all.groups(Dimension::expert_tensor, 0).size() == 8);
  CHECK(all.expert_holders(0, 0, 3) == std::vector<int>{3});
  degrees.expert = 4;
  const RankGrid twice(degrees);
  CHECK(twice.groups(Dimension::expert, 0) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(twice.expert_holders(0, 0, 1) == std::vector<int>{1, 5});
  CHECK(twice.expert_holders(0, 0, 1, 2) == std::vector<int>{5});
  CHECK(twice.groups(Dimension::tensor, 0) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  // Halves of experts, as of all else: the default.
  degrees.expert_tensor = 2;
  const Groups halves{{0, 2, 4, 6}, {1, 3, 5, 7}};
  CHECK(RankGrid(degrees).groups(Dimension::expert, 0) == halves);
  degrees.expert_tensor = 0;
  CHECK(RankGrid(degrees).groups(Dimension::expert, 0) == halves);
  CHECK(RankGrid(degrees).groups(Dimension::expert_tensor, 0) ==
        Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
}

TEST_CASE("pairs that share an expert are neighbours among four tensor-parallel ranks") {
  Degrees degrees = degrees_of(4, 1, 2, 2);
  degrees.expert = 2;
  degrees.expert_tensor = 2;
  const RankGrid grid(degrees);
  CHECK(grid.groups(Dimension::expert_tensor, 1) == Groups{{8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(grid.groups(Dimension::expert, 0) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(grid.expert_holders(0, 1, 0) == std::vector<int>{1, 5});
  CHECK(grid.expert_holders(0, 1, 0, 1) == std::vector<int>{5});
}

// Megatron-LM's generator of expert ranks, written down a second time: the same order, with `data`
// ranks that hold the same experts and no context-parallel ones. Groups of one dimension.
std::set<std::vector<int>> expert_ranks(const Degrees& degrees, Dimension dimension) {
  std::array<int, 5> size{};
  const auto size_of = [&](Dimension d) -> int& { return size[static_cast<std::size_t>(d)]; };
  size_of(Dimension::tensor) = degrees.expert_tensor_ranks();
  size_of(Dimension::context) = 1;
  size_of(Dimension::expert) = degrees.expert;
  size_of(Dimension::data) = degrees.width() / degrees.expert_width();
  size_of(Dimension::pipeline) = degrees.pipeline;
  std::map<std::vector<int>, std::vector<int>> groups;  // by the ranks of the other dimensions
  for (int device = 0; device < degrees.width() * degrees.pipeline; ++device) {
    std::vector<int> others;
    int left = device;
    for (const Dimension d : degrees.order) {
      if (d != dimension) others.push_back(left % size_of(d));
      left /= size_of(d);
    }
    groups[others].push_back(device);
  }
  std::set<std::vector<int>> found;
  for (const auto& [others, group] : groups) found.insert(group);
  return found;
}

TEST_CASE("expert groups are Megatron-LM's in every order with cp beside dp") {
  for (const char* order :
       {"tp-cp-dp-pp", "tp-dp-cp-pp", "cp-dp-tp-pp", "pp-tp-cp-dp", "tp-pp-dp-cp", "dp-cp-pp-tp"}) {
    for (const int expert : {1, 2, 3, 4, 6, 12}) {
      CAPTURE(order);
      CAPTURE(expert);
      Degrees degrees = degrees_of(2, 3, 4, 2);
      degrees.expert = expert;
      degrees.order = parse_order(order);
      const RankGrid grid(degrees);
      std::set<std::vector<int>> together;
      std::set<std::vector<int>> same;
      for (int p = 0; p < degrees.pipeline; ++p) {
        for (std::vector<int>& group : grid.groups(Dimension::expert, p)) {
          together.insert(std::move(group));
        }
        for (int t = 0; t < degrees.tensor; ++t) {
          for (int e = 0; e < expert; ++e) same.insert(grid.expert_holders(p, t, e));
        }
      }
      CHECK(together == expert_ranks(degrees, Dimension::expert));
      CHECK(same == expert_ranks(degrees, Dimension::data));
    }
  }
}

// In other orders Megatron-LM's two generators have different pipelines, which it refuses.
TEST_CASE(
    "with another tensor degree, too, where tp comes before cp and dp, and pp last or first") {
  using Pair = std::pair<int, int>;
  for (const char* order : {"tp-cp-dp-pp", "tp-dp-cp-pp", "pp-tp-cp-dp"}) {
    for (const auto& [experts, tensors] :
         {Pair{8, 1}, {24, 1}, {3, 4}, {2, 12}, {12, 1}, {1, 1}, {6, 4}}) {
      const int expert = experts;  // clang 14 captures no binding
      const int tensor = tensors;
      CAPTURE(order);
      CAPTURE(expert);
      CAPTURE(tensor);
      Degrees degrees = degrees_of(2, 3, 4, 2);
      degrees.expert = expert;
      degrees.expert_tensor = tensor;
      degrees.order = parse_order(order);
      const RankGrid grid(degrees);
      std::set<std::vector<int>> together;
      std::set<std::vector<int>> shared;
      std::set<std::vector<int>> same;
      for (int p = 0; p < degrees.pipeline; ++p) {
        for (std::vector<int>& group : grid.groups(Dimension::expert, p)) {
          together.insert(std::move(group));
        }
        for (std::vector<int>& group : grid.groups(Dimension::expert_tensor, p)) {
          shared.insert(std::move(group));
        }
        for (int t = 0; t < tensor; ++t) {
          for (int e = 0; e < expert; ++e) same.insert(grid.expert_holders(p, t, e));
        }
      }
      CHECK(together == expert_ranks(degrees, Dimension::expert));
      CHECK(shared == expert_ranks(degrees, Dimension::tensor));
      CHECK(same == expert_ranks(degrees, Dimension::data));
    }
  }
}

TEST_CASE("another order nests them otherwise") {
  Degrees degrees = degrees_of(2, 1, 2, 2);
  degrees.order = parse_order("tp-pp-cp-ep-dp");
  const RankGrid grid(degrees);
  CHECK(grid.groups(Dimension::pipeline, 0) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(grid.groups(Dimension::data, 0) == Groups{{0, 4}, {1, 5}});
  CHECK(parse_order("tp-cp-dp-pp") == Degrees{}.order);
  CHECK(print_order(Degrees{}.order) == "tp-cp-ep-dp-pp");
}

TEST_CASE("every device is in one group of each dimension, in any order") {
  for (const char* order : {"tp-cp-dp-pp", "pp-dp-cp-tp", "dp-tp-pp-cp"}) {
    Degrees degrees = degrees_of(2, 3, 4, 2);
    degrees.order = parse_order(order);
    const RankGrid grid(degrees);
    for (const Dimension dimension : {Dimension::tensor, Dimension::context, Dimension::data}) {
      std::multiset<int> found;
      for (int p = 0; p < 2; ++p) {
        for (const std::vector<int>& group : grid.groups(dimension, p)) {
          found.insert(group.begin(), group.end());
        }
      }
      CHECK(found.size() == 48);
      CHECK(std::set<int>(found.begin(), found.end()).size() == 48);
      CHECK(*found.rbegin() == 47);
    }
  }
}

TEST_CASE("degrees and orders that cannot be are refused with their numbers") {
  Degrees degrees = degrees_of(1, 1, 4, 2);
  degrees.expert = 3;
  CHECK_THROWS_WITH_AS(RankGrid{degrees},
                       "--ep 3 does not divide --dp 4: experts are spread over the data-parallel "
                       "ranks; make the one a multiple of the other",
                       UsageError);
  degrees.context = 2;
  CHECK_THROWS_WITH_AS(RankGrid{degrees},
                       "--ep 3 does not divide --dp 4 × --cp 2: experts are spread over the "
                       "data-parallel and context-parallel ranks; make the one a multiple of the "
                       "other",
                       UsageError);
  const auto refusal = [](int tensor, int expert, int expert_tensor) -> std::string {
    Degrees folded = degrees_of(tensor, 1, 4, 1);
    folded.expert = expert;
    folded.expert_tensor = expert_tensor;
    try {
      const RankGrid grid(folded);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(2, 8, 1).empty());
  CHECK(refusal(2, 8, 0) ==
        "--ep 8 × --etp 2 = 16 does not divide --tp 2 × --cp 1 × --dp 4 = 8; give --etp 1");
  CHECK(refusal(2, 8, 2) == refusal(2, 8, 0));
  CHECK(refusal(2, 3, 1) ==
        "--ep 3 × --etp 1 = 3 does not divide --tp 2 × --cp 1 × --dp 4 = 8; give --ep 2");
  CHECK(refusal(2, 16, 2) ==
        "--ep 16 × --etp 2 = 32 does not divide --tp 2 × --cp 1 × --dp 4 = 8; give --ep 4");
  CHECK(refusal(2, 3, 3) ==
        "--ep 3 × --etp 3 = 9 does not divide --tp 2 × --cp 1 × --dp 4 = 8; give --etp 1 --ep 2");
  CHECK(refusal(1, 1, -1) == "--etp is a whole number from 1 (it is -1)");
  CHECK_THROWS_WITH_AS(RankGrid{degrees_of(0, 1, 4, 2)}, "--tp is a whole number from 1 (it is 0)",
                       UsageError);
  CHECK_THROWS_AS(parse_order("tp-dp-pp"), UsageError);
  CHECK_THROWS_AS(parse_order("tp-cp-dp-pp-dp"), UsageError);
  CHECK_THROWS_AS(parse_order("tp-cp-dp-xp"), UsageError);
  CHECK_THROWS_AS(parse_order("ep-tp-cp-dp-pp"), UsageError);
}

TEST_CASE("more devices than a run may have are refused, however large the product") {
  for (const Degrees& degrees :
       {degrees_of(1, 1, 46'341, 46'341), degrees_of(65'536, 65'536, 65'536, 65'536),
        degrees_of(1 << 30, 1 << 30, 1 << 30, 1 << 30), degrees_of(2, 1, 1, 1 << 20)}) {
    CHECK_THROWS_WITH_AS(RankGrid{degrees}, doctest::Contains("are more than 1048576 devices"),
                         UsageError);
  }
  CHECK(RankGrid(degrees_of(1, 1, 1, 1 << 20)).devices() == 1 << 20);
}

}  // namespace
}  // namespace stageline::rank_grid_tests
