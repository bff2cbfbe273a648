// Is the cheapest change the cheapest, whatever the number of threads, and are changes what they
// say?
#include "tools/planner/cheapest_change.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tools/planner/changes.hpp"
#include "tools/planner/cuts/cut_search.hpp"

namespace stageline::cheapest_change_tests {
namespace {

struct Tight {
  const char* trace;
  const char* schedule;
  int devices;
  int microbatches;
  const char* memory;
};

constexpr Tight tight[] = {
    {"uniform:layers=8,batch=4", "1f1b", 4, 8, "20MB"},
    {"uniform:layers=8,batch=4", "gpipe", 4, 8, "24MB"},
    {"uniform:layers=16,output=1MB,stash=5MB", "interleaved_1f1b", 4, 8, "40MB"},
    {"uniform:layers=8,weights=1MB,stash=6MB,batch=6", "zb_h1", 4, 6, "30MB"},
    {"lenet5-cpu", "1f1b", 3, 12, "40MB"},
};

SettingRequest request_of(const Tight& one) {
  SettingRequest request;
  request.trace = one.trace;
  request.devices = {one.devices};
  request.microbatches = one.microbatches;
  request.cluster.memory = parse_bytes(one.memory);
  request.cluster.link = parse_link("1GB/s,10us");
  return request;
}

planner::Candidate candidate_of(const Tight& one, const SettingRequest& request) {
  return planner::candidate_of(request, read_setting(request),
                               parse_schedules(one.schedule).front(), one.devices);
}

planner::FitQuestion question_of(const Tight& one, const SettingRequest& request, int workers = 0) {
  planner::FitQuestion question;
  question.from = {candidate_of(one, request)};
  question.limits.most_devices = 16;
  question.workers = workers;
  return question;
}

TEST_CASE("no single change that fits is cheaper than the cheapest change") {
  int fitting = 0;
  for (const Tight& one : tight) {
    CAPTURE(one.trace);
    CAPTURE(one.schedule);
    const SettingRequest request = request_of(one);
    planner::Evaluator evaluator(request);
    const planner::FitQuestion question = question_of(one, request);
    const planner::Candidate& from = question.from.front();
    const planner::Judgement start = evaluator.judge(from);
    REQUIRE(start.verdict);
    REQUIRE(start.verdict->fit == Fit::no);
    const planner::CheapestChange found = planner::cheapest_change(evaluator, question);
    REQUIRE_FALSE(found.fitting.empty());
    CHECK_FALSE(found.nearest);
    const double samples = static_cast<double>(one.microbatches) *
                           std::max(evaluator.setting(from.shape)->model.batch, 1);
    for (const planner::Change& change :
         planner::single_changes(from, evaluator.case_of(from), *start.verdict, question.limits)) {
      const planner::Judgement judged = evaluator.judge(change.candidate);
      if (!judged.verdict || judged.verdict->fit == Fit::no) continue;
      ++fitting;
      CAPTURE(flags_of(request, change.candidate));
      const double cost =
          to_seconds(judged.verdict->step) * change.candidate.shape.devices() / samples;
      CHECK(cost >= found.fitting.front().cost);
    }
    for (std::size_t i = 0; i < found.fitting.size(); ++i) {
      const planner::ChangedCandidate& way = found.fitting[i];
      CHECK(way.fits());
      CHECK(way.cost >= found.fitting.front().cost);
      // As it is said, so it runs.
      const planner::Judgement again = evaluator.judge(way.candidate);
      REQUIRE(again.verdict);
      CHECK(again.verdict->step == way.verdict.step);
      CHECK(again.verdict->peak == way.verdict.peak);
    }
  }
  CHECK(fitting > 10);
}

TEST_CASE("the cheapest change is the same with any number of threads") {
  for (const Tight& one : tight) {
    const SettingRequest request = request_of(one);
    std::vector<std::string> said;
    for (const int workers : {1, 2, 7}) {
      planner::Evaluator evaluator(request);
      const planner::CheapestChange found =
          planner::cheapest_change(evaluator, question_of(one, request, workers));
      std::string text = std::to_string(found.simulated);
      for (const planner::ChangedCandidate& way : found.fitting) {
        text += "\n" + flags_of(request, way.candidate) + " " + print(way.verdict.step);
      }
      said.push_back(std::move(text));
    }
    CHECK(said[0] == said[1]);
    CHECK(said[0] == said[2]);
  }
}

TEST_CASE("changes hold the samples of a step, and are all different") {
  SettingRequest request;
  request.trace = "model:transformer@a100,layers=8,hidden=1024,heads=16,seq=1024,batch=4";
  request.cluster.cluster = "a100x8";
  request.cluster.memory = parse_bytes("4GB");
  request.degrees.tensor = 2;
  request.degrees.data = 2;
  request.microbatches = 8;
  const Setting setting = read_setting(request);
  const planner::Candidate from =
      planner::candidate_of(request, setting, parse_schedules("1f1b").front(), 8);
  planner::Evaluator evaluator(request);
  const planner::Judgement start = evaluator.judge(from);
  REQUIRE(start.verdict);
  planner::ChangeLimits limits;
  limits.most_devices = 16;
  limits.hosts = true;
  const std::vector<planner::Change> changes =
      planner::single_changes(from, evaluator.case_of(from), *start.verdict, limits);
  const auto samples = [&](const planner::Shape& shape) {
    const int size = shape.microbatch_size > 0 ? shape.microbatch_size : setting.model.batch;
    return std::int64_t{size} * shape.microbatches * shape.degrees.data;
  };
  for (const planner::ChangeKind kind : planner::all_change_kinds) {
    CAPTURE(name(kind));
    // A chain of one stage a device has no knobs with 1f1b.
    if (kind == planner::ChangeKind::knob) continue;
    CHECK(std::any_of(changes.begin(), changes.end(),
                      [&](const planner::Change& change) { return change.kind == kind; }));
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const planner::Candidate& changed = changes[i].candidate;
    CAPTURE(flags_of(request, changed));
    CHECK(samples(changed.shape) == samples(from.shape));
    CHECK_FALSE(planner::same(changed, from));
    CHECK(changed.shape.devices() <= limits.most_devices);
    if (changes[i].kind != planner::ChangeKind::devices) CHECK(changed.shape.devices() == 8);
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(planner::same(changed, changes[j].candidate));
  }
  limits.is_fixed = true;
  for (const planner::Change& change :
       planner::single_changes(from, evaluator.case_of(from), *start.verdict, limits)) {
    CHECK(change.candidate.shape == from.shape);
  }
}

TEST_CASE("promising cuts are tried, and one may fit where no plain one does") {
  const Tight one{"resnet50-cpu", "1f1b", 4, 16, "1.05GB"};
  const SettingRequest request = request_of(one);
  planner::Evaluator evaluator(request);
  planner::FitQuestion question = question_of(one, request);
  question.limits.is_fixed = true;
  const planner::Candidate& from = question.from.front();
  const planner::Judgement start = evaluator.judge(from);
  REQUIRE(start.verdict);
  REQUIRE(start.verdict->fit == Fit::no);
  std::vector<std::string> cuts;
  for (const planner::Change& change :
       planner::single_changes(from, evaluator.case_of(from), *start.verdict, question.limits)) {
    if (change.kind == planner::ChangeKind::cut) cuts.push_back(change.candidate.partition);
  }
  for (const std::string& cut : planner::promising_cuts(evaluator.case_of(from), 3)) {
    CAPTURE(cut);
    CHECK((cut == from.partition || std::find(cuts.begin(), cuts.end(), cut) != cuts.end()));
  }
  for (const char* const plain : {"balanced", "uniform", "blocks"}) {
    planner::Candidate other = from;
    other.partition = plain;
    const planner::Judgement judged = evaluator.judge(other);
    CHECK((!judged.verdict || judged.verdict->fit == Fit::no));
  }
  const planner::CheapestChange found = planner::cheapest_change(evaluator, question);
  const auto by_cut = std::find_if(found.fitting.begin(), found.fitting.end(),
                                   [](const planner::ChangedCandidate& way) {
                                     return way.changes == std::vector{planner::ChangeKind::cut};
                                   });
  REQUIRE(by_cut != found.fitting.end());
  CHECK(by_cut->candidate.partition.find('-') != std::string::npos);
  CHECK(by_cut->fits());
}

TEST_CASE("knobs of memory are tried, others are not") {
  const Tight one{"uniform:layers=16", "zb_auto", 4, 8, "20MB"};
  const SettingRequest request = request_of(one);
  planner::Evaluator evaluator(request);
  const planner::Candidate from = candidate_of(one, request);
  const planner::Judgement start = evaluator.judge(from);
  REQUIRE(start.verdict);
  std::vector<std::string> values;
  for (const planner::Change& change : planner::single_changes(
           from, evaluator.case_of(from), *start.verdict, planner::ChangeLimits{})) {
    if (change.kind != planner::ChangeKind::knob) continue;
    CHECK(change.candidate.spec.knobs.at("goal") == from.spec.knobs.at("goal"));
    values.push_back(change.what);
  }
  for (const char* const value :
       {"limit=memory", "limit=2p", "limit=3", "limit=1", "placement=v"}) {
    CHECK(std::find(values.begin(), values.end(), value) != values.end());
  }
}

// Llama 3 8B as one pipeline on two of the devices of a machine.
SettingRequest language_request() {
  SettingRequest request;
  request.trace = "model:llama3-8b@h100";
  request.cluster.cluster = "h100x8";
  request.devices = {2};
  request.microbatches = 8;
  return request;
}

planner::FitQuestion language_question(const SettingRequest& request) {
  planner::FitQuestion question;
  question.from = {
      planner::candidate_of(request, read_setting(request), parse_schedules("gpipe").front(), 2)};
  question.limits.most_devices = 8;
  question.limits.hosts = true;
  return question;
}

TEST_CASE("a pipeline alone of a language model is tried with tensor and sequence parallelism") {
  const SettingRequest request = language_request();
  planner::Evaluator evaluator(request);
  const planner::FitQuestion question = language_question(request);
  const planner::Judgement judged = evaluator.judge(question.from.front());
  REQUIRE(judged.verdict);
  bool plain = false;
  bool sequence = false;
  for (const planner::Change& change :
       planner::single_changes(question.from.front(), evaluator.case_of(question.from.front()),
                               *judged.verdict, question.limits)) {
    if (change.candidate.shape.degrees.tensor == 1) continue;
    (change.candidate.shape.sequence_parallel ? sequence : plain) = true;
    CHECK(evaluator.judge(change.candidate).verdict);
  }
  CHECK(plain);
  CHECK(sequence);
}

TEST_CASE("copies to the host that do not suffice are given up where that is cheaper") {
  SettingRequest request = language_request();
  request.cluster.memory = parse_bytes("78GB");
  planner::Evaluator evaluator(request);
  planner::FitQuestion question = language_question(request);
  const planner::CheapestChange without = planner::cheapest_change(evaluator, question);
  question.from.front().offloading.all = true;
  const planner::Judgement judged = evaluator.judge(question.from.front());
  REQUIRE(judged.verdict);
  REQUIRE(judged.verdict->fit == Fit::no);
  const planner::CheapestChange with = planner::cheapest_change(evaluator, question);
  REQUIRE_FALSE(without.fitting.empty());
  REQUIRE_FALSE(with.fitting.empty());
  // Single changes without copies are among those that are tried, whatever the copies cost.
  for (const planner::ChangedCandidate& one : without.fitting) {
    if (one.changes.size() == 1) CHECK(with.fitting.front().cost <= one.cost);
  }
}

}  // namespace
}  // namespace stageline::cheapest_change_tests
