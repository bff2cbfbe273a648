// One schedule in full, as text.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/simulated.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::report {

struct SimulationView {
  int width = 0;            // the most columns of a line; 0: any
  int columns = 100;        // of the space-time diagram
  bool full = false;        // all devices and stages
  bool quiet = false;       // no heading and no legends
  bool colour = false;      // of the diagram
  TrainingBudget budget{};  // the training whose GPU-hours and price are asked
};

/// Heading, summary, changes after which it fits, causes, devices, stages and the diagram; wrapped.
std::string simulation_text(const answers::Simulation& found, const SimulationView& view);

/// What a reader of the text must know: the cut, figures of others, assumptions.
std::vector<std::string> simulation_notes(const answers::Simulation& found,
                                          const TrainingBudget& budget,
                                          const std::vector<std::string>& read_as);

}  // namespace stageline::report
