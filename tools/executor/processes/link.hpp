// One peer of a process: the queue of messages to it, and the two threads that send and receive.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/executor/processes/gloo_group.hpp"
#include "tools/executor/processes/message.hpp"

namespace stageline::executor {

struct Message {
  Head head;
  std::vector<at::Tensor> tensors;
};
Message message(Kind kind);
Message message(Kind kind, const std::string& text);

/// Nanoseconds of this process's steady clock.
std::int64_t steady_nanoseconds();

class Link {
 public:
  /// Called by the link's threads.
  struct Events {
    /// A message has come; `came`: when, on the own steady clock. Returns false after the last one.
    std::function<bool(std::int64_t came, const Head& head, std::vector<at::Tensor> tensors)>
        received;
    /// The last message has been sent.
    std::function<void()> all_sent;
    /// The peer cannot be reached any more; `why` continues "rank 1 has vanished: ".
    std::function<void(const std::string& why)> broken;
  };
  /// `group` outlives it.
  Link(GlooGroup& group, int rank) : rank_(rank), group_(group) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Starts both threads. Throws std::system_error where one cannot be started; sends() and
  /// receives() say which runs. Before it is destroyed, abort() and join() what runs.
  void start(Events events);
  bool sends() const { return sender_.joinable(); }
  bool receives() const { return receiver_.joinable(); }
  /// Puts a message into the queue; does nothing after close().
  void post(Message made);
  /// Puts the last messages into the queue. `failed`: drops the deliveries that are in it.
  void close(std::vector<Message> last, bool failed);
  /// Makes both threads end, whatever they wait for.
  void abort();
  void join();

  /// How long nothing has come. Negative while a message is dealt with.
  std::chrono::nanoseconds silence() const;

 private:
  void send_all();
  void receive_all();
  std::optional<Message> next();
  bool transmit(const Message& made);
  bool receive_blocks(const std::vector<at::Tensor>& blocks);
  bool finish(Transfer& current, const Transfer& transfer);

  const int rank_;
  GlooGroup& group_;
  Events events_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable queued_;
  std::deque<Message> queue_;
  bool closing_ = false;  // the last message is in the queue, or sent
  bool aborted_ = false;
  Transfer sending_, receiving_;

  std::atomic<std::int64_t> heard_{steady_nanoseconds()};  // when something last came
  std::thread sender_, receiver_;
};

}  // namespace stageline::executor
