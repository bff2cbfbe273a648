// The tables of the papers as JSON.
#include <string>

#include "tools/base/json.hpp"
#include "tools/lab/papers/sections.hpp"

namespace stageline::lab {
namespace {

Json finding_json(const Finding& finding) {
  Json json{{"what", finding.what},
            {"published",
             {{"text", finding.published.text},
              {"low", finding.published.low},
              {"high", finding.published.high}}},
            {"ours", Json()}};
  if (finding.ours) {
    json["ours"] = {{"text", print(*finding.ours)},
                    {"value", finding.ours->value},
                    {"unit", finding.ours->unit}};
  }
  json["deviation"] = finding.ours ? Json(deviation(finding)) : Json();
  json["allowed"] = finding.allowed;
  json["basis"] = name(finding.basis);
  json["rule"] = name(finding.rule);
  json["verdict"] = name(finding.verdict);
  json["note"] = finding.note;
  return json;
}

}  // namespace

std::string sections_json(const std::vector<Section>& sections) {
  Json tables = Json::array();
  for (const Section& section : sections) {
    Json findings = Json::array();
    for (const Finding& finding : section.findings) findings.push_back(finding_json(finding));
    tables.push_back({{"name", section.name},
                      {"title", section.title},
                      {"source", section.source},
                      {"headline", section.headline},
                      {"findings", std::move(findings)},
                      {"remarks", Json(section.remarks)}});
  }
  Json all = Json::object();
  all["tables"] = std::move(tables);
  return all.text();
}

}  // namespace stageline::lab
