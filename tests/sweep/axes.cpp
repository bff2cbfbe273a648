// The values of axes, and scenario numbers and their digits.
#include <doctest/doctest.h>

#include <set>

#include "sim/base/errors.hpp"
#include "tools/sweep/spec.hpp"

namespace stageline::axes_tests {
namespace {

std::vector<std::string> all_values(const SweepAxis& axis) {
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < axis.count; ++i) values.push_back(axis.value(i));
  return values;
}

std::vector<std::string> values_of(const std::string& text, const std::string& name = "x") {
  return all_values(parse_axis(name, text));
}

using Values = std::vector<std::string>;

SweepSpec spec_of(const std::string& axes, const std::string& more = "") {
  return read_sweep(R"({"format": "stageline-sweep 1", "fixed": {"trace": "uniform:layers=8"},)"
                    R"("axes": {)" +
                    axes + "}" + more + "}");
}

}  // namespace

TEST_CASE("axes: lists and ranges have the values that are written") {
  CHECK(values_of("8,16,32") == Values{"8", "16", "32"});
  CHECK(values_of("2..5") == Values{"2", "3", "4", "5"});
  CHECK(values_of("8..30:8") == Values{"8", "16", "24"});
  CHECK(values_of("0.1..0.3:0.1") == Values{"0.1", "0.2", "0.3"});
  CHECK(values_of("1.0..2.0:lin5") == Values{"1.0", "1.25", "1.5", "1.75", "2.0"});
  CHECK(values_of("1GB/s..400GB/s:log3") == Values{"1GB/s", "20GB/s", "400GB/s"});
  CHECK(values_of("500MB/s..2GB/s:log3") == Values{"500MB/s", "1000MB/s", "2GB/s"});
  CHECK(values_of("0..10us:5us") == Values{"0", "5us", "10us"});
  CHECK(values_of("4..256:log7") == Values{"4", "8", "16", "32", "64", "128", "256"});
  CHECK(values_of("7..7:log5") == Values{"7"});
  CHECK(values_of("../a.json,../b.json") == Values{"../a.json", "../b.json"});
}

TEST_CASE("axes: what belongs together stays together") {
  CHECK(values_of("1f1b,gpipe:recompute=always,reverse=yes,zb_h1", "schedule") ==
        Values{"1f1b", "gpipe:recompute=always,reverse=yes", "zb_h1"});
  CHECK(values_of("1GB/s,25GB/s,5us", "link") == Values{"1GB/s", "25GB/s,5us"});
  CHECK(values_of("model:gpt@h100,layers=8,uniform:layers=4,forward=1ms", "trace") ==
        Values{"model:gpt@h100,layers=8", "uniform:layers=4,forward=1ms"});
  CHECK(values_of("0:1,1:2|1:1", "slow") == Values{"0:1,1:2", "1:1"});
  CHECK(values_of("all", "schedule").size() == schedulers().size());
}

TEST_CASE("axes: whole numbers by their logarithm are distinct, ascending and keep both ends") {
  for (int from = 1; from < 6; ++from) {
    for (int to = from + 1; to < 60; to += 7) {
      for (int count = 2; count < 70; count += 3) {
        const SweepAxis axis = parse_axis(
            "x", std::to_string(from) + ".." + std::to_string(to) + ":log" + std::to_string(count));
        CAPTURE(axis.text);
        const Values values = all_values(axis);
        CHECK(values.front() == std::to_string(from));
        CHECK(values.back() == std::to_string(to));
        for (std::size_t i = 1; i < values.size(); ++i) {
          CHECK(std::stoi(values[i - 1]) < std::stoi(values[i]));
        }
      }
    }
  }
}

TEST_CASE("axes: draws lie in their range and depend on name, seed and number alone") {
  const SweepAxis axis = parse_axis("microbatches", "4..256:randomlog");
  std::set<std::string> seen;
  int below = 0;
  for (std::uint64_t draw = 0; draw < 2000; ++draw) {
    const int value = std::stoi(axis.drawn(draw, 7));
    CHECK(value >= 4);
    CHECK(value <= 256);
    below += value < 32 ? 1 : 0;
    seen.insert(axis.drawn(draw, 7));
  }
  CHECK(below > 900);  // √(4 · 256) = 32
  CHECK(below < 1100);
  CHECK(seen.size() > 100);
  CHECK(axis.drawn(5, 7) != axis.drawn(5, 8));
  CHECK(parse_axis("other", "4..256:randomlog").drawn(5, 7) != axis.drawn(5, 7));
}

TEST_CASE("axes: bad ones are refused with their name") {
  const auto refused = [](const std::string& text, const std::string& words) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_axis("x", text), doctest::Contains(words.c_str()), UsageError);
  };
  refused("", "axis x: it has no values");
  refused("1,,2", "one of its values is empty");
  refused("1,2,1", "\"1\" is there twice");
  refused("9..2", "write 2..9");
  refused("1..x", "an end that is no number");
  refused("0..5:log3", "begins above 0");
  refused("1..5:log1", "number of values from 2");
  refused("1..5:", "ends with a colon");
  refused("1..5:0", "no step above 0");
  refused("1GB/s..5us", "different units");
  refused("1..2:0.000000000001", "more than 1000000000 values");
}

TEST_CASE("sweeps: numbers and digits are each other's inverse") {
  const SweepSpec spec =
      spec_of(R"("devices": "2..8", "microbatches": [8, 16, 32], "link": "1GB/s..400GB/s:log7",)"
              R"("schedule": "1f1b,gpipe", "memory": "1GB..8GB:random")",
              R"(, "draws": 5)");
  CHECK(spec.scenarios() == 7 * 3 * 7 * 2 * 5);
  for (std::int64_t number = 0; number < spec.scenarios(); ++number) {
    const std::vector<std::int64_t> digits = digits_of(spec, number);
    CHECK(number_of(spec, digits) == number);
    CHECK(digits[0] == number / (3 * 7 * 2 * 5));
    CHECK(digits.back() == number % 5);
  }
  CHECK(axis_values(spec, 0)[0] == "2");
  CHECK(axis_values(spec, spec.scenarios() - 1)[0] == "8");
  CHECK(axis_values(spec, 5)[3] == "gpipe");
  CHECK(axis_values(spec, 3)[4] == axis_values(spec, 8)[4]);
}

TEST_CASE("sweeps: variables stand in other settings") {
  const SweepSpec spec = read_sweep(
      R"({"format": "stageline-sweep 1", "fixed": {"trace": "uniform:layers={layers}",)"
      R"("link": "{bandwidth},5us", "devices": 4}, "axes": {"layers": [8, 16],)"
      R"("bandwidth": "1GB/s..4GB/s:log3", "schedule": ["zb_auto:limit={limit}", "1f1b"],)"
      R"("limit": [4, 5]}})");
  const std::vector<SettingWord> words = words_of(spec, axis_values(spec, 5));
  CHECK(flags_of(words) ==
        "uniform:layers=8 --devices 4 --link 2GB/s,5us --schedule zb_auto:limit=5");
}

TEST_CASE("sweeps: the refusal of an axis says what the name of a variable may be") {
  CHECK_THROWS_WITH(
      read_sweep(R"({"format": "stageline-sweep 1", "fixed": {"trace": "uniform:layers={L}"},)"
                 R"("axes": {"L": [8, 16]}})"),
      doctest::Contains("axis L: it is no setting, and no name of a variable, which has small "
                        "letters, digits and underscores alone; the settings are trace"));
  CHECK_THROWS_WITH(spec_of(R"("l": [8, 16])"),
                    doctest::Contains("axis l: it is no setting, and no other setting has {l} "));
}

TEST_CASE("sweeps: bad ones are refused") {
  const auto refused = [](const std::string& axes, const std::string& more, const char* words) {
    CAPTURE(axes);
    CHECK_THROWS_WITH(spec_of(axes, more), doctest::Contains(words));
  };
  refused("", "", "a sweep needs an axis");
  refused(R"("device": [2])", "", "did you mean \"devices\"?");
  refused(R"("trace": ["a"])", "", "it is fixed, too");
  refused(R"("devices": [2, "x"])", "", "axis devices: x: devices is one number");
  refused(R"("devices": [2, 0])", "", "axis devices: 0");
  refused(R"("devices": [])", "", "it has no values");
  refused(R"("schedule": ["1f1b", "1f1c"])", "", "axis schedule: 1f1c");
  refused(R"("devices": [2])", R"(, "draws": 3)", "draws are of random axes");
  refused(R"("devices": "2..4:random")", "", "how many values are drawn");
  refused(R"("devices": "2..4000", "microbatches": "1..1000000")", "", "at most 1000000000");
  refused(R"("devices": [2])", R"(, "chunk": 0)", "chunk");
  refused(R"("devices": [2])", R"(, "chunks": 5)", "chunks");
  refused(R"("jitter": ["5%", "5"])", "", "axis jitter: 5:");
  refused(R"("scenario": "0..9")", "", "scenario has nothing to apply to");
  refused(R"("seed": [1, 2])", "", "seed has nothing to apply to");
  refused(R"("schedule": ["1f1b:x={k}"])", "", "{k} stands for an axis");
  CHECK_THROWS_WITH(read_sweep(R"({"format": "stageline-sweep 1", "axes": {"devices": [2]}})"),
                    doctest::Contains("a sweep needs a trace"));
}

}  // namespace stageline::axes_tests
