// The way to stageline-lab, and what --help says of its commands.
#include "tools/commands/lab.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "tools/commands/command.hpp"

namespace stageline::cli {

bool is_for_lab(int argc, const char* const* argv) {
  if (argc < 2) return false;
  return std::any_of(lab_commands_of_stageline.begin(), lab_commands_of_stageline.end(),
                     [&](const LabCommand* one) { return one->name == argv[1]; });
}

int become_lab(int argc, const char* const* argv) {
  std::error_code none;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  const std::string lab = (folder / "stageline-lab").string();
  std::vector<std::string> words{"stageline"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (!folder.empty()) ::execv(lab.c_str(), arguments.data());  // never one of the working folder
  const bool built = folder.filename() == "tools";
  fmt::print(stderr,
             "stageline: {} is a command of stageline-lab, and {} has none; build it: ninja -C {} "
             "tools/stageline-lab\n",
             argv[1], folder.string(), built ? folder.parent_path().string() : "BUILD");
  return 2;
}

extern const Command time_to_accuracy_command;
const Command time_to_accuracy_command = {time_to_accuracy_at_lab.name,
                                          time_to_accuracy_at_lab.about, nullptr, ""};
extern const Command reproduce_command;
const Command reproduce_command = {reproduce_at_lab.name, reproduce_at_lab.about, nullptr, ""};
extern const Command replay_command;
const Command replay_command = {replay_at_lab.name, replay_at_lab.about, nullptr, ""};
extern const Command staleness_command;
const Command staleness_command = {staleness_at_lab.name, staleness_at_lab.about, nullptr, ""};

}  // namespace stageline::cli
