// Do processes hear from each other what they were told, in order and bit for bit, and of each
// other's end?
#include "tools/executor/processes/peers.hpp"
#include "sim/index.hpp"

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

#include "sim/errors.hpp"
#include "tests/executor/spawned.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// Ends an echo.
constexpr std::uint32_t stop = 0xffffffff;
const seconds patience{30};

Place place(int rank, int size, int port) { return {rank, size, "127.0.0.1", port}; }

Variables variables(const Place& at, const std::string& seconds_of_patience = "30") {
  return {{"RANK", std::to_string(at.rank)},
          {"WORLD_SIZE", std::to_string(at.size)},
          {"MASTER_ADDR", at.master},
          {"MASTER_PORT", std::to_string(at.port)},
          {"LOCAL_RANK", ""},
          {"LOCAL_WORLD_SIZE", ""},
          {"PATIENCE", seconds_of_patience},
          {"TORCHELASTIC_USE_AGENT_STORE", ""}};
}

// In a started process: its peers.
Peers peers_of_environment() {
  return Peers(place_from_environment().value(), seconds(std::atoi(std::getenv("PATIENCE"))));
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

bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  if (one.scalar_type() != other.scalar_type() || one.sizes() != other.sizes()) return false;
  const at::Tensor a = one.resolve_conj().resolve_neg().contiguous();
  const at::Tensor b = other.contiguous();
  const std::size_t size = as_size(a.numel()) * a.element_size();
  return size == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), size) == 0;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("as a peer: send back" * doctest::skip()) {
  Peers peers = peers_of_environment();
  std::promise<void> stopped;
  peers.listen([&](int from, Delivery delivery) {
    if (delivery.task == stop) return stopped.set_value();
    peers.send(from, std::move(delivery));
  });
  stopped.get_future().wait();
}

TEST_CASE("as a peer: meet and tell" * doctest::skip()) {
  Peers peers = peers_of_environment();
  for (int i = 0; i < 3; ++i) peers.barrier();
  peers.gather("I am " + std::to_string(peers.rank()));
  peers.gather(std::string(100'000, static_cast<char>('0' + peers.rank())));
  peers.gather("");
  peers.compare_clocks();
  peers.gather(std::to_string(peers.clock_offset()) + " " + std::to_string(peers.clock_error()) +
               " " + std::to_string(peers.now()));
}

TEST_CASE("as a peer: fail" * doctest::skip()) {
  Peers peers = peers_of_environment();
  peers.fail("the loss is no number");
}

TEST_CASE("as a peer: throw" * doctest::skip()) {
  try {
    Peers peers = peers_of_environment();
    throw std::runtime_error("nobody is told this");
  } catch (const std::runtime_error&) {
    std::_Exit(3);
  }
}

TEST_CASE("as a peer: choke" * doctest::skip()) {
  Peers peers = peers_of_environment();
  std::promise<std::string> told;
  peers.listen([](int, const Delivery&) { throw std::runtime_error("this tensor is not mine"); },
               [&](const std::string& why) { told.set_value(why); });
  std::_Exit(told.get_future().get() == "this tensor is not mine" ? (peers.~Peers(), 5) : 6);
}

TEST_CASE("as a peer: wait for the end" * doctest::skip()) {
  Peers peers = peers_of_environment();
  std::promise<std::string> told;
  peers.listen({}, [&](const std::string& why) { told.set_value(why); });
  std::fputs(told.get_future().get().c_str(), stderr);
}

TEST_CASE("as a peer: come" * doctest::skip()) {
  try {
    peers_of_environment();
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(2);
  }
}

TEST_CASE("one process alone has no peers, and all calls work") {
  Peers peers(place(0, 1, 1), patience);
  peers.barrier();
  CHECK(peers.gather("mine") == std::vector<std::string>{"mine"});
  CHECK(peers.clock_offset() == 0);
  CHECK_FALSE(peers.failure());
  peers.fail("a reason");
  CHECK(peers.failure() == "a reason");
}

TEST_CASE("tensors of all types, sizes and strides come back bit for bit") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port)));
  Member peers(place(0, 2, port), patience);
  std::vector<at::Tensor> sent;
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    sent.push_back(at::randn({3, 5}).mul(100).to(type));
    sent.push_back(at::empty({0}, type));
  }
  const at::Tensor matrix = at::randn({64, 48});
  const at::Tensor image = at::randn({2, 3, 17, 19}).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor odd = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  const std::uint32_t payload = 0xffc12345;
  std::memcpy(odd.data_ptr(), &payload, sizeof payload);
  at::Tensor weights = at::randn({4, 4});
  weights.requires_grad_(true);
  for (const at::Tensor& tensor :
       {at::scalar_tensor(3.5), at::empty({0, 3, 0}), matrix, matrix.t(), matrix.slice(1, 3, 40, 2),
        matrix.select(0, 7), matrix.slice(0, 9, 12), at::randn({5}).expand({7, 5}), image, odd,
        weights, at::randn({4}, at::kComplexFloat).conj(), at::arange(16384, at::kFloat),
        at::arange(16300, at::kFloat), at::randn({1 << 21}), at::randn({(9 << 20) + 1}),
        at::randn({1, 1, 1, 1, 1, 1, 1, 2})}) {
    sent.push_back(tensor);
  }
  SUBCASE("one by one") {
    for (std::uint32_t task = 0; task < sent.size(); ++task) {
      peers->send(1, {task, 1000 + task, {sent[task]}});
      const Delivery back = peers.next();
      CAPTURE(task);
      CHECK(back.task == task);
      CHECK(back.at == 1000 + task);
      REQUIRE(back.tensors.size() == 1);
      CHECK(same_bits(sent[task], back.tensors[0]));
      CHECK_FALSE(back.tensors[0].requires_grad());
      CHECK(back.tensors[0].is_non_overlapping_and_dense());
      if (sent[task].is_non_overlapping_and_dense())
        CHECK(back.tensors[0].strides() == sent[task].strides());
    }
  }
  SUBCASE("all at once, and none") {
    peers->send(1, {1, -1, sent});
    peers->send(1, {2, std::numeric_limits<std::int64_t>::max(), {}});
    const Delivery back = peers.next();
    CHECK(back.at == -1);
    REQUIRE(back.tensors.size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(sent[i], back.tensors[i]));
    }
    const Delivery none = peers.next();
    CHECK(none.task == 2);
    CHECK(none.at == std::numeric_limits<std::int64_t>::max());
    CHECK(none.tensors.empty());
  }
  SUBCASE("more of them than the first block can describe") {
    const std::vector<at::Tensor> many(3000, at::arange(3));
    peers->send(1, {1, 0, many});
    const Delivery back = peers.next();
    REQUIRE(back.tensors.size() == many.size());
    CHECK(std::all_of(back.tensors.begin(), back.tensors.end(),
                      [&](const at::Tensor& one) { return same_bits(many[0], one); }));
  }
  peers->send(1, {stop, 0, {}});
  peers.end();
  CHECK(other.wait() == 0);
}

TEST_CASE("neither sparse nor quantized tensors can be sent") {
  Peers peers(place(0, 1, 1), patience);
  CHECK(message_of([&] {
          peers.send(0, {0, 0, {at::eye(3).to_sparse()}});
        }) ==
        "a tensor of type SparseCPUFloatType cannot go to another process: only dense tensors can, "
        "and neither sparse nor quantized ones");
}

TEST_CASE("order is kept, with small and large messages both ways at once") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port)));
  Member peers(place(0, 2, port), patience);
  const std::uint32_t count = 1000;
  const at::Tensor large = at::randn({4 << 20});  // 16 MiB
  for (std::uint32_t task = 0; task < count; ++task) {
    const at::Tensor small = at::full({1 + task % 7}, static_cast<double>(task));
    if (task % 100 == 50) {
      peers->send(1, {task, task, {small, large + static_cast<double>(task)}});
    } else {
      peers->send(1, {task, task, {small}});
    }
  }
  for (std::uint32_t task = 0; task < count; ++task) {
    const Delivery back = peers.next();
    REQUIRE(back.task == task);
    REQUIRE(back.tensors[0].size(0) == 1 + task % 7);
    REQUIRE(back.tensors[0][0].item<double>() == task);
    if (task % 100 == 50) REQUIRE(at::equal(back.tensors.at(1), large + static_cast<double>(task)));
  }
  peers->send(1, {stop, 0, {}});
  peers.end();
  CHECK(other.wait() == 0);
}

TEST_CASE("what comes before anybody listens waits") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port)));
  Member peers(place(0, 2, port), patience, false);
  for (std::uint32_t task = 0; task < 10; ++task) peers->send(1, {task, 0, {at::ones({3})}});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  peers.listen();
  for (std::uint32_t task = 0; task < 20; ++task) {
    if (task < 10) peers->send(1, {task + 10, 0, {at::ones({3})}});
    CHECK(peers.next().task == task);
  }
  peers->send(1, {stop, 0, {}});
  peers.end();
  CHECK(other.wait() == 0);
}

TEST_CASE("processes meet, and rank 0 gathers what they say; their clocks agree within 1 ms") {
  const int port = free_port();
  Spawned one("as a peer: meet and tell", variables(place(1, 3, port)));
  Spawned two("as a peer: meet and tell", variables(place(2, 3, port)));
  Member peers(place(0, 3, port), patience);
  for (int i = 0; i < 3; ++i) peers->barrier();
  CHECK(peers->gather("I am 0") == std::vector<std::string>{"I am 0", "I am 1", "I am 2"});
  CHECK(peers->gather("") ==
        std::vector<std::string>{"", std::string(100'000, '1'), std::string(100'000, '2')});
  CHECK(peers->gather("") == std::vector<std::string>{"", "", ""});
  const std::int64_t before = peers->now();
  const std::vector<std::string> clocks = peers->gather("");
  const std::int64_t after = peers->now();
  for (int rank = 1; rank < 3; ++rank) {
    std::int64_t offset = 0, error = 0, now = 0;
    std::istringstream(nth(clocks, rank)) >> offset >> error >> now;
    CAPTURE(offset);
    CAPTURE(error);
    // On one machine all steady clocks are one.
    CHECK(std::abs(offset) <= error);
    CHECK(std::abs(offset) < 1'000'000);
    CHECK(error > 0);
    CHECK(error < 1'000'000);
    CHECK(now > before - 1'000'000'000);
    CHECK(now < after + 1'000'000);
  }
  peers.end();
  CHECK(one.wait() == 0);
  CHECK(two.wait() == 0);
}

// Among three, the news that a process has ended may overtake its reason: not settled yet.
TEST_CASE("a peer that fails is heard with its reason, once" * doctest::may_fail()) {
  struct Case {
    const char* what;
    std::string says;
    int code;
  };
  for (const Case& one :
       {Case{"as a peer: fail", "rank 1: the loss is no number", 0},
        Case{"as a peer: throw",
             "rank 1: it was stopped by an error of which nothing more is known", 3},
        Case{"as a peer: choke", "rank 1: this tensor is not mine", 5}}) {
    CAPTURE(one.what);
    const int port = free_port();
    Spawned other(one.what, variables(place(1, 3, port)));
    Spawned third("as a peer: wait for the end", variables(place(2, 3, port)));
    {
      Member peers(place(0, 3, port), patience);
      peers->send(1, {1, 0, {at::ones({3})}});
      CHECK(peers.failure() == one.says);
      CHECK(peers->failure() == one.says);
      CHECK_THROWS_WITH_AS(peers->barrier(), one.says.c_str(), PeerFailure);
      CHECK_THROWS_WITH_AS(peers->gather(""), one.says.c_str(), PeerFailure);
      peers->send(1, {2, 0, {at::ones({3})}});  // goes nowhere
      CHECK(other.wait() == one.code);
    }
    CHECK(third.wait() == 0);
    CHECK(contains(third.errors(), one.says));
  }
}

TEST_CASE("a peer is heard to fail in the middle of a barrier, and of much that is sent to it") {
  const int port = free_port();
  Spawned other("as a peer: fail", variables(place(1, 2, port)));
  Peers peers(place(0, 2, port), patience);
  for (std::uint32_t task = 0; task < 100; ++task) peers.send(1, {task, 0, {at::ones({1 << 20})}});
  CHECK_THROWS_WITH_AS(peers.barrier(), "rank 1: the loss is no number", PeerFailure);
}

TEST_CASE("a peer that ends before a barrier is no deadlock") {
  const int port = free_port();
  Spawned other("as a peer: come", variables(place(1, 2, port)));
  Peers peers(place(0, 2, port), patience);
  CHECK_THROWS_WITH_AS(peers.barrier(), "rank 1 has ended before the others were through",
                       PeerFailure);
}

// Among three, the news that a process has ended may overtake its reason: not settled yet.
TEST_CASE("this process's own failure reaches all others" * doctest::may_fail()) {
  const int port = free_port();
  Spawned one("as a peer: wait for the end", variables(place(1, 3, port)));
  Spawned two("as a peer: wait for the end", variables(place(2, 3, port)));
  {
    Peers peers(place(0, 3, port), patience);
    peers.fail("the disk is full");
    CHECK(peers.failure() == "the disk is full");
  }
  CHECK(one.wait() == 0);
  CHECK(two.wait() == 0);
  CHECK(one.errors() == "rank 0: the disk is full");
  CHECK(two.errors() == "rank 0: the disk is full");
}

TEST_CASE("a peer that is killed is missed at once") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port)));
  Member peers(place(0, 2, port), patience);
  SUBCASE("in silence") {}
  SUBCASE("while much is sent to it and comes back") {
    for (std::uint32_t task = 0; task < 30; ++task)
      peers->send(1, {task, 0, {at::ones({1 << 22})}});
    peers.next();
  }
  const auto start = Clock::now();
  other.kill(SIGKILL);
  const std::string failure = [&] {
    try {
      while (true) peers.next();
    } catch (const PeerFailure& failed) {
      return std::string(failed.what());
    }
  }();
  CHECK(contains(failure, "rank 1 has vanished: "));
  CHECK(Clock::now() - start < seconds(3));
  CHECK(other.wait() == 128 + SIGKILL);
}

TEST_CASE("a peer that says nothing any more has vanished, too, after the time given") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port), "2"));
  Member peers(place(0, 2, port), seconds(2));
  other.kill(SIGSTOP);
  CHECK(peers.failure() == "rank 1 has vanished: nothing has come from it for 2 s");
}

TEST_CASE("a quiet peer that lives has not vanished") {
  const int port = free_port();
  Spawned other("as a peer: send back", variables(place(1, 2, port), "2"));
  Member peers(place(0, 2, port), seconds(2));
  std::this_thread::sleep_for(seconds(4));
  CHECK_FALSE(peers->failure());
  peers->send(1, {stop, 0, {}});
  peers.end();
  CHECK(other.wait() == 0);
}

TEST_CASE("those who do not come are named") {
  const int port = free_port();
  Spawned one("as a peer: come", variables(place(1, 4, port), "1"));
  CHECK(message_of([&] { Peers(place(0, 4, port), seconds(1)); }) ==
        "ranks 2 and 3 of 4 did not come to 127.0.0.1:" + std::to_string(port) +
            " (MASTER_ADDR, MASTER_PORT) within 1 s; were they started, with the same WORLD_SIZE?");
}

TEST_CASE("a rank 0 that does not answer, and a machine that nobody knows, are one sentence") {
  const int port = free_port();
  CHECK(message_of([&] { Peers(place(1, 2, port), seconds(1)); }) ==
        "rank 1 of 2 found nobody at 127.0.0.1:" + std::to_string(port) +
            " (MASTER_ADDR, MASTER_PORT) within 1 s; is rank 0 running there, and may that port be "
            "reached?");
  CHECK(contains(message_of([&] {
                   Peers({1, 2, "no machine", 29500}, seconds(1));
                 }),
                 "MASTER_ADDR is \"no machine\", which this machine does not know: "));
}

TEST_CASE("processes that do not fit together say so") {
  const int port = free_port();
  SUBCASE("two of one rank") {
    Spawned one("as a peer: come", variables(place(1, 3, port), "3"));
    Spawned same("as a peer: come", variables(place(1, 3, port), "3"));
    CHECK(contains(message_of([&] { Peers(place(0, 3, port), seconds(3)); }),
                   "rank 2 of 3 did not come"));
    const std::string said = one.errors() + same.errors();
    CHECK(contains(said, "have RANK 1, and each needs its own"));
  }
  SUBCASE("two sizes") {
    Spawned other("as a peer: come", variables(place(1, 2, port), "3"));
    const std::string said = message_of([&] { Peers(place(0, 3, port), seconds(3)); });
    CHECK(contains(said, "processes that run together must be alike: rank 0 has LibTorch"));
    CHECK(contains(said, " and WORLD_SIZE 2"));
  }
  SUBCASE("a port that is taken") {
    const Place at = place(0, 2, port);
    Spawned first("as a peer: come", variables(at, "20"));
    std::this_thread::sleep_for(seconds(2));
    CHECK(message_of([&] { Peers(at, seconds(1)); }) ==
          "rank 0 cannot wait for the others at port " + std::to_string(port) +
              " (MASTER_PORT): Address already in use; is another run there?");
  }
}

}  // namespace stageline::executor
