// Reads the rows of published measurements.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/published/csv.hpp"
#include "tools/published/point_model.hpp"
#include "tools/published/points.hpp"

namespace stageline {
namespace {

constexpr double bytes_per_gib = 1073741824.0;
constexpr std::array needed_columns{"id", "model", "seq", "hardware", "gpus", "global_batch"};

// Why the present row cannot be read.
struct BadCell : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One row by the names of its columns. Throws BadCell.
class RowCells {
 public:
  RowCells(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  /// Empty where there is no such column, or nothing was printed.
  std::string text(std::string_view column) const {
    const std::optional<std::size_t> at = table_.find(column);
    if (!at) return {};
    const std::string& cell = row_.cells[*at];
    return cell == "n/a" || cell == "-" ? "" : cell;
  }

  std::optional<double> number(std::string_view column) const {
    const std::string cell = text(column);
    if (cell.empty()) return std::nullopt;
    const std::optional<double> value = parse_number<double>(cell);
    if (!value || !std::isfinite(*value) || *value < 0) {
      refuse(fmt::format("{} is \"{}\", and must be a number from 0 on, or empty", column, cell));
    }
    return value;
  }

  template <class Integer>
  Integer whole(std::string_view column, Integer otherwise) const {
    const std::optional<double> value = number(column);
    if (!value) return otherwise;
    if (*value != std::floor(*value) || *value > std::numeric_limits<int>::max()) {
      refuse(fmt::format("{} is {}, and must be a whole number below 2^31", column, *value));
    }
    return static_cast<Integer>(*value);
  }

  [[noreturn]] static void refuse(const std::string& why) { throw BadCell(why); }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

// "1", "ddp/dist-opt" (Megatron's distributed optimizer), "fsdp".
int zero_of(const RowCells& row) {
  const std::string cell = row.text("zero");
  if (cell.empty() || cell == "ddp") return 0;
  if (cell.find("dist-opt") != std::string::npos) return 1;
  if (cell == "fsdp") return 3;
  const int level = row.whole("zero", 0);
  if (level > 3) row.refuse(fmt::format("zero is {}, and must be 0 to 3", level));
  return level;
}

// A column, or "ETP 4" in the note, as NVIDIA's tables have it; 0: not printed.
int expert_tensor_of(const RowCells& row) {
  if (!row.text("etp").empty()) return row.whole("etp", 0);
  constexpr std::string_view word = "ETP ";
  const std::string note = row.text("note");
  const std::size_t at = note.find(word);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + word.size();
  const std::size_t end = note.find_first_not_of("0123456789", begin);
  return parse_number<int>(note.substr(begin, end - begin)).value_or(0);
}

Point point_of(const RowCells& row, int line) {
  Point point;
  point.line = line;
  point.id = row.text("id");
  point.source = row.text("source");
  point.url = row.text("url");
  point.where = row.text("where");
  point.kind = row.text("kind");
  point.model = row.text("model");
  point.seq = row.whole<std::int64_t>("seq", 0);
  point.hardware = row.text("hardware");
  point.gpus = row.whole("gpus", 0);
  point.gpus_per_node = row.whole("gpus_per_node", 8);
  point.network = row.text("network");
  point.framework = row.text("framework");
  point.precision = row.text("precision");
  point.tensor = row.whole("tp", 1);
  point.pipeline = row.whole("pp", 1);
  point.chunks = row.whole("vp", 1);
  point.context = row.whole("cp", 1);
  point.expert = row.whole("ep", 1);
  point.expert_tensor = expert_tensor_of(row);
  point.data = row.whole("dp", 1);
  for (const int degree : {point.tensor, point.pipeline, point.chunks, point.context, point.expert,
                           point.data, point.gpus, point.gpus_per_node}) {
    constexpr int most = 1'000'000;
    if (degree < 1 || degree > most) {
      row.refuse(fmt::format("gpus, gpus_per_node, tp, pp, vp, cp, ep and dp are 1 to {}, not {}",
                             most, degree));
    }
  }
  if (row.text("dp").empty()) {
    const std::int64_t others = std::int64_t{1} * point.tensor * point.pipeline * point.context;
    point.data = static_cast<int>(std::max<std::int64_t>(point.gpus / others, 1));
  }
  point.zero = zero_of(row);
  point.sequence_parallel = row.whole("sp", 0) > 0;
  point.micro_batch = row.whole<std::int64_t>("micro_batch", 0);
  point.global_batch = row.whole<std::int64_t>("global_batch", 0);
  point.schedule = row.text("schedule");
  point.recompute = row.text("recompute");
  point.step_time = row.number("step_time_s");
  const bool of_hardware = row.text("tflops_kind").rfind("hardware", 0) == 0;
  if (!of_hardware || point.recompute == "none") {
    point.tflops_per_gpu = row.number("tflops_per_gpu");
  }
  point.tokens_per_gpu_second = row.number("tokens_per_s_per_gpu");
  if (const auto share = row.number("mfu_pct")) point.mfu = *share / 100;
  if (const auto gib = row.number("memory_gib")) point.memory = *gib * bytes_per_gib;
  point.split = row.text("split");
  point.log = row.text("log");
  point.note = row.text("note");
  const auto size = [&row](std::string_view column) { return row.whole<std::int64_t>(column, 0); };
  point.experts = size("experts");
  point.chosen = size("topk");
  point.config = config_of(point, {size("layers"), size("hidden"), size("heads"), size("kv_heads"),
                                   size("ffn"), size("vocab"), size("experts"), size("topk"),
                                   row.number("params_b").value_or(0) * 1e9});
  return point;
}

}  // namespace

PointsFile read_points_file(const std::string& csv, const std::string& file) {
  CsvTable table = read_csv(csv, file);
  for (const char* const column : needed_columns) {
    if (table.find(column)) continue;
    throw TraceError(file, "line 1",
                     fmt::format("there is no column \"{}\"; a file of published measurements has "
                                 "the columns {} and those of what was measured, such as "
                                 "step_time_s",
                                 column, fmt::join(needed_columns, ", ")));
  }
  PointsFile read;
  read.unread = std::move(table.unread);
  for (const CsvRow& row : table.rows) {
    try {
      read.points.push_back(point_of(RowCells(table, row), row.line));
    } catch (const BadCell& bad) {
      read.unread.push_back({row.line, bad.what()});
    }
  }
  std::stable_sort(read.unread.begin(), read.unread.end(),
                   [](const UnreadRow& a, const UnreadRow& b) { return a.line < b.line; });
  if (read.points.empty()) refuse_unread(read.unread, file);
  return read;
}

std::vector<Point> read_points(const std::string& csv, const std::string& file) {
  PointsFile read = read_points_file(csv, file);
  refuse_unread(read.unread, file);
  return std::move(read.points);
}

std::optional<double> measured_step(const Point& point) {
  if (point.step_time && *point.step_time > 0) return point.step_time;
  if (!point.tokens_per_gpu_second || !(*point.tokens_per_gpu_second > 0)) return std::nullopt;
  const double tokens = static_cast<double>(point.global_batch) * static_cast<double>(point.seq);
  if (!(tokens > 0)) return std::nullopt;
  return tokens / (*point.tokens_per_gpu_second * point.gpus);
}

std::optional<StepOfRate> step_of_rate(const Point& point, const PointPrediction& prediction) {
  if (point.tokens_per_gpu_second && *point.tokens_per_gpu_second > 0 &&
      prediction.tokens_per_gpu_second > 0) {
    return StepOfRate{
        prediction.step * prediction.tokens_per_gpu_second / *point.tokens_per_gpu_second, ""};
  }
  if (point.tflops_per_gpu && *point.tflops_per_gpu > 0 && prediction.flops_per_gpu > 0) {
    return StepOfRate{
        prediction.step * prediction.flops_per_gpu / (*point.tflops_per_gpu * 1e12),
        "the measured step follows from the printed TFLOP/s and the FLOPs that are counted here"};
  }
  if (point.mfu && *point.mfu > 0 && prediction.mfu > 0) {
    return StepOfRate{
        prediction.step * prediction.mfu / *point.mfu,
        "the measured step follows from the printed MFU, the FLOPs that are counted here and the "
        "peak of the products' format"};
  }
  return std::nullopt;
}

}  // namespace stageline
