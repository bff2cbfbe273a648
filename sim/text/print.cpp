// Writes the program text. Grammar: traces/README.md; reading it: sim/text/parse.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "sim/base/index.hpp"
#include "sim/program.hpp"
#include "sim/text/words.hpp"

namespace stageline {
namespace {

constexpr std::size_t line_width = 100;

std::string device_names(const Program& program, const std::vector<int>& devices) {
  std::string text;
  for (const int device : devices) {
    if (!text.empty()) text += "+";
    text += nth(program.devices, device);
  }
  return text;
}

// "0F0", or "(7F3;0B2)OVERLAP_F_B" for the pair that begins at `i`, which is then advanced to its
// second op.
std::string item(const std::vector<Op>& ops, std::size_t& i) {
  const Op op = ops[i];
  if (!op.overlapped || i + 1 == ops.size()) return print(op);
  ++i;
  return fmt::format("({};{}){}", print(op), print(ops[i]), overlap_mark);
}

std::string shares_text(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) text += fmt::format("{}{}", text.empty() ? "" : "+", share);
  return text;
}

}  // namespace

std::int64_t tokens_of(const Documents& documents) {
  return std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
}

std::string print(const Documents& documents) {
  return fmt::format("{}", fmt::join(documents, "+"));
}

std::string print(const Program& program) {
  const ProgramSettings& settings = program.settings;
  std::string text = fmt::format(
      "stageline-program 1\nschedule: {}\nmicrobatches: {}\nsteps: {}\nweights: {}\ncorrection: "
      "{}\n",
      program.schedule, program.microbatches, program.steps, name(settings.weights),
      settings.correction);
  for (std::size_t s = 0; s < program.placement.stage.size(); ++s) {
    const StagePlace& place = program.placement.stage[s];
    const bool apart = !place.input_grad.empty() || !place.weight_grad.empty();
    text +=
        fmt::format("stage {}: {}{}", s, apart ? "F=" : "", device_names(program, place.replicas));
    if (!place.input_grad.empty())
      text += fmt::format(" I={}", device_names(program, place.input_grad));
    if (!place.share.empty()) text += fmt::format(" share={}", shares_text(place.share));
    if (!place.weight_grad.empty())
      text += fmt::format(" W={}", device_names(program, place.weight_grad));
    if (!place.stash_homes.empty())
      text += fmt::format(" stash={}", device_names(program, place.stash_homes));
    text += "\n";
  }
  if (program.edges != chain_edges(program.stages())) {
    text += "edges:";
    for (const StageEdge edge : program.edges) text += fmt::format(" {}>{}", edge.from, edge.to);
    text += "\n";
  }
  std::string independent;
  for (std::size_t s = 0; s < program.independent_w.size(); ++s) {
    if (program.independent_w[s]) independent += fmt::format(" {}", s);
  }
  if (!independent.empty()) text += fmt::format("independent_w:{}\n", independent);
  if (!settings.delay.empty())
    text += fmt::format("delays: {}\n", by_stage(settings.delay, no_delay));
  if (!settings.window.empty())
    text += fmt::format("windows: {}\n", by_stage(settings.window, no_window));
  if (settings.sequence_chunks != 1) {
    text += fmt::format("sequence_chunks: {}\n", settings.sequence_chunks);
  }
  if (!settings.costs.empty()) {
    text += fmt::format("costs: {}\n", fmt::join(settings.costs, " "));
  }
  if (!settings.slices.empty()) {
    text += fmt::format("slices: {}\n", fmt::join(settings.slices, " "));
  }
  if (!settings.lengths.empty()) {
    text += "lengths:";
    for (const Documents& documents : settings.lengths) text += " " + print(documents);
    text += "\n";
  }
  if (settings.data_ranks != 1) text += fmt::format("data_ranks: {}\n", settings.data_ranks);
  if (settings.clock != Clock::free) text += fmt::format("clock: {}\n", name(settings.clock));
  if (settings.copies != Copies::free) text += fmt::format("copies: {}\n", name(settings.copies));
  if (settings.recompute != RecomputeStart::early) {
    text += fmt::format("recompute: {}\n", name(settings.recompute));
  }
  if (settings.messages != Messages::async) {
    text += fmt::format("messages: {}\n", name(settings.messages));
  }
  if (!settings.weights_transfer) text += "weights_transfer: off\n";
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    std::string line = program.devices[device] + ":";
    const std::vector<Op>& ops = program.ops[device];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::string next = item(ops, i);
      if (line.size() + 1 + next.size() > line_width) {
        text.append(line).append("\n");
        line = " ";
      }
      line += fmt::format(" {}", next);
    }
    text.append(line).append("\n");
  }
  return text;
}

}  // namespace stageline
