// Is there a question that gets an answer that cannot be?
//
// Random problems are put to the commands as a user types them. study() itself refuses an answer
// that contradicts itself (tools/study/figures/contradictions.hpp, exit code 3); here two answers
// must also agree wherever two commands speak of one thing, and no number may be negative, infinite
// or none.
//
//     simulate        = a row of compare = the same order given as a program text
//     bound           ≤ the step that simulate reports, and its pace is that step
//     program         is clean under --check, differs in nothing from itself, reads back
//     a changed order is simulated where --check finds no error in it, and refused where it does
//     import          gives the layers that the profile gives
//     draw --chrome   laid over itself differs in nothing
//
// STAGELINE_QUESTIONS says how many, STAGELINE_QUESTIONS_SEED which; tests/questions/run asks
// millions of them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "tests/questions/answers.hpp"
#include "tests/questions/ask.hpp"
#include "tests/questions/random_question.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::questions_tests {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using test::Answer;
using test::ask;
using test::nonsense;
using test::Questions;
using test::wrong_number;

int number_of(const char* variable, int usual) {
  const char* const said = std::getenv(variable);
  return said != nullptr ? std::atoi(said) : usual;
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words without(const Words& words, const std::string& flag) {
  Words kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag) {
      ++i;  // and its value
    } else {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

Words without_word(const Words& words, const std::string& word) {
  Words kept = words;
  kept.erase(std::remove(kept.begin(), kept.end(), word), kept.end());
  return kept;
}

// One session of questions, with the number of those that got an answer, by command.
class Session {
 public:
  explicit Session(unsigned seed)
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("stageline-questions-{}-{}", ::getpid(), seed)) {
    std::filesystem::create_directories(folder_);
    questions_.emplace(seed, folder_.string());
  }
  ~Session() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Questions& draw() { return *questions_; }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  const std::map<std::string, std::pair<int, int>>& counts() const { return counts_; }

  void count(const std::string& what, bool is_answered) {
    auto& [asked, answered] = counts_[what];
    ++asked;
    answered += is_answered ? 1 : 0;
  }

  /// The answer, if there is one: exit code 0 or 1. Bad input must be refused in one sentence.
  std::optional<std::string> put(const Words& words) {
    const Answer answer = ask(words);
    INFO(test::typed(words));
    INFO(answer.err);
    CHECK((answer.exit_code >= 0 && answer.exit_code <= 2));
    count(words[0], answer.exit_code == 0 || answer.exit_code == 1);
    if (answer.exit_code == 3) return std::nullopt;
    if (answer.exit_code == 2) {
      CHECK(answer.out.empty());
      CHECK(answer.err.starts_with("stageline: "));
      CHECK(answer.err.find('\n') != std::string::npos);
      CHECK_MESSAGE(nonsense(answer.err, false).empty(), nonsense(answer.err, false));
      return std::nullopt;
    }
    return answer.out;
  }

  std::optional<Json> put_for_json(const Words& words) {
    const auto text = put(with(words, {"--json", "-"}));
    if (!text || text->empty()) return std::nullopt;
    INFO(test::typed(words));
    Json json = Json::parse(*text, nullptr, false);
    CHECK_MESSAGE(!json.is_discarded(), "not JSON: " << text->substr(0, 200));
    if (json.is_discarded()) return std::nullopt;
    const std::string wrong = wrong_number(json, "");
    CHECK_MESSAGE(wrong.empty(), wrong);
    return json;
  }

 private:
  std::filesystem::path folder_;
  std::optional<Questions> questions_;
  std::map<std::string, std::pair<int, int>> counts_;
};

void check_text(const std::string& text, bool differences) {
  const std::string found = nonsense(text, differences);
  CHECK_MESSAGE(found.empty(), "\"…" << found << "…\"");
}

// Changes that fit are searched in few of the questions, since each takes as long as many others.
Words simulate_words(const Words& problem) { return with({"simulate", "--no-changes"}, problem); }

void ask_simulate(Session& session, const Words& problem) {
  Words words = simulate_words(
      session.draw().once_in(4) ? session.draw().replicated_problem(problem) : problem);
  if (session.draw().once_in(40)) words.erase(words.begin() + 1);  // --no-changes
  if (session.draw().once_in(4)) {
    words.insert(words.end(), {"--messages", session.draw().once_in(2) ? "blocking" : "batched"});
  }
  if (session.draw().once_in(5)) {
    const auto text = session.put(words);
    INFO(test::typed(words));
    if (text) check_text(*text, false);
    return;
  }
  session.put_for_json(session.draw().once_in(4) ? with(words, {"--timeline"}) : words);
}

// Whether the order is searched for the links as they are, with others' transfers or without.
bool searches(const std::string& schedule) {
  const std::string name = schedule.substr(0, schedule.find(':'));
  static const Words names{"cyclic", "list", "v_half", "v_min", "zb_auto", "zb_v"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Groups that lie unevenly on machines.
void ask_on_machines(Session& session, const Words&) {
  const Words problem = session.draw().problem_on_machines();
  if (session.draw().once_in(8)) {
    session.put_for_json(with({"compare", "--no-changes"}, problem));
  } else {
    const auto one = session.put_for_json(simulate_words(problem));
    session.count("(on machines)", one.has_value());
    // One pipeline stands for all where they are alike, and where it does not all are simulated.
    const auto fifo = std::find(problem.begin(), problem.end(), "fifo") != problem.end();
    const bool searched = one && searches(one->at("schedule").get<std::string>());
    if (!one || fifo || searched || session.draw().once_in(2)) return;
    if (std::find(problem.begin(), problem.end(), "--all-pipelines") != problem.end()) return;
    const Words words = simulate_words(with(problem, {"--all-pipelines"}));
    const auto all = session.put_for_json(words);
    INFO(test::typed(words));
    if (!all) return;  // slices, whose replicas are not simulated
    // Shares of a link are rounded to picoseconds.
    const auto picoseconds = [](const Json& json) {
      return json.at("step_time_ps").get<std::int64_t>();
    };
    CHECK(std::abs(picoseconds(*one) - picoseconds(*all)) <= 100);
  }
}

// An answer does not depend on how many rows are simulated at a time.
void ask_compare_at_a_time(Session& session, const Words& problem) {
  Words words = with({"compare", "--no-changes"},
                     with(without(problem, "--schedule"), {"--schedule", "all"}));
  if (session.draw().once_in(2)) words = with(words, {"--json", "-"});
  INFO(test::typed(words));
  const Answer one = ask(with(words, {"--jobs", "1"}));
  const Answer four = ask(with(words, {"--jobs", "4"}));
  CHECK(one.exit_code == four.exit_code);
  CHECK(one.out == four.out);
  CHECK(one.err == four.err);
}

// A row of compare is the answer of simulate.
void ask_compare(Session& session, const Words& plain) {
  const Words problem =
      session.draw().once_in(4) ? session.draw().replicated_problem(plain) : plain;
  if (session.draw().once_in(10)) return ask_compare_at_a_time(session, problem);
  const Words other = session.draw().problem();
  const auto at = std::find(other.begin(), other.end(), "--schedule");
  const Words words = with({"compare", "--no-changes"}, with(problem, {"--schedule", *(at + 1)}));
  INFO(test::typed(words));
  if (session.draw().once_in(3)) {
    if (const auto text = session.put(words)) check_text(*text, false);
    return;
  }
  const auto rows = session.put_for_json(words);
  if (!rows) return;
  const auto alone = session.put_for_json(simulate_words(problem));
  CHECK(alone.has_value() == !rows->front().contains("error"));
  if (alone) CHECK(*alone == rows->front());
}

void ask_draw(Session& session, const Words& problem) {
  Words words = with({"draw"}, problem);
  INFO(test::typed(words));
  switch (session.draw().number(3)) {
    case 0:
      if (const auto text = session.put(words)) check_text(*text, false);
      return;
    case 1:
      if (const auto svg = session.put(with(words, {"--svg", "-"}))) check_text(*svg, true);
      return;
    case 2:
      break;
  }
  const std::string file = session.file("drawn.json");
  if (!session.put(with(words, {"--chrome", file}))) return;
  const auto same = session.put_for_json({"overlay", file, "--measured", file});
  REQUIRE(same);
}

void ask_bound(Session& session, const Words& problem) {
  const auto bound = session.put_for_json(with({"bound"}, problem));
  const auto simulated = session.put_for_json(simulate_words(problem));
  INFO(test::typed(with({"bound"}, problem)));
  if (!bound || !simulated || bound->contains("error")) return;
  CHECK(bound->at("step_ps") == simulated->at("step_time_ps"));
  for (const Json& one : bound->at("bounds")) {
    CHECK_MESSAGE(one.at("step_ps") <= simulated->at("step_time_ps"), one.dump());
  }
}

void ask_hybrid(Session& session, const Words&) {
  const Words problem = session.draw().problem(Synchrony::asynchronous);
  Words words = with({"hybrid"}, without(without(problem, "--steps"), "--microbatches"));
  if (session.draw().once_in(2)) {
    words = with(words, {"--iterations", fmt::format("{}", 1 + session.draw().number(500))});
  }
  session.put_for_json(words);
}

// The order that a schedule writes, as a text: the same run, whoever wrote it.
void ask_program(Session& session, const Words& problem) {
  const std::string file = session.file("order.slp");
  if (!session.put(with({"program"}, with(problem, {"--out", file})))) return;
  INFO(test::typed(with({"program"}, problem)));
  CHECK(session.put({"program", "--check", file}));
  const auto same = session.put_for_json({"diff", file, file});
  CHECK(same);
  const auto schedule = session.put_for_json(simulate_words(problem));
  // A program says itself which device does what.
  if (!schedule || without(problem, "--device-order") != problem) return;
  Words given = with(simulate_words(without(without(problem, "--schedule"), "--weights")),
                     {"--program", file});
  given = with(without(without(given, "--microbatches"), "--steps"), {});
  given = with(without(given, "--partition"),
               {"--partition", schedule->at("partition").get<std::string>()});
  const auto text = session.put_for_json(given);
  INFO(test::typed(given));
  REQUIRE(text);
  if (schedule->at("steps") == text->at("steps")) {
    CHECK(schedule->at("makespan_ps") == text->at("makespan_ps"));
    CHECK(schedule->at("per_device") == text->at("per_device"));
  }
}

// Neighbours in a device's list change places, some of them; now and then an op is lost.
std::string mutated(const std::string& text, Questions& draw) {
  std::vector<std::string> lines = test::split(text, '\n');
  for (int changes = 1 + draw.number(4); changes > 0; --changes) {
    std::string& line = nth(lines, draw.number(static_cast<int>(lines.size())));
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("gpu") || colon == std::string::npos) continue;
    std::vector<std::string> ops = test::split(line.substr(colon + 2), ' ');
    if (ops.size() < 2) continue;
    const auto at = as_size(draw.number(static_cast<int>(ops.size()) - 1));
    if (draw.once_in(12)) {
      ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      std::swap(ops[at], ops[at + 1]);
    }
    line = fmt::format("{}: {}", line.substr(0, colon), fmt::join(ops, " "));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// An order that no schedule writes: what --check finds no error in, simulate takes, and what it
// finds one in, simulate refuses.
void ask_mutant(Session& session, const Words& problem) {
  const auto text = session.put(with({"program"}, problem));
  if (!text) return;
  const std::string file = session.file("mutant.slp");
  std::ofstream(file, std::ios::binary) << mutated(*text, session.draw());
  INFO(test::typed(with({"program"}, problem)));
  const auto checked = session.put({"program", "--check", file, "--json", "-"});
  const Words words = with(
      without(without(without(simulate_words(problem), "--schedule"), "--microbatches"), "--steps"),
      {"--program", file});
  const auto simulated = session.put_for_json(words);
  if (simulated)
    CHECK_MESSAGE((checked && Json::parse(*checked).at("errors") == 0), test::typed(words));
}

// A profile of PipeDream, as a trace and converted to one: the same layers.
void ask_import(Session& session, const Words&) {
  Questions& draw = session.draw();
  const int layers = 1 + draw.number(8);
  std::string nodes;
  std::string edges;
  for (int l = 1; l <= layers; ++l) {
    nodes += fmt::format(
        "node{} -- Layer{} -- forward_compute_time={}.{}, backward_compute_time={}.5, "
        "activation_size={}.0, parameter_size={}.0\n",
        l, l, draw.number(9), draw.number(10), draw.number(9), draw.number(1'000'000),
        draw.number(1'000'000));
    if (l > 1) edges += fmt::format("\tnode{} -- node{}\n", l - 1, l);
  }
  const std::string profile = session.file("graph.txt");
  const std::string native = session.file("imported.json");
  std::ofstream(profile, std::ios::binary) << nodes << edges;
  const Words batch{"--batch", fmt::format("{}", 1 + draw.number(64))};
  if (!session.put(with({"import", profile, "--out", native}, batch))) return;
  const Words rest{"--schedule", "1f1b", "--devices", fmt::format("{}", 1 + draw.number(layers))};
  const auto one = session.put_for_json(with(with({"simulate", profile}, rest), batch));
  const auto other = session.put_for_json(with({"simulate", native}, rest));
  REQUIRE(one.has_value() == other.has_value());
  if (!one) return;
  for (const char* const key : {"step_time_ps", "per_device", "per_stage"}) {
    CHECK(one->at(key) == other->at(key));
  }
}

// The step that is taken apart is the step. (Of one device a cause may be less than nothing.)
void ask_why(Session& session, const Words& problem) {
  const Words words = with(simulate_words(problem), {"--why", "--json", "-"});
  INFO(test::typed(words));
  const auto text = session.put(words);
  if (!text) return;
  const Json found = Json::parse(*text);
  if (!found.at("settled").get<bool>()) return;
  const double apart = found.at("waterfall").at("step_ps").get<double>();
  CHECK(apart == doctest::Approx(found.at("step_time_ps").get<double>()).epsilon(1e-6));
}

void ask_formats(Session& session, const Words& problem) {
  static const Words formats{"pytorch", "pytorch-comms", "megatron", "pipedream", "torchgpipe"};
  const std::string file = session.file("exported");
  const std::string format = session.draw().one_of(formats);
  const Words words = with({"program"}, with(problem, {"--format", format, "--out", file}));
  INFO(test::typed(words));
  if (!session.put(words) || !format.starts_with("pytorch")) return;
  CHECK(session.put({"program", "--check", file}));
}

void ask_costs(Session& session, const Words& problem) {
  const Words words{"costs", problem.front()};
  INFO(test::typed(words));
  if (const auto text = session.put(words)) check_text(*text, true);
  session.put_for_json(words);
}

// What scenarios vary about is the step that simulate reports.
void ask_uncertain(Session& session, const Words& plain) {
  Questions& draw = session.draw();
  // Of as many steps as a steady pace needs, whatever --steps says.
  const Words problem = draw.once_in(3) ? draw.problem_on_machines() : without(plain, "--steps");
  Words words = with({"whatif"}, with(problem, {"--scenarios", "8", "--seed", "7"}));
  const int kind = draw.number(3);
  if (kind != 1) words = with(words, {"--jitter", fmt::format("{}%", 1 + draw.number(30))});
  if (kind != 0) {
    words = with(words, {"--sometimes-slow", fmt::format("gpu0:1.{}@0.5", draw.number(10))});
  }
  INFO(test::typed(words));
  const auto text = session.put(with(words, {"--json", "-"}));
  if (!text) return;
  Json found = Json::parse(*text);
  if (found.at("rows").empty()) return;
  Json& row = found.at("rows").front();
  row.erase("loss");  // of eight scenarios it may be less than nothing
  const std::string wrong = wrong_number(found, "");
  CHECK_MESSAGE(wrong.empty(), wrong);
  CHECK(row.at("p5_ps") <= row.at("p50_ps"));
  CHECK(row.at("p50_ps") <= row.at("p95_ps"));
  CHECK(row.at("p95_ps") <= row.at("p99_ps"));
  // Scenarios are of all replicas.
  const bool has_replicas = without(problem, "--dp") != problem;
  const Words all = without_word(problem, "--all-pipelines");
  const auto simulated =
      session.put_for_json(simulate_words(has_replicas ? with(all, {"--all-pipelines"}) : problem));
  if (!simulated) return;  // slices, whose replicas are not simulated
  const auto nominal = row.at("nominal_ps").get<double>();
  const auto step = simulated->at("step_time_ps").get<double>();
  // Where no stretch of a run takes as long as its step, the answer says so.
  const bool said = found.at("notes").dump().find("no stretch of its run") != std::string::npos;
  if (simulated->at("settled").get<bool>() && !said) {
    CHECK(nominal == doctest::Approx(step).epsilon(1e-6));
  } else if (std::abs(nominal - step) > 0.011 * step) {
    CHECK(said);
  }
}

using Asker = void (*)(Session&, const Words&);
struct Kind {
  Asker put;
  int weight;  // of 100
};
constexpr Kind kinds[] = {
    {ask_simulate, 22}, {ask_why, 5},         {ask_compare, 12}, {ask_draw, 11},   {ask_bound, 12},
    {ask_hybrid, 5},    {ask_program, 10},    {ask_mutant, 5},   {ask_formats, 5}, {ask_costs, 2},
    {ask_import, 1},    {ask_on_machines, 6}, {ask_uncertain, 4}};

TEST_CASE("no question gets an answer that cannot be") {
  const int all = number_of("STAGELINE_QUESTIONS", test::thorough ? 20'000 : 1'000);
  Session session(static_cast<unsigned>(number_of("STAGELINE_QUESTIONS_SEED", 1)));
  int asked = 0;
  while (asked < all) {
    const Words problem = session.draw().problem();
    int at = session.draw().number(100);
    for (const Kind& kind : kinds) {
      if (at < kind.weight) {
        kind.put(session, problem);
        break;
      }
      at -= kind.weight;
    }
    asked = 0;
    for (const auto& [command, count] : session.counts()) asked += count.first;
  }
  // Questions that are refused try the refusals; most must get an answer.
  for (const auto& one : session.counts()) {
    const std::pair<int, int> count = one.second;
    fmt::print("{}: {} of {} answered\n", one.first, count.second, count.first);
    INFO(one.first << ": " << count.second << " answers to " << count.first << " questions");
    CHECK(3 * count.second > count.first);
  }
}

}  // namespace
}  // namespace stageline::questions_tests
