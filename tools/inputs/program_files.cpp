#include "tools/inputs/program_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "schedulers/partition/layout_list.hpp"
#include "schedulers/partition/megatron.hpp"
#include "sim/base/errors.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provided_files.hpp"
#include "traces/pipedream/plans.hpp"
#include "traces/programs.hpp"
#include "traces/simai/workload.hpp"

namespace stageline {
namespace {

using Notes = std::vector<std::string>;

Notes write_own(const Export& what) {
  write_file(what.out, print(what.program));
  return {};
}

// Behind comments and blanks.
bool is_own(std::string_view text) {
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos && text[at] == '#') {
    at = text.find('\n', at);
  }
  return at != std::string::npos && text.substr(at).starts_with("stageline-program");
}

ReadProgram read_own(const std::string& text, TextPlaces* places) {
  return {places == nullptr ? parse_program(text) : parse_program(text, *places), {}};
}

template <PytorchForm form>
Notes write_pytorch(const Export& what) {
  write_file(what.out, write_pytorch_schedule(what.program, form));
  return lost_in_pytorch(what.program, form);
}

ReadProgram read_pytorch(const std::string& text, TextPlaces*) {
  return read_pytorch_schedule(text);
}

Notes write_megatron_layout(const Export& what) {
  write_file(what.out,
             write_megatron(what.outcome->plan.partition, what.program.placement, *what.model));
  return {};
}

Notes write_pipedream(const Export& what) {
  write_file(what.out, write_pipedream_runtime(what.program));
  return lost_in_pipedream(what.program);
}

// A layer that a Megatron layout puts into an empty stage is no module.
Partition without_passes(Partition partition, const Model& model) {
  std::size_t kept = 0;
  for (std::size_t l = 0; l < partition.stage_of.size(); ++l) {
    if (model.layers[l].kind != pass_kind) partition.stage_of[kept++] = partition.stage_of[l];
  }
  partition.stage_of.resize(kept);
  return partition;
}

Notes write_torchgpipe(const Export& what) {
  write_file(what.out,
             write_torchgpipe_balance(without_passes(what.outcome->plan.partition, *what.model),
                                      what.program.placement));
  return {};
}

Notes write_chakra_files(const Export& what) {
  if (what.out == "-") {
    throw UsageError(
        "chakra is one file a device, so standard output cannot hold it; --out PREFIX makes "
        "PREFIX.0.et, PREFIX.1.et, …");
  }
  if (what.program.settings.data_ranks > 1) {
    throw UsageError(fmt::format(
        "chakra has the traces of all ranks, and the program is that of one of {} data-parallel "
        "ones; --all-pipelines writes all of them",
        what.program.settings.data_ranks));
  }
  const ChakraTraces traces = write_chakra(what.program, what.outcome->costs);
  for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
    write_file(fmt::format("{}.{}.et", what.out, rank), traces.ranks[rank]);
  }
  if (!traces.groups.empty()) write_file(what.out + ".groups.json", traces.groups);
  return {};
}

Notes write_simai(const Export& what) {
  write_file(what.out, write_workload(*what.model));
  return lost_in_workload(*what.model);
}

constexpr std::string_view chakra_ending = ".et";

bool is_chakra_file(const std::string& path) { return path.ends_with(chakra_ending); }

// The files of all ranks, of which the path names one: PREFIX.2.et.
std::vector<NamedText> chakra_ranks(const std::string& path) {
  const std::string stem = path.substr(0, path.size() - chakra_ending.size());
  const std::size_t number = stem.find_last_not_of("0123456789") + 1;
  if (number < 2 || number == stem.size() || stem[number - 1] != '.') {
    throw UsageError(fmt::format(
        "{} is no file of a rank, of which Chakra has one each: PREFIX.0.et, PREFIX.1.et, …; rename "
        "them so, and name the first",
        path));
  }
  std::vector<NamedText> ranks;
  for (std::size_t rank = 0;; ++rank) {
    const std::string file = fmt::format("{}{}{}", stem.substr(0, number), rank, chakra_ending);
    if (rank > 0 && !is_regular_input(file)) return ranks;
    ranks.push_back({file, read_file(file)});
  }
}

// In the order of messages and help. The first one reads what none recognises.
constexpr ProgramFormat program_table[] = {
    {"slp", "our own text", false, false, write_own, is_own, read_own},
    {"pytorch", "PyTorch's schedule CSV, compute only", false, true,
     write_pytorch<PytorchForm::compute_only>, looks_like_pytorch_schedule, read_pytorch},
    {"pytorch-comms", "PyTorch's schedule CSV with messages", false, true,
     write_pytorch<PytorchForm::compute_comms>},
    {"megatron", "Megatron's pipeline layout", true, false, write_megatron_layout},
    {"pipedream", "PipeDream's runtime configuration", false, false, write_pipedream},
    {"torchgpipe", "torchgpipe's balance", true, false, write_torchgpipe},
    {"chakra", "Chakra execution traces, one file a device", true, false, write_chakra_files},
    {"simai", "SimAI's workload, the layers of one rank", true, false, write_simai},
};

const ProgramFormat* format_of(std::string_view beginning) {
  for (const ProgramFormat& format : program_table) {
    if (format.recognises != nullptr && format.recognises(beginning)) return &format;
  }
  return nullptr;
}

}  // namespace

ReadProgram parse_program_text(const std::string& text, TextPlaces* places) {
  const ProgramFormat* const format = format_of(text);
  return (format == nullptr ? program_table[0] : *format).read(text, places);
}

Program read_program(const std::string& path, bool quiet, TextPlaces* places) {
  try {
    ReadProgram read = is_chakra_file(path) ? read_chakra(chakra_ranks(path))
                                            : parse_program_text(read_text(path), places);
    // Standard error may be closed or full: then the notes are lost.
    for (const std::string& note : read.notes) {
      if (!quiet)
        std::fputs(visible_lines(fmt::format("note: {}: {}\n", path, note)).c_str(), stderr);
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

void keep_compute(Program& program) {
  for (auto& list : program.ops) {
    std::erase_if(list, [](Op op) {
      return lane_of(op.kind) != LaneKind::compute || op.kind == OpKind::update;
    });
  }
}

bool is_program_file(const std::string& path) {
  if (is_chakra_file(path) && is_regular_input(path)) return true;
  return is_program_text(read_beginning(path, 4096));
}

bool is_program_text(std::string_view text) { return format_of(text.substr(0, 4096)) != nullptr; }

std::string partition_text(const std::string& text) {
  std::string layout = read_beginning(text, std::size_t{1} << 20);
  if (is_layout_list(layout)) {
    std::replace(layout.begin(), layout.end(), '\n', ' ');
    return trimmed_layout(layout);
  }
  if (std::string ranges = ranges_of_plan(layout, text); !ranges.empty()) return ranges;
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

std::span<const ProgramFormat> program_formats() { return program_table; }

const ProgramFormat& parse_program_format(const std::string& text) {
  std::vector<std::string> names;
  for (const ProgramFormat& format : program_table) {
    if (format.name == text) return format;
    names.emplace_back(format.name);
  }
  throw UsageError(fmt::format("--format is one of {} (not \"{}\"{})", fmt::join(names, ", "), text,
                               did_you_mean(text, names)));
}

}  // namespace stageline
