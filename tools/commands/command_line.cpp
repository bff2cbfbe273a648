#include "tools/commands/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "sim/errors.hpp"
#include "tools/commands/commands.hpp"
#include "tools/study/contradictions.hpp"

namespace stageline {
namespace {

int refuse(const std::string& message, const std::string& figure) {
  // fmt::print would throw where standard error is full or closed.
  std::fputs(fmt::format("stageline: {}\n", message).c_str(), stderr);
  if (!figure.empty()) std::fputs(("\n" + figure).c_str(), stderr);
  return 2;
}

// `reason` is an errno. A reader who has seen enough (`| head`) needs no message.
int lost_output(int reason) {
  if (reason == EPIPE) return 2;
  return refuse(fmt::format("cannot write to standard output: {}",
                            reason != 0 ? std::strerror(reason) : "a write failed"),
                "");
}

// The exit code, unless what was printed did not arrive: that must not look like success.
int after_flushing(int exit_code) {
  const int before = errno;  // of CLI11's own flush, whose result it does not look at
  if (std::fflush(stdout) != 0) return lost_output(errno);
  std::cout.flush();
  return std::ferror(stdout) != 0 || std::cout.bad() ? lost_output(before) : exit_code;
}

// Help and version are CLI11's to print; its errors are put into our form.
int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
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
    return after_flushing(exit_code);
  } catch (const CLI::Success& success) {
    return after_flushing(app.exit(success));
  } catch (const CLI::ParseError& error) {
    std::string command = "stageline";
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      command += " " + at->get_name();
    }
    return refuse(fmt::format("{}; see `{} --help`", error.what(), command), "");
  } catch (const ProgramError& error) {
    return refuse(error.what(), error.figure);
  } catch (const Deadlock& error) {
    return refuse(error.what(), error.figure);
  } catch (const ContradictionError& error) {
    refuse(error.what(), "");
    return 3;
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory for that many micro-batches, steps or devices", "");
  } catch (const std::system_error& error) {  // of fmt::print and write_file
    return std::ferror(stdout) != 0 ? lost_output(error.code().value()) : refuse(error.what(), "");
  } catch (const std::exception& error) {
    return refuse(error.what(), "");
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const std::string& version) {
  int exit_code = 0;
  CLI::App app{
      "Stageline simulates pipeline-parallel training: how long a step takes, where the bubbles "
      "are, whether it fits, and how stale the weights are."};
  app.set_version_flag("--version", "stageline " + version);
  app.require_subcommand(1);
  add_compare(app, exit_code);
  add_simulate(app, exit_code);
  add_draw(app, exit_code);
  add_program(app, exit_code);
  add_costs(app, exit_code);
  add_bound(app, exit_code);
  add_hybrid(app, exit_code);
  add_time_to_accuracy(app, exit_code);
  add_import(app, exit_code);
  add_overlay(app, exit_code);
  add_diff(app, exit_code);
  add_reproduce(app, exit_code);
  add_replay(app, exit_code);
  add_staleness(app, exit_code);
  add_list(app, exit_code);
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace stageline
