#include "tools/inputs/program_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "schedulers/partition/megatron.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/files.hpp"
#include "traces/programs.hpp"

namespace stageline {
namespace {

// "" where there is no such regular file.
std::string beginning_of(const std::string& path, std::size_t most) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  std::ifstream in(path, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(as_size(in.gcount()));
  return without_mark(std::move(text), path);
}

void write_chakra_files(const std::string& prefix, const Program& program, const Costs& costs) {
  if (prefix == "-") {
    throw UsageError(
        "chakra is one file a device, so standard output cannot hold it; --out PREFIX makes "
        "PREFIX.0.et, PREFIX.1.et, …");
  }
  const ChakraTraces traces = write_chakra(program, costs);
  for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
    write_file(fmt::format("{}.{}.et", prefix, rank), traces.ranks[rank]);
  }
  if (!traces.groups.empty()) write_file(prefix + ".groups.json", traces.groups);
}

}  // namespace

Program read_program(const std::string& path, bool quiet, TextPlaces* places) {
  const std::string text = read_text(path);
  try {
    if (!looks_like_pytorch_schedule(text)) {
      return places == nullptr ? parse_program(text) : parse_program(text, *places);
    }
    ReadProgram read = read_pytorch_schedule(text);
    // Standard error may be closed or full: then there is no one to tell.
    for (const std::string& note : read.notes) {
      if (!quiet) std::fputs(fmt::format("note: {}: {}\n", path, note).c_str(), stderr);
    }
    return std::move(read.program);
  } catch (const ProgramError& error) {
    throw ProgramError(fmt::format("{}: {}", path, error.what()), error.device, error.position,
                       error.figure);
  }
}

Program read_valid_program(const std::string& path, bool quiet) {
  Program program = read_program(path, quiet);
  try {
    validate(program);
  } catch (const ProgramError& error) {
    throw ProgramError(fmt::format("{}: {}", path, error.what()), error.device, error.position,
                       error.figure);
  }
  return program;
}

bool is_program_file(const std::string& path) {
  const std::string text = beginning_of(path, 4096);
  if (looks_like_pytorch_schedule(text)) return true;
  // Behind comments and blanks.
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos && text[at] == '#') {
    at = text.find('\n', at);
  }
  return at != std::string::npos && text.compare(at, 17, "stageline-program") == 0;
}

std::string partition_text(const std::string& text) {
  std::string layout = beginning_of(text, std::size_t{1} << 20);
  layout.erase(layout.find_last_not_of(" \t\r\n") + 1);
  const bool one_line = layout.find('\n') == std::string::npos;
  return one_line && looks_like_megatron(layout) ? layout : text;
}

Model cut_by_layout(Model model, const std::string& partition) {
  const std::string text = partition_text(partition);
  const bool named = std::any_of(model.layers.begin(), model.layers.end(), [&](const Layer& layer) {
    return layer.name == text || layer.name.find('|') != std::string::npos;
  });
  if (named || !looks_like_megatron(text)) return model;
  return with_empty_stages(text, std::move(model));
}

std::string_view name(ProgramFormat format) { return nth(program_format_names(), format); }

const std::vector<std::string>& program_format_names() {
  static const std::vector<std::string> names{
      "slp", "pytorch", "pytorch-comms", "megatron", "pipedream", "torchgpipe", "chakra"};
  return names;
}

ProgramFormat parse_program_format(const std::string& text) {
  const std::vector<std::string>& names = program_format_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw UsageError(fmt::format("--format is one of {} (not \"{}\"{})", fmt::join(names, ", "),
                                 text, did_you_mean(text, names)));
  }
  return static_cast<ProgramFormat>(found - names.begin());
}

bool needs_trace(ProgramFormat format) {
  switch (format) {
    case ProgramFormat::slp:
    case ProgramFormat::pytorch:
    case ProgramFormat::pytorch_comms:
    case ProgramFormat::pipedream:
      return false;
    case ProgramFormat::megatron:
    case ProgramFormat::torchgpipe:
    case ProgramFormat::chakra:
      return true;
  }
  return true;
}

std::vector<std::string> write_program(ProgramFormat format, const std::string& out,
                                       const Program& program, const Outcome* outcome,
                                       const Model* model) {
  switch (format) {
    case ProgramFormat::slp:
      write_file(out, print(program));
      return {};
    case ProgramFormat::pytorch:
      write_file(out, write_pytorch_schedule(program, PytorchForm::compute_only));
      return lost_in_pytorch(program, PytorchForm::compute_only);
    case ProgramFormat::pytorch_comms:
      write_file(out, write_pytorch_schedule(program, PytorchForm::compute_comms));
      return lost_in_pytorch(program, PytorchForm::compute_comms);
    case ProgramFormat::megatron:
      write_file(out, write_megatron(outcome->plan.partition, program.placement, *model));
      return {};
    case ProgramFormat::pipedream:
      write_file(out, write_pipedream_runtime(program));
      return {};
    case ProgramFormat::torchgpipe:
      write_file(out, write_torchgpipe_balance(outcome->plan.partition, program.placement));
      return {};
    case ProgramFormat::chakra:
      write_chakra_files(out, program, outcome->costs);
      return {};
  }
  return {};
}

}  // namespace stageline
