// Programs and cuts as files; a format is recognised by what is in the file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "tools/study/outcome.hpp"
#include "traces/programs.hpp"

namespace stageline {

/// A program in any format that is read; "-" is standard input. What the reader assumed or left out
/// goes to standard error as notes, unless `quiet`. Throws UsageError, and ProgramError that begins
/// with the file's name. `places`, if any, gets the line and column of everything in our own text,
/// and stays empty for other formats.
Program read_program(const std::string& path, bool quiet, TextPlaces* places = nullptr);

/// The same, and validate(): every error names the file.
Program read_valid_program(const std::string& path, bool quiet);

/// What read_program() reads, of a text in any format. Its errors name no file.
ReadProgram parse_program_text(const std::string& text, TextPlaces* places = nullptr);

/// Removes messages, copies and updates: what is left is as a scheduler writes it.
void keep_compute(Program& program);

/// Whether there is such a file and it holds a program; for names that may also be of a trace.
bool is_program_file(const std::string& path);

/// The same of a text.
bool is_program_text(std::string_view text);

/// The text of --partition: of a file that holds a Megatron layout, that layout, of one with a plan
/// for torchgpipe or PipeDream its ranges of layers; else as it is. Throws TraceError.
std::string partition_text(const std::string& text);

/// The model with layers for the empty stages of a Megatron layout that --partition gives; else as
/// it is. Throws what with_empty_stages throws.
Model cut_by_layout(Model model, const std::string& partition);

/// What is written, and what an exporter may ask beside the program; null where `needs_trace` is
/// false.
struct Export {
  const std::string& out;  // a file; "-": standard output; of chakra a prefix of names
  const Program& program;
  const Outcome* outcome = nullptr;
  const Model* model = nullptr;
};

/// A format of program files. A new one is a line of the table in tools/inputs/program_files.cpp.
struct ProgramFormat {
  std::string_view name;
  std::string_view summary;
  bool needs_trace = false;      // is made from layers and costs, and not from the program alone
  bool places_messages = false;  // places messages and updates itself
  /// Returns what the format cannot express, one sentence each. Throws UsageError where the format
  /// cannot hold the program.
  std::vector<std::string> (*write)(const Export& what) = nullptr;
  /// Whether the beginning of a file is of this format. Null where the format is not read.
  bool (*recognises)(std::string_view beginning) = nullptr;
  /// Throws ProgramError. `places`: see read_program().
  ReadProgram (*read)(const std::string& text, TextPlaces* places) = nullptr;
};
std::span<const ProgramFormat> program_formats();

/// Throws UsageError, with the nearest name.
const ProgramFormat& parse_program_format(const std::string& text);

}  // namespace stageline
