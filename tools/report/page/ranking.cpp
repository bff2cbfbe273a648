// The data of the bars.
#include "tools/base/table.hpp"
#include "tools/report/page/page_json.hpp"

namespace stageline::report {

PageSection ranking_section(std::string title, const RankingBars& bars) {
  Json data{{"axis", "step"},
            {"definition", "Steady state: from the end of one step to the end of the next"},
            {"unit", "ps"},
            {"busy_words", "mean busy time of the devices"},
            {"mark_words", bars.quantile_words}};
  data["bound"] = page_line(bars.bound);
  data["groups"] = Json::array();
  for (const RankingGroup& group : bars.groups) {
    Json rows = Json::array();
    for (const RankingRow& row : group.rows) {
      Json item{{"id", row.row.id}, {"note", row.row.note}, {"name", row.name}};
      item.update(page_time(row.step));
      item.update({{"bubble", row.bubble},
                   {"bubble_text", percent(row.bubble)},
                   {"memory", row.memory},
                   {"fits", name(row.fit)}});
      item["mark"] = nullptr;
      if (row.quantile) {
        item["mark"] = {{"value", Json(row.quantile->count())},
                        {"words", Json(bars.quantile_words + " " + print(*row.quantile))}};
      }
      rows.push_back(std::move(item));
    }
    data["groups"].push_back(
        {{"title", group.title}, {"sentences", group.sentences}, {"rows", std::move(rows)}});
  }
  return {"ranking", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
