// Do cluster files say what is joined to what, and are broken ones refused?
#include <algorithm>
#include <random>

#include "sim/base/index.hpp"
#include "tests/traces/support.hpp"
#include "traces/traces.hpp"

namespace stageline::cluster_tests {
namespace {

const std::string valid = R"({
  "format": "stageline-cluster 1",
  "name": "c",
  "source": "s",
  "kinds": [{"name": "k", "title": "T", "memory": "16GB", "memory_bandwidth": "900GB/s",
             "peak": {"fp32": 14e12, "fp16": 112e12}, "power_watts": 250,
             "idle_watts": 40, "power_source": "p", "price_per_hour": 2.5, "price_source": "q",
             "source": "sheet"}],
  "devices": [{"name": "gpu", "count": 3, "kind": "k", "host": "host0"},
              {"name": "old", "rate": 0.5, "memory": 1000}],
  "hosts": [{"name": "host0", "memory": "1TiB"}],
  "switches": ["sw"],
  "links": [{"from": "gpu*", "to": "sw", "bandwidth": "50GB/s", "latency": "1us"},
            {"from": "old", "to": "sw", "bandwidth": "8Gbit/s", "duplex": "half", "name": "slow"},
            {"from": "gpu*", "to": "host0", "bandwidth": "10GB/s", "latency": "5us", "name": "p"}]
}
)";

const Cluster& bundled(const std::string& name) {
  static std::vector<Cluster> clusters;
  if (clusters.empty()) {
    for (const Bundled& file : bundled_clusters()) {
      clusters.push_back(read_cluster(std::string(file.text), std::string(file.name)));
    }
  }
  const auto found = std::find_if(clusters.begin(), clusters.end(),
                                  [&](const Cluster& c) { return c.name == name; });
  REQUIRE_MESSAGE(found != clusters.end(), "no cluster ", name);
  return *found;
}

}  // namespace

TEST_CASE("a bundled kind with a power has an idle one below it, and figures name their source") {
  int priced = 0;
  for (const DeviceKind& kind : bundled_kinds()) {
    CAPTURE(kind.name);
    if (kind.power_watts == 0) continue;
    CHECK(kind.idle_watts > 0);
    CHECK(kind.idle_watts < kind.power_watts);
    CHECK(!kind.power_source.empty());
    CHECK((kind.price_per_hour > 0) == !kind.price_source.empty());
    if (kind.price_per_hour > 0) ++priced;
  }
  CHECK(priced >= 5);
}

TEST_CASE("more power idle than busy is refused") {
  std::string text = valid;
  text.replace(text.find("\"idle_watts\": 40"), 16, "\"idle_watts\": 400");
  CHECK_THROWS_WITH_AS(read_cluster(text, "c.json"), doctest::Contains("power_watts"), TraceError);
}

TEST_CASE("a cluster file becomes devices, hosts, switches and links") {
  const Cluster cluster = read_cluster(valid, "c.json");
  CHECK(cluster.name == "c");
  REQUIRE(cluster.kinds.size() == 1);
  const DeviceKind& kind = cluster.kinds[0];
  CHECK(kind.memory == Bytes{16'000'000'000});
  CHECK(kind.memory_bandwidth == Bandwidth{900'000'000'000});
  CHECK(kind.peak == std::vector<PeakRate>{{"fp32", 14e12}, {"fp16", 112e12}});
  CHECK(kind.power_watts == 250);
  CHECK(kind.idle_watts == 40);
  CHECK(kind.power_source == "p");
  CHECK(kind.price_per_hour == 2.5);
  CHECK(kind.price_source == "q");
  REQUIRE(cluster.devices.size() == 4);
  CHECK(cluster.devices[2] == Device{"gpu2", 0, Bytes{16'000'000'000}, 1, 0});
  CHECK(cluster.devices[3] == Device{"old", -1, Bytes{1000}, 0.5, -1});
  CHECK(cluster.hosts == std::vector<Host>{{"host0", Bytes{std::int64_t{1} << 40U}}});
  CHECK(cluster.switches == std::vector<std::string>{"sw"});
  // Nodes: gpu0 gpu1 gpu2 old host0 sw.
  REQUIRE(cluster.links.size() == 7);
  CHECK(cluster.links[1] == Link{"gpu1-sw", 1, 5, Bandwidth{50'000'000'000},
                                 std::chrono::microseconds(1), Duplex::full});
  CHECK(cluster.links[3] == Link{"slow", 3, 5, Bandwidth{1'000'000'000}, Time{}, Duplex::half});
  CHECK(cluster.links[6].name == "p.gpu2-host0");
  CHECK(cluster.links[6].to == 4);
}

TEST_CASE("a star stands for every node whose name begins so, and a pair is joined once") {
  const auto links = [](const std::string& ends) {
    const std::string text = R"({"format": "stageline-cluster 1", "name": "c",
      "devices": [{"name": "a", "count": 3}, {"name": "b"}], "switches": ["a9"],
      "links": [{)" + ends + R"(, "bandwidth": "1GB/s"}]})";
    std::string pairs;
    for (const Link& link : read_cluster(text, "c").links) {
      pairs += std::to_string(link.from) + ">" + std::to_string(link.to) + " ";
    }
    return pairs;
  };
  CHECK(links(R"("from": "b", "to": "a*")") == "3>0 3>1 3>2 3>4 ");
  CHECK(links(R"("from": "a*", "to": "b")") == "0>3 1>3 2>3 4>3 ");
  CHECK(links(R"("from": "a*", "to": "a9")") == "0>4 1>4 2>4 ");
  CHECK(links(R"("from": "a*", "to": "a*")") == "0>1 0>2 0>4 1>2 1>4 2>4 ");
  CHECK(links(R"("from": "*", "to": "b*")") == "0>3 1>3 2>3 4>3 ");
  CHECK(links(R"("from": "a*", "to": "*")") == "0>1 0>2 0>3 0>4 1>2 1>3 1>4 2>3 2>4 4>3 ");
}

TEST_CASE("every bundled cluster has routes between all its devices") {
  CHECK(bundled_clusters().size() == 18);
  for (const Bundled& file : bundled_clusters()) {
    CAPTURE(file.name);
    const Cluster& cluster = bundled(std::string(file.name));
    CHECK(cluster.name == file.name);
    CHECK(!cluster.source.empty());
    for (const DeviceKind& kind : cluster.kinds) {
      CHECK(!kind.source.empty());
      CHECK(!kind.peak.empty());
      CHECK(!kind.memory_bandwidth.is_unlimited());
    }
    const Network network = network_of(cluster);
    for (int from = 0; from < network.devices; ++from) {
      for (int to = 0; to < network.devices; ++to) {
        if (from != to) CHECK(!network.between(from, to).is_free());
      }
      if (nth(cluster.devices, from).host >= 0) {
        CHECK(!nth(network.to_host, from).is_free());
      }
    }
  }
}

TEST_CASE("kinds without a machine have what prices them, and a source with its date") {
  REQUIRE(bundled_kind_lists().size() == 1);
  const Bundled& list = bundled_kind_lists().front();
  CHECK(list.text.find("\"format\": \"stageline-kinds 1\"") != std::string::npos);
  const std::vector<DeviceKind> kinds = kinds_of(list);
  CHECK(kinds.size() == 16);
  for (const DeviceKind& kind : kinds) {
    CAPTURE(kind.name);
    CHECK(!kind.title.empty());
    REQUIRE(kind.memory);
    CHECK(kind.reserve > Bytes{});
    CHECK(!kind.memory_bandwidth.is_unlimited());
    CHECK(std::any_of(kind.peak.begin(), kind.peak.end(),
                      [](const PeakRate& peak) { return peak.precision == "bf16"; }));
    CHECK(kind.source.find("Read 2026-11-29") != std::string::npos);
    for (const Bundled& file : bundled_clusters()) {
      const std::vector<DeviceKind> machines = kinds_of(file);
      CHECK(std::none_of(machines.begin(), machines.end(),
                         [&](const DeviceKind& other) { return other.name == kind.name; }));
    }
  }
}

TEST_CASE("the bundled clusters carry bytes where their hardware does") {
  struct Expected {
    std::string name;
    std::size_t devices;
    std::int64_t between, to_host;  // bytes a second
    std::int64_t memory;            // of a device; 0: unknown
  };
  for (const Expected& expected :
       std::vector<Expected>{{"h100x8", 8, 450'000'000'000, 63'000'000'000, 80'000'000'000},
                             {"h200x8", 8, 450'000'000'000, 63'000'000'000, 141'000'000'000},
                             {"a100x8", 8, 300'000'000'000, 31'500'000'000, 80'000'000'000},
                             {"b200x8", 8, 900'000'000'000, 63'000'000'000, 183359LL << 20U},
                             {"gb200x72", 72, 900'000'000'000, 225'000'000'000, 189471LL << 20U},
                             {"p4d", 8, 300'000'000'000, 31'500'000'000, 40960LL << 20U},
                             {"rtx4090x8", 8, 31'500'000'000, 31'500'000'000, 24564LL << 20U},
                             {"v100x4-pcie", 4, 15'750'000'000, 15'750'000'000, 16'000'000'000},
                             {"gtx1060x2", 2, 15'750'000'000, 15'750'000'000, 6'000'000'000},
                             {"b300x8", 8, 900'000'000'000, 126'000'000'000, 275040LL << 20U},
                             {"gb300x72", 72, 900'000'000'000, 225'000'000'000, 284208LL << 20U},
                             {"h800x8", 8, 200'000'000'000, 63'000'000'000, 80'000'000'000},
                             {"a800x8", 8, 200'000'000'000, 31'500'000'000, 80'000'000'000},
                             {"h20x8", 8, 450'000'000'000, 63'000'000'000, 96'000'000'000},
                             {"mi300x8", 8, 448'000'000'000, 63'000'000'000, 192LL << 30U},
                             {"mi325x8", 8, 448'000'000'000, 63'000'000'000, 256LL << 30U},
                             {"mi355x8", 8, 537'000'000'000, 63'000'000'000, 288LL << 30U},
                             {"cpu2", 2, 5'000'000'000, 0, 0}}) {
    CAPTURE(expected.name);
    const Cluster& cluster = bundled(expected.name);
    REQUIRE(cluster.devices.size() == expected.devices);
    CHECK(cluster.devices[0].memory.value_or(Bytes{}) == Bytes{expected.memory});
    const Network network = network_of(cluster);
    CHECK(network.between(0, 1).bandwidth == Bandwidth{expected.between});
    if (expected.to_host != 0) CHECK(network.to_host[1].bandwidth == Bandwidth{expected.to_host});
  }
  // Copies of all four V100 to the host share one link; those between pairs of them do not.
  const Network v100 = network_of(bundled("v100x4-pcie"));
  const auto share = [](const Route& a, const Route& b) {
    return std::any_of(a.resources.begin(), a.resources.end(), [&](int r) {
      return std::count(b.resources.begin(), b.resources.end(), r) > 0;
    });
  };
  CHECK(share(v100.to_host[0], v100.to_host[3]));
  CHECK(!share(v100.between(0, 1), v100.between(2, 3)));
  // On two cores, both ways take turns.
  const Network cores = network_of(bundled("cpu2"));
  CHECK(share(cores.between(0, 1), cores.between(1, 0)));
}

TEST_CASE("what the writer writes, the reader gives back") {
  const auto same = [](const Cluster& cluster) {
    return read_cluster(write_cluster(cluster), "c") == cluster;
  };
  CHECK(same(read_cluster(valid, "c.json")));
  Cluster slow = read_cluster(valid, "c.json");
  slow.devices[1].op_overhead = Time{12345};
  slow.pair_overlap = 0.375;
  slow.interference = {1.0625, 1.5};
  slow.handover = {Bandwidth{7'500'000'000}, Bandwidth::unlimited()};
  slow.collectives = {
      {CollectiveKind::all_gather, 16, 2, Time{40'000'123}, Bandwidth{45'000'000'001}, "a log"}};
  CHECK(same(slow));
  slow.links[0].tier = Tier::network;
  slow.links[0].transport = Transport::tcp;
  slow.links[0].bandwidth = parse_bandwidth("10Gbit/s");
  slow.links[1].tier = Tier::pcie;
  slow.links[1].transport = Transport::host;
  CHECK(same(slow));
  for (const Bundled& file : bundled_clusters()) {
    CAPTURE(file.name);
    CHECK(same(bundled(std::string(file.name))));
  }
  const LinkSpec odd{Bandwidth{123'456'789'012}, Time{1'234'567}};
  CHECK(same(uniform_cluster(3, odd, Bytes{7})));
  CHECK(same(uniform_cluster(3, LinkSpec{Bandwidth::unlimited(), Time{5}}, Bytes{7})));
  CHECK(same(uniform_cluster(3, LinkSpec{Bandwidth{1}, Time{}}, Bytes{7})));
  CHECK(same(uniform_cluster(1, std::nullopt, std::nullopt)));
  // What the format cannot express is rejected, not dropped.
  CHECK_THROWS_AS(write_cluster(uniform_cluster(2, odd, std::nullopt, odd)), UsageError);
  Cluster nameless = uniform_cluster(2, odd, std::nullopt);
  nameless.devices[1].name = "";
  CHECK_THROWS_AS(write_cluster(nameless), TraceError);
}

TEST_CASE("the cluster of the README is sound") {
  const std::string page = source_text("traces/README.md");
  const std::size_t begin = page.rfind("```json\n", page.find("\"stageline-cluster 1\"")) + 8;
  const Cluster cluster = read_cluster(page.substr(begin, page.find("```", begin) - begin), "r");
  CHECK(cluster.devices.size() == 3);
  CHECK(cluster.links.size() == 5);
  REQUIRE(cluster.collectives.size() == 1);
  CHECK(cluster.collectives[0].alpha == parse_time("21us"));
  CHECK(network_of(cluster).between(0, 2).bandwidth == Bandwidth{12'500'000'000});
}

TEST_CASE("a transport is read, of links and of NICs, and is what carries less") {
  const auto with = [](const std::string& transport) {
    return read_cluster(replaced(valid, R"("50GB/s", "latency")",
                                 R"("50GB/s", )" + transport + R"(, "latency")"),
                        "c.json")
        .links.front();
  };
  const Link plain = read_cluster(valid, "c.json").links.front();
  Link network = plain;
  network.tier = Tier::network;
  CHECK(with(R"("tier": "network", "transport": "rdma")") == network);
  const Link tcp = with(R"("tier": "network", "transport": "tcp")");
  CHECK(tcp.transport == Transport::tcp);
  CHECK(tcp.bandwidth == parse_bandwidth("15Gbit/s"));
  CHECK(with(R"("tier": "pcie", "transport": "peer")").transport == Transport::stated);
  const Link staged = with(R"("tier": "pcie", "transport": "host")");
  CHECK(staged.transport == Transport::host);
  CHECK(staged.bandwidth == plain.bandwidth);
  const auto fabric = [](const std::string& nics) {
    return read_cluster(R"({"format": "stageline-cluster 1", "name": "lab", "machines": 2,
      "devices": [{"name": "gpu", "count": 2}],
      "network": {"nics": [{"name": "nic", )" +
                            nics + R"(, "transport": "tcp"}]}})",
                        "c.json");
  };
  for (const Link& link : fabric(R"("bandwidth": "10Gbit/s", "count": 2)").links) {
    CHECK(link.transport == Transport::tcp);
    CHECK(link.bandwidth == parse_bandwidth("10Gbit/s"));
  }
  for (const Link& link : fabric(R"("bandwidth": "100Gbit/s")").links) {  // shared: behind PCIe
    if (link.tier != Tier::network) continue;
    CHECK(link.transport == Transport::tcp);
    CHECK(link.bandwidth == parse_bandwidth("15Gbit/s"));
  }
  CHECK(contains(
      std::string(trace_error_of([&] { fabric(R"("bandwidth": "25Gbit/s", "count": 4)"); }).what()),
      "4 NICs of 2 devices are one link each, and what several carry over tcp was never "
      "measured"));
}

TEST_CASE("a broken cluster is refused with its pointer and the rule") {
  struct Broken {
    std::string from, to, where, text;
  };
  for (const Broken& broken : std::vector<Broken>{
           {"stageline-cluster 1", "stageline-trace 1", "/format", "\"stageline-cluster 1\" here"},
           {"\"source\": \"s\"", "\"pair_overlap\": 1.5", "/pair_overlap",
            "from 0 to 1 (it is 1.5)"},
           {"\"source\": \"s\"", "\"handover\": {\"writes\": \"1GB/s\"}", "/handover/writes",
            "writes"},
           {"\"source\": \"s\"", "\"interference\": [1.1, 0.9]", "/interference/1",
            "a slowdown is at least 1 (it is 0.9)"},
           {"\"source\": \"s\"", "\"pair_overlap\": -0.1", "/pair_overlap", "from 0 to 1"},
           {"\"source\": \"s\"",
            R"("collectives": [{"kind": "all_gather", "ranks": 4, "alpha": "1us",
               "bandwidth": "1GB/s"}, {"kind": "all_gather", "ranks": 4, "alpha": "2us",
               "bandwidth": "2GB/s"}])",
            "/collectives/1", "all_gather of 4 ranks on 1 machine is there already"},
           {"\"source\": \"s\"", "\"sauce\": \"s\"", "/sauce", "did you mean \"source\"?"},
           {"\"title\"", "\"titel\"", "/kinds/0/titel", "did you mean \"title\"?"},
           {"\"16GB\"", "\"16 gigs\"", "/kinds/0/memory", "no known unit"},
           {"\"16GB\"", "\"16\"", "/kinds/0/memory", "has no unit"},
           {"\"16GB\"", "-5", "/kinds/0/memory", "must not be negative"},
           {"\"16GB\"", "true", "/kinds/0/memory", "must be a text"},
           {"\"900GB/s\"", "900", "/kinds/0/memory_bandwidth",
            "900 has no unit; this must be a text, such as \"12GB/s\""},
           {"\"900GB/s\"", "\"0GB/s\"", "/kinds/0/memory_bandwidth", "is zero"},
           {"\"fp32\"", "\"fp33\"", "/kinds/0/peak/fp33", "did you mean \"fp"},
           {"14e12", "-14e12", "/kinds/0/peak/fp32", "must be a positive number (it is -14e12)"},
           {"14e12", "0", "/kinds/0/peak/fp32", "must be a positive number"},
           {"\"count\": 3", "\"count\": 0", "/devices/0/count", "from 1 to 65536 (it is 0)"},
           {"\"count\": 3", "\"count\": 65536", "/devices/1", "at most 65536 devices"},
           {"\"kind\": \"k\"", "\"kind\": \"kk\"", "/devices/0/kind", "did you mean \"k\"?"},
           {"\"host\": \"host0\"", "\"host\": \"host1\"", "/devices/0/host", "no host \"host1\""},
           {"\"rate\": 0.5", "\"rate\": 0", "/devices/1/rate", "positive"},
           {"\"name\": \"old\"", "\"name\": \"gpu1\"", "/devices/1/name", "\"gpu1\" appears twice"},
           {"\"name\": \"old\"", "\"name\": \"o d\"", "/devices/1/name", "made of letters"},
           {"\"name\": \"old\"", "\"name\": \"\"", "/devices/1/name", "made of letters"},
           {"[\"sw\"]", "[\"gpu0\"]", "/switches/0", "\"gpu0\" appears twice"},
           {"\"from\": \"gpu*\"", "\"from\": \"cpu*\"", "/links/0/from", "begins with \"cpu\""},
           {"\"to\": \"sw\"", "\"to\": \"swi\"", "/links/0/to", "did you mean \"sw\"?"},
           {"\"from\": \"old\", \"to\": \"sw\"", "\"from\": \"old\", \"to\": \"old\"", "/links/1",
            "two different nodes"},
           {"\"half\"", "\"simplex\"", "/links/1/duplex", "not \"simplex\""},
           {"\"50GB/s\",", "\"50GB/s\", \"transport\": \"tpc\",", "/links/0/transport",
            "there is no transport \"tpc\" (did you mean \"tcp\"?); a link of tier network is rdma "
            "or tcp, one of tier pcie peer"},
           {"\"50GB/s\",", "\"50GB/s\", \"tier\": \"nvlink\", \"transport\": \"host\",",
            "/links/0/transport",
            "the transport host is of links of tier pcie, and this one is of nvlink"},
           {"\"1us\"", "\"1\"", "/links/0/latency", "has no unit"},
           {"\"1us\"", "\"-1us\"", "/links/0/latency", "negative"},
           {"\"bandwidth\": \"8Gbit/s\", ", "", "/links/1", "\"bandwidth\" is missing"}}) {
    CAPTURE(broken.to);
    const std::string text = replaced(valid, broken.from, broken.to);
    const TraceError error = trace_error_of([&] { read_cluster(text, "c.json"); });
    CHECK(error.where == broken.where);
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(contains(what, broken.text));
  }
}

TEST_CASE("damaged clusters are read or refused, never anything else") {
  std::mt19937 random(13);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text = valid;
    const std::size_t at = below(text.size());
    if (below(2) == 0) {
      text[at] = static_cast<char>(below(256));
    } else {
      const std::size_t from = below(text.size());
      text.insert(at, text.substr(from, 1 + below(10)));
    }
    CAPTURE(text);
    try {
      const Cluster cluster = read_cluster(text, "damaged");
      REQUIRE(!cluster.devices.empty());
    } catch (const TraceError&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
  CHECK(refused < 1000);
}

}  // namespace stageline::cluster_tests
