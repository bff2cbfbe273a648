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

lab::Finding finding_of(double published, double ours, double allowed, lab::Basis basis,
                        lab::Rule rule) {
  return lab::judged({"a number", lab::claim_of({published, 2, "×"}), lab::Number{ours, 2, "×"},
                      allowed, basis, rule});
}

}  // namespace

TEST_CASE("the kept report is what the command says now, to the byte") {
  std::vector<lab::Section> sections;
  for (const lab::SectionEntry& entry : lab::reproduction_sections())
    sections.push_back(lab::section_of(entry));
  const std::filesystem::path folder = kept_folder();
  const char* const renew = "renew it with `stageline reproduce --output tools/lab/papers`";
  CAPTURE(renew);
  CHECK(lab::report_markdown(sections) == read_file((folder / "report.md").string()));
  std::set<std::string> drawn;
  for (const lab::Section& section : sections) {
    for (const lab::Figure& figure : section.figures) {
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
  for (const lab::Section& section : sections) {
    for (const lab::Finding& finding : section.findings) {
      CAPTURE(finding.what);
      const bool theirs = !lab::from_costs(finding.basis) && finding.rule == lab::Rule::quoted;
      CHECK((finding.verdict != lab::FindingVerdict::reproduced || theirs));
      CHECK((finding.verdict != lab::FindingVerdict::not_comparable || !finding.note.empty()));
    }
    CHECK_FALSE(section.headline.empty());
  }
}

TEST_CASE("only a quoted rule on the paper's own inputs can reproduce a number") {
  const auto verdict = [](lab::Basis basis, lab::Rule rule) {
    return finding_of(1.65, 1.65, 0.005, basis, rule).verdict;
  };
  CHECK(verdict(lab::Basis::their_inputs, lab::Rule::quoted) == lab::FindingVerdict::reproduced);
  CHECK(verdict(lab::Basis::counted, lab::Rule::quoted) == lab::FindingVerdict::reproduced);
  for (const lab::Basis basis :
       {lab::Basis::closed_form, lab::Basis::mac_costs, lab::Basis::measured_costs,
        lab::Basis::roofline_costs, lab::Basis::equal_stages, lab::Basis::their_shares}) {
    CHECK(verdict(basis, lab::Rule::quoted) == lab::FindingVerdict::consistent);
  }
  CHECK(verdict(lab::Basis::their_inputs, lab::Rule::rebuilt) == lab::FindingVerdict::consistent);
  CHECK(verdict(lab::Basis::counted, lab::Rule::rebuilt) == lab::FindingVerdict::consistent);
}

TEST_CASE("what lies further off than allowed differs, on either side") {
  const auto verdict = [](double ours) {
    return finding_of(1.24, ours, 0.01, lab::Basis::their_inputs, lab::Rule::quoted).verdict;
  };
  CHECK(verdict(1.25) == lab::FindingVerdict::reproduced);
  CHECK(verdict(1.23) == lab::FindingVerdict::reproduced);
  CHECK(verdict(1.2501) == lab::FindingVerdict::differs);
  CHECK(verdict(1.2299) == lab::FindingVerdict::differs);
}

TEST_CASE("of a range only what lies outside is a deviation") {
  lab::Finding finding{"ratio",
                       {"1.48–2.27×", 1.48, 2.27},
                       lab::Number{2.0, 2, "×"},
                       0,
                       lab::Basis::closed_form,
                       lab::Rule::rebuilt,
                       lab::FindingVerdict::not_comparable,
                       ""};
  CHECK(lab::deviation(finding) == 0);
  CHECK(lab::print_deviation(finding) == "inside");
  finding.ours->value = 2.5;
  CHECK(lab::deviation(finding) == doctest::Approx(0.23));
  CHECK(lab::print_deviation(finding) == "+10.1 %");
  finding.ours->value = 1.4;
  CHECK(lab::print_deviation(finding) == "-5.4 %");
  finding.published.high = std::numeric_limits<double>::infinity();
  finding.ours->value = 100;
  CHECK(lab::print_deviation(finding) == "inside");
}

TEST_CASE("percentages deviate by points, other numbers by percent") {
  lab::Finding finding{"share",
                       lab::claim_of({4.98, 2, " %"}),
                       lab::Number{5.0, 2, " %"},
                       0.005,
                       lab::Basis::counted,
                       lab::Rule::quoted,
                       lab::FindingVerdict::not_comparable,
                       ""};
  CHECK(lab::print_deviation(finding) == "+0.02 points");
  finding.ours->unit = "×";
  CHECK(lab::print_deviation(finding) == "+0.4 %");
}

TEST_CASE("the multiply-accumulates are those the literature counts") {
  const auto giga = [](const char* name) {
    Time sum{};
    for (const Layer& layer : lab::mac_model(name).layers) sum += layer.forward;
    return static_cast<double>(sum.count()) / 1e9;
  };
  CHECK(giga("alexnet") == doctest::Approx(0.714).epsilon(0.002));
  CHECK(giga("vgg16") == doctest::Approx(15.47).epsilon(0.001));
  CHECK(giga("resnet18") == doctest::Approx(1.814).epsilon(0.001));
  CHECK(giga("resnet50") == doctest::Approx(4.089).epsilon(0.001));
  CHECK(lab::mac_model("vgg16").layers.front().input_grad == Time{});
  CHECK(lab::mac_model("vgg16").layers[1].input_grad == lab::mac_model("vgg16").layers[1].forward);
}

TEST_CASE("MAC costs give LayerPipe the ratios that were worked out for its rebuilt rule") {
  // The chain of ResNet-18 was taken without the convolutions on its skips.
  const auto gain = [](const char* name, int processors) {
    Model model = lab::mac_model(name);
    const auto on_skip = [](const Layer& layer) {
      return layer.name.find("downsample") != std::string::npos;
    };
    model.layers.erase(std::remove_if(model.layers.begin(), model.layers.end(), on_skip),
                       model.layers.end());
    return lab::layerpipe_gain(model, processors, Division::anywhere);
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
