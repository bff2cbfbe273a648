// Do a calibration file and a config.json reach the setting of a question, and by every way in?
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/base/errors.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/report/json/answer.hpp"

namespace stageline::calibration_tests {
namespace {

// A file that goes with its test.
class CalibrationTestFile {
 public:
  CalibrationTestFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("stageline.{}.{}", ::getpid(), name)) {
    std::ofstream(path_) << text;
  }
  CalibrationTestFile(const CalibrationTestFile&) = delete;
  CalibrationTestFile& operator=(const CalibrationTestFile&) = delete;
  ~CalibrationTestFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string half_rates(const std::string& kind) {
  Calibration calibration;
  calibration.kind = kind;
  calibration.rates = find_chip_rates(kind)->rates;
  calibration.rates.gemm = 0.4;
  calibration.rates.nvlink = 0.5;
  calibration.rates.network = 0.5;
  calibration.source = "the test";
  return print_calibration(calibration);
}

SettingRequest question(const std::string& trace) {
  SettingRequest request;
  request.trace = trace;
  request.cluster.cluster = "h100x8";
  return request;
}

std::vector<Bandwidth> bandwidths(const Setting& setting, Tier tier) {
  std::vector<Bandwidth> all;
  for (const Link& link : setting.cluster.fixed->links) {
    if (link.tier == tier) all.push_back(link.bandwidth);
  }
  return all;
}

}  // namespace

TEST_CASE("a calibration prices the model and the links") {
  const CalibrationTestFile file("h100.json", half_rates("h100"));
  SettingRequest request = question("model:llama3-8b@h100,layers=4");
  const Setting plain = read_setting(request);
  request.calibration = file.path();
  const Setting fitted = read_setting(request);
  CHECK(fitted.model.layers[1].forward > plain.model.layers[1].forward);
  CHECK(fitted.model.provenance.source.find("calibrated: the test") != std::string::npos);
  const std::vector<Bandwidth> before = bandwidths(plain, Tier::nvlink);
  const std::vector<Bandwidth> after = bandwidths(fitted, Tier::nvlink);
  REQUIRE_FALSE(before.empty());
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(2 * after[i].bytes_per_second == before[i].bytes_per_second);
  }
  CHECK(bandwidths(fitted, Tier::pcie) == bandwidths(plain, Tier::pcie));
  const std::vector<std::string> said = notes(fitted);
  CHECK(std::any_of(said.begin(), said.end(), [](const std::string& note) {
    return note.find("links reach 0.5 (NVLink) and 0.5 (network)") != std::string::npos;
  }));
  CHECK(notes(plain).size() + 1 == said.size());
}

TEST_CASE("a calibration of another chip, or none, is refused") {
  const CalibrationTestFile file("a100.json", half_rates("a100"));
  SettingRequest request = question("model:llama3-8b@h100");
  request.calibration = file.path();
  CHECK_THROWS_WITH_AS(read_setting(request), doctest::Contains("the calibration is of a100"),
                       UsageError);
  request.calibration = file.path() + ".none";
  CHECK_THROWS_AS(read_setting(request), std::runtime_error);
  const CalibrationTestFile wrong("wrong.json", "{}");
  request.calibration = wrong.path();
  CHECK_THROWS_WITH_AS(read_setting(request), doctest::Contains("\"format\" is missing"),
                       TraceError);
}

TEST_CASE("a calibration of another chip is refused for a roofline and for links, too") {
  const CalibrationTestFile file("links.json", half_rates("a100"));
  SettingRequest request = question("model:gpt@h100");
  request.calibration = file.path();
  CHECK_THROWS_WITH_AS(read_setting(request),
                       "the calibration is of a100, and the model is priced for h100; calibrate on "
                       "points of h100, or leave the calibration out",
                       UsageError);
  request.trace = "resnet50-cpu";
  CHECK_THROWS_WITH_AS(read_setting(request),
                       doctest::Contains("the calibration is of a100, and the devices of h100x8 "
                                         "are of h100, so its links are not this"),
                       UsageError);
  request.cluster.cluster.clear();
  CHECK_NOTHROW(read_setting(request));  // devices of no kind
}

TEST_CASE("rates of kernels that have no effect are said to have none") {
  const auto said = [](const std::string& trace, const std::string& calibration) {
    SettingRequest request = question(trace);
    request.calibration = calibration;
    const std::vector<std::string> all = notes(read_setting(request));
    for (const std::string& note : all) {
      if (note.find("rates of kernels") != std::string::npos) return note;
    }
    return std::string();
  };
  const std::string fitted = half_rates("h100");
  CHECK(said("model:gpt@h100", fitted) ==
        "the calibration's rates of kernels have no effect: gpt is priced by a roofline, not by "
        "kernels");
  CHECK(said("resnet50-cpu", fitted) ==
        "the calibration's rates of kernels have no effect: resnet50 has times of its own");
  CHECK(said("model:llama3-8b@h100,layers=4", fitted).empty());
  const std::string links_alone =
      R"({"format": "stageline-calibration 1", "kind": "h100", "rates": {"nvlink": 0.5}})";
  CHECK(said("model:gpt@h100", links_alone).empty());
}

TEST_CASE("a language model on several machines without degrees is said to be one pipeline") {
  SettingRequest request;
  request.trace = "model:llama3-8b@h100";
  request.cluster.cluster = "h100x8*2";
  const auto said = [&] {
    const std::vector<std::string> all = read_setting(request).notes;
    return std::any_of(all.begin(), all.end(), [](const std::string& note) {
      return note.find("each of the 16 devices is a stage of one pipeline") != std::string::npos;
    });
  };
  CHECK(said());
  request.degrees.pipeline = 16;  // asked for
  CHECK_FALSE(said());
  request.degrees = Degrees{};
  request.degrees_are_searched = true;
  CHECK_FALSE(said());
  request.degrees_are_searched = false;
  request.devices = {8};  // of one machine
  CHECK_FALSE(said());
}

TEST_CASE("degrees of flags divide a language model, and a measured trace refuses them") {
  SettingRequest request = question("model:llama3-8b@h100");
  request.degrees.tensor = 4;
  request.degrees.pipeline = 2;
  request.sequence_parallel = true;
  request.microbatch_size = 2;
  const Setting setting = read_setting(request);
  CHECK(setting.model.sharding == Sharding{4, 1, 1, true});
  CHECK(setting.model.batch == 2);
  request.trace = "resnet50-cpu";
  request.microbatch_size = 0;
  CHECK_THROWS_WITH_AS(read_setting(request), doctest::Contains("model:llama3-8b@DEVICE,tp=4"),
                       UsageError);
}

TEST_CASE("a config.json is read where the spelling names it") {
  const CalibrationTestFile file("llama.json", R"({"model_type": "llama", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu",
    "tie_word_embeddings": false, "max_position_embeddings": 8192})");
  TraceRequest request;
  request.text = fmt::format("model:{}@h100,seq=4096", file.path());
  const Model model = open_trace(request);
  CHECK(model.parameters == 8'030'261'248);
  CHECK(priced_device(request.text) == "h100");
  request.text = "model:no/such/config.json@h100";
  CHECK_THROWS_AS(open_trace(request), std::runtime_error);
}

TEST_CASE("a request names a calibration file") {
  const CalibrationTestFile file("asked.json", half_rates("h100"));
  const std::string head =
      R"({"trace": "model:llama3-8b@h100,layers=4", "devices": 2, "schedule": "1f1b")";
  const std::string plain = report::answer(head + "}");
  const std::string fitted =
      report::answer(fmt::format("{}, \"calibration\": \"{}\"}}", head, file.path()));
  CHECK(plain.find("error") == std::string::npos);
  CHECK(fitted.find("\"error\"") == std::string::npos);
  CHECK(fitted != plain);
  CHECK(fitted.find("links reach 0.5") != std::string::npos);
}

}  // namespace stageline::calibration_tests
