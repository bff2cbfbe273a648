// Is the cut that the search finds the best one, and never worse than the plain ones?
#include "tools/planner/cuts/cut_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <tuple>

#include "schedulers/partition/megatron.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/study/uniform.hpp"
#include "tests/thorough.hpp"
#include "tools/base/parallel.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::cut_search_tests {
namespace {

using test::uniform_case;

int draw(std::mt19937& random, int below) {
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

// A chain of unequal layers on devices behind one switch, some slower, some with little memory.
Case random_case(std::mt19937& random, const std::string& schedule, int devices, int layers) {
  Case asked = uniform_case(schedule, devices, 2 + draw(random, 6));
  asked.model.layers.resize(as_size(layers));
  for (Layer& layer : asked.model.layers) {
    layer.forward *= 1 + draw(random, 6);
    layer.input_grad *= 1 + draw(random, 6);
    layer.weight_grad *= 1 + draw(random, 3);
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.output = Bytes{draw(random, 5) * 400'000};
    layer.stash_weight_grad = Bytes{(1 + draw(random, 5)) * std::int64_t{1'000'000}};
  }
  const bool unequal = draw(random, 3) == 0;
  const bool tight = draw(random, 3) == 0;
  asked.cluster = uniform_cluster(
      devices,
      draw(random, 3) == 0
          ? std::nullopt
          : std::optional(LinkSpec{{(1 + draw(random, 4)) * std::int64_t{100'000'000}},
                                   Time{draw(random, 3) * std::int64_t{100'000'000}}}),
      tight ? std::optional(Bytes{(10 + draw(random, 40)) * std::int64_t{1'000'000}})
            : std::nullopt);
  for (Device& device : asked.cluster.devices) {
    if (unequal) device.rate = 0.5 * (1 + draw(random, 3));
  }
  return asked;
}

using Standing = std::tuple<bool, Bytes, Time, Bytes>;  // smaller is better

Standing standing(const Verdict& verdict) {
  const bool fits = verdict.fit != Fit::no;
  return {!fits, fits ? Bytes{} : verdict.need->missing(), verdict.step, verdict.fullest()};
}

std::optional<Standing> standing_of(Judge& judge, Case asked, const std::string& partition) {
  asked.partition = partition;
  try {
    return standing(judge.verdict(asked));
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

// Every cut of so many layers into so many stages.
std::vector<std::string> all_cuts(int layers, int stages) {
  std::vector<std::string> texts;
  std::vector<bool> ends(as_size(layers) - 1);
  std::fill(ends.begin(), ends.begin() + (stages - 1), true);
  do {
    std::string text = "0";
    for (int layer = 0; layer + 1 < layers; ++layer) {
      if (nth(ends, layer)) text += "-" + std::to_string(layer) + "," + std::to_string(layer + 1);
    }
    texts.push_back(text + "-");
  } while (std::prev_permutation(ends.begin(), ends.end()));
  return texts;
}

TEST_CASE("of all cuts of a short chain none is better than the one that is found") {
  std::mt19937 random(3);
  const std::vector<std::string> schedules{"1f1b", "gpipe", "zb_h1", "pipedream", "eager_1f1b"};
  int tried = 0;
  int climbed = 0;
  int moved = 0;
  for (int round = 0; round < 120; ++round) {
    const int stages = 2 + draw(random, 3);
    const int layers = stages + 1 + draw(random, 8 - stages);
    const Case asked =
        random_case(random, schedules[as_size(round) % schedules.size()], stages, layers);
    if (!test::chosen(random, 10)) continue;
    CAPTURE(round);
    Judge judge;
    Standing best{true, Bytes{most_bytes_held}, longest_run, Bytes{}};
    const std::vector<std::string> cuts = all_cuts(layers, stages);
    for (const std::string& cut : cuts) {
      best = std::min(best, standing_of(judge, asked, cut).value());
    }
    const planner::SearchedCut whole =
        planner::search_cut(asked, judge, static_cast<int>(cuts.size()));
    CHECK(whole.all);
    CHECK(whole.simulated == static_cast<int>(cuts.size()));
    CHECK(standing(whole.verdict) == best);
    CHECK(standing_of(judge, asked, whole.partition) == best);
    CHECK(standing(whole.first) == standing_of(judge, asked, "balanced"));
    if (whole.verdict.step < whole.first.step) ++moved;
    const int some = static_cast<int>(cuts.size() + 1) / 2;
    const planner::SearchedCut part = planner::search_cut(asked, judge, some);
    CHECK(part.simulated <= some);
    CHECK(part.all == (cuts.size() == 1));
    ++tried;
    if (standing(part.verdict) == best) ++climbed;
  }
  CAPTURE(tried);
  CAPTURE(climbed);
  CHECK(climbed * 100 >= tried * (test::thorough ? 95 : 80));
  if (test::thorough) CHECK(moved > 20);
}

TEST_CASE("under every schedule the search is never worse than a plain or a promising cut") {
  std::mt19937 random(5);
  for (const Scheduler* const scheduler : schedulers()) {
    if (!test::chosen(random, 4)) continue;
    CAPTURE(scheduler->name);
    const std::string name(scheduler->name);
    for (int round = 0; round < (test::thorough ? 2 : 1); ++round) {
      Case asked = random_case(random, name, 2 * (1 + draw(random, 2)), 12);
      for (std::size_t i = 0; i < 8; ++i) asked.model.layers[2 + i].kind = "block";
      Judge judge;
      if (scheduler->assign != nullptr) {
        CHECK_THROWS_AS(planner::search_cut(asked, judge, 40), UsageError);
        continue;
      }
      const std::optional<Standing> balanced = standing_of(judge, asked, "balanced");
      if (!balanced) {
        CHECK_THROWS_AS(planner::search_cut(asked, judge, 40), UsageError);
        continue;
      }
      const planner::SearchedCut found = planner::search_cut(asked, judge, 40);
      CHECK(found.simulated <= 40);
      CHECK(found.plain == "balanced");
      CHECK(standing(found.first) == *balanced);
      CHECK(standing(found.verdict) <= *balanced);
      CHECK(standing_of(judge, asked, found.partition) == standing(found.verdict));
      for (const char* const plain : {"blocks", "by_device", "uniform"}) {
        const std::optional<Standing> other = standing_of(judge, asked, plain);
        if (!other || std::string(plain) == "uniform") continue;
        CHECK(standing(found.verdict) <= *other);
      }
      const std::vector<std::string> promising = planner::promising_cuts(asked, 10);
      CHECK(promising.size() <= 10);
      CHECK(std::set<std::string>(promising.begin(), promising.end()).size() == promising.size());
      for (const std::string& cut : promising) {
        if (const auto other = standing_of(judge, asked, cut)) {
          CHECK(standing(found.verdict) <= *other);
        }
      }
    }
  }
}

TEST_CASE("the search gives the same again, and more cuts never make it worse") {
  std::mt19937 random(7);
  for (const char* const schedule : {"1f1b", "interleaved_1f1b"}) {
    Case asked = random_case(random, schedule, 4, 24);
    asked.microbatches = 8;
    Judge judge;
    std::optional<Standing> before;
    for (const int most : {1, 5, 30}) {
      const planner::SearchedCut found = planner::search_cut(asked, judge, most);
      Judge other;
      const planner::SearchedCut again = planner::search_cut(asked, other, most);
      CHECK(found.simulated == most);
      CHECK(again.partition == found.partition);
      CHECK(standing(again.verdict) == standing(found.verdict));
      if (before) CHECK(standing(found.verdict) <= *before);
      before = standing(found.verdict);
    }
    // Searches at the same time may share what is kept.
    std::vector<planner::SearchedCut> both(2);
    in_parallel(2, 2, [&](std::size_t i) { both[i] = planner::search_cut(asked, judge, 30); });
    CHECK(both[0].partition == both[1].partition);
    CHECK(standing(both[0].verdict) == *before);
  }
}

Case case_of(const SettingRequest& request, const std::string& schedule) {
  const Setting setting = read_setting(request);
  return planner::searched_case(request, setting, parse_schedules(schedule).at(0),
                                setting.device_counts.front());
}

TEST_CASE("ResNet-50 on four V100 by PCIe: a cut at least 7 % faster than balanced") {
  SettingRequest request;
  request.trace = "model:resnet50@v100,batch=16";
  request.cluster.cluster = "v100x4-pcie";
  request.microbatches = 32;
  Judge judge;
  const Case asked = case_of(request, "1f1b");
  const planner::SearchedCut found = planner::search_cut(asked, judge, 100);
  const double faster = to_seconds(found.first.step) / to_seconds(found.verdict.step);
  CHECK(faster > 1.07);
  // Of all 26 235 cuts it is the best.
  CHECK(found.partition == "0-8,9-18,19-34,35-");
  request.partition = "simulated:most=100";
  const Case same = case_of(request, "1f1b");
  CHECK(same.partition == found.partition);
  REQUIRE(same.found_cut);
  CHECK(same.found_cut->simulated == 100);
  CHECK(same.found_cut->plain_step == found.first.step);
  const std::vector<std::string> notes = stream_notes(same, study(same));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("found by simulating 100 cuts") != std::string::npos;
  }));
}

TEST_CASE("Llama 3 70B: whole blocks at least as good as the layout that was made by hand") {
  SettingRequest request;
  request.trace = "model:llama3-70b@h100";
  request.cluster.cluster = "h100x8*4";
  request.cluster.memory = parse_bytes("100GB");
  request.degrees.tensor = 4;
  request.degrees.pipeline = 8;
  request.sequence_parallel = true;
  request.microbatches = 32;
  Judge judge;
  const Case asked = case_of(request, "interleaved_1f1b:chunks=5");
  // NVIDIA-NeMo/Megatron-Bridge #5391.
  const Standing by_hand = standing_of(judge, asked, "Et*2|(t*2|)*34,t*3|(t*2|)*3,tL").value();
  const planner::SearchedCut found = planner::search_cut(asked, judge, 40, true);
  CHECK(found.plain == "blocks");
  CHECK(standing(found.verdict) <= by_hand);
  CHECK(found.verdict.step < found.first.step);
  // Its blocks are whole, so that Megatron-LM can be given it.
  Case cut = asked;
  cut.partition = found.partition;
  const Outcome outcome = study(cut);
  const std::string layout =
      write_megatron(outcome.plan.partition, outcome.program.placement, asked.model);
  CHECK(standing_of(judge, asked, layout) == standing(found.verdict));
}

TEST_CASE("PipeDream's plans: no cut of the same replicas is found that is slower") {
  const char* const data = std::getenv("STAGELINE_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(data == nullptr ? "" : data) / "pipedream";
  if (!std::filesystem::exists(folder / "vgg16.graph.txt")) {
    MESSAGE("skipped: no profiles of PipeDream under STAGELINE_DATA");
    return;
  }
  std::mt19937 random(9);
  int shorter = 0;
  for (const char* const name : {"vgg16", "resnet50", "alexnet", "gnmt"}) {
    for (const char* const partition : {"pipedream", "pipedream:replicate=no"}) {
      if (!test::chosen(random, 4)) continue;
      CAPTURE(name);
      CAPTURE(partition);
      SettingRequest request;
      request.trace = (folder / (std::string(name) + ".graph.txt")).string();
      request.profile_batch = 64;
      request.devices = {4};
      request.cluster.link = LinkSpec{parse_bandwidth("1GB/s"), parse_time("20us")};
      request.partition = partition;
      const Case asked = case_of(request, "pipedream");
      const Outcome plan = study(asked);
      Case searched = asked;
      searched.spec = parse_schedules(plan.schedule).at(0);
      Judge judge;
      const planner::SearchedCut found = planner::search_cut(searched, judge, 60);
      CHECK(found.verdict.step <= plan.step_time);
      if (found.verdict.step < plan.step_time) ++shorter;
    }
  }
  if (test::thorough) CHECK(shorter > 0);
}

std::string refusal(const Case& asked) {
  try {
    planner::with_searched_cut(asked);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("what cannot be searched is refused, or left for the simulation to refuse") {
  Case asked = uniform_case("1f1b", 4, 4);
  CHECK(planner::with_searched_cut(asked).partition == "balanced");
  asked.partition = "simulated:mots=5";
  CHECK(refusal(asked).find("option \"mots=5\" is not known (most=N, blocks)") !=
        std::string::npos);
  asked.partition = "simulated:most=0";
  CHECK(refusal(asked).find("from 1 to 1048576, not \"0\"") != std::string::npos);
  asked.partition = "simulated:blocks";
  CHECK(refusal(asked).find("has none") != std::string::npos);
  asked.partition = "simulated";
  Case program = asked;
  program.program = study(uniform_case("1f1b", 4, 4)).program;
  CHECK(refusal(program).find("was written for its own stages") != std::string::npos);
  // The schedule cuts, so that there is nothing to search.
  Case assigns = asked;
  assigns.spec = parse_schedules("layerpipe").at(0);
  CHECK(planner::with_searched_cut(assigns).partition == "simulated");
  CHECK_THROWS_AS(study(planner::with_searched_cut(assigns)), UsageError);
  // More stages than layers.
  Case wide = uniform_case("1f1b", 9, 4);
  wide.partition = "simulated";
  CHECK(planner::with_searched_cut(wide).partition == "balanced");
  CHECK(planner::with_searched_cut(wide).cut_asked() == "simulated");
  CHECK_THROWS_AS(study(planner::with_searched_cut(wide)), UsageError);
  // One stage has one cut.
  Case one = uniform_case("1f1b", 1, 4);
  one.partition = "simulated";
  const Case found = planner::with_searched_cut(one);
  CHECK(found.partition == "0-");
  CHECK(found.found_cut->all);
  CHECK(found.found_cut->simulated == 1);
}

}  // namespace
}  // namespace stageline::cut_search_tests
