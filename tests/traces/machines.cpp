// Do machines that are repeated become the devices and links that they have, and keep their names?
#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "sim/routes.hpp"
#include "tests/traces/support.hpp"
#include "traces/traces.hpp"

namespace stageline::machines_tests {
namespace {

// Two machines of two devices; `more` are further members, with a comma before each.
std::string lab(const std::string& more, const std::string& device = "") {
  return R"({"format": "stageline-cluster 1", "name": "lab",
    "devices": [{"name": "gpu", "count": 2, "host": "host")" +
         device + R"(}],
    "hosts": [{"name": "host", "memory": "1TB"}], "switches": ["nvswitch"],
    "links": [{"from": "gpu*", "to": "nvswitch", "bandwidth": "450GB/s", "latency": "1us",
               "tier": "nvlink"}])" +
         more + "}";
}

std::string network(const std::string& nics, const std::string& more = "") {
  return R"(, "machines": 2, "network": {"nics": [)" + nics + "]" + more + "}";
}
const std::string own_nics = R"({"name": "nic", "count": 2, "bandwidth": "50GB/s",
                                 "latency": "2us"})";

Cluster read_lab(const std::string& text, const ClusterUse& use = {}) {
  return read_cluster(text, "lab.json", use);
}

std::string node_name(const Cluster& cluster, int node) {
  auto at = as_size(node);
  if (at < cluster.devices.size()) return cluster.devices[at].name;
  at -= cluster.devices.size();
  if (at < cluster.hosts.size()) return cluster.hosts[at].name;
  return cluster.switches[at - cluster.hosts.size()];
}

// "m0.gpu0 rail0 50 2us network; …": ends, GB/s, latency, tier of the links that are no NVLink.
std::string outside(const Cluster& cluster) {
  std::string text;
  for (const Link& link : cluster.links) {
    if (link.tier == Tier::nvlink) continue;
    const auto rate = static_cast<double>(link.bandwidth.bytes_per_second) / 1e9;
    text += node_name(cluster, link.from) + " " + node_name(cluster, link.to) + " " +
            (link.bandwidth.is_unlimited() ? "inf" : std::to_string(std::lround(rate))) + " " +
            std::to_string(link.latency / std::chrono::nanoseconds(1)) + "ns " +
            std::string(name(link.tier)) + "; ";
  }
  return text;
}

std::string resources(Routes& routes, int from, int to) {
  std::string text;
  for (const int resource : routes.between(from, to).resources) {
    text += nth(routes.names(), resource) + " ";
  }
  return text;
}

Cluster bundled_cluster(const std::string& name, const ClusterUse& use = {}) {
  for (const Bundled& bundled : bundled_clusters()) {
    if (bundled.name == name) return read_cluster(std::string(bundled.text), name, use);
  }
  FAIL("no cluster ", name);
  return {};
}

}  // namespace

TEST_CASE("every machine has its devices, its host and its switches under its name") {
  const Cluster cluster = read_lab(lab(network(own_nics)));
  CHECK(cluster.name == "lab");
  std::string nodes;
  for (int node = 0; node < 9; ++node) nodes += node_name(cluster, node) + " ";
  CHECK(nodes == "m0.gpu0 m0.gpu1 m1.gpu0 m1.gpu1 m0.host m1.host m0.nvswitch m1.nvswitch fabric ");
  CHECK(cluster.switches.size() == 3);
  CHECK(cluster.devices[2].host == 1);
  CHECK(cluster.hosts[1].memory == Bytes{1'000'000'000'000});
  REQUIRE(cluster.links.size() == 8);
  CHECK(cluster.links[3] == Link{"m1.gpu1-m1.nvswitch",
                                 3,
                                 7,
                                 Bandwidth{450'000'000'000},
                                 std::chrono::microseconds(1),
                                 Duplex::full,
                                 {},
                                 Tier::nvlink});
  CHECK(cluster.links[7].name == "m1.nic1");
  CHECK(outside(cluster) ==
        "m0.gpu0 fabric 50 2000ns network; m0.gpu1 fabric 50 2000ns network; "
        "m1.gpu0 fabric 50 2000ns network; m1.gpu1 fabric 50 2000ns network; ");
}

TEST_CASE("rails are switches, and a spine joins them") {
  const std::string rails = R"(, "rails": 2)";
  Cluster apart = read_lab(lab(network(own_nics, rails)));
  CHECK(outside(apart) ==
        "m0.gpu0 rail0 50 2000ns network; m0.gpu1 rail1 50 2000ns network; "
        "m1.gpu0 rail0 50 2000ns network; m1.gpu1 rail1 50 2000ns network; ");
  CHECK(usage_error_of([&] { network_of(apart); }) ==
        "cluster \"lab\": no link leads from m0.gpu0 to m1.gpu1; every pair of devices must be "
        "joined, directly or through hosts and switches");

  const Cluster joined = read_lab(
      lab(network(own_nics, rails + R"(, "spine": {"oversubscription": 2.5, "latency": "1us"})")));
  CHECK(outside(joined).find("rail0 spine 40 1000ns network; rail1 spine 40 1000ns network") !=
        std::string::npos);
  Routes routes(joined);
  CHECK(resources(routes, 0, 1) == "m0.gpu0>m0.nvswitch m0.nvswitch>m0.gpu1 ");
  CHECK(resources(routes, 0, 2) == "m0.gpu0>rail0 rail0>m1.gpu0 ");
  CHECK(resources(routes, 0, 3) == "m0.gpu0>rail0 rail0>spine spine>rail1 rail1>m1.gpu1 ");
  CHECK(routes.between(0, 1).tier == Tier::nvlink);
  CHECK(routes.between(0, 3).tier == Tier::network);
  CHECK(routes.between(0, 3).latency == std::chrono::microseconds(6));
  CHECK(routes.between(0, 3).bandwidth == Bandwidth{40'000'000'000});
}

TEST_CASE("groups of machines have switches of their own below the spine") {
  const std::string text = lab(network(own_nics, R"(, "leaf_machines": 2, "spine":
                                                   {"oversubscription": 4})"));
  const Cluster cluster = read_lab(text, {3, false, false});
  CHECK(cluster.name == "lab*3");
  CHECK(cluster.devices.size() == 12);
  const std::vector<std::string> leaves(cluster.switches.begin() + 6, cluster.switches.end());
  CHECK(leaves ==
        std::vector<std::string>{"leaf0.fabric", "leaf1.fabric", "leaf2.fabric", "spine"});
  // Four NICs of 50 GB/s into each, a quarter of that out.
  CHECK(outside(cluster).find("leaf2.fabric spine 50 0ns network") != std::string::npos);
  Routes routes(cluster);
  CHECK(routes.between(0, 2).resources.size() == 2);
  CHECK(routes.between(0, 4).resources.size() == 4);
  // Of one group the switch alone is left.
  CHECK(read_lab(text).switches ==
        std::vector<std::string>{"m0.nvswitch", "m1.nvswitch", "fabric"});
}

TEST_CASE("devices share a NIC, or have several") {
  const Cluster shared = read_lab(lab(network(R"({"name": "nic", "bandwidth": "50GB/s",
                                              "latency": "2us", "pcie": "63GB/s"})")));
  CHECK(outside(shared) ==
        "m0.gpu0 m0.nic 63 2000ns pcie; m0.gpu1 m0.nic 63 2000ns pcie; m0.nic fabric 50 0ns "
        "network; m1.gpu0 m1.nic 63 2000ns pcie; m1.gpu1 m1.nic 63 2000ns pcie; m1.nic fabric 50 "
        "0ns network; ");
  Routes routes(shared);
  // Both leave by the same port, and do not talk to each other through it.
  CHECK(resources(routes, 1, 2) == "m0.gpu1>m0.nic m0.nic>fabric fabric>m1.nic m1.nic>m1.gpu0 ");
  CHECK(resources(routes, 0, 1) == "m0.gpu0>m0.nvswitch m0.nvswitch>m0.gpu1 ");
  CHECK(routes.between(1, 2).bandwidth == Bandwidth{50'000'000'000});

  const Cluster several = read_lab(lab(network(
      R"({"name": "efa", "count": 8, "bandwidth": "10GB/s"})", R"(, "rails": ["left", "right"])")));
  CHECK(outside(several) ==
        "m0.gpu0 left 40 0ns network; m0.gpu1 right 40 0ns network; m1.gpu0 left 40 0ns network; "
        "m1.gpu1 right 40 0ns network; ");
  CHECK(several.links.back().name == "m1.efa4");

  const Cluster two_kinds = read_lab(lab(network(
      R"({"name": "a", "devices": ["gpu1"], "bandwidth": "10GB/s", "rail": "right"},
         {"name": "b", "devices": "gpu0", "bandwidth": "unlimited", "pcie": "20GB/s"})",
      R"(, "rails": ["left", "right"], "spine": {})")));
  CHECK(outside(two_kinds) ==
        "m0.gpu1 right 10 0ns network; m0.gpu0 m0.b 20 0ns pcie; m0.b right inf 0ns network; "
        "m1.gpu1 right 10 0ns network; m1.gpu0 m1.b 20 0ns pcie; m1.b right inf 0ns network; "
        "right spine inf 0ns network; ");
}

TEST_CASE("an NVLink domain is larger than a machine") {
  const std::string domain =
      R"(, "domain": {"machines": 2, "switches": ["nvswitch"]}, "machines": 2)";
  const Cluster one = read_lab(lab(domain));
  CHECK(one.switches == std::vector<std::string>{"nvswitch"});
  CHECK(outside(one).empty());
  const Network network = network_of(one);
  CHECK(network.between(0, 3).tier == Tier::nvlink);
  CHECK(network.host == std::vector<int>{0, 0, 1, 1});

  const std::string text =
      lab(domain + R"(, "network": {"nics": [{"name": "nic", "bandwidth": "50GB/s",
                                              "latency": "2us"}]})");
  CHECK(read_lab(text) == one);  // the network joins domains
  const Cluster two = read_lab(text, {2, false, false});
  CHECK(two.devices.size() == 8);
  CHECK(two.hosts.size() == 4);
  CHECK(std::count(two.switches.begin(), two.switches.end(), "d1.nvswitch") == 1);
  Routes routes(two);
  CHECK(resources(routes, 1, 2) == "m0.gpu1>d0.nvswitch d0.nvswitch>m1.gpu0 ");
  CHECK(routes.between(1, 4).tier == Tier::network);
}

TEST_CASE("a machine without a host gets one when it is repeated") {
  const std::string text = R"({"format": "stageline-cluster 1", "name": "bare", "machines": 2,
    "devices": [{"name": "gpu", "count": 2}], "switches": ["s"],
    "links": [{"from": "gpu*", "to": "s", "bandwidth": "1GB/s", "name": "port"}],
    "network": {"nics": [{"name": "nic", "count": 2, "bandwidth": "1GB/s"}]}})";
  const Cluster cluster = read_lab(text);
  CHECK(cluster.hosts == std::vector<Host>{{"m0.host", {}}, {"m1.host", {}}});
  CHECK(cluster.devices[3].host == 1);
  CHECK(node_name(cluster, cluster.links[3].to) == "m1.s");
  CHECK(cluster.links[3].name == "m1.port.gpu1-s");
  CHECK(network_of(cluster).to_host[0].is_free());
}

TEST_CASE("several machines, groups and a flag take the driver's memory, less its reserve") {
  const std::string kinds =
      R"(, "kinds": [{"name": "k", "memory": "80GB",
                      "driver": {"memory": "85GB", "reserve": "3GB", "source": "s"}}])";
  const std::string text =
      lab(kinds + network(own_nics, R"(, "overlap": {"nvlink": 0.125, "network": 0.0625},
                                       "source": "s")"),
          R"(, "kind": "k")");
  const std::string one = replaced(text, R"("machines": 2)", R"("machines": 1)");
  struct Expected {
    std::string text;
    ClusterUse use;
    int memory, reserve;  // GB
    double nvlink;
  };
  for (const Expected& expected :
       {Expected{one, {}, 80, 0, 0}, Expected{one, {1, false, true}, 85, 3, 0},
        Expected{one, {1, true, false}, 85, 3, 0.125},
        Expected{one, {1, false, false, true}, 80, 0, 0.125},
        Expected{one, {2, false, false}, 85, 3, 0.125}, Expected{text, {}, 85, 3, 0.125}}) {
    const Cluster cluster = read_lab(expected.text, expected.use);
    const Device& device = cluster.devices.back();
    CHECK(device.memory == Bytes{expected.memory * 1'000'000'000LL});
    CHECK(device.reserve == Bytes{expected.reserve * 1'000'000'000LL});
    CHECK(cluster.kinds[0].memory == device.memory);
    CHECK(cluster.overlap_slowdown[as_size(Tier::nvlink)] == expected.nvlink);
  }
  // "overlap" of the cluster itself always holds, and a device's own figures too.
  const Cluster own = read_lab(replaced(
      replaced(one, R"("kind": "k")", R"("kind": "k", "memory": "60GB", "reserve": "1GB")"),
      R"("machines": 1)", R"("machines": 1, "overlap": {"pcie": 0.25})"));
  CHECK(own.overlap_slowdown == std::array<double, tiers>{0, 0, 0.25, 0});
  CHECK(usable_memory(own.devices[0]) == Bytes{59'000'000'000});
  const Cluster slowed = read_lab(
      replaced(one, R"("machines": 1)", R"("machines": 1, "overlap_transfers": {"nvlink": 0.5})"));
  CHECK(slowed.transfer_slowdown == std::array<double, tiers>{0, 0.5, 0, 0});
  CHECK(read_lab(write_cluster(slowed)) == slowed);
  for (const std::string gamma : {"{}", R"({"nvlink": 0.25})"}) {
    const Cluster copied = read_lab(
        replaced(one, R"("machines": 1)", R"("machines": 1, "overlap_messages": )" + gamma));
    REQUIRE(copied.message_slowdown);
    CHECK(nth(*copied.message_slowdown, Tier::nvlink) == (gamma == "{}" ? 0 : 0.25));
    CHECK(read_lab(write_cluster(copied)) == copied);
  }
}

TEST_CASE("devices are spread over fewer NICs in their order") {
  const auto on = [](int devices, int nics) {
    const Cluster cluster = read_lab(
        R"({"format": "stageline-cluster 1", "name": "lab", "machines": 2, "devices": [{"name": "d",
            "count": )" +
        std::to_string(devices) + R"(, "host": "h"}], "hosts": [{"name": "h"}],
            "links": [{"from": "d*", "to": "h", "bandwidth": "1GB/s"}],
            "network": {"nics": [{"name": "nic", "count": )" +
        std::to_string(nics) + R"(, "bandwidth": "200Gbit/s", "latency": "2us"}]}})");
    // By NIC of the first machine, its devices.
    std::string text;
    for (int nic = 0; nic < nics; ++nic) {
      int joined = 0;
      for (const Link& link : cluster.links) {
        const std::string end = node_name(cluster, link.to);
        if (link.tier == Tier::pcie && end == "m0.nic" + std::to_string(nic)) ++joined;
        if (node_name(cluster, link.from) == "m0.nic" + std::to_string(nic)) {
          CHECK(link.bandwidth == Bandwidth{25'000'000'000});
        }
      }
      text += std::to_string(joined);
    }
    return text;
  };
  CHECK(on(12, 8) == "21212121");
  CHECK(on(8, 4) == "2222");
  CHECK(on(6, 4) == "2121");
  CHECK(on(7, 3) == "322");
}

TEST_CASE("kinds of bundled clusters need no entry") {
  const Cluster cluster = read_lab(lab("", R"(, "kind": "h100", "memory_rate": 0.5)"));
  REQUIRE(cluster.kinds.size() == 1);
  CHECK(cluster.kinds[0] == bundled_cluster("h100x8").kinds[0]);
  CHECK(cluster.devices[1].memory == Bytes{80'000'000'000});
  CHECK(cluster.devices[1].memory_rate == 0.5);
  const Cluster grouped = read_lab(lab("", R"(, "kind": "h100")"), {1, true, false});
  CHECK(grouped.devices[1].memory == Bytes{81559LL << 20U});
  CHECK(grouped.devices[1].reserve == Bytes{3'000'000'000});
  // An entry of the file goes first.
  const Cluster own =
      read_lab(lab(R"(, "kinds": [{"name": "h100", "memory": "94GB"}])", R"(, "kind": "h100")"));
  CHECK(own.devices[0].memory == Bytes{94'000'000'000});
  const TraceError unknown = trace_error_of([] { read_lab(lab("", R"(, "kind": "h1000")")); });
  CHECK(unknown.where == "/devices/0/kind");
  CHECK(contains(unknown.what(), "there is no kind \"h1000\" (did you mean \"h100\"?)"));
}

TEST_CASE("the bundled machines are joined as they are built") {
  struct Expected {
    std::string name;
    int times, devices, hosts;
    int near, far;       // two devices of other machines: in one domain (0: none), and beyond
    double rate;         // GB/s between these machines, of a pair
    std::size_t hops;    // links of the route
    std::size_t across;  // of the route to the next device there
  };
  for (const Expected& expected :
       {Expected{"h100x8", 2, 16, 2, 0, 8, 50, 2, 4}, Expected{"h200x8", 2, 16, 2, 0, 8, 50, 2, 4},
        Expected{"b200x8", 2, 16, 2, 0, 8, 50, 2, 4}, Expected{"a100x8", 3, 24, 3, 0, 16, 25, 2, 4},
        Expected{"p4d", 2, 16, 2, 0, 8, 12.5, 4, 4},
        Expected{"gb200x72", 2, 144, 36, 68, 72, 50, 2, 4}}) {
    CAPTURE(expected.name);
    const Cluster cluster = bundled_cluster(expected.name, {expected.times, false, false});
    CHECK(cluster.devices.size() == as_size(expected.devices));
    CHECK(cluster.hosts.size() == as_size(expected.hosts));
    Routes routes(cluster);
    CHECK(routes.between(0, 1).tier == Tier::nvlink);
    CHECK(routes.between(0, expected.near).tier ==
          (expected.near == 0 ? Tier::other : Tier::nvlink));
    const Route& far = routes.between(0, expected.far);
    CHECK(far.tier == Tier::network);
    CHECK(static_cast<double>(far.bandwidth.bytes_per_second) == expected.rate * 1e9);
    CHECK(far.resources.size() == expected.hops);
    CHECK(routes.between(0, expected.far + 1).resources.size() == expected.across);
    CHECK(cluster.overlap_slowdown == std::array<double, tiers>{0, 0.1, 0, 0.05});
    CHECK(cluster.devices[0].reserve == Bytes{3'000'000'000});
    CHECK(read_cluster(write_cluster(cluster), "written") == cluster);
  }
  // One machine is what it was before it had a network.
  const Cluster alone = bundled_cluster("h100x8");
  CHECK(alone.switches == std::vector<std::string>{"nvswitch"});
  CHECK(alone.devices[7].name == "gpu7");
  CHECK(alone.devices[7].reserve == Bytes{});
  CHECK(alone.overlap_slowdown == std::array<double, tiers>{});
}

TEST_CASE(
    "what the writer writes of machines, tiers, reserves and overlap, the reader gives back") {
  const Cluster cluster =
      read_lab(lab(R"(, "kinds": [{"name": "k", "memory": "80GB", "reserve": "2GB"}],
                 "overlap": {"other": 0.5, "network": 0.0625})" +
                       network(own_nics, R"(, "rails": 2, "spine": {"oversubscription": 3})"),
                   R"(, "kind": "k", "memory_rate": 0.75)"));
  CHECK(read_cluster(write_cluster(cluster), "written") == cluster);
  Cluster odd = cluster;
  odd.devices[1].reserve = Bytes{};
  odd.devices[2].reserve = Bytes{12'345'678'901};
  odd.devices[3].memory_rate = 0;
  CHECK(read_cluster(write_cluster(odd), "written") == odd);
}

TEST_CASE("the machines of the README are as it says") {
  const std::string page = source_text("traces/README.md");
  const std::size_t begin = page.rfind("```json\n", page.find("\"machines\": 4")) + 8;
  const Cluster cluster = read_cluster(page.substr(begin, page.find("```", begin) - begin), "r");
  CHECK(cluster.devices.size() == 16);
  CHECK(cluster.devices[15].name == "m3.gpu3");
  CHECK(usable_memory(cluster.devices[0]) == Bytes{(81559LL << 20U) - 3'000'000'000});
  Routes routes(cluster);
  CHECK(resources(routes, 0, 4) == "m0.gpu0>m0.nic0 m0.nic0>rail0 rail0>m1.nic0 m1.nic0>m1.gpu0 ");
  CHECK(resources(routes, 1, 15).find("rail0>spine spine>rail1") != std::string::npos);
  // Four NICs of 25 GB/s into each rail, half of that out.
  const Link& up = cluster.links.back();
  CHECK(up.bandwidth == Bandwidth{50'000'000'000});
}

TEST_CASE("machines that cannot be built are refused with the rule and the numbers") {
  struct Refused {
    std::string text;
    int times;
    std::string where, what;
  };
  const auto with = [](const std::string& nics, const std::string& more = "") {
    return lab(network(nics, more));
  };
  for (const Refused& refused : std::vector<Refused>{
           {lab(R"(, "machines": 0)"), 1, "/machines", "from 1 to 65536 (it is 0)"},
           {lab(R"(, "machines": 2)"), 1, "",
            "2 machines need a \"network\" that joins them, and \"lab\" has none; describe its "
            "NICs, or take one machine"},
           {lab(""), 3, "", "3 machines need a \"network\""},
           {lab(R"(, "domain": {"machines": 2, "switches": ["nvswitch"]}, "machines": 2)"), 2, "",
            "4 machines need a \"network\" that joins them, and \"lab\" has none; describe its "
            "NICs, or take 2 machines, a domain"},
           {lab(R"(, "domain": {"machines": 2, "switches": ["nvswitch"]}, "machines": 3)"), 1,
            "/domain/machines", "3 machines cannot be divided into domains of 2"},
           {lab(R"(, "domain": {"machines": 2, "switches": ["nvswich"]}, "machines": 2)"), 1,
            "/domain/switches/0", "there is no switch \"nvswich\" (did you mean \"nvswitch\"?)"},
           {lab(R"(, "domain": {"machines": 2, "switches": []}, "machines": 2)"), 1,
            "/domain/switches", "at least one switch"},
           {lab(R"(, "racks": {"devices": 2, "machines": 1})"), 1, "/racks/machines",
            "from 2 to 65536 (it is 1)"},
           {lab(R"(, "racks": {"devices": 400, "machines": 400})"), 1, "/racks",
            "a rack has at most 65536 devices"},
           {lab(R"(, "machines": 2, "racks": {"devices": 2, "machines": 2})"), 1, "/racks",
            "machines that are repeated have racks by their \"domain\""},
           {with(own_nics), 20000, "",
            "40000 machines of 2 devices are 80000, and a cluster has at "
            "most 65536"},
           {with(R"({"name": "nic", "count": 3, "bandwidth": "1GB/s"})"), 1,
            "/network/nics/0/count", "3 NICs cannot be divided evenly among 2 devices"},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "devices": "tpu*"})"), 1,
            "/network/nics/0/devices", "begins with \"tpu\""},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "devices": "gpu7"})"), 1,
            "/network/nics/0/devices", "there is no device, host or switch \"gpu7\""},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "devices": "nvswitch"})"), 1,
            "/network/nics/0/devices", "a NIC belongs to devices, and \"nvswitch\" is none"},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "devices": ["gpu0", "gpu*"]})"), 1,
            "/network/nics/0/devices/1", "\"gpu0\" appears twice"},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "devices": []})"), 1,
            "/network/nics/0/devices", "at least one device"},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "rail": "rail9"})", R"(, "rails": 2)"), 1,
            "/network/nics/0/rail",
            "there is no rail \"rail9\" (did you mean \"rail0\"?); this network has rail0, rail1"},
           {with(R"({"name": "nic", "bandwidth": 50})"), 1, "/network/nics/0/bandwidth",
            "50 has no unit; this must be a text, such as \"12GB/s\""},
           {with(R"({"name": "nic", "bandwidth": "1GB/s", "latency": 2})"), 1,
            "/network/nics/0/latency", "2 has no unit; this must be a text, such as \"5us\""},
           {with(R"({"name": "nic"})"), 1, "/network/nics/0", "\"bandwidth\" is missing"},
           {with(""), 1, "/network/nics", "at least one NIC"},
           {with(own_nics, R"(, "rails": 0)"), 1, "/network/rails", "from 1 to 4096 (it is 0)"},
           {with(own_nics, R"(, "rails": [])"), 1, "/network/rails", "at least one rail"},
           {with(own_nics, R"(, "rails": ["a", "a"])"), 1, "/network/rails/1", "appears twice"},
           {with(own_nics, R"(, "rails": ["m0.gpu0", "b"])"), 1, "",
            "the name \"m0.gpu0\" appears twice"},
           {with(own_nics, R"(, "rails": 2, "spine": {"oversubscription": 0.5})"), 1,
            "/network/spine/oversubscription", "at least 1 (it is 0.5)"},
           {with(own_nics, R"(, "spine": {"oversubscription": 2})"), 1, "/network/spine",
            "this network has one for all machines; give \"rails\" or \"leaf_machines\""},
           {with(own_nics, R"(, "overlap": {"nvlink": 1.5})"), 1, "/network/overlap/nvlink",
            "from 0 to 1 (it is 1.5)"},
           {with(own_nics, R"(, "overlap": {"nvlnk": 0.5})"), 1, "/network/overlap/nvlnk",
            "did you mean \"nvlink\"?"},
           {replaced(lab(""), "\"tier\": \"nvlink\"", "\"tier\": \"nv\""), 1, "/links/0/tier",
            "there is no tier \"nv\""},
           {lab("", R"(, "memory": "8GB", "reserve": 1000)"), 1, "/devices/0/reserve",
            "1000 has no unit; this must be a text, such as \"2GB\""},
           {lab("", R"(, "memory": "8GB", "reserve": "9GB")"), 1, "/devices/0/reserve",
            "a reserve of 9.000 GB is more than the memory of 8.000 GB"},
           {lab(R"(, "kinds": [{"name": "k", "driver": {"memory": "1GB", "reserve": "2GB"}}])"), 1,
            "/kinds/0/driver/reserve", "is more than the memory of 1.000 GB"},
           {lab("", R"(, "memory_rate": 0)"), 1, "/devices/0/memory_rate", "positive"}}) {
    CAPTURE(refused.text);
    const TraceError error = trace_error_of([&] {
      read_lab(refused.text, {refused.times, false, false});
    });
    CHECK(error.where == refused.where);
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(contains(what, refused.what));
  }
}

}  // namespace stageline::machines_tests
