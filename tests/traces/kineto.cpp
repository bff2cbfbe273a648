// Does a profile of a real run come back as what ran, and when?
#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_tests {
namespace {

using profiles::check_compute_lanes;
using profiles::cpu_profiles;
using profiles::cpu_ranges;
using profiles::each_rank;
using profiles::error_of;
using profiles::Form;
using profiles::millisecond;
using profiles::noted;
using profiles::one_step;
using profiles::profile_text;
using profiles::Range;
using profiles::small_run;

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
  const KinetoRun run = read_kineto(each_rank([](int rank, Form& form) {
    form.rank.reset();
    return cpu_ranges(small_run(), as_size(rank));
  }));
  check_compute_lanes(run.timeline, small_run().timeline);
  CHECK(noted(run,
              "rank0.json does not say its rank (distributedInfo.rank): "
              "ranks are numbered in the order of the files"));
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
    const KinetoRun run = read_kineto(
        each_rank([&](int rank, Form&) { return repeated(as_size(rank), gap, named, 3); }));
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
  std::vector<NamedText> files = each_rank([&](int rank, Form&) {
    std::vector<Range> ranges = repeated(as_size(rank), gap, true, 3);
    if (rank == 1) ranges.resize(ranges.size() - 3);  // the end of the last step
    return ranges;
  });
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
      const KinetoRun run = read_kineto(each_rank([&](int rank, Form& form) {
        form.device = "NVIDIA H100";
        return gpu_ranges(as_size(rank), ids, streams);
      }));
      CHECK(run.source == RangeSource::gpu);
      CHECK(run.accelerator == "NVIDIA H100");
      CHECK(run.program.ops == small_run().program.ops);
      check_compute_lanes(run.timeline, small_run().timeline);
      CHECK(noted(run, "times are those of the ranges on the GPU"));
      CHECK(run.waited.empty());
    }
  }
}

TEST_CASE("a stream that works in some ranges alone counts in these") {
  for (const bool ids : {true, false}) {
    const KinetoRun run = read_kineto(each_rank([&](int rank, Form&) {
      std::vector<Range> ranges = gpu_ranges(as_size(rank), ids, false);
      std::vector<Range> gathers;  // in the last micro-batch alone
      for (Range range : ranges) {
        if (range.category != "gpu_user_annotation" || !contains(range.name, "3")) continue;
        range.start += 100;
        range.end -= 100;
        range.tid = 22;
        gathers.push_back(range);
      }
      ranges.insert(ranges.end(), gathers.begin(), gathers.end());
      return ranges;
    }));
    check_compute_lanes(run.timeline, small_run().timeline);
  }
}

TEST_CASE("without them the CPU shows launches only, which is said") {
  std::vector<NamedText> files = each_rank([](int rank, Form&) {
    std::vector<Range> ranges = gpu_ranges(as_size(rank), false, false);
    std::erase_if(ranges, [](const Range& r) { return r.category == "gpu_user_annotation"; });
    return ranges;
  });
  const KinetoRun run = read_kineto(files);
  CHECK(run.source == RangeSource::launches);
  CHECK(noted(run, "LAUNCHING the work from the CPU, not of the work"));
  CHECK(profiles::spans_of(run.timeline).at(*parse_op("0F1")).end ==
        profiles::spans_of(run.timeline).at(*parse_op("0F1")).start + Time{700'000});
  CHECK(run.shifts.empty());

  files[0] = cpu_profiles(small_run())[0];
  CHECK(contains(error_of(files).what(), "profile all ranks alike"));
}

TEST_CASE("one-stage schedules name no stage: it is the place of the rank") {
  std::vector<NamedText> files = each_rank([](int rank, Form& form) {
    form.rank = 2 * rank;  // of a group
    std::vector<Range> ranges;
    for (Range range : cpu_ranges(small_run(), as_size(rank))) {
      if (contains(range.name, "SEND") || contains(range.name, "RECV") ||
          range.name == "gloo:recv") {
        continue;
      }
      range.name = range.name.substr(0, 3) != "PP:" ? range.name
                   : range.name[4] == 'F'           ? "Forward " + range.name.substr(5)
                                                    : "Backward " + range.name.substr(5);
      ranges.push_back(range);
    }
    return ranges;
  });
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.stages() == 3);
  CHECK(run.program.devices[1] == "rank2");
  CHECK(noted(run, "each rank is assumed to run the stage of its place"));
  CHECK_FALSE(noted(run, "of the run's"));
  std::vector<NamedText> of_four = files;
  for (NamedText& file : of_four) {
    file.text =
        replaced(file.text, "\"backend\": \"gloo\"", "\"backend\": \"gloo\", \"world_size\": 6");
  }
  CHECK(noted(read_kineto(of_four),
              "3 of the run's 6 ranks are given, and taken for one whole pipeline of 3 stages"));
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
  CHECK(updates(ranges, &note) == "0U0 7000 7750 1U0 7750 8500 ");
  CHECK(contains(note,
                 "rank 0 has 3 Optimizer.step ranges a step: its 2 stages have equal shares "
                 "of their total"));
  ranges[3].start = 9450;  // a backward between two of them
  ranges[3].end = 9480;
  CHECK(updates(ranges, &note).empty());
  CHECK(contains(note, "rank 0 has 3 Optimizer.step ranges in a step with ops between them"));
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
}  // namespace stageline::kineto_tests
