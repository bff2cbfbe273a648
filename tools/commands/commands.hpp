// The subcommands. Each adds itself to the application; its callback sets `exit_code` when the
// answer is "no" (1) and throws when the input is bad (2).
#pragma once

#include <CLI/CLI.hpp>

namespace stageline {

void add_compare(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_draw(CLI::App& app, int& exit_code);
void add_program(CLI::App& app, int& exit_code);
void add_costs(CLI::App& app, int& exit_code);
void add_bound(CLI::App& app, int& exit_code);
void add_hybrid(CLI::App& app, int& exit_code);
void add_time_to_accuracy(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_import_kineto(CLI::App& import);  // of import, which it is a subcommand of
void add_overlay(CLI::App& app, int& exit_code);
void add_diff(CLI::App& app, int& exit_code);
void add_reproduce(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_staleness(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);

}  // namespace stageline
