// Does a profile of a real run come back as what ran, and when?
#include <cstdlib>

#include "sim/index.hpp"
#include "tests/traces/profiles.hpp"
#include "tests/traces/support.hpp"

namespace stageline {
namespace {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;
using profiles::cpu_profiles;
using profiles::cpu_ranges;
using profiles::Form;
using profiles::profile_text;
using profiles::Range;

const Drawing& small_run() {
  static const Drawing run = drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 8);
  return run;
}

bool noted(const KinetoRun& run, const std::string& part) {
  for (const std::string& note : run.notes) {
    if (contains(note, part)) return true;
  }
  return false;
}

void check_compute_lanes(const Timeline& read, const Timeline& simulated) {
  REQUIRE(read.lanes.size() == simulated.lanes.size());
  for (std::size_t lane = 0; lane < read.lanes.size(); lane += lane_kinds) {
    CHECK(read.lanes[lane] == simulated.lanes[lane]);
  }
}

TraceError error_of(const std::vector<NamedText>& files) {
  return trace_error_of([&] { read_kineto(files); });
}

TraceError error_of(const std::vector<Range>& ranges) {
  Form form;
  form.rank = 0;
  return error_of({NamedText{"rank0.json", profile_text(ranges, form)}});
}

// One stage, one micro-batch.
const std::vector<Range> one_step{{"PP:0F0", 1000, 2000}, {"PP:0B0", 2000, 4000}};

TEST_CASE("a profile gives back the program and when it ran, waiting not counted") {
  const KinetoRun run = read_kineto(cpu_profiles(small_run()));
  check_compute_lanes(run.timeline, small_run().timeline);
  CHECK(run.program.ops == small_run().program.ops);
  CHECK(run.program.microbatches == 4);
  CHECK(run.program.steps == 1);
  CHECK(run.program.devices == std::vector<std::string>{"rank0", "rank1", "rank2"});
  CHECK(run.ranks == std::vector<int>{0, 1, 2});
  CHECK(run.shifts.empty());
  CHECK(run.source == RangeSource::cpu);
  CHECK(run.date == "2026-10-01");
  CHECK(run.waited[0] > millisecond);
  CHECK(noted(run, "ranges that wait for a message begin when it has arrived"));
}

TEST_CASE("times are whole or fractional, absolute or relative, and files gzip data or plain") {
  const KinetoRun plain = read_kineto(cpu_profiles(small_run()));
  for (const bool relative : {true, false}) {
    for (const bool whole : {true, false}) {
      for (const bool gzip : {true, false}) {
        Form form;
        form.relative = relative;
        form.whole = whole;
        std::vector<NamedText> files = cpu_profiles(small_run(), form);
        if (gzip) {
          for (NamedText& file : files) file.text = profiles::gzipped(file.text);
        }
        CHECK(read_kineto(files).timeline == plain.timeline);
      }
    }
  }
  // Old files name no base and count from 1970; each rank may have another base.
  std::vector<NamedText> files = cpu_profiles(small_run());
  Form old;
  old.rank = 1;
  old.base = 0;
  files[1].text = profile_text(cpu_ranges(small_run(), 1, Form{}.base), old);
  Form other;
  other.rank = 2;
  other.base = Form{}.base - 5'000'000'000;
  files[2].text = profile_text(cpu_ranges(small_run(), 2, 5'000'000'000), other);
  CHECK(read_kineto(files).timeline == plain.timeline);
}

TEST_CASE("files may come in any order") {
  std::vector<NamedText> files = cpu_profiles(small_run());
  std::swap(files[0], files[2]);
  CHECK(read_kineto(files).timeline == read_kineto(cpu_profiles(small_run())).timeline);
}

TEST_CASE("files that do not say their rank are numbered as they stand, with a note") {
  std::vector<NamedText> files;
  for (std::size_t d = 0; d < 3; ++d) {
    files.push_back({profiles::file_name(static_cast<int>(d)),
                     profile_text(cpu_ranges(small_run(), d), Form{})});
  }
  const KinetoRun run = read_kineto(files);
  check_compute_lanes(run.timeline, small_run().timeline);
  CHECK(noted(run,
              "rank0.json does not say its rank (distributedInfo.rank): "
              "ranks are numbered in the order of the files"));
}

TEST_CASE("clocks that disagree are shifted until every message arrives after it was sent") {
  constexpr std::int64_t apart = 20'000'000;
  for (const std::int64_t by : {apart, -apart}) {
    // Rank 1 is on another host.
    std::vector<NamedText> files;
    for (int d = 0; d < 3; ++d) {
      Form form;
      form.rank = d;
      form.host = d == 1 ? "b" : "a";
      files.push_back(
          {profiles::file_name(d),
           profile_text(cpu_ranges(small_run(), as_size(d), 30'000'000 + (d == 1 ? by : 0)),
                        form)});
    }
    const KinetoRun run = read_kineto(files);
    REQUIRE(run.shifts.size() == 3);
    CHECK(run.shifts[0].shift == Time{});
    CHECK(run.shifts[2].shift == Time{});
    // What the messages allow is less than a step, and the truth is in it.
    const Time truth = std::chrono::nanoseconds(-by);
    const Time off = run.shifts[1].shift - truth;
    CHECK(std::abs(off.count()) <= run.shifts[1].either_way.count() + 1000);
    CHECK(run.shifts[1].either_way < 4 * millisecond);
    CHECK(noted(run, "the clocks disagree"));
    CHECK(noted(run, by > 0 ? "rank 1 by -" : "rank 1 by +"));
    // And now they do.
    const auto spans = profiles::spans_of(run.timeline);
    int messages = 0;
    for (const auto& [op, span] : spans) {
      if (op.kind != OpKind::receive_forward) continue;
      Op send = op;
      send.kind = OpKind::send_forward;
      --send.stage;
      CHECK(span.end >= spans.at(send).start);
      ++messages;
    }
    CHECK(messages == 8);
  }
}

TEST_CASE("clocks of hosts that disagree by less than a message takes are brought together too") {
  // A message takes 1/8 ms; by these clocks it takes 0.225 ms one way and 0.025 ms the other.
  std::vector<NamedText> files;
  for (int d = 0; d < 3; ++d) {
    Form form;
    form.rank = d;
    form.host = d == 1 ? "b" : "a";
    files.push_back(
        {profiles::file_name(d),
         profile_text(cpu_ranges(small_run(), as_size(d), d == 1 ? 1'100'000 : 1'000'000), form)});
  }
  const KinetoRun run = read_kineto(files);
  REQUIRE(run.shifts.size() == 3);
  CHECK(run.shifts[1].shift == -millisecond / 10);
  CHECK(noted(run, "since the fastest messages take much longer one way than the other"));
  check_compute_lanes(run.timeline, small_run().timeline);
  // On one host the clock is one, and messages just take longer one way.
  for (NamedText& file : files) {
    file.text = replaced(file.text, "\"host_name\": ", "\"other_name\": ");
  }
  CHECK(read_kineto(files).shifts.empty());
}

TEST_CASE("ranks of one host whose clocks disagree all the same are shifted one by one") {
  Form form;
  form.host = "one";
  const KinetoRun run = read_kineto(cpu_profiles(small_run(), form, {5'000'000, 0, 5'000'000}));
  REQUIRE(run.shifts.size() == 3);
  CHECK(run.shifts[1].shift > 4 * millisecond);
}

TEST_CASE("ranks of one host that never ran together are of two runs") {
  Form form;
  form.host = "one";
  const TraceError error =
      error_of(cpu_profiles(small_run(), form, {1'000'000, 53'071'000'000, 1'000'000}));
  CHECK(error.file == "rank1.json");
  CHECK(contains(error.what(),
                 "it has no moment in common with rank0.json, though both are of the host one, "
                 "so these are not profiles of one run: rank0.json is from 2026-10-01 "
                 "12:17:06.001 to 2026-10-01 12:17:06."));
  CHECK(
      contains(error.what(), "rank1.json is from 2026-10-01 12:17:59.071 to 2026-10-01 12:17:59."));
  // On hosts with clocks of their own it may be one run, and the messages say by how much.
  std::vector<NamedText> files;
  for (int d = 0; d < 3; ++d) {
    Form other;
    other.rank = d;
    other.host = d == 1 ? "b" : "a";
    files.push_back(
        {profiles::file_name(d),
         profile_text(cpu_ranges(small_run(), as_size(d), d == 1 ? 3'600'000'000'000 : 0), other)});
  }
  CHECK(read_kineto(files).shifts.at(1).shift == -3600 * 1000 * millisecond);
}

TEST_CASE("profiles of runs of different sizes are refused") {
  Form form;
  form.rank = 0;
  std::vector<NamedText> files = cpu_profiles(small_run());
  for (NamedText& file : files) {
    file.text =
        replaced(file.text, "\"backend\": \"gloo\"", "\"backend\": \"gloo\", \"world_size\": 3");
  }
  CHECK(read_kineto(files).ranks.size() == 3);
  files[2].text = replaced(files[2].text, "\"world_size\": 3", "\"world_size\": 4");
  const TraceError error = error_of(files);
  CHECK(error.where == "/distributedInfo/world_size");
  CHECK(contains(error.what(), "it is of a run of 4 ranks, and rank0.json of one of 3"));
}

TEST_CASE("profiles of different runs are refused where no shift helps") {
  // 1F0 is over before 0F0 begins, and 1B0 ends long after 0B0 has.
  const std::vector<Range> first{{"PP:0F0", 5'000'000, 6'000'000},
                                 {"PP:0B0", 6'500'000, 7'000'000}};
  const std::vector<Range> second{{"PP:1F0", 1'000'000, 2'000'000},
                                  {"PP:1B0", 8'000'000, 9'000'000}};
  Form a;
  a.rank = 0;
  Form b;
  b.rank = 1;
  const TraceError error =
      error_of({NamedText{"a.json", profile_text(first, a)}, {"b.json", profile_text(second, b)}});
  CHECK(contains(error.what(),
                 "b.json: no shift of the clocks lets every message arrive after it was sent: "
                 "for 1F0 (step 0) its clock must be at least 4.000 ms later, for 0B0 (step 0) "
                 "of a.json at least 2.000 ms earlier, so these are not profiles of one run; "
                 "a.json is from 2026-10-01 12:17:06.005 to 2026-10-01 12:17:06.007, "
                 "b.json is from 2026-10-01 12:17:06.001 to 2026-10-01 12:17:06.009"));
}

TEST_CASE("profiles that lie days apart are refused") {
  std::vector<NamedText> files = cpu_profiles(small_run());
  Form form;
  form.rank = 0;
  const std::vector<Range> late{{"PP:0F0", 0, 10},
                                {"PP:0B0", 200'000'000'000'000, 200'000'000'000'010}};
  CHECK(contains(error_of({NamedText{"a.json", profile_text(late, form)}}).what(),
                 "the ranges of the profiles lie 200000 s apart; they are not of one run"));
}

// The run three times over, `gap` ns from each to the next.
std::vector<Range> repeated(std::size_t device, std::int64_t gap, bool steps, int times) {
  std::vector<Range> all;
  for (int k = 0; k < times; ++k) {
    const std::vector<Range> one = cpu_ranges(small_run(), device, 1000 + k * gap);
    if (steps) {
      all.push_back({fmt::format("ProfilerStep#{}", 5 + k), 500 + k * gap, 500 + (k + 1) * gap});
    }
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST_CASE("several steps are told apart, with ProfilerStep ranges and without") {
  constexpr std::int64_t gap = 40'000'000;
  for (const bool named : {true, false}) {
    std::vector<NamedText> files;
    for (int d = 0; d < 3; ++d) {
      Form form;
      form.rank = d;
      files.push_back(
          {profiles::file_name(d), profile_text(repeated(as_size(d), gap, named, 3), form)});
    }
    const KinetoRun run = read_kineto(files);
    CHECK(run.program.steps == 3);
    CHECK(run.program.microbatches == 4);
    CHECK(run.timeline.lane(0, LaneKind::compute).size() == 3 * 9);
    const auto spans = profiles::spans_of(run.timeline);
    CHECK(spans.at(*parse_op("2F8")).start - spans.at(*parse_op("2F4")).start == 40 * millisecond);
    CHECK(spans.at(*parse_op("2U2")).end - spans.at(*parse_op("2U0")).end == 80 * millisecond);
  }
}

TEST_CASE("a step that is not whole on every rank is left out, with a note") {
  constexpr std::int64_t gap = 40'000'000;
  std::vector<NamedText> files;
  for (int d = 0; d < 3; ++d) {
    Form form;
    form.rank = d;
    std::vector<Range> ranges = repeated(as_size(d), gap, true, 3);
    if (d == 1) ranges.resize(ranges.size() - 3);  // the end of the last step
    files.push_back({profiles::file_name(d), profile_text(ranges, form)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.steps == 2);
  CHECK(
      noted(run, "steps that are not complete on every rank are left out: 7 (step 7 has no 1B3)"));

  Form form;
  form.rank = 0;
  files.resize(1);
  files[0].text = profile_text({{"PP:0F0", 1000, 2000}}, form);
  CHECK(contains(error_of(files).what(),
                 "no step is complete on every rank: step 0 has no 0B0; "
                 "profile at least one whole step of training"));
}

TEST_CASE("ranges outside of every ProfilerStep are left out") {
  std::vector<Range> ranges = one_step;
  ranges.push_back({"ProfilerStep#3", 500, 5000});
  ranges.push_back({"PP:0F0", 6000, 7000});
  Form form;
  form.rank = 0;
  const KinetoRun run = read_kineto({{"rank0.json", profile_text(ranges, form)}});
  CHECK(run.program.ops[0].size() == 2);
  CHECK(noted(run, "1 ranges lie outside of every ProfilerStep and are left out"));
  ranges[2] = {"ProfilerStep#3", 5500, 5600};
  CHECK(contains(error_of(ranges).what(),
                 "none of its 3 pipeline ranges begins inside of a ProfilerStep range"));
  ranges[2].name = "ProfilerStep#last";
  CHECK(error_of(ranges).where == "/traceEvents/3/name");
}

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

// Launches on the CPU, all at once; the work on the GPU when it ran. `streams`: cut in two.
std::vector<Range> gpu_ranges(std::size_t device, bool ids, bool streams) {
  const auto spans = profiles::spans_of(small_run().timeline);
  std::vector<Range> ranges;
  std::int64_t launch = 0;
  int id = 0;
  for (const Op op : small_run().program.ops[device]) {
    const bool update = op.kind == OpKind::update;
    const std::string name = update ? "Optimizer.step#SGD.step" : "PP:" + print(op);
    ++id;
    ranges.push_back({name, launch, launch + 700, "user_annotation", 1, ids ? id : 0});
    launch += 1000;
    const Span& span = spans.at(op);
    const std::int64_t start = profiles::nanoseconds(span.start);
    const std::int64_t end = profiles::nanoseconds(span.end);
    const std::int64_t middle = streams ? (start + end) / 2 : end;
    ranges.push_back({name, start, middle, "gpu_user_annotation", 20, ids ? id : 0});
    if (streams) ranges.push_back({name, middle, end, "gpu_user_annotation", 21, ids ? id : 0});
    ranges.push_back({"gemm", start, end, "kernel", 20, 0});
  }
  return ranges;
}

TEST_CASE("ranges on the GPU are preferred, whatever stream they are on") {
  for (const bool ids : {true, false}) {
    for (const bool streams : {true, false}) {
      std::vector<NamedText> files;
      for (int d = 0; d < 3; ++d) {
        Form form;
        form.rank = d;
        form.device = "NVIDIA H100";
        files.push_back(
            {profiles::file_name(d), profile_text(gpu_ranges(as_size(d), ids, streams), form)});
      }
      const KinetoRun run = read_kineto(files);
      CHECK(run.source == RangeSource::gpu);
      CHECK(run.accelerator == "NVIDIA H100");
      CHECK(run.program.ops == small_run().program.ops);
      check_compute_lanes(run.timeline, small_run().timeline);
      CHECK(noted(run, "times are those of the ranges on the GPU"));
      CHECK(run.waited.empty());
    }
  }
}

TEST_CASE("without them the CPU shows launches only, which is said") {
  std::vector<NamedText> files;
  for (int d = 0; d < 3; ++d) {
    Form form;
    form.rank = d;
    std::vector<Range> ranges = gpu_ranges(as_size(d), false, false);
    std::erase_if(ranges, [](const Range& r) { return r.category == "gpu_user_annotation"; });
    files.push_back({profiles::file_name(d), profile_text(ranges, form)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.source == RangeSource::launches);
  CHECK(noted(run, "LAUNCHING the work from the CPU, not of the work"));
  CHECK(profiles::spans_of(run.timeline).at(*parse_op("0F1")).end ==
        profiles::spans_of(run.timeline).at(*parse_op("0F1")).start + Time{700'000});
  CHECK(run.shifts.empty());

  files[0] = cpu_profiles(small_run())[0];
  CHECK(contains(error_of(files).what(), "profile all ranks alike"));
}

TEST_CASE("an overlapped pair is one range and two ops, divided as they are outside of pairs") {
  const std::vector<Range> ranges{{"PP:0F0", 1000, 2000},
                                  {"PP:(0F1;0B0)OVERLAP_F_B", 2000, 4000},
                                  {"PP:0I1", 4000, 5000},
                                  {"PP:0W1", 5000, 6000}};
  Form form;
  form.rank = 0;
  const KinetoRun run = read_kineto({{"rank0.json", profile_text(ranges, form)}});
  REQUIRE(run.program.ops[0].size() == 5);
  CHECK(run.program.ops[0][1].overlapped == 1);
  CHECK(contains(print(run.program), "0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1"));
  // F takes 1 µs, and B, like I and W, 2 µs: of the 2 µs of the pair F has a third.
  const auto& lane = run.timeline.lane(0, LaneKind::compute);
  CHECK(lane[1].op == *parse_op("0F1"));
  CHECK(lane[1].end - lane[1].start == Time{666'000});
  CHECK(lane[2].start == lane[1].end);
  CHECK(lane[2].end == Time{3'000'000});
  CHECK(run.estimated == std::set<Op>{*parse_op("0F1"), *parse_op("0B0")});
}

// Two ranks, four micro-batches. Rank 0 runs its backwards in pairs, or as I and W: F takes 1 µs
// and the others 3 µs together. In the first pair the backward waits 2 µs for its message, which is
// there at 5 µs.
//
//   rank 0  |0F0|0F1|(0F2;  wait  0B0      )|(0F3;0B1       )|0I2  |0W2  |0I3  |0W3  |
//   µs      0   1   2   3       5           8   9           12   13.5   15   16.5   18
std::vector<NamedText> pairs_of_two_ranks(bool operators) {
  const std::vector<Range> first{{"PP:0F0", 0, 1000},
                                 {"PP:0SEND_F0", 1000, 1000},
                                 {"PP:0F1", 1000, 2000},
                                 {"PP:0SEND_F1", 2000, 2000},
                                 {"PP:0RECV_B0", 2000, 2000},
                                 {"gloo:recv", 2000, 5000},
                                 {"PP:(0F2;0B0)OVERLAP_F_B", 2000, 8000},
                                 {"PP:0SEND_F2", 8000, 8000},
                                 {"PP:0RECV_B1", 8000, 8000},
                                 {"gloo:recv", 8000, 8000},
                                 {"PP:(0F3;0B1)OVERLAP_F_B", 8000, 12000},
                                 {"PP:0SEND_F3", 12000, 12000},
                                 {"PP:0RECV_B2", 12000, 12000},
                                 {"gloo:recv", 12000, 12000},
                                 {"PP:0I2", 12000, 13500},
                                 {"PP:0W2", 13500, 15000},
                                 {"PP:0RECV_B3", 15000, 15000},
                                 {"gloo:recv", 15000, 15000},
                                 {"PP:0I3", 15000, 16500},
                                 {"PP:0W3", 16500, 18000}};
  const std::vector<Range> inside{
      {"aten::linear", 2000, 2900, "cpu_op"},
      {"aten::relu", 2900, 3000, "cpu_op"},
      {"autograd::engine::evaluate_function: ReluBackward0", 5000, 5500, "cpu_op"},
      {"aten::threshold_backward", 5100, 5400, "cpu_op"},
      {"autograd::engine::evaluate_function: AddmmBackward0", 5500, 8000, "cpu_op"},
      {"aten::linear", 8000, 9000, "cpu_op"},
      {"autograd::engine::evaluate_function: ReluBackward0", 9000, 12000, "cpu_op"}};
  std::vector<Range> second;
  const std::vector<std::int64_t> there{1100, 4900, 8100, 12100};
  const std::vector<std::int64_t> backward{2900, 2100, 2000, 2000};
  for (int m = 0; m < 4; ++m) {
    const auto at = as_size(m);
    const std::int64_t start = there[at];
    const std::int64_t end = start + 900 + backward[at];
    second.push_back({fmt::format("PP:1RECV_F{}", m), start, start});
    second.push_back({"gloo:recv", start, start});
    second.push_back({fmt::format("PP:1F{}", m), start, start + 900});
    second.push_back({fmt::format("PP:1B{}", m), start + 900, end});
    second.push_back({fmt::format("PP:1SEND_B{}", m), end, end});
  }
  std::vector<Range> all = first;
  if (operators) all.insert(all.end(), inside.begin(), inside.end());
  Form form;
  form.rank = 0;
  std::vector<NamedText> files{{"rank0.json", profile_text(all, form)}};
  form.rank = 1;
  files.push_back({"rank1.json", profile_text(second, form)});
  return files;
}

TEST_CASE("in an overlapped pair the wait for the second op's message is of neither op") {
  for (const bool operators : {true, false}) {
    CAPTURE(operators);
    const KinetoRun run = read_kineto(pairs_of_two_ranks(operators));
    CHECK(contains(print(run.program), "(0F2;0B0)OVERLAP_F_B"));
    const auto spans = profiles::spans_of(run.timeline);
    const Time us{1'000'000};
    for (const char* const op : {"0F0", "0F1", "0F2", "0F3"}) {
      CHECK(spans.at(*parse_op(op)).end - spans.at(*parse_op(op)).start == us);
    }
    for (const char* const op : {"0B0", "0B1"}) {
      CHECK(spans.at(*parse_op(op)).end - spans.at(*parse_op(op)).start == 3 * us);
    }
    CHECK(spans.at(*parse_op("0B0")).start == 5 * us);
    CHECK(noted(run, "2.000 µs of overlapped pairs passed between their two ops"));
    CHECK(noted(run,
                operators
                    ? "2 overlapped pairs are divided where the backward's first"
                    : "2 overlapped pairs are divided by the times of their ops outside of pairs"));
    CHECK(run.estimated.size() == (operators ? 0 : 4));
  }
}

TEST_CASE("in a real profile of DualPipeV no op is counted in the time of another") {
  std::vector<NamedText> files;
  for (int d = 0; d < 2; ++d) {
    const std::string name = fmt::format("tests/traces/kineto/dualpipe_v/rank{}.json.gz", d);
    files.push_back({name, source_text(name)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.microbatches == 8);
  CHECK(contains(print(run.program), "(0F3;3B1)OVERLAP_F_B"));
  // Nothing is counted twice: each device's ops follow each other, and none is longer than its
  // range.
  for (int d = 0; d < 2; ++d) {
    Time until{};
    for (const Span& span : run.timeline.lane(d, LaneKind::compute)) {
      CHECK(span.op.overlapped == 0);
      CHECK(span.start >= until);
      until = span.end;
    }
  }
  CHECK(run.estimated.empty());
  CHECK(noted(run, "overlapped pairs are divided where the backward's first operator begins"));
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

TEST_CASE("one-stage schedules name no stage: it is the place of the rank") {
  std::vector<NamedText> files;
  for (int d = 0; d < 3; ++d) {
    Form form;
    form.rank = 2 * d;  // of a group
    std::vector<Range> ranges;
    for (Range range : cpu_ranges(small_run(), as_size(d))) {
      if (contains(range.name, "SEND") || contains(range.name, "RECV") ||
          range.name == "gloo:recv") {
        continue;
      }
      range.name = range.name.substr(0, 3) != "PP:" ? range.name
                   : range.name[4] == 'F'           ? "Forward " + range.name.substr(5)
                                                    : "Backward " + range.name.substr(5);
      ranges.push_back(range);
    }
    files.push_back({profiles::file_name(d), profile_text(ranges, form)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.stages() == 3);
  CHECK(run.program.devices[1] == "rank2");
  CHECK(noted(run, "each rank is assumed to run the stage of its place"));
  // Without SEND and RECV the input is there, at the earliest, when its maker ends.
  const auto spans = profiles::spans_of(run.timeline);
  CHECK(spans.at(*parse_op("1F0")).start == spans.at(*parse_op("0F0")).end);
  CHECK(spans.at(*parse_op("1B3")).start == spans.at(*parse_op("2B3")).end);

  files[0] = cpu_profiles(small_run())[0];
  CHECK(contains(error_of(files).what(),
                 "it has no range that is named like \"PP:2F0\", "
                 "but the profiles of other ranks have"));
}

TEST_CASE("the optimizer's step is that of its rank's stages") {
  std::vector<Range> ranges{{"PP:0F0", 1000, 2000},
                            {"PP:1F0", 2000, 3000},
                            {"PP:1B0", 3000, 5000},
                            {"PP:0B0", 5000, 7000},
                            {"Optimizer.step#Adam.step", 8000, 9000}};
  Form form;
  form.rank = 0;
  const auto updates = [&](const std::vector<Range>& of, std::string* note) {
    const KinetoRun run = read_kineto({{"rank0.json", profile_text(of, form)}});
    std::string text;
    for (const Span& span : run.timeline.lane(0, LaneKind::compute)) {
      if (span.op.kind != OpKind::update) continue;
      text += fmt::format("{} {} {} ", print(span.op), span.start.count() / 1000,
                          span.end.count() / 1000);
    }
    for (const std::string& one : run.notes) *note += one + "\n";
    return text;
  };
  std::string note;
  CHECK(updates(ranges, &note) == "0U0 7000 7500 1U0 7500 8000 ");
  CHECK(
      contains(note, "rank 0 has one Optimizer.step range a step: its 2 stages have equal shares"));
  ranges.push_back({"Optimizer.step#Adam.step", 9000, 9400});
  CHECK(updates(ranges, &note) == "0U0 7000 8000 1U0 8000 8400 ");
  ranges.push_back({"Optimizer.step#Adam.step", 9500, 9600});
  CHECK(updates(ranges, &note).empty());
  CHECK(contains(note, "rank 0 has 3 Optimizer.step ranges in a step and 2 stages"));
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

TEST_CASE("a real profile of two ranks is read") {
  std::vector<NamedText> files;
  for (int d = 0; d < 2; ++d) {
    const std::string name = fmt::format("tests/traces/kineto/rank{}.json.gz", d);
    files.push_back({name, source_text(name)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.stages() == 4);
  CHECK(run.program.microbatches == 4);
  CHECK(run.program.steps == 3);
  CHECK(run.source == RangeSource::cpu);
  CHECK(run.shifts.empty());
  CHECK(run.date == "2026-11-21");
  CHECK(contains(print(run.program), "rank0: 0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 2F0"));
  CHECK(contains(print(run.program), "rank1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1"));
  // Every op reads what was made before it, by the clocks of both processes.
  const auto spans = profiles::spans_of(run.timeline);
  for (const auto& [op, span] : spans) {
    if (op.kind == OpKind::forward && op.stage > 0) {
      Op made = op;
      --made.stage;
      CHECK(spans.at(made).end <= span.start);
    }
    if (op.kind == OpKind::backward && op.stage < 3) {
      Op made = op;
      ++made.stage;
      CHECK(spans.at(made).end <= span.start);
    }
  }
  // 1F0 waited 13 ms for its input, and took 1.5 ms.
  CHECK(spans.at(*parse_op("1F0")).end - spans.at(*parse_op("1F0")).start < 2 * millisecond);
}

}  // namespace
}  // namespace stageline
