// Do the kernels of a layer add up to it, and are they those of one rank?
#include "tools/report/text/kernels.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/inputs/traces.hpp"

namespace stageline::kernels_report_tests {
namespace {

TraceRequest request_of(int tensor, bool experts = false) {
  TraceRequest request;
  request.text = experts ? "model:mixtral-8x7b@h100,layers=2,seq=4096"
                         : "model:llama3-8b@h100,layers=2,seq=4096";
  if (experts) {
    request.sharding.expert = 2;
  } else {
    request.sharding.tensor = tensor;
    request.sharding.sequence = tensor > 1;
  }
  return request;
}

nlohmann::json json_of(const TraceRequest& request) {
  return nlohmann::json::parse(report::kernels_json(open_trace(request), open_kernels(request)));
}

double flops_of(const nlohmann::json& layer) {
  double flops = 0;
  for (const auto& kernel : layer.at("kernels")) flops += kernel.at("flops").get<double>();
  return flops;
}

}  // namespace

TEST_CASE("two ranks have half of the FLOPs each, in products of half the columns") {
  const nlohmann::json one = json_of(request_of(1));
  const nlohmann::json two = json_of(request_of(2));
  REQUIRE(one.at("layers").size() == 3);
  CHECK(one["layers"][1]["layers"] == 2);
  CHECK(flops_of(two["layers"][1]) == doctest::Approx(flops_of(one["layers"][1]) / 2));
  const auto product = [](const nlohmann::json& all) {
    for (const auto& kernel : all["layers"][1]["kernels"]) {
      if (kernel["name"] == "qkv" && kernel["pass"] == "F") return kernel;
    }
    return nlohmann::json();
  };
  CHECK(product(one)["k"] == 4096);
  CHECK(product(two)["n"].get<double>() == product(one)["n"].get<double>() / 2);
}

TEST_CASE(
    "no kernel is faster than the peak, and the layer takes as long as its kernels at least") {
  const nlohmann::json all = json_of(request_of(1, true));
  bool grouped = false;
  for (const auto& layer : all.at("layers")) {
    double seconds = 0;
    for (const auto& kernel : layer.at("kernels")) {
      const double time = kernel.at("time_s");
      seconds += time;
      grouped = grouped || kernel.at("kind") == "grouped products";
      if (kernel.at("peak_flops").is_null()) continue;
      CHECK(kernel.at("flops").get<double>() <= time * kernel.at("peak_flops").get<double>());
    }
    const double whole = layer.at("forward_s").get<double>() + layer.at("backward_s").get<double>();
    CHECK(whole >= seconds - 1e-11);
  }
  CHECK(grouped);
}

TEST_CASE(
    "the table has a row a kernel, and one for what launches add, also where that is nothing") {
  const TraceRequest request = request_of(2);
  const std::string text =
      report::kernels_report(open_trace(request), open_kernels(request), 0, /*quiet=*/true);
  CHECK(text.find("8192 x") == std::string::npos);
  CHECK(text.find("4096 x 4096 x 3072") != std::string::npos);
  CHECK(text.find("block.0 (of 2 alike)") != std::string::npos);
  CHECK(text.find("launches and waits for the CPU") != std::string::npos);
  CHECK(text.find("of the peak") != std::string::npos);
}

}  // namespace stageline::kernels_report_tests
