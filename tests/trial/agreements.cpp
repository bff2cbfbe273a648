// Laws of one question that is put in two ways.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/questions/ask.hpp"
#include "tests/specs.hpp"
#include "tests/trial/laws.hpp"
#include "tools/report/json/answer.hpp"
#include "tools/sweep/rows.hpp"

namespace stageline::trial {
namespace {

using test::Questions;

// The first member in which two rows differ, with both values; "": none.
std::string difference(const Json& one, const Json& other) {
  if (one == other) return "";
  if (!one.is_object() || !other.is_object()) return one.dump() + " and " + other.dump();
  for (const auto& [key, value] : one.items()) {
    if (!other.contains(key)) return key + " is missing";
    if (value != other.at(key)) {
      return fmt::format("{}: {} and {}", key, value.dump().substr(0, 300),
                         other.at(key).dump().substr(0, 300));
    }
  }
  return "another member";
}

void hold_equal(const Json& one, const Json& other, const std::string& what) {
  const std::string found = difference(one, other);
  if (!found.empty()) throw Contradiction{what + " differ in " + found};
}

bool compare_is_simulate(Asker& asker, const Question& question, Questions& draw) {
  const Question first =
      question.has("--schedule") ? question : question.with("--schedule", "1f1b");
  const std::string other = draw.one_of(Words{"gpipe", "naive", "zb_h1"});
  const Words words = command("compare", {"--no-changes", "--schedule", other}, first);
  const auto rows = asker.json(words);
  const auto alone = asker.simulate(first);
  if (!rows) {
    if (alone) throw Contradiction{test::typed(words) + " is refused, and simulate answers"};
    return false;
  }
  // The rows are in the order of the flags.
  Json row = rows->back();
  if (alone.has_value() == row.contains("error")) {
    throw Contradiction{test::typed(words) + ": the row is " + row.dump().substr(0, 300) +
                        ", and simulate " + (alone ? "answers" : "refuses")};
  }
  for (const char* const among_others : {"tie", "schedule_held"}) row.erase(among_others);
  if (alone) hold_equal(*alone, row, test::typed(words) + ": rows");
  return alone.has_value();
}

// A row of a sweep has the step, the memory and the fit that simulate has.
bool sweep_is_simulate(Asker& asker, const Question& question, Questions& draw) {
  const int microbatches = 1 + draw.number(16);
  SweepSpec spec;
  spec.fixed.push_back({"trace", question.trace()});
  for (const Setting& setting : question.settings) {
    if (setting.flag == "--microbatches") continue;
    std::string key = setting.flag.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    spec.fixed.push_back({key, setting.value.empty() ? "true" : setting.value});
  }
  const std::string given = question.value("--microbatches");
  Words values{fmt::format("{}", microbatches)};
  if (!given.empty() && given != values.front()) values.push_back(given);
  std::vector<SweepRow> rows;
  try {
    spec.axes.push_back(list_axis("microbatches", values));
    rows = run_scenarios(checked(spec), 0, static_cast<std::int64_t>(values.size()), 1);
  } catch (const UsageError&) {
    return false;  // checked() refuses what every row would be refused for
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    asker.count(rows[i].verdict.has_value());
    const Question alone = question.with("--microbatches", values[i]);
    const auto row = asker.simulate(alone);
    const std::string what = test::typed(command("sweep", {}, alone));
    if (row.has_value() != rows[i].verdict.has_value()) {
      throw Contradiction{what + (row ? " is refused: " + rows[i].why_not
                                      : std::string(" answers, and simulate refuses"))};
    }
    if (!row) continue;
    const Verdict& verdict = *rows[i].verdict;
    if (verdict.step.count() != step_of(*row)) {
      throw Contradiction{fmt::format("{}: a step of {} ps, and of {} ps by simulate", what,
                                      verdict.step.count(), step_of(*row))};
    }
    Json peaks = Json::array();
    for (const Json& device : row->at("per_device")) {
      if (device.contains("peak_bytes")) peaks.push_back(device.at("peak_bytes"));
    }
    Json others = Json::array();
    for (const Bytes peak : verdict.peak) others.push_back(peak.count);
    hold_equal(peaks, others, what + ": peaks");
  }
  return true;
}

// What the library answers to the question as JSON is what the command prints.
bool request_is_command(Asker& asker, const Question& question, Questions& /*draw*/) {
  const auto row = asker.simulate(question);
  const Json answered = Json::parse(report::answer(request_of(question)));
  const bool refused = answered.contains("error") || answered.at("rows").at(0).contains("error");
  asker.count(!refused);
  const std::string what = "the request " + request_of(question);
  if (refused == row.has_value()) {
    throw Contradiction{what + ": " + answered.dump().substr(0, 400)};
  }
  if (row) hold_equal(*row, answered.at("rows").at(0), what + ": rows");
  return row.has_value();
}

// What stands for nothing may be said or left out.
bool nothing_is_nothing(Asker& asker, const Question& question, Questions& draw) {
  std::vector<Setting> nothings{{"--messages", "async"},
                                {"--device-order", "given"},
                                {"--placement", "segment"},
                                {"--partition", "balanced"}};
  // PipeFB may offload by itself.
  if (!question.value("--schedule").starts_with("pipefb"))
    nothings.push_back({"--offload", "none"});
  // Devices of several bundled machines have other names.
  if (question.value("--cluster").ends_with(".json")) nothings.push_back({"--slow", "gpu0:1"});
  if (question.value("--schedule").find("recompute") == std::string::npos) {
    nothings.push_back({"--recompute", "none"});
  }
  if (question.has_degrees()) {
    for (const char* const flag : {"--tp", "--cp", "--ep", "--dp"}) nothings.push_back({flag, "1"});
    nothings.insert(nothings.end(), {{"--order", "tp-cp-ep-dp-pp"},
                                     {"--zero", "0"},
                                     {"--collectives", "best"},
                                     {"--buckets", "megatron"},
                                     {"--sharing", "fair"}});
  } else {
    nothings.push_back({"--sharing", "fifo"});
  }
  const Setting& nothing = draw.one_of(nothings);
  if (question.has(nothing.flag)) return false;
  auto without = asker.simulate(question);
  const Question said = question.with(nothing.flag, nothing.value);
  auto with = asker.simulate(said);
  const std::string what =
      test::typed(command("simulate", {}, said)) + ": with and without " + nothing.flag;
  if (with.has_value() != without.has_value()) {
    throw Contradiction{what + ": one of both is refused"};
  }
  if (!with) return false;
  without->erase("notes");
  with->erase("notes");  // on what was said without effect
  hold_equal(*without, *with, what);
  return true;
}

bool notes_say(const Json& answer, const std::string& words) {
  return std::any_of(answer.at("notes").begin(), answer.at("notes").end(), [&](const Json& note) {
    return note.get<std::string>().find(words) != std::string::npos;
  });
}

// One pipeline stands for all where they are alike, or a note says by how much not. Shares of a
// link are rounded, and flows that begin together are begun one behind the other: 0.4 millionths of
// a step were seen.
bool one_stands_for_all(Asker& asker, const Question& question, Questions& /*draw*/) {
  const bool fifo = question.value("--sharing") == "fifo";
  if (!question.has("--dp") || question.searches() || fifo) return false;
  const auto one = asker.simulate(question);
  const Question every = question.with("--all-pipelines", "");
  const auto all = one ? asker.simulate(every) : std::nullopt;
  if (!one || !all) return false;
  const std::string what = test::typed(command("simulate", {}, every));
  const bool stated = notes_say(*one, "stages are held twice, and one replica stands for all");
  const std::int64_t slack = 100 + step_of(*one) / (stated ? 100 : 1'000'000);
  if (std::llabs(step_of(*one) - step_of(*all)) > slack) {
    throw Contradiction{fmt::format("{}: a step of {} ps, and without --all-pipelines of {} ps",
                                    what, step_of(*all), step_of(*one))};
  }
  return true;
}

bool bound_is_below(Asker& asker, const Question& question, Questions& /*draw*/) {
  if (question.has_degrees()) return false;
  Question plain = question;
  for (const char* const flag : {"--precision", "--messages", "--sharing"})
    plain = plain.without(flag);
  const Words words = command("bound", {}, plain);
  const auto bound = asker.json(words);
  const auto simulated = bound ? asker.simulate(plain) : std::nullopt;
  if (!bound || !simulated || bound->contains("error")) return false;
  if (bound->at("step_ps") != simulated->at("step_time_ps")) {
    throw Contradiction{test::typed(words) + ": another step than that of simulate"};
  }
  for (const Json& one : bound->at("bounds")) {
    if (one.at("step_ps") <= simulated->at("step_time_ps")) continue;
    throw Contradiction{test::typed(words) + ": a bound above the step: " + one.dump()};
  }
  return true;
}

// Scenarios in which nothing happens are the step; those that jitter are about it, the same with
// any number of threads, and in order.
bool scenarios_are_about_the_step(Asker& asker, const Question& question, Questions& draw) {
  Words flags{"--scenarios", "6", "--seed", fmt::format("{}", 1 + draw.number(99))};
  const bool nothing = draw.once_in(2);
  if (nothing) {
    flags.insert(flags.end(), {"--sometimes-slow", "gpu0:1@0.5"});
  } else {
    flags.insert(flags.end(), {"--jitter", fmt::format("{}%", 1 + draw.number(20))});
  }
  flags.insert(flags.end(), {"--json", "-"});
  Words words = command("whatif", flags, question.without("--steps"));
  const std::string what = test::typed(words);
  const auto text = asker.text(words, true);
  if (!text) return false;
  words.insert(words.end(), {"--threads", "2"});
  if (asker.text(words, true) != text) throw Contradiction{what + ": another answer by 2 threads"};
  const Json found = Json::parse(*text);
  if (found.at("rows").empty()) return false;
  const Json& row = found.at("rows").front();
  for (const auto& [low, high] :
       {std::pair{"p5_ps", "p50_ps"}, {"p50_ps", "p95_ps"}, {"p95_ps", "p99_ps"}}) {
    if (row.at(low) > row.at(high))
      throw Contradiction{fmt::format("{}: {} is above {}", what, low, high)};
  }
  if (!nothing) return true;
  // Ties on a link may be served in another order.
  const auto nominal = row.at("nominal_ps").get<double>();
  for (const char* const key : {"p5_ps", "p99_ps"}) {
    if (std::abs(row.at(key).get<double>() - nominal) <= 1e-6 * nominal) continue;
    throw Contradiction{fmt::format("{}: nothing happens, and the step varies: {}", what,
                                    row.dump().substr(0, 300))};
  }
  return true;
}

// Every point that a plan prints is what simulate says of its command.
bool plan_is_simulate(Asker& asker, const Question& question, Questions& draw) {
  Question open = question;
  for (const char* const flag : {"--tp",
                                 "--cp",
                                 "--ep",
                                 "--etp",
                                 "--pp",
                                 "--zero",
                                 "--schedule",
                                 "--microbatches",
                                 "--microbatch-size",
                                 "--steps",
                                 "--recompute",
                                 "--recompute-start",
                                 "--offload",
                                 "--prefetch",
                                 "--lengths",
                                 "--sequence-parallel",
                                 "--partition",
                                 "--weights",
                                 "--shard-group",
                                 "--zero-every"}) {
    open = open.without(flag);
  }
  const std::string schedule = draw.one_of(Words{"1f1b,gpipe", "zb_h1", "interleaved_1f1b,1f1b_v"});
  const Words flags{"--samples",  fmt::format("{}", 4 * (1 + draw.number(3))),
                    "--schedule", schedule,
                    "--threads",  "1"};
  Words words = command("plan", flags, open);
  words.insert(words.end(), {"--json", "-"});
  const auto answered = asker.text(words, true);
  if (!answered) return false;
  const Json plan = Json::parse(*answered);
  int looked_at = 0;
  for (const Json& point : plan.at("front")) {
    if (++looked_at > 3) break;
    Words again = test::split(point.at("command").get<std::string>(), ' ');
    again.erase(again.begin());
    for (std::string& word : again) std::erase(word, '\'');
    again.emplace_back("--no-changes");
    const auto row = asker.json(again);
    const std::string what = test::typed(words) + ": " + point.at("command").get<std::string>();
    if (!row) throw Contradiction{what + ": is refused"};
    if (point.at("step_time_ps") != row->at("step_time_ps")) {
      throw Contradiction{fmt::format("{}: a step of {}, and of {} by simulate", what,
                                      point.at("step_time_ps").dump(),
                                      row->at("step_time_ps").dump())};
    }
    std::int64_t fullest = 0;
    for (const Json& device : row->at("per_device")) {
      if (device.contains("peak_bytes"))
        fullest = std::max(fullest, device.at("peak_bytes").get<std::int64_t>());
    }
    if (point.contains("peak_bytes") && point.at("peak_bytes") != fullest) {
      throw Contradiction{fmt::format("{}: a peak of {}, and of {} by simulate", what,
                                      point.at("peak_bytes").dump(), fullest)};
    }
    if (point.at("fits") != row->at("fits")) throw Contradiction{what + ": fits otherwise"};
  }
  return true;
}

// The other commands answer without nonsense.
bool others_answer(Asker& asker, const Question& question, Questions& draw) {
  switch (draw.number(5)) {
    case 0:
      return asker.text(command("draw", {}, question)).has_value();
    case 1:
      return asker.text(command("simulate", {"--no-changes", "--why"}, question), true).has_value();
    case 2:
      return asker.text(command("simulate", {}, question), true).has_value();
    case 3:
      return asker.text(command("program", {}, question.without("--precision")), true).has_value();
    default:
      break;
  }
  Question priced = question;
  std::erase_if(priced.settings, [](const Setting& one) {
    return one.flag != "--tp" && one.flag != "--cp" && one.flag != "--sequence-parallel" &&
           one.flag != "--software" && one.flag != "--cuda-graphs";
  });
  return asker.text(command("costs", {}, priced), true).has_value();
}

bool sensitivity_answers(Asker& asker, const Question& question, Questions& /*draw*/) {
  const auto found =
      asker.text(command("sensitivity", {"--threads", "1", "--json", "-"}, question), true);
  if (!found) return false;
  const Json all = Json::parse(*found);
  const auto simulated = asker.simulate(question);
  if (!simulated) return false;
  // The run that is changed is one of so many steps; shares of a link are rounded to picoseconds.
  const std::int64_t step = all.at("step_ps").get<std::int64_t>();
  if (std::llabs(step - step_of(*simulated)) > 100 && !notes_say(all, "the steady state one of")) {
    throw Contradiction{fmt::format("{}: a step of {} ps, and simulate's of {}",
                                    test::typed(command("sensitivity", {}, question)), step,
                                    step_of(*simulated))};
  }
  return true;
}

constexpr std::array agreeing{
    Law{"compare", "a row of compare is the answer of simulate", 14, Kind::any,
        compare_is_simulate},
    Law{"sweep", "a row of a sweep has simulate's step and peaks", 14, Kind::any,
        sweep_is_simulate},
    Law{"request", "a request in JSON gets the command's answer", 12, Kind::any,
        request_is_command},
    Law{"nothing", "a degree of 1, ZeRO 0 and other defaults may be left out", 16, Kind::any,
        nothing_is_nothing},
    Law{"all-pipelines", "one replica stands for all that are alike", 12, Kind::ranks,
        one_stands_for_all},
    Law{"bound", "no bound is above the step", 6, Kind::pipeline, bound_is_below},
    Law{"scenarios", "scenarios without a change are the step", 6, Kind::any,
        scenarios_are_about_the_step},
    Law{"plan", "the points of a plan are what simulate says of them", 1, Kind::any,
        plan_is_simulate},
    Law{"others", "draw, program, costs and --why answer without nonsense", 8, Kind::any,
        others_answer},
    Law{"sensitivity", "the step of sensitivity is that of simulate", 2, Kind::any,
        sensitivity_answers},
};

}  // namespace

std::span<const Law> agreements() { return agreeing; }

}  // namespace stageline::trial
