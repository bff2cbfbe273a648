// Does a language model's spelling say what was meant, and are wrong words refused with the
// nearest?
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "sim/base/errors.hpp"

namespace stageline::spelling_tests {
namespace {

DeviceKind kind_called(const std::string& name) {
  DeviceKind kind;
  kind.name = name;
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"fp32", 66.9e12}, {"bf16", 989.4e12}};
  return kind;
}

const std::vector<DeviceKind>& kinds() {
  static const std::vector<DeviceKind> all{kind_called("h100"), kind_called("a100-40gb"),
                                           kind_called("own")};
  return all;
}

Model priced(const std::string& spec, const Sharding& sharding = {},
             const LanguageInputs& inputs = {}) {
  return priced_model(spec, kinds(), sharding, inputs);
}

std::string refusal(const std::string& spec, const Sharding& sharding = {},
                    const LanguageInputs& inputs = {}) {
  try {
    priced(spec, sharding, inputs);
  } catch (const std::runtime_error& error) {  // UsageError, or TraceError of a file
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* llama3_8b = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
  "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu", "rms_norm_eps": 1e-05,
  "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 8192,
  "torch_dtype": "bfloat16", "rope_theta": 500000.0})";

}  // namespace

TEST_CASE("a name with options is the family's member under that form") {
  const Model model = priced("model:llama3-8b@h100,tp=2,seq=4096,batch=3,sp=yes");
  CHECK(model.name == "llama3-8b");
  CHECK(model.batch == 3);
  CHECK(model.tokens == 4096);
  CHECK(model.sharding == Sharding{2, 1, 1, true});
  LanguageForm form;
  form.batch = 3;
  form.seq = 4096;
  form.sharding = {2, 1, 1, true};
  form.fused = true;  // as attention is
  const ChipRates& chip = *find_chip_rates("h100");
  CHECK(model == language_model(find_family("llama3-8b")->config, form, kinds().front(), {},
                                chip.rates, std::string(chip.source)));
}

TEST_CASE("sizes may be left out, and the prefix, too") {
  CHECK(priced("llama3-8b@h100") == priced("model:llama3-8b@h100,batch=1,seq=8192"));
}

TEST_CASE("each word of the form arrives") {
  const Model base = priced("model:mixtral-8x7b@h100,seq=1024");
  for (const char* const word : {"attention=plain", "fused=no", "gemm=0.5", "kernel=40us",
                                 "dropout=yes", "dtype=fp32", "optimizer=sgd", "efficiency=0.5",
                                 "overhead=5us", "layers=4", "topk=4", "cp=2", "tp=2", "ep=4"}) {
    CAPTURE(word);
    Model other = priced(fmt::format("model:mixtral-8x7b@h100,seq=1024,{}", word));
    other.provenance = base.provenance;
    CHECK_FALSE(other == base);
  }
  const Model hidden = priced("model:llama3-8b@h100,tp=8,sp=yes,tp_overlap=0.46");
  for (const LayerCollective& c : hidden.layers[1].collectives) {
    CHECK(c.hidden == 0.46);
    CHECK(c.forward_beside > Time{});
    CHECK(c.forward_beside < hidden.layers[1].forward);
  }
  // Gathers forward and scatters backward are around the same products.
  REQUIRE(hidden.layers[1].collectives.size() == 2);
  CHECK(hidden.layers[1].collectives[0].forward_beside ==
        hidden.layers[1].collectives[1].backward_beside);
  const Model ring = priced("model:llama3-8b@h100,cp=4,cp_exchange=ring");
  for (const LayerCollective& c : ring.layers[1].collectives) {
    CHECK(c.hidden == 1);
    CHECK(c.forward_beside < ring.layers[1].forward);
    CHECK(c.backward_beside > Time{});
  }
  CHECK(priced("model:mixtral-8x7b@h100,ep=4,imbalance=1.5").layers[1].forward >
        priced("model:mixtral-8x7b@h100,ep=4").layers[1].forward);
  const auto loss = [](const std::string& word) {
    return priced("model:llama3-8b@h100,seq=1024,loss=" + word).layers.back().backward_workspace;
  };
  CHECK(loss("torch") == Bytes{2 * loss("plain").count});
  CHECK(loss("plain") == Bytes{4LL * 1024 * 128256});
  CHECK(loss("torch,tp=4") == Bytes{3 * loss("plain,tp=4").count});
  CHECK(loss("plain,tp=4") == Bytes{4LL * 1024 * 128512 / 4});  // padded to a multiple of 128·tp
  CHECK(loss("fused") == Bytes{});
  const std::string odd = "model:transformer@h100,layers=1,hidden=1800,heads=10,seq=4096,batch=4";
  CHECK(priced(odd + ",alignment=yes").layers[1].forward > priced(odd).layers[1].forward);
}

TEST_CASE("a config.json prices as the family that it describes") {
  LanguageInputs inputs;
  inputs.config = llama3_8b;
  Model file = priced("model:models/config.json@h100,tp=4,seq=8192", {}, inputs);
  const Model family = priced("model:llama3-8b@h100,tp=4,seq=8192");
  CHECK(file.parameters == 8'030'261'248);
  CHECK(file.provenance.method == family.provenance.method);
  file.name = family.name;
  file.provenance = family.provenance;
  CHECK(file == family);
}

TEST_CASE("a config.json that cannot be read is refused with its name") {
  LanguageInputs inputs;
  inputs.config = "{";
  CHECK(has(refusal("model:my/config.json@h100", {}, inputs), "my/config.json"));
  inputs.config = R"({"model_type": "mamba"})";
  const std::string message = refusal("model:my/config.json@h100", {}, inputs);
  CHECK(has(message, "my/config.json"));
  CHECK(has(message, "mamba"));
}

TEST_CASE("a spelling names its config.json, or none") {
  CHECK(config_file_of("model:path/to/config.json@h100,tp=8") == "path/to/config.json");
  CHECK(config_file_of("a@b/llama.json@h100") == "a@b/llama.json");
  CHECK(config_file_of("model:config.json") == "config.json");
  CHECK(config_file_of("model:llama3-8b@h100").empty());
  CHECK(config_file_of("model:gpt@h100").empty());
}

TEST_CASE("a file whose path has an @ is priced for the device behind the last one") {
  LanguageInputs inputs;
  inputs.config = llama3_8b;
  CHECK(priced("model:a@b/llama.json@h100", {}, inputs).layers.size() == 34);
}

TEST_CASE("the open form is a model by its sizes") {
  const Model model = priced(
      "model:transformer@h100,layers=2,hidden=1024,heads=16,norm=layer,bias=yes,tied=yes,"
      "positions=learned,seq=4096");
  CHECK(model.layers.size() == 4);
  // Its table of positions is as long as its sequences.
  CHECK(model.layers.front().parameters == (51200 + 4096) * 1024);
  CHECK(has(refusal("model:transformer@h100,layers=2,hidden=1024"), "heads"));
}

TEST_CASE("an unknown model is answered with the nearest shape or family") {
  CHECK(has(refusal("model:llama3-70@h100"), "(did you mean \"llama3-70b\"?)"));
  CHECK(has(refusal("model:resnet5@h100"), "(did you mean \"resnet50\"?)"));
  CHECK(has(refusal("model:transfomer@h100"), "(did you mean \"transformer\"?)"));
  CHECK(has(refusal("model:llama3-70@h100"), "no model is called 'llama3-70'"));
}

TEST_CASE("a model's name may be written with capital letters, a device's may not") {
  CHECK(priced("model:Llama3-8B@h100") == priced("model:llama3-8b@h100"));
  CHECK(priced("model:ResNet50@h100") == priced("model:resnet50@h100"));
  CHECK(priced("model:GPT@h100,layers=2") == priced("model:gpt@h100,layers=2"));
  const std::string sizes = "@h100,layers=2,hidden=1024,heads=16";
  CHECK(priced("model:Transformer" + sizes) == priced("model:transformer" + sizes));
  CHECK(has(refusal("model:llama3-8b@H100"), "(did you mean \"h100\"?)"));
}

TEST_CASE("an unknown option is answered with the nearest") {
  CHECK(refusal("model:llama3-8b@h100,loss=torhc") ==
        "loss is one of plain, torch, fused (not \"torhc\" (did you mean \"torch\"?))");
  const std::string message = refusal("model:llama3-8b@h100,sequence=4096");
  CHECK(has(message, "model llama3-8b has no option 'sequence'"));
  CHECK(has(refusal("model:llama3-8b@h100,sq=4096"), "(did you mean \"seq\"?)"));
  CHECK(has(refusal("model:llama3-8b@h100,attn=plain"), "has no option 'attn'"));
  CHECK(has(
      refusal("model:llama3-8b@h100,attention=flush"),
      "attention is one of flash, plain, fa2, fa3, cudnn (not \"flush\" (did you mean \"flash\"?))"));
  CHECK(has(refusal("model:llama3-8b@h100,sp=2"), "sp must be yes or no, not '2'"));
  CHECK(has(refusal("model:llama3-8b@h100,cp=2,attention=plain,cp_exchange=ring"),
            "which attention=plain does not; take attention=flash"));
  CHECK(has(refusal("model:llama3-8b@h100,cp_exchange=rings"), "did you mean"));
  CHECK(has(refusal("model:llama3-8b@h100,tp_overlap=1.5"),
            "tp_overlap must be a share from 0 to 1, not 1.5"));
  CHECK(has(refusal("model:llama3-8b@h100,imbalance=0.5"),
            "imbalance must be a number from 1 to 1024, not 0.5"));
  CHECK(has(refusal("model:llama3-8b@h100,tp=0"), "tp must be a whole number from 1 to 65536"));
  CHECK(has(refusal("model:llama3-8b@h101"), "(did you mean \"h100\"?)"));
  CHECK(has(refusal("model:llama3-8b"), "needs a device to be priced for"));
  CHECK(has(refusal("model:gpt@h100,fused=yes"), "model gpt has no option 'fused'"));
}

TEST_CASE("degrees of flags and of the spelling are united") {
  const Model spelled = priced("model:mixtral-8x7b@h100,seq=4096,tp=2,cp=2,ep=4,sp=yes");
  CHECK(priced("model:mixtral-8x7b@h100,seq=4096", {2, 2, 4, true}) == spelled);
  CHECK(priced("model:mixtral-8x7b@h100,seq=4096,tp=2,ep=4", {2, 2, 1, true}) == spelled);
  CHECK(has(refusal("model:llama3-8b@h100,tp=2", {4, 1, 1, false}),
            "says tp=2, and --tp is 4; state it once, or the same twice"));
  CHECK(has(refusal("model:llama3-8b@h100", {3, 1, 1, false}),
            "heads must be a multiple of tp, and 32 is not one of 3"));
}

TEST_CASE("rates are the calibration's, the chip's, or the defaults") {
  Calibration calibration;
  calibration.kind = "h100";
  calibration.rates = find_chip_rates("h100")->rates;
  calibration.rates.gemm = 0.5;
  calibration.source = "points.csv";
  calibration.date = "2026-11-23";
  LanguageInputs inputs;
  inputs.calibration = &calibration;
  const Model fitted = priced("model:llama3-8b@h100", {}, inputs);
  const Model built_in = priced("model:llama3-8b@h100");
  CHECK(fitted.layers[1].forward > built_in.layers[1].forward);
  CHECK(has(fitted.provenance.method, "at 0.5 of the peak"));
  CHECK(has(fitted.provenance.source, "calibrated on 2026-11-23: points.csv"));
  CHECK(has(refusal("model:llama3-8b@a100-40gb", {}, inputs),
            "the calibration is of h100, and the model is priced for a100-40gb"));
  calibration.kind = "a100";
  CHECK(has(priced("model:llama3-8b@a100-40gb", {}, inputs).provenance.method, "at 0.5 of"));
  const Model unknown = priced("model:llama3-8b@own");
  CHECK(has(unknown.provenance.source, "none are known of own: near those of an A100"));
  CHECK(has(unknown.provenance.method, "at 0.8 of the peak"));
}

TEST_CASE("a kind that nobody fitted says whose rates it has") {
  const auto notes = [](const std::string& spec) {
    return fmt::format("{}", fmt::join(priced(spec).provenance.notes, "; "));
  };
  CHECK_FALSE(has(notes("model:llama3-8b@h100"), "nobody fitted"));
  CHECK(has(notes("model:llama3-8b@own"),
            "kernel rates of own: nobody fitted them, the shares of its peak are near those of an "
            "A100"));
  CHECK(rates_of("a100-40gb").note.empty());
  CHECK(rates_of("h200").note.empty());
  CHECK(rates_of("gb300").note.empty());
  for (const auto& [own, chip] :
       std::vector<std::pair<std::string, std::string>>{{"a800", "a100"},
                                                        {"h800", "h100"},
                                                        {"h20", "h100"},
                                                        {"gh200", "h100"},
                                                        {"b300", "gb300"}}) {
    const std::string kind = own;  // clang 14 captures no binding
    CAPTURE(kind);
    CHECK(rates_of(kind).rates == find_chip_rates(chip)->rates);
    CHECK(rates_of(kind).note == "kernel rates of " + kind +
                                     ": nobody fitted them, the shares of its peak are those of "
                                     "the " +
                                     chip);
    CHECK(find_chip_rates(kind) == nullptr);
  }
  for (const char* const card : {"h100-nvl", "h100-pcie"}) {
    CHECK(rates_of(card).rates == find_chip_rates("h100")->rates);
    CHECK(has(rates_of(card).note, "those of the h100"));
  }
  CHECK(rates_of("h100-96gb").note.empty());
  CHECK(rates_of("mi300x").rates == KernelRates{});
}

TEST_CASE("a language model has no shape that runs") {
  CHECK_THROWS_WITH_AS(shape_of_spec("model:llama3-8b@h100,tp=2"), doctest::Contains("gpt has"),
                       UsageError);
  CHECK(shape_of_spec("model:gpt@h100,layers=2,batch=4") == "gpt,layers=2");
}

TEST_CASE("rates that are stated go before those of the chip and of a calibration") {
  Calibration calibration;
  calibration.kind = "h100";
  calibration.rates = find_chip_rates("h100")->rates;
  calibration.rates.gemm = 0.4;
  LanguageInputs inputs;
  inputs.calibration = &calibration;
  const Model slow = priced("model:llama3-8b@h100", {}, inputs);
  const Model stated = priced("model:llama3-8b@h100,gemm=0.71", {}, inputs);
  CHECK(stated.layers[1].forward < slow.layers[1].forward);
  CHECK(stated.layers[1].forward == priced("model:llama3-8b@h100").layers[1].forward);
  CHECK(stated.provenance.source.find("gemm as given") != std::string::npos);
  CHECK(priced("model:llama3-8b@h100,kernel=40us").layers[1].forward ==
        priced("model:llama3-8b@h100,kernel=40e-6").layers[1].forward);
  for (const char* const word : {"gemm=0", "gemm=2", "gemm=x", "kernel=1s", "kernel=-1us"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(priced(fmt::format("model:llama3-8b@h100,{}", word)), UsageError);
  }
}

TEST_CASE("imbalance counts among expert-parallel ranks alone, in times and bytes") {
  for (const std::string name : {"mixtral-8x7b", "llama3-8b"}) {
    const Model plain = priced("model:" + name + "@h100");
    const Model uneven = priced("model:" + name + "@h100,imbalance=2");
    CHECK(uneven.layers == plain.layers);
    REQUIRE(uneven.provenance.notes.size() == plain.provenance.notes.size() + 1);
    CHECK(uneven.provenance.notes.front() ==
          "imbalance has no effect without expert-parallel ranks (--ep)");
  }
  const Layer even = priced("model:mixtral-8x7b@h100,ep=4").layers[1];
  const Layer uneven = priced("model:mixtral-8x7b@h100,ep=4,imbalance=2").layers[1];
  CHECK(uneven.backward_workspace.count == 2 * even.backward_workspace.count);
}

TEST_CASE("options of experts arrive, and say what they assume or leave out") {
  const auto notes = [](const std::string& options) {
    return fmt::format(
        "{}", fmt::join(priced("model:deepseek-v3@h100" + options).provenance.notes, "\n"));
  };
  const std::string plain = "model:deepseek-v3@h100,ep=64";
  for (const char* const word : {"dispatch=deepep", "dispatch=hybridep", "dispatch_bits=8",
                                 "capacity=0.9", "expert_padding=128", "main_gradients=bf16",
                                 "dispatch=deepep,expert_groups=1,topk_groups=1"}) {
    CAPTURE(word);
    CHECK(priced(plain + "," + word).layers != priced(plain).layers);
  }
  CHECK(priced(plain + ",dispatch=nccl,dispatch_bits=16,expert_padding=1,main_gradients=fp32") ==
        priced(plain));
  CHECK(has(notes(",ep=64,dispatch=deepep"),
            "DeepEP sends a token once to each machine that has "
            "experts for it: experts are chosen evenly, in 4 of 8 "
            "groups, "));
  CHECK(has(notes(",dispatch=deepep"),
            "dispatch has no effect without expert-parallel ranks (--ep)"));
  CHECK(has(notes(",ep=8,capacity=1.25"), "capacity 1.25 drops no tokens"));
  CHECK(has(notes(",ep=8,capacity=1.25,imbalance=2"), "the most loaded rank drops 37.5 % of its"));
  CHECK(has(notes(",capacity=0.5"), "the most loaded rank drops 50 % of its"));
  CHECK(has(notes(",expert_padding=16"), "padded to a multiple of 16: 7.5 more in the mean"));
  CHECK(has(notes(",ep=8,dispatch_bits=8"), "in 8 bits, a scale for 128 of them"));
  CHECK(refusal(plain + ",dispatch=hybrid") ==
        "dispatch is one of nccl, deepep, hybridep (not \"hybrid\" (did you mean \"hybridep\"?))");
  CHECK(refusal(plain + ",dispatch_bits=4") == "dispatch_bits is 8 or 16, not 4");
  CHECK(refusal(plain + ",main_gradients=fp8") == "main_gradients is bf16 or fp32, not fp8");
  CHECK(refusal(plain + ",capacity=0") ==
        "capacity must be a number above 0 and up to 1024, not 0");
  CHECK(refusal(plain + ",expert_groups=7") ==
        "deepseek-v3: experts must be a multiple of expert_groups, and 256 is not one of 7");
  CHECK(refusal(plain + ",expert_groups=256") ==
        "deepseek-v3: a token's 8 experts are in 4 of 256 groups, which have only 4; give more "
        "topk_groups");
  CHECK(has(refusal(plain + ",topk_groups=9"), "topk_groups must be from 1 to 8, and it is 9"));
  // Groups are of the experts that it is published with.
  CHECK(priced("model:deepseek-v3@h100,ep=4,experts=252").layers.size() == 63);
}

TEST_CASE("FLOPs beyond 64 bits are refused") {
  CHECK(has(refusal("model:transformer@h100,layers=1,hidden=8192,heads=64,seq=16777216"),
            "layer \"block.0\" takes 9.25e+18 FLOPs; at most 4.61e+18 are counted"));
}

}  // namespace stageline::spelling_tests
