// Short names for trainings: the settings that distinguish them, and no more.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/lab/training/time_to_accuracy.hpp"

namespace stageline::lab {
namespace {

bool is_pipelined(const TrainingSettings& settings) {
  return settings.pipelined > 0 && settings.devices > 1;
}

std::string counted(std::int64_t count, const std::string& noun, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? noun : many);
}

// One setting as text.
struct Aspect {
  std::string (*words)(const TrainingSettings&);
  bool of_pipeline;  // irrelevant where nothing is pipelined
  bool follows;      // usually follows from others; used only where these do not distinguish curves
};

std::string switch_words(const TrainingSettings& s) {
  if (s.pipelined == s.steps) return "all pipelined";
  return fmt::format("switch at {}", s.pipelined);
}
std::string correction_words(const TrainingSettings& s) {
  return s.correction == "none" ? "no correction" : s.correction;
}

constexpr Aspect aspects[] = {
    {[](const TrainingSettings& s) { return s.schedule; }, true, false},
    {correction_words, true, false},
    {switch_words, true, false},
    {[](const TrainingSettings& s) { return s.model; }, false, false},
    {[](const TrainingSettings& s) { return s.data; }, false, false},
    {[](const TrainingSettings& s) { return fmt::format("batch {}", s.batch); }, false, false},
    {[](const TrainingSettings& s) { return s.optimizer; }, false, false},
    {[](const TrainingSettings& s) { return s.recipe; }, false, false},
    {[](const TrainingSettings& s) { return s.number_format; }, false, false},
    {[](const TrainingSettings& s) { return counted(s.steps, "step", "steps"); }, false, false},
    {[](const TrainingSettings& s) { return "priced by " + s.trace; }, false, false},
    {[](const TrainingSettings& s) { return s.partition; }, true, true},
    {[](const TrainingSettings& s) { return "weights " + s.weights; }, true, true},
    {[](const TrainingSettings& s) { return counted(s.devices, "device", "devices"); }, true, true},
    {[](const TrainingSettings& s) {
       return counted(s.microbatches, "micro-batch", "micro-batches");
     },
     false, true},
};

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(", ", at), text.size());
    list.push_back(text.substr(at, comma - at));
    at = comma + 2;
  }
  return list;
}

// The pieces of texts like "rate 0.05, momentum 0.9" that are not in all of them; all texts whole
// where that would leave one of them empty.
std::vector<std::string> shortest_names(const std::vector<std::string>& texts) {
  std::map<std::string, std::size_t> in;  // number of texts that contain a piece
  for (const std::string& text : texts) {
    const std::vector<std::string> list = pieces(text);
    for (const std::string& piece : std::set<std::string>(list.begin(), list.end())) ++in[piece];
  }
  std::vector<std::string> made;
  for (const std::string& text : texts) {
    std::string rest;
    for (const std::string& piece : pieces(text)) {
      if (in[piece] == texts.size()) continue;
      rest += (rest.empty() ? "" : ", ") + piece;
    }
    if (rest.empty()) return texts;
    made.push_back(rest);
  }
  const auto kinds = [](const std::vector<std::string>& of) {
    return std::set<std::string>(of.begin(), of.end()).size();
  };
  return kinds(made) == kinds(texts) ? made : texts;
}

// Appends to the names of `which` the values of one aspect, if they differ.
void add_aspect(std::vector<std::string>& names, const std::vector<TrainingSettings>& settings,
                const std::vector<std::size_t>& which, const Aspect& aspect) {
  if (which.empty()) return;
  std::vector<std::string> words;
  for (const std::size_t i : which) words.push_back(aspect.words(settings[i]));
  const auto differs = [&](const std::string& word) { return word != words.front(); };
  if (std::none_of(words.begin(), words.end(), differs)) return;
  words = shortest_names(words);
  for (std::size_t i = 0; i < which.size(); ++i) {
    std::string& name = names[which[i]];
    name += (name.empty() ? "" : ", ") + (words[i].empty() ? "(none)" : words[i]);
  }
}

// The members of `which` that still share a name, by that name.
std::vector<std::vector<std::size_t>> namesakes(const std::vector<std::string>& names,
                                                const std::vector<std::size_t>& which) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (const std::size_t i : which) by_name[names[i]].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [name, group] : by_name) {
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

TrainingSettings without_pipeline(TrainingSettings settings) {
  settings.schedule = settings.partition = settings.weights = settings.correction = "";
  settings.devices = 1;
  settings.pipelined = 0;
  return settings;
}

std::vector<std::string> curve_names(const std::vector<TrainingSettings>& settings) {
  std::vector<std::string> names(settings.size());
  std::vector<std::size_t> all;
  std::vector<std::size_t> pipelined;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    all.push_back(i);
    if (is_pipelined(settings[i])) {
      pipelined.push_back(i);
    } else {
      names[i] = "non-pipelined";
    }
  }
  for (const Aspect& aspect : aspects) {
    const std::vector<std::size_t>& which = aspect.of_pipeline ? pipelined : all;
    if (!aspect.follows) {
      add_aspect(names, settings, which, aspect);
      continue;
    }
    for (const auto& group : namesakes(names, which)) add_aspect(names, settings, group, aspect);
  }
  for (const std::size_t i : pipelined) {
    if (names[i].empty()) names[i] = settings[i].schedule;
  }
  // Trainings without a pipeline that were started under different schedules.
  for (const auto& group : namesakes(names, all)) {
    for (const Aspect& aspect : aspects) {
      if (aspect.of_pipeline) add_aspect(names, settings, group, aspect);
    }
  }
  return names;
}

}  // namespace stageline::lab
