// Do calibrations survive a file, are wrong ones refused by place, and do their factors reach
// links?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/base/errors.hpp"
#include "sim/lower/charges.hpp"
#include "tests/cost_models/collective_clusters.hpp"

namespace stageline::calibration_file_tests {
namespace {

using test::cluster_of;
using test::giga;
using test::Machines;
using test::mebi;
using test::of_all;
using test::planned;

Calibration sample() {
  Calibration calibration;
  calibration.kind = "h100";
  calibration.rates = find_chip_rates("h100")->rates;
  calibration.rates.gemm = 0.7234567890123;
  calibration.rates.nvlink = 0.93;
  calibration.fitted = {{"gemm", 0.7234567890123, 0.012}, {"nvlink", 0.93, 0.05}};
  calibration.residuals = {{"774", 0.843, 0.8512}, {"row \"775\"", 0.7255, 0.7}};
  calibration.source = "points.csv: FSDP runs of llm-foundry";
  calibration.date = "2026-11-23";
  return calibration;
}

std::string refusal(const std::string& text) {
  try {
    read_calibration(text, "mine.json");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string with(const std::string& members) {
  return R"({"format": "stageline-calibration 1", "kind": "h100", )" + members + "}";
}

// Beyond what it takes without bytes.
double moving(const Cluster& cluster, CollectiveKind kind, std::int64_t bytes) {
  const CollectivePlan plan = planned(cluster, of_all(cluster, kind, bytes));
  return to_seconds(alone(plan.costs) - plan.costs.setup);
}

double message(const Cluster& cluster, int from, int to) {
  Routes routes(cluster);
  const Route& route = routes.between(from, to);
  return to_seconds(transfer_time(Bytes{giga}, route.bandwidth));
}

}  // namespace

TEST_CASE("a calibration comes back from its file") {
  const Calibration before = sample();
  const std::string text = print_calibration(before);
  CHECK(read_calibration(text, "mine.json") == before);
  CHECK(print_calibration(read_calibration(text, "mine.json")) == text);
  CHECK(text.find("\"gemm\": 0.7234567890123") != std::string::npos);
  Calibration empty;
  empty.kind = "own";
  CHECK(read_calibration(print_calibration(empty), "mine.json") == empty);
}

TEST_CASE("a constant that is left out is the built-in one of the kind") {
  const Calibration read = read_calibration(with(R"("rates": {"memory": 0.8})"), "mine.json");
  KernelRates expected = find_chip_rates("h100")->rates;
  expected.memory = 0.8;
  CHECK(read.rates == expected);
  CHECK(read.fitted.empty());
}

TEST_CASE("a calibration is refused with the place of the fault") {
  const auto refused = [](const std::string& text, const std::string& message) {
    CAPTURE(text);
    CHECK(refusal(text) == message);
  };
  refused(with(R"("rates": {"gemm": 1.5})"),
          "mine.json at /rates/gemm: gemm (e_g) must be from 0.2 to 0.95, not 1.5");
  refused(with(R"("rates": {"kernel": -1e-6})"),
          "mine.json at /rates/kernel: kernel (t_k) must be from 0 to 0.001 s, not -1e-06");
  refused(with(R"("rates": {"memory": "0.8"})"), "mine.json at /rates/memory: must be a number");
  refused(
      with(R"("rates": {}, "fitted": [{"name": "gem", "value": 1, "standard_error": 0}])"),
      "mine.json at /fitted/0/name: no constant is called \"gem\" (there are gemm, gemm_8bit, gemm_4bit, gemm_rows, "
      "gemm_columns, attention_plain, attention_flash, attention_kernel, memory, kernel, layer_floor, expert_floor, optimizer, "
      "step, misaligned, nvlink, network) (did you mean \"gemm\"?)");
  refused(with(R"("rates": {"gemm": 0.7}, )"
               R"("fitted": [{"name": "gemm", "value": 0.8, "standard_error": 0}])"),
          "mine.json at /fitted/0/value: gemm is 0.8 here and 0.7 in /rates/gemm");
  refused(with(R"("rates": {"gemm": 0.7}, "fitted": [{"name": "gemm", "value": 0.7, )"
               R"("standard_error": 0}, {"name": "gemm", "value": 0.7, "standard_error": 0}])"),
          "mine.json at /fitted/1/name: gemm is fitted twice");
  refused(with(R"("rates": {"gemm": 0.7}, )"
               R"("fitted": [{"name": "gemm", "value": 0.7, "standard_error": -1}])"),
          "mine.json at /fitted/0/standard_error: must be at least 0, not -1");
  refused(with(R"("rates": {}, "residuals": [{"point": "1", "measured": 0, "predicted": 1}])"),
          "mine.json at /residuals/0/measured: must be above 0, not 0");
  refused(with(R"("rates": {}, "residuals": [{"point": "1", "measured": 1}])"),
          "mine.json at /residuals/0: \"predicted\" is missing");
  refused(with(R"("rates": {}, "residuals": {})"), "mine.json at /residuals: must be a list");
  refused(with(R"("source": "none")"), "mine.json at /: \"rates\" is missing");
  refused(with(R"("rates": {}, "kind": "a100")"), "mine.json: the key \"kind\" is there twice");
  refused(R"({"format": "stageline-calibration 2", "kind": "h100", "rates": {}})",
          "mine.json at /format: must be \"stageline-calibration 1\", not "
          "\"stageline-calibration 2\"");
  refused(R"({"format": "stageline-calibration 1", "kind": "", "rates": {}})",
          "mine.json at /kind: must name the kind of device that the rates are for");
  refused("[]", "mine.json at /: must be an object");
  CHECK(refusal(with(R"("rate": {})")).find("at /rate: no such key is known") != std::string::npos);
  CHECK(refusal("{") == "mine.json at line 1, column 2: this is not JSON");
}

TEST_CASE("every constant has a place, a prior and a range that holds the built-in values") {
  std::set<std::string_view> names;
  std::set<std::string_view> symbols;
  for (const KernelConstant& constant : kernel_constants()) {
    CAPTURE(constant.name);
    names.insert(constant.name);
    symbols.insert(constant.symbol);
    CHECK(constant.spread > 0);
    CHECK(constant.least < constant.most);
    CHECK_FALSE(constant.meaning.empty());
    CHECK(KernelRates{}.*constant.member >= constant.least);
    CHECK(KernelRates{}.*constant.member <= constant.most);
    for (const ChipRates& chip : chip_rates()) {
      CHECK(chip.rates.*constant.member >= constant.least);
      CHECK(chip.rates.*constant.member <= constant.most);
    }
  }
  CHECK(names.size() == sizeof(KernelRates) / sizeof(double));
  CHECK(symbols.size() == names.size());
}

TEST_CASE("a chip is found by its kind or its family, with a source") {
  REQUIRE(find_chip_rates("a100-40gb") != nullptr);
  CHECK(find_chip_rates("a100-40gb")->kind == "a100");
  CHECK(find_chip_rates("a1000") == nullptr);
  for (const char* const kind : {"a100", "h100", "h200", "b200", "gb200"}) {
    CAPTURE(kind);
    REQUIRE(find_chip_rates(kind) != nullptr);
    CHECK_FALSE(find_chip_rates(kind)->source.empty());
  }
}

TEST_CASE("half of what transfers reach doubles how long bytes move, and no latency") {
  KernelRates half;
  half.nvlink = 0.5;
  const std::int64_t bytes = 1024 * mebi;
  for (const Machines& machine :
       {Machines{1, 8, "h100"}, Machines{1, 4, "h100"}, Machines{1, 8, "a100", 300 * giga},
        Machines{1, 2, "a100", 300 * giga}, Machines{1, 8, "b200", 900 * giga}, Machines{1, 8}}) {
    CAPTURE(machine.kind);
    CAPTURE(machine.gpus);
    const Cluster whole = cluster_of(machine);
    const Cluster slower = calibrated(whole, half);
    for (const CollectiveKind kind : all_collective_kinds) {
      CAPTURE(name(kind));
      CHECK(moving(slower, kind, bytes) ==
            doctest::Approx(2 * moving(whole, kind, bytes)).epsilon(1e-6));
      CHECK(planned(slower, of_all(slower, kind, bytes)).costs.setup ==
            planned(whole, of_all(whole, kind, bytes)).costs.setup);
    }
    CHECK(message(slower, 0, 1) == doctest::Approx(2 * message(whole, 0, 1)));
  }
}

TEST_CASE("the network's factor reaches messages and collectives between machines") {
  KernelRates half;
  half.network = 0.5;
  for (const char* const kind : {"h100", ""}) {
    const Cluster whole = cluster_of({4, 1, kind});
    const Cluster slower = calibrated(whole, half);
    CHECK(moving(slower, CollectiveKind::all_reduce, giga) ==
          doctest::Approx(2 * moving(whole, CollectiveKind::all_reduce, giga)).epsilon(1e-6));
    CHECK(message(slower, 0, 1) == doctest::Approx(2 * message(whole, 0, 1)));
  }
  const Cluster machine = cluster_of({1, 8, "h100"});
  CHECK(moving(calibrated(machine, half), CollectiveKind::all_reduce, giga) ==
        moving(machine, CollectiveKind::all_reduce, giga));  // over NVLink
}

TEST_CASE("factors of 1 change nothing, and those above 1 are as good") {
  Cluster cluster = cluster_of({2, 8, "h100"});
  cluster.collectives = {
      {CollectiveKind::all_reduce, 8, 1, parse_time("50us"), Bandwidth{300 * giga}, "log"},
      {CollectiveKind::all_reduce, 16, 2, parse_time("90us"), Bandwidth{200 * giga}, "log"}};
  CHECK(calibrated(cluster, KernelRates{}) == cluster);
  KernelRates faster;
  faster.nvlink = 1.1;
  faster.network = 1.5;
  const Cluster changed = calibrated(cluster, faster);
  CHECK(changed.collectives[0].bandwidth == Bandwidth{330 * giga});
  CHECK(changed.collectives[1].bandwidth == Bandwidth{300 * giga});
  const Cluster a100 = cluster_of({1, 8, "a100", 300 * giga});
  CHECK(moving(calibrated(a100, faster), CollectiveKind::all_reduce, giga) ==
        doctest::Approx(moving(a100, CollectiveKind::all_reduce, giga) / 1.1).epsilon(1e-6));
}

}  // namespace stageline::calibration_file_tests
