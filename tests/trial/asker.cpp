#include "tests/trial/asker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/questions/answers.hpp"
#include "tests/questions/ask.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::trial {
namespace {

const SettingRow& row_of(const std::string& flag) {
  for (const SettingRow& row : setting_rows()) {
    if (row.flag() == flag) return row;
  }
  throw std::logic_error("no setting has the flag " + flag);
}

}  // namespace

void Asker::count(bool answered) {
  ++counts_.asked;
  counts_.answered += answered ? 1 : 0;
}

std::optional<std::string> Asker::text(const Words& words, bool differences) {
  const test::Answer answer = test::ask(words);
  const bool answered = answer.exit_code == 0 || answer.exit_code == 1;
  count(answered);
  const auto contradict = [&](const std::string& what) {
    throw Contradiction{fmt::format("{}: {}", test::typed(words), what)};
  };
  if (!answered && answer.exit_code != 2) {
    contradict(fmt::format("exit code {}: {}", answer.exit_code, answer.err));
  }
  if (!answered) {
    const auto lines = std::count(answer.err.begin(), answer.err.end(), '\n');
    if (!answer.out.empty() || !answer.err.starts_with("stageline: ") || lines != 1) {
      contradict("is not refused in one sentence: " + answer.err + answer.out.substr(0, 200));
    }
    return std::nullopt;
  }
  if (std::string found = test::nonsense(answer.out, differences); !found.empty()) {
    contradict("the answer has …" + found + "…");
  }
  return answer.out;
}

std::optional<Json> Asker::json(const Words& words) {
  Words asked = words;
  asked.insert(asked.end(), {"--json", "-"});
  const auto answer = text(asked, true);
  if (!answer) return std::nullopt;
  Json found = Json::parse(*answer, nullptr, false);
  const auto contradict = [&](const std::string& what) {
    throw Contradiction{fmt::format("{}: {}", test::typed(asked), what)};
  };
  if (found.is_discarded()) contradict("is not JSON: " + answer->substr(0, 200));
  if (std::string wrong = test::wrong_number(found, ""); !wrong.empty()) contradict(wrong);
  return found;
}

std::optional<Json> Asker::simulate(const Question& question) {
  return json(command("simulate", {"--no-changes"}, question));
}

Words command(const std::string& name, const Words& flags, const Question& question) {
  Words all{name};
  all.insert(all.end(), flags.begin(), flags.end());
  const Words words = question.words();
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string request_of(const Question& question) {
  Json request{{"trace", question.trace()}};
  for (const Setting& setting : question.settings) {
    const SettingRow& row = row_of(setting.flag);
    Json& value = request[std::string(row.key)];
    switch (row.form) {
      case SettingForm::count:
      case SettingForm::counts:
        value = std::stoll(setting.value);
        break;
      case SettingForm::number:
        value = std::stod(setting.value);
        break;
      case SettingForm::yes:
        value = true;
        break;
      case SettingForm::text:
      case SettingForm::word:
      case SettingForm::file:
      case SettingForm::texts:
      case SettingForm::amount:
        value = setting.value;
        break;
    }
  }
  return request.dump();
}

std::int64_t step_of(const Json& row) { return row.at("step_time_ps").get<std::int64_t>(); }

}  // namespace stageline::trial
