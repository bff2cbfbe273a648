#include "schedulers/search/v_rounds.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr int most_runs = 16;  // of each way to fill, each with the idle time of the one before

// What a device does of a micro-batch, in this order: F and I of the way down the devices are the
// first of their kind, those of the way up the second.
enum RoundOp : std::uint8_t { forward_down, forward_up, input_down, input_up, round_ops };

// Before which ops a W may make a device wait.
struct RoundFill {
  bool forwards = false;
  bool inputs_down = false;
};

class Rounds {
 public:
  Rounds(const Problem& problem, const StashLimit& limit, RoundFill fill,
         const std::vector<Time>& idle_before)
      : fill_(fill),
        idle_before_(idle_before),
        devices_(problem.placement.stages() / 2),
        count_(as_size(problem.microbatches)),
        stages_(stage_times(problem, true)) {
    for (const Time idle : idle_before) most_before_ = std::max(most_before_, idle);
    const bool bytes = limit.unit == StashLimit::Unit::bytes;
    for (int r = 0; r < devices_; ++r) {
      Device& device = all_.emplace_back();
      if (as_size(r) < limit.most.size() && nth(limit.most, r) >= 0) {
        device.most = nth(limit.most, r);
      }
      for (const RoundOp op : {forward_down, forward_up}) {
        const StageCosts& costs = nth(problem.costs.stage, stage_of(op, r));
        device.holds.at(op) = bytes ? costs.stash().count : 1;
        device.left.at(op) = bytes ? costs.stash_after_input_grad().count : 1;
      }
      for (std::vector<Time>& ends : device.ends) ends.assign(count_, Time{-1});
    }
  }

  /// False where the limit, or the number of micro-batches, does not let it be.
  bool run() { return warm_up() && all_rounds() && empty(); }

  std::vector<Time> idle() const {
    std::vector<Time> idle;
    for (const Device& device : all_) idle.push_back(device.idle);
    return idle;
  }
  Time most_idle() const { return most_idle_; }

  StepLists lists() {
    StepLists lists;
    for (Device& device : all_) lists.push_back(std::move(device.list));
    return lists;
  }

 private:
  struct Device {
    std::vector<Op> list;
    Time free{};
    Time idle{};  // behind its first F
    std::optional<std::int64_t> most;
    std::int64_t held = 0;
    std::array<std::int64_t, 2> holds{};  // a stash of either chunk, made by F
    std::array<std::int64_t, 2> left{};   // of it, behind I
    std::array<std::size_t, round_ops> done{};
    std::array<std::vector<Time>, round_ops> ends;  // by micro-batch; negative: not done
    std::vector<Op> weights;                        // in the order of their I's
    std::size_t next_weight = 0;
  };

  static bool is_forward(RoundOp op) { return op == forward_down || op == forward_up; }
  static bool goes_down(RoundOp op) { return op == forward_down || op == input_down; }
  // I of the way down is of the chunk whose F went up.
  static RoundOp forward_of(RoundOp op) {
    return op == input_down ? forward_up : op == input_up ? forward_down : op;
  }
  Device& at(int r) { return nth(all_, r); }
  int stage_of(RoundOp op, int r) const {
    return forward_of(op) == forward_down ? r : 2 * devices_ - 1 - r;
  }
  std::size_t done(int r, RoundOp op) { return at(r).done.at(op); }
  bool is_done(int r, RoundOp op, std::size_t m) { return at(r).ends.at(op).at(m) >= Time{}; }
  bool waits(int r) { return at(r).next_weight < at(r).weights.size(); }
  Time weight_time(int r) { return nth(stages_, at(r).weights[at(r).next_weight].stage).weight; }
  std::int64_t added_by(int r, RoundOp op) {
    const std::size_t chunk = forward_of(op);
    return is_forward(op) ? at(r).holds.at(chunk) : at(r).left.at(chunk) - at(r).holds.at(chunk);
  }
  bool has_room(int r, std::int64_t more) {
    return !at(r).most || at(r).held + more <= *at(r).most;
  }

  // When what its next one needs arrives from another device; nothing where it comes from none, or
  // is not on its way.
  std::optional<Time> arrival(int r, RoundOp op) {
    const int from = goes_down(op) ? r - 1 : r + 1;
    const std::size_t m = done(r, op);
    if (from < 0 || from == devices_ || m == count_ || !is_done(from, op, m)) return std::nullopt;
    const StageTimes& sender = nth(stages_, stage_of(op, from));
    for (const Way& way : is_forward(op) ? sender.to : sender.back) {
      if (way.stage == stage_of(op, r)) return at(from).ends.at(op)[m] + way.wire + way.latency;
    }
    return std::nullopt;
  }

  bool put(int r, RoundOp op) {
    Device& here = at(r);
    const std::size_t m = done(r, op);
    const int from = goes_down(op) ? r - 1 : r + 1;
    if (m == count_ || !has_room(r, added_by(r, op))) return false;
    if (op != forward_down && !is_done(r, static_cast<RoundOp>(op - 1), m)) return false;
    if (from >= 0 && from < devices_ && !is_done(from, op, m)) return false;
    const Time start = std::max(here.free, arrival(r, op).value_or(here.free));
    if (here.done[forward_down] > 0) here.idle += start - here.free;
    most_idle_ = std::max(most_idle_, here.idle);
    const int stage = stage_of(op, r);
    const StageTimes& times = nth(stages_, stage);
    here.free = start + (is_forward(op) ? times.forward : times.backward);
    here.ends.at(op)[m] = here.free;
    here.held += added_by(r, op);
    const auto microbatch = static_cast<std::uint32_t>(m);
    const OpKind kind = is_forward(op) ? OpKind::forward : OpKind::input_grad;
    here.list.push_back(op_of(kind, stage, microbatch));
    if (!is_forward(op)) {
      here.weights.push_back(op_of(OpKind::weight_grad, stage, microbatch));
    }
    ++here.done.at(op);
    return true;
  }

  void put_weight(int r) {
    Device& here = at(r);
    const Op op = here.weights[here.next_weight++];
    here.list.push_back(op);
    here.free += nth(stages_, op.stage).weight;
    here.held -= here.left.at(op.stage == r ? forward_down : forward_up);
  }

  // A W in gaps that it fits, and where the wait would be longer than any other device's, if
  // `longer`.
  void fill_gap(int r, RoundOp op, bool longer) {
    const std::optional<Time> arrives = arrival(r, op);
    if (!arrives) return;
    while (waits(r) && *arrives >= at(r).free + weight_time(r)) put_weight(r);
    Time most = most_idle_;
    if (!idle_before_.empty()) most = std::max(most, most_before_ - nth(idle_before_, r));
    if (longer && waits(r) && *arrives - at(r).free > most - at(r).idle) put_weight(r);
  }

  bool make_room(int r, RoundOp op) {
    while (!has_room(r, added_by(r, op))) {
      if (!waits(r)) return false;
      put_weight(r);
    }
    return true;
  }

  // F's until the first I: as many more of the first chunk as there are time and room for before
  // the second chunk's first can begin, then of both chunks in turn, so that each device has begun
  // no fewer than the one before it.
  bool warm_up() {
    for (int r = 0; r < devices_; ++r) {
      if (!put(r, forward_down)) return false;
    }
    for (int r = devices_ - 1; r >= 0; --r) {
      if (r + 1 < devices_) {
        const std::optional<Time> back = arrival(r, forward_up);
        if (!back) return false;
        while (done(r, forward_down) < count_ &&
               has_room(r, (1 + r) * (at(r).holds[0] + at(r).holds[1])) &&
               at(r).free + nth(stages_, r).forward <= *back) {
          for (int first = 0; first <= r; ++first) {
            if (!put(first, forward_down)) return false;
          }
        }
      }
      if (!put(r, forward_up)) return false;
    }
    RoundOp next = forward_down;
    for (int r = 1; r < devices_; ++r) {
      const auto behind = [&] {
        const std::size_t up = done(r - 1, forward_up);
        return done(r, forward_down) + done(r, forward_up) < done(r - 1, forward_down) + up ||
               (done(r, forward_up) <= up && up < count_);
      };
      while (behind()) {
        for (int last = devices_ - 1; last >= r; --last) {
          if (done(last, next) < count_ && !put(last, next)) return false;
        }
        next = next == forward_down ? forward_up : forward_down;
      }
    }
    return true;
  }

  RoundOp next_input(int r) {
    if (done(r, input_up) >= done(r, input_down)) return input_down;
    const bool comes = r + 1 == devices_ || done(r, input_down) == count_ ||
                       is_done(r + 1, input_up, done(r, input_up));
    return comes ? input_up : input_down;
  }

  std::optional<RoundOp> next_forward(int r) {
    const std::size_t up = done(r, forward_up);
    const std::size_t down = done(r, forward_down);
    if (up == count_) return std::nullopt;
    if (up >= down) return forward_down;
    if (r + 1 == devices_ || is_done(r + 1, forward_up, up)) return forward_up;
    if (down == count_ || (r > 0 && !is_done(r - 1, forward_down, down))) return std::nullopt;
    return forward_down;
  }

  bool put_filled(int r, RoundOp op, bool longer) {
    if (!make_room(r, op)) return false;
    fill_gap(r, op, longer);
    return put(r, op);
  }

  bool all_rounds() {
    for (std::size_t round = 0; round < 2 * count_; ++round) {
      std::vector<RoundOp> inputs;
      for (int r = 0; r < devices_; ++r) inputs.push_back(next_input(r));
      for (int r = devices_ - 1; r >= 0; --r) {
        if (nth(inputs, r) == input_up && !put_filled(r, input_up, true)) return false;
      }
      for (int r = 0; r < devices_; ++r) {
        if (nth(inputs, r) != input_down) continue;
        if (!put_filled(r, input_down, fill_.inputs_down)) return false;
      }
      for (int r = 0; r < devices_; ++r) {
        const std::optional<RoundOp> next = next_forward(r);
        if (next && !put_filled(r, *next, fill_.forwards)) return false;
      }
    }
    return true;
  }

  // The W's that are left; false where other ops are.
  bool empty() {
    for (int r = 0; r < devices_; ++r) {
      while (waits(r)) put_weight(r);
      if (at(r).list.size() != 6 * count_) return false;
    }
    return true;
  }

  RoundFill fill_;
  const std::vector<Time>& idle_before_;  // by device; empty: of no run
  Time most_before_{};
  int devices_;
  std::size_t count_;
  std::vector<StageTimes> stages_;
  std::vector<Device> all_;
  Time most_idle_{};
};

}  // namespace

std::vector<StepLists> v_round_orders(const Problem& problem, const StashLimit& limit) {
  std::vector<StepLists> orders;
  for (const bool inputs_down : {true, false}) {
    for (const bool forwards : {true, false}) {
      std::vector<Time> before;
      Time least = Time::max();
      for (int run = 0; run < most_runs; ++run) {
        Rounds rounds(problem, limit, {forwards, inputs_down}, before);
        if (!rounds.run()) break;
        const bool better = rounds.most_idle() < least;
        std::vector<Time> idle = rounds.idle();
        least = std::min(least, rounds.most_idle());
        StepLists lists = rounds.lists();
        if (std::find(orders.begin(), orders.end(), lists) == orders.end()) {
          orders.push_back(std::move(lists));
        }
        if (!better) break;
        before = std::move(idle);
      }
    }
  }
  return orders;
}

}  // namespace stageline
