// Names of schedules in other tools: every alias names a schedule, and is read as it.
#include <doctest/doctest.h>

#include <set>

#include "schedulers/aliases.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::schedule_names_tests {
namespace {

std::string read(const std::string& text) { return spelled(parse_schedules(text).at(0)); }

TEST_CASE("every alias is a plain word for a schedule that exists") {
  std::set<std::string_view> words;
  for (const ScheduleAlias& alias : schedule_aliases()) {
    CAPTURE(alias.word);
    CHECK_FALSE(alias.word.empty());
    CHECK(alias.word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") ==
          std::string_view::npos);
    CHECK(words.insert(alias.word).second);
    CHECK_NOTHROW(parse_schedules(std::string(alias.spec)));
    CHECK(read(std::string(alias.word)) == read(std::string(alias.spec)));
  }
}

TEST_CASE("no alias hides a schedule, and every schedule is read as itself") {
  for (const Scheduler* const one : schedulers()) {
    CAPTURE(one->name);
    const std::string name(one->name);
    CHECK(read_schedule_name(name) == name);
    std::string word;
    for (const char c : name) {
      if (c != '_') word += c;
    }
    if (name != "looped_bfs") CHECK(read_schedule_name("Schedule" + word) == name);
    for (const ScheduleAlias& alias : schedule_aliases()) CHECK(alias.word != word);
  }
}

TEST_CASE("names of PyTorch, Megatron and sail-sg are understood") {
  CHECK(read("Schedule1F1B") == "1f1b");
  CHECK(read("ScheduleGPipe") == "gpipe");
  CHECK(read("Interleaved1F1B") == "interleaved_1f1b");
  CHECK(read("ScheduleInterleaved1F1B") == "interleaved_1f1b");
  CHECK(read("ScheduleLoopedBFS") == "looped_bfs:reverse=yes");
  CHECK(read("LoopedBFS") == "looped_bfs");
  CHECK(read("ScheduleInterleavedZeroBubble") == "interleaved_zb");
  CHECK(read("1F1B-V") == "1f1b_v");
  CHECK(read("ScheduleZBVZeroBubble") == "zb_v");
  CHECK(read("ScheduleDualPipeV") == "dualpipe_v");
  CHECK(read("forward_backward_pipelining_with_interleaving") == "interleaved_1f1b");
  CHECK(read("VPP") == "interleaved_1f1b");
  CHECK(read("ZB-H1") == "zb_h1");
  CHECK(read("zb-h2") == "zb_h2");
  CHECK(read("zbv") == "zb_v");
  CHECK(read("V-Half") == "v_half");
  CHECK(read("zb2p") == "zb_auto:limit=2p");
  CHECK(read("1F1B") == "1f1b");
}

TEST_CASE("knobs follow an alias as they follow a name, and replace what it implies") {
  CHECK(read("Interleaved1F1B:chunks=4") == "interleaved_1f1b:chunks=4");
  CHECK(read("zb2p:limit=3") == "zb_auto:limit=3");
  const std::vector<ScheduleSpec> specs = parse_schedules("ScheduleGPipe:recompute=always,zbv");
  REQUIRE(specs.size() == 2);
  CHECK(spelled(specs[0]) == "gpipe:recompute=always");
  CHECK(spelled(specs[1]) == "zb_v");
}

TEST_CASE("a note says how each name was read") {
  CHECK(read_as_notes({"1f1b,gpipe:recompute=always,reverse=yes", "all"}).empty());
  CHECK(read_as_notes({"Schedule1F1B,1f1b", "zb2p:goal=makespan,Schedule1F1B"}) ==
        std::vector<std::string>{"the schedule Schedule1F1B is read as 1f1b",
                                 "the schedule zb2p is read as zb_auto:limit=2p"});
}

TEST_CASE("a misspelt name is answered with the nearest schedule") {
  const auto refused = [](const std::string& text) {
    return test::complaint<UsageError>([&] { parse_schedules(text); });
  };
  CHECK(test::contains(refused("1fb1"), "did you mean \"1f1b\"?"));
  CHECK(test::contains(refused("ScheduleGPip"), "did you mean \"gpipe\"?"));
  CHECK(test::contains(refused("Interleave1F1B"), "did you mean \"interleaved_1f1b\"?"));
  CHECK(test::contains(refused("zb-h3"), "did you mean \"zb_h1\"?"));
  CHECK(test::contains(refused("zb3p"), "did you mean \"zb_auto:limit=p\"?"));
  CHECK(test::contains(refused("pipdream"), "did you mean \"pipedream\"?"));
  CHECK(test::contains(refused(""), "there is no schedule \"\""));
}

}  // namespace
}  // namespace stageline::schedule_names_tests
