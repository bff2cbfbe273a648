// Are pipelines beside each other what one pipeline is, plus what they exchange?
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/study/uniform.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"

namespace stageline::degrees_tests {
namespace {

constexpr Bytes megabyte{1'000'000};

// Eight layers of 1 ms for each pass, with 1 MB of gradients and of output.
Model layers() {
  Model model =
      uniform_model("layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,output=1MB");
  for (Layer& layer : model.layers) layer.gradients = megabyte;
  return model;
}

Degrees degrees_of(int tensor, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

Case case_of(const std::string& schedule, const Cluster& cluster, const Degrees& degrees,
             bool all = false) {
  Case asked;
  asked.model = layers();
  asked.ranked = std::make_shared<RankedCluster>(cluster, degrees, "best", "none", all);
  asked.cluster = asked.ranked->ranks();
  asked.sharing = Sharing::fair;
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = 8;
  return asked;
}

Cluster ports(int devices, Time latency = Time{}) {
  return uniform_cluster(devices, LinkSpec{{1'000'000'000}, latency}, Bytes{16'000'000'000});
}

Cluster unconnected(int devices) { return uniform_cluster(devices, std::nullopt, std::nullopt); }

bool has_split_roles(const Case& asked) {
  const Placement placement =
      asked.spec.scheduler->assign != nullptr
          ? Placement{}
          : asked.spec.scheduler->place(static_cast<int>(asked.cluster.devices.size()),
                                        asked.spec.knobs);
  for (const StagePlace& place : placement.stage) {
    if (place.apart()) return true;
  }
  return asked.spec.scheduler->assign != nullptr;
}

TEST_CASE("sequences are not cut where each chunk would exchange sharded weights or gradients") {
  Degrees degrees = degrees_of(1, 2, 4);
  const std::string schedule = "seq1f1b:sequence_chunks=2";
  for (const Zero level : all_zeros) {
    degrees.zero = level;
    degrees.zero_every.reset();
    CHECK_NOTHROW(study(case_of(schedule, ports(8), degrees)));
    degrees.zero_every = ZeroEvery::microbatch;
    if (!reduces_in_every_backward(degrees)) {
      CHECK_NOTHROW(study(case_of(schedule, ports(8), degrees)));
      continue;
    }
    CHECK_THROWS_WITH_AS(study(case_of(schedule, ports(8), degrees)),
                         doctest::Contains("take --zero-every step, or another schedule"),
                         UsageError);
  }
  CHECK_NOTHROW(study(case_of("seq1f1b:sequence_chunks=1", ports(8), degrees)));
  CHECK_NOTHROW(study(case_of("1f1b", ports(8), degrees)));
}

}  // namespace

TEST_CASE("replicas on free links are as many times the throughput of one") {
  const Outcome one = study(test::uniform_case("1f1b", 4, 8));
  Case asked = case_of("1f1b", unconnected(12), degrees_of(1, 3, 4));
  for (Layer& layer : asked.model.layers) layer.gradients = Bytes{};
  const Outcome three = study(asked);
  CHECK(asked.pipelines() == 1);
  CHECK(three.step_time == one.step_time);
  CHECK(three.throughput == doctest::Approx(3 * one.throughput));
  CHECK(three.speedup == doctest::Approx(3 * one.speedup));
}

TEST_CASE("a pipeline rank alone divides the optimizer's step as its context-parallel ranks do") {
  // Experts are on ranks of several replicas, whose number need not be a multiple of the context's.
  for (const auto& ranks : {std::array{4, 1, 1}, {4, 1, 2}, {3, 2, 2}, {1, 4, 2}}) {
    const int context = ranks[0];
    const int data = ranks[1];
    const int expert = ranks[2];
    CAPTURE(context);
    CAPTURE(data);
    Degrees degrees = degrees_of(1, data, 1);
    degrees.context = context;
    degrees.expert = expert;
    degrees.zero = Zero::optimizer;
    Case asked = case_of("1f1b", unconnected(context * data), degrees);
    for (Layer& layer : asked.model.layers) {
      layer.update = Time{12'000'000'000};
      layer.parameters = 1'000'000;
      layer.expert_parameters = 600'000;
    }
    const Outcome outcome = study(asked);  // checks that no speed-up is above the replicas' number
    if (data == 1) CHECK(outcome.speedup == doctest::Approx(1));
  }
}

TEST_CASE("the reduction is a ring over the data-parallel ranks, behind the last backward") {
  const Outcome alone = study(test::uniform_case("1f1b", 4, 8));
  const Outcome two = study(case_of("1f1b", ports(8), degrees_of(1, 2, 4)));
  // The first stage is the last to end: 2 MB of gradients at 2(n-1)/n bytes a byte and 1 GB/s. The
  // messages of 1 MB take 1 ms each, on the way of both warm-up and drain.
  const Outcome linked = [&] {
    Case asked = test::uniform_case("1f1b", 4, 8);
    asked.model = layers();
    asked.cluster = ports(4);
    return study(asked);
  }();
  CHECK(to_seconds(two.step_time - linked.step_time) == doctest::Approx(2e-3).epsilon(1e-6));
  CHECK(two.step_time > alone.step_time);
}

TEST_CASE("without degrees, too, fair sharing slows compute beside messages") {
  Case asked = test::uniform_case("gpipe", 2, 2);
  asked.model = layers();
  asked.cluster = ports(2);
  asked.cluster.overlap_slowdown[as_size(Tier::other)] = 0.5;
  const auto took = [&](Sharing sharing) {
    asked.sharing = sharing;
    const Outcome outcome = study(asked);
    std::vector<Time> times;  // of the first stage's forwards
    for (std::uint32_t task = 0; task < outcome.graph.tasks(); ++task) {
      const Op op = outcome.graph.op[task];
      if (op.kind == OpKind::forward && op.stage == 0)
        times.push_back(outcome.graph.duration[task]);
    }
    return times;
  };
  const Time forward = parse_time("4ms");
  CHECK(took(Sharing::fifo) == std::vector<Time>{forward, forward});
  // The first message takes 1 ms, in which the second forward does two thirds of one.
  CHECK(took(Sharing::fair) == std::vector<Time>{forward, forward + Time{333'333'334}});
  asked.cluster.message_slowdown.emplace();
  CHECK(took(Sharing::fair) == std::vector<Time>{forward, forward});
}

TEST_CASE("one pipeline for all, and all of them, give the same step") {
  int compared = 0;
  for (const Scheduler* const scheduler : schedulers()) {
    CAPTURE(scheduler->name);
    const std::string name(scheduler->name);
    Case one;
    try {
      one = case_of(name, ports(8, Time{5'000'000}), degrees_of(1, 2, 4));
      if (has_split_roles(one)) continue;
    } catch (const UsageError&) {
      continue;
    }
    Outcome alike;
    Outcome all;
    try {
      alike = study(one);
      all = study(case_of(name, ports(8, Time{5'000'000}), degrees_of(1, 2, 4), true));
    } catch (const UsageError&) {
      continue;  // needs another number of devices, or cannot be replicated (seq1f1b)
    }
    ++compared;
    CHECK(to_seconds(all.step_time) == doctest::Approx(to_seconds(alike.step_time)).epsilon(1e-6));
    CHECK(all.throughput == doctest::Approx(alike.throughput).epsilon(1e-6));
    CHECK(all.memory.device[0].peak == alike.memory.device[0].peak);
  }
  CHECK(compared >= 18);
}

// Of four replicas on two machines one stands for all, but for the rings of stages held twice.
TEST_CASE("a note tells where one replica stands for others whose rings differ") {
  Cluster machines = ports(16);
  machines.hosts.resize(2);
  for (int d = 0; d < 16; ++d) nth(machines.devices, d).host = d / 8;
  const auto is_said = [](const Case& asked) {
    const std::vector<std::string> notes = stream_notes(asked, study(asked));
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("one replica stands for all, though") != std::string::npos;
    });
  };
  CHECK(is_said(case_of("gems", machines, degrees_of(1, 4, 4))));
  CHECK_FALSE(is_said(case_of("gems", machines, degrees_of(1, 4, 4), true)));
  CHECK_FALSE(is_said(case_of("1f1b", machines, degrees_of(1, 4, 4))));
  CHECK_FALSE(is_said(case_of("gems", ports(16), degrees_of(1, 4, 4))));
}

TEST_CASE("a slow device makes all replicas be simulated, and they wait for it") {
  Cluster cluster = unconnected(8);
  cluster.devices[5].rate = 0.5;  // of the second replica: its rank 2
  Degrees degrees = degrees_of(1, 2, 4);
  degrees.order = parse_order("tp-cp-pp-dp");
  const Case asked = case_of("1f1b", cluster, degrees);
  CHECK(asked.pipelines() == 2);
  const Outcome both = study(asked);
  Case alone = test::uniform_case("1f1b", 4, 8);
  alone.cluster.devices[1].rate = 0.5;
  alone.partition = "0-1,2-3,4-5,6-7";
  Case same_cut = asked;
  same_cut.partition = alone.partition;
  CHECK(to_seconds(study(same_cut).step_time) ==
        doctest::Approx(to_seconds(study(alone).step_time)));
  CHECK(both.devices == 8);
}

TEST_CASE("an unequal link on any route makes all replicas be simulated") {
  const LinkSpec port{{1'000'000'000}, Time{}};
  const Cluster alike = uniform_cluster(8, port, std::nullopt, port);
  Cluster slow_port = alike;
  slow_port.links[5].bandwidth = {500'000'000};
  Cluster late_back = alike;  // what arrives at gpu5
  late_back.links[5].latency_back = Time{1'000'000};
  Cluster slow_host = alike;
  slow_host.links[8 + 5].bandwidth = {500'000'000};
  for (const Degrees& degrees : {degrees_of(1, 2, 4), degrees_of(2, 2, 2), degrees_of(4, 2, 1)}) {
    CAPTURE(degrees.tensor);
    CHECK(RankedCluster(alike, degrees).replicas() == 1);
    for (const Cluster* const unlike : {&slow_port, &late_back, &slow_host}) {
      CHECK(RankedCluster(*unlike, degrees).replicas() == 2);
    }
  }
  // The two ranks of one replica share a NIC, which takes what either sends alone.
  Cluster shared = alike;
  const int fabric = shared.links[0].to;
  shared.switches.emplace_back("nic");
  for (const std::size_t d : {0U, 1U}) shared.links[d].to = fabric + 1;
  shared.links.push_back({"nic", fabric + 1, fabric, port.bandwidth, Time{}, Duplex::full});
  CHECK(RankedCluster(shared, degrees_of(2, 2, 2)).replicas() == 2);
}

TEST_CASE("blocking collectives are part of F and B, and attributed") {
  const Degrees degrees = degrees_of(2, 1, 4);
  const Outcome without = study(case_of("1f1b", ports(8), degrees));
  Case asked = case_of("1f1b", ports(8), degrees);
  for (Layer& layer : asked.model.layers) {
    layer.collectives = {{CollectiveKind::all_reduce, Dimension::tensor, megabyte, 2, 2, 0}};
  }
  const Outcome with = study(asked);
  // An all-reduce of 1 MB between two ranks of 1 GB/s takes 1 ms; a stage has two layers.
  const StageCosts& stage = with.costs.stage[1];
  CHECK(to_seconds(stage.blocking.forward) == doctest::Approx(4e-3));
  CHECK(to_seconds(stage.blocking.backward) == doctest::Approx(4e-3));
  CHECK(stage.forward - stage.blocking.forward == without.costs.stage[1].forward);
  CHECK(with.step_time > without.step_time);
}

TEST_CASE("R repeats the collectives of F, and those of attention's scores are none") {
  const auto recompute_of = [](const std::string& how) {
    Case asked = case_of("1f1b", ports(8), degrees_of(2, 1, 4));
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {{CollectiveKind::all_reduce, Dimension::tensor, megabyte, 2, 2, 0}};
      layer.recompute = Time{1'000'000};  // measured: F runs again in the cache
      layer.selective_forward = Time{1'000'000};
      layer.stash_input_grad = megabyte;
      layer.selective_stash = megabyte;
    }
    asked.recomputation = parse_recomputation(how, "--recompute");
    return study(asked).costs.stage[1].blocking.recompute;
  };
  CHECK(to_seconds(recompute_of("full")) == doctest::Approx(4e-3));
  CHECK(recompute_of("selective") == Time{});
}

TEST_CASE("tied weights on two ranks add up their gradients before the update") {
  const auto costs_with = [&](bool tied) {
    Case asked = case_of("1f1b", ports(4), degrees_of(1, 1, 4));
    for (Layer& layer : asked.model.layers) layer.parameters = 250'000;
    if (tied) asked.model.layers.back().parameters = 0;
    return study(asked).costs;
  };
  const Costs apart = costs_with(false);
  const Costs tied = costs_with(true);
  // An all-reduce of 1 MB between two ranks of 1 GB/s.
  for (const std::size_t stage : {std::size_t{0}, std::size_t{3}}) {
    CHECK(to_seconds(tied.stage[stage].update - apart.stage[stage].update) ==
          doctest::Approx(1e-3));
    CHECK(tied.stage[stage].blocking.update == tied.stage[stage].update);
  }
  CHECK(tied.stage[1].update == apart.stage[1].update);
}

TEST_CASE("tied weights are held, reduced and updated once by ranks with both their layers") {
  const auto costs_on = [&](const std::string& schedule, const Degrees& degrees) {
    Case asked = case_of(schedule, ports(degrees.data * degrees.pipeline), degrees);
    for (Layer& layer : asked.model.layers) {
      layer.parameters = 500'000;
      layer.weights = layer.gradients = layer.optimizer_state = megabyte;
      layer.update = Time{1'000'000};
    }
    Layer& head = asked.model.layers.back();
    head.parameters = 125'000;
    head.tied_weights = Bytes{3 * megabyte.count / 4};
    const Outcome outcome = study(asked);
    CHECK(copies_note(asked, outcome).empty() == (schedule == "zb_v" || degrees.pipeline == 1));
    return outcome.costs;
  };
  const Costs one = costs_on("1f1b", degrees_of(1, 2, 1));
  CHECK(one.stage[0].weights == Bytes{7 * megabyte.count + megabyte.count / 4});
  CHECK(one.stage[0].gradients == one.stage[0].weights);
  CHECK(one.stage[0].optimizer_state == one.stage[0].weights);
  CHECK(one.stage[0].update == Time{7'250'000});
  REQUIRE(one.stage[0].reduction);
  CHECK(one.stage[0].reduction->bytes == one.stage[0].weights);
  const Costs v = costs_on("zb_v", degrees_of(1, 1, 2));
  CHECK(v.stage[3].weights == Bytes{megabyte.count + megabyte.count / 4});
  CHECK(v.stage[3].update == Time{1'250'000});
  CHECK(v.stage[3].blocking.update == Time{});
  const Costs apart = costs_on("1f1b", degrees_of(1, 1, 2));
  CHECK(apart.stage[1].weights == Bytes{4 * megabyte.count});
  CHECK(apart.stage[1].blocking.update > Time{});
}

TEST_CASE("of gradients that are divided, tied weights add up a rank's part") {
  const auto exchange_with = [&](Zero zero) {
    Degrees degrees = degrees_of(1, 4, 2);
    degrees.zero = zero;
    degrees.zero_every = ZeroEvery::microbatch;
    Case asked = case_of("1f1b", ports(8), degrees);
    for (Layer& layer : asked.model.layers) {
      layer.parameters = 500'000;
      layer.weights = layer.gradients = layer.optimizer_state = megabyte;
    }
    // Three quarters of the last layer's are the first one's.
    asked.model.layers.back().parameters = 125'000;
    asked.model.layers.back().tied_weights = Bytes{3 * megabyte.count / 4};
    const Costs costs = study(asked).costs;
    return costs.stage[1].blocking_by[static_cast<std::size_t>(Dimension::pipeline)].update;
  };
  const Time whole = exchange_with(Zero::none);
  CHECK(whole > Time{});
  CHECK(exchange_with(Zero::optimizer) == whole);
  const Time part = exchange_with(Zero::gradients);
  CHECK(to_seconds(part) == doctest::Approx(to_seconds(whole) / 4));
  CHECK(exchange_with(Zero::weights) == part);
}

namespace {

// Two machines of two devices; each machine has one NIC for both.
Cluster two_by_two() {
  Cluster cluster;
  cluster.name = "two by two";
  for (int d = 0; d < 4; ++d) {
    Device device;
    device.name = "gpu" + std::to_string(d);
    cluster.devices.push_back(device);
  }
  cluster.switches = {"m0", "m1", "spine"};
  for (int d = 0; d < 4; ++d) {
    cluster.links.push_back({"port", d, 4 + d / 2, {100'000'000'000}, Time{}, Duplex::full});
  }
  for (int m = 0; m < 2; ++m) {
    cluster.links.push_back({"nic", 4 + m, 6, {1'000'000'000}, Time{}, Duplex::full});
  }
  return cluster;
}

}  // namespace

TEST_CASE("blocking collectives of all replicas share links, simulated or not") {
  Degrees degrees = degrees_of(2, 2, 1);
  degrees.order = parse_order("dp-tp-cp-pp");  // tensor-parallel ranks are in two machines
  const auto forward_of = [&](bool all) {
    Case asked = case_of("1f1b", two_by_two(), degrees, all);
    LayerCollective reduction;
    reduction.kind = CollectiveKind::all_reduce;
    reduction.group = Dimension::tensor;
    reduction.bytes = megabyte;
    reduction.forward = 1;
    for (Layer& layer : asked.model.layers) layer.collectives = {reduction};
    const Outcome outcome = study(asked);
    CHECK(asked.pipelines() == (all ? 2 : 1));
    return outcome.costs.stage[0].blocking.forward;
  };
  // Two groups send 1 MB each across one NIC of 1 GB/s, for each of the layers.
  const auto each = static_cast<std::int64_t>(layers().layers.size());
  CHECK(forward_of(false) == Time{2'000'000'000} * each);
  CHECK(forward_of(true) == forward_of(false));
}

TEST_CASE("what blocks in a backward, and a slow device, hide exchanges as compute does") {
  for (const Zero zero : {Zero::none, Zero::weights}) {
    Degrees degrees = degrees_of(2, 2, 1);
    degrees.zero = zero;
    const auto costs_with = [&](Time more, bool blocks, double rate) {
      Cluster cluster = ports(4);
      for (Device& device : cluster.devices) device.rate = rate;
      Case asked;
      asked.model = layers();
      for (Layer& layer : asked.model.layers) {
        layer.gradients = layer.weights = Bytes{30'000'000};
        const auto longer = [&](Time time) {
          return Time{std::llround(static_cast<double>((time + more).count()) * rate)};
        };
        layer.forward = longer(layer.forward);
        layer.input_grad = longer(layer.input_grad);
        layer.weight_grad =
            Time{std::llround(static_cast<double>(layer.weight_grad.count()) * rate)};
        layer.backward = layer.input_grad + layer.weight_grad;
        if (!blocks) continue;
        LayerCollective reduction;
        reduction.kind = CollectiveKind::all_reduce;
        reduction.group = Dimension::tensor;
        reduction.bytes = Bytes{20'000'000};
        reduction.forward = reduction.input_grad = 1;
        layer.collectives = {reduction};
      }
      asked.ranked = std::make_shared<RankedCluster>(cluster, degrees, "best", "ddp", false);
      asked.cluster = asked.ranked->ranks();
      asked.spec = parse_schedules("1f1b").at(0);
      asked.microbatches = 2;
      return study(asked).costs.stage[0];
    };
    const StageCosts blocked = costs_with(Time{}, true, 1);
    const auto number = static_cast<std::int64_t>(layers().layers.size());
    Time each = zero == Zero::none ? blocked.blocking.forward
                                   : nth(blocked.blocking_by, Dimension::tensor).forward;
    each /= number;
    CHECK(each > Time{});
    const StageCosts longer = costs_with(each, false, 1);
    const StageCosts slow = costs_with(each, false, 0.5);
    for (const StageCosts* const other : {&longer, &slow}) {
      CHECK(abs(other->backward - blocked.backward) <= Time{1000});
      CHECK(abs(other->forward - blocked.forward) <= Time{1000});
      if (zero == Zero::none) {
        CHECK(abs(other->reduction->head_start - blocked.reduction->head_start) <= Time{1000});
        CHECK(blocked.reduction->head_start > Time{});
      }
    }
  }
}

TEST_CASE("parallel ranks that share a port share its bandwidth") {
  const Cluster cluster = two_by_two();
  const RankedCluster ranked(cluster, degrees_of(2, 1, 2));
  Case asked = case_of("gpipe", cluster, degrees_of(2, 1, 2));
  const Outcome outcome = study(asked);
  const Route& route = outcome.costs.network.between(0, 1);
  // Each sends half of the activation.
  CHECK(route.bandwidth == Bandwidth{1'000'000'000});
  asked.model.sharding.sequence = true;  // messages are divided already
  CHECK(study(asked).costs.network.between(0, 1).bandwidth == Bandwidth{500'000'000});
  // Four times 2^62 B/s leave 64 bits.
  const Cluster wide = uniform_cluster(8, LinkSpec{{std::int64_t{1} << 62}, Time{}}, std::nullopt);
  const Outcome fast = study(case_of("gpipe", wide, degrees_of(4, 1, 2)));
  CHECK(fast.costs.network.between(0, 1).bandwidth.is_unlimited());
}

// Half of each layer's weights are of its experts.
Case experts_case(const std::string& schedule, const Degrees& degrees, bool all = false,
                  Time latency = Time{}) {
  Case asked = case_of(schedule, ports(degrees.width() * degrees.pipeline, latency), degrees, all);
  for (Layer& layer : asked.model.layers) {
    layer.parameters = 250'000;
    layer.expert_parameters = 125'000;
  }
  return asked;
}

Degrees experts_of(int expert, int context, int data, int pipeline) {
  Degrees degrees = degrees_of(1, data, pipeline);
  degrees.context = context;
  degrees.expert = expert;
  return degrees;
}

TEST_CASE("gradients of experts are reduced among the ranks that hold the same experts") {
  const auto reduction = [](int expert, int context, int data) {
    const Outcome outcome = study(experts_case("1f1b", experts_of(expert, context, data, 2)));
    return to_seconds(alone(outcome.costs.stage[0].reduction.value()));
  };
  // A stage has 4 MB of gradients at 1 GB/s: 2(n-1)/n bytes a byte, half of them with n/ep ranks.
  CHECK(reduction(1, 1, 4) == doctest::Approx(4e-3 * 1.5));
  CHECK(reduction(2, 1, 4) == doctest::Approx(2e-3 * 1.5 + 2e-3 * 1.0));
  CHECK(reduction(4, 1, 4) == doctest::Approx(2e-3 * 1.5));
  CHECK(reduction(4, 2, 4) == doctest::Approx(2e-3 * 1.75 + 2e-3 * 1.0));
}

Degrees folded(int tensor, int expert, int expert_tensor, int data) {
  Degrees degrees = degrees_of(tensor, data, 2);
  degrees.expert = expert;
  degrees.expert_tensor = expert_tensor;
  return degrees;
}

TEST_CASE("with a tensor degree of their own, experts have gradients of other ranks, too") {
  const auto reduction = [](const Degrees& degrees) {
    const Outcome outcome = study(experts_case("1f1b", degrees));
    return to_seconds(alone(outcome.costs.stage[0].reduction.value()));
  };
  // As above: of 2 MB each, dense ones with dp ranks, experts with tp·dp/(ep·etp).
  CHECK(reduction(folded(2, 4, 2, 4)) == doctest::Approx(2e-3 * 1.5));
  CHECK(reduction(folded(2, 8, 1, 4)) == doctest::Approx(2e-3 * 1.5));
  CHECK(reduction(folded(2, 4, 1, 4)) == doctest::Approx(2e-3 * 1.5 + 2e-3 * 1.0));
  CHECK(reduction(folded(2, 2, 1, 4)) == doctest::Approx(2e-3 * 1.5 + 2e-3 * 1.5));
  // A lone replica has its tensor-parallel ranks alone, two of which hold the same experts.
  CHECK(reduction(folded(4, 2, 1, 1)) == doctest::Approx(2e-3 * 1.0));
  Degrees zero = folded(4, 2, 1, 1);
  const Outcome whole = study(experts_case("1f1b", zero));
  CHECK(whole.program.settings.data_ranks == 2);
  CHECK(to_seconds(whole.step_time - study(experts_case("1f1b", folded(4, 4, 1, 1))).step_time) ==
        doctest::Approx(2e-3));
  zero.zero = Zero::optimizer;
  const StageCosts first = study(experts_case("1f1b", zero)).costs.stage[0];
  CHECK(to_seconds(alone(first.reduction.value())) == doctest::Approx(1e-3));
  CHECK(to_seconds(first.blocking.update) == doctest::Approx(1e-3));
  zero.zero = Zero::weights;
  zero.zero_every = ZeroEvery::microbatch;
  const StageCosts third = study(experts_case("1f1b", zero)).costs.stage[0];
  // The gather of a layer's half megabyte, 0.25 ms, is hidden but for the first.
  CHECK(to_seconds(third.blocking.forward) == doctest::Approx(0.25e-3));
  CHECK_FALSE(third.reduction.has_value());
}

// DiLoCo (arXiv 2311.08105): the ranks step alone, and meet in every fourth step.
TEST_CASE("a program that reduces gradients in some of its steps takes their mean") {
  Case asked = case_of("1f1b", ports(4), degrees_of(1, 2, 2));
  asked.steps = 4;
  const Outcome each = study(asked);
  asked.program = each.program;
  for (std::vector<Op>& list : asked.program->ops) {
    std::erase_if(list, [](Op op) { return op.kind == OpKind::reduce_grad && op.microbatch < 3; });
  }
  const Outcome outer = study(asked);
  asked.program->ops = each.program.ops;
  for (std::vector<Op>& list : asked.program->ops) {
    std::erase_if(list, [](Op op) { return op.kind == OpKind::reduce_grad && op.microbatch > 0; });
  }
  const Outcome first = study(asked);
  const Time reduced =
      each.step_time - study(case_of("1f1b", ports(2), degrees_of(1, 1, 2))).step_time;
  REQUIRE(reduced > Time{});
  CHECK(outer.step_time == makespan(outer.times) / 4);
  CHECK(outer.step_time < each.step_time);
  CHECK(first.step_time == outer.step_time);
}

TEST_CASE("a rank that keeps a part of the gradients reduces them in every backward") {
  Degrees degrees = degrees_of(1, 2, 4);
  degrees.zero_every = ZeroEvery::microbatch;
  const auto costs = [&](Zero zero, const std::string& schedule = "1f1b") {
    degrees.zero = zero;
    return study(case_of(schedule, ports(8), degrees));
  };
  const Outcome once = costs(Zero::optimizer);
  const Outcome each = costs(Zero::gradients);
  const Outcome split = costs(Zero::gradients, "zb_h1");
  const StageCosts& first = each.costs.stage[0];
  CHECK_FALSE(first.reduction.has_value());
  // Two layers, each with 1 MB of gradients to scatter at (n-1)/n bytes a byte and 1 GB/s: behind
  // the second layer's backward of 2 ms the first one's is hidden, but for its own.
  CHECK(to_seconds(first.blocking.backward) == doctest::Approx(1e-3 * 0.5));
  CHECK(first.blocking.forward == Time{});
  CHECK(first.blocking.update == once.costs.stage[0].blocking.update);
  CHECK(each.step_time > once.step_time);
  CHECK(split.costs.stage[0].blocking.weight_grad > Time{});
  CHECK(split.costs.stage[0].blocking.input_grad == Time{});
}

TEST_CASE("beside a pipeline ZeRO 2 exchanges once a step, and is ZeRO 1") {
  for (const std::string schedule : {"1f1b", "interleaved_1f1b", "zb_h1", "chimera"}) {
    CAPTURE(schedule);
    Degrees degrees = degrees_of(1, 2, 4);
    const auto outcome_of = [&](Zero zero, std::optional<ZeroEvery> every) {
      degrees.zero = zero;
      degrees.zero_every = every;
      return study(case_of(schedule, ports(8), degrees));
    };
    const Outcome first = outcome_of(Zero::optimizer, std::nullopt);
    const Outcome second = outcome_of(Zero::gradients, std::nullopt);
    CHECK(second.costs.stage == first.costs.stage);
    CHECK(second.step_time == first.step_time);
    CHECK(second.memory.device[0].peak == first.memory.device[0].peak);
    CHECK(outcome_of(Zero::gradients, ZeroEvery::step).step_time == first.step_time);
    CHECK(outcome_of(Zero::gradients, ZeroEvery::microbatch).step_time != first.step_time);
  }
}

TEST_CASE("ZeRO 3 once a step adds a gather and a reduce-scatter to the step of one pipeline") {
  const Outcome alone = [&] {
    Case asked = test::uniform_case("1f1b", 4, 8);
    asked.model = layers();
    asked.cluster = ports(4);
    return study(asked);
  }();
  Degrees degrees = degrees_of(1, 2, 4);
  degrees.zero = Zero::weights;
  const Case asked = case_of("1f1b", ports(8), degrees);
  const Outcome once = study(asked);
  // A layer's gather takes 1 MB · 1/2 at 1 GB/s, 0.5 ms: the first one shows, the second runs
  // beside a forward of 1 ms. The reduce-scatter of a stage's 2 MB takes 1 ms behind the backward.
  CHECK(once.costs.stage[0].blocking.forward == Time{});
  CHECK(once.costs.stage[0].blocking.backward == Time{});
  CHECK(once.costs.stage[0].blocking.update == parse_time("500us"));
  CHECK(to_seconds(once.step_time - alone.step_time) == doctest::Approx(1.5e-3).epsilon(1e-6));
  // ZeRO 1 gathers the stage's 2 MB behind the update, 1 ms, and holds as much.
  degrees.zero = Zero::optimizer;
  const Outcome first = study(case_of("1f1b", ports(8), degrees));
  CHECK(to_seconds(first.step_time - once.step_time) == doctest::Approx(0.5e-3).epsilon(1e-6));
  CHECK(once.memory.device[0].peak == first.memory.device[0].peak);
  CHECK_FALSE(zero_note(asked).empty());
  CHECK(zero_note(case_of("1f1b", ports(8), degrees)).empty());
  // Without a pipeline it is FSDP unless it is asked for.
  degrees = degrees_of(1, 2, 1);
  degrees.zero = Zero::weights;
  CHECK(zero_note(case_of("1f1b", ports(2), degrees)).empty());
  const Outcome fsdp = study(case_of("1f1b", ports(2), degrees));
  CHECK(fsdp.costs.stage[0].blocking.forward == parse_time("500us"));
  CHECK(fsdp.costs.stage[0].blocking.update == Time{});
  degrees.zero_every = ZeroEvery::step;
  const Outcome kept = study(case_of("1f1b", ports(2), degrees));
  CHECK(kept.costs.stage[0].blocking.forward == Time{});
  CHECK(kept.costs.stage[0].blocking.update == parse_time("500us"));
  CHECK(kept.memory.device[0].peak > fsdp.memory.device[0].peak);
}

TEST_CASE("once a step, a device gathers the weights of its next stage beside the last forward") {
  Degrees degrees = degrees_of(1, 2, 2);
  degrees.zero = Zero::weights;
  const auto updates = [&](const std::string& schedule) {
    Case asked = case_of(schedule, ports(4), degrees);
    for (Layer& layer : asked.model.layers) layer.weights = layer.gradients = megabyte * 4;
    std::vector<Time> blocked;
    for (const StageCosts& stage : study(asked).costs.stage) {
      blocked.push_back(stage.blocking.update);
    }
    return blocked;
  };
  // A gather of 4 MB · 1/2 takes 2 ms, a forward 1 ms. Of four stages of two layers each the first
  // of a device shows 2 + 1 ms, the second one 1 + 1 ms.
  const Time three = parse_time("3ms");
  const Time two = parse_time("2ms");
  CHECK(updates("interleaved_1f1b") == std::vector<Time>{three, three, two, two});
  CHECK(updates("zb_v") == std::vector<Time>{three, three, two, two});
  // Chimera has two stages of four layers, each on both devices, so that four ranks gather: 3 ms.
  // The first stage shows 3 + 3 · 2, the second, which both devices have behind it, 2 + 3 · 2 ms.
  const std::vector<Time> chimera = updates("chimera");
  REQUIRE(chimera.size() == 2);
  CHECK(to_seconds(chimera[0]) == doctest::Approx(9e-3));
  CHECK(to_seconds(chimera[1]) == doctest::Approx(8e-3));
}

TEST_CASE("shard groups scatter and gather within each, and add up parts among them") {
  Degrees degrees = degrees_of(1, 4, 2);
  degrees.zero = Zero::optimizer;
  const auto stage_of = [&](int ranks) {
    degrees.shard_group = {ShardSpan::ranks, ranks};
    return study(case_of("1f1b", ports(8), degrees)).costs.stage[0];
  };
  // A stage has 4 MB of gradients and weights at 1 GB/s. Groups of two: a half of them scattered,
  // 2 ms, then the all-reduce of 2 MB among two, 2 ms; gathered in 2 ms.
  const StageCosts two = stage_of(2);
  CHECK(to_seconds(alone(two.reduction.value())) == doctest::Approx(4e-3));
  CHECK(two.reduction->bytes == megabyte * 6);
  CHECK(to_seconds(two.blocking.update) == doctest::Approx(2e-3));
  // One group of all four is ZeRO 1, groups of one are no ZeRO.
  const StageCosts four = stage_of(4);
  CHECK(to_seconds(alone(four.reduction.value())) == doctest::Approx(3e-3));
  CHECK(to_seconds(four.blocking.update) == doctest::Approx(3e-3));
  const StageCosts one = stage_of(1);
  CHECK(to_seconds(alone(one.reduction.value())) == doctest::Approx(6e-3));
  CHECK(one.blocking.update == Time{});
  degrees.zero = Zero::none;
  CHECK(alone(stage_of(2).reduction.value()) == alone(one.reduction.value()));
}

TEST_CASE("HSDP gathers within a group in every op, and adds up the groups' parts once a step") {
  Degrees degrees = degrees_of(1, 4, 1);
  degrees.zero = Zero::weights;
  const auto outcome_of = [&](ShardGroup group) {
    degrees.shard_group = group;
    return study(case_of("1f1b", ports(4), degrees));
  };
  const Outcome all = outcome_of({});
  CHECK(to_seconds(all.costs.stage[0].blocking.forward) == doctest::Approx(0.75e-3));
  CHECK_FALSE(all.costs.stage[0].reduction.has_value());
  // A layer of 1 MB: gathered among two in 0.5 ms, scattered in 0.5 ms; the parts of eight layers,
  // 0.5 MB each, are added up among two groups in 4 ms behind the last backward.
  const Outcome two = outcome_of({ShardSpan::ranks, 2});
  const StageCosts& stage = two.costs.stage[0];
  CHECK(to_seconds(stage.blocking.forward) == doctest::Approx(0.5e-3));
  CHECK(to_seconds(stage.blocking.backward) == doctest::Approx(1e-3));
  REQUIRE(stage.reduction);
  CHECK(stage.reduction->bytes == megabyte * 4);
  CHECK(to_seconds(alone(*stage.reduction)) == doctest::Approx(4e-3));
  // Eight micro-batches of 24 ms, what blocks in each, and the parts.
  CHECK(to_seconds(two.step_time) == doctest::Approx(8 * (24e-3 + 1.5e-3) + 4e-3));
  CHECK(two.memory.device[0].peak > all.memory.device[0].peak);
}

TEST_CASE("shard groups of experts are as many as those of dense weights") {
  Degrees degrees = experts_of(2, 1, 4, 2);
  degrees.zero = Zero::optimizer;
  degrees.shard_group = {ShardSpan::ranks, 2};
  const StageCosts stage = study(experts_case("1f1b", degrees)).costs.stage[0];
  // 2 MB of dense gradients: scattered among two in 1 ms, parts of 1 MB added up in 1 ms. 2 MB of
  // experts, of which a group has one holder each: added up among two in 2 ms.
  CHECK(to_seconds(alone(stage.reduction.value())) == doctest::Approx(4e-3));
  CHECK(to_seconds(stage.blocking.update) == doctest::Approx(1e-3));
}

TEST_CASE("with shard groups, one pipeline for all and all of them give the same step") {
  for (const std::string schedule : {"1f1b", "interleaved_1f1b", "chimera"}) {
    for (const Zero zero : all_zeros) {
      for (const ZeroEvery every : all_zero_everys) {
        CAPTURE(schedule);
        CAPTURE(name(zero));
        CAPTURE(name(every));
        Degrees degrees = experts_of(2, 1, 4, 2);
        degrees.zero = zero;
        degrees.zero_every = every;
        degrees.shard_group = {ShardSpan::ranks, 2};
        const Outcome one = study(experts_case(schedule, degrees, false, Time{5'000'000}));
        const Outcome all = study(experts_case(schedule, degrees, true, Time{5'000'000}));
        CHECK(to_seconds(all.step_time) ==
              doctest::Approx(to_seconds(one.step_time)).epsilon(1e-6));
        CHECK(all.memory.device[0].peak == one.memory.device[0].peak);
      }
    }
  }
}

TEST_CASE("a shard group that is a machine or an NVLink domain is counted on the cluster") {
  const auto cluster_of = [](int machines, int devices, Tier tier) {
    Cluster cluster = ports(machines * devices);
    for (int d = 0; d < machines * devices; ++d) {
      nth(cluster.devices, d).host = d / devices;
      cluster.hosts.resize(as_size(machines));
    }
    for (Link& link : cluster.links) link.tier = tier;
    return cluster;
  };
  const auto group_on = [](const Cluster& cluster, ShardSpan span, int tensor, int data) {
    Degrees degrees = degrees_of(tensor, data, 1);
    degrees.zero = Zero::weights;
    degrees.shard_group = {span, 0};
    return RankedCluster(cluster, degrees).grid().degrees().shard_group;
  };
  const Cluster machines = cluster_of(2, 4, Tier::network);
  const auto of = [](int ranks) { return ShardGroup{ShardSpan::ranks, ranks}; };
  CHECK(group_on(machines, ShardSpan::machine, 1, 8) == of(4));
  CHECK(group_on(machines, ShardSpan::machine, 2, 4) == of(2));
  CHECK(group_on(cluster_of(2, 4, Tier::nvlink), ShardSpan::domain, 1, 8) == of(8));
  CHECK_THROWS_WITH_AS(group_on(machines, ShardSpan::machine, 1, 6),
                       "--shard-group machine: one machine has 2 and another 4 of the 6 ranks that "
                       "hold the same weights, and groups are equal; give a divisor of 6",
                       UsageError);
  CHECK_THROWS_WITH_AS(group_on(machines, ShardSpan::domain, 1, 8),
                       doctest::Contains("no NVLink joins the devices"), UsageError);
  CHECK_THROWS_WITH_AS(group_on(ports(8), ShardSpan::machine, 1, 8),
                       doctest::Contains("does not say which machines"), UsageError);
}

TEST_CASE("ZeRO scatters and gathers experts among the same ranks") {
  Degrees degrees = experts_of(2, 1, 4, 2);
  degrees.zero = Zero::optimizer;
  const StageCosts first = study(experts_case("1f1b", degrees)).costs.stage[0];
  const double once = 2e-3 * 0.75 + 2e-3 * 0.5;  // (n-1)/n bytes a byte of 2 MB each
  CHECK(to_seconds(alone(first.reduction.value())) == doctest::Approx(once));
  CHECK(to_seconds(first.blocking.update) == doctest::Approx(once));
  degrees.zero = Zero::weights;
  degrees.zero_every = ZeroEvery::microbatch;
  const StageCosts third = study(experts_case("1f1b", degrees)).costs.stage[0];
  // The gather of a layer, 0.625 ms, is hidden by another's forward of 1 ms but for the first; in
  // the backward of 2 ms so is the exchange but for the first gather and the last reduce-scatter.
  CHECK(to_seconds(third.blocking.forward) == doctest::Approx(once / 4));
  CHECK(to_seconds(third.blocking.backward) == doctest::Approx(2 * once / 4));
  CHECK_FALSE(third.reduction.has_value());
}

TEST_CASE("tokens go to the experts within groups of ep ranks, which may span replicas") {
  const auto dispatched = [](const Degrees& degrees, bool all) {
    Case asked = experts_case("1f1b", degrees, all);
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {{CollectiveKind::all_to_all, Dimension::expert, megabyte, 2, 2, 0}};
    }
    const Outcome outcome = study(asked);
    CHECK(outcome.costs.stage[1].blocking.backward == outcome.costs.stage[1].blocking.forward);
    return to_seconds(outcome.costs.stage[1].blocking.forward);
  };
  // Four layers, twice (e-1)/e of 1 MB at 1 GB/s.
  CHECK(dispatched(experts_of(2, 1, 4, 2), false) == doctest::Approx(4e-3));
  CHECK(dispatched(experts_of(4, 1, 4, 2), false) == doctest::Approx(6e-3));
  CHECK(dispatched(experts_of(4, 2, 2, 2), false) == doctest::Approx(6e-3));
  CHECK(dispatched(experts_of(4, 2, 2, 2), true) == doctest::Approx(6e-3));
  CHECK(dispatched(experts_of(2, 2, 1, 2), false) == doctest::Approx(4e-3));
  CHECK(dispatched(experts_of(1, 2, 2, 2), false) == 0);
  // Over the tensor-parallel ranks as well.
  CHECK(dispatched(folded(2, 4, 1, 2), false) == doctest::Approx(6e-3));
  CHECK(dispatched(folded(2, 4, 1, 2), true) == doctest::Approx(6e-3));
  CHECK(dispatched(folded(4, 2, 2, 1), false) == doctest::Approx(4e-3));
}

TEST_CASE("those that share an expert exchange its rows, on several replicas where need be") {
  for (const auto& degrees : {folded(4, 2, 2, 1), folded(1, 2, 2, 4)}) {
    CAPTURE(degrees.tensor);
    Case asked = experts_case("1f1b", degrees);
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {
          {CollectiveKind::all_gather, Dimension::expert_tensor, megabyte, 1, 1, 0}};
    }
    const StageCosts stage = study(asked).costs.stage[1];
    // Four layers, half a megabyte from the other one at 1 GB/s.
    CHECK(to_seconds(stage.blocking.forward) == doctest::Approx(2e-3));
    CHECK(nth(stage.blocking_by, Dimension::expert_tensor).forward == stage.blocking.forward);
    CHECK(stage.communication_buffer == megabyte);
  }
}

TEST_CASE("with experts, one pipeline for all and all of them give the same step") {
  for (const std::string schedule :
       {"1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_v", "chimera"}) {
    for (const Zero zero : all_zeros) {
      CAPTURE(schedule);
      CAPTURE(name(zero));
      Degrees degrees = experts_of(2, 1, 4, 4);
      degrees.zero = zero;
      const auto step = [&](bool all) {
        Case asked = experts_case(schedule, degrees, all, Time{5'000'000});
        for (Layer& layer : asked.model.layers) {
          layer.collectives = {{CollectiveKind::all_to_all, Dimension::expert, megabyte, 2, 2, 0}};
        }
        return study(asked);
      };
      const Outcome one = step(false);
      const Outcome all = step(true);
      CHECK(to_seconds(all.step_time) == doctest::Approx(to_seconds(one.step_time)).epsilon(1e-6));
      CHECK(all.memory.device[0].peak == one.memory.device[0].peak);
    }
  }
}

TEST_CASE("sequence parallelism holds the largest gathered tensor while its collectives run") {
  const auto outcome_of = [](Dimension group, CollectiveKind kind) {
    Case asked = case_of("1f1b", ports(8), degrees_of(2, 1, 4));
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {{kind, group, megabyte, 1, 1, 1},
                           {CollectiveKind::reduce_scatter, Dimension::tensor, megabyte, 1, 1, 0}};
    }
    asked.model.layers[2].collectives.front().bytes = megabyte * 3;  // of the second stage
    return study(asked);
  };
  const Outcome gathered = outcome_of(Dimension::tensor, CollectiveKind::all_gather);
  CHECK(gathered.costs.stage[0].communication_buffer == megabyte);
  CHECK(gathered.costs.stage[1].communication_buffer == megabyte * 3);
  const Outcome reduced = outcome_of(Dimension::tensor, CollectiveKind::all_reduce);
  CHECK(reduced.costs.stage[1].communication_buffer == Bytes{});
  CHECK(gathered.memory.device[1].peak - reduced.memory.device[1].peak == megabyte * 3);
}

TEST_CASE("DDP's buckets are copies of the gradients, Megatron's are views of them") {
  const auto gradients = [](const char* buckets, Zero zero, int data,
                            ZeroEvery every = ZeroEvery::step) {
    Degrees degrees = degrees_of(1, data, 4);
    degrees.zero = zero;
    degrees.zero_every = every;
    Case asked = case_of("1f1b", ports(8), degrees);
    asked.ranked = std::make_shared<RankedCluster>(ports(8), degrees, "best", buckets);
    asked.cluster = asked.ranked->ranks();
    return study(asked).costs.stage[0].gradients;
  };
  CHECK(gradients("megatron", Zero::none, 2) == megabyte * 2);
  CHECK(gradients("none", Zero::none, 2) == megabyte * 2);
  CHECK(gradients("ddp", Zero::none, 2) == megabyte * 4);
  CHECK(gradients("ddp", Zero::optimizer, 2) == megabyte * 4);
  CHECK(gradients("ddp", Zero::weights, 2) == megabyte * 4);
  CHECK(gradients("ddp", Zero::weights, 2, ZeroEvery::microbatch) == megabyte);
  CHECK(gradients("ddp", Zero::none, 1) == megabyte * 2);
}

TEST_CASE("buckets make no schedule's step longer than a reduction behind it, but by latencies") {
  const Time latency{1'000'000};
  const auto step = [&](const Scheduler& scheduler, const char* buckets) {
    Case asked = case_of(std::string(scheduler.name), ports(4, latency), degrees_of(1, 2, 2));
    asked.model = uniform_model(
        "layers=16,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,output=1kB");
    for (Layer& layer : asked.model.layers) layer.gradients = Bytes{1'200'000};
    asked.ranked =
        std::make_shared<RankedCluster>(ports(4, latency), degrees_of(1, 2, 2), "best", buckets);
    asked.cluster = asked.ranked->ranks();
    return study(asked).step_time;
  };
  int sooner = 0;
  for (const Scheduler* const scheduler : schedulers()) {
    CAPTURE(scheduler->name);
    std::optional<Time> behind;
    try {
      behind = step(*scheduler, "none");
    } catch (const UsageError&) {
      continue;  // not on so many devices, or not of this model
    }
    const Time in_buckets = step(*scheduler, "ddp");
    CHECK(in_buckets <= *behind + 2 * 16 * latency);
    if (in_buckets < *behind) ++sooner;
  }
  CHECK(sooner > 10);
}

TEST_CASE(
    "without buckets a reduction begins behind the backward, whichever layers have gradients") {
  const auto first_stage = [](const char* buckets) {
    // The last layers of a stage's backward have no gradients: its bucket is full before it ends.
    Case asked = case_of("gpipe", ports(4), degrees_of(1, 2, 2));
    asked.model.layers[0].gradients = asked.model.layers[1].gradients = Bytes{};
    asked.ranked = std::make_shared<RankedCluster>(ports(4), degrees_of(1, 2, 2), "best", buckets);
    asked.cluster = asked.ranked->ranks();
    const Outcome outcome = study(asked);
    REQUIRE(outcome.costs.stage[0].reduction);
    return *outcome.costs.stage[0].reduction;
  };
  CHECK(first_stage("none").head_start == Time{});
  CHECK(first_stage("none").bytes == megabyte * 2);
  CHECK(first_stage("megatron").head_start > Time{});
}

TEST_CASE("where there is nothing to exchange, nothing is, and no latency is taken for it") {
  const Time latency{1'000'000};
  for (const Zero level : all_zeros) {
    CAPTURE(static_cast<int>(level));
    Degrees degrees = degrees_of(1, 2, 2);
    degrees.zero = level;
    degrees.zero_every = ZeroEvery::microbatch;
    Case asked = case_of("1f1b", ports(4, latency), degrees);
    for (std::size_t l = 4; l < 8; ++l) {  // those of the second stage
      asked.model.layers[l].weights = asked.model.layers[l].gradients = Bytes{};
    }
    const Outcome outcome = study(asked);
    const StageCosts& without = outcome.costs.stage[1];
    CHECK(without.blocking == BlockingTimes{});
    CHECK((!without.reduction || *without.reduction == CollectiveCosts{}));
    int reductions = 0;
    for (const std::vector<Op>& list : outcome.program.ops) {
      for (const Op op : list) {
        if (op.kind != OpKind::reduce_grad) continue;
        CHECK(op.stage == 0);
        ++reductions;
      }
    }
    CHECK(reductions == (reduces_in_every_backward(degrees) ? 0 : 1));
  }
}

TEST_CASE("replicas of a stage without gradients have no ring, where others have gradients") {
  Case asked = test::uniform_case("pipedream:replicas=2-2", 4, 8);
  asked.model = layers();
  asked.cluster = ports(4, Time{1'000'000});
  const auto reduced_stages = [](const Outcome& outcome) {
    std::vector<bool> reduced(outcome.costs.stage.size());
    for (const std::vector<Op>& list : outcome.program.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::reduce_grad) reduced[op.stage] = true;
      }
    }
    return reduced;
  };
  CHECK(reduced_stages(study(asked)) == std::vector<bool>{true, true});
  for (std::size_t l = 4; l < 8; ++l) {
    asked.model.layers[l].weights = asked.model.layers[l].gradients = Bytes{};
  }
  CHECK(reduced_stages(study(asked)) == std::vector<bool>{true, false});
}

TEST_CASE("what fifo leaves out of all-reduces of stages that are held twice is said") {
  const auto is_said = [](const std::string& schedule, Sharing sharing, int data) {
    Case asked = case_of(schedule, ports(2 * data), degrees_of(1, data, 2));
    asked.sharing = sharing;
    const std::vector<std::string> notes = stream_notes(asked, study(asked));
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("up to 2.3 % longer") != std::string::npos;
    });
  };
  CHECK(is_said("gems", Sharing::fifo, 2));
  CHECK(is_said("chimera", Sharing::fifo, 2));
  CHECK_FALSE(is_said("gems", Sharing::fair, 2));
  CHECK_FALSE(is_said("gems", Sharing::fifo, 1));
  CHECK_FALSE(is_said("1f1b", Sharing::fifo, 2));
}

TEST_CASE("degrees that do not fit are refused with both numbers") {
  CHECK_THROWS_WITH_AS(RankedCluster(ports(8), degrees_of(2, 4, 2)),
                       "--tp 2 × --cp 1 × --dp 4 × --pp 2 are 16 devices, but \"8 equal devices\" "
                       "has 8; give smaller degrees, or a cluster of 16",
                       UsageError);
}

}  // namespace stageline::degrees_tests
