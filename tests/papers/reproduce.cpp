// Do the kept report and its figures say what the command says now, and does a verdict mean what
// the report says it means?
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tools/base/files.hpp"
#include "tools/lab/papers/layerpipe_cut.hpp"
#include "tools/lab/papers/mac_costs.hpp"
#include "tools/lab/papers/markdown.hpp"
#include "tools/lab/papers/sections.hpp"

namespace stageline::reproduce_tests {
namespace {

std::filesystem::path kept_folder() {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  return std::filesystem::path(source) / "tools" / "lab" / "papers";
}

Finding finding_of(double published, double ours, double allowed, Basis basis, Rule rule) {
  return judged(
      {"a number", claim_of({published, 2, "×"}), Number{ours, 2, "×"}, allowed, basis, rule});
}

}  // namespace

TEST_CASE("the kept report is what the command says now, to the byte") {
  std::vector<Section> sections;
  for (const SectionEntry& entry : reproduction_sections()) sections.push_back(section_of(entry));
  const std::filesystem::path folder = kept_folder();
  const char* const renew = "renew it with `stageline reproduce --output tools/lab/papers`";
  CAPTURE(renew);
  CHECK(report_markdown(sections) == read_file((folder / "report.md").string()));
  std::set<std::string> drawn;
  for (const Section& section : sections) {
    for (const Figure& figure : section.figures) {
      CAPTURE(figure.file);
      drawn.insert(figure.file);
      CHECK_FALSE(figure.caption.empty());
      const bool same = figure.svg == read_file((folder / "figures" / figure.file).string());
      CHECK(same);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "figures")) {
    CAPTURE(entry.path().filename().string());
    CHECK(drawn.count(entry.path().filename().string()) == 1);
  }
  for (const Section& section : sections) {
    for (const Finding& finding : section.findings) {
      CAPTURE(finding.what);
      const bool theirs = !from_costs(finding.basis) && finding.rule == Rule::quoted;
      CHECK((finding.verdict != FindingVerdict::reproduced || theirs));
      CHECK((finding.verdict != FindingVerdict::not_comparable || !finding.note.empty()));
    }
    CHECK_FALSE(section.headline.empty());
  }
}

TEST_CASE("only a quoted rule on the paper's own inputs can reproduce a number") {
  const auto verdict = [](Basis basis, Rule rule) {
    return finding_of(1.65, 1.65, 0.005, basis, rule).verdict;
  };
  CHECK(verdict(Basis::their_inputs, Rule::quoted) == FindingVerdict::reproduced);
  CHECK(verdict(Basis::counted, Rule::quoted) == FindingVerdict::reproduced);
  for (const Basis basis : {Basis::closed_form, Basis::mac_costs, Basis::measured_costs,
                            Basis::roofline_costs, Basis::equal_stages, Basis::their_shares}) {
    CHECK(verdict(basis, Rule::quoted) == FindingVerdict::consistent);
  }
  CHECK(verdict(Basis::their_inputs, Rule::rebuilt) == FindingVerdict::consistent);
  CHECK(verdict(Basis::counted, Rule::rebuilt) == FindingVerdict::consistent);
}

TEST_CASE("what lies further off than allowed differs, on either side") {
  const auto verdict = [](double ours) {
    return finding_of(1.24, ours, 0.01, Basis::their_inputs, Rule::quoted).verdict;
  };
  CHECK(verdict(1.25) == FindingVerdict::reproduced);
  CHECK(verdict(1.23) == FindingVerdict::reproduced);
  CHECK(verdict(1.2501) == FindingVerdict::differs);
  CHECK(verdict(1.2299) == FindingVerdict::differs);
}

TEST_CASE("of a range only what lies outside is a deviation") {
  Finding finding{"ratio",
                  {"1.48–2.27×", 1.48, 2.27},
                  Number{2.0, 2, "×"},
                  0,
                  Basis::closed_form,
                  Rule::rebuilt,
                  FindingVerdict::not_comparable,
                  ""};
  CHECK(deviation(finding) == 0);
  CHECK(print_deviation(finding) == "inside");
  finding.ours->value = 2.5;
  CHECK(deviation(finding) == doctest::Approx(0.23));
  CHECK(print_deviation(finding) == "+10.1 %");
  finding.ours->value = 1.4;
  CHECK(print_deviation(finding) == "-5.4 %");
  finding.published.high = std::numeric_limits<double>::infinity();
  finding.ours->value = 100;
  CHECK(print_deviation(finding) == "inside");
}

TEST_CASE("percentages deviate by points, other numbers by percent") {
  Finding finding{"share",
                  claim_of({4.98, 2, " %"}),
                  Number{5.0, 2, " %"},
                  0.005,
                  Basis::counted,
                  Rule::quoted,
                  FindingVerdict::not_comparable,
                  ""};
  CHECK(print_deviation(finding) == "+0.02 points");
  finding.ours->unit = "×";
  CHECK(print_deviation(finding) == "+0.4 %");
}

TEST_CASE("the multiply-accumulates are those the literature counts") {
  const auto giga = [](const char* name) {
    Time sum{};
    for (const Layer& layer : mac_model(name).layers) sum += layer.forward;
    return static_cast<double>(sum.count()) / 1e9;
  };
  CHECK(giga("alexnet") == doctest::Approx(0.714).epsilon(0.002));
  CHECK(giga("vgg16") == doctest::Approx(15.47).epsilon(0.001));
  CHECK(giga("resnet18") == doctest::Approx(1.814).epsilon(0.001));
  CHECK(giga("resnet50") == doctest::Approx(4.089).epsilon(0.001));
  CHECK(mac_model("vgg16").layers.front().input_grad == Time{});
  CHECK(mac_model("vgg16").layers[1].input_grad == mac_model("vgg16").layers[1].forward);
}

TEST_CASE("MAC costs give LayerPipe the ratios that were worked out for its rebuilt rule") {
  // The chain of ResNet-18 was taken without the convolutions on its skips.
  const auto gain = [](const char* name, int processors) {
    Model model = mac_model(name);
    const auto on_skip = [](const Layer& layer) {
      return layer.name.find("downsample") != std::string::npos;
    };
    model.layers.erase(std::remove_if(model.layers.begin(), model.layers.end(), on_skip),
                       model.layers.end());
    return layerpipe_gain(model, processors, Division::anywhere);
  };
  CHECK(gain("vgg16", 7) == doctest::Approx(1.12).epsilon(0.005));
  CHECK(gain("vgg16", 8) == doctest::Approx(1.30).epsilon(0.005));
  CHECK(gain("vgg16", 9) == doctest::Approx(1.50).epsilon(0.005));
  CHECK(gain("vgg11", 7) == doctest::Approx(1.50).epsilon(0.005));
  CHECK(gain("vgg11", 8) == doctest::Approx(1.77).epsilon(0.005));
  CHECK(gain("vgg11", 9) == doctest::Approx(2.00).epsilon(0.005));
  CHECK(gain("alexnet", 7) == doctest::Approx(2.00).epsilon(0.005));
  CHECK(gain("alexnet", 8) == doctest::Approx(2.28).epsilon(0.005));
  CHECK(gain("alexnet", 9) == doctest::Approx(2.35).epsilon(0.005));
  CHECK(gain("resnet18", 7) == doctest::Approx(1.07).epsilon(0.005));
  CHECK(gain("resnet18", 8) == doctest::Approx(1.25).epsilon(0.005));
  CHECK(gain("resnet18", 9) == doctest::Approx(1.15).epsilon(0.005));
}

}  // namespace stageline::reproduce_tests
