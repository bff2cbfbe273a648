// The data of waterfalls, with what their causes are.
#include "tools/study/whatif/waterfall.hpp"

#include <array>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/base/json.hpp"
#include "tools/report/page/sections.hpp"

namespace stageline::report {
namespace {

// By StepCause.
constexpr std::array<const char*, step_causes> definitions{
    "Stages take unequally long: removed, each takes the mean of all",
    "The pipeline fills and empties, in a run of equal stages without any cause below",
    "The rest of the idle time of that run: ops wait for one another",
    "Forwards that run again, to hold less memory",
    "Devices, or compute and communication, slow one another",
    "Messages that nothing hides, latencies and waits for shared links included",
    "Collectives inside forwards and backwards",
    "Reductions of gradients that nothing hides",
    "Updates, with the collectives inside",
    "Copies to the host and back that nothing hides",
    "The order that the memory limit forces is slower than the one without",
    "The mean step under the scenarios, less the nominal one",
};

}  // namespace

PageSection waterfall_section(std::string title, const WaterfallChart& chart,
                              const std::string& sentence) {
  Json data{{"label", chart.label}, {"sentence", sentence}};
  data["waterfalls"] = chart.waterfalls;
  data["definitions"] = {
      {"ideal", "All work, spread evenly over the devices, without any idle time"},
      {"step", "Steady state: from the end of one step to the end of the next"}};
  for (int cause = 0; cause < step_causes; ++cause) {
    data["definitions"][name(static_cast<StepCause>(cause))] = nth(definitions, cause);
  }
  data["rows"] = Json::array();
  for (const WaterfallRow& row : chart.rows) {
    Json bars = Json::array();
    for (const WaterfallBar& bar : row.bars) {
      bars.push_back(
          {{"from", bar.from}, {"to", bar.to}, {"words", bar.words}, {"tooltip", bar.tooltip}});
    }
    data["rows"].push_back({{"name", row.name}, {"bars", std::move(bars)}});
  }
  return {"waterfall", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
