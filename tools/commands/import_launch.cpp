// stageline import megatron, megatron-bridge, torchtitan, deepspeed, nemo: the question of a run.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/base/files.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/launch/run_setting.hpp"

namespace stageline::cli {
namespace {

struct LaunchFlags {
  std::string file;
  RunAround around;
  std::vector<std::string> additions;
  std::string out;
  bool quiet = false;
};

int import_launch(Framework framework, const LaunchFlags& flags) {
  const LaunchAdditions additions = parse_additions(flags.additions);
  const LaunchArguments arguments =
      read_arguments(framework, read_text(flags.file), flags.file, additions);
  const RunSetting setting = setting_of(RunFacts(framework, arguments, additions), flags.around);
  const bool request = flags.out.ends_with(".json");
  const std::string text = request ? request_of(setting) : command_of(setting) + "\n";
  const bool to_stdout = flags.out.empty() || flags.out == "-";
  write_file(to_stdout ? "-" : flags.out, text);
  if (flags.quiet) return 0;
  for (const std::string& note : setting.notes) {
    const std::string line = wrapped("note: " + note + "\n", text_width());
    show(to_stdout ? stderr : stdout, "{}", line);
  }
  if (!to_stdout) show("wrote {}\n", flags.out);
  return 0;
}

template <Framework framework>
void add_import_launch(Flags command) {
  const auto flags = std::make_shared<LaunchFlags>();
  command
      .option("FILE", flags->file,
              framework == Framework::megatron
                  ? "the script that launches it, or its command line; - for stdin"
                  : "the configuration of the run; - for stdin")
      .required();
  command.option("--model", flags->around.model,
                 "the model by its name (llama3-8b) or a path/config.json, instead of its sizes in "
                 "the file");
  command.option("--device", flags->around.device, "what it runs on: h100, a100, b200, …")
      .default_shown();
  command.option("--cluster", flags->around.cluster,
                 "as `stageline simulate` takes it; default: machines of the device, as many as "
                 "are needed");
  command.option("--devices", flags->around.devices, "how many; default: as the file says")
      .range(1, 1 << 20);
  command
      .option("--set", flags->additions,
              "NAME=VALUE: a variable of the script, or an argument by the framework's name; "
              "repeatable")
      .repeatable();
  command
      .option("--out,-o", flags->out,
              "file to write, a request in JSON where it ends in .json, else the command; default: "
              "stdout")
      .writes_file();
  command.flag("--quiet", flags->quiet, "print no notes");
  command.footer(fmt::format(
      "Example:\n  stageline import {} {}\n"
      "The command of `stageline simulate` that asks for the same run; notes say what was assumed "
      "and what was left out.",
      name(framework),
      framework == Framework::megatron     ? "train.sh --device h100"
      : framework == Framework::torchtitan ? "llama3_8b.toml --devices 64"
      : framework == Framework::deepspeed  ? "ds_config.json --model llama3-8b --devices 64"
                                           : "config.yaml --devices 64"));
  command.runs([flags] { return import_launch(framework, *flags); });
}

}  // namespace

extern const Command import_megatron_command;
const Command import_megatron_command = {"megatron",
                                         "Read a script that launches Megatron-LM as a question",
                                         add_import_launch<Framework::megatron>, "import"};

extern const Command import_megatron_bridge_command;
const Command import_megatron_bridge_command = {
    "megatron-bridge", "Read a configuration of Megatron-Bridge (YAML) as a question",
    add_import_launch<Framework::megatron_bridge>, "import"};

extern const Command import_torchtitan_command;
const Command import_torchtitan_command = {
    "torchtitan", "Read a configuration of torchtitan (TOML or Python) as a question",
    add_import_launch<Framework::torchtitan>, "import"};

extern const Command import_deepspeed_command;
const Command import_deepspeed_command = {"deepspeed",
                                          "Read a configuration of DeepSpeed (JSON) as a question",
                                          add_import_launch<Framework::deepspeed>, "import"};

extern const Command import_nemo_command;
const Command import_nemo_command = {"nemo", "Read a configuration of NeMo (YAML) as a question",
                                     add_import_launch<Framework::nemo>, "import"};

}  // namespace stageline::cli
