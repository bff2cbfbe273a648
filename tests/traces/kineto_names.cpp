// Is a profile read whose ranges have other names: by a mapping file, or as Megatron-LM, DeepSpeed
// and plain Schedule1F1B name theirs?
//
// The profiles of Megatron-LM and DeepSpeed here are made after the names in their sources (see
// traces/kineto/names.cpp); they are not recorded runs. That of Schedule1F1B is one.
#include "traces/kineto/names.hpp"

#include <random>

#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_names_tests {
namespace {

using profiles::each_rank;
using profiles::error_of;
using profiles::Form;
using profiles::noted;
using profiles::profile_text;
using profiles::Range;
using profiles::small_run;

// How a framework calls the function of an op; empty: it has none.
using Namer = std::string (*)(Op op);

// small_run() by functions that block until their message is there. 100 ns at both ends of an op
// are none of it, for the functions of its messages.
std::vector<Range> function_ranges(std::size_t device, Namer name,
                                   const std::string& category = "python_function") {
  const auto spans = profiles::spans_of(small_run().timeline);
  std::vector<Range> ranges;
  std::int64_t now = 0;
  const auto put = [&](Op op, std::int64_t start, std::int64_t end) {
    const std::string text = name(op);
    if (!text.empty()) ranges.push_back({text, start, end, category});
  };
  for (const Op op : small_run().program.ops[device]) {
    if (lane_of(op.kind) != LaneKind::compute) continue;
    const Span& span = spans.at(op);
    const std::int64_t start = profiles::nanoseconds(span.start);
    const std::int64_t end = profiles::nanoseconds(span.end);
    const bool forward = op.kind == OpKind::forward;
    const bool update = op.kind == OpKind::update;
    if (!update) {  // also where the stage has no neighbour: Megatron-LM calls them there too
      const OpKind kind = forward ? OpKind::receive_forward : OpKind::receive_backward;
      put(op_of(kind, op.stage, op.microbatch), now + 50, start + 50);
    }
    put(op, start + 100, std::max(start + 100, end - 100));
    if (!update) {
      const OpKind kind = forward ? OpKind::send_forward : OpKind::send_backward;
      put(op_of(kind, op.stage, op.microbatch), end - 50, end - 20);
    }
    now = end;
  }
  return ranges;
}

// The compute ops of small_run() in their order, and each as long after the first one.
void check_ops(const KinetoRun& run) {
  const auto computed = [](const std::vector<Op>& ops) {
    std::vector<Op> list;
    for (const Op op : ops) {
      if (lane_of(op.kind) == LaneKind::compute) list.push_back(op);
    }
    return list;
  };
  REQUIRE(run.program.ops.size() == 3);
  const auto read = profiles::spans_of(run.timeline);
  const auto simulated = profiles::spans_of(small_run().timeline);
  const Time offset = read.at(*parse_op("0F0")).start;
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(computed(run.program.ops[d]) == computed(small_run().program.ops[d]));
    for (const Op op : computed(run.program.ops[d])) {
      CAPTURE(print(op));
      CHECK(read.at(op).start - offset == simulated.at(op).start);
      if (op.kind == OpKind::update) continue;  // it takes no time
      CHECK(read.at(op).end - offset == simulated.at(op).end - Time{200'000});
    }
  }
}

std::string word_of(const std::map<OpKind, std::string>& words, Op op) {
  const auto word = words.find(op.kind);
  return word == words.end() ? "" : word->second;
}

// Of a message that the first or the last stage has no neighbour for.
bool is_outer(Op op) {
  const bool in = op.kind == OpKind::receive_forward || op.kind == OpKind::send_backward;
  const bool out = op.kind == OpKind::send_forward || op.kind == OpKind::receive_backward;
  return (in && op.stage == 0) || (out && op.stage == 2);
}

// Megatron-LM calls the functions of messages on all stages.
std::string megatron(Op op) {
  static const std::string schedules = "megatron/core/pipeline_parallel/schedules.py(";
  static const std::string p2p = "megatron/core/pipeline_parallel/p2p_communication.py(";
  static const std::map<OpKind, std::string> words{
      {OpKind::forward, schedules + "308): forward_step"},
      {OpKind::backward, schedules + "421): backward_step"},
      {OpKind::send_forward, p2p + "461): send_forward"},
      {OpKind::receive_forward, p2p + "417): recv_forward"},
      {OpKind::send_backward, p2p + "483): send_backward"},
      {OpKind::receive_backward, p2p + "440): recv_backward"},
      {OpKind::update, "megatron/core/optimizer/optimizer.py(536): step"}};
  return word_of(words, op);
}

std::string deepspeed(Op op) {
  static const std::string engine = "deepspeed/runtime/pipe/engine.py(712): _exec_";
  static const std::map<OpKind, std::string> words{
      {OpKind::forward, engine + "forward_pass"},
      {OpKind::backward, engine + "backward_pass"},
      {OpKind::send_forward, engine + "send_activations"},
      {OpKind::receive_forward, engine + "recv_activations"},
      {OpKind::send_backward, engine + "send_grads"},
      {OpKind::receive_backward, engine + "recv_grads"},
      {OpKind::update, engine + "optimizer_step"}};
  return is_outer(op) ? "" : word_of(words, op);
}

std::vector<NamedText> function_profiles(Namer name) {
  return each_rank([name](int rank, Form&) { return function_ranges(as_size(rank), name); });
}

TEST_CASE("functions of Megatron-LM and DeepSpeed are ops, and their messages") {
  for (const auto& [preset, namer] :
       {std::pair("megatron", &megatron), std::pair("deepspeed", &deepspeed)}) {
    for (const bool named : {false, true}) {
      const KinetoRun run =
          read_kineto(function_profiles(namer), named ? &name_preset(preset) : nullptr);
      check_ops(run);
      CHECK(run.program.steps == 1);
      CHECK(run.program.microbatches == 4);
      CHECK(noted(run, fmt::format("ranges are read by the names of {}; each rank is assumed to "
                                   "run the stage of its place among the ranks; micro-batches are "
                                   "counted in the order of a rank's ops",
                                   preset)));
      // Each message is in the program once, and its time is known.
      CHECK(contains(print(run.program), "1RECV_F0 1F0 1SEND_F0"));
      CHECK(run.transit.size() == 2 * 2 * 4);
      CHECK(run.transit.at(*parse_op("1F0")) > Time{});
    }
  }
}

TEST_CASE("a schedule whose ranges do not tell chunks apart is refused") {
  std::vector<NamedText> files = each_rank([](int rank, Form&) {
    std::vector<Range> ranges = function_ranges(as_size(rank), megatron);
    ranges.push_back(
        {"megatron/core/pipeline_parallel/schedules.py(900): "
         "forward_backward_pipelining_with_interleaving",
         0, 100'000'000, "python_function"});
    return ranges;
  });
  const TraceError error = error_of(files);
  CHECK(contains(error.what(), "of an interleaved schedule, and name neither the chunk"));
}

// "fw 1.2": stage and micro-batch.
std::string mine(Op op) {
  static const std::map<OpKind, std::string> words{{OpKind::forward, "fw"},
                                                   {OpKind::backward, "bw"},
                                                   {OpKind::send_forward, "sf"},
                                                   {OpKind::receive_forward, "rf"},
                                                   {OpKind::send_backward, "sb"},
                                                   {OpKind::receive_backward, "rb"},
                                                   {OpKind::update, "Optimizer.step#Adam.step"}};
  const std::string word = word_of(words, op);
  if (op.kind == OpKind::update || word.empty()) return word;
  return is_outer(op) ? "" : fmt::format("{} {}.{}", word, op.stage, op.microbatch + 1);
}

constexpr const char* mapping = R"({"format": "stageline-names 1", "rules": [
  {"pattern": "^fw (?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": "forward"},
  {"pattern": "^bw (?P<stage>\\d+)\\.(?P<microbatch>\\d+)$", "is": "backward"},
  {"pattern": "^(sf) (?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": ["send_forward"]},
  {"pattern": "^rf (?<stage>[0-9)]+)\\.(?<microbatch>\\d+)$", "is": "receive_forward"},
  {"pattern": "^sb (?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": "send_backward"},
  {"pattern": "^rb (?:)(?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": "receive_backward"}]})";

TEST_CASE("a mapping file says what ranges are, of which stage and micro-batch") {
  const RangeNames names = read_range_names(mapping, "names.json");
  for (const std::string category : {"user_annotation", "nvtx"}) {
    std::vector<NamedText> files =
        each_rank([&](int rank, Form&) { return function_ranges(as_size(rank), mine, category); });
    const KinetoRun run = read_kineto(files, &names);
    check_ops(run);  // numbered from 1 in the names
    CHECK(noted(run, "ranges are read by the names of names.json"));
    CHECK(!noted(run, "each rank is assumed"));
    CHECK(run.transit.size() == 2 * 2 * 4);
    // Without the mapping nothing is known of them, and the sentence says what there is.
    if (category == "nvtx") continue;
    const std::string refused = error_of(files).what();
    CHECK(contains(refused, "its most frequent ranges are \"fw 0.1\" (1), "));
    CHECK(contains(refused, "(import kineto --names FILE)"));
  }
}

TEST_CASE("ranges on the GPU that Nsight Systems projects are preferred") {
  const RangeNames names = read_range_names(
      R"({"format": "stageline-names 1", "rules": [{"pattern": "^fw", "is": "forward"},
          {"pattern": "^bw", "is": "backward"}]})",
      "names.json");
  const KinetoRun run = read_kineto(each_rank([](int rank, Form&) {
                                      std::vector<Range> ranges =
                                          function_ranges(as_size(rank), mine, "nvtx-kernel");
                                      std::erase_if(ranges, [](const Range& range) {
                                        return range.name[0] != 'f' && range.name[0] != 'b';
                                      });
                                      std::vector<Range> launches = ranges;
                                      std::int64_t at = 0;
                                      for (Range& range : launches) {
                                        range.category = "nvtx";
                                        range.start = at += 100;
                                        range.end = at += 100;
                                      }
                                      ranges.insert(ranges.end(), launches.begin(), launches.end());
                                      return ranges;
                                    }),
                                    &names);
  CHECK(run.source == RangeSource::gpu);
  const auto read = profiles::spans_of(run.timeline);
  CHECK(read.at(*parse_op("2B3")).end - read.at(*parse_op("2B3")).start ==
        2 * profiles::millisecond - Time{200'000});
}

TEST_CASE("a stream that works in some named ranges alone counts in these") {
  const RangeNames names = read_range_names(
      R"({"format": "stageline-names 1", "rules": [{"pattern": "^forward$", "is": "forward"},
          {"pattern": "^backward$", "is": "backward"}]})",
      "names.json");
  for (const bool ids : {true, false}) {
    std::vector<Range> ranges;
    for (int i = 0; i < 8; ++i) {  // 2 steps of 2 forwards and 2 backwards, 5 us each
      const std::string name = i % 4 < 2 ? "forward" : "backward";
      const int id = ids ? 1 + i : 0;
      const std::int64_t start = 10'000 * (i + 1);
      ranges.push_back({name, 100 * i, 100 * i + 50, "user_annotation", 1, id});
      ranges.push_back({name, start, start + 5'000, "gpu_user_annotation", 7, id});
      if (i % 4 != 1) continue;
      ranges.push_back({name, start + 10, start + 90, "gpu_user_annotation", 20, id});
    }
    ranges.push_back({"ProfilerStep#1", 0, 400});
    ranges.push_back({"ProfilerStep#2", 400, 800});
    Form form;
    form.rank = 0;
    const std::string text = profiles::profile_text(ranges, form);
    const KinetoRun run = read_kineto({{"rank0.json", text}}, &names);
    CHECK(run.program.steps == 2);
    const auto spans = profiles::spans_of(run.timeline);
    CHECK(spans.size() == 8);
    for (const auto& one : spans) {
      CAPTURE(print(one.first));
      CHECK(one.second.end - one.second.start == Time{5'000'000});
    }
  }
}

TEST_CASE("a range without names on the GPU is timed by the kernels that its operators launched") {
  const KinetoRun run = read_kineto(each_rank([](int rank, Form&) {
    const std::vector<Range> on_gpu = function_ranges(as_size(rank), megatron);
    std::vector<Range> ranges;
    std::int64_t at = 0;
    int id = 0;
    for (const Range& range : on_gpu) {
      const bool message = contains(range.name, "p2p_communication");
      ranges.push_back({range.name, at, at + 90, "python_function"});
      // The operators of a backward run in another thread, while the function waits.
      ranges.push_back({message ? "c10d::recv_" : "aten::mm", at + 10, at + 20, "cpu_op", 2, ++id});
      ranges.push_back(
          {message ? "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)" : "sm90_xmma_gemm",
           range.start, range.end, "kernel", 7, id});
      at += 100;
    }
    return ranges;
  }));
  CHECK(run.source == RangeSource::gpu);
  check_ops(run);
  CHECK(noted(run, "times are those of the ranges on the GPU"));
  CHECK(run.transit.size() == 2 * 2 * 4);
}

TEST_CASE("named messages that are not a whole set are left out, with a note") {
  std::vector<NamedText> files = each_rank([](int rank, Form&) {
    std::vector<Range> ranges = function_ranges(as_size(rank), deepspeed);
    if (rank == 1) {
      std::erase_if(ranges, [](const Range& r) { return contains(r.name, "recv_grads"); });
    }
    return ranges;
  });
  const KinetoRun run = read_kineto(files);
  check_ops(run);
  CHECK(!contains(print(run.program), "SEND"));
  CHECK(noted(run, "not one of each message in each step (there are 0 1RECV_B0)"));
}

TEST_CASE("a mapping file that is wrong is refused, with its place") {
  const auto refused = [](const std::string& text) {
    return trace_error_of([&] { read_range_names(text, "names.json"); });
  };
  const auto rule = [&](const std::string& text) {
    return refused(R"({"format": "stageline-names 1", "rules": [)" + text + "]}");
  };
  CHECK(contains(refused("{\n\"format\": x}").what(), "names.json at line 2, column 11"));
  CHECK(refused("[]").file == "names.json");
  CHECK(contains(refused("{}").what(), "\"format\""));
  CHECK(refused(R"({"format": "stageline-names 2"})").where == "/format");
  CHECK(contains(refused(R"({"format": "stageline-names 1"})").what(),
                 "a mapping needs \"rules\" or a \"preset\""));
  CHECK(refused(R"({"format": "stageline-names 1", "rule": []})").where == "/rule");
  CHECK(refused(R"({"format": "stageline-names 1", "rules": 3})").where == "/rules");
  const TraceError preset = refused(R"({"format": "stageline-names 1", "preset": "megatrom"})");
  CHECK(preset.where == "/preset");
  CHECK(contains(preset.what(), "did you mean \"megatron\""));
  CHECK(rule("3").where == "/rules/0");
  CHECK(contains(rule(R"({"pattern": "a"})").what(), "\"is\""));
  CHECK(rule(R"({"pattern": "a", "is": "foward"})").where == "/rules/0/is");
  CHECK(contains(rule(R"({"pattern": "a", "is": "foward"})").what(), "did you mean \"forward\""));
  CHECK(rule(R"({"pattern": "a", "is": ["forward", 4]})").where == "/rules/0/is/1");
  CHECK(rule(R"({"pattern": "a", "is": []})").where == "/rules/0/is");
  CHECK(rule(R"({"pattern": "(", "is": "forward"})").where == "/rules/0/pattern");
  CHECK(contains(rule(R"({"pattern": "(", "is": "forward"})").what(),
                 "\"(\" is not a regular expression (ECMAScript)"));
  CHECK(contains(rule(R"({"pattern": "(?<rank>1)$", "is": "forward"})").what(),
                 "a named group is (?<stage>…) or (?<microbatch>…)"));
  CHECK(contains(rule(R"({"pattern": "(?<stage>1)(?<stage>1)$", "is": "forward"})").what(),
                 "two groups named stage"));
  CHECK(contains(rule(R"({"pattern": "", "is": "forward"})").what(), "a pattern has 1 to 1000"));
  for (const char* const number : {R"(\\44444444444444444444)", R"([\\44444444444444444444])",
                                   "a{44444444444444444444}", "a{1,44444444444444444444}"}) {
    CHECK(
        contains(rule(fmt::format(R"({{"pattern": "{}", "is": "forward"}})", number)).what(),
                 "at /rules/0/pattern: a group's number or a count has at most 4 digits, not 20"));
  }

  for (const char* const counts : {"a{101}", "(a{2,51}){2}", "(a{50,}){3}"}) {
    CHECK(contains(rule(fmt::format(R"({{"pattern": "{}", "is": "forward"}})", counts)).what(),
                   "the counts of a pattern, such as {"));
  }
  CHECK(contains(rule(R"({"pattern": "(a)\\1", "is": "forward"})").what(),
                 "is not a regular expression (ECMAScript)"));

  // Cut off anywhere, or with a byte changed, it is read or refused.
  const std::string whole = mapping;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(contains(refused(whole.substr(0, size)).what(), "names.json"));
  }
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    text[random() % text.size()] = static_cast<char>(32 + random() % 95);
    try {
      read_range_names(text, "names.json").find("fw 1.2");
    } catch (const TraceError&) {
    }
  }
}

TEST_CASE("a pattern with a repetition within another takes no longer for a long name") {
  // Backtracking would try 2¹⁰⁰⁰ ways.
  for (const char* const pattern : {"(a*)*b", "(a|aa)+$b", ".*.*.*.*+ (?=x)"}) {
    const RangeNames names = read_range_names(fmt::format(R"({{"format": "stageline-names 1",
                         "rules": [{{"pattern": "{}", "is": "forward"}}]}})",
                                                          pattern),
                                              "names.json");
    CHECK(!names.find(std::string(1000, 'a')));
  }
}

TEST_CASE("names with numbers that are none are refused, and stages that only some ranges name") {
  const auto rules = [](const std::string& text) {
    return read_range_names(R"({"format": "stageline-names 1", "rules": [)" + text + "]}",
                            "n.json");
  };
  const auto refused = [](const std::vector<Range>& ranges, const RangeNames& names) {
    Form form;
    form.rank = 0;
    return trace_error_of([&] {
      read_kineto({NamedText{"rank0.json", profile_text(ranges, form)}}, &names);
    });
  };
  const RangeNames any = rules(R"({"pattern": "^fw (?<microbatch>.*)$", "is": "forward"},
                                  {"pattern": "^bw (?<stage>\\d*)$", "is": "backward"})");
  CHECK(contains(refused({{"fw x", 0, 100}, {"bw ", 200, 300}}, any).what(),
                 "at /traceEvents/1/name: \"fw x\": \"x\" is not the number of a micro-batch"));
  CHECK(refused({{"fw 99999999999", 0, 100}, {"bw ", 200, 300}}, any).where ==
        "/traceEvents/1/name");
  CHECK(contains(refused({{"fw 0", 0, 100}, {"bw 70000", 200, 300}}, any).what(),
                 "\"70000\" is not the number of a stage"));
  CHECK(contains(refused({{"fw 0", 0, 100}, {"bw 0", 200, 300}, {"bw 1", 400, 500}}, any).what(),
                 "at /traceEvents/1/name: this range does not name its stage, and the rank has 2"));
  CHECK(contains(refused({{"fw 0", 0, 100}}, any).what(),
                 "n.json names no forward, or no backward, among its ranges; its most frequent "
                 "ranges are \"fw 0\" (1)"));
  CHECK(contains(refused({}, any).what(), "it has no annotations of its own"));
  CHECK(contains(usage_error_of([] { name_preset("deepsped"); }), "did you mean \"deepspeed\""));
}

TEST_CASE("a profile of functions that is cut off or changed is read or refused") {
  const std::vector<NamedText> whole = function_profiles(megatron);
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    std::vector<NamedText> files = whole;
    std::string& text = files[random() % 3].text;
    if (round % 3 == 0) {
      text.resize(random() % text.size());
    } else {
      for (int k = 0; k < 2; ++k) {
        text[random() % text.size()] = static_cast<char>(32 + random() % 95);
      }
    }
    try {
      read_kineto(files);
    } catch (const TraceError&) {
    }
  }
}

TEST_CASE("a range that encloses its receive begins when its input arrived") {
  const RangeNames names = read_range_names(
      R"({"format": "stageline-names 1", "rules": [{"pattern": "^fw", "is": "forward"},
          {"pattern": "^bw", "is": "backward"}]})",
      "names.json");
  const KinetoRun run = read_kineto(
      each_rank([](int rank, Form&) {
        std::vector<Range> ranges;
        std::int64_t now = 0;
        for (const Range& range : function_ranges(as_size(rank), mine, "user_annotation")) {
          if (range.name[0] == 'r') {  // the backend's, 20 ns into the range that waits
            ranges.push_back({"gloo:recv", now + 20, range.end, "user_annotation"});
          } else if (range.name[0] == 'f' || range.name[0] == 'b') {
            ranges.push_back({range.name, now, range.end, "user_annotation"});
            now = range.end;
          }
        }
        return ranges;
      }),
      &names);
  const auto read = profiles::spans_of(run.timeline);
  const auto simulated = profiles::spans_of(small_run().timeline);
  const Op first = *parse_op("1F0");  // it waited for 0F0
  CHECK(read.at(first).start - read.at(*parse_op("0F0")).start ==
        simulated.at(first).start + Time{50'000});
  CHECK(run.transit.at(first) > profiles::millisecond / 8);
  CHECK(noted(run, "ranges that wait for a message begin when it has arrived"));
}

TEST_CASE("a recorded run of Schedule1F1B is read from its Python functions") {
  const KinetoRun run = read_kineto(profiles::recorded("plain_1f1b_stack"));
  CHECK(noted(run, "ranges are read by the names of torch"));
  CHECK(run.program.microbatches == 4);
  CHECK(run.program.steps == 2);
  CHECK(contains(print(run.program), "rank0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"));
  CHECK(contains(print(run.program), "rank1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"));
}

}  // namespace
}  // namespace stageline::kineto_names_tests
