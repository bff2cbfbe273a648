// A shell script as the words of its commands. Of the language it knows what such scripts use to
// collect arguments; everything else is text that is not known.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/arguments.hpp"
#include "tools/launch/flag_table.hpp"
#include "tools/launch/shell_words.hpp"

namespace stageline {
namespace {

bool starts_number(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !starts_number(word);
}

// "--nproc_per_node=8" and "--nproc-per-node" "8" alike.
LaunchArgument argument_of(const std::string& word, int line) {
  LaunchArgument one;
  const std::size_t equals = word.find('=');
  one.name = word.substr(0, equals);
  one.name.erase(0, one.name.find_first_not_of('-'));
  if (equals != std::string::npos) one.value = word.substr(equals + 1);
  one.where = fmt::format("line {}", line);
  return one;
}

// A flag that is still to have its value.
bool waits_for_value(const LaunchArgument& argument) {
  const LaunchFlag* const row = find_launch_flag(Framework::megatron, argument.name);
  return argument.value.empty() && row != nullptr && row->form == LaunchForm::value;
}

// What is not known and is no value of a flag may hold flags.
bool may_be_flags(const std::string& word, const std::vector<LaunchArgument>& before) {
  if (!is_unknown_word(word)) return false;
  if (before.empty() || !before.back().value.empty()) return true;
  return is_set_in_branch(word) && !waits_for_value(before.back());
}

std::vector<LaunchArgument> arguments_of(const ShellCommand& command) {
  std::vector<LaunchArgument> all;
  for (const std::string& word : command.words) {
    if (may_be_flags(word, all)) {
      all.push_back({"$" + why_unknown(word), "", fmt::format("line {}", command.line)});
    } else if (is_flag(word)) {
      all.push_back(argument_of(word, command.line));
    } else if (!all.empty()) {
      all.back().value += (all.back().value.empty() ? "" : " ") + word;
    }
  }
  return all;
}

std::string plain(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "2" of "2", "4" of "1:4", "8" of "8 pretrain.py".
int count_in(const std::string& value) {
  std::string word = value.substr(0, value.find(' '));
  if (const std::size_t colon = word.find(':'); colon != std::string::npos) {
    word = word.substr(colon + 1);
  }
  return std::max(parse_number<int>(word).value_or(0), 0);
}

struct LauncherFlag {
  std::string_view name;
  int LaunchArguments::*count;
};
constexpr LauncherFlag launcher_flags[] = {
    {"nnodes", &LaunchArguments::machines},
    {"num-nodes", &LaunchArguments::machines},
    {"nodes", &LaunchArguments::machines},
    {"N", &LaunchArguments::machines},
    {"nproc-per-node", &LaunchArguments::devices_each},
    {"num-gpus", &LaunchArguments::devices_each},
    {"gpus-per-node", &LaunchArguments::devices_each},
    {"ntasks-per-node", &LaunchArguments::devices_each},
};

void take_launcher(const LaunchArgument& one, LaunchArguments& all) {
  const std::string name = plain(one.name);
  for (const LauncherFlag& flag : launcher_flags) {
    if (flag.name == name && !is_unknown_word(one.value)) all.*flag.count = count_in(one.value);
  }
}

// The launcher's own flags end at the program.
std::size_t program_of(const ShellCommand& command) {
  const auto found =
      std::find_if(command.words.begin(), command.words.end(), [](const std::string& word) {
        return word.ends_with(".py") || word == "-m" || word.ends_with("/train");
      });
  return static_cast<std::size_t>(found - command.words.begin());
}

bool trains(const ShellCommand& command) {
  constexpr std::string_view told_by[] = {"num-layers", "hidden-size", "micro-batch-size",
                                          "tensor-model-parallel-size",
                                          "pipeline-model-parallel-size"};
  const std::vector<LaunchArgument> all = arguments_of(command);
  return std::any_of(all.begin(), all.end(), [&](const LaunchArgument& one) {
    return std::find(std::begin(told_by), std::end(told_by), plain(one.name)) != std::end(told_by);
  });
}

// Megatron-LM's programs whose model is no chain of blocks that attend to what is before them.
// Their arguments are those of a decoder, and would be read as one.
struct OtherModel {
  std::string_view program;
  std::string_view what;
};
constexpr OtherModel other_models[] = {
    {"pretrain_t5.py",
     "an encoder, and a decoder that attends to its output: two chains of blocks, and one chain is "
     "priced"},
    {"pretrain_bert.py",
     "an encoder, whose tokens attend to those behind them, too; price its config.json, "
     "model:path/config.json, with the run's degrees as flags"},
    {"pretrain_ict.py", "two encoders of a retriever"},
    {"pretrain_retro.py", "blocks that attend to text which a retriever found"},
    {"pretrain_vlm.py",
     "a language model behind an encoder of images; price the two by --encoder and the model's "
     "sizes"},
    {"pretrain_vision_classify.py", "a model of images"},
    {"pretrain_vision_dino.py", "a model of images"},
    {"pretrain_vision_inpaint.py", "a model of images"}};

// `name` may be a path.
void refuse_other_models(const std::string& name, const ShellCommand& run,
                         const std::string& file) {
  for (const OtherModel& other : other_models) {
    if (!name.ends_with(other.program)) continue;
    throw TraceError(file, fmt::format("line {}", run.line),
                     fmt::format("{} trains {}", other.program, other.what));
  }
}

// #SBATCH --nodes=4
void take_batch_directives(const std::string& text, LaunchArguments& all) {
  constexpr std::string_view mark = "#SBATCH ";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::size_t from = at + mark.size();
    ShellCommand directive;
    std::string line = text.substr(from, text.find('\n', from) - from);
    line = line.substr(0, line.find(" #"));
    for (std::size_t begin = 0; (begin = line.find_first_not_of(" \t\r", begin)) < line.size();) {
      const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
      directive.words.push_back(line.substr(begin, end - begin));
      begin = end;
    }
    for (const LaunchArgument& one : arguments_of(directive)) take_launcher(one, all);
  }
}

}  // namespace

LaunchArguments read_script(const std::string& text, const std::string& file,
                            const LaunchAdditions& additions) {
  LaunchArguments all;
  all.file = file;
  take_batch_directives(text, all);
  const std::vector<ShellCommand> commands = shell_commands(text, file, additions);
  const ShellCommand* run = nullptr;
  for (const ShellCommand& command : commands) {
    if (!trains(command)) continue;
    if (run != nullptr) {
      throw TraceError(file, fmt::format("line {}", command.line),
                       fmt::format("this is a second command with the arguments of a training, "
                                   "after line {}; keep one of them in the file",
                                   run->line));
    }
    run = &command;
  }
  if (run == nullptr) {
    throw TraceError(file, "",
                     "no command has the arguments of a training, such as --num-layers and "
                     "--micro-batch-size; give the script that launches it, or its command line");
  }
  const std::size_t program = program_of(*run);
  ShellCommand launcher = *run;
  ShellCommand own = *run;
  if (program < run->words.size()) {
    refuse_other_models(run->words[program], *run, file);
    launcher.words.resize(program);
    const bool module = run->words[program] == "-m";
    const std::size_t first = std::min(program + (module ? 2 : 1), run->words.size());
    own.words.erase(own.words.begin(), own.words.begin() + static_cast<std::ptrdiff_t>(first));
    for (const LaunchArgument& one : arguments_of(launcher)) take_launcher(one, all);
  }
  all.given = arguments_of(own);
  return all;
}

}  // namespace stageline
