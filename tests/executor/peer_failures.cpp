// Do processes hear of each other's end, by whatever it came?
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

using member::contains;
using member::Member;
using member::message_of;
using member::patience;
using member::place;
using member::seconds;
using member::stop;
using member::variables;

}  // namespace

TEST_CASE("a peer that fails is heard with its reason, once") {
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

TEST_CASE("what came before anybody listened may be refused as what comes later") {
  const int port = free_port();
  Spawned other("as a peer: send and meet", variables(place(1, 2, port)));
  Peers peers(place(0, 2, port), patience);
  peers.barrier();  // what was sent ahead of it has come
  std::string heard;
  peers.listen([](int, const Delivery&) { throw std::runtime_error("this tensor is not mine"); },
               [&](const std::string& why) { heard = why; });
  CHECK(heard == "this tensor is not mine");
  CHECK(peers.failure() == "this tensor is not mine");
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

TEST_CASE("this process's own failure reaches all others") {
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
  other.kill(SIGKILL);
  const std::string failure = [&] {
    try {
      while (true) peers.next();
    } catch (const PeerFailure& failed) {
      return std::string(failed.what());
    }
  }();
  CHECK(contains(failure, "rank 1 has vanished: "));
  CHECK_FALSE(contains(failure, "nothing has come from it"));  // not missed by its silence
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
