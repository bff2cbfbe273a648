// Simulates the scenarios of a sweep.
#include "tools/sweep/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/csv_cell.hpp"
#include "tools/base/parallel.hpp"
#include "tools/compare/trial.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/inputs/setting_alike.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/study/cases_at_a_time.hpp"
#include "tools/study/study.hpp"
#include "tools/sweep/made_once.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_models = 64;
constexpr std::size_t most_settings = 256;
constexpr std::int64_t usual_block = 16;
constexpr std::int64_t drawn_block = 4096;  // of scenarios that share one compiled graph
constexpr std::int64_t probes = 32;
constexpr std::int64_t usual_scenarios = 1000;  // as compare draws them

bool names_scenario(std::string_view key) { return key == "scenario"; }

template <class Decides>
std::string key_of(const std::vector<SettingWord>& words, Decides decides) {
  std::string key;
  for (const SettingWord& word : words) {
    if (decides(word.key)) key += word.key + "=" + word.text + '\0';
  }
  return key;
}

// Whether rows have columns of a distribution, or of one scenario.
struct Uncertain {
  bool any = false;
  bool one = false;
};

Uncertain uncertain_columns(const SweepSpec& spec) {
  Uncertain found;
  const auto look = [&](const std::string& key) {
    for (const char* const one : {"jitter", "sometimes_slow", "pause", "perturb"}) {
      found.any = found.any || key == one;
    }
    found.one = found.one || key == "scenario";
  };
  for (const SettingWord& word : spec.fixed) look(word.key);
  for (const SweepAxis& axis : spec.axes) look(axis.name);
  return found;
}

struct CsvWords {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(Time time) const { return std::to_string(time.count()); }
  std::string operator()(Bytes bytes) const { return std::to_string(bytes.count); }
  template <class Value>
  std::string operator()(const Value& value) const {
    return fmt::format("{}", value);
  }
};

std::string csv_words(const report::FigureValue& value) { return std::visit(CsvWords(), value); }

}  // namespace

struct SweepRunner::Kept {
  MadeOnce<Model> models{most_models};
  MadeOnce<Setting> settings{most_settings};
  Judge judge;

  std::shared_ptr<const Setting> setting(const std::vector<SettingWord>& words,
                                         const SettingRequest& request) {
    // A program says how many devices there are.
    const std::string key = fmt::format("{}devices of a program={}", key_of(words, decides_setting),
                                        given_devices(request.schedules));
    return settings.get(key, [&] {
      std::optional<Setting> first;
      const std::shared_ptr<const Model> model = models.get(key_of(words, decides_model), [&] {
        first = read_setting(request);
        return first->model;
      });
      return first ? *std::move(first) : read_setting_of(request, *model);
    });
  }

  Case case_of(const std::vector<SettingWord>& words, const SweepQuestion& question) {
    const SettingRequest& request = question.request.setting;
    const std::shared_ptr<const Setting> opened = setting(words, request);
    return planner::searched_case(request, *opened, question.request.setting.schedules.front(),
                                  opened->device_counts.front());
  }

  // The rows of scenarios that differ in `scenario` alone, or of one question.
  void answer(const std::vector<SettingWord>& words, std::vector<SweepRow>& rows) {
    SweepQuestion question;
    try {
      question = question_of(words);
      answer(question, case_of(words, question), rows);
    } catch (const UsageError& error) {
      refuse(rows, error.what());
    } catch (const ProgramError& error) {
      refuse(rows, fmt::format("{}: {}", title(question.request.setting.schedules.front()),
                               error.what()));
    } catch (const Deadlock& error) {
      refuse(rows, error.what());
    } catch (const TraceError& error) {
      refuse(rows, error.what());
    } catch (const std::exception& error) {  // such as no memory: other rows may do with less
      refuse(rows, error.what());
    }
  }

 private:
  static void refuse(std::vector<SweepRow>& rows, const std::string& why_not) {
    for (SweepRow& row : rows) {
      row.verdict.reset();
      row.drawn.reset();
      row.distribution.reset();
      row.why_not = why_not;
    }
  }

  void answer(const SweepQuestion& question, const Case& asked, std::vector<SweepRow>& rows) {
    const Verdict verdict = judge.verdict(asked);
    for (SweepRow& row : rows) row.verdict = verdict;
    ScenarioRequest drawn;
    drawn.perturbation = perturbation_of(question);
    if (drawn.perturbation.none()) {
      if (!asks_for_scenarios(question)) return;
      const Time step = verdict.step;
      for (SweepRow& row : rows) {
        if (question.scenario) {
          row.drawn = step;
        } else {
          row.distribution = Distribution{step, Time{}, step, step, step, step};
        }
      }
      return;
    }
    drawn.scenarios = question.scenarios.value_or(usual_scenarios);
    drawn.threads = 1;
    drawn.traced = 0;
    drawn.freeze = question.freeze;
    const Outcome nominal = study(asked);
    if (!question.scenario) {
      rows.front().distribution = distribution_of(scenario_steps(asked, nominal, drawn).step);
      return;
    }
    constexpr std::int64_t width = 16;
    drawn.first = *question.scenario / width * width;
    drawn.scenarios = *question.scenario - drawn.first + static_cast<std::int64_t>(rows.size());
    const std::vector<Time> steps = scenario_steps(asked, nominal, drawn).step;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].drawn = steps[steps.size() - rows.size() + i];
    }
  }
};

SweepRunner::SweepRunner(SweepSpec spec, FileContents files)
    : spec_(std::move(spec)), files_(std::move(files)), kept_(std::make_unique<Kept>()) {}
SweepRunner::~SweepRunner() = default;

std::vector<SweepRow> SweepRunner::rows(std::int64_t first, std::int64_t count,
                                        const std::atomic<bool>* stop) {
  const ProvidedFiles provided(files_);
  std::vector<SweepRow> all;
  std::vector<SweepRow> alike;  // with words that differ in `scenario` alone, which counts up
  std::vector<SettingWord> words;
  std::int64_t next = 0;
  const auto finish = [&] {
    if (alike.empty()) return;
    kept_->answer(words, alike);
    for (SweepRow& row : alike) all.push_back(std::move(row));
    alike.clear();
  };
  for (std::int64_t number = first; number < first + count; ++number) {
    if (stop != nullptr && stop->load()) break;
    SweepRow row;
    row.number = number;
    row.values = axis_values(spec_, number);
    std::vector<SettingWord> asked = words_of(spec_, row.values);
    const auto scenario = std::find_if(asked.begin(), asked.end(), [](const SettingWord& word) {
      return names_scenario(word.key);
    });
    const bool counted = scenario != asked.end();
    bool same = counted && !alike.empty() && words.size() == asked.size() &&
                scenario->text == std::to_string(next);
    for (std::size_t i = 0; same && i < words.size(); ++i) {
      same = names_scenario(asked[i].key) || asked[i] == words[i];
    }
    if (same) {
      ++next;
      alike.push_back(std::move(row));
      continue;
    }
    finish();
    alike.push_back(std::move(row));
    if (counted) next = std::strtoll(scenario->text.c_str(), nullptr, 10) + 1;
    words = std::move(asked);
  }
  if (stop == nullptr || !stop->load()) finish();
  return all;
}

std::int64_t SweepRunner::block() const {
  return uncertain_columns(spec_).one ? drawn_block : usual_block;
}

// Numbers of scenarios evenly over the sweep.
std::vector<std::int64_t> SweepRunner::probed() const {
  const std::int64_t count = spec_.scenarios();
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < std::min(count, probes); ++i) {
    numbers.push_back(count <= probes ? i : i * ((count - 1) / (probes - 1)));
  }
  return numbers;
}

int SweepRunner::at_a_time(int workers) {
  const ProvidedFiles provided(files_);
  double largest = 1;
  for (const std::int64_t number : probed()) {
    try {
      const std::vector<SettingWord> words = words_of(spec_, axis_values(spec_, number));
      const SweepQuestion question = question_of(words);
      const SettingRequest& request = question.request.setting;
      const auto opened = kept_->setting(words, request);
      largest = std::max(largest, case_size(request, *opened, opened->device_counts.front()));
    } catch (const std::runtime_error&) {  // its row will say so
    }
  }
  return cases_at_a_time(largest, workers);
}

std::vector<std::string> SweepRunner::notes() {
  const ProvidedFiles provided(files_);
  std::vector<std::pair<std::string, int>> found;  // with how many settings have it
  int settings = 0;
  for (const std::int64_t number : probed()) {
    try {
      const std::vector<SettingWord> words = words_of(spec_, axis_values(spec_, number));
      const auto opened = kept_->setting(words, question_of(words).request.setting);
      ++settings;
      for (std::string& note : stageline::notes(*opened)) {
        const auto known = std::find_if(found.begin(), found.end(),
                                        [&](const auto& one) { return one.first == note; });
        if (known == found.end()) {
          found.emplace_back(std::move(note), 1);
        } else {
          ++known->second;
        }
      }
    } catch (const std::runtime_error&) {  // its row says so
    }
  }
  std::vector<std::string> said;
  for (const auto& [note, times] : found) {
    said.push_back(times == settings ? note : "in some scenarios: " + note);
  }
  return said;
}

void SweepRunner::probe() {
  const ProvidedFiles provided(files_);
  std::string shared;
  for (const std::int64_t number : probed()) {
    const std::vector<SettingWord> words = words_of(spec_, axis_values(spec_, number));
    try {
      const SweepQuestion question = question_of(words);
      kept_->case_of(words, question);
      return;
    } catch (const UsageError& error) {
      if (!shared.empty() && shared != error.what()) return;
      shared = error.what();
    } catch (const TraceError& error) {
      if (!shared.empty() && shared != error.what()) return;
      shared = error.what();
    } catch (const ProgramError&) {
      return;
    } catch (const Deadlock&) {
      return;
    }
  }
  throw UsageError(shared);
}

std::vector<SweepRow> run_scenarios(const SweepSpec& spec, std::int64_t first, std::int64_t count,
                                    int workers) {
  if (first < 0 || count < 0 || first + count > spec.scenarios()) {
    throw UsageError(fmt::format("the sweep has scenarios 0 to {}, not {} to {}",
                                 spec.scenarios() - 1, first, first + count - 1));
  }
  SweepRunner runner(spec);
  const std::int64_t block = runner.block();
  const auto blocks = static_cast<std::size_t>((count + block - 1) / block);
  std::vector<std::vector<SweepRow>> parts(blocks);
  in_parallel(blocks, runner.at_a_time(workers), [&](std::size_t i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * block;
    parts[i] = runner.rows(first + begin, std::min(block, count - begin));
  });
  std::vector<SweepRow> all;
  for (std::vector<SweepRow>& part : parts) {
    for (SweepRow& row : part) all.push_back(std::move(row));
  }
  return all;
}

std::vector<std::string> sweep_columns(const SweepSpec& spec) {
  std::vector<std::string> columns{"number"};
  for (const SweepAxis& axis : spec.axes) columns.push_back(axis.name);
  for (const report::FigureRow& figure : report::all_figures()) {
    if (figure.of_verdict != nullptr) columns.emplace_back(figure.sweep);
  }
  const Uncertain uncertain = uncertain_columns(spec);
  if (uncertain.one) {
    columns.emplace_back("drawn_step_ps");
  } else if (uncertain.any) {
    for (const char* const name :
         {"mean_ps", "deviation_ps", "p5_ps", "p50_ps", "p95_ps", "p99_ps"}) {
      columns.emplace_back(name);
    }
  }
  columns.emplace_back("why_not");
  return columns;
}

std::string csv_header(const SweepSpec& spec) {
  std::string line;
  for (const std::string& name : sweep_columns(spec)) {
    line += (line.empty() ? "" : ",") + csv_cell(name);
  }
  return line + "\n";
}

std::string csv_line(const SweepSpec& spec, const SweepRow& row) {
  const auto whole = [](std::int64_t value) { return fmt::format(",{}", value); };
  std::string line = fmt::format("{}", row.number);
  for (const std::string& value : row.values) line += "," + csv_cell(value);
  for (const report::FigureRow& figure : report::all_figures()) {
    if (figure.of_verdict == nullptr) continue;
    line += "," + (row.verdict ? csv_words(figure.of_verdict(*row.verdict)) : "");
  }
  const Uncertain uncertain = uncertain_columns(spec);
  if (uncertain.one) {
    line += row.drawn ? whole(row.drawn->count()) : ",";
  } else if (uncertain.any) {
    const auto& d = row.distribution;
    for (const Time Distribution::*const time :
         {&Distribution::mean, &Distribution::deviation, &Distribution::p5, &Distribution::p50,
          &Distribution::p95, &Distribution::p99}) {
      line += d ? whole(((*d).*time).count()) : ",";
    }
  }
  return line + "," + csv_cell(row.why_not) + "\n";
}

}  // namespace stageline
