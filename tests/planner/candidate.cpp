// Do a candidate's flags ask for that candidate, and is judging it the same as studying it?
#include "tools/planner/candidate.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "cost_models/state_bytes.hpp"
#include "sim/errors.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command_line.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

Candidate on_pipeline(const std::string& schedule, int devices, int microbatches) {
  Candidate candidate;
  candidate.spec = parse_schedules(schedule).at(0);
  candidate.shape.degrees.pipeline = devices;
  candidate.shape.microbatches = microbatches;
  return candidate;
}

SettingRequest measured() {
  SettingRequest base;
  base.trace = "resnet50-cpu";
  base.cluster.cluster = "v100x4-pcie";
  return base;
}

SettingRequest language_model() {
  SettingRequest base;
  base.trace = "model:gpt@h100,layers=8,hidden=1024,heads=16,seq=1024,batch=1";
  base.cluster.cluster = "h100x8*2";
  return base;
}

// Of a language model, with what a candidate can say of everything.
std::vector<Candidate> many() {
  std::vector<Candidate> all;
  Candidate wide = on_pipeline("zb_h1", 4, 8);
  wide.shape.degrees.tensor = 2;
  wide.shape.degrees.data = 2;
  wide.shape.sequence_parallel = true;
  wide.shape.degrees.zero = Zero::optimizer;
  wide.shape.degrees.precision = find_precision("bf16");
  wide.shape.microbatch_size = 2;
  wide.recomputation = parse_recomputation("every:2@0,2-3;full@1", "");
  wide.recomputation.start = RecomputeStart::late;
  all.push_back(wide);

  Candidate copied = on_pipeline("gpipe:recompute=never", 2, 4);
  copied.offloading = parse_offloading("@0", "");
  copied.offloading.ahead = 3;
  copied.partition = "0-4,5-";
  all.push_back(copied);

  Candidate nested = on_pipeline("interleaved_1f1b:chunks=2", 2, 4);
  nested.shape.degrees.context = 2;
  nested.shape.degrees.data = 2;
  nested.shape.degrees.order = {Dimension::context, Dimension::pipeline, Dimension::expert,
                                Dimension::tensor, Dimension::data};
  nested.recomputation = parse_recomputation("selective", "");
  nested.partition = "Et|tt|ttt|ttL";
  all.push_back(nested);

  all.push_back(on_pipeline("1f1b", 8, 16));
  return all;
}

}  // namespace

TEST_CASE("the flags of a candidate ask for it to the letter") {
  const SettingRequest base = language_model();
  Candidate wide = many().at(0);
  CHECK(flags_of(base, wide) ==
        "--schedule zb_h1 --pp 4 --tp 2 --dp 2 --zero 1 --precision bf16 --sequence-parallel "
        "--microbatch-size 2 --microbatches 8 --recompute 'every:2@0,2-3;full@1' "
        "--recompute-start late");
  CHECK(flags_of(base, many().at(1)) ==
        "--schedule gpipe --devices 2 --microbatches 4 --partition 0-4,5- --offload @0 "
        "--prefetch 3");
  CHECK(flags_of(base, many().at(2)) ==
        "--schedule interleaved_1f1b --pp 2 --cp 2 --dp 2 --order cp-pp-ep-tp-dp --microbatches 4 "
        "--partition 'Et|tt|ttt|ttL' --recompute selective");
}
