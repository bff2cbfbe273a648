#include "sim/standstill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/errors.hpp"
#include "sim/figure.hpp"

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

  struct Standing {  // where an op stands: its lane and its place in ops
    std::uint32_t lane = no_lane;
    std::uint32_t at = 0;
  };

  // The op that makes what the head of `lane` waits for.
  Standing blocker_of(std::uint32_t lane) const {
    std::int64_t awaited = -1;
    const auto look = [&](Op op) {
      needs(
          still_.program, still_.stages, op,
          [&](Product product, int at, std::uint32_t number, int part) {
            return exists(product, at, number, part);
          },
          [&](Product product, int at, std::uint32_t number, int part) {
            const std::int64_t slot = still_.index.index(product, at, number, part);
            if (awaited < 0 && still_.slot[static_cast<std::size_t>(slot)] >= waited_for)
              awaited = slot;
          });
    };
    look(still_.ops[still_.head[lane]]);
    if (awaited < 0)
      look(still_.ops[still_.head[lane] + 1]);  // the second half of an overlapped pair
    for (std::uint32_t other = 0; other < still_.head.size(); ++other) {
      for (std::uint32_t at = still_.head[other]; at != still_.end[other]; ++at) {
        bool here = false;
        makes(still_.stages, still_.ops[at],
              [&](Product product, int of, std::uint32_t number, int part) {
                here = here || still_.index.index(product, of, number, part) == awaited;
              });
        if (here) return {other, at};
      }
    }
    return {};
  }

  [[noreturn]] void explain_deadlock(std::uint32_t lane) const {
    // Each stuck lane waits for one other: follow until a lane comes again.
    std::vector<std::uint32_t> seen;
    while (std::find(seen.begin(), seen.end(), lane) == seen.end()) {
      seen.push_back(lane);
      lane = blocker_of(lane).lane;
    }
    seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), lane));
    // The story begins with the first stage's smallest number: it is always told the same way.
    const auto head_op = [&](std::uint32_t of) { return still_.ops[still_.head[of]]; };
    const auto is_pair = [&](std::uint32_t of) {
      return head_op(of).overlapped && still_.head[of] + 1 != still_.end[of];
    };
    const auto head_text = [&](std::uint32_t of) {
      return is_pair(of) ? fmt::format("({};{})", print(head_op(of)),
                                       print(still_.ops[still_.head[of] + 1]))
                         : print(head_op(of));
    };
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
      const Standing standing = blocker_of(stuck);
      const Op maker = still_.ops[standing.at];
      cycle.push_back(head_op(stuck));
      words += fmt::format("{} needs {}", stuck == seen.front() ? "" : ", which", print(maker));
      const std::uint32_t ahead = standing.at - still_.head[standing.lane];
      if (ahead > 0) cycle.push_back(maker);
      if (is_pair(standing.lane) && ahead <= 1) {
        words += fmt::format(", half of {}", head_text(standing.lane));
      } else if (ahead > 0) {
        words += fmt::format(", which stands behind {}", head_text(standing.lane));
      }
    }
    throw Deadlock("the program cannot finish: " + words, cycle, grid(still_.program, cycle));
  }

  const Standstill& still_;
};

}  // namespace

void explain_missing(const Standstill& still, Op op) { Explainer(still).explain_missing(op); }

void explain_deadlock(const Standstill& still, std::uint32_t lane) {
  Explainer(still).explain_deadlock(lane);
}

}  // namespace stageline
