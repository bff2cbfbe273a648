// Checks a program's sizes and placement.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check/rest.hpp"
#include "sim/wires.hpp"

namespace stageline {
namespace {

class HeaderChecker {
 public:
  HeaderChecker(const Program& program, const Found& found)
      : program_(program), found_(found), graph_(stage_graph(program)) {}

  bool check() const {
    // Before memory is reserved for them: a short text may ask for many.
    std::int64_t ops = 0;
    for (const auto& list : program_.ops) ops += static_cast<std::int64_t>(list.size());
    if (ops < std::int64_t{program_.stages()} * program_.total_microbatches()) {
      report(LintRule::size,
             fmt::format(
                 "the program has {} ops, too few for {} stages and {} micro-batches, of which "
                 "each needs one F and either one B or I and W",
                 ops, program_.stages(), program_.total_microbatches()));
      return false;
    }
    return check_placement();
  }

 private:
  void report(LintRule rule, std::string message, int stage = -1) const {
    LintFinding finding = finding_of(rule, {}, std::move(message));
    finding.stage = stage;
    found_(std::move(finding));
  }

  bool check_placement() const {
    bool placed = true;
    const auto misplaced = [&](int stage, std::string message) {
      report(LintRule::placement, std::move(message), stage);
      placed = false;
    };
    if (program_.settings.sequence_chunks > 1) check_chunks(misplaced);
    check_costs(misplaced);
    check_tokens(misplaced);
    const auto devices = static_cast<int>(program_.devices.size());
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = nth(program_.placement.stage, s);
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
      check_stash_homes(s, place, misplaced);
      for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
        const std::size_t most =
            std::max(nth(graph_.sends[cargo], s).size(), nth(graph_.receives[cargo], s).size());
        if (most <= max_parts) continue;
        misplaced(s, fmt::format(
                         "stage {} has {} wires for messages of one kind; at most {} are supported",
                         s, most, max_parts));
      }
    }
    return placed;
  }

  // The chunks of a sequence are in one step, and on one device.
  template <class Misplaced>
  void check_chunks(Misplaced&& misplaced) const {
    if (!updates_by_step(program_.settings.weights)) {
      misplaced(-1, fmt::format("sequence_chunks is for weights that change between steps: flush "
                                "or double_buffer (not {})",
                                name(program_.settings.weights)));
    }
    if (program_.microbatches % program_.settings.sequence_chunks != 0) {
      misplaced(-1, fmt::format("the micro-batches of a step are chunks of whole sequences: {} are "
                                "no multiple of sequence_chunks, {}",
                                program_.microbatches, program_.settings.sequence_chunks));
    }
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = nth(program_.placement.stage, s);
      if (!place.apart() && place.replicas.size() == 1) continue;
      misplaced(s, fmt::format("stage {}: with sequence_chunks a stage lives on one device, where "
                               "attention finds the earlier chunks",
                               s));
    }
  }

  template <class Misplaced>
  void check_costs(Misplaced&& misplaced) const {
    const std::vector<double>& costs = program_.settings.costs;
    if (costs.empty() || costs.size() == as_size(program_.microbatches)) return;
    misplaced(-1, fmt::format("costs has one number for each micro-batch of a step: there are {}, "
                              "and {} micro-batches",
                              costs.size(), program_.microbatches));
  }

  template <class Misplaced>
  void check_tokens(Misplaced&& misplaced) const {
    const ProgramSettings& settings = program_.settings;
    if (!settings.lengths.empty() && settings.lengths.size() != as_size(program_.microbatches)) {
      misplaced(-1,
                fmt::format("lengths has one entry for each micro-batch of a step: there are {}, "
                            "and {} micro-batches",
                            settings.lengths.size(), program_.microbatches));
    }
    if (!settings.lengths.empty() && !settings.costs.empty()) {
      misplaced(-1, "lengths and costs both say what micro-batches take; leave one of them out");
    }
    if (!settings.lengths.empty() && settings.sequence_chunks > 1) {
      misplaced(-1, "lengths are of whole sequences, which sequence_chunks cuts; leave one out");
    }
    if (!settings.slices.empty() && settings.slices.size() != as_size(settings.sequence_chunks)) {
      misplaced(-1, fmt::format("slices has one length for each piece of a sequence: there are {}, "
                                "and sequence_chunks is {}",
                                settings.slices.size(), settings.sequence_chunks));
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

  // OFFLOAD takes a stash to another device of the program, one for each replica, or to the host.
  template <class Misplaced>
  void check_stash_homes(int s, const StagePlace& place, Misplaced&& misplaced) const {
    const std::vector<int>& homes = place.stash_homes;
    if (homes.empty()) return;
    if (place.apart()) {
      misplaced(s, fmt::format("stage {}: stash= is for a stage in one place, and here F, I and W "
                               "are on different devices",
                               s));
    }
    if (homes.size() != place.replicas.size()) {
      return misplaced(
          s, fmt::format("stage {}: stash= names {} device{}, and the stage is on {}; "
                         "name one for each",
                         s, homes.size(), homes.size() == 1 ? "" : "s", place.replicas.size()));
    }
    for (std::size_t r = 0; r < homes.size(); ++r) {
      if (homes[r] < 0 || homes[r] >= static_cast<int>(program_.devices.size())) {
        misplaced(s, fmt::format("stage {}: there is no device {}", s, homes[r]));
      } else if (homes[r] == place.replicas[r]) {
        misplaced(s, fmt::format("stage {}: stash= names {}, where the stage is itself; name "
                                 "another device, or leave it out for the host",
                                 s, nth(program_.devices, homes[r])));
      }
    }
  }

  const Program& program_;
  const Found& found_;
  StageGraph graph_;
};

}  // namespace

bool check_header(const Program& program, const Found& found) {
  return HeaderChecker(program, found).check();
}

}  // namespace stageline
