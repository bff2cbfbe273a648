// vTrain's two data files (Bang et al. 2023, arXiv 2312.12391;
// https://github.com/VIA-Research/vTrain).
//
// The multi-node file has wall-clock times of training runs. The single-node file, called ground
// truth there, is the output of vTrain's own simulator: its times are linear in the number of
// micro-batches to 1e-15. It tests how stages are composed to a pipeline, and nothing about
// hardware.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/published/judged_points.hpp"

namespace stageline {

/// Whether the text is one of vTrain's files, by its title row.
bool is_vtrain(std::string_view csv);
/// Whether it is the single-node one, without a column of parameters.
bool is_vtrain_simulated(std::string_view csv);

/// The multi-node runs as points: A100 80 GB, 800 Gb/s a machine, Megatron-DeepSpeed, fp16, full
/// recomputation, one reduction behind the last backward. Ids are "vtrain-2" by line. Throws as
/// read_points_file().
PointsFile read_vtrain_file(const std::string& csv, const std::string& file);
/// The same, but throws for a row that cannot be read.
std::vector<Point> read_vtrain_runs(const std::string& csv, const std::string& file);

/// A row of the simulated file, with what 1F1B makes of vTrain's own layer times.
struct ComposedRow {
  int line = 0;
  int layers = 0;
  int pipeline = 1;
  int data = 1;
  int microbatches = 1;
  double printed = 0;   // seconds
  double composed = 0;  // seconds, without the reduction of gradients
};
/// The rows with hidden size 1024, tensor degree 1 and micro-batches of 1 sequence, whose layer
/// times are known (vtrain_layer_times()). Throws as read_points().
std::vector<ComposedRow> compose_vtrain(const std::string& csv, const std::string& file);

/// How well they agree. The reduction among replicas, from a table that vTrain has and these rows
/// do not, is the same for all numbers of micro-batches: of rows with replicas, what differs from
/// the row of the same degrees with the fewest micro-batches is compared.
struct Composition {
  int rows = 0;
  int with_replicas = 0;
  double worst = 0;  // |composed − printed| / printed
};
Composition composition_of(const std::vector<ComposedRow>& rows);
std::string composition_text(const std::vector<ComposedRow>& rows);

}  // namespace stageline
