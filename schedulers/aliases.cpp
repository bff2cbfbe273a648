// Reads the schedule names of other tools. A new alias is a line of the table.
#include "schedulers/aliases.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "sim/base/nearest.hpp"

namespace stageline {
namespace {

constexpr ScheduleAlias aliases[] = {
    // PyTorch, torch.distributed.pipelining.schedules
    {"zbvzerobubble", "zb_v"},
    {"interleavedzerobubble", "interleaved_zb"},
    {"scheduleloopedbfs", "looped_bfs:reverse=yes"},  // the class, not the paper's order
    // Megatron-LM, core/pipeline_parallel/schedules.py, and its flags
    {"forwardbackwardpipeliningwithoutinterleaving", "1f1b"},
    {"forwardbackwardpipeliningwithinterleaving", "interleaved_1f1b"},
    {"interleaved", "interleaved_1f1b"},
    {"virtualpipeline", "interleaved_1f1b"},
    {"vpp", "interleaved_1f1b"},
    // DeepSpeed, runtime/pipe/schedule.py
    {"trainschedule", "1f1b"},
    // sail-sg, zero-bubble-pipeline-parallelism
    {"1f1binterleaved", "interleaved_1f1b"},
    {"zb1p", "zb_auto:limit=p"},
    {"zb2p", "zb_auto:limit=2p"},
    {"cutinhalf", "dualpipe_v"},
    // Paddle, passes/pipeline_scheduler_pass
    {"fthenb", "gpipe"},
    // Papers
    {"afab", "gpipe"},
    {"allforwardallbackward", "gpipe"},
    {"filldrain", "gpipe"},
    {"pipedreamflush", "1f1b"},
    {"bpipe", "1f1b:stashes=paired"},
    {"2bw", "pipedream_2bw"},
    {"bfs", "looped_bfs"},
    {"breadthfirst", "looped_bfs"},
    {"wave", "hanayo"},
    {"sequential", "naive"},
    {"modelparallel", "naive"},
};

constexpr std::string_view class_word = "schedule";  // of PyTorch's class names

// Letters in lower case, and digits.
std::string word_of(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    }
  }
  return word;
}

std::string without_class_word(const std::string& word) {
  if (word.starts_with(class_word)) return word.substr(class_word.size());
  if (word.ends_with(class_word)) return word.substr(0, word.size() - class_word.size());
  return word;
}

std::string spec_of(const std::string& word) {
  for (const Scheduler* const one : schedulers()) {
    if (word_of(one->name) == word) return std::string(one->name);
  }
  for (const ScheduleAlias& alias : aliases) {
    if (alias.word == word) return std::string(alias.spec);
  }
  return "";
}

}  // namespace

std::span<const ScheduleAlias> schedule_aliases() { return aliases; }

std::string read_schedule_name(const std::string& name) {
  for (const Scheduler* const one : schedulers()) {
    if (one->name == name) return name;
  }
  const std::string word = word_of(name);
  const std::string spec = spec_of(word);
  return spec.empty() ? spec_of(without_class_word(word)) : spec;
}

std::string did_you_mean_schedule(const std::string& name) {
  std::vector<std::string> words;
  for (const Scheduler* const one : schedulers()) words.push_back(word_of(one->name));
  for (const ScheduleAlias& alias : aliases) words.emplace_back(alias.word);
  const std::string found = nearest(without_class_word(word_of(name)), words);
  return found.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", spec_of(found));
}

std::vector<std::string> read_as_notes(const std::vector<std::string>& lists) {
  std::vector<std::string> notes;
  for (const std::string& list : lists) {
    if (list.find('\n') != std::string::npos) continue;  // the text of a program
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string item = list.substr(at, end - at);
      at = end + 1;
      const std::string name = item.substr(0, item.find(':'));
      if (name.find('=') != std::string::npos || name == "all" || is_program_path(item)) continue;
      const std::string spec = read_schedule_name(name);
      if (spec.empty() || spec == name) continue;
      std::string note = fmt::format("the schedule {} is read as {}", name, spec);
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
        notes.push_back(std::move(note));
      }
    }
  }
  return notes;
}

}  // namespace stageline
