// Chakra execution traces: do two independent readers find in them what the simulator ran?
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/interop/chakra_readers.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"
#include "tests/thorough.hpp"
#include "traces/pytorch/lowering.hpp"

namespace stageline::chakra_tests {
namespace {

using test::by_classes;
using test::by_hand;
using test::Node;
using test::Trace;

// ---- all ranks together -------------------------------------------------------------------------

constexpr std::uint64_t load = 2, store = 3, compute = 4, send = 5, receive = 6, collective = 7;

struct Job {
  std::vector<std::vector<Node>> ranks;
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> sender;  // by tag: rank, index
  std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> group;  // collectives
};

// Checks what must hold of any trace on the way.
Job read(const ChakraTraces& traces) {
  Job job;
  for (const std::string& bytes : traces.ranks) {
    const Trace trace = by_classes(bytes);
    CHECK(trace == by_hand(bytes));
    CHECK(trace.version == "0.0.4");
    job.ranks.push_back(trace.nodes);
  }
  std::map<std::int64_t, std::vector<const Node*>> receivers;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    std::set<std::uint64_t> ids;
    for (const Node& node : job.ranks[rank]) CHECK(ids.insert(node.id).second);
    for (std::size_t i = 0; i < job.ranks[rank].size(); ++i) {
      const Node& node = job.ranks[rank][i];
      CHECK(node.attributes.at("is_cpu_op") == "0");
      for (const std::uint64_t dep : node.deps) CHECK(ids.count(dep) == 1);
      if (node.type == send) {
        CHECK(node.number("comm_src") == static_cast<std::int64_t>(rank));
        CHECK(job.sender.emplace(node.number("comm_tag"), std::pair{rank, i}).second);
      } else if (node.type == receive) {
        CHECK(node.number("comm_dst") == static_cast<std::int64_t>(rank));
        receivers[node.number("comm_tag")].push_back(&node);
      } else if (node.type == collective) {
        CHECK(node.number("comm_type") == 0);
        // The k-th of a group on every rank is the same reduction.
        job.group[node.attributes.at("pg_name") + node.name.substr(0, node.name.find('.'))]
            .emplace_back(rank, i);
      }
    }
  }
  CHECK(job.sender.size() == receivers.size());
  for (const auto& [tag, from] : job.sender) {
    const Node& node = job.ranks[from.first][from.second];
    REQUIRE(receivers[tag].size() == 1);
    for (const char* const same : {"comm_src", "comm_dst", "comm_size"}) {
      CHECK(node.attributes.at(same) == receivers[tag][0]->attributes.at(same));
    }
  }
  return job;
}

// The end of the last node, in picoseconds, when every one starts as soon as what it depends on has
// ended: a RECV so much after its SEND as it says, a reduction when all its ranks are there.
// Nothing where a circle keeps some from ever starting.
std::optional<std::int64_t> replayed(const Job& job) {
  std::vector<std::map<std::uint64_t, std::int64_t>> end(job.ranks.size());
  std::int64_t last = 0;
  std::size_t left = 0;
  for (const auto& nodes : job.ranks) left += nodes.size();
  const auto ready = [&](std::size_t rank, const Node& node) -> std::optional<std::int64_t> {
    std::int64_t start = 0;
    for (const std::uint64_t dep : node.deps) {
      const auto found = end[rank].find(dep);
      if (found == end[rank].end()) return std::nullopt;
      start = std::max(start, found->second);
    }
    return start;
  };
  for (bool progress = true; progress && left > 0;) {
    progress = false;
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
      for (const Node& node : job.ranks[rank]) {
        if (end[rank].count(node.id) > 0) continue;
        std::optional<std::int64_t> start = ready(rank, node);
        if (!start) continue;
        std::int64_t finish = *start + node.number("duration_ps");
        if (node.type == receive) {
          const auto [from, i] = job.sender.at(node.number("comm_tag"));
          const auto sent = end[from].find(job.ranks[from][i].id);
          if (sent == end[from].end()) continue;
          finish = std::max(*start, sent->second + node.number("duration_ps"));
        } else if (node.type == collective) {
          for (const auto& [other, i] : job.group.at(node.attributes.at("pg_name") +
                                                     node.name.substr(0, node.name.find('.')))) {
            const Node& peer = job.ranks[other][i];
            const auto peer_end = end[other].find(peer.id);
            const auto peer_start =
                peer_end != end[other].end()
                    ? std::optional(peer_end->second - peer.number("duration_ps"))
                    : ready(other, peer);
            start =
                peer_start && start ? std::optional(std::max(*start, *peer_start)) : std::nullopt;
          }
          if (!start) continue;
          finish = *start + node.number("duration_ps");
        }
        end[rank][node.id] = finish;
        last = std::max(last, finish);
        --left;
        progress = true;
      }
    }
  }
  if (left > 0) return std::nullopt;
  return last;
}

// Whether all get done when a rank has one communication in flight, as in ASTRA-sim's system layer:
// of those that are ready the lowest number, which it then waits for.
bool done_one_by_one(const Job& job) {
  std::vector<std::set<std::uint64_t>> done(job.ranks.size());
  std::vector<std::optional<std::size_t>> flying(job.ranks.size());  // index into ranks[rank]
  const auto finished = [&](const Node& node) {
    if (node.type == receive) {
      const auto [from, i] = job.sender.at(node.number("comm_tag"));
      return done[from].count(job.ranks[from][i].id) > 0;
    }
    if (node.type != collective) return true;
    const auto& group =
        job.group.at(node.attributes.at("pg_name") + node.name.substr(0, node.name.find('.')));
    return std::all_of(group.begin(), group.end(), [&](const auto& at) {
      return done[at.first].count(job.ranks[at.first][at.second].id) > 0 ||
             flying[at.first] == at.second;
    });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < job.ranks[rank].size(); ++i) {
        const Node& node = job.ranks[rank][i];
        const bool communicates =
            node.type == send || node.type == receive || node.type == collective;
        const bool ready = std::all_of(node.deps.begin(), node.deps.end(), [&](std::uint64_t dep) {
          return done[rank].count(dep) > 0;
        });
        if (done[rank].count(node.id) > 0 || !ready) continue;
        if (communicates && flying[rank] && *flying[rank] != i) continue;
        if (communicates) flying[rank] = i;
        if (!finished(node)) continue;
        done[rank].insert(node.id);
        if (communicates) flying[rank].reset();
        progress = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (done[rank].size() != job.ranks[rank].size()) return false;
  }
  return true;
}

// Two stages with replicas on a rank: in which order it reduces them is nobody's promise.
bool reduces_twice(const Job& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(), [](const std::vector<Node>& nodes) {
    std::set<std::string> groups;
    for (const Node& node : nodes) {
      if (node.type == collective) groups.insert(node.attributes.at("pg_name"));
    }
    return groups.size() > 1;
  });
}

std::int64_t simulated_makespan(const Program& program, const Costs& costs) {
  const Program full = add_transfers(add_reductions(add_updates(program)));
  return makespan(sweep(compile(full, costs))).count();
}

// Every route as wide and as far as any other, and none shared.
Costs private_links(Costs costs, int devices) {
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      Route& route = costs.network.routes[as_size(from) * as_size(devices) + as_size(to)];
      route.bandwidth = Bandwidth{1'000'000'000'000};
      route.latency = Time{3};
      route.resources.clear();
    }
  }
  return costs;
}

TEST_CASE("a replay of the traces takes as long as the simulation, for every schedule that fits") {
  std::mt19937 random(3);
  int fitting = 0;
  int reduced = 0;
  std::set<std::string> misfits;
  for (const int devices : {2, 4, 5}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (!spec.knobs.empty() && !test::chosen(random, 4)) continue;
      Program program;
      try {
        program = test::written(spec, devices, 6);
      } catch (const UsageError&) {
        continue;  // so many devices do not suit the schedule
      }
      const std::string name = spelled(spec);
      CAPTURE(name);
      CAPTURE(devices);
      const Costs costs =
          private_links(test::random_costs(random, program.stages(), devices, true), devices);
      ChakraTraces traces;
      try {
        traces = write_chakra(program, costs);
      } catch (const UsageError& error) {
        misfits.insert(name.substr(0, name.find(':')));
        CHECK((spec.scheduler->synchrony == Synchrony::asynchronous ||
               test::contains(error.what(), "stash=")));
        CHECK(test::contains(error.what(), "Chakra cannot express"));
        continue;
      }
      ++fitting;
      const Job job = read(traces);
      const std::optional<std::int64_t> time = replayed(job);
      REQUIRE_MESSAGE(time, "the traces wait for each other in a circle");
      if (!reduces_twice(job)) CHECK(done_one_by_one(job));
      if (job.group.empty()) {
        CHECK(*time == simulated_makespan(program, costs));
      } else {
        // Here a reduction begins on all ranks at once, there on each when its own lane is free.
        ++reduced;
        CHECK(*time >= simulated_makespan(program, costs));
      }
      CHECK(traces.groups.empty() == job.group.empty());
    }
  }
  CHECK(fitting > (test::thorough ? 30 : 15));
  CHECK(reduced > (test::thorough ? 3 : 0));
  // Where devices wait for each other without a message: flow control of free-running stages, and
  // stashes that one device takes to the host and another brings back.
  CHECK(misfits.count("pipefb") == 1);
  CHECK(misfits.count("stale_weights") == 1);
}

TEST_CASE("messages find their ends by their tags, in whatever order a text has them") {
  std::mt19937 random(11);
  int tried = 0;
  for (const char* const name : {"1f1b", "zb_v", "hanayo", "list:placement=v", "interleaved_1f1b",
                                 "chimera", "dualpipe", "pipedream:replicas=3-1"}) {
    const Program program = test::written(test::spec(name), 4, 8);
    const Costs costs = private_links(test::random_costs(random, program.stages(), 4, true), 4);
    Program text = add_transfers(add_reductions(add_updates(program)));
    // All RECVs ahead of all else, the last first.
    for (auto& list : text.ops) {
      std::vector<Op> receives;
      const auto is_receive = [](Op op) { return cargo_of(op.kind) && !is_send(op.kind); };
      std::copy_if(list.rbegin(), list.rend(), std::back_inserter(receives), is_receive);
      std::erase_if(list, is_receive);
      list.insert(list.begin(), receives.begin(), receives.end());
    }
    std::vector<Program> texts{text};
    if (test::fits_pytorch(program)) {
      texts.push_back(lowered_as_pytorch(add_updates(test::as_read(program))));
    }
    for (const Program& one : texts) {
      CAPTURE(name);
      const Program again = parse_program(print(one));
      const Job job = read(write_chakra(again, costs));
      const std::optional<std::int64_t> time = replayed(job);
      REQUIRE_MESSAGE(time, "the traces wait for each other in a circle");
      if (!reduces_twice(job)) CHECK(done_one_by_one(job));
      if (job.group.empty()) CHECK(*time == makespan(sweep(compile(again, costs))).count());
      ++tried;
    }
  }
  CHECK(tried > 10);
}

TEST_CASE("nodes say what they are, how long and how much") {
  Costs costs = uniform_costs(2, 2, Time{3'000'000}, Time{1'400'000}, Time{1'200'000});
  costs = private_links(std::move(costs), 2);
  costs.edges[0].activation = Bytes{5};
  costs.edges[0].gradient = Bytes{7};
  const ChakraTraces traces = write_chakra(
      parse_program(test::straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\n")), costs);
  const Job job = read(traces);
  REQUIRE(job.ranks.size() == 2);
  const auto text = [](const std::vector<Node>& nodes) {
    std::string lines;
    for (const Node& node : nodes) {
      lines += std::to_string(node.id) + " " + node.name + " type " + std::to_string(node.type) +
               " " + std::to_string(node.micros) + " us after";
      for (const std::uint64_t dep : node.deps) lines += " " + std::to_string(dep);
      for (const char* const name : {"comm_src", "comm_dst", "comm_tag", "comm_size"}) {
        if (node.attributes.count(name) > 0) lines += " " + node.attributes.at(name);
      }
      lines += "\n";
    }
    return lines;
  };
  CHECK(text(job.ranks[0]) ==
        "1 0F0 type 4 3 us after\n"
        "2 0SEND_F0 type 5 0 us after 1 0 1 1 5\n"
        "3 0RECV_B0 type 6 0 us after 1 1 0 2 7\n"
        "4 0B0 type 4 3 us after 1 3\n"
        "5 0U0 type 4 0 us after 4\n");
  CHECK(text(job.ranks[1]) ==
        "1 1RECV_F0 type 6 0 us after 0 1 1 5\n"
        "2 1F0 type 4 3 us after 1\n"
        "3 1B0 type 4 3 us after 2\n"
        "4 1SEND_B0 type 5 0 us after 3 1 0 2 7\n"
        "5 1U0 type 4 0 us after 3\n");
  CHECK(job.ranks[0][3].number("duration_ps") == 2'600'000);
  CHECK(job.ranks[0][2].number("duration_ps") == 3);  // the latency
}

TEST_CASE("whole microseconds replay from the durations that every reader knows") {
  const Costs costs = uniform_costs(4, 4, Time{2'000'000}, Time{3'000'000}, Time{1'000'000});
  const Program program = test::written(test::spec("1f1b"), 4, 8);
  Job job = read(write_chakra(program, costs));
  for (auto& nodes : job.ranks) {
    for (Node& node : nodes) {
      node.attributes["duration_ps"] = std::to_string(node.micros * 1'000'000);
    }
  }
  CHECK(replayed(job) == simulated_makespan(program, costs));
  CHECK(replayed(job) == (8 + 3) * 6'000'000);  // 1F1B's closed form
}

TEST_CASE("a circle in the traces is found") {
  Job job = read(write_chakra(test::written(test::spec("1f1b"), 2, 2),
                              uniform_costs(2, 2, Time{1}, Time{1}, Time{1})));
  REQUIRE(replayed(job));
  job.ranks[0][0].deps.push_back(job.ranks[0].back().id);
  CHECK(!replayed(job));
}

TEST_CASE("an overlapped pair is one node, copies are memory, reductions are collectives") {
  const Costs one = uniform_costs(1, 1, Time{3}, Time{2}, Time{2});
  Job job = read(write_chakra(parse_program(test::straight_text(1, 2,
                                                                "gpu0: 0F0 0OFFLOAD0 0PREFETCH0 "
                                                                "(0F1;0B0)OVERLAP_F_B 0B1\n")),
                              one));
  REQUIRE(job.ranks[0].size() == 6);
  CHECK(job.ranks[0][1].type == store);
  CHECK(job.ranks[0][2].type == load);
  CHECK(job.ranks[0][2].number("tensor_size") == one.stage[0].stash().count);
  CHECK(job.ranks[0][3].name == "(0F1;0B0)OVERLAP_F_B");
  CHECK(job.ranks[0][3].type == compute);
  CHECK(job.ranks[0][3].number("duration_ps") == 7);
  CHECK(job.ranks[0][3].deps == std::vector<std::uint64_t>{1, 3});

  Costs two = uniform_costs(2, 3, Time{3}, Time{2}, Time{2});
  two.stage[0].gradients = Bytes{11};
  const ChakraTraces traces =
      write_chakra(test::written(test::spec("pipedream:replicas=2-1"), 3, 4), two);
  job = read(traces);
  CHECK(nlohmann::json::parse(traces.groups) == nlohmann::json{{"1", {0, 1}}});
  int reductions = 0;
  for (const Node& node : job.ranks[0]) {
    if (node.type != collective) continue;
    ++reductions;
    CHECK(node.number("comm_size") == 11);
    CHECK(node.attributes.at("pg_name") == "1");
  }
  CHECK(reductions == 2);
}

TEST_CASE("a schedule's name in bytes that are not UTF-8 is written in UTF-8") {
  const Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  Program program = parse_program(test::straight_text(1, 1, "gpu0: 0F0 0B0\n"));
  program.schedule = "a\xff\x62";
  const ChakraTraces traces = write_chakra(program, costs);
  read(traces);
  CHECK(test::contains(traces.ranks[0], "a\ufffd\x62"));
}

TEST_CASE("lockstep cannot be said") {
  const Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  CHECK(test::complaint<UsageError>([&] {
          write_chakra(
              parse_program(test::straight_text(1, 1, "gpu0: 0F0 0B0\n", "clock: lockstep\n")),
              costs);
        }) ==
        "Chakra cannot express \"clock: lockstep\", "
        "where devices wait for each other without a message");
}

}  // namespace
}  // namespace stageline::chakra_tests
