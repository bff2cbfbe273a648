#include "tools/commands/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace stageline::cli {
namespace {

constexpr std::chrono::milliseconds patience{1500};  // before the first line
constexpr std::chrono::milliseconds pause{200};      // between two

}  // namespace

std::string in_short(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string progress_bar(std::int64_t done, std::int64_t wanted, double seconds) {
  constexpr int width = 24;
  const double share = std::min(
      1.0, static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(wanted, 1)));
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < static_cast<int>(share * width) ? "█" : "·";
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-3);
  std::string text = fmt::format("{} {:.0f} % · {} of {}", bar, 100 * share, done, wanted);
  if (done == 0) return text;
  return text + fmt::format(" · {:.3g}/s · {} left", rate,
                            in_short(static_cast<double>(wanted - done) / rate));
}

ProgressLine::ProgressLine(bool wanted) : live_(wanted && ::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::operator()(std::int64_t done, std::int64_t wanted) {
  if (done_ > 0 && done_ == wanted_ && wanted != wanted_) {
    clear();
    begin_ = Clock::now();
  }
  done_ = done;
  wanted_ = wanted;
  show([&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    return progress_bar(done, wanted, seconds);
  });
}

void ProgressLine::show(const std::function<std::string()>& words) {
  const auto now = Clock::now();
  if (!live_ || now - begin_ < patience || now - shown_ < pause) return;
  shown_ = now;
  any_ = true;
  std::fputs((words() + "\033[K\r").c_str(), stderr);
}

Progress shown_by(ProgressLine& line) {
  return [&line](std::int64_t done, std::int64_t wanted) { line(done, wanted); };
}

void ProgressLine::clear() {
  if (any_) std::fputs("\033[K", stderr);
  any_ = false;
}

}  // namespace stageline::cli
