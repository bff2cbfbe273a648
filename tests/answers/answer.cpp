// Does the library's entry answer as the command does, and say what is wrong with a request?
#include "tools/report/json/answer.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/errors.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/report/json/outcome.hpp"
#include "traces/traces.hpp"

namespace stageline::answer_tests {
namespace {

using Json = nlohmann::ordered_json;

Json asked(const std::string& request) { return Json::parse(report::answer(request)); }

std::string message(const std::string& request) {
  const Json said = asked(request);
  REQUIRE(said.contains("error"));
  return said["error"]["message"];
}

const std::string uniform = R"("trace": "uniform:layers=8", "devices": 4, "microbatches": 8)";

TEST_CASE("a row is the object of simulate --json") {
  const Json said =
      asked("{" + uniform + R"(, "schedule": "zb_h1", "link": "1GB/s,5us", "timeline": true})");
  REQUIRE(said["rows"].size() == 1);
  SettingRequest request;
  request.trace = "uniform:layers=8";
  request.cluster.link = parse_link("1GB/s,5us");
  request.devices = {4};
  request.microbatches = 8;
  const Setting setting = read_setting(request);
  const Case one = make_case(request, setting, parse_schedules("zb_h1").front(), 4);
  CHECK(said["rows"][0] == Json::parse(report::outcome_json(setting, one, study(one), true)));
}

TEST_CASE("rankings name rows, fastest first") {
  const Json said = asked("{" + uniform + R"(, "schedules": ["naive,1f1b", "pipedream"]})");
  REQUIRE(said["rows"].size() == 3);
  REQUIRE(said["rankings"].size() == 2);
  CHECK(said["rankings"][0]["synchronous"] == true);
  CHECK(said["rankings"][0]["rows"] == Json::array({1, 0}));
  CHECK(said["rankings"][0]["sentence"].get<std::string>().starts_with("1f1b: "));
  CHECK(said["rankings"][1]["rows"] == Json::array({2}));
  CHECK(said["rankings"][0]["recommended"] == 1);
  CHECK(said["rankings"][0]["fastest"] == 1);
  CHECK(said["advice"].empty());
  CHECK(said["notes"].empty());
}

TEST_CASE("a wider margin recommends less memory, and nothing where nothing fits") {
  const std::string many = uniform + R"(, "schedules": "gpipe,naive")";
  CHECK(asked("{" + many + "}")["rankings"][0]["recommended"] == 0);
  const Json wide = asked("{" + many + R"(, "within": "100%"})");
  CHECK(wide["rankings"][0]["fastest"] == 0);
  const Json none = asked("{" + many + R"(, "memory": "1MB"})");
  CHECK(none["rankings"][0]["recommended"].is_null());
  REQUIRE(none["advice"].size() == 3);
  CHECK(none["advice"][0].get<std::string>().starts_with("nothing tried fits; what lacks least"));
  CHECK(none["advice"][1].get<std::string>().starts_with("its flags: --schedule "));
  CHECK(message("{" + many + R"(, "within": "1"})").find("\"within\" is a share") == 0);
  CHECK(message("{" + many + R"(, "memory": "16"})").find("has no unit") != std::string::npos);
}

TEST_CASE("names of other tools are read, and a note says as what") {
  const Json said = asked("{" + uniform + R"(, "schedules": ["Schedule1F1B", "ZB-H1"]})");
  CHECK(said["rows"][0]["schedule"] == "1f1b");
  CHECK(said["rows"][1]["schedule"] == "zb_h1");
  CHECK(said["notes"].size() == 2);
}

TEST_CASE("several numbers of devices are compared, and what cannot run is a row") {
  const Json said = asked(R"({"trace": "uniform:layers=4", "devices": [2, 8]})");
  REQUIRE(said["rows"].size() == 2);
  CHECK(said["rows"][0]["devices"] == 2);
  CHECK(said["rows"][1]["error"].get<std::string>().find("8") != std::string::npos);
  CHECK(said["rankings"][0]["rows"] == Json::array({0}));
}

TEST_CASE("several cuts are rows side by side, each of which names its own") {
  const std::string many =
      R"({"trace": "uniform:layers=7", "devices": 3, "microbatches": 8, "schedule": "1f1b",)";
  const std::string first = "0-4,5,6-";
  const Json said = asked(many + R"("partition": [")" + first + R"(", "simulated", "balanced", ")" +
                          first + R"("]})");
  REQUIRE(said["rows"].size() == 3);
  CHECK(said["rows"][0]["cut"] == first);
  CHECK(said["rows"][1]["cut"] == "simulated");
  CHECK(said["rows"][1]["cut_search"]["all"] == true);
  CHECK(said["rows"][1]["cut_search"]["simulated"] == 15);
  CHECK(said["rows"][1]["cut_search"]["step_time_ps"] == said["rows"][1]["step_time_ps"]);
  CHECK(said["rows"][1]["cut_search"]["plain_step_time_ps"] == said["rows"][2]["step_time_ps"]);
  CHECK_FALSE(said["rows"][2].contains("cut"));
  const auto sentence = said["rankings"][0]["sentence"].get<std::string>();
  CHECK(sentence.starts_with("1f1b ("));
  // One cut in a list is that cut.
  const Json alone = asked(many + R"("partition": [")" + first + R"("]})");
  CHECK(alone["rows"] == asked(many + R"("partition": ")" + first + R"("})")["rows"]);
  CHECK(asked(many + R"("partition": []})")["error"]["kind"] == "trace");
  CHECK(message(many + R"("partition": ["simulated:least=3"]})").find("is not known") !=
        std::string::npos);
  // Each row has the empty stages of its own layout.
  const Json empty = asked(
      R"({"trace": "model:gpt2@h100", "devices": 4, "microbatches": 8, "schedule": "1f1b",
          "partition": ["Et*4||t*4|t*4L", "blocks"]})");
  CHECK(empty["rows"][0]["cut"] == "Et*4||t*4|t*4L");
  CHECK(empty["rows"][1]["cut"] == "blocks");
  CHECK_FALSE(empty["rows"][1].contains("error"));
  CHECK(empty["rows"][0]["per_stage"].size() == 4);
}

TEST_CASE("traces, clusters and programs may be in the request") {
  const std::string by_name = report::answer("{" + uniform + "}");
  const std::string trace = write_trace({uniform_model("layers=8")});
  CHECK(Json::parse(by_name)["rows"][0]["step_time_ps"] ==
        asked(R"({"trace": )" + trace +
              R"(, "devices": 4, "microbatches": 8})")["rows"][0]["step_time_ps"]);
  const std::string cluster(bundled_clusters().front().text);
  const std::string name(bundled_clusters().front().name);
  CHECK(asked(R"({"trace": "uniform", "cluster": )" + cluster + "}") ==
        asked(R"({"trace": "uniform", "cluster": ")" + name + "\"}"));
  const std::string text = print(study(make_case(
                                           {},
                                           [] {
                                             SettingRequest request;
                                             request.trace = "uniform:layers=8";
                                             return read_setting(request);
                                           }(),
                                           parse_schedules("gpipe").front(), 4))
                                     .program);
  const Json program =
      asked(R"({"trace": "uniform:layers=8", "program": )" + Json(text).dump() + "}");
  CHECK(program["rows"][0]["schedule"] == "gpipe");
}

TEST_CASE("a training of so many tokens has its hours and its price") {
  const std::string model = R"("trace": "model:llama3-8b@h100", "devices": 4, "microbatches": 8)";
  const Json row = asked("{" + model + R"(, "tokens": "15T", "price": 2})")["rows"][0];
  CHECK(row["device_hours"].get<double>() ==
        doctest::Approx(15e12 / row["tokens_per_second"].get<double>() / 3600 * 4));
  CHECK(row["dollars"].get<double>() == doctest::Approx(2 * row["device_hours"].get<double>()));
  CHECK(asked("{" + model + R"(, "tokens": 15e12})")["rows"][0]["device_hours"] ==
        row["device_hours"]);
  CHECK_FALSE(asked("{" + model + "}")["rows"][0].contains("device_hours"));
  CHECK(message("{" + model + R"(, "price": 2})").find("/price") != std::string::npos);
  CHECK(message("{" + model + R"(, "tokens": "many"})").starts_with("\"tokens\" is a number"));
  CHECK(message("{" + uniform + R"(, "tokens": 1e12})").starts_with("\"tokens\": the trace of "));
}

TEST_CASE("a bad request is an error in one sentence") {
  CHECK(message("{").find("the request at line 1") == 0);
  CHECK(message(R"({"devices": 4})").find("trace") != std::string::npos);
  CHECK(message("{" + uniform + R"(, "scheduel": "1f1b"})").find("scheduel") != std::string::npos);
  CHECK(message("{" + uniform + R"(, "steps": 0})").find("/steps") != std::string::npos);
  CHECK(message("{" + uniform + R"(, "memory": "16 apples"})").find("/memory") !=
        std::string::npos);
  CHECK(message("{" + uniform + R"(, "host_link": "5"})").find("\"host_link\" 5: ") == 0);
  CHECK(message("{" + uniform + R"(, "schedule": "1f1c"})").find("did you mean \"1f1b\"") !=
        std::string::npos);
  CHECK(message(R"({"trace": {"format": "stageline-trace 1"}})").find("the trace") == 0);
  CHECK(asked(R"({"trace": "no-such"})")["error"]["kind"] == "usage");
  CHECK(asked(R"({"trace": "uniform", "program": "nonsense"})")["error"]["kind"] == "program");
}

// `stageline list --request-schema > tools/answers/request.schema.json` writes it again.
TEST_CASE("the schema in the folder is that of the settings, and the reader knows its keys") {
  const char* const root = std::getenv("STAGELINE_SOURCE");
  REQUIRE(root != nullptr);
  std::ifstream file(std::string(root) + "/tools/answers/request.schema.json");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str() == request_schema());
  const Json schema = Json::parse(text.str());
  REQUIRE(schema["properties"].size() > 40);
  for (auto rule = schema["properties"].begin(); rule != schema["properties"].end(); ++rule) {
    const std::string& key = rule.key();
    // A null is of no key's type: the reader points to it, and does not call the key unknown.
    const std::string said = message(key == "trace" ? std::string(R"({"trace": null})")
                                                    : "{" + uniform + ", \"" + key + "\": null}");
    CAPTURE(key);
    CHECK((said.find("/" + key) != std::string::npos || key == "devices" || key == "microbatches"));
  }
}

}  // namespace
}  // namespace stageline::answer_tests
