// Programs and cuts as files in any format that we know, told apart by what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// A program from our own text or from PyTorch's schedule CSV; "-" is standard input. What the
/// reader took for granted or left out goes to standard error as notes, unless `quiet`. Throws
/// UsageError, and ProgramError that begins with the file's name. `places`, if any, gets where
/// everything stood in our own text, and stays empty for a CSV.
Program read_program(const std::string& path, bool quiet, TextPlaces* places = nullptr);

/// The same, and validate(): whatever is wrong with it names the file.
Program read_valid_program(const std::string& path, bool quiet);

/// Whether there is such a file and it holds a program; for names that may also be a trace.
bool is_program_file(const std::string& path);

/// The text of --partition: of a file that holds a Megatron layout, that layout; else as it is.
std::string partition_text(const std::string& text);

/// The model with layers for the empty stages of a Megatron layout that --partition gives; else as
/// it is. Throws what with_empty_stages throws.
Model cut_by_layout(Model model, const std::string& partition);

enum class ProgramFormat : std::uint8_t {
  slp,
  pytorch,
  pytorch_comms,
  megatron,
  pipedream,
  torchgpipe,
  chakra,
};
std::string_view name(ProgramFormat format);
const std::vector<std::string>& program_format_names();

/// Throws UsageError, with the nearest name.
ProgramFormat parse_program_format(const std::string& text);

/// Whether the format is made from layers and costs, and not from the program alone.
bool needs_trace(ProgramFormat format);

/// Writes a program to `out` ("-": standard output; of chakra a prefix of names). `outcome` and
/// `model` may be null for what needs_trace() is false of. Returns what the format does not say,
/// one sentence each. Throws UsageError where the format cannot hold it.
std::vector<std::string> write_program(ProgramFormat format, const std::string& out,
                                       const Program& program, const Outcome* outcome,
                                       const Model* model);

}  // namespace stageline
