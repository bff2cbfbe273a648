// Is the kept study whole, does its page say what the command says now, and do its findings follow
// from its runs? The rules stand here a second time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "tools/base/files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/papers/staleness/copies.hpp"
#include "tools/lab/papers/staleness/report.hpp"

namespace stageline::staleness_tests {
namespace {

namespace fs = std::filesystem;

fs::path kept_folder() {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  return fs::path(source) / "tools" / "executor" / "studies";
}

const lab::StalenessEvidence& kept() {
  static const lab::StalenessEvidence evidence = [] {
    const std::string file = (kept_folder() / "staleness.json.gz").string();
    return lab::parse_staleness_evidence(read_content(file).named.text, file);
  }();
  return evidence;
}

// Least, mean and most of a case's last accuracies, in percent, straight from the runs.
struct Range {
  double least = 100, mean = 0, most = 0;
  double half() const { return (most - least) / 2; }
};
Range range_of(const std::string& net, lab::StudyGroup group, const std::string& name) {
  Range range;
  int seeds = 0;
  for (const lab::StudyRun& run : kept().runs) {
    if (run.net != net || run.group != group || run.name != name) continue;
    const double percent = 100 * run.log.evaluations.back().accuracy;
    range.least = std::min(range.least, percent);
    range.most = std::max(range.most, percent);
    range.mean += percent;
    ++seeds;
  }
  REQUIRE(seeds >= 3);
  range.mean /= seeds;
  return range;
}

std::string word(bool yes, bool no) {
  return yes ? "agrees" : no ? "differs" : "within the spread";
}

std::string said(const std::string& net, const std::string& what) {
  for (const lab::StudyFinding& one : lab::findings_of(lab::results_of(kept()))) {
    if (one.net == net && one.what.find(what) != std::string::npos) {
      return std::string(name(one.holds));
    }
  }
  return "nothing";
}

}  // namespace

TEST_CASE("the kept study has every case with three seeds, as its commands would train them") {
  CHECK(kept().seeds >= 3);
  std::size_t wanted = 0;
  for (const lab::StudyNet& net : lab::staleness_nets()) {
    if (net.large) continue;
    for (const lab::StudyCase& one : net.cases) {
      for (int seed = 1; seed <= kept().seeds; ++seed) {
        CAPTURE(lab::train_command(net, one, static_cast<std::uint64_t>(seed)));
        const lab::StudyRun* const run =
            lab::find_run(kept(), net, one, static_cast<std::uint64_t>(seed));
        REQUIRE(run != nullptr);
        ++wanted;
        const lab::TrainingSettings& s = run->log.settings;
        CHECK(s.steps == lab::steps_of(net, one));
        CHECK(s.pipelined == one.pipelined);
        CHECK(s.batch * s.microbatches == net.batch);
        CHECK(run->log.evaluations.back().step == lab::steps_of(net, one));
        const bool rule = one.correction == "stash" || one.correction == "vertical_sync";
        CHECK((rule ? s.weights : s.correction) == one.correction);
        CHECK_FALSE(run->log.stages.empty());
        CHECK(run->copies == doctest::Approx(lab::kept_copies(net, one, run->log)));
      }
    }
  }
  CHECK(kept().runs.size() == wanted);
}

TEST_CASE("no two cases of the study are the same run, and depth goes pair by pair") {
  std::map<std::string, int> commands;
  for (const lab::StudyNet& net : lab::staleness_nets()) {
    std::set<std::string> names;
    for (const lab::StudyCase& one : net.cases) {
      CHECK(names.insert(fmt::format("{} {}", name(one.group), one.name)).second);
      ++commands[lab::train_command(net, one, 1)];
    }
    // Four depths, with one more register pair each.
    std::vector<int> stages;
    for (const lab::StudyCase& one : net.cases) {
      if (one.group == lab::StudyGroup::depth) stages.push_back(stages_of(one));
    }
    CHECK(stages == std::vector<int>{4, 6, 8, 10});
  }
  for (const auto& once : commands) {
    CAPTURE(once.first);
    CHECK(once.second == 1);
  }
}

TEST_CASE("the kept page is what the command says now, to the byte") {
  const std::string renew =
      "renew it with `stageline staleness tools/executor/studies/staleness.json.gz --report "
      "tools/executor/studies`";
  CAPTURE(renew);
  const bool same_page =
      lab::staleness_markdown(kept()) == read_file((kept_folder() / "staleness.md").string());
  CHECK(same_page);
  std::set<std::string> drawn = {"staleness.json.gz", "staleness.md"};
  for (const lab::StudyFigure& one : lab::staleness_figures(lab::results_of(kept()))) {
    CAPTURE(one.file);
    drawn.insert(one.file);
    const bool same =
        report::chart_svg(one.chart) == read_file((kept_folder() / one.file).string());
    CHECK(same);
  }
  CHECK(drawn.size() == 4);
  for (const auto& entry : fs::directory_iterator(kept_folder())) {
    CAPTURE(entry.path().filename().string());
    CHECK(drawn.count(entry.path().filename().string()) == 1);
  }
}

TEST_CASE("the three findings follow from the kept runs") {
  for (const lab::StudyNet& net : lab::staleness_nets()) {
    if (net.large) continue;
    CAPTURE(net.title);
    const Range plain = range_of(net.name, lab::StudyGroup::plain, "non-pipelined");
    const Range shallow = range_of(net.name, lab::StudyGroup::depth, "4-stage");
    const Range deep = range_of(net.name, lab::StudyGroup::depth, "10-stage");
    const Range half = range_of(net.name, lab::StudyGroup::hybrid, "switch at 1/2");

    const double little = plain.mean - shallow.mean;
    const double little_spread = plain.half() + shallow.half();
    CHECK(said(net.title, "4-stage within") ==
          word(little + little_spread <= 1.5, little - little_spread > 1.5));

    const double lost = plain.mean - deep.mean;
    const double spread = plain.half() + deep.half();
    CHECK(said(net.title, "10-stage measurably") == word(lost > spread, -lost > spread));
    // Deep staleness costs on both tasks, far beyond the seeds: without that the study shows
    // nothing.
    CHECK(lost > spread);
    CHECK(deep.most < plain.least);

    const double over = half.mean - (plain.mean + deep.mean) / 2;
    const double over_spread = half.half() + (plain.half() + deep.half()) / 2;
    CHECK(said(net.title, "hybrid") == word(over > over_spread, -over > over_spread));
  }
}

}  // namespace stageline::staleness_tests
