// Does "uniform:" make the layers that were asked for?
#include "tests/traces/support.hpp"
#include "traces/json/tree.hpp"
#include "traces/traces.hpp"

namespace stageline::synthetic_tests {

TEST_CASE("uniform layers have the costs that were asked for") {
  const Model model = uniform_model(
      "uniform:layers=3,forward=2ms,input_grad=1.5ms,weight_grad=500us,output=2MB,weights=1GiB,"
      "stash=3kB,update=4us,batch=32");
  CHECK(model.name == "uniform3");
  CHECK(model.batch == 32);
  CHECK(model.input == Bytes{2'000'000});
  CHECK(model.edges.empty());
  CHECK(model.provenance.origin == Origin::synthetic);
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[0].name == "layer0");
  CHECK(model.layers[2].name == "layer2");
  for (const Layer& layer : model.layers) {
    CHECK(layer.forward == std::chrono::milliseconds(2));
    CHECK(layer.input_grad == std::chrono::microseconds(1500));
    CHECK(layer.weight_grad == std::chrono::microseconds(500));
    CHECK(layer.backward == std::chrono::milliseconds(2));
    CHECK(layer.update == std::chrono::microseconds(4));
    CHECK(layer.output == Bytes{2'000'000});
    CHECK(layer.weights == Bytes{1'073'741'824});
    CHECK(layer.gradients == layer.weights);
    CHECK(layer.stash_input_grad == Bytes{});
    CHECK(layer.stash_weight_grad == Bytes{3000});
  }
}

TEST_CASE("the stash is as large as the output unless it is given") {
  CHECK(uniform_model("output=7kB").layers[0].stash_weight_grad == Bytes{7000});
  CHECK(uniform_model("output=7kB,stash=0").layers[0].stash_weight_grad == Bytes{});
}

TEST_CASE("uniform without options, with a bare prefix or a trailing comma is the default") {
  const Model model = uniform_model("");
  CHECK(model.layers.size() == 8);
  CHECK(uniform_model("uniform") == model);
  CHECK(uniform_model("uniform:") == model);
  CHECK(uniform_model("uniform:layers=8,") == model);
}

TEST_CASE("options that uniform does not know are refused with the nearest") {
  const auto error = [](const std::string& options) {
    return usage_error_of([&] { uniform_model(options); });
  };
  CHECK(contains(error("uniform:forwards=1ms"), "\"forwards\" (did you mean \"forward\"?)"));
  CHECK(contains(error("layers=0"), "from 1 to 1000000 (it is \"0\")"));
  CHECK(contains(error("layers=8x"), "(it is \"8x\")"));
  CHECK(contains(error("layers=99999999999"), "layers must be"));
  CHECK(contains(error("batch=-1"), "batch must be"));
  CHECK(contains(error("forward=1"), "forward"));
  CHECK(contains(error("forward=1MB"), "\"1MB\""));
  CHECK(contains(error("output=-1MB"), "negative"));
  CHECK(contains(error("layers"), "write them as layers=8"));
  CHECK(contains(error("layers=8,layers=9"), "given twice"));
  CHECK(contains(error("uniformly"), "should begin with \"uniform:\""));
}

TEST_CASE("decimals become whole numbers exactly, or say what was rounded") {
  struct Case {
    std::string text;
    int shift;
    std::int64_t value;
    bool exact;
  };
  for (const Case& c : std::vector<Case>{{"0", 6, 0, true},
                                         {"-0.0", 6, 0, true},
                                         {"12.5", 0, 13, false},
                                         {"-12.5", 0, -13, false},
                                         {"12.4999999999999999999999", 0, 12, false},
                                         {"12.5", 1, 125, true},
                                         {"0.00012", 5, 12, true},
                                         {"0.5", 0, 1, false},
                                         {"0.05", 0, 0, false},
                                         {"1e18", 0, 1'000'000'000'000'000'000, true},
                                         {"4611686018427387904", 0, 4611686018427387904, true},
                                         {"123e-2", 0, 1, false},
                                         {"123e-2", 2, 123, true},
                                         {"0e999999999999", 0, 0, true},
                                         {"1e-999999999999", 0, 0, false},
                                         {"000123", 0, 123, true}}) {
    CAPTURE(c.text);
    const auto result = scale_decimal(c.text, c.shift);
    REQUIRE(result.has_value());
    CHECK(result->value == c.value);
    CHECK(result->exact == c.exact);
  }
  for (const std::string text : {"", "-", ".5", "5.", "1e", "1e+", "x", "1 ", " 1", "1,5", "nan",
                                 "inf", "0x10", "4611686018427387905", "1e19", "1e999999999999"}) {
    CAPTURE(text);
    CHECK(!scale_decimal(text, 0).has_value());
  }
}

}  // namespace stageline::synthetic_tests
