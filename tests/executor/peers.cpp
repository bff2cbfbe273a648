// Do processes hear from each other what they were told, in order and bit for bit?
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/executor/member.hpp"

namespace stageline::executor {
namespace {

using member::Member;
using member::message_of;
using member::patience;
using member::place;
using member::seconds;
using member::stop;
using member::variables;

// In a started process: its peers.
Peers peers_of_environment() {
  return Peers(place_from_environment().value(), seconds(std::atoi(std::getenv("PATIENCE"))));
}

bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  if (one.scalar_type() != other.scalar_type() || one.sizes() != other.sizes()) return false;
  const at::Tensor a = one.resolve_conj().resolve_neg().contiguous();
  const at::Tensor b = other.contiguous();
  const std::size_t size = as_size(a.numel()) * a.element_size();
  return size == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), size) == 0;
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
  // On a busy machine none of a comparison's messages may come quickly.
  for (int again = 0; again < 100; ++again) {
    peers.compare_clocks();
    if (peers.clock_error() < 1'000'000) break;
  }
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

TEST_CASE("as a peer: send and meet" * doctest::skip()) {
  Peers peers = peers_of_environment();
  peers.send(0, {1, 0, {at::ones({3})}});
  peers.barrier();
}

// The end may come from one that this process has met, before all others have.
TEST_CASE("as a peer: wait for the end" * doctest::skip()) {
  std::string why;
  try {
    Peers peers = peers_of_environment();
    std::promise<std::string> told;
    peers.listen({}, [&](const std::string& reason) { told.set_value(reason); });
    why = told.get_future().get();
  } catch (const PeerFailure& failure) {
    why = failure.what();
  }
  std::fputs(why.c_str(), stderr);
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

}  // namespace stageline::executor
