// The command. All bad input ends here, as one sentence and exit code 2.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "sim/errors.hpp"
#include "tools/commands/commands.hpp"

namespace stageline {
namespace {

int refuse(const std::string& message, const std::string& figure) {
  fmt::print(stderr, "stageline: {}\n", message);
  if (!figure.empty()) fmt::print(stderr, "\n{}", figure);
  return 2;
}

// Help and version are CLI11's to print; its errors are put into our form.
int parse_and_run(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    // CLI11 would only say that a subcommand is missing.
    const std::string first = argc > 1 ? argv[1] : "-";
    std::vector<std::string> known;
    for (const CLI::App* const sub : app.get_subcommands({})) known.push_back(sub->get_name());
    if (first[0] != '-' && std::find(known.begin(), known.end(), first) == known.end()) {
      return refuse(fmt::format("there is no subcommand \"{}\"{}; they are {}", first,
                                did_you_mean(first, known), fmt::join(known, ", ")),
                    "");
    }
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::string command = "stageline";
    for (const CLI::App* const sub : app.get_subcommands()) command += " " + sub->get_name();
    return refuse(fmt::format("{}; see `{} --help`", error.what(), command), "");
  } catch (const ProgramError& error) {
    return refuse(error.what(), error.figure);
  } catch (const Deadlock& error) {
    return refuse(error.what(), error.figure);
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory for that many micro-batches, steps or devices", "");
  } catch (const std::exception& error) {
    return refuse(error.what(), "");
  }
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app{
      "Stageline simulates pipeline-parallel training: how long a step takes, where the bubbles "
      "are, whether it fits, and how stale the weights are."};
  app.set_version_flag("--version", "stageline " STAGELINE_VERSION);
  app.require_subcommand(1);
  stageline::add_compare(app, exit_code);
  stageline::add_simulate(app, exit_code);
  stageline::add_draw(app, exit_code);
  stageline::add_program(app, exit_code);
  stageline::add_import(app, exit_code);
  stageline::add_list(app, exit_code);
  return stageline::parse_and_run(app, argc, argv, exit_code);
}
