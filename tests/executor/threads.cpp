// Does a process that can start no more threads say so and end well, as do the others?
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <string>

#include "tests/executor/member.hpp"

namespace {

std::atomic<int> threads_left{-1};  // below 0: any number

}  // namespace

// In place of the library's, whose errors none of a process's limits brings about for root.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*routine)(void*), void* argument) noexcept {
  static const auto library =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return library(thread, attributes, routine, argument);
}

namespace stageline::executor {

using member::contains;
using member::place;
using member::seconds;

TEST_CASE("as a peer: come with few threads" * doctest::skip()) {
  threads_left = std::atoi(std::getenv("THREADS_LEFT"));
  try {
    Peers(place_from_environment().value(), seconds(3));
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(2);
  }
}

TEST_CASE("threads that cannot be started are one sentence, to the others, too") {
  int refused = 0;
  int code = 2;
  for (int threads = 0; code != 0 && threads < 50; ++threads) {
    CAPTURE(threads);
    const int port = free_port();
    Variables settings = member::variables(place(1, 2, port), "3");
    settings["THREADS_LEFT"] = std::to_string(threads);
    Spawned other("as a peer: come with few threads", settings);
    std::string here;
    try {
      Peers(place(0, 2, port), seconds(3));
    } catch (const std::exception& error) {
      here = error.what();
    }
    const std::string there = other.errors();
    code = other.wait();
    CAPTURE(here);
    CAPTURE(there);
    CHECK((code == 0 || code == 2));
    CHECK((code == 0) == here.empty());
    if (!contains(there, "a thread for messages cannot be started: ")) continue;
    ++refused;
    CHECK((contains(here, "rank 1: " + there) || contains(here, "rank 1 has vanished: ")));
  }
  CHECK(code == 0);
  CHECK(refused == 3);  // the sender, the receiver, the watcher
}

}  // namespace stageline::executor
