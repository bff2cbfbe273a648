// Do calls on several threads give what they give on one?
#include "tools/base/parallel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stageline::parallel_tests {
namespace {

void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

TEST_CASE("each call is made once, whatever the number of workers") {
  CHECK(available_cores() >= 1);
  for (const int workers : {1, 2, 4, 100}) {
    for (const std::size_t count : {0, 1, 2, 3, 50}) {
      CAPTURE(workers);
      CAPTURE(count);
      std::vector<int> calls(count);
      in_parallel(count, workers, [&](std::size_t i) { ++calls[i]; });
      CHECK(std::accumulate(calls.begin(), calls.end(), 0) == static_cast<int>(count));
      CHECK(calls == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("calls are made by one thread, or by as many as asked for") {
  for (const std::size_t workers : {1, 4}) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<int> under_way{0};
    int most = 0;
    in_parallel(40, static_cast<int>(workers), [&](std::size_t i) {
      const int here = ++under_way;
      {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        most = std::max(most, here);
      }
      // Until another thread has begun, however late it does.
      for (int moment = 0; i == 0 && workers > 1 && moment < 50'000 && under_way < 2; ++moment) {
        wait_a_moment();
      }
      wait_a_moment();
      --under_way;
    });
    CHECK(threads.size() <= workers);
    CHECK(most <= static_cast<int>(workers));
    if (workers == 1) CHECK(threads == std::set{std::this_thread::get_id()});
    if (workers > 1) CHECK(most > 1);
  }
}

TEST_CASE("each thread works with something of its own, and its end is met like any other") {
  for (const int workers : {1, 3}) {
    std::mutex mutex;
    std::set<const void*> mine;
    std::atomic<int> calls{0};
    in_parallel_with(60, workers, [&] {
      return [&, own = std::make_shared<std::thread::id>(std::this_thread::get_id())](std::size_t) {
        const std::lock_guard lock(mutex);
        CHECK(*own == std::this_thread::get_id());
        mine.insert(own.get());
        ++calls;
      };
    });
    CHECK(calls == 60);
    CHECK(mine.size() <= static_cast<std::size_t>(workers));
    const auto refuse = []() -> std::function<void(std::size_t)> {
      throw std::runtime_error("no room");
    };
    CHECK_THROWS_WITH(in_parallel_with(60, workers, refuse), "no room");
  }
}

TEST_CASE("of several errors that of the first call is thrown, and no further call begins") {
  for (const int workers : {1, 2, 8}) {
    std::atomic<int> begun{0};
    std::string thrown;
    try {
      in_parallel(1000, workers, [&](std::size_t i) {
        ++begun;
        if (i == 5) wait_a_moment();  // a later one fails before it
        if (i >= 5) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    CHECK(thrown == "5");
    CHECK(begun < 1000);
  }
}

}  // namespace
}  // namespace stageline::parallel_tests
