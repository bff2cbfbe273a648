// A run of another framework as the question that `stageline simulate` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/launch/run_facts.hpp"

namespace stageline {

/// What no file of a run says.
struct RunAround {
  std::string model{};  // "llama3-8b", or a path/config.json; empty: the sizes in the file
  std::string device = "h100";
  bool device_said = false;                   // by the run itself
  std::string_view device_flag = "--device";  // how a face asks for it
  std::string cluster{};  // empty: machines of the device, as many as are needed
  int devices = 0;        // 0: as the file says
};

struct RunSetting {
  /// Keys of the table of settings with their values, in the order of a command.
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::string> notes;  // what was assumed and left out, a sentence each
};

/// Throws TraceError, with the argument, where the file does not say enough, or what Stageline
/// cannot price.
RunSetting setting_of(const RunFacts& facts, const RunAround& around);

/// "stageline simulate model:… --tp 8 …", each value one word of a POSIX shell.
std::string command_of(const RunSetting& setting);
/// The same as a request in JSON (tools/answers/request.schema.json), with a line at its end.
std::string request_of(const RunSetting& setting);

}  // namespace stageline
