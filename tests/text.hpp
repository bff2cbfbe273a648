// Programs in and timelines out as text, so that a test can be read. Needs sim/ only.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/program.hpp"

namespace stageline::test {

/// A program of `stages` stages, stage s on device gpu<s>. `lists` are lines "gpu0: 0F0 ...";
/// `header` is more lines above them.
inline std::string straight_text(int stages, int microbatches, const std::string& lists,
                                 const std::string& header = "") {
  std::string text =
      "stageline-program 1\nmicrobatches: " + std::to_string(microbatches) + "\n" + header;
  for (int s = 0; s < stages; ++s) {
    text += "stage " + std::to_string(s) + ": gpu" + std::to_string(s) + "\n";
  }
  return text + lists;
}

/// The lists alone, a line a device: "gpu0: 0F0 0B0\n".
inline std::string lists(const Program& program) {
  std::string text;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    text += program.devices[device] + ":";
    for (const Op op : program.ops[device]) text += " " + print(op);
    text += "\n";
  }
  return text;
}

/// Every lane that has spans, a line each, in picoseconds: "gpu0 send: 0SEND_F0 1-3\n".
inline std::string lanes(const Timeline& timeline) {
  std::string text;
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (int kind = 0; kind < lane_kinds; ++kind) {
      const auto& spans = timeline.lane(static_cast<int>(device), static_cast<LaneKind>(kind));
      if (spans.empty()) continue;
      text += timeline.devices[device] + " ";
      text += name(static_cast<LaneKind>(kind));
      for (const Span& span : spans) {
        text += (&span == spans.data() ? ": " : ", ") + print(span.op) + " " +
                std::to_string(span.start.count()) + "-" + std::to_string(span.end.count());
      }
      text += "\n";
    }
  }
  return text;
}

/// A program that has run as it stands: no pass has touched it.
struct Simulated {
  Program program;
  TaskGraph graph;
  TaskTimes times;
  Timeline timeline;
};

inline Simulated simulated(Program program, const Costs& costs) {
  Simulated all{std::move(program), {}, {}, {}};
  validate(all.program);
  all.graph = compile(all.program, costs);
  all.times = simulate(all.graph);
  all.timeline = timeline_of(all.program, all.graph, all.times);
  return all;
}

/// What the call says when it throws `Error`; "" when it does not throw. Other exceptions pass.
template <class Error, class Call>
std::string complaint(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The part of `text` from `word` on; all of it when the word is not there.
inline std::string from_word(const std::string& text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? text : text.substr(at);
}

inline bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace stageline::test
