// Checks that every op is in range, is done exactly once and is on the right device, and that
// messages match. (Deadlocks are found by compile().)
#include "sim/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/check/rest.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

// Finds ops whose stage, number or part the program does not have.
class Ranges {
 public:
  explicit Ranges(const Program& program) : program_(program), graph_(stage_graph(program)) {}

  std::string operator()(CheckPlace, Op op) const {
    if (counts_microbatches(op.kind)) {
      if (op.microbatch >= program_.total_microbatches()) {
        return fmt::format("there are micro-batches 0 to {} only ({} a step, {} steps)",
                           program_.total_microbatches() - 1, program_.microbatches,
                           program_.steps);
      }
    } else if (op.microbatch >= static_cast<std::uint32_t>(updates(program_, op.stage))) {
      return fmt::format("the stage has updates 0 to {} only", updates(program_, op.stage) - 1);
    }
    if (cargo_of(op.kind) && wire_of(graph_, op) < 0) {
      return "the stage has no such edge for a message";
    }
    if (device_of(graph_, program_.placement, op) < 0) return "the stage has no such part";
    const bool by_reader = op.kind == OpKind::recompute || op.kind == OpKind::prefetch;
    const bool one_piece = op.kind == OpKind::forward || op.kind == OpKind::weight_grad ||
                           op.kind == OpKind::backward || op.kind == OpKind::offload ||
                           (by_reader && !program_.placement.stage[op.stage].apart());
    if (one_piece && op.part != 0) return "only I, updates and messages come in parts";
    return "";
  }

 private:
  const Program& program_;
  StageGraph graph_;
};

class Checker {
 public:
  Checker(const Rest& rest, const Found& found)
      : rest_(rest), program_(rest.program()), found_(found), graph_(stage_graph(program_)) {}

  void check() {
    index_.emplace(program_, graph_);
    made_.assign(index_->size(), 0);
    updated_.resize(program_.placement.stage.size());
    exists_input_grad_.resize(program_.placement.stage.size());
    exists_offload_.resize(program_.placement.stage.size());
    readers_.resize(program_.placement.stage.size());
    for (const auto& list : program_.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::input_grad) exists_input_grad_[op.stage] = true;
        if (op.kind == OpKind::offload) exists_offload_[op.stage] = true;
      }
    }
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      const auto& list = program_.ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        check_op({static_cast<int>(device), static_cast<int>(i)}, list);
      }
    }
    for (int s = 0; s < program_.stages(); ++s) check_work(s);
    check_messages();
  }

 private:
  void report(LintRule rule, CheckPlace place, std::string message, int stage = -1) const {
    LintFinding finding = finding_of(rule, rest_.place(place), std::move(message));
    finding.stage = stage;
    found_(std::move(finding));
  }

  bool exists(Product product, int index, std::uint32_t number, int part = 0) const {
    const std::int64_t slot = index_->index(product, index, number, part);
    return slot >= 0 && nth(made_, slot) > 0;
  }

  // For ops of one stage and micro-batch; with others, such a pair is a deadlock.
  bool need_each_other(Op one, Op other) const {
    if (one.stage != other.stage || one.microbatch != other.microbatch) return false;
    const bool forward = one.kind == OpKind::forward || other.kind == OpKind::forward;
    const bool rebuilt = one.kind == OpKind::recompute || other.kind == OpKind::recompute;
    return forward || rebuilt || !program_.independent_w[one.stage];
  }

  void check_op(CheckPlace place, const std::vector<Op>& list) {
    const Op op = nth(list, place.position);
    const std::optional<Cargo> cargo = cargo_of(op.kind);
    const int home = device_of(graph_, program_.placement, op);
    if (home != place.device) {
      report(LintRule::placement, place,
             fmt::format("the op belongs on {}, where its stage is placed",
                         nth(program_.devices, home)));
    }
    if (op.overlapped) {
      const auto at = as_size(place.position);
      if (!is_pair(list, at)) {
        report(LintRule::pairing, place, std::string(no_pair));
      } else if (need_each_other(op, list[at + 1])) {
        report(LintRule::pairing, place,
               fmt::format("{} and {} run as one, and one of them needs the other", print(op),
                           print(list[at + 1])));
      }
    }
    const StagePlace& stage = program_.placement.stage[op.stage];
    if (op.kind == OpKind::reduce_grad && stage.replicas.size() == 1 &&
        program_.settings.data_ranks == 1) {
      report(LintRule::placement, place,
             "only a stage with replicas reduces gradients between them");
    }
    if (stage.apart()) check_apart(place, op, stage);
    if (class_of(op.kind) == OpClass::backward) note_reader(op, home);
    if (cargo && !check_message(place, op, *cargo)) return;
    const auto twice = [&] { report(LintRule::twice, place, "this work is done twice"); };
    if (op.kind == OpKind::update) {
      auto& here = updated_[op.stage];
      here.resize(as_size(updates(program_, op.stage)) * stage.replicas.size());
      const std::size_t at = op.microbatch * stage.replicas.size() + op.part;
      if (here[at]) return twice();
      here[at] = true;
    }
    bool again = false;
    makes(graph_, op, [&](Product product, int index, std::uint32_t number, int part) {
      std::uint8_t& count = nth(made_, index_->index(product, index, number, part));
      again = again || count > 0;
      count = 1;
    });
    if (again) twice();
  }

  bool check_message(CheckPlace place, Op op, Cargo cargo) {
    const int number = wire_of(graph_, op);
    const Ends ends = ends_of(program_.placement, wire(graph_, cargo, number), op.microbatch);
    if (ends.from == ends.to) {
      report(LintRule::placement, place, "both ends of the message are on the same device");
      return false;
    }
    messages_.push_back({number, op.microbatch, cargo, is_send(op.kind), place, op});
    return true;
  }

  // With F, I and W on several devices, no op may need a product that cannot be transferred.
  void check_apart(CheckPlace place, Op op, const StagePlace& stage) const {
    const bool together = stage.input_grad.size() <= 1 &&
                          stage.device(Role::input_grad) == stage.device(Role::weight_grad);
    if (op.kind == OpKind::backward && !together) {
      report(LintRule::placement, place,
             "I and W of the stage are on different devices; write I and W");
    }
    if (op.kind == OpKind::weight_grad && !together && !program_.independent_w[op.stage] &&
        exists_input_grad_[op.stage]) {
      report(
          LintRule::placement, place,
          "gradients inside a stage are not sent: a stage whose W is on another device than its I must "
          "be independent_w (one layer)");
    }
  }

  // Each micro-batch of the stage: one F, and one B or all parts of I and one W.
  void check_work(int s) const {
    const StagePlace& place = nth(program_.placement.stage, s);
    const bool first = nth(graph_.in, s).empty();
    const auto parts = static_cast<int>(std::max<std::size_t>(place.input_grad.size(), 1));
    const auto missing = [&](std::uint32_t m, std::string_view kind) {
      report(LintRule::missing, {},
             fmt::format("no device does {}{}{}; every stage needs, for each of the {} "
                         "micro-batches, one F and either one B or I and W",
                         s, kind, m, program_.total_microbatches()),
             s);
    };
    for (std::uint32_t m = 0; m < program_.total_microbatches(); ++m) {
      if (!exists(Product::activation, s, m)) missing(m, "F");
      if (!exists(Product::weight_gradient, s, m)) missing(m, "B");
      for (int part = 0; part < parts; ++part) {
        if (!first && !exists(Product::gradient, s, m, part)) {
          missing(m, part == 0 ? "I" : fmt::format("I (part {}) ", part));
        }
      }
      check_brought_back(s, m);
    }
    // All updates or none: the pass that adds them skips a stage that has some.
    const auto& done = nth(updated_, s);
    for (auto gap = std::find(done.begin(), done.end(), false); gap != done.end();
         gap = std::find(gap + 1, done.end(), false)) {
      const auto at = static_cast<std::size_t>(gap - done.begin());
      const Op absent =
          op_of(OpKind::update, s, static_cast<std::uint32_t>(at / place.replicas.size()),
                static_cast<int>(at % place.replicas.size()));
      report(LintRule::missing, {},
             fmt::format("no device does {}; write all updates of a stage or none", print(absent)),
             s);
    }
  }

  // The stash is read on that device.
  void note_reader(Op op, int device) {
    const StagePlace& place = program_.placement.stage[op.stage];
    const int reader = stash_reader(place, device);
    if (!needs_readers(op.stage) || reader < 0) return;
    const auto readers = as_size(stash_readers(place));
    readers_[op.stage].resize(program_.total_microbatches() * readers);
    readers_[op.stage][op.microbatch * readers + as_size(reader)] = true;
  }

  // Whether what F leaves for the backward leaves F's device.
  bool needs_readers(int s) const {
    return nth(program_.placement.stage, s).apart() || nth(exists_offload_, s);
  }

  // Checks a stage whose stashes leave their device: each reader has its PREFETCH, and where the
  // roles are split all have their R, if there is any.
  void check_brought_back(int s, std::uint32_t m) const {
    const std::vector<bool>& reads = nth(readers_, s);
    const auto readers = as_size(stash_readers(nth(program_.placement.stage, s)));
    const bool offloaded = exists(Product::offloaded, s, m);
    const bool rebuilt = nth(program_.placement.stage, s).apart() && is_recomputed(graph_, s);
    if (reads.empty() || (!offloaded && !rebuilt)) return;
    for (std::size_t reader = 0; reader < readers; ++reader) {
      if (!reads[m * readers + reader]) continue;
      const auto part = static_cast<int>(reader);
      if (offloaded && !exists(Product::prefetched, s, m, part)) {
        report(LintRule::missing, {},
               fmt::format("no device does {}; what an OFFLOAD takes away must come back",
                           print(op_of(OpKind::prefetch, s, m, part))),
               s);
      }
      if (rebuilt && !exists(Product::rebuilt, s, m, part)) {
        report(
            LintRule::missing, {},
            fmt::format("no device does {}; where the roles of a stage are split, each device that "
                        "reads its stash recomputes all micro-batches or none",
                        print(op_of(OpKind::recompute, s, m, part))),
            s);
      }
    }
  }

  // A SEND for every RECV and vice versa; and if there are any messages, all that are needed.
  void check_messages() {
    if (messages_.empty()) return;
    const auto key = [](const Message& message) {
      return std::tuple(message.cargo, message.wire, message.microbatch, message.sends);
    };
    std::stable_sort(messages_.begin(), messages_.end(),
                     [&](const Message& a, const Message& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < messages_.size();) {
      // The ops of one message: its RECVs, then its SENDs.
      const Message& one = messages_[i];
      std::size_t received = 0;
      std::size_t last = i;
      for (; last < messages_.size() && messages_[last].wire == one.wire &&
             messages_[last].microbatch == one.microbatch && messages_[last].cargo == one.cargo;
           ++last) {
        if (messages_[last].sends) continue;
        if (++received > 1) {
          report(LintRule::twice, messages_[last].place, "this message is received twice");
        }
      }
      if (received == 0) report(LintRule::unmatched, one.place, "nobody receives this message");
      if (received == last - i) report(LintRule::unmatched, one.place, "nobody sends this message");
      i = last;
    }
    const InputGrads input_grads(program_);
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      const auto& list = program_.ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].kind != OpKind::forward && !input_grads.takes_output_gradient(list[i]))
          continue;
        check_brought({static_cast<int>(device), static_cast<int>(i)}, list[i]);
      }
    }
  }

  void check_brought(CheckPlace place, Op op) const {
    const Cargo cargo = op.kind == OpKind::forward ? Cargo::activation : Cargo::gradient;
    for (const int number : nth(graph_.receives, cargo)[op.stage]) {
      const Wire& way = wire(graph_, cargo, number);
      const Ends ends = ends_of(program_.placement, way, op.microbatch);
      if (ends.from == ends.to || ends.to != place.device) continue;
      if (exists(sent(cargo), number, op.microbatch)) continue;
      report(LintRule::unsent, place,
             fmt::format("no message brings what stage {} makes for it, though the program writes "
                         "its messages out; write all of them or none",
                         way.sender));
    }
  }

  struct Message {
    int wire;
    std::uint32_t microbatch;
    Cargo cargo;
    bool sends;
    CheckPlace place;
    Op op;
  };

  const Rest& rest_;
  const Program& program_;
  const Found& found_;
  StageGraph graph_;
  std::optional<ProductIndex> index_;
  std::vector<std::uint8_t> made_;
  std::vector<std::vector<bool>> updated_;  // by stage: updates × replicas, empty without any U
  std::vector<Message> messages_;
  std::vector<bool> exists_input_grad_;  // by stage
  std::vector<bool> exists_offload_;     // by stage
  // By stage, micro-batch and reader of the stash, whether that has an op of the backward; only
  // where needs_readers().
  std::vector<std::vector<bool>> readers_;
};

}  // namespace

void check(const Program& program, const std::function<void(LintFinding)>& found) {
  // These numbers first: the rest indexes by them.
  if (program.microbatches < 1 || program.steps < 1) {
    return found(
        finding_of(LintRule::size, {}, "a program needs at least one micro-batch and one step"));
  }
  Rest rest(program);
  rest.drop(
      [&](CheckPlace, Op op) {
        return op.stage < program.stages()
                   ? std::string()
                   : fmt::format("there are stages 0 to {} only", program.stages() - 1);
      },
      found);
  if (!check_header(rest.program(), found)) return;
  rest.drop(Ranges(program), found);
  Checker(rest, found).check();
}

}  // namespace stageline
