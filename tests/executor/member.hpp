// A process of a test among others of the same program, which it starts.
#pragma once

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/executor/spawned.hpp"
#include "tools/executor/processes/peers.hpp"

namespace stageline::executor::member {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// Ends an echo.
inline constexpr std::uint32_t stop = 0xffffffff;
inline const seconds patience{30};

inline Place place(int rank, int size, int port) { return {rank, size, "127.0.0.1", port}; }

inline Variables variables(const Place& at, const std::string& seconds_of_patience = "30") {
  return {{"RANK", std::to_string(at.rank)},
          {"WORLD_SIZE", std::to_string(at.size)},
          {"MASTER_ADDR", at.master},
          {"MASTER_PORT", std::to_string(at.port)},
          {"LOCAL_RANK", ""},
          {"LOCAL_WORLD_SIZE", ""},
          {"PATIENCE", seconds_of_patience},
          {"TORCHELASTIC_USE_AGENT_STORE", ""}};
}

// This process as one of several, with what has come for the thread of the test.
class Member {
 public:
  Member(const Place& at, seconds timeout, bool listens = true) {
    peers_.emplace(at, timeout);
    if (listens) listen();
  }
  Peers* operator->() { return &*peers_; }
  Peers& operator*() { return *peers_; }
  void listen() {
    peers_->listen(
        [this](int /*from*/, Delivery delivery) {
          const std::lock_guard lock(mutex_);
          all_.push_back(std::move(delivery));
          changed_.notify_all();
        },
        [this](const std::string& why) {
          const std::lock_guard lock(mutex_);
          failures_.push_back(why);
          changed_.notify_all();
        });
  }
  // Says goodbye, which the others wait for before they end.
  void end() { peers_.reset(); }
  Delivery next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !all_.empty() || !failures_.empty(); }))
      throw std::runtime_error("nothing came");
    if (all_.empty()) throw PeerFailure(failures_.front());
    Delivery first = std::move(all_.front());
    all_.pop_front();
    return first;
  }
  std::string failure() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return !failures_.empty(); });
    return failures_.size() == 1 ? failures_.front() : std::to_string(failures_.size());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Delivery> all_;
  std::deque<std::string> failures_;
  std::optional<Peers> peers_;
};

inline std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stageline::executor::member
