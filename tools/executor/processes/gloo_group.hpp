// A group of connected processes, and bytes between any two of them: c10d's TCPStore and
// ProcessGroupGloo, whose headers stay in gloo_group.cpp. no_gloo_group.cpp replaces that where
// there are none.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tools/executor/processes/place.hpp"

namespace stageline::executor {

/// Why this program was built without Gloo, as a sentence that GlooGroup's constructor then throws;
/// empty if it was built with Gloo.
std::string no_gloo();

/// A transfer of bytes in progress.
class Transfer {
 public:
  struct Work;
  Transfer() = default;
  explicit Transfer(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  /// Waits for its end. False after abort() by another thread; throws std::runtime_error with
  /// Gloo's reason when the link is broken.
  bool wait() const;
  /// Does nothing for a default-constructed Transfer.
  void abort() const;

 private:
  std::shared_ptr<Work> work_;
};

class GlooGroup {
 public:
  /// Returns when every process is connected to every other. Throws UsageError, one sentence, if
  /// some do not connect within `timeout` or their programs differ.
  GlooGroup(const Place& place, std::chrono::seconds timeout);
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;
  ~GlooGroup();

  /// Both return at once, and may be called from several threads. Messages under one tag arrive in
  /// the order of the calls. `bytes` is one-dimensional and must not change until the transfer
  /// ends; a receiver's may be larger than the message.
  Transfer send(int to, int tag, const at::Tensor& bytes);
  Transfer receive(int from, int tag, const at::Tensor& bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stageline::executor
