// Reads vTrain's files, and composes its profiled layers to pipelines.
#include "tools/published/vtrain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/text.hpp"
#include "tools/published/csv.hpp"
#include "tools/published/point_model.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

constexpr std::string_view gpus_column = "# GPUs";
constexpr std::string_view parameters_column = "Parameters (billion)";

// The layers of vTrain's profile of an A100 at hidden size 1024, 16 heads, 1024 tokens, tensor
// degree 1 and one sequence, forward and backward together, in seconds. They solve its
// composition for the file's rows with one replica, to its last printed digit.
constexpr double block_time = 2.997633e-3;
constexpr double embedding_time = 0.712808e-3;
constexpr double head_time = 6.130657e-3;      // logits and loss
constexpr double boundary_time = 0.156250e-3;  // a message: both of its stages wait for it
constexpr double block_update = 0.252771e-3;
constexpr double embedding_update = 1.040203e-3;

// Why the present row cannot be read.
struct BadVtrainCell : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws BadVtrainCell, and TraceError for a column that is missing.
class VtrainRow {
 public:
  VtrainRow(const CsvTable& table, const CsvRow& row, const std::string& file)
      : table_(table), row_(row), file_(file) {}

  double number(std::string_view column) const {
    const std::optional<std::size_t> at = table_.find(column);
    if (!at) throw TraceError(file_, "line 1", fmt::format("there is no column \"{}\"", column));
    const std::string& cell = row_.cells[*at];
    const std::optional<double> value = parse_number<double>(cell);
    if (value && std::isfinite(*value) && *value > 0) return *value;
    refuse(fmt::format("{} is \"{}\", and must be a number above 0", column, cell));
  }

  int whole(std::string_view column) const {
    const double value = number(column);
    if (value == std::floor(value) && value < 1e9) return static_cast<int>(value);
    refuse(fmt::format("{} is {}, and must be a whole number below 10^9", column, value));
  }

  [[noreturn]] static void refuse(const std::string& why) { throw BadVtrainCell(why); }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
  const std::string& file_;
};

std::string_view title_row(std::string_view csv) {
  return csv.substr(0, csv.find_first_of("\r\n"));
}

Layer composed_layer(const std::string& name, double both, double update) {
  Layer layer;
  layer.name = name;
  layer.kind = name == "embedding" || name == "head" ? name : "block";
  layer.forward = from_seconds(both / 3);
  layer.backward = from_seconds(both) - layer.forward;
  layer.update = from_seconds(update);
  return layer;
}

// One step of 1F1B on free links: a message's time is part of both its stages.
double composed_step(int layers, int pipeline, int microbatches) {
  Case asked;
  asked.model.name = "vtrain";
  asked.model.bytes_known = false;
  const int each = layers / pipeline;
  std::vector<int> cuts;
  asked.model.layers.push_back(composed_layer("embedding", embedding_time, embedding_update));
  for (int block = 0; block < layers; ++block) {
    const bool from_before = block > 0 && block % each == 0;
    const bool to_next = block + 1 < layers && (block + 1) % each == 0;
    const double waits = boundary_time * ((from_before ? 1 : 0) + (to_next ? 1 : 0));
    asked.model.layers.push_back(
        composed_layer(fmt::format("block.{}", block), block_time + waits, block_update));
    if (to_next) cuts.push_back(block + 1);
  }
  asked.model.layers.push_back(composed_layer("head", head_time, 0));
  for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
    asked.partition = cut == 0 ? "" : asked.partition + ",";
    asked.partition += fmt::format("{}-{}", cut == 0 ? 0 : cuts[cut - 1] + 1, cuts[cut]);
  }
  if (!cuts.empty()) asked.partition += fmt::format(",{}-{}", cuts.back() + 1, layers + 1);
  asked.cluster = uniform_cluster(pipeline, {}, {});
  asked.spec = parse_schedules("1f1b").front();
  asked.microbatches = microbatches;
  return to_seconds(study(asked).metrics.makespan);
}

Point run_of(const VtrainRow& row, int line) {
  Point point;
  point.line = line;
  point.id = fmt::format("vtrain-{}", line);
  point.source = "vTrain, multi node";
  point.url = "https://github.com/VIA-Research/vTrain";
  point.where = fmt::format("line {}", line);
  point.kind = "measured";
  point.model = fmt::format("{:g}B", row.number(parameters_column));
  point.seq = row.whole("sequence length");
  point.hardware = "A100-80GB SXM";
  point.gpus = row.whole(gpus_column);
  point.network = "800 Gb/s per node";
  point.framework = "Megatron-DeepSpeed";
  point.precision = "fp16";
  point.tensor = row.whole("tensor parallelism");
  point.pipeline = row.whole("pipeline parallelism");
  point.data = row.whole("data parallelism");
  point.micro_batch = row.whole("micro batch");
  point.global_batch = row.whole("global batch");
  point.schedule = "1f1b";
  point.recompute = "full";
  point.step_time = row.number("iteration time (ms)") / 1000;
  point.split = "calibrate";
  PrintedSizes sizes;
  sizes.layers = row.whole("# layers");
  sizes.hidden = row.whole("hidden size");
  sizes.heads = row.whole("attention heads");
  point.config = config_of(point, sizes);
  return point;
}

// Nothing for a row of another kind.
std::optional<ComposedRow> composed_row(const VtrainRow& row, int line) {
  if (row.whole("hidden size") != 1024 || row.whole("tensor parallelism") != 1 ||
      row.whole("micro batch") != 1) {
    return std::nullopt;
  }
  ComposedRow composed;
  composed.line = line;
  composed.layers = row.whole("# layers");
  composed.pipeline = row.whole("pipeline parallelism");
  composed.data = row.whole("data parallelism");
  composed.microbatches = row.whole("global batch") / composed.data;
  constexpr int most_layers = 10'000;
  if (composed.layers % composed.pipeline != 0 || composed.layers > most_layers) {
    row.refuse(fmt::format("{} layers on {} stages: there are as many on each, and at most {}",
                           composed.layers, composed.pipeline, most_layers));
  }
  if (composed.microbatches < 1) {
    row.refuse(fmt::format("a global batch of {} is less than a sequence for each of {} replicas",
                           row.whole("global batch"), composed.data));
  }
  composed.printed = row.number("iteration time (ms)") / 1000;
  composed.composed = composed_step(composed.layers, composed.pipeline, composed.microbatches);
  return composed;
}

auto degrees_of(const ComposedRow& row) { return std::tie(row.layers, row.pipeline, row.data); }

}  // namespace

bool is_vtrain(std::string_view csv) {
  return title_row(csv).find(gpus_column) != std::string_view::npos;
}

bool is_vtrain_simulated(std::string_view csv) {
  return is_vtrain(csv) && title_row(csv).find(parameters_column) == std::string_view::npos;
}

PointsFile read_vtrain_file(const std::string& csv, const std::string& file) {
  CsvTable table = read_csv(csv, file);
  PointsFile read;
  read.unread = std::move(table.unread);
  for (const CsvRow& cells : table.rows) {
    try {
      read.points.push_back(run_of(VtrainRow(table, cells, file), cells.line));
    } catch (const BadVtrainCell& bad) {
      read.unread.push_back({cells.line, bad.what()});
    }
  }
  std::stable_sort(read.unread.begin(), read.unread.end(),
                   [](const UnreadRow& a, const UnreadRow& b) { return a.line < b.line; });
  if (read.points.empty()) refuse_unread(read.unread, file);
  return read;
}

std::vector<Point> read_vtrain_runs(const std::string& csv, const std::string& file) {
  PointsFile read = read_vtrain_file(csv, file);
  refuse_unread(read.unread, file);
  return std::move(read.points);
}

std::vector<ComposedRow> compose_vtrain(const std::string& csv, const std::string& file) {
  const CsvTable table = read_csv(csv, file);
  refuse_unread(table.unread, file);
  std::vector<ComposedRow> rows;
  for (const CsvRow& cells : table.rows) {
    try {
      const auto row = composed_row(VtrainRow(table, cells, file), cells.line);
      if (row) rows.push_back(*row);
    } catch (const BadVtrainCell& bad) {
      throw TraceError(file, fmt::format("line {}", cells.line), bad.what());
    }
  }
  return rows;
}

Composition composition_of(const std::vector<ComposedRow>& rows) {
  Composition composition;
  for (const ComposedRow& row : rows) {
    double reduction = 0;
    if (row.data > 1) {
      ++composition.with_replicas;
      const ComposedRow* fewest = &row;
      for (const ComposedRow& other : rows) {
        if (degrees_of(other) == degrees_of(row) && other.microbatches < fewest->microbatches) {
          fewest = &other;
        }
      }
      reduction = fewest->printed - fewest->composed;
    }
    ++composition.rows;
    composition.worst =
        std::max(composition.worst, std::abs(row.composed + reduction - row.printed) / row.printed);
  }
  return composition;
}

std::string composition_text(const std::vector<ComposedRow>& rows) {
  const Composition composition = composition_of(rows);
  return fmt::format(
      "vTrain's single-node file is the output of vTrain's own simulator, not a measurement: its "
      "times are linear in the number of micro-batches to 1e-15. It tests the composition of "
      "layers to a 1F1B pipeline, and nothing about hardware.\n"
      "{} rows (hidden size 1024, tensor degree 1, one sequence) composed of its profiled layer "
      "times: the largest deviation is {:.2g} of a step. {} of them have replicas, whose reduction "
      "is taken from the row with the fewest micro-batches.\n",
      composition.rows, composition.worst, composition.with_replicas);
}

}  // namespace stageline
