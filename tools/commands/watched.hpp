// Watches over the work behind an answer: signals stop it, a line on standard error says how far it
// is.
#pragma once

#include "tools/answers/question.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"

namespace stageline::cli {

/// What answer() says to the question. `quiet`: without the line. Throws NothingKnown where a
/// signal came first, and what else answer() throws.
template <class Asked>
auto answer_watched(const Asked& question, bool quiet) {
  ProgressLine line(!quiet);
  return answer(question, answers::Watch{&catch_signals(SecondSignal::ends), shown_by(line)});
}

}  // namespace stageline::cli
