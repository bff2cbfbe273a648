// Does a process that waits for rank 0's text leave nothing behind when it is stopped?
#include "tools/executor/processes/shared_text.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>

#include "tests/executor/member.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

TEST_CASE("as a rank: send its text late" * doctest::skip()) {
  Peers peers(place_from_environment().value(), member::patience);
  peers.barrier();
  shared_text(peers, "late", nullptr);
  peers.barrier();
}

TEST_CASE("a text that comes after its receiver was stopped waits for the next listener") {
  const int port = free_port();
  Spawned zero("as a rank: send its text late", member::variables(member::place(0, 2, port)));
  Peers peers(member::place(1, 2, port), member::patience);
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(shared_text(peers, "", &stop), Stopped);
  peers.barrier();
  peers.barrier();  // what was sent ahead of it has come
  std::string heard;
  peers.listen([&](int, const Delivery& delivery) {
    const at::Tensor& bytes = delivery.tensors.at(0);
    heard.assign(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  });
  CHECK(heard == "late");
  peers.listen({});
}

}  // namespace stageline::executor
