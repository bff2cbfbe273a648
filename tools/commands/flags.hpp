// The command line of a program. Only flags.cpp and command_parsing.cpp include the library that
// parses it, and none of its words reaches a user.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/commands/help_text.hpp"
#include "tools/inputs/setting_group.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace stageline::cli {

/// One flag, option or positional argument. A handle: copies refer to the same flag.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag required(bool yes = true) const;
  Flag needs(Flag other) const;
  Flag excludes(Flag other) const;
  Flag describe(const std::string& help) const;  // replaces the help text
  Flag one_of(const std::vector<std::string>& values) const;
  Flag range(int least, int most) const;
  Flag range(std::int64_t least, std::int64_t most) const;
  Flag range(std::uint64_t least, std::uint64_t most) const;
  Flag range(double least, double most) const;
  Flag positive() const;
  Flag not_negative() const;
  /// `fault` returns a sentence for a value to refuse, or an empty text; --help shows `type` as the
  /// type of the value.
  Flag check(const std::function<std::string(const std::string&)>& fault,
             const std::string& type) const;
  Flag repeatable() const;  // of a list: the flag takes one value, and may be repeated
  Flag comma_list() const;  // of a list: values may be joined by commas
  /// The value is a file, or a folder, that the command writes: looked at before it runs.
  Flag writes_file() const;
  Flag writes_folder() const;  // Flags::writes_also() says which files
  Flag default_shown() const;  // --help shows the present value of the variable
  Flag default_shown(const std::string& text) const;

  std::string name() const;  // "--out" of "--out,-o", "TRACE" of a positional argument
  std::string help() const;
  bool given() const;
  /// As typed; none of a flag without a value.
  std::vector<std::string> values() const;
  friend bool operator==(Flag a, Flag b) { return a.option_ == b.option_; }

 private:
  CLI::Option* option_;
};

/// The flags of a program, or of one of its subcommands. A handle: copies add to the same command.
/// The variables must live until the command has run.
class Flags {
 public:
  struct FurtherFiles {
    const CLI::App* command;
    Flag flag;
    std::vector<std::string> forms;
  };
  /// Where --help has a flag: under which heading, and whether on the first screen.
  struct Place {
    SettingGroup group = SettingGroup::other;
    bool common = false;
  };
  /// What all commands of a program share.
  struct Program {
    int exit_code = 0;
    std::vector<FurtherFiles> further;
    std::map<const CLI::Option*, Place> places;
  };

  Flags(CLI::App& app, Program& program) : app_(&app), program_(&program) {}

  /// The same command, where --help has what is added under this heading, and of common() on its
  /// first screen, too. By default it is among the options of no group, in --help all.
  Flags in(SettingGroup group) const;
  Flags common(bool yes = true) const;

  /// `name` is "--out,-o", or "TRACE" for a positional argument. T: std::string, int, std::int64_t,
  /// std::uint64_t, double, std::optional of double or std::int64_t, std::vector of std::string,
  /// int or std::int64_t.
  template <class T>
  Flag option(const std::string& name, T& value, const std::string& help) const;
  /// A flag without a value.
  Flag flag(const std::string& name, bool& value, const std::string& help) const;
  /// A flag that may have a value, as in --name=value; without one it has the value "true".
  Flag flag(const std::string& name, std::string& value, const std::string& help) const;
  /// A flag that prints what `text` returns, and ends the program with exit code 0.
  void prints(const std::string& name, const std::function<std::string()>& text,
              const std::string& help) const;

  /// Files that the command writes beside or below the value of the flag, by pattern_of() of
  /// outputs.hpp: "{}/report.md", "{}/*.svg". None of them may be read, or be another's output.
  void writes_also(Flag flag, std::vector<std::string> forms) const;

  Flag find(const std::string& name) const;  // which must exist
  std::vector<Flag> all() const;
  /// What --help says, of a command that is called by these words: "stageline compare".
  HelpPage help(const std::string& command) const;

  /// Text below the flags in --help: examples and exit codes.
  void footer(const std::string& text) const;
  Flags subcommand(const std::string& name, const std::string& about) const;
  Flags find_subcommand(const std::string& name) const;  // which must exist
  void require_subcommand() const;
  bool subcommand_given() const;

  /// The function to run after parsing; it returns the exit code of the program.
  void runs(std::function<int()> command) const;

 private:
  Flag placed(CLI::Option* option) const;

  CLI::App* app_;
  Program* program_;
  Place place_;
};

/// An invalid command line. The sentence names the --help to read.
struct CommandLineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command line of one program, which owns its flags.
class CommandLine {
 public:
  /// `name`: "stageline"; `about`: the first line of --help; `version`: printed by --version after
  /// the name.
  CommandLine(const std::string& name, const std::string& about, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Flags flags();

  /// Parses, runs the command and returns its exit code; --help, --help all and --version are
  /// printed and return 0. argv[0] is ignored. Throws CommandLineError, and what the command
  /// throws.
  int run(int argc, const char* const* argv);

 private:
  std::string name_;
  std::unique_ptr<CLI::App> app_;
  Flags::Program program_;
};

}  // namespace stageline::cli
