// Spells a row's question.
#include "tools/published/asked_again.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cost_models/recomputation.hpp"
#include "tools/base/text.hpp"

namespace stageline {

std::vector<QuestionWord> words_of(const Question& question) {
  const SettingRequest& setting = question.request.setting;
  std::vector<QuestionWord> words;
  const auto add = [&words](const char* key, std::string text) {
    words.push_back({key, std::move(text)});
  };
  const auto add_number = [&](const char* key, int number, int otherwise) {
    if (number != otherwise) add(key, fmt::format("{}", number));
  };
  add("trace", setting.trace);
  add("cluster", setting.cluster.cluster);
  for (const ScheduleSpec& spec : question.request.setting.schedules)
    add("schedule", spelled(spec));
  if (setting.partition != SettingRequest{}.partition) add("partition", setting.partition);
  add_number("microbatch_size", setting.microbatch_size, 0);
  add_number("microbatches", setting.microbatches, 0);
  const Degrees& degrees = setting.degrees;
  add_number("tp", degrees.tensor, 1);
  add_number("cp", degrees.context, 1);
  add_number("ep", degrees.expert, 1);
  add_number("etp", degrees.expert_tensor, 0);
  add_number("dp", degrees.data, 1);
  add("pp", fmt::format("{}", degrees.pipeline));
  if (degrees.zero != Zero::none) add("zero", std::string(name(degrees.zero)));
  if (!degrees.precision.name.empty()) add("precision", std::string(degrees.precision.name));
  if (setting.messages) add("messages", std::string(name(*setting.messages)));
  if (setting.buckets != SettingRequest{}.buckets) add("buckets", setting.buckets);
  if (setting.sequence_parallel) add("sequence_parallel", "true");
  if (!setting.recomputation.parts.empty()) add("recompute", print(setting.recomputation));
  if (setting.recomputation.start) {
    add("recompute_start", std::string(name(*setting.recomputation.start)));
  }
  if (!setting.calibration.empty()) add("calibration", setting.calibration);
  return words;
}

std::string command_of(const Question& question) {
  // --cluster is that of the whole machines, of which a row may use a part.
  const Degrees& degrees = question.request.setting.degrees;
  std::string flags = fmt::format(
      " --devices {}", degrees.tensor * degrees.context * degrees.data * degrees.pipeline);
  for (const QuestionWord& word : words_of(question)) {
    if (word.key == "trace") continue;
    std::string flag = word.key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    flags += " --" + flag;
    if (word.key != "sequence_parallel") flags += " " + shell_word(word.text);
  }
  return "stageline compare " + shell_word(question.request.setting.trace) + flags;
}

}  // namespace stageline
