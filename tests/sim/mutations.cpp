// What does no edit of a program text break? Every edited text is read, checked, lowered and run,
// or refused with a ProgramError or a Deadlock; and what runs, runs as the second opinions say.
#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "tests/random_program.hpp"
#include "tests/schedules/brute_force.hpp"
#include "tests/text.hpp"

namespace stageline::mutations_tests {
namespace {

class Editor {
 public:
  explicit Editor(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return random_() % count; }

  std::string edited(std::string text) {
    switch (below(10)) {
      case 0:
        text.erase(below(text.size()), 1);
        return text;
      case 1:
        text.insert(below(text.size()), 1, text[below(text.size())]);
        return text;
      case 2:
        text[below(text.size())] = text[below(text.size())];
        return text;
      case 3:
        return with_units(text, "\n", below(4));
      default:
        return with_units(text, " ", below(4));
    }
  }

 private:
  // Takes away or says twice what stands between separators, words or lines; or exchanges two, or
  // two neighbours.
  std::string with_units(const std::string& text, std::string_view separator, std::size_t what) {
    std::vector<std::string> units{""};
    for (const char c : text) {
      if (separator.find(c) != std::string_view::npos || (c == '\n' && separator == " ")) {
        units.emplace_back(1, c);
        units.emplace_back();
      } else {
        units.back() += c;
      }
    }
    const std::size_t one = 2 * below((units.size() + 1) / 2);
    const std::size_t any = 2 * below((units.size() + 1) / 2);
    const std::size_t next = std::min(one + 2, units.size() - 1);
    if (what == 0) units[one].clear();
    if (what == 1) units[one] += std::string(separator) + units[one];
    if (what == 2) std::swap(units[one], units[any]);
    if (what == 3) std::swap(units[one], units[next]);
    std::string joined;
    for (const std::string& unit : units) joined += unit;
    return joined;
  }

  std::mt19937 random_;
};

struct Count {
  int unread = 0;
  int invalid = 0;
  int stuck = 0;
  int ran = 0;
};

// What the second opinions hold against a valid program that ran, or nothing.
std::string objection(const Program& program, const Costs& costs, const TaskGraph& graph) {
  if (parse_program(print(program)) != program) return "the text reads as another program";
  const TaskTimes swept = sweep(graph);
  const std::map<Op, test::When> when = test::reference(program, costs);
  const Timeline timeline = timeline_of(program, graph, swept);
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
    for (const Span& span : timeline.lanes[lane]) {
      const auto found = when.find(test::plain(span.op));
      if (found == when.end() || found->second.start != span.start) return print(span.op);
    }
  }
  const TaskTimes times = run(graph);
  if (times.available != test::brute_force(graph).available) return "brute force differs";
  const Timeline ran = timeline_of(program, graph, times);
  const MemoryProfile memory = memory_of(program, costs, ran);
  for (const DeviceMemory& device : memory.device) {
    for (const MemoryKind kind : {MemoryKind::stash, MemoryKind::buffers, MemoryKind::versions}) {
      if (nth(device.at_end, kind) != Bytes{}) return "bytes are left";
    }
  }
  versions_of(program, ran);
  if (metrics_of(program, graph, times).makespan != makespan(times)) return "another makespan";
  return "";
}

void go_through(const std::string& text, const Costs& costs, Count& count) {
  CAPTURE(text);
  Program program;
  try {
    program = parse_program(text);
  } catch (const ProgramError&) {
    ++count.unread;
    return;
  }
  try {
    validate(program);
    program = complete(std::move(program), costs);
    validate(program);
    const TaskGraph graph = compile(program, costs);
    ++count.ran;
    const std::string objects = objection(program, costs, graph);
    CHECK_MESSAGE(objects.empty(), objects);
  } catch (const ProgramError&) {
    ++count.invalid;
  } catch (const Deadlock& deadlock) {
    ++count.stuck;
    CHECK(test::reference(program, costs).empty());
    CHECK_FALSE(deadlock.cycle.empty());
  }
}

TEST_CASE("no edit of a program text breaks anything but the program") {
  test::RandomPrograms random(121);
  Editor editor(122);
  Count count;
  for (int i = 0; i < 3000; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    const bool whole = editor.below(2) == 0;
    std::string text = print(whole ? complete(made.program, made.costs) : made.program);
    for (std::size_t edits = 1 + editor.below(2); edits > 0; --edits) text = editor.edited(text);
    go_through(text, made.costs, count);
  }
  // The edits are worth their while: all ends are reached.
  CHECK(count.unread > 500);
  CHECK(count.invalid > 300);
  CHECK(count.stuck > 50);
  CHECK(count.ran > 200);
  CHECK(count.unread + count.invalid + count.stuck + count.ran == 3000);
}

TEST_CASE("no line noise breaks the parser") {
  std::mt19937 random(123);
  const std::string letters = "0123456789FIWBRU_.:;()#>+= \n\tstagemicrobatches";
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = i % 2 == 0 ? "stageline-program 1\nmicrobatches: 1\nstage 0: a\na: " : "";
    for (std::size_t length = random() % 80; length > 0; --length) {
      text += i % 3 == 0 ? static_cast<char>(random() % 256) : letters[random() % letters.size()];
    }
    CAPTURE(text);
    try {
      const Program program = parse_program(text);
      validate(program);
    } catch (const ProgramError&) {
      ++refused;
    }
  }
  CHECK(refused > 2900);
}

}  // namespace
}  // namespace stageline::mutations_tests
