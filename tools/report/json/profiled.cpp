#include "tools/report/text/profiled.hpp"
#include "tools/base/json.hpp"
#include "tools/report/text/step_parts.hpp"

namespace stageline::report {
namespace {

Json ranks_json(const answers::ProfiledRun& found) {
  Json ranks = Json::array();
  for (const answers::ProfiledRank& rank : found.ranks) {
    Json row{{"rank", rank.name}};
    put_time(row, "whole", rank.whole);
    put_time(row, "late", rank.late);
    Json parts = Json::array();
    for (std::size_t i = 0; i < rank.parts.size(); ++i) {
      Json part{{"part", found.parts[i].name}};
      put_time(part, "time", rank.parts[i]);
      parts.push_back(part);
    }
    row["parts"] = parts;
    ranks.push_back(row);
  }
  return ranks;
}

Json links_json(const answers::ProfiledRun& found) {
  Json links = Json::array();
  for (const answers::MeasuredLink& link : found.links) {
    Json row{{"from", link.from}, {"to", link.to}, {"messages", link.messages}};
    put_time(row, "median", link.median);
    put_time(row, "of_9_in_10", link.most);
    const double rate = link.bytes_per_second();
    row["bytes"] = rate > 0 ? Json(link.bytes.count) : Json(nullptr);
    row["bytes_per_second"] = rate > 0 ? Json(rate) : Json(nullptr);
    links.push_back(row);
  }
  return links;
}

}  // namespace

std::string profiled_json(const answers::ProfiledRun& found) {
  Json result;
  result["microbatches"] = found.run.program.microbatches;
  result["steps"] = Json::array();
  for (const Time step : found.steps) {
    Json row = Json::object();
    put_time(row, "step", step);
    result["steps"].push_back(row);
  }
  result["longest_step"] = found.longest.empty() ? Json(nullptr) : Json(found.longest);
  result["parts"] = step_parts_json(found.parts);
  result["ranks"] = ranks_json(found);
  result["links"] = links_json(found);
  result["notes"] = found.notes;
  return result.text();
}

}  // namespace stageline::report
