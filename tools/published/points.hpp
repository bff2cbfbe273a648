// Published measurements of training runs: rows of a CSV file, each as the question that it
// answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "tools/answers/answer.hpp"
#include "tools/published/csv.hpp"
#include "tools/study/evidence/run_class.hpp"

namespace stageline {

/// A row. Empty cells are 0 or empty; degrees that are not printed are 1.
struct Point {
  std::string id;
  std::string source;  // "Zero Bubble (ICLR 2024)"
  std::string url;
  std::string where;  // table, line
  std::string kind;   // "measured", "closed form printed in paper"
  std::string model;
  TransformerConfig config;
  std::int64_t experts = 0;  // as printed, whether or not `config` has them
  std::int64_t chosen = 0;   // of the experts, by a token
  std::int64_t seq = 0;
  std::string hardware;  // as printed; device_of() reads it
  int gpus = 0;
  int gpus_per_node = 8;
  std::string network;
  std::string framework;
  std::string precision;
  int tensor = 1, pipeline = 1, chunks = 1, context = 1, expert = 1, data = 1, zero = 0;
  int expert_tensor = 0;  // tensor degree of experts; 0: not printed
  bool sequence_parallel = false;
  std::int64_t micro_batch = 0;          // sequences
  std::int64_t global_batch = 0;         // sequences
  std::string schedule;                  // as printed
  std::string recompute;                 // none, selective, full
  std::optional<double> step_time;       // seconds
  std::optional<double> tflops_per_gpu;  // of the model's FLOPs; empty where those of the hardware
                                         // are printed, and something is recomputed
  std::optional<double> tokens_per_gpu_second;
  std::optional<double> mfu;     // a share
  std::optional<double> memory;  // bytes
  std::string split;             // "calibrate", "oracle"
  std::string log;               // file of what the training printed, for take_logged_steps()
  std::string note;
  int line = 0;  // of the file
};

/// The rows of a file, and those that cannot be read: a cell that is no number, or too few cells.
struct PointsFile {
  std::vector<Point> points;
  std::vector<UnreadRow> unread;  // by line
};

/// Reads the columns that shared data name; others are passed over. Throws TraceError, which begins
/// with `file` and the line, for a missing column, and where no row at all can be read.
PointsFile read_points_file(const std::string& csv, const std::string& file);
/// The same, but throws for a row that cannot be read.
std::vector<Point> read_points(const std::string& csv, const std::string& file);

/// The step time that the row states: step_time, or what follows from its tokens/s.
std::optional<double> measured_step(const Point& point);

/// What a row's memory is read off: the tensors, what torch's allocator reserves for them, or what
/// the driver reports, which is that and the device's reserve.
enum class MemoryCounter : std::uint8_t { allocated, reserved, driver };

/// The question that a row answers, or why the simulator does not know it (an unknown kernel, data
/// that are not printed): one sentence.
struct Question {
  answers::Request request;
  std::vector<std::string> assumptions;  // what was not printed, and was assumed
  std::string why_not;                   // empty: it can be asked
  bool blocks_alone = false;  // memory: of the blocks of the first device, as closed forms count it
  MemoryCounter counter = MemoryCounter::allocated;
};

/// What is fitted to one run for others of the same configuration.
struct RunPace {
  double op_cost = 0;  // seconds of each compute op beyond its kernels
  double rate = 1;     // of the devices' compute, over that of the cost model
  friend bool operator==(const RunPace&, const RunPace&) = default;
};
Question question_of(const Point& point, const std::optional<Calibration>& calibration = {},
                     const RunPace& pace = {});

/// Micro-batches of a step and pipeline; 0: not printed.
std::int64_t microbatches_of(const Point& point);

/// How the model's blocks are cut into that many stages: even; or where only that divides them,
/// with one block less on the first and on the last stage, which have embedding and head;
/// DeepSpeed's `type:transformer` fills the first stages. By stage, the number of blocks; empty:
/// they are too few.
std::vector<std::int64_t> blocks_by_stage(const Point& point, std::int64_t stages);

/// The answer to a row's question.
struct PointPrediction {
  double step = 0;    // seconds
  double memory = 0;  // bytes, of the fullest device, its reserve included where the row counts it
  double model_flops = 0;
  double flops_per_gpu = 0;          // model_flops a second and device; 0: unknown
  double mfu = 0;                    // a share; 0: unknown
  double tokens_per_gpu_second = 0;  // 0: unknown
  std::optional<bool> fits{};        // into the memory of its devices; empty: unknown
  std::optional<RunClass> of{};      // its class
  std::string software{};            // generation; empty: none is stated
};

/// The step time that the row states by a rate alone: its tokens a second, where the batch had to
/// be assumed, its TFLOP/s or its MFU, by the tokens and FLOPs that the prediction counts. `how`
/// says what was done where that is not said elsewhere. Empty: it states none, or they are unknown.
struct StepOfRate {
  double seconds = 0;
  std::string how;
};
std::optional<StepOfRate> step_of_rate(const Point& point, const PointPrediction& prediction);

/// Throws what answer() throws.
PointPrediction predicted(const Question& question);

}  // namespace stageline
