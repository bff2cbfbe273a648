// How far long work is: one line on standard error, where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/base/progress.hpp"

namespace stageline::cli {

/// A bar with the share done, the rate and the time left, rewritten several times a second, from
/// the second second on. Where standard error is no terminal, and where it is not wanted, nothing.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Called by one thread at a time. Another number that is wanted, once all is done, is other
  /// work, which begins now.
  void operator()(std::int64_t done, std::int64_t wanted);
  /// Other words than a bar, of work whose end is not known; asked for where they are shown.
  void show(const std::function<std::string()>& words);
  /// Takes the line away.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool live_;
  bool any_ = false;
  std::int64_t done_ = 0;
  std::int64_t wanted_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_{};
};

/// Progress that the line shows, which must live as long.
Progress shown_by(ProgressLine& line);

/// "48 s", "3 min".
std::string in_short(double seconds);

/// "█████··· 62 % · 620 of 1000 · 155/s · 2 s left"; seconds: since the begin, above 0.
std::string progress_bar(std::int64_t done, std::int64_t wanted, double seconds);

}  // namespace stageline::cli
