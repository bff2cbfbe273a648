#include "tools/published/logged_steps.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline {
namespace {

std::string path_beside(const std::string& file, const std::string& log) {
  return (std::filesystem::path(file).parent_path() / log).string();
}

// The batch of log and row, which must be one.
void take_batch(Point& point, const LogSummary& summary, const std::string& place) {
  if (summary.samples == 0) return;
  if (point.global_batch == 0) point.global_batch = summary.samples;
  if (point.global_batch == summary.samples) return;
  throw UsageError(fmt::format(
      "{}: global_batch is {}, and the log {} says {} samples an update; correct the row "
      "or name the log of this run",
      place, point.global_batch, point.log, summary.samples));
}

void take_step(Point& point, const PrintedLog& log, const LogSummary& summary,
               const std::string& place) {
  if (summary.seconds > 0) {
    // DeepSpeed prints samples a second.
    const bool each_sample = log.framework == "DeepSpeed" && summary.samples == 0;
    if (each_sample && point.global_batch == 0) {
      throw UsageError(fmt::format(
          "{}: the log {} has samples a second and no batch, and the row has none; fill "
          "in global_batch",
          place, point.log));
    }
    const double samples = each_sample ? static_cast<double>(point.global_batch) : 1;
    point.step_time = summary.seconds * samples;
    return;
  }
  if (summary.device_tokens > 0) {
    point.tokens_per_gpu_second = summary.device_tokens;
    return;
  }
  throw UsageError(fmt::format(
      "{}: the log {} of {} says neither the time of a step nor tokens a second; fill in step_time_s",
      place, point.log, log.framework));
}

}  // namespace

std::vector<std::string> take_logged_steps(std::vector<Point>& points, const std::string& file) {
  std::vector<std::string> notes;
  for (Point& point : points) {
    if (point.log.empty()) continue;
    const std::string place = fmt::format("{}, line {}", file, point.line);
    if (point.step_time || point.tokens_per_gpu_second) {
      throw UsageError(
          fmt::format("{}: the row has a log and a measured step; leave one of them empty", place));
    }
    const std::string path = path_beside(file, point.log);
    const PrintedLog log = read_printed_log(read_text(path), path);
    const LogSummary summary = summary_of(log, path);
    take_batch(point, summary, place);
    take_step(point, log, summary, place);
    if (log.mean_of_run) {
      notes.push_back(fmt::format(
          "{} is a mean over all of a run, its first steps, logs and checkpoints included",
          point.log));
    }
    if (summary.skipped > 0) {
      notes.push_back(fmt::format(
          "{}: {} updates were skipped, as a loss scale that is too large makes them, and "
          "such a step is shorter",
          point.log, summary.skipped));
    }
  }
  return notes;
}

}  // namespace stageline
