// Programs where schedules are named: how they are read, called and told apart, and what they fix.
#include "tools/inputs/given_programs.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/errors.hpp"
#include "tools/answers/compared.hpp"
#include "tools/answers/drawn.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/json/answer.hpp"
#include "tools/study/study.hpp"
#include "tools/sweep/rows.hpp"
#include "tools/sweep/words.hpp"

namespace stageline::given_programs_tests {
namespace {

SettingRequest request_of(const std::vector<std::string>& schedules) {
  SettingRequest request;
  request.trace = "uniform:layers=8";
  request.schedules = read_schedules(schedules, /*quiet=*/true);
  return request;
}

// The program of a schedule on four devices, as `stageline program` writes it.
std::string text_of(const std::string& schedule, int microbatches, int devices = 4) {
  SettingRequest request = request_of({schedule});
  request.devices = {devices};
  request.microbatches = microbatches;
  return print(
      study(make_case(request, read_setting(request), request.schedules.front(), devices)).program);
}

// Files of a folder that goes with its test.
class Files {
 public:
  Files()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("stageline-given-{}", ::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::string path = (folder_ / name).string();
    write_file(path, text);
    return path;
  }
  // Without the line that names the schedule.
  std::string nameless(const std::string& name, std::string text) const {
    const std::size_t at = text.find("schedule:");
    text.erase(at, text.find('\n', at) + 1 - at);
    return write(name, text);
  }

 private:
  std::filesystem::path folder_;
};

std::vector<std::string> titles(const std::vector<ScheduleSpec>& specs) {
  std::vector<std::string> names;
  for (const ScheduleSpec& spec : specs) names.push_back(title(spec));
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("a program in a list of schedules is called as it says, or after its file") {
  const Files files;
  const std::string own = files.nameless("mine.slp", text_of("zb_h1", 8));
  const std::string zb = files.write("other.slp", text_of("zb_h1", 8));
  const auto specs = read_schedules({"zb_auto:limit=2p,goal=makespan," + own + ",gpipe", zb}, true);
  CHECK(titles(specs) == Names{"zb_auto:limit=2p,goal=makespan", "mine", "gpipe", "zb_h1"});
  CHECK(spelled(specs[1]) == own);
  CHECK(specs[1].given->program.devices.size() == 4);
  CHECK(title(read_schedules({text_of("zb_h1", 8)}, true).front()) == "zb_h1");
}

TEST_CASE("programs of one name are told apart by their paths") {
  const Files files;
  const std::string path = files.write("mine.slp", text_of("1f1b", 8));
  CHECK(titles(read_schedules({"1f1b," + path}, true)) == Names{"1f1b", "1f1b (" + path + ")"});
  CHECK(titles(read_schedules({path}, true)) == Names{"1f1b"});
}

TEST_CASE("what is no program, and no schedule, is refused with what was meant") {
  const Files files;
  CHECK_THROWS_WITH_AS(read_schedules({"1f1b.slp"}, true),
                       "cannot read \"1f1b.slp\": there is no such file (did you mean \"1f1b\"?)",
                       UsageError);
  CHECK_THROWS_WITH_AS(read_schedules({"./zb_h3"}, true), doctest::Contains("(did you mean"),
                       UsageError);
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 8));
  CHECK_THROWS_WITH_AS(read_schedules({path + ":limit=2p"}, true),
                       doctest::Contains("is a program, which has no knobs; leave out :limit=2p"),
                       UsageError);
  CHECK_THROWS_WITH_AS(read_schedules({path + ",limit=2p"}, true),
                       doctest::Contains("is a knob without a schedule"), UsageError);
  CHECK_THROWS_WITH_AS(read_schedules({"1f1b,"}, true), doctest::Contains("no schedule \"\""),
                       UsageError);
  const std::string wrong = files.write("wrong.slp", "stageline-program 1\nmicrobatches: x\n");
  CHECK_THROWS_WITH_AS(read_schedules({"1f1b," + wrong}, true), doctest::Contains("wrong.slp"),
                       ProgramError);
}

TEST_CASE("a program says devices and micro-batches where nothing else does") {
  const Files files;
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 6, 2));
  SettingRequest request = request_of({"zb_h1", path});
  Setting setting = read_setting(request);
  CHECK(setting.device_counts == std::vector<int>{2});
  const Case named = make_case(request, setting, request.schedules[0], 2);
  const Case given = make_case(request, setting, request.schedules[1], 2);
  CHECK(named.microbatches == 6);
  CHECK(given.microbatches == 6);
  CHECK(study(named).step_time == study(given).step_time);
  request.degrees.data = 2;
  setting = read_setting(request);
  CHECK(setting.device_counts == std::vector<int>{4});
  CHECK(study(make_case(request, setting, request.schedules[1], 4)).copies == 2);
}

TEST_CASE("equal numbers beside a program are no contradiction, others are one with both") {
  const Files files;
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 6, 2));
  SettingRequest request = request_of({path});
  const auto run = [&] {
    const Setting setting = read_setting(request);
    return study(make_case(request, setting, request.schedules[0], setting.device_counts.front()));
  };
  const Time step = run().step_time;
  request.devices = {2};
  request.microbatches = 6;
  request.steps = 1;
  request.weights = WeightRule::flush;
  CHECK(run().step_time == step);
  request.microbatches = 8;
  CHECK_THROWS_WITH_AS(run(),
                       doctest::Contains("a program of 6 micro-batches a step, and 8 are "
                                         "asked for; leave out --microbatches"),
                       UsageError);
  request.microbatches = 0;
  request.devices = {4};
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("a program of 2 devices, and 4 are asked for"),
                       UsageError);
  request.devices = {2};
  request.steps = 3;
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("a program of 1 step, and 3 are asked for"),
                       UsageError);
  request.steps = 0;
  request.weights = WeightRule::stash;
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("weights: flush, and --weights is stash"),
                       UsageError);
}

TEST_CASE("programs of other sizes are refused together, unless the size is given") {
  const Files files;
  const std::string six = files.nameless("six.slp", text_of("zb_h1", 6));
  const std::string eight = files.nameless("eight.slp", text_of("zb_h1", 8));
  answers::ComparisonQuestion question;
  question.setting = request_of({six, eight});
  CHECK_THROWS_WITH_AS(answer(question),
                       "six has 6 micro-batches a step and eight 8; give --microbatches, or one of "
                       "them at a time",
                       UsageError);
  question.setting.microbatches = 8;
  const answers::Comparison found = answer(question);
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].why_not.find("a program of 6 micro-batches") != std::string::npos);
  CHECK(found.rows[0].schedule == "six");
  CHECK(found.rows[1].outcome->schedule == "eight");
}

TEST_CASE("a comparison ranks a program as the schedule that it is of") {
  const Files files;
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 8));
  answers::ComparisonQuestion question;
  question.setting = request_of({"1f1b,zb_h1," + path});
  question.setting.devices = {4, 5};
  question.alone = true;
  const answers::Comparison found = answer(question);
  REQUIRE(found.rows.size() == 6);
  CHECK(found.rows[2].outcome->schedule == "mine");
  CHECK(found.rows[2].outcome->step_time == found.rows[1].outcome->step_time);
  CHECK(found.rows[2].outcome->memory.device[0].peak ==
        found.rows[1].outcome->memory.device[0].peak);
  CHECK(found.rows[5].why_not.find("a program of 4 devices, and 5") != std::string::npos);
  question.setting.devices.clear();
  question.setting.partition = "simulated";
  CHECK(answer(question).rows[2].why_not.find("a given program was written for its own stages") !=
        std::string::npos);
}

TEST_CASE("a drawing has programs beside schedules") {
  const Files files;
  answers::DrawingQuestion question;
  question.setting = request_of({"gpipe", files.nameless("mine.slp", text_of("zb_h1", 8))});
  const answers::DrawingAnswer drawn = answer(question);
  REQUIRE(drawn.outcomes.size() == 2);
  CHECK(drawn.outcomes[1].schedule == "mine");
  CHECK(drawn.outcomes[0].microbatches == 8);
}

TEST_CASE("a sweep refuses the rows that a program does not fit, and runs the others") {
  const Files files;
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 8));
  SweepSpec spec;
  spec.fixed = {{"trace", "uniform:layers=8"}, {"devices", "4"}};
  spec.axes = {parse_axis("schedule", "zb_h1," + path), parse_axis("microbatches", "4,8")};
  const std::vector<SweepRow> rows = run_scenarios(spec, 0, 4);
  REQUIRE(rows.size() == 4);
  CHECK(rows[2].why_not.find("a program of 8 micro-batches a step, and 4 are") !=
        std::string::npos);
  REQUIRE(rows[3].verdict);
  CHECK(rows[3].verdict->step == rows[1].verdict->step);
  CHECK(rows[3].values[0] == path);
  spec.fixed = {{"trace", "uniform:layers=8"}};
  const std::string two = files.nameless("two.slp", text_of("zb_h1", 8, 2));
  spec.axes = {parse_axis("schedule", path + "," + two)};
  const std::vector<SweepRow> each = run_scenarios(spec, 0, 2);
  CHECK(each[0].why_not == "");
  CHECK(each[1].why_not == "");
  CHECK(flags_of({{"trace", "t"}, {"schedule", "my order.slp"}}) == "t --schedule 'my order.slp'");
}

TEST_CASE("a plan takes a program as it is, with the cut that is asked for") {
  const Files files;
  const std::string path = files.nameless("mine.slp", text_of("zb_h1", 8));
  planner::PlanRequest request;
  request.setting.trace = "uniform:layers=8";
  request.setting.devices = {4};
  request.samples = 8;
  planner::fix(request.space, "schedule=" + path + "|gpipe");
  planner::fix(request.space, "partition=0-1,2-3,4-5,6-");
  const planner::Plan found = planner::plan(request);
  REQUIRE_FALSE(found.front.empty());
  CHECK(title(found.front[0].candidate.spec) == "mine");
  CHECK(found.front[0].flags.find("--schedule " + path) != std::string::npos);
  request.space = {};
  planner::fix(request.space, "schedule=" + path);
  for (const planner::PlanPoint& point : planner::plan(request).front) {
    CHECK(title(point.candidate.spec) == "mine");
    CHECK(point.candidate.partition == "balanced");
  }
  request.samples = 7;
  CHECK_THROWS_WITH_AS(planner::plan(request), doctest::Contains("a program of 8 micro-batches"),
                       UsageError);
}

TEST_CASE("a request in JSON names files and holds texts of programs") {
  const Files files;
  using Json = nlohmann::ordered_json;
  const std::string text = text_of("zb_h1", 8);
  Json request;
  request["trace"] = "uniform:layers=8";
  request["schedules"] = Json::array({"gpipe", files.nameless("mine.slp", text), text});
  const Json said = Json::parse(report::answer(request.dump()));
  REQUIRE(said["rows"].size() == 3);
  CHECK(said["rows"][1]["schedule"] == "mine");
  CHECK(said["rows"][2]["schedule"] == "zb_h1");
  CHECK(said["rows"][1]["step_time_ps"] == said["rows"][2]["step_time_ps"]);
}

}  // namespace
}  // namespace stageline::given_programs_tests
