// The rules of lint(): order within a lane, updates, channels, deadlocks; hazards are elsewhere.
#include "sim/check/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/check/hazards.hpp"
#include "sim/check/lint_findings.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"
#include "sim/text/figure.hpp"

namespace stageline {
namespace {

struct ListPlace {
  int device = 0;
  int position = 0;
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
      : program_(program), options_(options), found_(program, options) {}

  Lint lint() {
    bad_.resize(program_.ops.size());
    for (std::size_t d = 0; d < bad_.size(); ++d) bad_[d].assign(program_.ops[d].size(), false);
    bool placed = true;
    check(program_, [&](LintFinding finding) {
      const bool here = finding.position >= 0;
      placed = placed && (here || finding.rule == LintRule::missing);
      if (here && finding.rule != LintRule::unsent) {
        nth(nth(bad_, finding.device), finding.position) = true;
      }
      found_.add(std::move(finding));
    });
    if (!placed) return found_.finish();
    const Program sound = found_.has_errors() ? without_bad_ops() : program_;
    look_for_order(sound);
    look_at_updates(sound);
    look_at_channels(sound);
    look_for_deadlocks(sound);
    if (!found_.has_errors()) {
      for (LintFinding& finding : hazards(program_, options_.costs, options_.most)) {
        found_.add(std::move(finding));
      }
    }
    return found_.finish();
  }

 private:
  Program without_bad_ops() const {
    Program sound = program_;
    for (std::size_t d = 0; d < sound.ops.size(); ++d) {
      auto& list = sound.ops[d];
      list.clear();
      for (std::size_t i = 0; i < program_.ops[d].size(); ++i) {
        if (bad_[d][i]) {
          // The second op of its pair stays, on its own.
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
    const bool blocks = sound.settings.messages != Messages::async;
    struct Maker {
      ListPlace place;
      LaneKind lane = LaneKind::compute;
      Op op;
    };
    std::vector<std::uint32_t> maker_of(index.size());  // + 1
    std::vector<Maker> makers;
    const auto lane = [&](Op op) {
      return blocks && cargo_of(op.kind) ? LaneKind::compute : lane_of(sound.settings, op.kind);
    };
    const auto each = [&](auto&& visit) {
      for (std::size_t d = 0; d < sound.ops.size(); ++d) {
        for (std::size_t i = 0; i < sound.ops[d].size(); ++i) {
          visit(ListPlace{static_cast<int>(d), static_cast<int>(i)}, sound.ops[d][i]);
        }
      }
    };
    each([&](ListPlace place, Op op) {
      const auto make = [&](Product product, int at, std::uint32_t number, int part) {
        makers.push_back({place, lane(op), op});
        maker_of[static_cast<std::size_t>(index.index(product, at, number, part))] =
            static_cast<std::uint32_t>(makers.size());
      };
      // If messages block, the reader of one waits for the RECV on its own device.
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
    each([&](ListPlace place, Op op) {
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
            if (found_.only_count(Severity::error, LintRule::order)) return;
            found_.add(Severity::error, LintRule::order, op,
                       fmt::format("{} comes before {}, which it needs, in the list of {}",
                                   print(op), print(maker.op), nth(sound.devices, place.device)),
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
      found_.add(std::move(finding));
    }
  }

  // Between two devices, the k-th send must match the k-th receive.
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
        const std::string& from = nth(sound.devices, ends.first);
        const std::string& to = nth(sound.devices, ends.second);
        found_.add(
            Severity::warning, LintRule::channel, channel.receives[k],
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

  // In the program as written if it has errors already, else as completed.
  void look_for_deadlocks(Program sound) {
    const Costs costs = unit_costs(sound);
    if (!found_.has_errors()) {
      try {
        sound = complete(std::move(sound), costs);
        compile(sound, costs);
      } catch (const ProgramError& error) {  // an op needs what no op makes
        LintFinding finding;
        finding.rule = LintRule::missing;
        finding.message = error.what();
        finding.figure = error.figure;
        found_.add(std::move(finding));
      } catch (const Deadlock&) {
      }
    }
    for (const Deadlock& deadlock : deadlocks_of(sound, costs, options_.most)) {
      found_.add(Severity::error, LintRule::deadlock, deadlock.cycle.front(), deadlock.what(),
                 deadlock.figure);
    }
    if (found_.has_errors() || program_.settings.messages != Messages::async) return;
    for (const Messages messages : {Messages::blocking, Messages::batched}) {
      Program stricter = program_;
      stricter.settings.messages = messages;
      for (const Deadlock& deadlock :
           deadlocks_of(complete(std::move(stricter), costs), costs, 1)) {
        found_.add(
            Severity::note, LintRule::deadlock, deadlock.cycle.front(),
            fmt::format("would deadlock under messages: {}: {}", name(messages), deadlock.what()),
            deadlock.figure);
      }
    }
  }

  const Program& program_;
  const LintOptions& options_;
  LintFindings found_;
  std::vector<std::vector<bool>> bad_{};  // by device: ops left out when searching for deadlocks
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
