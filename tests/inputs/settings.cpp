// Is a setting the same by its flag, by its key in JSON, as a key of a sweep and in a printed
// command?
#include "tools/inputs/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "tools/answers/answer.hpp"
#include "tools/base/json.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/planner/planner.hpp"
#include "tools/sweep/words.hpp"

namespace stageline::settings_tests {
namespace {

// A value that each setting takes and that is not its default.
std::string other_value(const SettingRow& row) {
  if (row.key == "trace") return "uniform:layers=9";
  if (row.key == "encoder") return "uniform:layers=9";
  if (row.key == "cluster") return "h100x8";
  if (row.key == "link" || row.key == "host_link") return "3GB/s,7us";
  if (row.key == "collectives") return "ring";
  if (row.key == "buckets") return "none";
  if (row.key == "order") return "cp-tp-ep-dp-pp";
  if (row.key == "precision") return "fp32";
  if (row.key == "shard_group") return "machine";
  if (row.key == "placement") return "fill";
  if (row.key == "slow") return "gpu1:1.5";
  if (row.key == "recompute") return "selective";
  if (row.key == "offload") return "all";
  if (row.key == "lengths") return "1,2";
  if (row.key == "partition") return "uniform";
  if (row.key == "calibration") return "rates.json";
  if (row.key == "software") return "megatron-2021";
  if (row.form == SettingForm::word) return std::string(row.words.substr(row.words.rfind(' ') + 1));
  if (row.form == SettingForm::number) return "0.25";
  if (row.form == SettingForm::yes) return "true";
  if (row.form == SettingForm::count || row.form == SettingForm::counts) return "3";
  return "2GB";
}

bool is_of_a_case(const SettingRow& row) { return row.set != nullptr; }

SettingRequest by_flag(const SettingRow& row, const std::string& value) {
  cli::CommonFlags flags;
  cli::CommandLine line("stageline", "", "");
  cli::add_case_flags(line.flags(), flags, cli::Many::no, cli::Many::no);
  cli::add_degree_flags(line.flags(), flags);
  cli::add_setting(line.flags(), flags, "messages");
  std::vector<std::string> words{"stageline"};
  if (row.key != "trace") words.emplace_back("uniform:layers=8");
  if (row.key == "prefetch") words.insert(words.end(), {"--offload", "all"});
  if (row.key != "trace") words.push_back(row.flag());
  if (row.form != SettingForm::yes) words.push_back(value);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  line.run(static_cast<int>(arguments.size()), arguments.data());
  return request_of(flags);
}

SettingRequest by_key(const SettingRow& row, const std::string& value) {
  const bool bare = row.form == SettingForm::yes || row.form == SettingForm::count ||
                    row.form == SettingForm::counts || row.form == SettingForm::number;
  std::string json = "{";
  if (row.key != "trace") json += R"("trace": "uniform:layers=8", )";
  if (row.key == "prefetch") json += R"("offload": "all", )";
  json += json_string(std::string(row.key)) + ": " + (bare ? value : json_string(value)) + "}";
  return answers::parse_request(json).setting;
}

SettingRequest by_word(const SettingRow& row, const std::string& value) {
  std::vector<SettingWord> words;
  if (row.key != "trace") words.push_back({"trace", "uniform:layers=8"});
  if (row.key == "prefetch") words.push_back({"offload", "all"});
  words.push_back({std::string(row.key), value});
  return question_of(words).request.setting;
}

// As text, of what the table sets.
std::string text_of(const SettingRequest& request) {
  std::string text = request.trace + "|" + request.cluster.cluster + "|" + request.partition + "|" +
                     request.encoder + "|" + request.collectives + "|" + request.buckets + "|" +
                     request.calibration + "|";
  const auto add = [&](auto value) { text += std::to_string(value) + "|"; };
  const auto add_link = [&](const std::optional<LinkSpec>& link) {
    add(link ? link->latency.count() : -1);
  };
  add_link(request.cluster.link);
  add_link(request.cluster.host_link);
  for (const auto& bytes :
       {request.cluster.memory, request.cluster.reserve, request.cluster.host_memory}) {
    add(bytes ? bytes->count : -1);
  }
  add(request.cluster.pair_overlap.value_or(-1));
  for (const int count : request.devices) add(count);
  add(request.microbatches);
  add(request.microbatch_size);
  add(request.profile_batch);
  add(request.steps);
  add(request.weights ? static_cast<int>(*request.weights) : -1);
  add(request.messages ? static_cast<int>(*request.messages) : -1);
  const Degrees& degrees = request.degrees;
  for (const int degree :
       {degrees.tensor, degrees.context, degrees.expert, degrees.data, degrees.pipeline,
        degrees.expert_tensor, degrees.encoder.pipeline, degrees.encoder.tensor}) {
    add(degree);
  }
  for (const Dimension one : degrees.order) add(static_cast<int>(one));
  add(static_cast<int>(degrees.zero));
  add(static_cast<int>(degrees.shard_group.span));
  add(degrees.shard_group.ranks);
  add(degrees.zero_every ? static_cast<int>(*degrees.zero_every) : -1);
  text += std::string(degrees.precision.name) + "|" + print(request.recomputation) + "|" +
          print(request.offloading) + "|";
  add(request.recomputation.start ? static_cast<int>(*request.recomputation.start) : -1);
  add(request.offloading.ahead);
  add(request.sharing ? static_cast<int>(*request.sharing) : -1);
  add(static_cast<int>(request.sequence_parallel));
  add(static_cast<int>(request.all_pipelines));
  add(static_cast<int>(request.device_order));
  add(request.slow.size());
  text += request.cluster.placement + "|" + request.software + "|" + request.cuda_graphs + "|" +
          request.lengths + "|" + request.cp_comm_type + "|";
  add(request.lengths_order ? static_cast<int>(*request.lengths_order) : -1);
  add(static_cast<int>(request.frozen_encoder));
  return text;
}

}  // namespace

TEST_CASE("a setting means the same by its flag, its key and as a word of a sweep") {
  SettingRequest plain;
  plain.trace = "uniform:layers=8";
  int tried = 0;
  for (const SettingRow& row : setting_rows()) {
    if (!is_of_a_case(row)) continue;
    CAPTURE(row.key);
    const std::string value = other_value(row);
    const std::string flag = text_of(by_flag(row, value));
    CHECK(flag == text_of(by_key(row, value)));
    CHECK(flag == text_of(by_word(row, value)));
    CHECK(flag != text_of(plain));  // what text_of() does not look at is not tested here
    ++tried;
  }
  CHECK(tried > 30);
}

TEST_CASE(
    "each setting has a name of its own, one sentence of help, and a flag that compare takes") {
  cli::CommonFlags flags;
  cli::PerturbationFlags chances;
  cli::CommandLine line("stageline", "", "");
  cli::add_case_flags(line.flags(), flags, cli::Many::yes, cli::Many::yes);
  cli::add_degree_flags(line.flags(), flags);
  cli::add_setting(line.flags(), flags, "messages");
  cli::add_budget_flags(line.flags(), flags);
  cli::add_perturbation_flags(line.flags(), chances, 1);
  std::set<std::string> taken;
  for (const cli::Flag flag : line.flags().all()) taken.insert(flag.name());
  // What only JSON, only a sweep or only one program has: see SettingRow.
  const std::set<std::string> apart{"schedules", "program", "within", "timeline", "scenario"};
  std::set<std::string> names;
  for (const SettingRow& row : setting_rows()) {
    CAPTURE(row.key);
    CHECK(names.insert(std::string(row.key)).second);
    CHECK(names.insert(row.flag()).second);
    CHECK(!row.help.empty());
    CHECK(!row.help.ends_with('.'));
    CHECK(row.group != SettingGroup::other);
    CHECK(find_setting(row.key) == &row);
    CHECK((taken.contains(row.flag()) != apart.contains(std::string(row.key))));
  }
  CHECK(find_setting("no_such") == nullptr);
}

TEST_CASE("what the ranks, a row and a plan choose is printed as the flag takes it") {
  for (const SettingRow& row : setting_rows()) {
    CAPTURE(row.key);
    // A plan tries the other placement, too, and its flag takes one.
    const bool chosen = row.of == SettingOf::ranks || row.of == SettingOf::row || row.searched ||
                        row.key == "placement";
    if (!chosen || !is_of_a_case(row)) {
      CHECK((row.print == nullptr));
      continue;
    }
    REQUIRE((row.print != nullptr));
    CHECK(row.print(SettingRequest{}) == "");
    const std::string value = other_value(row);
    CHECK(row.print(by_flag(row, value)) == value);
  }
}

TEST_CASE("--fix has a key for each setting that a plan searches") {
  std::set<std::string> searched{"asynchronous"};
  for (const SettingRow& row : setting_rows()) {
    if (row.searched) searched.insert(row.flag().substr(2));
  }
  const std::vector<std::string> names = planner::fix_names();
  CHECK(std::set<std::string>(names.begin(), names.end()) == searched);
  CHECK(names.size() == searched.size());
}

TEST_CASE("a sweep prints the flags of its settings") {
  CHECK(flags_of({{"trace", "uniform"},
                  {"profile_batch", "4"},
                  {"all_pipelines", "true"},
                  {"sequence_parallel", "false"},
                  {"host_link", "1GB/s"}}) ==
        "uniform --batch 4 --all-pipelines --host-link 1GB/s");
}

}  // namespace stageline::settings_tests
