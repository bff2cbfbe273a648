#include "sim/check/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/check/hazards.hpp"
#include "sim/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"
#include "sim/text/figure.hpp"

namespace stageline {
namespace {

struct Place {
  int device = -1;
  int position = -1;
};

// "2nd"
std::string ordinal(std::size_t number) {
  const bool teen = number % 100 / 10 == 1;
  const char* const end = teen               ? "th"
                          : number % 10 == 1 ? "st"
                          : number % 10 == 2 ? "nd"
                          : number % 10 == 3 ? "rd"
                                             : "th";
  return fmt::format("{}{}", number, end);
}

class Linter {
 public:
  Linter(const Program& program, const LintOptions& options)
      : program_(program), options_(options) {}

  Lint lint() {
    bad_.resize(program_.ops.size());
    for (std::size_t d = 0; d < bad_.size(); ++d) bad_[d].assign(program_.ops[d].size(), false);
    bool placed = true;
    check(program_, [&](LintFinding finding) {
      const bool here = finding.position >= 0;
      placed = placed && (here || finding.rule == LintRule::missing);
      if (here && finding.rule != LintRule::unsent) {
        bad_[static_cast<std::size_t>(finding.device)][static_cast<std::size_t>(finding.position)] =
            true;
      }
      errors_ = true;
      add(std::move(finding));
    });
    if (!placed) return finish();
    const Program sound = errors_ ? without_bad_ops() : program_;
    look_for_order(sound);
    look_at_updates(sound);
    look_at_channels(sound);
    look_for_deadlocks(sound);
    if (!errors_) {
      for (LintFinding& finding : hazards(program_, options_.costs, options_.most)) {
        add(std::move(finding));
      }
    }
    return finish();
  }

 private:
  // With its line and a picture, unless there are enough of its rule.
  void add(LintFinding finding) {
    if (finding.severity == Severity::error) errors_ = true;
    if (++seen_[finding.rule] > options_.most) {
      ++result_.left_out[finding.rule];
      return;
    }
    const auto device = static_cast<std::size_t>(finding.device);
    const auto position = static_cast<std::size_t>(finding.position);
    const TextPlaces* const places = options_.places;
    TextPlace text;
    if (places != nullptr && finding.position >= 0) {
      text = places->op[device][position];
    } else if (places != nullptr && finding.stage >= 0) {
      text = places->stage[static_cast<std::size_t>(finding.stage)];
    }
    finding.line = text.line;
    finding.column = text.column;
    if (finding.position >= 0 && finding.figure.empty()) {
      finding.figure = grid(program_, {program_.ops[device][position]});
    }
    result_.findings.push_back(std::move(finding));
  }

  // Beyond the most, nothing more is found out about it: a list in reverse has as many as ops.
  bool counted_alone(Severity severity, LintRule rule) {
    if (seen_[rule] < options_.most) return false;
    if (severity == Severity::error) errors_ = true;
    ++seen_[rule];
    ++result_.left_out[rule];
    return true;
  }

  void add(Severity severity, LintRule rule, Op op, std::string message, std::string figure = "") {
    const Place place = place_of(op);
    LintFinding finding;
    finding.severity = severity;
    finding.rule = rule;
    finding.device = place.device;
    finding.position = place.position;
    finding.message = std::move(message);
    finding.figure = std::move(figure);
    add(std::move(finding));
  }

  Lint finish() {
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const LintFinding& a, const LintFinding& b) {
                       const auto key = [](const LintFinding& f) {
                         return std::tuple(f.severity, f.line, f.column, f.device, f.position);
                       };
                       return key(a) < key(b);
                     });
    return std::move(result_);
  }

  // Where the program has the op; no place for one that a pass has added.
  Place place_of(Op op) const {
    for (std::size_t d = 0; d < program_.ops.size(); ++d) {
      for (std::size_t i = 0; i < program_.ops[d].size(); ++i) {
        if (plain(program_.ops[d][i]) == plain(op)) {
          return {static_cast<int>(d), static_cast<int>(i)};
        }
      }
    }
    return {};
  }

  Program without_bad_ops() const {
    Program sound = program_;
    for (std::size_t d = 0; d < sound.ops.size(); ++d) {
      auto& list = sound.ops[d];
      list.clear();
      for (std::size_t i = 0; i < program_.ops[d].size(); ++i) {
        if (bad_[d][i]) {
          // The second half of its pair stays, alone.
          if (!list.empty()) list.back().overlapped = 0;
          continue;
        }
        list.push_back(program_.ops[d][i]);
      }
      if (!list.empty()) list.back().overlapped = 0;
    }
    return sound;
  }

  // An op ahead of what it needs in its own lane can never start.
  void look_for_order(const Program& sound) {
    const StageGraph stages = stage_graph(sound);
    const ProductIndex index(sound, stages);
    const bool blocks = sound.messages != Messages::async;
    struct Maker {
      Place place;
      LaneKind lane = LaneKind::compute;
      Op op;
    };
    std::vector<std::uint32_t> maker_of(index.size());  // + 1
    std::vector<Maker> makers;
    const auto lane = [&](Op op) {
      return blocks && cargo_of(op.kind) ? LaneKind::compute : lane_of(sound, op.kind);
    };
    const auto each = [&](auto&& visit) {
      for (std::size_t d = 0; d < sound.ops.size(); ++d) {
        for (std::size_t i = 0; i < sound.ops[d].size(); ++i) {
          visit(Place{static_cast<int>(d), static_cast<int>(i)}, sound.ops[d][i]);
        }
      }
    };
    each([&](Place place, Op op) {
      const auto make = [&](Product product, int at, std::uint32_t number, int part) {
        makers.push_back({place, lane(op), op});
        maker_of[static_cast<std::size_t>(index.index(product, at, number, part))] =
            static_cast<std::uint32_t>(makers.size());
      };
      // Where messages block, who reads one waits for its own device's RECV.
      const auto cargo = cargo_of(op.kind);
      if (!cargo || (!blocks && is_send(op.kind))) {
        makes(stages, op, make);
      } else if (blocks && !is_send(op.kind) && index.has(sent(*cargo))) {
        make(sent(*cargo), wire_of(stages, op), op.microbatch, 0);
      }
    });
    const auto slot_of = [&](Product product, int at, std::uint32_t number, int part) {
      return index.has(product) ? index.index(product, at, number, part) : -1;
    };
    each([&](Place place, Op op) {
      if (cargo_of(op.kind) && !is_send(op.kind)) return;
      needs(
          sound, stages, op,
          [&](Product product, int at, std::uint32_t number, int part) {
            const std::int64_t slot = slot_of(product, at, number, part);
            return slot >= 0 && maker_of[static_cast<std::size_t>(slot)] > 0;
          },
          [&](Product product, int at, std::uint32_t number, int part) {
            const std::int64_t slot = slot_of(product, at, number, part);
            if (slot < 0 || maker_of[static_cast<std::size_t>(slot)] == 0) return;
            const Maker& maker = makers[maker_of[static_cast<std::size_t>(slot)] - 1];
            if (maker.place.device != place.device || maker.lane != lane(op) ||
                maker.place.position < place.position) {
              return;
            }
            if (counted_alone(Severity::error, LintRule::order)) return;
            add(Severity::error, LintRule::order, op,
                fmt::format("{} stands ahead of {}, which it needs, in the list of {}", print(op),
                            print(maker.op), sound.devices[static_cast<std::size_t>(place.device)]),
                grid(program_, {op, maker.op}));
          });
    });
  }

  void look_at_updates(const Program& sound) {
    std::vector<bool> has(sound.placement.stage.size());
    for (const auto& list : sound.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::update) has[op.stage] = true;
      }
    }
    const auto with = std::find(has.begin(), has.end(), true);
    if (with == has.end()) return;
    for (std::size_t s = 0; s < has.size(); ++s) {
      if (has[s]) continue;
      LintFinding finding;
      finding.severity = Severity::warning;
      finding.rule = LintRule::updates;
      finding.stage = static_cast<int>(s);
      finding.message = fmt::format(
          "stage {} has no update, though stage {} has: one is put behind its last gradient", s,
          with - has.begin());
      add(std::move(finding));
    }
  }

  // Between two devices, the k-th send must meet the k-th receive.
  void look_at_channels(const Program& sound) {
    const StageGraph stages = stage_graph(sound);
    struct Channel {
      std::vector<Op> sends;
      std::vector<Op> receives;
    };
    std::map<std::pair<int, int>, Channel> channels;  // from, to
    for (const auto& list : sound.ops) {
      for (const Op op : list) {
        const auto cargo = cargo_of(op.kind);
        if (!cargo) continue;
        const Ends ends =
            ends_of(sound.placement, wire(stages, *cargo, wire_of(stages, op)), op.microbatch);
        Channel& channel = channels[{ends.from, ends.to}];
        (is_send(op.kind) ? channel.sends : channel.receives).push_back(op);
      }
    }
    for (const auto& [ends, channel] : channels) {
      const std::size_t both = std::min(channel.sends.size(), channel.receives.size());
      for (std::size_t k = 0; k < both; ++k) {
        const Op meets = other_end(stages, channel.sends[k]);
        if (meets == channel.receives[k]) continue;
        const std::string& from = sound.devices[static_cast<std::size_t>(ends.first)];
        const std::string& to = sound.devices[static_cast<std::size_t>(ends.second)];
        add(Severity::warning, LintRule::channel, channel.receives[k],
            fmt::format("the {0} message that {1} sends to {2} is {3}, but the {0} that {2} "
                        "receives from {1} is {4}: on a channel that keeps their order, as NCCL's "
                        "do, each gets the other's bytes",
                        ordinal(k + 1), from, to, print(channel.sends[k]),
                        print(channel.receives[k])),
            grid(program_, {channel.sends[k], channel.receives[k]}));
        break;
      }
    }
  }

  // As written when something is wrong with it already, else as completed.
  void look_for_deadlocks(Program sound) {
    const Costs costs = unit_costs(sound);
    if (!errors_) {
      try {
        sound = complete(std::move(sound), costs);
        compile(sound, costs);
      } catch (const ProgramError& error) {  // something is needed that nothing makes
        LintFinding finding;
        finding.rule = LintRule::missing;
        finding.message = error.what();
        finding.figure = error.figure;
        add(std::move(finding));
      } catch (const Deadlock&) {
      }
    }
    for (const Deadlock& deadlock : deadlocks_of(sound, costs, options_.most)) {
      add(Severity::error, LintRule::deadlock, deadlock.cycle.front(), deadlock.what(),
          deadlock.figure);
    }
    if (errors_ || program_.messages != Messages::async) return;
    for (const Messages messages : {Messages::blocking, Messages::batched}) {
      Program stricter = program_;
      stricter.messages = messages;
      for (const Deadlock& deadlock :
           deadlocks_of(complete(std::move(stricter), costs), costs, 1)) {
        add(Severity::note, LintRule::deadlock, deadlock.cycle.front(),
            fmt::format("would deadlock under messages: {}: {}", name(messages), deadlock.what()),
            deadlock.figure);
      }
    }
  }

  const Program& program_;
  const LintOptions& options_;
  Lint result_{};
  bool errors_ = false;
  std::vector<std::vector<bool>> bad_{};  // ops that are left out when deadlocks are looked for
  std::map<LintRule, std::size_t> seen_{};
};

}  // namespace

int Lint::count(Severity severity) const {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const LintFinding& finding) { return finding.severity == severity; }));
}

Lint lint(const Program& program, const LintOptions& options) {
  return Linter(program, options).lint();
}

}  // namespace stageline
