// Is what is no profile of a run refused, with its place?
#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_refused_tests {
namespace {

using profiles::cpu_profiles;
using profiles::error_of;
using profiles::Form;
using profiles::noted;
using profiles::one_step;
using profiles::profile_text;
using profiles::Range;
using profiles::small_run;

TEST_CASE("a rank that is missing, there twice, or a replica is refused") {
  std::vector<NamedText> files = cpu_profiles(small_run());
  CHECK(contains(error_of({files[0], files[2]}).what(),
                 "stage 1 of 3 runs in none of the profiles; "
                 "give that of every rank of the pipeline"));
  // The last stage is known from the messages to it.
  CHECK(contains(error_of({files[0], files[1]}).what(), "stage 2 of 3 runs in none"));
  CHECK(contains(error_of({files[0], files[1], files[1]}).what(),
                 "rank 1 is that of rank1.json too; give one profile a rank"));
  NamedText replica = files[1];
  replica.file = "rank5.json";
  replica.text = replaced(replica.text, "\"rank\": 1", "\"rank\": 5");
  CHECK(contains(error_of({files[0], files[1], files[2], replica}).what(),
                 "stage 1 runs in rank1.json too; give the ranks of one pipeline (one replica)"));
}

TEST_CASE("actions that are no op are left out with a note, and unknown ones refused") {
  std::vector<Range> ranges = one_step;
  ranges.push_back({"PP:0UNSHARD", 100, 200});
  ranges.push_back({"PP:0REDUCE_GRAD", 5000, 5300});
  ranges.push_back({"PP:0RESHARD", 6000, 6100});
  Form form;
  form.rank = 0;
  const KinetoRun run = read_kineto({{"rank0.json", profile_text(ranges, form)}});
  CHECK(noted(run,
              "3 ranges of UNSHARD, RESHARD and REDUCE_GRAD are left out (500.0 ns in all ranks)"));
  for (const char* const wrong :
       {"PP:0X0", "PP:", "PP:F0", "PP:0F", "PP:0F0.1", "PP:0U0", "PP:0OFFLOAD1", "PP:UNSHARD",
        "PP:0F0 ", "PP:(0F1;0B0)", "PP:(0F1)OVERLAP_F_B", "PP:(0F1;0SEND_B0)OVERLAP_F_B",
        "PP:(0F1;0B0)OVERLAP"}) {
    ranges[3].name = wrong;
    const TraceError error = error_of(ranges);
    CHECK(error.where == "/traceEvents/4/name");
    CHECK(contains(error.what(), fmt::format("\"{}\" is not a known action", wrong)));
  }
}

TEST_CASE("what is no profile is refused with its place") {
  Form form;
  form.rank = 0;
  const std::string text = profile_text(one_step, form);
  const auto refused = [](const std::string& wrong) {
    return error_of({NamedText{"rank0.json", wrong}});
  };
  CHECK(contains(refused("rank 0").what(), "rank0.json at line 1, column 1: this is not JSON"));
  CHECK(contains(refused("").what(), "this is not JSON"));
  CHECK(contains(refused("[]").what(), "a trace is a JSON object"));
  CHECK(contains(refused("{}").what(), "\"traceEvents\" is missing"));
  CHECK(refused("{\"traceEvents\": 3}").where == "/traceEvents");
  CHECK(refused("{\"traceEvents\": [3]}").where == "/traceEvents/0");
  CHECK(contains(refused(text.substr(0, text.size() / 2)).what(), "this is not JSON"));
  CHECK(contains(refused(replaced(text, "PP:0F0", "a")).what(), "no step is complete"));
  CHECK(contains(refused(R"({"traceEvents": [
    {"ph": "X", "cat": "python_function", "ts": 1, "dur": 2,
     "name": "pipeline_parallel/schedules.py(1): backward_step"},
    {"ph": "X", "cat": "python_function", "ts": 1, "dur": 2,
     "name": "pipeline_parallel/schedules.py(2): forward_step"},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 4, "dur": 4}]})")
                     .what(),
                 "rank0.json: no forward or backward pass lies within a step"));
  CHECK(contains(refused("{\"traceEvents\": []}").what(),
                 "it has no range that is named like \"PP:2F0\" or \"Forward 0\"; PyTorch's"));
  CHECK(refused(replaced(text, "\"ts\": 1.000", "\"ts\": \"1\"")).where == "/traceEvents/1/ts");
  CHECK(contains(refused(replaced(text, "\"ts\": 1.000", "\"ts\": [1]")).what(),
                 "at /traceEvents/1/ts: this must be a number of microseconds"));
  CHECK(refused(replaced(text, "\"ts\": 1.000", "\"ts\": -1")).where == "/traceEvents/1/ts");
  CHECK(refused(replaced(text, "\"dur\": 1.000", "\"dur\": 1e30")).where == "/traceEvents/1/dur");
  CHECK(contains(refused(replaced(text, "\"dur\": 1.000", "\"due\": 1.000")).what(),
                 "at /traceEvents/1: a range needs \"dur\", in microseconds"));
  CHECK(refused(replaced(text, "\"name\": \"PP:0F0\"", "\"name\": 4")).where ==
        "/traceEvents/1/name");
  CHECK(refused(replaced(text, "\"tid\": 1", "\"tid\": []")).where == "/traceEvents/1/tid");
  CHECK(refused(replaced(text, "\"rank\": 0", "\"rank\": -3")).where == "/distributedInfo/rank");
  CHECK(refused(replaced(text, "\"rank\": 0", "\"rank\": \"0\"")).where == "/distributedInfo/rank");
  CHECK(refused(replaced(text, "1790857026000000000", "-4")).where == "/baseTimeNanoseconds");
}

TEST_CASE("ranges that contradict each other make no program") {
  std::vector<Range> ranges = one_step;
  ranges.push_back({"PP:0SEND_B0", 5000, 5100});  // stage 0 has no one to send to
  CHECK(contains(error_of(ranges).what(), "the ranges do not make a program"));
}

}  // namespace
}  // namespace stageline::kineto_refused_tests
