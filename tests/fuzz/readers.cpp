// A reader is one line of the table: what it reads it writes again, where there is a writer.
#include <stdexcept>
#include <vector>

#include "cost_models/network/collectives.hpp"
#include "cost_models/network/rank_grid.hpp"
#include "cost_models/perturbation/perturbation.hpp"
#include "cost_models/recomputation.hpp"
#include "cost_models/roofline.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "schedulers/aliases.hpp"
#include "schedulers/partition/megatron.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/units.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/answers/answer.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/overlay.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/inputs/clusters.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/device_rates.hpp"
#include "tools/inputs/perturbation_file.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/inputs/training_budget.hpp"
#include "tools/inputs/weight_rule.hpp"
#include "tools/lab/evidence/evidence.hpp"
#include "tools/lab/evidence/kept.hpp"
#include "tools/lab/papers/staleness/evidence.hpp"
#include "tools/lab/training/log.hpp"
#include "tools/published/points.hpp"
#include "tools/published/vtrain.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/sweep/folder.hpp"
#include "tools/sweep/rows.hpp"
#include "tools/sweep/spec.hpp"
#include "tools/sweep/table.hpp"
#include "traces/gzip.hpp"
#include "traces/kineto/layers.hpp"
#include "traces/kineto/model.hpp"
#include "traces/kineto/names.hpp"
#include "traces/nccl/tests_log.hpp"
#include "traces/programs.hpp"
#include "traces/timelines.hpp"
#include "traces/traces.hpp"

namespace stageline::fuzz {
namespace {

const std::string file = "FILE";  // NOLINT(cert-err58-cpp)

// Whatever reads one setting refuses a text in the same way.
template <class Read>
void try_it(Read&& read) {
  try {
    read();
  } catch (const UsageError& error) {
    hold(*error.what() != '\0', "an error without a message");
  } catch (const std::invalid_argument& error) {  // of sim/base/units.hpp
    hold(*error.what() != '\0', "an error without a message");
  }
}

void amounts(const std::string& text) {
  try_it([&] { hold(parse_time(text) >= Time{}, "a time below 0"); });
  try_it([&] { hold(parse_bytes(text) >= Bytes{}, "bytes below 0"); });
  try_it([&] { hold(parse_bandwidth(text).bytes_per_second > 0, "a bandwidth of 0"); });
  try_it([&] { hold(parse_tokens(text, "TOKENS") > 0, "no tokens"); });
  try_it([&] { parse_link(text); });
  try_it([&] { parse_jitter(text, "JITTER"); });
  try_it([&] { parse_slow(text, "SLOW"); });
  try_it([&] { parse_slow_items(text, "SLOW"); });
  try_it([&] { parse_pauses(text, "PAUSE"); });
  try_it([&] { split_slow(text, "SLOW"); });
  try_it([&] { hold(!parse_devices(text).empty(), "no devices"); });
  try_it([&] {
    const Recomputation asked = parse_recomputation(text, "RECOMPUTE");
    hold(parse_recomputation(print(asked), "RECOMPUTE") == asked, "another recomputation");
  });
  try_it([&] {
    const Offloading asked = parse_offloading(text, "OFFLOAD");
    hold(parse_offloading(print(asked), "OFFLOAD") == asked, "another offloading");
  });
  try_it([&] {
    const SweepAxis axis = parse_axis("devices", text);
    hold(axis.count > 0, "an axis without values");
    for (const std::int64_t digit : {std::int64_t{0}, axis.count / 2, axis.count - 1}) {
      hold(axis.is_random() || !axis.value(digit).empty(), "an empty value");
    }
  });
  if (const std::optional<Op> op = parse_op(text)) {
    hold(parse_op(print(*op)) == op, "another op");
  }
}

void model_spec(const std::string& text) {
  static const std::vector<DeviceKind> kinds = bundled_kinds();  // parsed once, at the first call
  if (config_file_of(text).empty()) priced_model(text, kinds);
}

void trace(const std::string& text) {
  const std::vector<Model> models = read_trace(text, file);
  const std::string written = write_trace(models);
  hold(read_trace(written, file) == models, "another trace");
}

void cluster(const std::string& text) {
  const Cluster one = read_cluster(text, file);
  constexpr std::size_t most_links = 50'000;  // a million may be: minutes under sanitizers
  if (one.links.size() > most_links) return;
  try_it([&] { hold(read_cluster(write_cluster(one), file) == one, "another cluster"); });
  ClusterUse use;
  use.times = 3;
  use.groups = true;
  use.driver = true;
  read_cluster(text, file, use);
}

void training_log(const std::string& text) {
  const lab::TrainingLog log = lab::parse_training_log(text, file);
  hold(lab::to_json(lab::parse_training_log(lab::to_json(log), file)) == lab::to_json(log),
       "another log");
}

void evidence(const std::string& text) {
  const lab::Evidence one = lab::read_evidence(text, file);
  hold(lab::read_evidence(lab::write_evidence(one), file) == one, "other evidence");
}

void calibration(const std::string& text) {
  const Calibration one = read_calibration(text, file);
  hold(read_calibration(print_calibration(one), file) == one, "another calibration");
}

// All times of a run are from 0 on, none ends before it starts.
void check_timeline(const Timeline& timeline) {
  for (const auto& lane : timeline.lanes) {
    for (const Span& span : lane) {
      hold(span.start >= Time{} && span.end >= span.start, "a span that ends before it starts");
      hold(span.end <= longest_run, "a span beyond the longest run");
    }
  }
}

// Any profile may be of one device, with modules.
void layers(const std::string& text) {
  try {
    const std::vector<Model> models{kineto_layers({file, text}, nullptr, "m", 0, file)};
    hold(read_trace(write_trace(models), file) == models, "another trace");
  } catch (const UsageError&) {
    return;
  }
}

// Profiles follow each other behind a line of "====".
void kineto(const std::string& text) {
  layers(text);
  std::vector<NamedText> profiles;
  for (std::size_t at = 0; profiles.size() < 4;) {
    constexpr std::string_view between = "\n====\n";
    const std::size_t end = text.find(between, at);
    profiles.push_back({file + std::to_string(profiles.size()), text.substr(at, end - at)});
    if (end == std::string::npos) break;
    at = end + between.size();
  }
  const KinetoRun run = read_kineto(profiles);
  check_timeline(run.timeline);
  for (const Time waited : run.waited) hold(waited >= Time{}, "a wait below 0");
  for (const auto& [op, time] : run.transit) hold(time >= Time{}, "a transit below 0");
  hold(parse_program(print(run.program)) == run.program, "another program");
  const std::vector<Model> models{kineto_model(run, "m", 0, file)};
  hold(read_trace(write_trace(models), file) == models, "another trace of the costs");
}

// Words that choose: each is read as each of them.
void choices(const std::string& text) {
  try_it([&] { read_schedule_name(text); });
  try_it([&] { parse_order(text); });
  try_it([&] { parse_algorithms(text); });
  try_it([&] {
    const Shard shard = parse_shard(text, "SHARD");
    hold(shard.index >= 1 && shard.index <= shard.count, "a shard of none");
  });
  try_it([&] {
    const double share = parse_within(text, "WITHIN");
    hold(share >= 0 && share <= 1, "a share beyond 100 %");
  });
  try_it([&] { parse_rank_by(text, "BY", true); });
  try_it([&] {
    const std::optional<double> share = parse_quantile(text, "QUANTILE");
    hold(!share || (*share >= 0 && *share <= 1), "a quantile beyond 1");
  });
  try_it([&] { parse_weight_rule(text, "WEIGHTS"); });
  try_it([&] { parse_messages(text, "MESSAGES"); });
  try_it([&] { parse_zero(text, "ZERO"); });
  try_it([&] { parse_sharing(text, "SHARING"); });
  try_it([&] { parse_recompute_start(text, "START"); });
  try_it([&] { report::parse_comparison_columns(text); });
  try_it([&] { parse_program_format(text); });
}

void gzip(const std::string& bytes) {
  const std::string text = gunzip(bytes, file, Packed::bytes);
  hold(gunzip(gzipped(text), file, Packed::bytes) == text, "another text");
}

// Whatever is taken for a timeline by its beginning is read as one.
void content(const std::string& text) {
  const ProvidedFiles provided(ProvidedFiles::Contents{{file, text}});
  const Content one = read_content(file);
  if (one.format == nullptr) {
    is_program_file(file);
    return;
  }
  const Recording recording = one.format->read({one});
  check_timeline(recording.timeline);
  const Overlay overlay = overlay_of(recording, recording);
  hold(overlay.first.step_time >= Time{} && overlay.first.mean >= Time{}, "a step below 0");
  for (const OpPair& pair : overlay.ops) hold(pair.difference() == Time{}, "an op unlike itself");
}

void kept(const std::string& text) {
  for (const std::string& sentence : lab::worse_than_kept(text, file, {})) {
    hold(!sentence.empty(), "a regression without a sentence");
  }
}

void range_names(const std::string& text) {
  const RangeNames names = read_range_names(text, file);
  for (const char* const name : {"forward 3 stage 1", "PP:2F0", "aaaaaaaaaaaaaaaaaaaaaaaab"}) {
    names.find(name);
  }
}

void sweep(const std::string& text) {
  const SweepSpec spec = checked(read_sweep(text, file));
  hold(spec.scenarios() > 0 && spec.scenarios() <= most_sweep_scenarios, "too many scenarios");
  for (const std::int64_t number : {std::int64_t{0}, spec.scenarios() / 2, spec.scenarios() - 1}) {
    hold(number_of(spec, digits_of(spec, number)) == number, "another number");
    words_of(spec, axis_values(spec, number));
  }
}

// A chunk of a sweep that goes on is read again; `rows` are those behind the header.
void sweep_table(const std::string& rows) {
  static const SweepSpec spec = checked(read_sweep(
      R"({"format": "stageline-sweep 1", "fixed": {"trace": "uniform:layers=4"},
          "axes": {"devices": [2, 8], "schedule": ["1f1b", "gpipe"], "link": "1GB/s|400GB/s"}})"));
  const std::vector<SweepColumn> columns = read_table(spec, csv_header(spec) + rows, file);
  for (const SweepColumn& column : columns) {
    hold(column.there.size() == columns[0].there.size(), "columns of unlike lengths");
    const std::size_t values = column.whole.size() + column.real.size() + column.text.size();
    hold(values == column.there.size(), "a cell without a value");
  }
}

void partition_spec(const std::string& text) {
  const Cluster four = uniform_cluster(4, LinkSpec{Bandwidth{1'000'000'000}, Time{1000}}, {});
  const Model model = uniform_model("layers=9");
  for (const bool replicate : {false, true}) {
    PartitionRequest request{model, four, 4, replicate, {}};
    try_it([&] {
      const PartitionPlan plan = partition(text, request);
      hold(plan.partition.stages > 0, "a partition without stages");
    });
  }
}

void megatron(const std::string& text) {
  for (const std::string& stage : parse_megatron(text)) {
    hold(stage.find_first_not_of("EtmL") == std::string::npos, "another letter");
  }
}

constexpr Target table[] = {
    {"trace", Form::json, trace},
    {"cluster", Form::json, cluster},
    {"pytorch_csv", Form::text, [](const std::string& text) { read_pytorch_schedule(text); }},
    {"chrome_trace", Form::json,
     [](const std::string& text) { check_timeline(read_chrome_trace(text, file).timeline); }},
    {"kineto", Form::json, kineto},
    {"range_names", Form::json, range_names},
    {"pipedream", Form::text,
     [](const std::string& text) {
       const Model model = read_pipedream_profile(text, file, 32);
       hold(read_trace(write_trace({model}), file) == std::vector<Model>{model}, "another trace");
     }},
    {"megatron_layout", Form::text, megatron},
    {"nccl_tests", Form::text, [](const std::string& text) { read_nccl_tests(text, file); }},
    {"hugging_face", Form::json, [](const std::string& text) { read_hugging_face(text, file); }},
    {"calibration", Form::json, calibration},
    {"points", Form::text,
     [](const std::string& text) {
       for (const Point& point : read_points(text, file)) question_of(point);
     }},
    {"vtrain", Form::text,
     [](const std::string& text) {
       read_vtrain_runs(text, file);
       compose_vtrain(text, file);
     }},
    {"training_log", Form::json, training_log},
    {"staleness_evidence", Form::json,
     [](const std::string& text) { lab::parse_staleness_evidence(text, file); }},
    {"evidence", Form::json, evidence},
    {"outcome", Form::json,
     [](const std::string& text) { check_timeline(read_outcome(text, file).timeline); }},
    {"perturbation", Form::json, [](const std::string& text) { read_perturbation(text, file); }},
    {"sweep", Form::json, sweep},
    {"sweep_table", Form::text, sweep_table},
    {"request", Form::json, [](const std::string& text) { answers::parse_request(text); }},
    {"partition_spec", Form::text, partition_spec},
    {"model_spec", Form::text, model_spec},
    {"uniform_spec", Form::text,
     [](const std::string& text) {
       const Model model = uniform_model(text);
       hold(!model.layers.empty(), "a model without layers");
     }},
    {"amounts", Form::text, amounts},
    {"choices", Form::text, choices},
    {"gzip", Form::bytes, gzip},
    {"content", Form::json, content},
    {"kept", Form::json, kept},
};

}  // namespace

std::span<const Target> readers() { return table; }

}  // namespace stageline::fuzz
