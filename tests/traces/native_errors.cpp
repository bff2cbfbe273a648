// Is every broken trace refused, at the right place and in words that help?
#include <random>

#include "tests/traces/support.hpp"
#include "traces/json/tree.hpp"
#include "traces/traces.hpp"

namespace stageline::native_errors_tests {
namespace {

const std::string valid = R"({
  "format": "stageline-trace 1",
  "name": "m",
  "batch": [16, 32],
  "provenance": {"origin": "measured", "notes": ["n"]},
  "input_bytes": [1, 2],
  "whole": {"samples": [9, 9], "forward_us": [10, 20], "backward_us": [30, 40],
    "update_us": [0, 0], "spread_us": [5, 5], "noise_us": [1, 1]},
  "layers": [
    {"name": "a", "kind": "conv", "forward_us": [1, 2], "input_grad_us": [3, 4],
     "weight_grad_us": [5, 6], "weights_bytes": 7, "output_bytes": 8,
     "stash_input_grad_bytes": 9, "stash_weight_grad_bytes": 10},
    {"name": "b", "kind": "relu", "forward_us": [1.5, 2.5], "input_grad_us": [3, 4],
     "weight_grad_us": [0, 0], "weights_bytes": 0, "output_bytes": [8, 16],
     "stash_input_grad_bytes": 9, "stash_weight_grad_bytes": 0}
  ],
  "edges": [["a", "b"]]
}
)";

struct Broken {
  std::string from;   // what to replace in `valid`
  std::string to;     // by what
  std::string where;  // that the error must name
  std::string text;   // that its message must hold
};

// Broken copies where JSON itself is sound.
const std::vector<Broken> wrong_values{
    {"\"name\": \"m\"", "\"nam\": \"m\"", "/nam", "did you mean \"name\"?"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"wieghts_bytes\": 1", "/layers/0/wieghts_bytes",
     "did you mean \"weights_bytes\"?"},
    {"\"origin\"", "\"devise\": \"x\", \"origin\"", "/provenance/devise", "\"device\"?"},
    {"\"origin\"", "\"a/b~c\": 1, \"origin\"", "/provenance/a~1b~0c", "not a known key"},
    {"  \"name\": \"m\",\n", "", "", "\"name\" is missing"},
    {"\"forward_us\": [1, 2], ", "", "/layers/0", "\"forward_us\" is missing"},
    {"\"origin\": \"measured\", ", "", "/provenance", "\"origin\" is missing"},
    {"\"format\": \"stageline-trace 1\"", "\"format\": \"stageline-trace 2\"", "/format",
     "this is version 1"},
    {"stageline-trace 1", "other", "/format", "not \"other\""},
    {"\"format\": \"stageline-trace 1\",", "", "", "\"format\" is missing"},
    {"\"name\": \"m\"", "\"name\": 5", "/name", "must be a text, not a number"},
    {"[1, 2], \"input_grad_us\"", "[\"1\", 2], \"input_grad_us\"", "/layers/0/forward_us/0",
     "must be a number, not a text"},
    {"[1, 2], \"input_grad_us\"", "null, \"input_grad_us\"", "/layers/0/forward_us", "a list"},
    {"[1, 2], \"input_grad_us\"", "[1, 2, 3], \"input_grad_us\"", "/layers/0/forward_us",
     "as long as \"batch\" (2 numbers, not 3)"},
    {"[1, 2], \"input_grad_us\"", "[], \"input_grad_us\"", "/layers/0/forward_us", "not 0"},
    {"\"input_bytes\": [1, 2]", "\"input_bytes\": [1]", "/input_bytes", "2 numbers, not 1"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": [7, 7]", "/layers/0/weights_bytes",
     "does not depend on the batch"},
    {"\"batch\": [16, 32]", "\"batch\": 16", "/input_bytes", "\"batch\" is not a list"},
    {"\"batch\": [16, 32]", "\"batch\": []", "/batch", "1 to 64 of them (this one has 0)"},
    {"\"batch\": [16, 32]", "\"batch\": [32, 16]", "/batch/1", "must ascend (16 follows 32)"},
    {"\"batch\": [16, 32]", "\"batch\": [16, 16]", "/batch/1", "must ascend"},
    {"\"batch\": [16, 32]", "\"batch\": [0, 32]", "/batch/0", "from 1 to 2147483647 (it is 0)"},
    {"\"batch\": [16, 32]", "\"batch\": [-1, 32]", "/batch/0", "(it is -1)"},
    {"\"batch\": [16, 32]", "\"batch\": [1.5, 32]", "/batch/0", "a whole number (it is 1.5)"},
    {"\"batch\": [16, 32]", "\"batch\": [16, 3000000000]", "/batch/1", "(it is 3000000000)"},
    {"\"batch\": [16, 32]", "\"batch\": \"16\"", "/batch", "must be a number, not a text"},
    {"[1.5, 2.5]", "[-1.5, 2.5]", "/layers/1/forward_us/0", "not be negative (it is -1.5 µs)"},
    {"[1.5, 2.5]", "[-1e-9, 2.5]", "/layers/1/forward_us/0", "not be negative"},
    {"[1.5, 2.5]", "[1.5, 100000000000.000001]", "/layers/1/forward_us/1", "which is 100000 s"},
    {"[1.5, 2.5]", "[1.5, 1e300]", "/layers/1/forward_us/1", "at most 100000000000 µs"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": -7", "/layers/0/weights_bytes",
     "must not be negative (it is -7)"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": 0.5", "/layers/0/weights_bytes",
     "must be a whole number (it is 0.5)"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": 4611686018427387905", "/layers/0/weights_bytes",
     "to 4611686018427387904 (it is 4611686018427387905)"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": 99999999999999999999999",
     "/layers/0/weights_bytes", "must be from 0 to"},
    {"\"weights_bytes\": 7", "\"weights_bytes\": 1e99", "/layers/0/weights_bytes", "(it is 1e99)"},
    {"\"samples\": [9, 9]", "\"samples\": [9, 0]", "/whole/samples/1",
     "from 1 to 2147483647 (it is 0)"},
    {"\"samples\": [9, 9]", "\"samples\": 9", "/whole/samples", "a list of 2 numbers too"},
    {"\"samples\": [9, 9]", "\"samples\": [9]", "/whole/samples", "2 numbers, not 1"},
    {"\"samples\": [9, 9]", "\"samples\": [9, 1.5]", "/whole/samples/1", "a whole number"},
    {"\"samples\": [9, 9], ", "", "/whole", "\"samples\" is missing"},
    {"\"noise_us\": [1, 1]", "\"noice_us\": [1, 1]", "/whole/noice_us", "\"noise_us\"?"},
    {", \"noise_us\": [1, 1]", "", "/whole", "\"noise_us\" is missing"},
    {"\"spread_us\": [5, 5]", "\"spread_us\": [5, -5]", "/whole/spread_us/1", "not be negative"},
    {"\"backward_us\": [30, 40]", "\"backward_us\": 30", "/whole/backward_us",
     "must be a list of 2 numbers too"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"backward_spread_us\": 1",
     "/layers/0/backward_spread_us", "must be a list of 2 numbers too"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"update_spread_us\": [1]",
     "/layers/0/update_spread_us", "2 numbers, not 1"},
    {"\"origin\"", "\"software\": 5, \"origin\"", "/provenance/software", "must be a text"},
    {"\"origin\"", "\"setings\": \"x\", \"origin\"", "/provenance/setings", "\"settings\"?"},
    {"\"name\": \"b\"", "\"name\": \"a\"", "/layers/1/name", "twice; the first is /layers/0"},
    {"\"name\": \"b\"", "\"name\": \"\"", "/layers/1/name", "must not be empty"},
    {"\"origin\": \"measured\"", "\"origin\": \"guessed\"", "/provenance/origin", "\"guessed\""},
    {"[\"n\"]", "[1]", "/provenance/notes/0", "must be a text"},
    {"[\"n\"]", "\"n\"", "/provenance/notes", "must be a list, not a text"},
    {"[[\"a\", \"b\"]]", "[[\"a\", \"bb\"]]", "/edges/0/1", "did you mean \"b\"?"},
    {"[[\"a\", \"b\"]]", "[[\"a\", \"a\"]]", "/edges/0", "\"a\" must not feed itself"},
    {"[[\"a\", \"b\"]]", "[[\"a\", \"b\"], [\"a\", \"b\"]]", "/edges/1", "the first is /edges/0"},
    {"[[\"a\", \"b\"]]", "[[\"a\", \"b\"], [\"b\", \"a\"]]", "/edges", "in a circle"},
    {"[[\"a\", \"b\"]]", "[[\"a\"]]", "/edges/0", "(this one has 1)"},
    {"[[\"a\", \"b\"]]", "[]", "/edges", "leave it out for a chain"},
    {"[[\"a\", \"b\"]]", "{}", "/edges", "must be a list, not an object"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"sharding\": {\"tensor\": 0}", "/sharding/tensor",
     "from 1 to 65536 (it is 0)"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"sharding\": {\"tenser\": 2}", "/sharding/tenser",
     "\"tensor\"?"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"sharding\": {\"sequence\": true}", "/sharding/sequence",
     "\"tensor\" is 1"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"memory_bound\": 1", "/layers/0/memory_bound",
     "must be"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"collectives\": []", "/layers/0/collectives",
     "leave it out"},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduse\", \"group\": \"tp\", "
     "\"bytes\": 1, \"forward\": 1}]",
     "/layers/0/collectives/0/kind", "\"all_reduce\""},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"dp\", "
     "\"bytes\": 1, \"forward\": 1}]",
     "/layers/0/collectives/0/group", "tp, cp, ep"},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"tp\", "
     "\"bytes\": 1}]",
     "/layers/0/collectives/0", "must be above 0"},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"tp\", "
     "\"bytes\": [1], \"forward\": 1}]",
     "/layers/0/collectives/0/bytes", "2 numbers, not 1"},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"tp\", "
     "\"bytes\": 1, \"forward\": 1, \"hidden\": 1.5}]",
     "/layers/0/collectives/0/hidden", "at most 1 (it is 1.5)"},
    {"\"kind\": \"conv\"",
     "\"kind\": \"conv\", \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"tp\", "
     "\"bytes\": 1, \"forward\": 1, \"forward_beside_us\": 1}]",
     "/layers/0/collectives/0/forward_beside_us", "says \"hidden\""},
    {"\"name\": \"m\"", "\"name\": \"m\", \"tokens\": 0", "/tokens", "(it is 0)"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"parameters\": 1.5", "/parameters", "a whole number"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"peak_flops\": 0", "/peak_flops", "(it is 0)"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"forward_flops\": -1", "/layers/0/forward_flops",
     "negative"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"backward_flops\": [1]",
     "/layers/0/backward_flops", "2 numbers, not 1"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"parameters\": 3, \"expert_parameters\": 4",
     "/layers/0/expert_parameters", "from 0 to 3 (it is 4)"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"tied_weights_bytes\": 4000000000",
     "/layers/0/tied_weights_bytes", "part of the layer's weights"},
    {"\"kind\": \"conv\"", "\"kind\": \"conv\", \"tied_weights_bytes\": 1", "/layers",
     "is the first layer, whose weights others have"},
    {"\"name\": \"m\"", "\"name\": \"m\", \"name\": \"m\"", "/name", "appears twice"},
    {"\"kind\": \"relu\"", "\"kind\": \"relu\", \"kind\": \"relu\"", "/layers/1/kind",
     "appears twice"},
};

}  // namespace

TEST_CASE("the trace that the broken ones are made of is sound") {
  CHECK(read_trace(valid, "t").size() == 2);
}

TEST_CASE("a wrong value is refused with its pointer and the rule") {
  for (const Broken& broken : wrong_values) {
    CAPTURE(broken.from);
    CAPTURE(broken.to);
    const std::string text = replaced(valid, broken.from, broken.to);
    const TraceError error = trace_error_of([&] { read_trace(text, "file.json"); });
    CHECK(error.where == broken.where);
    CHECK(error.file == "file.json");
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(contains(what, broken.text));
  }
}

TEST_CASE("a time that is one number where batch is a list is refused") {
  const std::string text = replaced(valid, "\"forward_us\": [1, 2]", "\"forward_us\": 1");
  const TraceError error = trace_error_of([&] { read_trace(text, "t"); });
  CHECK(error.where == "/layers/0/forward_us");
  CHECK(contains(error.what(), "must be a list of 2 numbers too"));
}

TEST_CASE("a whole run is an object, of numbers where batch is no list") {
  const std::string text = R"({"format": "stageline-trace 1", "name": "m", "input_bytes": 0,
    "provenance": {"origin": "measured"}, "whole": {"samples": [9], "forward_us": 1,
    "backward_us": 1, "update_us": 1, "spread_us": 1, "noise_us": 1}, "layers": []})";
  const TraceError list = trace_error_of([&] { read_trace(text, "t"); });
  CHECK(list.where == "/whole/samples");
  CHECK(contains(list.what(), "\"batch\" is not a list"));
  const TraceError null = trace_error_of([&] {
    read_trace(replaced(text, R"({"samples": [9], "forward_us": 1,
    "backward_us": 1, "update_us": 1, "spread_us": 1, "noise_us": 1})",
                        "null"),
               "t");
  });
  CHECK(null.where == "/whole");
  CHECK(contains(null.what(), "must be an object, not null"));
}

TEST_CASE("an empty list of layers is refused") {
  const std::string text = R"({"format": "stageline-trace 1", "name": "m", "input_bytes": 0,
    "provenance": {"origin": "measured"}, "layers": []})";
  const TraceError error = trace_error_of([&] { read_trace(text, "t"); });
  CHECK(error.where == "/layers");
  CHECK(contains(error.what(), "at least one layer"));
}

TEST_CASE("what is not JSON is refused with line and column") {
  struct Case {
    std::string text, where, said;
  };
  const std::string a_value = "a value must be here: an object, a list";
  for (const Case& c : std::vector<Case>{
           {"", "line 1, column 1", "there is nothing in it"},
           {" \n", "line 2, column 1", "there is nothing in it"},
           {"{\n  \"format\" 1}", "line 2, column 12", "a colon must be here"},
           {"{\"a\": NaN}", "line 1, column 7", a_value},
           {"{\"a\": Infinity}", "line 1, column 7", a_value},
           {"{\"a\":\n\n 1e999}", "line 3, column 6", "a number is larger than any that is read"},
           {"{\"a\": -}", "line 1, column 8", "a number lacks digits"},
           {"[1, 2,]", "line 1, column 7", a_value},
           {"[1 2]", "line 1, column 4", "a comma or ] must be here"},
           {"{\"a\": 01}", "line 1, column 8", "a comma or } must be here"},
           {"{a: 1}", "line 1, column 2", "a key in double quotes must be here"},
           {"{\"a\": [1", "line 1, column 9", "it ends before its last list or object is closed"},
           {"{} x", "line 1, column 4", "it goes on behind its value"},
           {"{} {}", "line 1, column 4", "it goes on behind its value"},
           {"// no", "line 1, column 1", a_value},
           {"{\"a\": \"\xff\"}", "line 1, column 8", "a text has bytes that are not UTF-8"},
           {"{\"a\": \"\n\"}", "line 1, column 8", "a text has a control character"},
           {"{\"a\": \"\\x\"}", "line 1, column 9", "a backslash in a text needs one of"},
           {"{\"a\": \"\\u12\"}", "line 1, column 12",
            "\\u in a text needs four hexadecimal digits"},
           {"{\"a\": \"\\ud800\"}", "line 1, column 14",
            "\\u in a text writes half of a surrogate pair"},
           {"{\"a\": \"surrogate", "line 1, column 17", "a text has no closing quote"}}) {
    CAPTURE(c.text);
    const TraceError error = trace_error_of([&] { read_trace(c.text, "t"); });
    CHECK(error.where == c.where);
    CHECK(contains(error.what(), "this is not JSON: " + c.said));
    CHECK(!contains(error.what(), "json.exception"));
  }
}

TEST_CASE("JSON that is no object is refused") {
  for (const std::string text : {"null", "5", "\"x\"", "[]", "true"}) {
    CAPTURE(text);
    const TraceError error = trace_error_of([&] { read_trace(text, "t"); });
    CHECK(error.where.empty());
    CHECK(contains(error.what(), "one JSON object"));
  }
}

TEST_CASE("depth and size bombs are refused, not followed") {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string bomb;
    for (int i = 0; i < 200'000; ++i) bomb += open;
    CHECK(contains(trace_error_of([&] { read_trace(bomb, "t"); }).what(), "16 deep"));
  }
  std::string many = "[0";
  for (std::size_t i = 0; i < json_most_values; ++i) many += ",0";
  many += "]";
  CHECK(contains(trace_error_of([&] { read_trace(many, "t"); }).what(), "2000000 values"));
  const std::string huge(json_longest_text + 1, ' ');
  CHECK(contains(trace_error_of([&] { read_trace(huge, "t"); }).what(), "at most 16777216"));
  const std::string key = replaced(valid, "\"kind\"", "\"" + std::string(1'000'000, 'k') + "\"");
  const TraceError error = trace_error_of([&] { read_trace(key, "t"); });
  CHECK(std::string(error.what()).size() < 400);
}

TEST_CASE("two thousand damaged traces are read or refused, never anything else") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  static const std::string spice = "{}[]\",:0123456789.-+eE\\ntfu \n\t\xff\x01";
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = valid;
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text[at] = spice[below(spice.size())];
          break;
        case 2:
          text.erase(at, 1 + below(8));
          break;
        default: {
          const std::size_t from = below(text.size());
          text.insert(at, text.substr(from, 1 + below(12)));
          break;
        }
      }
    }
    CAPTURE(text);
    try {
      for (const Model& model : read_trace(text, "damaged")) REQUIRE(!model.layers.empty());
    } catch (const TraceError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).size() > 10);
    }
  }
  CHECK(refused > 1000);
  CHECK(refused < 2000);
}

}  // namespace stageline::native_errors_tests
