// Prints the progress of a training.
#include "tools/executor/programs/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/executor/processes/tell.hpp"

namespace stageline::executor {

ProgressLine::ProgressLine(bool wanted, std::int64_t steps, int samples)
    : wanted_(wanted), terminal_(wanted && ::isatty(2) != 0), steps_(steps), samples_(samples) {}

void ProgressLine::operator()(const TrainingProgress& progress) {
  if (!wanted_) return;
  const auto now = Clock::now();
  const bool looked = progress.evaluation != nullptr && progress.evaluation->step > looked_at_;
  if (looked) looked_at_ = progress.evaluation->step;
  if (!terminal_ && !looked) return;
  if (terminal_ && progress.step < steps_ && now - said_ < std::chrono::milliseconds(100)) return;
  said_ = now;
  if (!terminal_ && progress.step > 0) {
    tell("{}\n", line(progress, now));
  } else if (terminal_) {
    tell_in_place("{} {}", bar(progress.step), line(progress, now));
  }
}

void ProgressLine::end() const {
  if (terminal_) tell("\n");
}

std::string ProgressLine::bar(std::int64_t step) const {
  constexpr int width = 20;
  const auto full = static_cast<int>(step * width / std::max<std::int64_t>(steps_, 1));
  return "[" + std::string(as_size(full), '=') + std::string(as_size(width - full), ' ') + "]";
}

std::string ProgressLine::line(const TrainingProgress& progress, Clock::time_point now) const {
  std::string text = fmt::format("step {}/{} · loss {:.4f}", progress.step, steps_, progress.loss);
  if (progress.evaluation != nullptr) {
    text += fmt::format(" · accuracy {:.2f} %", progress.evaluation->accuracy * 100);
  }
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const auto done = static_cast<double>(progress.step - progress.resumed_at);
  if (seconds > 0.5 && done > 0) {
    text += fmt::format(" · {:.0f} images/s · {:.0f} s left", done * samples_ / seconds,
                        seconds / done * static_cast<double>(steps_ - progress.step));
  }
  return text;
}

}  // namespace stageline::executor
