// Explains deadlocks and missing products: slow, and in words.
#include "sim/lower/standstill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/text/figure.hpp"

namespace stageline {
namespace {

class Explainer {
 public:
  explicit Explainer(const Standstill& still) : still_(still) {}

  [[noreturn]] void explain_missing(Op op) const {
    static constexpr const char* what[products] = {
        "activation",      "input gradient",   "weight gradient",  "recomputed stash",
        "offloaded stash", "prefetched stash", "message",          "message",
        "message",         "message",          "reduced gradient", "updated weights"};
    std::string words;
    needs(
        still_.program, still_.stages, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return exists(product, at, number, part);
        },
        [&](Product product, int at, std::uint32_t number, int part) {
          if (!words.empty() || exists(product, at, number, part)) return;
          words =
              fmt::format("{} needs the {} of {} {}, number {}, but no op of the program makes it",
                          print(op), what[static_cast<std::size_t>(product)],
                          cargo_of(product) ? "wire" : "stage", at, number);
        });
    throw ProgramError(words, -1, -1, grid(still_.program, {op}));
  }

  bool exists(Product product, int at, std::uint32_t number, int part) const {
    if (!still_.index.has(product)) return false;
    const std::int64_t slot = still_.index.index(product, at, number, part);
    return slot >= 0 && still_.slot[static_cast<std::size_t>(slot)] != nobody;
  }

  struct Standing {  // the lane of an op, and its index in ops
    std::uint32_t lane = no_lane;
    std::uint32_t at = 0;
  };
  struct Wait {  // of the head of a lane
    Op waits;    // the op itself; of a batch, the message that is not done
    Standing on;
    bool meets = false;  // it waits for the other end of a message
  };

  template <class Is>
  Standing find(Is&& is) const {
    for (std::uint32_t lane = 0; lane < still_.head.size(); ++lane) {
      for (std::uint32_t at = still_.head[lane]; at != still_.end[lane]; ++at) {
        if (is(still_.ops[at])) return {lane, at};
      }
    }
    return {};
  }

  std::size_t message_slot(Op op) const {
    return static_cast<std::size_t>(
        still_.index.index(sent(*cargo_of(op.kind)), wire_of(still_.stages, op), op.microbatch, 0));
  }

  // The first product that the op needs, that is not made yet, and that its lane waits for; -1 for
  // none.
  std::int64_t awaited_by(Op op, std::uint32_t lane) const {
    std::int64_t awaited = -1;
    needs(
        still_.program, still_.stages, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return exists(product, at, number, part);
        },
        [&](Product product, int at, std::uint32_t number, int part) {
          const std::int64_t slot = still_.index.index(product, at, number, part);
          if (awaited >= 0 || slot < 0) return;
          if (!still_.maker.empty() && nth(still_.maker, slot) == lane) return;
          const Slot made = nth(still_.slot, slot);
          if (made >= waited_for && made != nobody) awaited = slot;
        });
    return awaited;
  }

  Wait wait_of(std::uint32_t lane) const {
    const std::uint32_t head = still_.head[lane];
    const std::uint32_t batch = batch_size(still_, lane);
    for (std::uint32_t at = head; at != head + batch; ++at) {
      const Op op = still_.ops[at];
      const std::size_t slot = message_slot(op);
      if (still_.posted[slot] != lane || still_.slot[slot] < waited_for) continue;
      const Op other = other_end(still_.stages, op);
      return {op, find([&](Op one) { return one == other; }), true};
    }
    // An overlapped pair's second half may be what waits, or any SEND of a batch.
    const std::uint32_t last = std::min(head + std::max(batch, 2U), still_.end[lane]);
    std::int64_t awaited = -1;
    std::uint32_t at = head;
    // Where messages block, the reader of one waits for the RECV on its own device, and the RECV
    // for no product.
    const bool blocks = !still_.posted.empty();
    for (; awaited < 0 && at != last; ++at) {
      const Op op = still_.ops[at];
      if (blocks && cargo_of(op.kind) && !is_send(op.kind)) continue;
      awaited = awaited_by(op, lane);
    }
    const Standing maker = find([&](Op one) {
      if (blocks && cargo_of(one.kind)) {
        return !is_send(one.kind) && static_cast<std::int64_t>(message_slot(one)) == awaited;
      }
      bool here = false;
      makes(still_.stages, one, [&](Product product, int of, std::uint32_t number, int part) {
        here = here || still_.index.index(product, of, number, part) == awaited;
      });
      return here;
    });
    return {batch > 0 ? still_.ops[at - 1] : still_.ops[head], maker, false};
  }

  Op head_op(std::uint32_t lane) const { return still_.ops[still_.head[lane]]; }
  bool is_pair(std::uint32_t lane) const {
    return head_op(lane).overlapped && still_.head[lane] + 1 != still_.end[lane];
  }
  std::string head_text(std::uint32_t lane) const {
    const std::uint32_t head = still_.head[lane];
    if (is_pair(lane)) {
      return fmt::format("({};{})", print(head_op(lane)), print(still_.ops[head + 1]));
    }
    const std::uint32_t batch = batch_size(still_, lane);
    if (batch < 2) return print(head_op(lane));
    std::string text;
    for (std::uint32_t at = head; at != head + batch; ++at) {
      text += fmt::format("{}{}", text.empty() ? "" : " ", print(still_.ops[at]));
    }
    return fmt::format("the batch ({})", text);
  }

  Deadlock deadlock_of(std::uint32_t lane, std::vector<std::uint32_t>* around) const {
    // Each stuck lane waits for one other: follow until a lane comes again.
    std::vector<std::uint32_t> seen;
    while (std::find(seen.begin(), seen.end(), lane) == seen.end()) {
      seen.push_back(lane);
      lane = wait_of(lane).on.lane;
    }
    seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), lane));
    // The report begins with the smallest number of the first stage, so that it is deterministic.
    std::rotate(seen.begin(),
                std::min_element(seen.begin(), seen.end(),
                                 [&](std::uint32_t a, std::uint32_t b) {
                                   const auto key = [&](std::uint32_t of) {
                                     const Op op = head_op(of);
                                     return std::tuple(op.stage, op.microbatch, op.kind, op.part);
                                   };
                                   return key(a) < key(b);
                                 }),
                seen.end());
    std::vector<Op> cycle;
    std::string words = head_text(seen.front());
    for (const std::uint32_t stuck : seen) {
      const Wait wait = wait_of(stuck);
      const Op maker = still_.ops[wait.on.at];
      cycle.push_back(wait.waits);
      words += fmt::format("{} {} {}", stuck == seen.front() ? "" : ", which",
                           wait.meets ? "waits for" : "needs", print(maker));
      const std::uint32_t ahead = wait.on.at - still_.head[wait.on.lane];
      const std::uint32_t batch = batch_size(still_, wait.on.lane);
      if (ahead > 0) cycle.push_back(maker);
      if (is_pair(wait.on.lane) && ahead <= 1) {
        words += fmt::format(", half of {}", head_text(wait.on.lane));
      } else if (batch > 1 && ahead < batch) {
        words += fmt::format(", one of {}", head_text(wait.on.lane));
      } else if (ahead > 0) {
        words += fmt::format(", which comes after {}", head_text(wait.on.lane));
      }
    }
    if (around != nullptr) *around = seen;
    return {"the program cannot finish: " + words, cycle, grid(still_.program, cycle)};
  }

 private:
  const Standstill& still_;
};

}  // namespace

void explain_missing(const Standstill& still, Op op) { Explainer(still).explain_missing(op); }

Deadlock deadlock_of(const Standstill& still, std::uint32_t lane,
                     std::vector<std::uint32_t>* around) {
  return Explainer(still).deadlock_of(lane, around);
}

std::uint32_t batch_size(const Standstill& still, std::uint32_t lane) {
  if (still.posted.empty()) return 0;
  std::uint32_t at = still.head[lane];
  while (at != still.end[lane] && cargo_of(still.ops[at].kind)) {
    ++at;
    if (still.program.settings.messages == Messages::blocking) break;
  }
  return at - still.head[lane];
}

}  // namespace stageline
