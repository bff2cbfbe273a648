#include "tools/answers/planned.hpp"

#include <fmt/format.h>

#include <utility>

#include "cost_models/batch.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tools/answers/question.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {
namespace {

void add_recommended(const planner::PlanPoint& point, bool drawn, PlanAnswer& found) {
  const SettingRequest again = request_of(found.request.setting, point.candidate);
  const Setting its = read_setting(again);
  for (const std::string& note : its.model.provenance.notes) {
    if (is_on_batch(note)) found.size_notes.push_back("→ " + note);
  }
  if (!drawn) return;
  found.drawn.push_back(
      planner::searched_case(again, its, point.candidate.spec, its.device_counts.front()));
  found.outcomes.push_back(study(found.drawn.back(), Curves::all));
}

}  // namespace

PlanAnswer answer(const PlanQuestion& question) {
  const std::string& lengths = question.request.setting.lengths;
  if (!lengths.empty() && count_of_lengths(lengths) == 0) {
    throw UsageError(
        "--lengths: drawn lengths differ from one number of micro-batches to another, so that no two "
        "plans would do the same work; give those of a step, a list or a file");
  }
  PlanAnswer found{read_setting(question.request.setting), question.request};
  if (question.complete) question.complete(found.setting, found.request);
  found.plan = planner::plan(found.request);
  found.interrupted =
      found.plan.partial && found.request.stop != nullptr && found.request.stop->load();
  if (found.interrupted && found.plan.front.empty()) {
    throw NothingKnown{"no candidate was found that fits"};
  }
  if (found.plan.recommended) {
    add_recommended(found.plan.front[*found.plan.recommended], question.drawn, found);
  }
  return found;
}

}  // namespace stageline::answers
