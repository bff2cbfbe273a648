// The arguments in a log:
//
//   ------------------------ arguments ------------------------        Megatron-LM
//     num_layers ...................................... 32
//   -------------------- end of arguments ---------------------
//   … Running with configs: {"parallelism": {…}, …}                    torchtitan
//   …   json = {"train_batch_size": 64, …}                             DeepSpeed
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/flag_table.hpp"
#include "tools/launch/launched_run.hpp"

namespace stageline {
namespace {

constexpr std::string_view megatron_begin = "- arguments -";
constexpr std::string_view megatron_end = "- end of arguments -";

struct PrintedMark {
  Framework framework;
  std::string_view words;
};
// pytorch/torchtitan torchtitan/train.py and config/job_config.py, deepspeed runtime/config.py,
// read 2026-11-29.
constexpr std::array printed_marks{PrintedMark{Framework::torchtitan, "Running with args: {"},
                                   PrintedMark{Framework::torchtitan, "Running with config: {"},
                                   PrintedMark{Framework::torchtitan, "Running with configs: {"},
                                   PrintedMark{Framework::deepspeed, "  json = {"}};

// "[rank0]:" or "[default0]:" of torchrun, without which the line is as it was printed; empty of
// another rank.
std::optional<std::string_view> of_first_rank(std::string_view line) {
  for (const std::string_view mark : {"[rank", "[default"}) {
    if (!line.starts_with(mark)) continue;
    std::string_view rest = line.substr(mark.size());
    const std::optional<int> rank = take_number<int>(rest);
    if (!rank || !rest.starts_with("]:")) continue;
    if (*rank > 0) return std::nullopt;
    return rest.substr(2);
  }
  return line;
}

std::string lines_of_first_rank(const std::string& log) {
  std::string text;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    if (const auto line = of_first_rank(std::string_view(log).substr(at, end - at))) {
      text += *line;
      text += '\n';
    }
    at = end + 1;
  }
  return text;
}

// Python's "['p2p']", "(4096, 0)" and "AttnBackend.auto" as a command line has them.
std::string as_typed(std::string value) {
  constexpr std::string_view of_backends = "AttnBackend.";
  if (value.starts_with(of_backends)) value.erase(0, of_backends.size());
  if (value.empty() || (value[0] != '[' && value[0] != '(')) return value;
  std::erase_if(value, [](char c) {
    return c == '[' || c == ']' || c == '(' || c == ')' || c == '\'' || c == ',';
  });
  return value;
}

// "0 0 0 1 1" as "([0]*3+[1]*2)".
std::string as_frequency(const std::string& blocks) {
  if (blocks.find(' ') == std::string::npos) return blocks;
  const std::string_view all(blocks);
  const std::size_t first = std::min(all.find('1'), all.size());
  if (all.find('0', first) != std::string_view::npos) return blocks;
  return fmt::format("([0]*{}+[1]*{})", std::count(blocks.begin(), blocks.end(), '0'),
                     std::count(blocks.begin(), blocks.end(), '1'));
}

// "  num_layers ...... 32"; empty: another line.
std::optional<LaunchArgument> megatron_argument(std::string_view line) {
  const std::size_t from = line.find_first_not_of(' ');
  if (from == std::string_view::npos) return std::nullopt;
  const std::size_t name_end = line.find(' ', from);
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::size_t dots = line.find_first_not_of(' ', name_end);
  if (dots == std::string_view::npos || line[dots] != '.') return std::nullopt;
  const std::size_t value = line.find_first_not_of(" .", dots);
  // A value may begin with a dot: ".1" is none that Python prints.
  if (value == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find_last_not_of(" \r") + 1;
  return LaunchArgument{std::string(line.substr(from, name_end - from)),
                        as_typed(std::string(line.substr(value, end - value))), ""};
}

// Megatron-LM has these on unless a flag says otherwise, so that they are no news.
bool is_on_by_default(std::string_view name) {
  return name.ends_with("_fusion") || name.starts_with("overlap_p2p_") ||
         name.starts_with("tp_comm_") || name.starts_with("align_");
}

bool is_on(const std::string& value) { return value == "True" || value == "true"; }

// Whether an argument of a list with all defaults is read: what is known, and what changes times
// and is on.
bool counts(Framework framework, const LaunchArgument& argument) {
  if (find_launch_flag(framework, argument.name) != nullptr) return true;
  return is_on(argument.value) && !is_on_by_default(argument.name) &&
         effect_of(framework, argument.name) == LaunchEffect::left_out;
}

// " > padded vocab (size: 32000) with 0 dummy tokens (new size: 32000)"
std::string padded_vocab(const std::string& text) {
  const std::size_t line = text.find("padded vocab (size:");
  constexpr std::string_view words = "new size: ";
  const std::size_t at = line == std::string::npos ? line : text.find(words, line);
  if (at == std::string::npos) return "";
  std::string_view rest = std::string_view(text).substr(at + words.size());
  const std::optional<int> rows = take_number<int>(rest);
  return rows ? fmt::format("{}", *rows) : "";
}

LaunchedRun megatron_run(const std::string& text, std::size_t begin, const std::string& file) {
  LaunchedRun run;
  run.arguments.file = file;
  const std::size_t end = text.find(megatron_end, begin);
  if (end == std::string::npos) {
    throw TraceError(file, "",
                     "the list of arguments has no end (\"end of arguments\"); give the whole log");
  }
  bool experts = false;
  for (std::size_t at = text.find('\n', begin) + 1; at < end;) {
    const std::size_t stop = std::min(text.find('\n', at), end);
    auto one = megatron_argument(std::string_view(text).substr(at, stop - at));
    at = stop + 1;
    if (!one) continue;
    if (one->name == "world_size") {
      run.arguments.devices_each = parse_number<int>(one->value).value_or(0);
    }
    if (one->name == "num_experts") experts = one->value != "None";
    if (one->name == "moe_layer_freq") one->value = as_frequency(one->value);
    if (counts(run.framework, *one)) run.arguments.given.push_back(*std::move(one));
  }
  if (!experts) {
    std::erase_if(run.arguments.given, [](const LaunchArgument& one) {
      return one.name.starts_with("moe_") || one.name.starts_with("expert_");
    });
  }
  if (const std::string vocab = padded_vocab(text); !vocab.empty()) {
    run.arguments.given.push_back({"padded_vocab_size", vocab, ""});
  }
  return run;
}

// The object that begins there, with its braces; empty where it does not end.
std::string object_at(const std::string& text, std::size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return text.substr(begin, at + 1 - begin);
  }
  return "";
}

// "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]": 8; 0: not said.
int devices_of_mesh(const std::string& text) {
  const std::size_t line = text.find("device mesh with [");
  const std::size_t sizes = line == std::string::npos ? line : text.find("], [", line);
  if (sizes == std::string::npos || sizes > text.find('\n', line)) return 0;
  std::string_view rest = std::string_view(text).substr(sizes + 4);
  int product = 1;
  while (const std::optional<int> size = take_number<int>(rest)) {
    if (*size < 1 || product > (1 << 20) / *size) return 0;
    product *= *size;
    if (!rest.starts_with(", ")) return rest.starts_with(']') ? product : 0;
    rest.remove_prefix(2);
  }
  return 0;
}

// "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory": "h100", the first word of a letter
// and digits behind it; empty: not said.
std::string device_of_capacity(const std::string& text) {
  constexpr std::string_view words = " capacity: ";
  const std::size_t begin = text.find(words);
  if (begin == std::string::npos) return "";
  const std::size_t end = text.find(" with ", begin);
  if (end == std::string::npos || end > text.find('\n', begin)) return "";
  std::string word;
  for (std::size_t at = begin + words.size(); at <= end; ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (std::isalnum(c) != 0) {
      word += static_cast<char>(std::tolower(c));
      continue;
    }
    const bool digits = std::any_of(word.begin(), word.end(), [](char one) {
      return std::isdigit(static_cast<unsigned char>(one)) != 0;
    });
    if (digits && std::isalpha(static_cast<unsigned char>(word.front())) != 0) return word;
    word.clear();
  }
  return "";
}

LaunchedRun document_run(const PrintedMark& mark, std::size_t at, const std::string& text,
                         const std::string& file) {
  const std::string object = object_at(text, at + mark.words.size() - 1);
  if (object.empty()) {
    throw TraceError(
        file, "",
        fmt::format("the configuration behind \"{}\" has no end; give the whole log", mark.words));
  }
  LaunchedRun run{mark.framework, read_json_arguments(object, file)};
  std::erase_if(run.arguments.given, [&](const LaunchArgument& one) {
    return one.value.empty() || !counts(mark.framework, one);
  });
  run.arguments.devices_each = devices_of_mesh(text);
  run.device = device_of_capacity(text);
  return run;
}

}  // namespace

std::optional<LaunchedRun> printed_run(const std::string& log, const std::string& file) {
  const std::string text = lines_of_first_rank(log);
  if (const std::size_t at = text.find(megatron_begin); at != std::string::npos) {
    return megatron_run(text, at, file);
  }
  for (const PrintedMark& mark : printed_marks) {
    const std::size_t at = text.find(mark.words);
    if (at != std::string::npos) return document_run(mark, at, text, file);
  }
  return std::nullopt;
}

}  // namespace stageline
