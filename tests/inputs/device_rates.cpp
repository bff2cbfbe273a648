// Do devices get the rates that a what-if or their kind asks for?
#include "tools/inputs/device_rates.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"

namespace stageline::device_rates_tests {
namespace {

Cluster two_machines() {
  Cluster cluster = uniform_cluster(4, std::nullopt, std::nullopt);
  cluster.hosts = {{"m0", {}}, {"m1", {}}};
  for (std::size_t d = 0; d < 4; ++d) cluster.devices[d].host = d < 2 ? 0 : 1;
  return cluster;
}

TEST_CASE("a slow device, a slow machine, or all that begin alike") {
  Cluster cluster = two_machines();
  cluster.devices[3].memory_rate = 2;
  cluster.devices[3].op_overhead = parse_time("10us");
  const auto rates = [&](const std::string& text) {
    std::vector<double> all;
    for (const Device& device : slowed(cluster, parse_slow(text, "--slow")).devices) {
      all.push_back(device.rate);
    }
    return all;
  };
  CHECK(rates("gpu1:2") == std::vector<double>{1, 0.5, 1, 1});
  CHECK(rates("m1:4") == std::vector<double>{1, 1, 0.25, 0.25});
  CHECK(rates("gpu*:2,m0:2") == std::vector<double>{0.25, 0.25, 0.5, 0.5});
  const Device slow = slowed(cluster, parse_slow("gpu3:2", "--slow")).devices[3];
  CHECK(slow.memory_rate == 1);
  CHECK(slow.op_overhead == parse_time("20us"));
}

TEST_CASE("slow links are all of them, or those of a kind, and what was measured over them") {
  Cluster cluster = uniform_cluster(2, LinkSpec{Bandwidth{100}, Time{}}, std::nullopt);
  cluster.links[0].tier = Tier::nvlink;
  cluster.links[1].tier = Tier::network;
  cluster.collectives = {{CollectiveKind::all_reduce, 2, 1, Time{}, Bandwidth{80}, ""},
                         {CollectiveKind::all_reduce, 2, 2, Time{}, Bandwidth{40}, ""}};
  const auto rates = [&](const std::string& text) {
    std::vector<std::int64_t> all;
    const Cluster slow = slowed(cluster, parse_slow(text, "--slow"));
    for (const Link& link : slow.links) all.push_back(link.bandwidth.bytes_per_second);
    for (const auto& one : slow.collectives) all.push_back(one.bandwidth.bytes_per_second);
    return all;
  };
  CHECK(rates("links:2") == std::vector<std::int64_t>{50, 50, 40, 20});
  CHECK(rates("nvlink:4") == std::vector<std::int64_t>{25, 100, 20, 40});
  CHECK(rates("network:2") == std::vector<std::int64_t>{100, 50, 80, 20});
  CHECK(rates("nic:0.5") == std::vector<std::int64_t>{100, 200, 80, 80});
  CHECK_THROWS_WITH_AS(check_slow(cluster, {{"pcie", 2}}),
                       "--slow pcie: \"2 equal devices\" has no such links; it slows links, "
                       "nvlink, pcie, network or nic",
                       UsageError);
}

TEST_CASE("slow devices that cannot be are refused") {
  for (const char* const text :
       {"gpu1", "gpu1:", ":2", "gpu1:0", "gpu1:-1", "gpu1:nan", "gpu1:2,", ""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_slow(text, "--slow"), UsageError);
  }
  CHECK_THROWS_WITH_AS(
      parse_slow("gpu1=2", "--slow"),
      "--slow \"gpu1=2\": write a device, a machine or links and how many times as "
      "long work takes there, from 0.001 to 1000, like gpu2:1.2 or links:2",
      UsageError);
  CHECK_THROWS_WITH_AS(check_slow(two_machines(), {{"gpu4", 2}}),
                       "--slow gpu4: no device of the 4 in use has that name, nor the machine of "
                       "one (gpu0 to gpu3; machines from m0) (did you mean \"gpu0\"?)",
                       UsageError);
}

TEST_CASE("a slow machine makes the step as long as its stages are") {
  SettingRequest request;
  request.trace = "uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms";
  request.devices = {4};
  request.partition = "uniform";
  request.slow = {{"gpu2", 3}};
  const Setting setting = read_setting(request);
  const Case asked = make_case(request, setting, parse_schedules("1f1b").front(), 4);
  const Outcome outcome = study(asked);
  CHECK(outcome.costs.stage[2].forward == parse_time("3ms"));
  CHECK(outcome.costs.stage[1].forward == parse_time("1ms"));
  CHECK(setting.notes == std::vector<std::string>{
                             "what if: compute takes 3 times as long on gpu2, and cuts weigh it"});
  request.slow = {{"gpu7", 3}};
  CHECK_THROWS_AS(read_setting(request), UsageError);
}

Cluster mixed_kinds() {
  Cluster cluster = two_machines();
  DeviceKind fast;
  fast.name = "fast";
  fast.memory_bandwidth = parse_bandwidth("3TB/s");
  fast.peak = {{"fp32", 60e12}, {"bf16", 900e12}};
  DeviceKind old = fast;
  old.name = "old";
  old.memory_bandwidth = parse_bandwidth("1500GB/s");
  old.peak = {{"fp32", 20e12}, {"bf16", 300e12}, {"fp16", 225e12}};
  fast.peak.push_back({"fp16", 900e12});
  cluster.kinds = {fast, old};
  for (std::size_t d = 0; d < 4; ++d) cluster.devices[d].kind = d < 2 ? 0 : 1;
  return cluster;
}

TEST_CASE("where a trace is priced for one of a cluster's kinds, the others' rates follow") {
  const KindRates rates = with_rates_of_kinds(mixed_kinds(), "model:gpt@fast,layers=2");
  CHECK(rates.cluster.devices[0] == mixed_kinds().devices[0]);
  CHECK(rates.cluster.devices[2].rate == 300e12 / 900e12);
  CHECK(rates.cluster.devices[2].memory_rate == 0.5);
  CHECK(rates.notes ==
        std::vector<std::string>{
            "devices of kind old do arithmetic at 0.333 and memory traffic at 0.5 of the rate of "
            "fast, for which the trace is priced: the ratios of their bf16 peaks and memory "
            "bandwidths"});
  CHECK(with_rates_of_kinds(mixed_kinds(), "model:gpt@fast,dtype=fp16").cluster.devices[2].rate ==
        0.25);
  CHECK(with_rates_of_kinds(mixed_kinds(), "model:gpt@old").cluster.devices[0].rate == 3);
}

TEST_CASE("a trace of another kind than all devices has a note, unless they have rates") {
  const auto note = [](const std::string& device, Cluster cluster = mixed_kinds()) {
    cluster.kinds[0].title = "Fast";
    cluster.kinds[1].title = "Old";
    return other_kind_note(cluster, device);
  };
  CHECK(note("NVIDIA H100 SXM5 80 GB") ==
        "the layers' times are those of NVIDIA H100 SXM5 80 GB, and the devices are Fast, Old, "
        "which count as equally fast: price the model for them, or give the devices a rate");
  CHECK(note("Old").empty());
  CHECK(
      test::contains(note("AMD EPYC"), "the layers' times are those of AMD EPYC, and the devices"));
  Cluster alike = mixed_kinds();
  alike.kinds[0].title = alike.kinds[1].title = "NVIDIA H100 SXM";
  CHECK(other_kind_note(alike, "NVIDIA H100 80GB HBM3").empty());
  CHECK_FALSE(other_kind_note(alike, "NVIDIA A100 SXM 80 GB").empty());
  // Of a known kind the whole title counts, of another neither its socket nor its memory.
  CHECK_FALSE(other_kind_note(alike, "NVIDIA H100 SXM5 80 GB").empty());
  alike.kinds[0].title = alike.kinds[1].title = "NVIDIA GeForce RTX 4090 24 GB";
  CHECK(other_kind_note(alike, "NVIDIA GeForce RTX 4090").empty());
  CHECK_FALSE(other_kind_note(alike, "NVIDIA GeForce RTX 3090").empty());
  alike.kinds[0].title = alike.kinds[1].title = "NVIDIA H200 SXM5 141 GB HBM3";
  CHECK_FALSE(other_kind_note(alike, "NVIDIA H100 SXM5 HBM3").empty());
  CHECK(note("").empty());
  CHECK(test::contains(other_kind_note(mixed_kinds(), "AMD EPYC"),
                       "the devices are fast, old, which count as equally fast"));
  Cluster rated = mixed_kinds();
  for (Device& device : rated.devices) device.rate = 0.5;
  CHECK(note("NVIDIA H100 SXM5 80 GB", rated).empty());
}

TEST_CASE("rates that are given stay, and those of traces that are not priced") {
  Cluster cluster = mixed_kinds();
  cluster.devices[3].rate = 0.7;
  CHECK(with_rates_of_kinds(cluster, "model:gpt@fast").cluster.devices[3].memory_rate == 0);
  CHECK(with_rates_of_kinds(cluster, "model:gpt@fast").cluster.devices[3].rate == 0.7);
  CHECK(with_rates_of_kinds(mixed_kinds(), "uniform:layers=3").cluster == mixed_kinds());
  CHECK(with_rates_of_kinds(mixed_kinds(), "model:gpt@h100").cluster == mixed_kinds());
  Cluster alone = mixed_kinds();
  for (Device& device : alone.devices) device.kind = 1;
  CHECK(with_rates_of_kinds(alone, "model:gpt@fast").cluster == alone);
  Cluster unknown = mixed_kinds();
  unknown.kinds[1].peak.clear();
  const KindRates kept = with_rates_of_kinds(unknown, "model:gpt@fast");
  CHECK(kept.cluster == unknown);
  CHECK(kept.notes ==
        std::vector<std::string>{
            "devices of kind old count as fast as fast: the kinds do not both state a "
            "bf16 peak and a memory bandwidth; give the devices a rate"});
}

}  // namespace
}  // namespace stageline::device_rates_tests
