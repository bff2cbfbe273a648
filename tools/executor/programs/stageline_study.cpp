// stageline-study: trains every case of a study with stageline-train, and writes the report.
#include <fmt/core.h>

#include <filesystem>

#include "tools/commands/program_main.hpp"
#include "tools/executor/programs/study_runs.hpp"
#include "tools/lab/papers/staleness/cases.hpp"

namespace stageline {
namespace {

// Beside this program.
std::string usual_trainer() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "stageline-train" : (self.parent_path() / "stageline-train").string();
}

// Which nets are trained without --only, and which are for a GPU.
std::string help_of_only() {
  std::string usual;
  std::string large;
  for (const lab::StudyNet& net : lab::staleness_nets()) {
    std::string& list = net.large ? large : usual;
    list += (list.empty() ? "" : ", ") + net.name;
  }
  return fmt::format("this net; repeatable. {}: without it, both; for a GPU {}", usual, large);
}

void add_staleness(cli::Flags command, StudyRequest& request) {
  command.writes_also(
      command
          .option("--out", request.out, "folder of staleness.json.gz, staleness.md and its figures")
          .default_shown()
          .writes_folder(),
      {"{}/staleness.json.gz", "{}/staleness.md", "{}/*.svg"});
  command.option("--jobs", request.jobs, "trainings at a time, each on a core of its own")
      .default_shown()
      .range(1, 1024);
  command.option("--seeds", request.seeds, "of each case: 1, 2, …").default_shown().range(1, 1000);
  command.option("--only", request.only, help_of_only()).repeatable();
  command.option("--train", request.trainer, "stageline-train; default the one beside this");
  command.option("--on", request.device, "cpu or cuda: what to train on")
      .default_shown()
      .one_of({"cpu", "cuda"});
  command.flag("--fresh", request.fresh, "make runs again that are there already");
  command.runs([&request] {
    // A signal ends waiting for a training.
    make_study(request, cli::catch_signals(cli::SecondSignal::ends));
    return 0;
  });
}

int run_study(int argc, const char* const* argv) {
  StudyRequest request;
  request.trainer = usual_trainer();
  cli::ProgramMain program;
  program.name = "stageline-study";
  program.about = "Makes the runs of a study of training, and its report from them.";
  return cli::program_main(program, argc, argv, [&request](cli::Flags flags) {
    flags.require_subcommand();
    flags.footer(
        "Runs that staleness.json.gz has with the same arguments are not made again.\n"
        "Exit code 0: done. 2: bad input. 130, 143: interrupted; what was done is kept.");
    add_staleness(
        flags.subcommand(
            "staleness",
            "What stale weights cost in accuracy, by depth, share, and what is done about it"),
        request);
  });
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) { return stageline::run_study(argc, argv); }
