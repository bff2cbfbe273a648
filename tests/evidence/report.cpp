// Does what a replay shows say what was judged?
#include "tools/lab/evidence/report.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/errors.hpp"
#include "tests/evidence/small_evidence.hpp"
#include "tests/text.hpp"
#include "tools/base/files.hpp"
#include "tools/lab/evidence/aims.hpp"

namespace stageline::report_tests {
namespace {

using test::contains;

struct Replayed {
  lab::Evidence evidence = test::small_evidence();
  lab::EvidenceJudgement judgement = lab::judge(evidence);
};

std::string aims_text(const std::vector<lab::Aim>& aims) {
  std::string text;
  for (const lab::Aim& aim : aims) {
    text += fmt::format("{}: {} [{}] {}\n", aim.figure, aim.is, aim.aim,
                        !aim.met   ? "-"
                        : *aim.met ? "met"
                                   : "missed");
  }
  return text;
}

// The x of each point with a tooltip, by its error in percent.
std::vector<std::pair<double, double>> points_of(const std::string& svg) {
  std::vector<std::pair<double, double>> points;
  const std::string place = "transform=\"translate(";
  for (std::size_t at = svg.find(place); at != std::string::npos; at = svg.find(place, at + 1)) {
    const std::string line = svg.substr(at, svg.find('\n', at) - at);
    const std::size_t title = line.find("</title>");
    if (title == std::string::npos) continue;
    const std::size_t comma = line.rfind(", ", title);
    points.emplace_back(std::stod(line.substr(comma + 2)), std::stod(line.substr(place.size())));
  }
  return points;
}

}  // namespace

TEST_CASE("each aim is held against the cases that were held out") {
  const Replayed small;
  CHECK(aims_text(lab::aims_of(small.evidence, small.judgement)) ==
        "error of the time, mean of 5 cases: 22.7 % [≤ 3 %] missed\n"
        "the same, signed mean: +4.7 % [≤ 1 %] missed\n"
        "error of the time, worst: +33.3 % [≤ 8 %] missed\n"
        "idle time of a device, worst: +33.3 % [≤ 5 %] missed\n"
        "beyond the noise of each case: error of the time, mean: 17.8 % [≤ 3 %] missed\n"
        "beyond the noise: error of the time, worst: -25.0 % [≤ 8 %] missed\n"
        "beyond the noise: idle time of a device, worst: 25.0 % [≤ 5 %] missed\n"
        "decidable pairs in the machine's order: 4 of 5; τ = 0.60 [all] missed\n"
        "stash exact to the byte on every device: 1 of 1 [all] met\n"
        "peak memory of a device, worst: -50.0 % [≤ 3 %] missed\n"
        "beyond the range of its runs: peak memory, worst: -40.0 % [≤ 3 %] missed\n"
        "pairs that the machine decides: 5 of 6 [] -\n"
        "error of the time, median: 20.0 % [] -\n"
        "idle time of the worst device, mean: 16.9 % [] -\n"
        "noise of those idle times, mean: 5.0 % [] -\n"
        "messages of a device, worst: -5.0 % [] -\n"
        "noise of the measured times, mean; worst: 5.0 %; 9.2 % [] -\n"
        "cases whose peaks are within the aim, beyond the range of their runs: 0 of 1 [] -\n"
        "for comparison: error of the 1 case calibrated on, mean; worst: 10.0 %; -10.0 % [] -\n");
  CHECK(lab::worst_pair_text(small.evidence, small.judgement) ==
        "The clearest pair that is not in order: four batch 1, naive, 4 micro-batches (36.00 ms "
        "measured, 48.00 ms predicted) is faster than four batch 1, 1f1b, 4 micro-batches, cut "
        "0-0,1-3 (52.00 ms measured, 39.00 ms predicted).");
}

TEST_CASE("an aim is met up to its very bound, and without cases it is neither met nor missed") {
  Replayed small;
  lab::Summary& held_out = small.judgement.held_out;
  held_out.mean_error = lab::aim_mean_error;
  held_out.worst_error.value = -lab::aim_worst_error;
  held_out.worst_peak_error.value = -lab::aim_peak_error - 1e-9;
  held_out.stash_exact = 0;
  held_out.worst_stash_error.value = -4;
  held_out.ranking.discordant = 0;
  held_out.ranking.tied = 1;
  std::vector<lab::Aim> aims = lab::aims_of(small.evidence, small.judgement);
  CHECK(aims[0].met == true);
  CHECK(aims[2].met == true);
  CHECK(aims[7].met == false);
  CHECK(aims[7].is == "4 of 5, 1 tied; τ = 0.60");
  CHECK(aims[8].met == false);
  CHECK(aims[8].is == "0 of 1, worst -4 B");
  CHECK(aims[9].met == false);

  small.evidence.cases.clear();
  small.judgement = lab::judge(small.evidence);
  aims = lab::aims_of(small.evidence, small.judgement);
  CHECK(aims.size() == 7);
  for (const lab::Aim& aim : aims) {
    CHECK(aim.is == "–");
    CHECK_FALSE(aim.met.has_value());
  }
  CHECK(lab::worst_pair_text(small.evidence, small.judgement).empty());
  CHECK(lab::replay_pictures(small.evidence, small.judgement).empty());
  CHECK_THROWS_AS(lab::errors_svg(small.evidence, small.judgement), UsageError);
  CHECK(contains(lab::replay_text(small.evidence, small.judgement), "0 cases held out"));
  CHECK(contains(lab::replay_json(small.evidence, small.judgement), "\"cases\": []"));
  CHECK(
      contains(lab::replay_markdown(small.evidence, small.judgement, {}), "## How it is counted"));
}

TEST_CASE("a signed percentage has no sign where nothing is left to see") {
  CHECK(lab::signed_percent(0.012) == "+1.2 %");
  CHECK(lab::signed_percent(-0.012) == "-1.2 %");
  CHECK(lab::signed_percent(0.0004) == "0.0 %");
  CHECK(lab::signed_percent(-0.0004) == "0.0 %");
  CHECK(lab::signed_percent(0) == "0.0 %");
}

TEST_CASE("points of the strip chart stand in the order of their errors, zero between the signs") {
  const Replayed small;
  const std::string svg = lab::errors_svg(small.evidence, small.judgement);
  auto points = points_of(svg);
  REQUIRE(points.size() == 6);
  std::sort(points.begin(), points.end());
  for (std::size_t i = 1; i < points.size(); ++i) {
    // Equally far for equal differences of error; tooltips are rounded.
    const double pitch = (points.back().second - points.front().second) /
                         (points.back().first - points.front().first);
    CHECK(points[i].second - points[0].second ==
          doctest::Approx(pitch * (points[i].first - points[0].first)).epsilon(0.02));
  }
  CHECK(contains(svg, "hollow: calibrated on"));
  CHECK(contains(svg, ">33.3 %</text>"));  // naive's mean
  CHECK(contains(svg, "class=\"bad r\""));
  lab::Evidence all_held_out = small.evidence;
  all_held_out.cases.pop_back();
  CHECK_FALSE(contains(lab::errors_svg(all_held_out, lab::judge(all_held_out)), "hollow"));
}

TEST_CASE("a measured timeline stands above the predicted one, each with its own share of idle") {
  const Replayed small;
  const std::string svg = lab::timelines_svg(small.evidence.cases[4], small.judgement.cases[4]);
  std::size_t at = 0;
  for (const char* row :
       {">lane0 measured<", ">lane0 predicted<", ">lane1 measured<", ">lane1 predicted<"}) {
    CAPTURE(row);
    const std::size_t found = svg.find(row);
    REQUIRE(found != std::string::npos);
    CHECK(found > at);
    at = found;
  }
  // All four: 8 of 32 ms, 10 of 40.
  std::size_t quarters = 0;
  for (std::size_t i = svg.find(">25.0 %<"); i != std::string::npos;
       i = svg.find(">25.0 %<", i + 1)) {
    ++quarters;
  }
  CHECK(quarters == 4);
  CHECK(contains(svg, "0F0 on lane0 measured: 0 s to 2.5 ms"));
  CHECK(contains(svg, "0F0 on lane0 predicted: 0 s to 2 ms"));
  CHECK_THROWS_AS(lab::timelines_svg(small.evidence.cases[0], small.judgement.cases[0]),
                  UsageError);
}

TEST_CASE("the page shows every picture and every case, and the pictures are sound documents") {
  const Replayed small;
  const std::vector<lab::Picture> pictures = lab::replay_pictures(small.evidence, small.judgement);
  REQUIRE(pictures.size() == 3);
  CHECK(pictures[2].file == "timeline-5.svg");
  const std::string page = lab::replay_markdown(small.evidence, small.judgement, pictures);
  for (const lab::Picture& picture : pictures) {
    CHECK(contains(page, fmt::format("![{0}]({0})", picture.file)));
  }
  CHECK(contains(page, "\n| 6 (seen) | four, 1 | gpipe | balanced | 2 | – | 20.00 ms |"));
  CHECK(contains(page, "| exact | -50.0 % (lane0) |"));
  CHECK(contains(page, "| **missed** | four batch 1, naive, 4 micro-batches |"));

  const char* checker = std::getenv("STAGELINE_WELLFORMED");
  if (!checker) {
    MESSAGE("skipped: STAGELINE_WELLFORMED does not name wellformed.py");
    return;
  }
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("stageline-replay-{}", static_cast<const void*>(&small));
  std::filesystem::create_directories(folder);
  std::string command = fmt::format("python3 '{}'", checker);
  for (const lab::Picture& picture : pictures) {
    write_file((folder / picture.file).string(), picture.svg);
    command += fmt::format(" '{}'", (folder / picture.file).string());
  }
  CHECK(std::system(command.c_str()) == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("the JSON has every figure, and null where there is none") {
  const Replayed small;
  const auto json = nlohmann::json::parse(lab::replay_json(small.evidence, small.judgement));
  CHECK(json["held_out"]["cases"] == 5);
  CHECK(json["held_out"]["worst_error"]["case"] == 2);
  CHECK(json["held_out"]["ranking"]["discordant"] == 1);
  CHECK(json["held_out"]["ranking"]["worst"]["slower_case"] == 1);
  CHECK(json["calibrated"]["ranking"]["tau"].is_null());
  CHECK(json["calibrated"]["worst_error"]["case"] == 5);
  CHECK(json["calibrated"]["worst_peak_error"].is_null());
  REQUIRE(json["cases"].size() == 6);
  const auto& gpipe = json["cases"][0];
  CHECK(gpipe["predicted_ps"] == 30'000'000'000);
  CHECK(gpipe["measured_s"] == 0.025);
  CHECK(gpipe["noise_ps"] == 2'000'000'000);
  CHECK(gpipe["stash_error_bytes"] == 0);
  CHECK(gpipe["per_device"][1]["name"] == "lane1");
  CHECK(gpipe["per_device"][1]["measured_busy_ps"] == 23'000'000'000);
  CHECK(gpipe["per_device"][0]["predicted_peak_bytes"] == 25'000'000);
  CHECK(json["cases"][1]["peak_error"].is_null());
  CHECK(gpipe["per_device"][0]["measured_peaks_bytes"] ==
        nlohmann::json({45'000'000, 55'000'000, 50'000'000}));
  CHECK(gpipe["per_device"][0]["measured_stashes_bytes"] ==
        nlohmann::json({8'100'000, 8'000'000, 8'100'000}));
  CHECK(gpipe["peak_beyond_runs"] == -0.4);
  CHECK(json["cases"][1]["per_device"][0]["measured_peaks_bytes"].empty());
}

}  // namespace stageline::report_tests
