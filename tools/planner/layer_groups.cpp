#include "tools/planner/layer_groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/parallel.hpp"
#include "tools/inputs/layer_groups.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::planner {
namespace {

constexpr int most_layers = 1024;  // one by one
constexpr int fewest_groups = 512;
constexpr int groups_a_device = 8;
// The most layers of a cut that is given in layers: a simulation takes a tenth of a second or more.
constexpr int most_cut_by_hand = 10'000;
constexpr std::size_t most_members = 8;  // of the front, from each end

bool is_partitioner(const std::string& partition) {
  const std::string_view head = std::string_view(partition).substr(0, partition.find(':'));
  const auto all = partitioners();
  return std::any_of(all.begin(), all.end(),
                     [&](const Partitioner* one) { return one->name == head; });
}

// The cut of the groups, in layers; empty where its stages have several devices.
std::string cut_of_groups(Search& search, const Candidate& candidate, const PlanGroups& in) {
  try {
    const Layout layout = lay_out(search.evaluator().case_of(candidate));
    const std::vector<int>& replicas = layout.plan.replicas;
    if (std::any_of(replicas.begin(), replicas.end(), [](int many) { return many > 1; })) return "";
    return in_layers(last_layers_of(layout.plan.partition), in.layers, in.groups);
  } catch (const UsageError&) {
    return "";
  }
}

struct JudgedCandidate {
  Candidate candidate;
  Judgement judgement;
};

std::vector<JudgedCandidate> judged(Search& search, Evaluator& evaluator, const Candidate& found,
                                    const PlanGroups& in) {
  std::vector<JudgedCandidate> all;
  const auto judge = [&](const std::string& partition) {
    Candidate candidate = found;
    candidate.partition = partition;
    all.push_back({candidate, evaluator.judge(candidate)});
  };
  const bool own = is_partitioner(found.partition);
  judge(own ? found.partition : SettingRequest{}.partition);
  if (own && all.front().judgement.verdict) return all;
  const std::string cut = cut_of_groups(search, found, in);
  if (!cut.empty()) judge(cut);
  return all;
}

}  // namespace

std::string PlanGroups::note() const {
  return fmt::format(
      "{} layers were searched in {} groups of {}{}: what is pruned has bounds of cuts between "
      "these; the rows were simulated with all layers",
      layers, groups, layers / groups,
      layers % groups == 0 ? "" : fmt::format(" or {}", layers / groups + 1));
}

PlanGroups groups_for(const PlanRequest& request) {
  SettingRequest base = request.setting;
  base.degrees = Degrees{};
  base.schedules.clear();
  base.partition = SettingRequest{}.partition;
  PlanGroups in;
  int devices = 0;
  try {
    const Setting setting = read_setting(base);
    in.layers = static_cast<int>(setting.model.layers.size());
    devices = *std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  } catch (const UsageError&) {
    return in;  // who opens it to search says so
  } catch (const TraceError&) {
    return in;
  }
  if (in.layers <= most_layers) return in;
  if (!request.setting.lengths.empty()) {
    throw UsageError(fmt::format(
        "--lengths: the search takes the {} layers in groups, in which sequences of unequal lengths "
        "are not priced; compare takes them",
        in.layers));
  }
  for (const std::string& partition : request.space.partitions) {
    if (is_partitioner(partition)) continue;
    if (in.layers <= most_cut_by_hand || request.budget) return in;
    throw UsageError(fmt::format(
        "a given cut of {} layers takes plan minutes to simulate, and with more than {} it needs a --budget; give --budget 30s, or leave out --partition",
        in.layers, most_cut_by_hand));
  }
  in.groups = std::max(fewest_groups, groups_a_device * devices);
  if (in.groups >= in.layers) in.groups = 0;
  return in;
}

WithAllLayers with_all_layers(Search& search, const PlanRequest& asked, const PlanGroups& in) {
  std::vector<Candidate> members;
  const std::vector<FrontPoint>& points = search.front().points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i >= most_members && i + most_members < points.size()) continue;
    members.push_back(points[i].candidate);
  }
  if (members.empty()) {
    const std::vector<Candidate>& nearest = search.nearest();
    const std::size_t some = std::min(most_members, nearest.size());
    members.assign(nearest.end() - static_cast<std::ptrdiff_t>(some), nearest.end());
  }
  Evaluator evaluator(asked.setting);
  std::vector<std::vector<JudgedCandidate>> all(members.size());
  in_parallel(all.size(), asked.threads > 0 ? asked.threads : available_cores(),
              [&](std::size_t i) {
                // An answer without any is of no use.
                if (i > 0 && asked.stop != nullptr && asked.stop->load()) return;
                all[i] = judged(search, evaluator, members[i], in);
              });
  WithAllLayers found{Front(asked.slower_by)};
  for (const std::vector<JudgedCandidate>& each : all) {
    for (const JudgedCandidate& one : each) {
      if (!one.judgement.verdict) continue;
      ++found.judged;
      const Verdict& verdict = *one.judgement.verdict;
      const std::string flags = flags_of(asked.setting, one.candidate);
      if (verdict.fit != Fit::no) {
        found.front.insert({one.candidate, verdict, flags});
      } else if (verdict.need &&
                 (!found.missing || verdict.need->missing() < found.missing->need.missing())) {
        found.missing = PlanMissing{*verdict.need, flags};
      }
    }
  }
  return found;
}

}  // namespace stageline::planner
