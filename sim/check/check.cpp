// Is each thing done exactly once, in the right place? (Whether it can finish is compile()'s
// question.)
#include "sim/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/rules.hpp"

namespace stageline {
namespace {

struct Place {
  int device = -1;
  int position = -1;
};

using Found = std::function<void(LintFinding)>;

LintFinding finding_of(LintRule rule, Place place, std::string message) {
  LintFinding finding;
  finding.rule = rule;
  finding.device = place.device;
  finding.position = place.position;
  finding.message = std::move(message);
  return finding;
}

// The program without the ops that cannot be looked at, copied only when there are such.
class Rest {
 public:
  explicit Rest(const Program& program) : whole_(program) {}

  const Program& program() const { return part_ ? *part_ : whole_; }
  /// Where the whole program has what stands there.
  Place place(Place place) const {
    if (part_ && place.position >= 0) {
      place.position = position_[static_cast<std::size_t>(place.device)]
                                [static_cast<std::size_t>(place.position)];
    }
    return place;
  }

  /// `fault(place, op)` says what is wrong with an op, or "".
  template <class Fault>
  void drop(Fault&& fault, const Found& found) {
    Rest next(whole_);
    for (std::size_t device = 0; device < whole_.ops.size(); ++device) {
      const auto& list = program().ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Place at{static_cast<int>(device), static_cast<int>(i)};
        std::string wrong = fault(at, list[i]);
        if (wrong.empty()) continue;
        found(finding_of(LintRule::range, place(at), std::move(wrong)));
        next.part_.emplace();
      }
    }
    if (!next.part_) return;
    next.part_ = program();
    next.position_.resize(whole_.ops.size());
    for (std::size_t device = 0; device < whole_.ops.size(); ++device) {
      const auto& list = program().ops[device];
      auto& kept = next.part_->ops[device];
      kept.clear();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Place at{static_cast<int>(device), static_cast<int>(i)};
        if (!fault(at, list[i]).empty()) continue;
        kept.push_back(list[i]);
        next.position_[device].push_back(place(at).position);
      }
    }
    part_ = std::move(next.part_);
    position_ = std::move(next.position_);
  }

 private:
  const Program& whole_;
  std::optional<Program> part_;
  std::vector<std::vector<int>> position_;
};

// Numbers that the program does not have.
class Ranges {
 public:
  explicit Ranges(const Program& program) : program_(program), graph_(stage_graph(program)) {}

  std::string operator()(Place, Op op) const {
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
    const bool one_piece = op.kind == OpKind::forward || op.kind == OpKind::weight_grad ||
                           op.kind == OpKind::backward || op.kind == OpKind::recompute ||
                           op.kind == OpKind::offload || op.kind == OpKind::prefetch;
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

  /// Sizes and placement; whether it makes sense to look at ops.
  bool check_header() const {
    // Before room is made for them: a short text may ask for many.
    std::int64_t ops = 0;
    for (const auto& list : program_.ops) ops += static_cast<std::int64_t>(list.size());
    if (ops < std::int64_t{program_.stages()} * program_.total_microbatches()) {
      report(LintRule::size, {},
             fmt::format(
                 "the program has {} ops, too few for {} stages and {} micro-batches, of which "
                 "each needs one F and either one B or I and W",
                 ops, program_.stages(), program_.total_microbatches()));
      return false;
    }
    return check_placement();
  }

  void check() {
    index_.emplace(program_, graph_);
    made_.assign(index_->size(), 0);
    updated_.resize(program_.placement.stage.size());
    exists_input_grad_.resize(program_.placement.stage.size());
    for (const auto& list : program_.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::input_grad) exists_input_grad_[op.stage] = true;
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
  void report(LintRule rule, Place place, std::string message, int stage = -1) const {
    LintFinding finding = finding_of(rule, rest_.place(place), std::move(message));
    finding.stage = stage;
    found_(std::move(finding));
  }

  bool exists(Product product, int index, std::uint32_t number, int part = 0) const {
    const std::int64_t slot = index_->index(product, index, number, part);
    return slot >= 0 && made_[static_cast<std::size_t>(slot)] > 0;
  }

  bool check_placement() const {
    bool placed = true;
    const auto misplaced = [&](int stage, std::string message) {
      report(LintRule::placement, {}, std::move(message), stage);
      placed = false;
    };
    if (program_.sequence_chunks > 1) check_chunks(misplaced);
    const auto devices = static_cast<int>(program_.devices.size());
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
      std::vector<int> replicas = place.replicas;
      std::sort(replicas.begin(), replicas.end());
      const bool twice = std::adjacent_find(replicas.begin(), replicas.end()) != replicas.end();
      if (replicas.empty() || replicas.front() < 0 || replicas.back() >= devices || twice ||
          replicas.size() > max_parts) {
        misplaced(
            s, fmt::format("stage {} must live on 1 to {} different devices of the {} there are", s,
                           max_parts, devices));
      }
      check_roles(s, place, misplaced);
      for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
        const std::size_t most =
            std::max(graph_.sends[cargo][static_cast<std::size_t>(s)].size(),
                     graph_.receives[cargo][static_cast<std::size_t>(s)].size());
        if (most <= max_parts) continue;
        misplaced(
            s,
            fmt::format("stage {} has {} ways for messages of a kind; at most {} can be told apart",
                        s, most, max_parts));
      }
    }
    return placed;
  }

  // A sequence stays together: in a step, and on a device.
  template <class Misplaced>
  void check_chunks(Misplaced&& misplaced) const {
    if (!updates_by_step(program_.weights)) {
      misplaced(-1, fmt::format("sequence_chunks is for weights that change between steps: flush "
                                "or double_buffer (not {})",
                                name(program_.weights)));
    }
    if (program_.microbatches % program_.sequence_chunks != 0) {
      misplaced(-1, fmt::format("the micro-batches of a step are chunks of whole sequences: {} are "
                                "no multiple of sequence_chunks, {}",
                                program_.microbatches, program_.sequence_chunks));
    }
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
      if (!place.apart() && place.replicas.size() == 1) continue;
      misplaced(s, fmt::format("stage {}: with sequence_chunks a stage lives on one device, where "
                               "attention finds the earlier chunks",
                               s));
    }
  }

  template <class Misplaced>
  void check_roles(int s, const StagePlace& place, Misplaced&& misplaced) const {
    if (!place.apart()) return;
    const auto devices = static_cast<int>(program_.devices.size());
    for (const auto* const role : {&place.input_grad, &place.weight_grad}) {
      for (const int device : *role) {
        if (device >= 0 && device < devices) continue;
        misplaced(s, fmt::format("stage {}: there is no device {}", s, device));
      }
    }
    if (place.replicas.size() > 1 || place.weight_grad.size() > 1) {
      misplaced(s, fmt::format("stage {}: a stage with replicas has F, I and W of each on one "
                               "device; W has one device",
                               s));
    }
    double sum = 0;
    for (const double share : place.share) sum += share;
    const bool shared =
        place.share.size() == place.input_grad.size() && sum > 0.999999 && sum < 1.000001;
    if (place.input_grad.size() > 1 || !place.share.empty()) {
      if (!shared) {
        misplaced(s, fmt::format("stage {}: I on {} devices needs as many shares, which sum to 1 "
                                 "(they are {}: {:g})",
                                 s, place.input_grad.size(), place.share.size(), sum));
      }
    }
  }

  // Of the same work; that of other stages is the deadlock's to tell.
  bool need_each_other(Op one, Op other) const {
    if (one.stage != other.stage || one.microbatch != other.microbatch) return false;
    const bool forward = one.kind == OpKind::forward || other.kind == OpKind::forward;
    const bool rebuilt = one.kind == OpKind::recompute || other.kind == OpKind::recompute;
    return forward || rebuilt || !program_.independent_w[one.stage];
  }

  void check_op(Place place, const std::vector<Op>& list) {
    const Op op = list[static_cast<std::size_t>(place.position)];
    const std::optional<Cargo> cargo = cargo_of(op.kind);
    const int home = device_of(graph_, program_.placement, op);
    if (home != place.device) {
      report(LintRule::placement, place,
             fmt::format("the op belongs on {}, where its stage is placed",
                         program_.devices[static_cast<std::size_t>(home)]));
    }
    if (op.overlapped) {
      const auto next = static_cast<std::size_t>(place.position) + 1;
      if (next >= list.size() || lane_of(list[next].kind) != LaneKind::compute ||
          lane_of(op.kind) != LaneKind::compute || list[next].overlapped) {
        report(LintRule::pairing, place,
               "an overlapped op needs a second compute op right behind it");
      } else if (need_each_other(op, list[next])) {
        report(LintRule::pairing, place,
               fmt::format("{} and {} run as one, and one of them needs the other", print(op),
                           print(list[next])));
      }
    }
    const StagePlace& stage = program_.placement.stage[op.stage];
    if (op.kind == OpKind::reduce_grad && stage.replicas.size() == 1) {
      report(LintRule::placement, place,
             "only a stage with replicas reduces gradients between them");
    }
    if (stage.apart()) check_apart(place, op, stage);
    if (cargo && !check_message(place, op, *cargo)) return;
    const auto twice = [&] { report(LintRule::twice, place, "this work is done twice"); };
    if (op.kind == OpKind::update) {
      auto& here = updated_[op.stage];
      here.resize(static_cast<std::size_t>(updates(program_, op.stage)) * stage.replicas.size());
      const std::size_t at = op.microbatch * stage.replicas.size() + op.part;
      if (here[at]) return twice();
      here[at] = true;
    }
    bool again = false;
    makes(graph_, op, [&](Product product, int index, std::uint32_t number, int part) {
      std::uint8_t& count =
          made_[static_cast<std::size_t>(index_->index(product, index, number, part))];
      again = again || count > 0;
      count = 1;
    });
    if (again) twice();
  }

  bool check_message(Place place, Op op, Cargo cargo) {
    const int number = wire_of(graph_, op);
    const Ends ends = ends_of(program_.placement, wire(graph_, cargo, number), op.microbatch);
    if (ends.from == ends.to) {
      report(LintRule::placement, place, "both ends of the message are on the same device");
      return false;
    }
    messages_.push_back({number, op.microbatch, cargo, is_send(op.kind), place, op});
    return true;
  }

  // Where F, I and W are on several devices, what cannot travel must not have to.
  void check_apart(Place place, Op op, const StagePlace& stage) const {
    if (op.kind == OpKind::recompute) {
      report(LintRule::placement, place,
             "a stage with its backward on another device cannot be recomputed");
    }
    const bool together =
        stage.input_grad.size() <= 1 &&
        device_of(program_.placement, {OpKind::input_grad, 0, 0, op.stage, 0}) ==
            device_of(program_.placement, {OpKind::weight_grad, 0, 0, op.stage, 0});
    if (op.kind == OpKind::backward && !together) {
      report(LintRule::placement, place,
             "I and W of the stage are on different devices; write I and W");
    }
    if (op.kind == OpKind::weight_grad && !together && !program_.independent_w[op.stage] &&
        exists_input_grad_[op.stage]) {
      report(LintRule::placement, place,
             "inner gradients do not travel: a stage whose W is on another device than its I must "
             "be independent_w (one layer)");
    }
  }

  // Each micro-batch of the stage: one F, and one B or all parts of I and one W.
  void check_work(int s) const {
    const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
    const bool first = graph_.in[static_cast<std::size_t>(s)].empty();
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
      if (exists(Product::offloaded, s, m) && !exists(Product::prefetched, s, m)) {
        report(LintRule::missing, {},
               fmt::format("no device does {}PREFETCH{}; what an OFFLOAD takes away must come back",
                           s, m),
               s);
      }
    }
    // All updates or none: the pass that adds them leaves a stage alone that has some.
    const auto& done = updated_[static_cast<std::size_t>(s)];
    for (auto gap = std::find(done.begin(), done.end(), false); gap != done.end();
         gap = std::find(gap + 1, done.end(), false)) {
      const auto at = static_cast<std::size_t>(gap - done.begin());
      Op absent;
      absent.kind = OpKind::update;
      absent.stage = static_cast<std::uint16_t>(s);
      absent.microbatch = static_cast<std::uint32_t>(at / place.replicas.size());
      absent.part = static_cast<std::uint8_t>(at % place.replicas.size() & 0x7f);
      report(LintRule::missing, {},
             fmt::format("no device does {}; write all updates of a stage or none", print(absent)),
             s);
    }
  }

  // A SEND for every RECV and the other way round; and none missing, when there are any.
  void check_messages() {
    if (messages_.empty()) return;
    const auto key = [](const Message& message) {
      return std::tuple(message.cargo, message.wire, message.microbatch, message.sends);
    };
    std::stable_sort(messages_.begin(), messages_.end(),
                     [&](const Message& a, const Message& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < messages_.size();) {
      // Those of one message: its RECVs, then its SENDs.
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

  void check_brought(Place place, Op op) const {
    const Cargo cargo = op.kind == OpKind::forward ? Cargo::activation : Cargo::gradient;
    for (const int number : graph_.receives[static_cast<std::size_t>(cargo)][op.stage]) {
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
    Place place;
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
      [&](Place, Op op) {
        return op.stage < program.stages()
                   ? std::string()
                   : fmt::format("there are stages 0 to {} only", program.stages() - 1);
      },
      found);
  if (!Checker(rest, found).check_header()) return;
  rest.drop(Ranges(program), found);
  Checker(rest, found).check();
}

}  // namespace stageline
