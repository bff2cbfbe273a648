// stageline calibrate: fits the rates of a chip to measured training steps.
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/clusters.hpp"
#include "tools/published/calibrate.hpp"
#include "tools/published/kernels/kernel_fit.hpp"
#include "tools/published/logged_steps.hpp"
#include "tools/published/on_threads.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline::cli {
namespace {

constexpr std::chrono::seconds silent_for{1};  // before progress is reported
constexpr std::chrono::milliseconds between_reports{200};
constexpr const char* consequence = "nothing was written";

struct CalibrateFlags {
  std::string points;
  std::string kernels;
  std::string page;
  std::string device;
  std::vector<std::string> free;
  std::string out;
  std::string json;
  int threads = 0;  // 0: as many as there are processors
  bool quiet = false;
};

// One line on standard error, where that is a terminal, once the work has taken a while.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted && ::isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void operator()(const std::string& doing, int simulations) {
    const auto now = std::chrono::steady_clock::now();
    if (!wanted_ || now - begin_ < silent_for || (shown_ && now - last_ < between_reports)) return;
    last_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    fmt::print(stderr, "{}: {} simulations, {:.0f} s\033[K\r", doing, simulations, seconds);
  }

 private:
  bool wanted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

PointsCalibration calibrated_on(const CalibrateFlags& flags, std::vector<std::string>& notes) {
  const std::string csv = read_text(flags.points);
  if (is_vtrain_simulated(csv)) {
    throw UsageError(fmt::format(
        "{} is the output of vTrain's own simulator, not a measurement; calibrate on its multi-node "
        "runs",
        flags.points));
  }
  PointsFile read =
      is_vtrain(csv) ? read_vtrain_file(csv, flags.points) : read_points_file(csv, flags.points);
  notes = take_logged_steps(read.points, flags.points);
  CalibrateRequest request;
  request.unread = read.unread;
  request.file = flags.points;
  request.device = flags.device;
  request.free = flags.free;
  request.date = today();
  const unsigned processors = std::max(std::thread::hardware_concurrency(), 1U);
  request.threads = flags.threads > 0 ? flags.threads : static_cast<int>(processors);
  request.interrupted = &catch_signals(SecondSignal::ignored);
  end_soon_after_signal(fmt::format("stageline: interrupted; {}\n", consequence));
  Progress progress(!flags.quiet);
  request.progress = [&](const std::string& doing, int simulations) {
    progress(doing, simulations);
  };
  return calibrate_points(read.points, request);
}

void say_written(const CalibrateFlags& flags) {
  if (flags.out.empty() || flags.quiet) return;
  print_wrapped(
      fmt::format("\nwritten to {}; simulate and compare take it by --calibration\n", flags.out));
}

// The kind that the table names, or --kind.
DeviceKind kind_of(const CalibrateFlags& flags, const KernelTable& table) {
  const std::string wanted = flags.device.empty() ? table.kind : flags.device;
  std::vector<std::string> names;
  for (DeviceKind& kind : known_kinds()) {
    if (kind.name == wanted) return std::move(kind);
    names.push_back(kind.name);
  }
  throw UsageError(fmt::format(
      "{}: no data sheet of kind \"{}\" is known, of whose peaks kernels reach a share; --kind names "
      "one of {}",
      flags.kernels, wanted, fmt::join(names, ", ")));
}

// Whether standard output is for one of the files alone; refuses several.
bool is_only_files(const CalibrateFlags& flags) {
  return to_stdout({{"--out", flags.out}, {"--page", flags.page}, {"--json", flags.json}});
}

int run_kernels(const CalibrateFlags& flags) {
  if (!flags.points.empty() || !flags.free.empty() || flags.threads > 0) {
    throw UsageError("--kernels takes the place of POINTS, and of --free and --threads with it");
  }
  check_writable(flags.out);
  check_writable(flags.page);
  check_writable(flags.json);
  const bool silent = is_only_files(flags);
  const KernelTable table = read_kernel_table(read_text(flags.kernels), flags.kernels);
  KernelsFit fit = fit_kernels(table, kind_of(flags, table));
  if (fit.calibration.date.empty()) fit.calibration.date = today();
  if (!flags.out.empty()) write_file(flags.out, print_calibration(fit.calibration));
  if (!flags.page.empty()) write_file(flags.page, kernels_page(fit, table));
  if (!flags.json.empty()) write_file(flags.json, kernels_json(fit, table));
  if (silent) return 0;
  show("{}", kernels_text(fit, table, text_width()));
  say_written(flags);
  return 0;
}

int run(const CalibrateFlags& flags) {
  if (!flags.kernels.empty()) return run_kernels(flags);
  if (flags.points.empty()) {
    throw UsageError("what to calibrate on is missing: POINTS, or --kernels FILE");
  }
  if (!flags.page.empty()) throw UsageError("--page goes with --kernels");
  check_writable(flags.out);
  check_writable(flags.json);
  const bool silent = is_only_files(flags);
  try {
    std::vector<std::string> notes;
    const PointsCalibration found = calibrated_on(flags, notes);
    let_results_be_written();
    if (!flags.out.empty()) write_file(flags.out, print_calibration(found.calibration));
    if (!flags.json.empty()) write_file(flags.json, calibration_json(found, notes));
    if (silent) return 0;
    show("{}", calibration_text(found, flags.points, text_width()));
    if (!flags.quiet) print_notes(notes);
    say_written(flags);
    return 0;
  } catch (const FitInterrupted&) {
    throw Interrupted{consequence};
  }
}

void add_calibrate(Flags command) {
  const auto flags = std::make_shared<CalibrateFlags>();
  command.option(
      "POINTS", flags->points,
      "a CSV file of measured training steps, or of logs of them, one a row; - is standard "
      "input");
  command.option(
      "--kernels", flags->kernels,
      "instead of POINTS: a table of timed kernels (tools/executor/gpu/kernels.py), from "
      "which each constant follows by itself");
  command
      .option("--page", flags->page,
              "with --kernels: write constants and curves beside published ones to this Markdown "
              "file, or - for stdout")
      .writes_file();
  command.option("--kind", flags->device,
                 "the kind of device whose rows are taken (a100, h100, …); needed where the file "
                 "has rows of several");
  command
      .option(
          "--free", flags->free,
          "the constants to fit, joined by commas; default: as many of gemm, step, network, "
          "nvlink, kernel, layer_floor, in this order, as predict rows of other models best; of "
          "up to 9 rows all that they depend on, held by their priors")
      .comma_list();
  command
      .option("--out", flags->out,
              "write the calibration to this file, which --calibration takes, or - for stdout")
      .writes_file();
  command
      .option("--json", flags->json,
              "write constants, errors and refused rows as JSON to this file, or - for stdout")
      .writes_file();
  command
      .option("--threads", flags->threads,
              "simulations at a time; default: one a processor. The result is the same")
      .range(1, 1024);
  command.flag("--quiet", flags->quiet, "no progress on standard error, and no notes");
  command.footer(
      "Columns of POINTS and what is fitted: cost_models/README.md.\n"
      "Example:\n  stageline calibrate points.csv --kind a100 --out a100.json\n"
      "  stageline compare model:llama3-70b@a100 --cluster a100x8*8 --tp 8 --pp 8 --calibration "
      "a100.json\n"
      "Exit code 2: bad input. 130, 143: interrupted, nothing written.");
  command.runs([flags] { return run(*flags); });
}

}  // namespace

extern const Command calibrate_command;
const Command calibrate_command = {
    "calibrate", "Fit the rates of a chip to measured training steps of language models",
    add_calibrate, ""};

}  // namespace stageline::cli
