// Does a language model's report speak of tokens, MFU and money, and another model's of none?
#include "tools/report/text/training.hpp"

#include <doctest/doctest.h>

#include "tools/base/amounts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/index.hpp"
#include "tests/text.hpp"
#include "tools/base/text.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/outcome_tables.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::training_tests {
namespace {

using test::contains;

SettingRequest request_of_uniform() {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,batch=2";
  request.devices = {4};
  request.microbatches = 8;
  return request;
}

// A step of 66 ms with 16 sequences of 1024 tokens; a device does 1 TFLOP/s of 2 while it is busy.
Setting language_setting() {
  Setting setting = read_setting(request_of_uniform());
  setting.model.name = "tiny";
  setting.model.sample = "sequence";
  setting.model.tokens = 1024;
  setting.model.parameters = 70'553'706'496;
  setting.model.peak_flops = 2e12;
  for (Layer& layer : setting.model.layers) {
    layer.forward_flops = 1'000'000'000;
    layer.backward_flops = 2'000'000'000;
  }
  return setting;
}

Case case_of(const Setting& setting, const std::string& schedule = "1f1b") {
  return make_case(request_of_uniform(), setting, parse_schedules(schedule).front(), 4);
}

struct Compared {
  std::vector<Row> rows;
  RankedRows order;
};

Compared compared(const Setting& setting, const std::string& schedules,
                  const TrainingBudget& budget = {}) {
  Compared all{compare(request_of_uniform(), setting, parse_schedules(schedules), 0, {},
                       Keep::spans, nullptr, budget),
               {}};
  all.order = ranked(all.rows, Synchrony::synchronous);
  return all;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool has_column(const std::string& text, const std::string& title) {
  return contains("  " + first_line(text) + "  ", "  " + title + "  ");
}

}  // namespace

TEST_CASE("counts have four digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(975) == "975");
  CHECK(count_text(999.9) == "999.9");
  CHECK(count_text(999.99) == "1k");
  CHECK(count_text(6442) == "6.442k");
  CHECK(count_text(999'999) == "1M");
  CHECK(count_text(1'012'345) == "1.012M");
  CHECK(count_text(70'553'706'496) == "70.55B");
  CHECK(count_text(15e12) == "15T");
  CHECK(count_text(2.5e16) == "25000T");
  CHECK(dollars_text(12.5) == "$12.50");
  CHECK(dollars_text(999.999) == "$1k");
  CHECK(dollars_text(2'531'000) == "$2.531M");
  CHECK(report::days_text(0.05 / 86400) == "0.05 seconds");
  CHECK(report::days_text(73.8 / 86400) == "73.8 seconds");
  CHECK(report::days_text(0.05) == "72.0 minutes");
  CHECK(report::days_text(1.5) == "36.0 hours");
  CHECK(report::days_text(42.04) == "42.0 days");
  CHECK(report::days_text(5165) == "14.1 years");
}

TEST_CASE("the lines of a training") {
  const Setting setting = language_setting();
  const Case asked = case_of(setting);
  const Outcome outcome = study(asked);
  // 248,242 tokens/s: 15T take 16,784.7 hours, or 699.4 days.
  const TrainingBudget budget{15e12, 2.5};
  const TrainingRates rates = training_rates(asked, outcome, budget);
  CHECK(report::training_lines(asked, outcome, rates, budget) ==
        "tokens         248.2k/s · 62.06k/s a GPU · 16.38k a step\n"
        "FLOPs          727.3 GFLOP/s a GPU · MFU 36.4 % · HFU 36.4 % of 2.0 TFLOP/s\n"
        "communication  idle for messages 0.0 %, for reductions 0.0 % · exposed 0.0 %\n"
        "training       15T tokens: 67.14k GPU-hours, 699.4 days on 4 GPUs · $167.8k at $2.50 an "
        "hour and GPU\n");
  const TrainingBudget unpriced{15e12, std::nullopt};
  CHECK(contains(
      report::training_lines(asked, outcome, training_rates(asked, outcome, unpriced), unpriced),
      "on 4 GPUs · cost unknown: give --price\n"));
  CHECK(report::rates_words(rates) == "62.06k tokens/s a GPU · MFU 36.4 %");

  const Setting images = read_setting(request_of_uniform());
  const Case plain = case_of(images);
  const Outcome other = study(plain);
  CHECK(report::training_lines(plain, other, training_rates(plain, other), {}).empty());
  CHECK(report::rates_words(training_rates(plain, other)).empty());
}

TEST_CASE("the heading counts parameters and tokens where there are any") {
  const Setting setting = language_setting();
  const std::string text = report::heading(setting, case_of(setting));
  CHECK(contains(text, "tiny · 70.55B parameters · 8 layers · "));
  CHECK(contains(text, " · 8 micro-batches of 2 sequences of 1024 tokens a step · "));
  const Setting images = read_setting(request_of_uniform());
  CHECK(contains(report::heading(images, case_of(images)), "uniform8 · 8 layers · "));
  CHECK(contains(report::heading(images, case_of(images)),
                 " · 8 micro-batches of 2 samples a step · "));
}

TEST_CASE("a comparison of a language model has tokens in the place of throughput") {
  const Setting setting = language_setting();
  const char* const schedules = "1f1b,gpipe,gpipe:recompute=always,zb_h1";
  const Compared all = compared(setting, schedules, {15e12, 2.5});
  const report::ComparisonView view;
  const std::string text = report::comparison_table(all.rows, all.order, view);
  for (const char* const title : {"tokens/s", "tokens/s/GPU", "TFLOP/s/GPU", "MFU", "HFU",
                                  "GPU-hours", "cost", "activations", "bubble", "fits"}) {
    CAPTURE(title);
    CHECK(has_column(text, title));
  }
  for (const char* const title : {"throughput", "speed-up", "versions", "staleness"}) {
    CHECK_FALSE(has_column(text, title));
  }
  CHECK(contains(text, " 248.2k "));
  CHECK(contains(text, " 36.4 % "));
  CHECK(contains(text, " $167.8k "));
  const Compared without = compared(setting, schedules);
  const std::string unbudgeted = report::comparison_table(without.rows, without.order, view);
  CHECK_FALSE(has_column(unbudgeted, "GPU-hours"));
  CHECK_FALSE(has_column(unbudgeted, "cost"));
  const Compared kept = compared(setting, "1f1b,gpipe");
  CHECK_FALSE(has_column(report::comparison_table(kept.rows, kept.order, view), "HFU"));
}

TEST_CASE("in a hundred columns, what people compare first is shown") {
  const Compared all =
      compared(language_setting(), "1f1b,gpipe,gpipe:recompute=always,zb_h1", {15e12, 2.5});
  report::ComparisonView view;
  view.width = 100;
  const std::string text = report::comparison_table(all.rows, all.order, view);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    CHECK(columns_of(text.substr(at, text.find('\n', at) - at)) <= 100);
  }
  for (const char* const title : {"step", "tokens/s/GPU", "MFU", "peak memory", "cost", "fits"}) {
    CAPTURE(title);
    CHECK(has_column(text, title));
  }
  CHECK(contains(text, "… without "));
}

TEST_CASE("columns of language models can be asked of any, and all are those that are known") {
  const Compared images = compared(read_setting(request_of_uniform()), "1f1b,gpipe");
  report::ComparisonView view;
  view.columns = report::parse_comparison_columns("mfu,GPU-hours,tokens/s/gpu");
  const std::string asked = report::comparison_table(images.rows, images.order, view);
  CHECK(has_column(asked, "MFU"));
  CHECK(contains(asked, "–"));
  view.columns = report::parse_comparison_columns("all");
  view.known_only = true;
  const std::string all = report::comparison_table(images.rows, images.order, view);
  CHECK(has_column(all, "throughput"));
  for (const char* const title : {"tokens/s", "MFU", "HFU", "cost", "activations"}) {
    CHECK_FALSE(has_column(all, title));
  }
  const Compared language = compared(language_setting(), "1f1b,gpipe");
  const std::string full = report::comparison_table(language.rows, language.order, view);
  for (const char* const title : {"tokens/s", "HFU", "activations", "throughput", "staleness"}) {
    CHECK(has_column(full, title));
  }
  CHECK_FALSE(has_column(full, "cost"));
}

TEST_CASE("the devices' activations are a column where that is asked") {
  Setting setting = language_setting();
  for (Layer& layer : setting.model.layers) {
    layer.stash_input_grad = Bytes{};
    layer.stash_weight_grad = Bytes{10'000'000};
  }
  const Outcome outcome = study(case_of(setting));
  const std::string text = report::device_table(outcome, {0, true, true});
  // Device d of four holds 4 - d micro-batches of two layers.
  for (const char* const bytes : {"80.00 MB", "60.00 MB", "40.00 MB", "20.00 MB"}) {
    CHECK(contains(text, bytes));
  }
  CHECK(has_column(text, "activations"));
  CHECK_FALSE(has_column(report::device_table(outcome), "activations"));
}

TEST_CASE("JSON has the rates that are known, and no others") {
  const Setting setting = language_setting();
  const Case asked = case_of(setting);
  const Outcome outcome = study(asked);
  const auto json = nlohmann::json::parse(
      report::outcome_json(setting, asked, outcome, false, nullptr, {15e12, 2.5}));
  const TrainingRates rates = training_rates(asked, outcome, {15e12, 2.5});
  CHECK(json.at("tokens_per_second") == *rates.tokens_per_second);
  CHECK(json.at("tokens_per_second_per_device") == *rates.tokens_per_device_second);
  CHECK(json.at("model_flops") == 192e9);
  CHECK(json.at("hardware_flops") == 192e9);
  CHECK(json.at("flops_per_second_per_device") == *rates.flops_per_device_second);
  CHECK(json.at("mfu") == *rates.mfu);
  CHECK(json.at("hfu") == *rates.hfu);
  CHECK(json.at("blocking_fraction_by_group").size() == 5);
  CHECK(json.at("blocking_fraction_by_group").at("tp") == 0);
  CHECK(json.at("device_hours") == *rates.device_hours);
  CHECK(json.at("days") == *rates.days);
  CHECK(json.at("dollars") == *rates.dollars);
  const auto unbudgeted =
      nlohmann::json::parse(report::outcome_json(setting, asked, outcome, false));
  CHECK(unbudgeted.contains("mfu"));
  CHECK_FALSE(unbudgeted.contains("device_hours"));
  const Setting images = read_setting(request_of_uniform());
  const Case plain = case_of(images);
  const auto other =
      nlohmann::json::parse(report::outcome_json(images, plain, study(plain), false));
  for (const char* const key : {"tokens_per_second", "model_flops", "mfu",
                                "blocking_fraction_by_group", "idle_for_messages_fraction"}) {
    CHECK_FALSE(other.contains(key));
  }
}

TEST_CASE("a picture has the rates below its title") {
  const Setting setting = language_setting();
  const Case asked = case_of(setting);
  const Outcome outcome = study(asked, Curves::all);
  const std::string rates = ">62.06k tokens/s a GPU · MFU 36.4 %<";
  CHECK(contains(report::svg(report::drawing_of(setting, asked, outcome)), rates));
  report::DrawingView timelines;
  timelines.panels = {true, false, false, false};
  const std::string both = report::svg(report::drawings_of(setting, std::vector<Case>{asked, asked},
                                                           std::vector<Outcome>{outcome, outcome}),
                                       {}, timelines);
  CHECK(contains(both, "62.06k tokens/s a GPU · MFU 36.4 %"));
  const Setting images = read_setting(request_of_uniform());
  const Case plain = case_of(images);
  CHECK_FALSE(contains(report::svg(report::drawing_of(images, plain, study(plain, Curves::all))),
                       "tokens/s"));
}

}  // namespace stageline::training_tests
