// Finds forwards and backwards in a profile whose ranges have no names: by autograd's numbers.
//
//   main thread     |linear 7||relu 8| send |linear 9||relu 10| recv
//   autograd's                                                       |Relu 8||Addmm 7|
//
// An operator that autograd differentiates has a sequence number, and the operator of the engine
// that runs its backward has the same one. Sends and receives, updates and steps separate the
// forwards of a thread; a backward is all that the engine runs for the operators of one forward.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/kineto/found.hpp"

namespace stageline {
namespace {

constexpr std::int64_t no_number = -1;

enum class RangeRole : std::uint8_t { other, engine, separator };

struct Operator {
  KinetoStretch time;
  std::int64_t sequence = no_number;
  std::size_t event = 0;
  int thread = 0;
  RangeRole role = RangeRole::other;
};

// dist.send and its like: c10d's operators, and the annotations of the backends.
bool is_message(const TraceEvent& event) {
  if (event.category == "cpu_op") {
    return event.name.starts_with("c10d::send") || event.name.starts_with("c10d::recv");
  }
  return event.name.find(":send") != std::string::npos ||
         event.name.find(":recv") != std::string::npos || event.name == "nccl:coalesced";
}

// The operators of one forward, and of its backward.
struct Pass {
  std::optional<KinetoStretch> forward;
  std::optional<KinetoStretch> backward;
  std::size_t forward_event = 0;
  std::size_t backward_event = 0;
};

void join(std::optional<KinetoStretch>& whole, KinetoStretch part) {
  if (!whole) whole = part;
  whole->start = std::min(whole->start, part.start);
  whole->end = std::max(whole->end, part.end);
}

class OperatorFinder {
 public:
  explicit OperatorFinder(const std::string& file) : file_(file), times_(file) {}

  bool find(const std::string& json, KinetoRank& rank) {
    const TraceHead head = scan_trace_events(json, file_, [&](const TraceEvent& event) {
      keep(event);
      rank.traffic.look_at(event, times_);
    });
    times_.read_head(head, rank);
    settle();
    keep_outermost();
    find_forwards();
    find_backwards();
    if (!make_ranges()) return false;
    measure_work();
    run_.has_kernels = has_kernels_;
    if (has_kernels_) time_by_kernels(file_, json, times_, run_);
    rank.style = KinetoStyle::operators;
    assemble(run_, times_, rank);
    return true;
  }

 private:
  void keep(const TraceEvent& event) {
    if (event.phase != "X") return;
    if (is_kernel(event)) has_kernels_ = true;
    const bool annotation = event.category == "user_annotation";
    if (!annotation && event.category != "cpu_op") return;
    Operator op;
    const std::int64_t start = times_.start(event);
    op.time = {start, start + times_.duration(event)};
    op.event = event.index;
    op.thread = threads_.try_emplace(event.tid, static_cast<int>(threads_.size())).first->second;
    if (annotation) {
      if (event.name.starts_with(step_prefix)) {
        steps_.emplace_back(op, event.name);
      } else if (event.name.starts_with(update_prefix)) {
        updates_.push_back(op);
      } else if (is_message(event)) {
        if (event.name.ends_with(":recv")) receives_.push_back(op);
        messages_.push_back(op);
      }
      return;
    }
    if (is_message(event)) {
      op.role = RangeRole::separator;
    } else if (event.name.starts_with(autograd_prefix)) {
      op.role = RangeRole::engine;
    }
    if (!event.sequence.empty()) op.sequence = parse_count(event.sequence).value_or(no_number);
    operators_.push_back(op);
  }

  void settle() {
    const auto since_1970 = [&](Operator& op) {
      const std::int64_t since = times_.counted_from(op.time.start);
      op.time.start += since;
      op.time.end += since;
    };
    for (auto* const list : {&operators_, &updates_, &receives_, &messages_}) {
      for (Operator& op : *list) since_1970(op);
      std::sort(list->begin(), list->end(), earlier);
    }
    for (auto& [op, name] : steps_) since_1970(op);
    std::sort(steps_.begin(), steps_.end(),
              [](const auto& a, const auto& b) { return earlier(a.first, b.first); });
    std::vector<std::int64_t> before;
    for (const auto& [op, name] : steps_) {
      before.push_back(times_.step_number(name, op.event, before));
      run_.steps.push_back({before.back(), op.time});
    }
    for (const Operator& receive : receives_) run_.receives.push_back(receive.time);
  }

  static bool earlier(const Operator& a, const Operator& b) {
    return std::tuple(a.time.start, -a.time.end, a.event) <
           std::tuple(b.time.start, -b.time.end, b.event);
  }

  // Operators inside others of their thread, and inside of updates, are parts of these. One that
  // has no number takes the first number inside. Where gradients are recorded inside of the engine,
  // a forward runs again (checkpointing): its numbers are larger than that of the backward around
  // it.
  void keep_outermost() {
    std::vector<std::int64_t> until(threads_.size(), std::numeric_limits<std::int64_t>::min());
    std::vector<std::size_t> last(threads_.size());
    std::vector<std::int64_t> recomputed_until = until;
    std::vector<std::int64_t> engine_until = until;  // of a backward inside of one
    std::vector<Operator> outer;
    for (const Operator& op : operators_) {
      const auto thread = static_cast<std::size_t>(op.thread);
      if (op.time.start < until[thread]) {
        Operator& around = outer[last[thread]];
        if (around.role == RangeRole::other && around.sequence == no_number) {
          around.sequence = op.sequence;
        }
        if (around.role != RangeRole::engine) continue;
        const bool inside =
            op.time.start < std::max(engine_until[thread], recomputed_until[thread]);
        if (op.role == RangeRole::engine) {
          engine_until[thread] = std::max(engine_until[thread], op.time.end);
        } else if (!inside && around.sequence != no_number && op.sequence > around.sequence) {
          recomputed_until[thread] = op.time.end;
          run_.recomputed += op.time.end - op.time.start;
        }
        continue;
      }
      if (in_update(op)) continue;
      until[thread] = op.time.end;
      last[thread] = outer.size();
      outer.push_back(op);
    }
    operators_ = std::move(outer);
  }

  bool in_update(const Operator& op) const {
    const auto after = std::upper_bound(
        updates_.begin(), updates_.end(), op.time.start,
        [](std::int64_t at, const Operator& update) { return at < update.time.start; });
    return after != updates_.begin() && op.time.start < std::prev(after)->time.end &&
           std::prev(after)->thread == op.thread;
  }

  // The thread that runs the forwards: the most numbered operators outside of the engine.
  int main_thread() const {
    std::vector<std::int64_t> count(threads_.size() + 1);
    for (const Operator& op : operators_) {
      if (op.role == RangeRole::other && op.sequence != no_number) {
        ++count[static_cast<std::size_t>(op.thread)];
      }
    }
    return static_cast<int>(std::max_element(count.begin(), count.end()) - count.begin());
  }

  std::vector<std::int64_t> separators() const {
    std::vector<std::int64_t> at;
    for (const Operator& op : operators_) {
      if (op.role != RangeRole::other) at.push_back(op.time.start);
    }
    for (const auto* const list : {&messages_, &updates_}) {
      for (const Operator& op : *list) at.push_back(op.time.start);
    }
    for (const FoundStep& step : run_.steps) at.push_back(step.stretch.start);
    std::sort(at.begin(), at.end());
    return at;
  }

  // Adjacent operators of the main thread without a separator in between are one pass.
  void find_forwards() {
    const int main = main_thread();
    const std::vector<std::int64_t> separators = this->separators();
    auto next = separators.begin();
    bool opens = true;
    for (std::size_t at = 0; at < operators_.size(); ++at) {
      const Operator& op = operators_[at];
      if (op.role != RangeRole::other || op.thread != main) continue;
      for (; next != separators.end() && *next <= op.time.start; ++next) opens = true;
      if (op.sequence == no_number) continue;
      if (opens) passes_.emplace_back();
      opens = false;
      of_sequence_[op.sequence] = {at, passes_.size() - 1};
    }
  }

  // The engine's operators without a number accumulate gradients: they belong to the backward that
  // their thread is at.
  void find_backwards() {
    std::unordered_map<int, std::size_t> present;  // by thread: the pass
    for (const Operator& op : operators_) {
      if (op.role != RangeRole::engine) continue;
      if (op.sequence != no_number) {
        const auto after = of_sequence_.upper_bound(op.sequence);
        if (after == of_sequence_.begin()) continue;
        const auto& [forward, pass] = std::prev(after)->second;
        if (operators_[forward].time.end > op.time.start) continue;
        if (!passes_[pass].forward) passes_[pass].forward_event = operators_[forward].event;
        join(passes_[pass].forward, operators_[forward].time);
        present[op.thread] = pass;
      }
      const auto at = present.find(op.thread);
      if (at == present.end()) continue;
      Pass& pass = passes_[at->second];
      if (!pass.backward) pass.backward_event = op.event;
      join(pass.backward, op.time);
    }
  }

  // Returns false where there is no backward with its forward.
  bool make_ranges() {
    struct Placed {
      FoundRange range;
      std::optional<std::size_t> pass;
    };
    std::vector<Placed> placed;
    for (std::size_t at = 0; at < passes_.size(); ++at) {
      const Pass& pass = passes_[at];
      if (!pass.forward || !pass.backward) continue;
      FoundRange range;
      range.launch = *pass.forward;
      range.event = pass.forward_event;
      placed.push_back({range, at});
      range.meaning = RangeMeaning::backward;
      range.launch = *pass.backward;
      range.event = pass.backward_event;
      placed.push_back({range, at});
    }
    if (placed.empty()) return false;
    for (const Operator& update : updates_) {
      FoundRange range;
      range.meaning = RangeMeaning::optimizer;
      range.launch = update.time;
      range.event = update.event;
      placed.push_back({range, {}});
    }
    std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
      return a.range.launch.start < b.range.launch.start;
    });
    std::map<std::size_t, std::size_t> forward_of;  // by pass: index of its forward
    for (Placed& one : placed) {
      if (one.pass && one.range.meaning == RangeMeaning::forward) {
        forward_of[*one.pass] = run_.ranges.size();
      } else if (one.pass) {
        one.range.forward_of = forward_of.at(*one.pass);
      }
      run_.ranges.push_back(one.range);
    }
    return true;
  }

  // Operators without a number, of an extension say, belong to no pass, however long they take.
  void measure_work() {
    std::vector<KinetoStretch> passes;
    for (const Pass& pass : passes_) {
      if (!pass.forward || !pass.backward) continue;
      passes.push_back(*pass.forward);
      passes.push_back(*pass.backward);
    }
    std::sort(passes.begin(), passes.end(),
              [](const KinetoStretch& a, const KinetoStretch& b) { return a.start < b.start; });
    std::int64_t until = std::numeric_limits<std::int64_t>::min();
    for (KinetoStretch& pass : passes) {
      run_.work += std::max<std::int64_t>(0, pass.end - std::max(pass.start, until));
      pass.end = until = std::max(until, pass.end);  // the latest end of those that began
    }
    for (const Operator& op : operators_) {
      if (op.role == RangeRole::separator) continue;
      const auto after = std::upper_bound(
          passes.begin(), passes.end(), op.time.start,
          [](std::int64_t at, const KinetoStretch& pass) { return at < pass.start; });
      if (after != passes.begin() && op.time.start <= std::prev(after)->end) continue;
      run_.other_work += op.time.end - op.time.start;
    }
  }

  const std::string& file_;
  ProfileTimes times_;
  std::unordered_map<std::string, int> threads_;
  std::vector<Operator> operators_;
  std::vector<Operator> updates_;
  std::vector<Operator> receives_;
  std::vector<Operator> messages_;                       // annotations
  std::vector<std::pair<Operator, std::string>> steps_;  // with their names
  std::vector<Pass> passes_;
  // By sequence number: the last operator of the main thread that has it, and its pass. An operator
  // that is not differentiated has the number of the next one that is.
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> of_sequence_;
  bool has_kernels_ = false;
  FoundRun run_;
};

}  // namespace

bool find_by_operators(const std::string& file, const std::string& json, KinetoRank& rank) {
  return OperatorFinder(file).find(json, rank);
}

}  // namespace stageline
