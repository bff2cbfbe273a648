// Do PipeDream's profiles become the models that its authors measured?
#include <algorithm>
#include <map>
#include <random>

#include "tests/traces/support.hpp"
#include "traces/traces.hpp"

namespace stageline::pipedream_tests {
namespace {

std::string node(const std::string& id, const std::string& description, const std::string& forward,
                 const std::string& backward, const std::string& activation,
                 const std::string& parameters) {
  return id + " -- " + description + " -- forward_compute_time=" + forward +
         ", backward_compute_time=" + backward + ", activation_size=" + activation +
         ", parameter_size=" + parameters + "\n";
}

// Two branches that meet, with the nodes out of order.
const std::string small =
    node("node5", "Add(inplace)", "0.000", "0.000", "64.0", "0.0") +
    node("node1", "Input", "17.000", "3.000", "100.000", "8.000") +
    node("node4", "BatchNorm2d(8, eps=1e-05, affine=True)", "0.500", "0.250", "64.000", "32.000") +
    node("node2", "Conv2d(3, 8, kernel_size=(3, 3))", "1.000", "2.001", "64.000", "896.000") +
    node("node3", "Conv2d(8, 8, kernel_size=(1, 1))", "1.500", "3.001", "[32.0; 16; 16.000]",
         "256.000") +
    node("node6", "ReLU(inplace)", "0.125", "0.250", "64.000", "0.000") +
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode2 -- node4\n\tnode3 -- node5\n\tnode4 -- node5\n"
    "\tnode5 -- node6\n";

Time ms(double milliseconds) { return from_seconds(milliseconds / 1e3); }

std::optional<std::string> profile_text(const std::string& name) {
  const char* const data = std::getenv("STAGELINE_DATA");
  if (data == nullptr) return {};
  return file_text(std::filesystem::path(data) / "pipedream" / (name + ".graph.txt"));
}

}  // namespace

TEST_CASE("a profile is read in topological order, ties by the number in the id") {
  const Model model = read_pipedream_profile(small, "dir/small.graph.txt", 128);
  CHECK(model.name == "small");
  CHECK(model.batch == 128);
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) names.push_back(layer.name);
  CHECK(names == std::vector<std::string>{"node1.Input", "node2.Conv2d", "node3.Conv2d",
                                          "node4.BatchNorm2d", "node5.Add", "node6.ReLU"});
  CHECK(model.edges == std::vector<LayerEdge>{{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}});
  CHECK(model.provenance.origin == Origin::measured);
  CHECK(std::any_of(model.provenance.notes.begin(), model.provenance.notes.end(),
                    [](const std::string& note) { return contains(note, "split"); }));
}

TEST_CASE("Input costs nothing, and its activation is the model's input") {
  const Model model = read_pipedream_profile(small, "small.graph.txt", 0);
  Layer input;
  input.name = "node1.Input";
  input.kind = "input";
  CHECK(model.layers[0] == input);
  CHECK(model.input == Bytes{100});
  CHECK(contains(model.provenance.notes.back(), "does not say the batch size"));
}

TEST_CASE("the backward time and the stash fall to I and W by the stated rule") {
  const Model model = read_pipedream_profile(small, "small.graph.txt", 1);
  const Layer& first = model.layers[1];  // first with weights: all W
  CHECK(first.input_grad == Time{});
  CHECK(first.weight_grad == ms(2.001));
  CHECK(first.stash_weight_grad == Bytes{64});
  CHECK(first.stash_gradient == Bytes{64});
  CHECK(first.gradients == Bytes{896});
  const Layer& conv = model.layers[2];  // half and half
  CHECK(conv.input_grad == ms(1.5005));
  CHECK(conv.weight_grad == ms(1.5005));
  CHECK(conv.stash_weight_grad == Bytes{64});
  CHECK(conv.stash_gradient == Bytes{64});
  CHECK(conv.output == Bytes{64});
  const Layer& norm = model.layers[3];  // weights, but all I
  CHECK(norm.input_grad == ms(0.25));
  CHECK(norm.weight_grad == Time{});
  CHECK(norm.stash_input_grad == Bytes{64});
  CHECK(norm.stash_gradient == Bytes{0});
  CHECK(norm.weights == Bytes{32});
  const Layer& relu = model.layers[5];  // no weights: all I
  CHECK(relu.input_grad == ms(0.25));
  CHECK(relu.stash_input_grad == Bytes{64});
  CHECK(relu.stash_gradient == Bytes{0});
  for (const Layer& layer : model.layers) {
    CHECK(layer.backward == layer.input_grad + layer.weight_grad);
    CHECK(layer.optimizer_state == Bytes{});
    CHECK(layer.update == Time{});
  }
}

TEST_CASE("kinds come from the first word of the description") {
  const std::vector<std::pair<std::string, std::string>> words{
      {"Conv2d(3, 8)", "conv"},
      {"Linear(in_features=1, out_features=2)", "linear"},
      {"BatchNorm2d(8)", "norm"},
      {"ReLU(inplace)", "activation"},
      {"MaxPool2d(2)", "pool"},
      {"AvgPool2d(7)", "pool"},
      {"LSTM(2048, 1024)", "lstm"},
      {"EmuBidirLSTM(  (bidir): LSTM(1, 1))", "lstm"},
      {"Dropout(p=0.5)", "dropout"},
      {"Embedding(32320, 1024)", "embedding"},
      {"View(-1)", "view"},
      {"Size(0)", "size"},
      {"__getitem__(0)", "getitem"},
      {"Add", "add"},
      {"Concat(2)", "concat"},
      {"hidden", "hidden"},
      {"RecurrentAttention( (rnn): LSTM(1, 1))", "attention"},
      {"Classifier( (classifier): Linear(1, 2))", "linear"}};
  for (const auto& word : words) {
    CAPTURE(word.first);
    const Model model = read_pipedream_profile(node("n1", word.first, "1", "1", "1", "0"), "f", 1);
    CHECK(model.layers[0].kind == word.second);
  }
}

TEST_CASE("a node may name its stage, lines may end in CR LF, and the last in nothing") {
  std::string text = node("node1", "ReLU", "1.0", "1.0", "4", "0");
  text.insert(text.size() - 1, " -- stage_id=3");
  CHECK(contains(read_pipedream_profile(text, "f", 1).provenance.notes.back(), "stage_id"));
  std::string windows;
  for (const char c : small) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  windows.resize(windows.size() - 2);
  CHECK(read_pipedream_profile(windows, "f", 1) == read_pipedream_profile(small, "f", 1));
}

TEST_CASE("whatever breaks the grammar is refused with its line") {
  struct Broken {
    std::string from, to, where, text;
  };
  for (const Broken& broken : std::vector<Broken>{
           {"\tnode2 -- node4", "\tnode2 -- node9", "line 9", "no node \"node9\""},
           {"\tnode2 -- node4", "\tnode2 -- node2", "line 9", "must not feed itself"},
           {"\tnode2 -- node4", "\tnode2 -- node3", "line 9", "appears twice"},
           {"\tnode2 -- node4", "\tnode2, node4", "line 9", "an edge is a tab"},
           {"\tnode2 -- node4", "node2 -- node4", "line 9", "all nodes must come before"},
           {"\tnode2 -- node4", "", "line 9", "this line is empty"},
           {"\tnode5 -- node6", "\tnode5 -- node2", "/edges", "in a circle"},
           {"node4 -- Batch", "node3 -- Batch", "line 5", "\"node3\" appears twice"},
           {"node4 -- Batch", "no de -- Batch", "line 3", "one word"},
           {"ReLU(inplace) -- ", " -- ", "line 6", "must not be empty"},
           {"ReLU(inplace)", "ReLU\x91", "line 6", "bytes that are not UTF-8"},
           {"ReLU(inplace) -- ", "", "line 6", "3 or 4 parts, not 2"},
           {"forward_compute_time=17.000, ", "", "line 2", "4 fields"},
           {"forward_compute_time=17.000", "backward_compute_time=17.000", "line 2",
            "field 1 must be forward_compute_time=<number>"},
           {"=17.000", "=", "line 2", "field 1 must be"},
           {"=17.000", "=-17.000", "line 2", "from 0 to 100000000 (it is \"-17.000\")"},
           {"=17.000", "=nan", "line 2", "it is \"nan\""},
           {"=17.000", "=1e9", "line 2", "it is \"1e9\""},
           {"=17.000", "=17.000 ms", "line 2", "a number of milliseconds"},
           {"activation_size=100.000", "activation_size=100.5", "line 2",
            "a whole number of bytes"},
           {"activation_size=100.000", "activation_size=-1", "line 2", "(it is \"-1\")"},
           {"[32.0; 16; 16.000]", "[32.0; ; 16.000]", "line 5", "a list of them"},
           {"[32.0; 16; 16.000]", "[32.0, 16]", "line 5", "4 fields"},
           {"[32.0; 16; 16.000]", "[]", "line 5", "a list of them"},
           {"[32.0; 16; 16.000]", "[4e18; 4e18]", "line 5", "2^62"},
           {"parameter_size=8.000", "parameter_size=8.000 -- stage=1", "line 2", "stage_id="},
           {"parameter_size=8.000", "parameter_size=8.000 -- stage_id=x", "line 2", "stage_id="}}) {
    CAPTURE(broken.to);
    const std::string text = replaced(small, broken.from, broken.to);
    const TraceError error = trace_error_of([&] { read_pipedream_profile(text, "graph.txt", 1); });
    CHECK(error.where == broken.where);
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(contains(what, broken.text));
  }
  CHECK(contains(trace_error_of([] { read_pipedream_profile("", "f", 1); }).what(),
                 "at least one node"));
  const std::string no_edges = small.substr(0, small.find('\t'));
  CHECK(contains(trace_error_of([&] { read_pipedream_profile(no_edges, "f", 1); }).what(),
                 "6 nodes but no edge"));
}

TEST_CASE("damaged profiles are read or refused, never anything else") {
  std::mt19937 random(11);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text = small;
    for (std::size_t n = 1 + below(2); n > 0; --n) {
      const std::size_t at = below(text.size());
      if (below(2) == 0) {
        text[at] = static_cast<char>(below(256));
      } else {
        text.erase(at, 1 + below(20));
      }
    }
    try {
      const Model model = read_pipedream_profile(text, "damaged", 1);
      REQUIRE(!model.layers.empty());
    } catch (const TraceError&) {
      ++refused;
    }
  }
  CHECK(refused > 300);
  CHECK(refused < 1000);
}

TEST_CASE("PipeDream's own profiles have the totals of its paper's optimizer") {
  struct Expected {
    std::string name;
    std::size_t layers, edges;
    std::int64_t total_us;  // forward and backward of one minibatch, without Input
    std::int64_t input;     // bytes
  };
  // Totals: VGG-16 0.672535 s and ResNet-50 0.443419 s on a single machine.
  for (const Expected& expected : std::vector<Expected>{{"vgg16", 41, 41, 672'535, 77'070'336},
                                                        {"resnet50", 177, 193, 443'419, 77'070'336},
                                                        {"resnet18", 71, 79, 259'742, 154'140'672},
                                                        {"alexnet", 23, 23, 85'321, 154'140'672},
                                                        {"gnmt", 48, 58, 89'416, 0}}) {
    CAPTURE(expected.name);
    const std::optional<std::string> text = profile_text(expected.name);
    if (!text) {
      MESSAGE("skipped: STAGELINE_DATA holds no pipedream/", expected.name, ".graph.txt");
      return;
    }
    const Model model = read_pipedream_profile(*text, expected.name + ".graph.txt", 128);
    CHECK(model.name == expected.name);
    CHECK(model.layers.size() == expected.layers);
    CHECK(model.edges.size() == expected.edges);
    CHECK(forward_backward(model) == Time{expected.total_us * 1'000'000});
    CHECK(model.input == Bytes{expected.input});
    for (const LayerEdge& edge : model.edges) CHECK(edge.from < edge.to);
    CHECK(read_trace(write_trace({model}), "again") == std::vector<Model>{model});
  }
}

TEST_CASE("ResNet-50 keeps its skip connections, GNMT its sums of lists") {
  const std::optional<std::string> resnet = profile_text("resnet50");
  const std::optional<std::string> gnmt = profile_text("gnmt");
  if (!resnet || !gnmt) {
    MESSAGE("skipped: STAGELINE_DATA holds no PipeDream profiles");
    return;
  }
  const Model model = read_pipedream_profile(*resnet, "resnet50.graph.txt", 128);
  std::map<int, int> readers;
  std::map<int, int> inputs;
  for (const LayerEdge& edge : model.edges) ++readers[edge.from], ++inputs[edge.to];
  int adds = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].kind != "add") continue;
    ++adds;
    CHECK(inputs[static_cast<int>(i)] == 2);
  }
  CHECK(adds == 16);
  const Model text = read_pipedream_profile(*gnmt, "gnmt.graph.txt", 64);
  const auto lstm = std::find_if(text.layers.begin(), text.layers.end(),
                                 [](const Layer& l) { return l.name == "node7.LSTM"; });
  REQUIRE(lstm != text.layers.end());
  CHECK(lstm->output == Bytes{6'291'456 + 2 * 131'072});
  CHECK(lstm->input_grad == ms(2.674));
  CHECK(lstm->weight_grad == ms(2.674));
  for (const Layer& layer : text.layers) {
    if (layer.kind == "embedding") CHECK(layer.input_grad == Time{});
  }
}

}  // namespace stageline::pipedream_tests
