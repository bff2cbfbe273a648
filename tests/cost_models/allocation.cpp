// Does a job stand on racks as schedulers place it, with its groups in one rack where they can be?
#include "cost_models/network/allocation.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::allocation_tests {
namespace {

using Rule = AllocationRequest::Rule;

// Racks of 18 machines of 4 devices, as GB200's; device d is "gD", without links.
Cluster racks_of_72(int racks) {
  Cluster cluster;
  cluster.name = "racks";
  cluster.racks = {4, 18};
  cluster.devices.resize(static_cast<std::size_t>(racks) * 72);
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    cluster.devices[d].name = fmt::format("g{}", d);
  }
  return cluster;
}

Degrees degrees_of(int tensor, int expert, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.expert = expert;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

int number_of(const Device& device) { return std::stoi(device.name.substr(1)); }

// "64 64": devices of each rack.
std::string by_rack(const Cluster& cluster) {
  std::map<int, int> count;
  for (const Device& device : cluster.devices) ++count[number_of(device) / 72];
  std::string text;
  for (const auto& [rack, devices] : count) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", devices);
  }
  return text;
}

TEST_CASE("a rack gives the greatest divisor of a job's machines") {
  // 128, 256, 512 and 2,560 GPUs in machines of 4 get 64 of a rack, 72 and 576 get 72.
  for (const int gpus : {128, 256, 512, 2560}) CHECK(machines_of_a_rack(gpus / 4, 18) == 16);
  for (const int gpus : {72, 576}) CHECK(machines_of_a_rack(gpus / 4, 18) == 18);
  CHECK(machines_of_a_rack(34, 18) == 17);
  CHECK(machines_of_a_rack(35, 18) == 7);
  CHECK(machines_of_a_rack(37, 18) == 1);
  CHECK(test::complaint<UsageError>([] { machines_of_a_rack(0, 18); }) ==
        "0 machines in racks of 18: both are whole numbers from 1");
}

TEST_CASE("a job larger than a rack has equal shares, the first machines of each") {
  const Cluster job = allocated(racks_of_72(4), 256, {}, {});
  CHECK(by_rack(job) == "64 64 64 64");
  CHECK(job.devices[63].name == "g63");
  CHECK(job.devices[64].name == "g72");
  REQUIRE(job.allocation);
  CHECK(job.allocation->rule == "segment");
  CHECK(job.allocation->racks == 4);
  CHECK(job.allocation->each == 64);
  CHECK(allocation_notes(job).front() ==
        "256 devices on 4 racks, 64 of each one's 72, as schedulers of jobs place them "
        "(--placement fill takes all of a rack first)");
  CHECK(by_rack(allocated(racks_of_72(4), 256, {Rule::fill}, {})) == "72 72 72 40");
  // One rack holds it: the first devices, without a word.
  const Cluster small = allocated(racks_of_72(4), 64, {}, {});
  CHECK(by_rack(small) == "64");
  CHECK(!small.allocation);
  CHECK(allocation_notes(small).empty());
}

TEST_CASE("a share is smaller where groups of the usual one would be in two racks") {
  // 192 GPUs are 48 machines, 16 a rack; groups of 48 stand in racks of 48, of which there are
  // four.
  const Degrees degrees = degrees_of(1, 48, 192, 1);
  const Cluster job = allocated(racks_of_72(4), 192, {}, degrees);
  CHECK(by_rack(job) == "48 48 48 48");
  CHECK(job.allocation->straddling.empty());
  // Three racks have none such: 64 of each, and two of the four groups are in two racks.
  const Cluster three = allocated(racks_of_72(3), 192, {}, degrees);
  CHECK(by_rack(three) == "64 64 64");
  REQUIRE(three.allocation->straddling.size() == 1);
  CHECK(three.allocation->straddling[0] == Straddling{"ep", 48, 2});
  CHECK(allocation_notes(three).back() ==
        "2 groups of --ep 48 are in several racks, and exchange through NICs instead of NVLink; a "
        "degree that divides the 64 devices of a rack avoids it");
}

TEST_CASE("shard groups stand in one rack, too") {
  Degrees degrees = degrees_of(1, 1, 192, 1);
  degrees.zero = Zero::weights;
  degrees.shard_group = {ShardSpan::ranks, 48};
  CHECK(by_rack(allocated(racks_of_72(4), 192, {}, degrees)) == "48 48 48 48");
  const Cluster three = allocated(racks_of_72(3), 192, {}, degrees);
  CHECK(three.allocation->straddling == std::vector{Straddling{"shard-group", 48, 2}});
}

TEST_CASE("full racks where they alone hold the groups together") {
  // 144 GPUs in groups of 72: 18 machines a rack; 432 in groups of 36: 18, which 36 divides.
  CHECK(by_rack(allocated(racks_of_72(2), 144, {}, degrees_of(1, 72, 144, 1))) == "72 72");
  // 140 GPUs are 35 machines, 7 a rack: two racks are too few, and are filled.
  const Cluster filled = allocated(racks_of_72(2), 140, {}, {});
  CHECK(by_rack(filled) == "72 68");
  CHECK(filled.allocation->needed == 5);
  CHECK(allocation_notes(filled).front() ==
        "140 devices fill 2 racks of 72: equal shares would take 5 racks, and racks has fewer");
}

TEST_CASE("named devices are the ranks in their order") {
  AllocationRequest request{Rule::named, {"g72", "g0", "g73", "g1"}};
  const Cluster job = allocated(racks_of_72(2), 4, request, degrees_of(2, 1, 2, 1));
  CHECK(job.devices[0].name == "g72");
  CHECK(job.devices[3].name == "g1");
  REQUIRE(job.allocation);
  CHECK(job.allocation->rule == "file");
  CHECK(job.allocation->straddling.front() == Straddling{"tp", 2, 2});
  CHECK(
      allocation_notes(job) ==
      std::vector<std::string>{"4 devices in the order that --placement names them, on 2 racks",
                               "2 groups of --tp 2 are in several racks, and exchange through NICs "
                               "instead of NVLink; name devices of one rack for each"});
  Cluster machines = racks_of_72(1);
  machines.racks = {};
  request.devices = {"g5", "g3"};
  CHECK(allocation_notes(allocated(machines, 2, request, {})) ==
        std::vector<std::string>{"2 devices in the order that --placement names them"});
  const auto said = [&](std::vector<std::string> names) {
    request.devices = std::move(names);
    return test::complaint<UsageError>([&] { allocated(racks_of_72(2), 2, request, {}); });
  };
  CHECK(said({"g1"}) ==
        "--placement names 1 device, and the run has 2; name one for each rank, in their order");
  CHECK(said({"g1", "x"}) == "--placement: \"racks\" has no device \"x\"; its first is \"g0\"");
  CHECK(said({"g1", "g1"}) == "--placement names \"g1\" twice; each rank has a device of its own");
}

}  // namespace
}  // namespace stageline::allocation_tests
