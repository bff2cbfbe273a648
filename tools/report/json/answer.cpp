// Writes the answer of a request, and the errors of both, as JSON.
#include "tools/report/json/answer.hpp"

#include <fmt/core.h>

#include <optional>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/study/figures/contradictions.hpp"

namespace stageline::report {
namespace {

std::string error_json(std::string_view kind, std::string_view message) {
  const Json error{{"error", {{"kind", kind}, {"message", message}}}};
  return error.text();
}

Json index_or_null(const std::optional<std::size_t>& row) { return row ? Json(*row) : Json(); }

Json ranking_json(const RankedRows& ranking) {
  return {{"synchronous", ranking.synchrony == Synchrony::synchronous},
          {"rows", ranking.rows},
          {"fastest", index_or_null(ranking.fastest)},
          {"recommended", index_or_null(ranking.recommended)},
          {"sentence", ranking.sentence}};
}

}  // namespace

std::string print_result(const answers::Request& request, const answers::Result& result) {
  std::string rows;
  for (const Row& row : result.rows) {
    rows += rows.empty() ? "\n" : ",\n";
    rows += row.outcome ? row_json(result.setting, row, request.timeline)
                        : unanswered_json(row.asked, row.why_not);
  }
  Json rankings = Json::array();
  for (const RankedRows& ranking : result.rankings) rankings.push_back(ranking_json(ranking));
  return fmt::format("{{\n\"rows\": [{}],\n\"rankings\": {},\n\"advice\": {},\n\"notes\": {}}}\n",
                     rows, rankings.text(), Json(result.advice).text(), Json(request.notes).text());
}

std::string answer(std::string_view request_json) {
  return or_error([&] {
    const answers::Request request = answers::parse_request(request_json);
    return print_result(request, answer(request, request.timeline ? Keep::spans : Keep::facts));
  });
}

std::string or_error(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    return error_json("usage", error.what());
  } catch (const TraceError& error) {
    return error_json("trace", error.what());
  } catch (const ProgramError& error) {
    return error_json("program", error.what());
  } catch (const Deadlock& error) {
    return error_json("deadlock", error.what());
  } catch (const ContradictionError& error) {
    return error_json("contradiction", error.what());
  }
}

}  // namespace stageline::report
