// Reads, writes and updates the runs of the staleness study.
#include "tools/lab/papers/staleness/evidence.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/json/parts.hpp"

namespace stageline::lab {
namespace {

constexpr std::string_view staleness_format = "stageline-staleness 1";

// The position of a case in the table; cases that are no longer in it come last.
std::pair<std::size_t, std::size_t> place_of(const StudyRun& run) {
  const std::vector<StudyNet>& nets = staleness_nets();
  for (std::size_t net = 0; net < nets.size(); ++net) {
    if (nets[net].name != run.net) continue;
    const std::vector<StudyCase>& cases = nets[net].cases;
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const StudyCase& one) {
      return one.group == run.group && one.name == run.name;
    });
    return {net, as_size(found - cases.begin())};
  }
  return {nets.size(), 0};
}

bool before(const StudyRun& a, const StudyRun& b) {
  return std::tuple(place_of(a), a.net, a.group, a.name, a.log.seed) <
         std::tuple(place_of(b), b.net, b.group, b.name, b.log.seed);
}

bool same_case(const StudyRun& a, const StudyRun& b) {
  return a.net == b.net && a.group == b.group && a.name == b.name && a.log.seed == b.log.seed;
}

std::string run_text(const StudyRun& run) {
  return fmt::format(
      "    {{\"net\": {}, \"group\": {}, \"case\": {}, \"copies\": {},\n     \"log\": {}}}",
      json_text(run.net), json_text(std::string(name(run.group))), json_text(run.name), run.copies,
      without_steps(run.log, 5));
}

StudyRun read_run(const JsonNode& node) {
  node.check_keys({"net", "group", "case", "copies", "log"}, {});
  StudyRun run;
  run.net = node.at("net").text();
  const JsonNode group = node.at("group");
  try {
    run.group = study_group(group.text());
  } catch (const UsageError& error) {
    group.refuse(error.what());
  }
  run.name = node.at("case").text();
  run.copies = node.at("copies").number();
  if (run.copies < 0) node.at("copies").refuse("there cannot be fewer than 0 copies");
  run.log = read_without_steps(node.at("log"));
  if (run.log.evaluations.empty()) {
    node.at("log").at("evaluations").refuse("a run of the study must have an evaluation");
  }
  return run;
}

}  // namespace

const StudyRun* find_run(const StalenessEvidence& evidence, const StudyNet& net,
                         const StudyCase& one, std::uint64_t seed) {
  const std::string command = train_command(net, one, seed);
  for (const StudyRun& run : evidence.runs) {
    const bool same = run.net == net.name && run.group == one.group && run.name == one.name;
    if (same && run.log.seed == seed && run.log.command == command) return &run;
  }
  return nullptr;
}

void keep_run(StalenessEvidence& evidence, StudyRun run) {
  run.log.steps.clear();
  std::vector<StudyRun>& runs = evidence.runs;
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const StudyRun& other) { return same_case(run, other); }),
             runs.end());
  const auto place = std::upper_bound(runs.begin(), runs.end(), run, before);
  runs.insert(place, std::move(run));
}

std::string to_json(const StalenessEvidence& evidence) {
  std::string text = fmt::format("{{\n  \"format\": \"{}\",\n  \"seeds\": {},\n  \"runs\": [",
                                 staleness_format, evidence.seeds);
  const char* between = "\n";
  for (const StudyRun& run : evidence.runs) {
    text += between + run_text(run);
    between = ",\n";
  }
  return text + "\n  ]\n}\n";
}

StalenessEvidence parse_staleness_evidence(const std::string& text, const std::string& file) {
  const JsonValue tree = parse_json(text, file);
  const JsonNode root(tree, "", file);
  if (root.kind() != JsonKind::object) root.refuse("the staleness study is one JSON object");
  if (const std::string format = root.at("format").text(); format != staleness_format) {
    root.at("format").refuse(
        fmt::format("the staleness study has \"{}\" here, not \"{}\"", staleness_format, format));
  }
  root.check_keys({"format", "seeds", "runs"}, {});
  StalenessEvidence evidence;
  evidence.seeds = static_cast<int>(root.at("seeds").whole(1, 1000));
  for (const JsonNode& node : root.at("runs").items()) {
    StudyRun run = read_run(node);
    if (std::any_of(evidence.runs.begin(), evidence.runs.end(),
                    [&](const StudyRun& other) { return same_case(run, other); })) {
      node.refuse(fmt::format("{}, {}, seed {} appears twice", run.net, run.name, run.log.seed));
    }
    evidence.runs.push_back(std::move(run));
  }
  std::stable_sort(evidence.runs.begin(), evidence.runs.end(), before);
  return evidence;
}

}  // namespace stageline::lab
