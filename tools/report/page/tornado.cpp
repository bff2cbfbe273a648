// The data of a tornado.
#include "tools/report/charts/tornado.hpp"

#include <utility>

#include "tools/base/json.hpp"
#include "tools/report/page/sections.hpp"

namespace stageline::report {

PageSection tornado_section(std::string title, const Tornado& tornado,
                            const std::string& sentence) {
  Json data{{"label", tornado.label}, {"sentence", sentence}};
  data["bars"] = Json::array();
  for (const TornadoBar& bar : tornado.bars) {
    data["bars"].push_back({{"name", bar.name},
                            {"faster", bar.faster},
                            {"twice", bar.twice},
                            {"slower", bar.slower},
                            {"words", bar.words}});
  }
  return {"tornado", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
