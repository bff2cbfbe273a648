// Is every drawn figure true? Reads the comments of schedulers/*.cpp and runs what they describe:
//
//     // figure: stages 4, microbatches 8, F 1, I 1, W 1
//     //   0 |0123 ...
//
// Other words of the line: `devices`, `stages` (of a scheduler that assigns them), `steps`, knobs
// of the scheduler; a time may differ by stage, "F 3/1". The comment ends where the rows do.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/index.hpp"
#include "sim/text/figure.hpp"
#include "tests/make.hpp"

namespace stageline::figures_tests {
namespace {

struct Drawn {
  std::string scheduler;
  std::map<std::string, std::string> words;
  std::string rows;
};

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::vector<Drawn> figures_of(const std::filesystem::path& file) {
  std::vector<Drawn> figures;
  std::ifstream in(file);
  std::string line;
  std::string name;
  bool open = false;
  while (std::getline(in, line)) {
    if (line.rfind("// figure: ", 0) == 0) {
      Drawn drawn;
      std::istringstream items(line.substr(11));
      std::string item;
      while (std::getline(items, item, ',')) {
        item = trimmed(item);
        const std::size_t blank = item.find(' ');
        REQUIRE_MESSAGE(blank != std::string::npos, file.string() << ": \"" << item << "\"");
        drawn.words[item.substr(0, blank)] = trimmed(item.substr(blank));
      }
      figures.push_back(drawn);
      open = true;
    } else if (open && line.find(" |") != std::string::npos && line.rfind("// ", 0) == 0) {
      figures.back().rows += line.substr(3) + "\n";
    } else {
      open = false;
      const std::string foot = "const Scheduler ";
      if (line.rfind(foot, 0) == 0) {
        std::getline(in, name);
        name = name.substr(name.find('"') + 1);
        name = name.substr(0, name.find('"'));
      }
    }
  }
  for (Drawn& drawn : figures) drawn.scheduler = name;
  return figures;
}

// "3/1" by stage; the last value goes on.
std::vector<Time> by_stage(const std::string& text, int stages) {
  std::vector<Time> times;
  std::istringstream items(text);
  std::string item;
  while (std::getline(items, item, '/')) times.push_back(Time{std::stoi(item)});
  times.resize(as_size(stages), times.back());
  return times;
}

std::string draw(Drawn drawn) {
  const auto take = [&](const std::string& key, const std::string& fallback) {
    const auto found = drawn.words.find(key);
    if (found == drawn.words.end()) return fallback;
    const std::string value = found->second;
    drawn.words.erase(found);
    return value;
  };
  const std::string units = take("stages", "");
  const int devices = std::stoi(take("devices", units.empty() ? "4" : units));
  const int microbatches = std::stoi(take("microbatches", "8"));
  const int steps = std::stoi(take("steps", "1"));
  const std::string forward = take("F", "1");
  const std::string input_grad = take("I", "1");
  const std::string weight_grad = take("W", "1");
  std::string text = drawn.scheduler;
  for (const auto& [knob, value] : drawn.words) {
    text += (text == drawn.scheduler ? ":" : ",") + knob + "=" + value;
  }
  const ScheduleSpec spec = test::spec(text);
  const bool assigns = spec.scheduler->assign != nullptr;
  const int stages = assigns && !units.empty() ? std::stoi(units) : test::stages_for(spec, devices);
  Costs costs = uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
  for (int s = 0; s < stages; ++s) {
    const auto at = as_size(s);
    StageCosts& stage = costs.stage[at];
    stage.forward = stage.recompute = by_stage(forward, stages)[at];
    stage.input_grad = by_stage(input_grad, stages)[at];
    stage.weight_grad = by_stage(weight_grad, stages)[at];
    stage.backward = stage.input_grad + stage.weight_grad;
  }
  test::connect_shares(spec, devices, costs, Bytes{}, Bytes{});
  const Problem problem = test::problem_for(spec, devices, costs, microbatches, steps);
  const test::Ran ran = test::run_program(spec.scheduler->schedule(problem), costs);
  return figure(ran.timeline, {Time{1}, 0, false});
}

TEST_CASE("every scheduler's header comment draws what the scheduler does") {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  std::map<std::string, int> drawn;
  for (const auto& file :
       std::filesystem::directory_iterator(source + std::string("/schedulers"))) {
    if (file.path().extension() != ".cpp") continue;
    for (const Drawn& one : figures_of(file.path())) {
      CAPTURE(file.path().filename().string());
      CHECK(one.rows == draw(one));
      ++drawn[one.scheduler];
    }
  }
  for (const Scheduler* const one : schedulers()) {
    CHECK_MESSAGE(drawn[std::string(one->name)] > 0, one->name << " has no figure");
  }
}

}  // namespace
}  // namespace stageline::figures_tests
