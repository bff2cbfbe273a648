// A program of a user of the library: a trace in, a ranking out.
#include <cstdio>
#include <string>

#include <stageline/stageline.hpp>

int main(int, char** argv) {
  stageline::answers::Request request;
  request.setting.trace = argv[1];
  request.setting.cluster.link = stageline::parse_link("12GB/s,5us");
  request.setting.cluster.memory = stageline::parse_bytes("16GB");
  request.setting.devices = {4};
  request.setting.schedules = stageline::parse_schedules("gpipe,1f1b,zb_h1,pipedream");
  try {
    const stageline::answers::Result result = answer(request);
    for (const stageline::RankedRows& ranking : result.rankings) {
      for (const std::size_t row : ranking.rows) {
        const stageline::Outcome& outcome = *result.rows[row].outcome;
        std::printf("%s %s\n", outcome.schedule.c_str(),
                    stageline::print(outcome.step_time).c_str());
      }
      std::printf("%s\n", ranking.sentence.c_str());
    }
  } catch (const stageline::UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  const std::string json = R"({"trace": "uniform:layers=8", "schedule": "1f1b"})";
  std::printf("%s%s\n", stageline::report::answer(json).substr(0, 1).c_str(),
              std::string(stageline::version()).c_str());
}
