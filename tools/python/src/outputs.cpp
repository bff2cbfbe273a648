// What is read, written and shown, by the rules of the command.
#include "tools/python/src/outputs.hpp"

#include <fmt/core.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/files.hpp"
#include "tools/base/outputs.hpp"
#include "tools/python/src/interrupt.hpp"
#include "tools/sweep/folder.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// An input may stand in the folder, so that they are compared apart.
void check_output(const std::string& call, const std::string& path,
                  const std::vector<std::string>& read, const std::optional<std::string>& folder) {
  CommandPaths paths;
  paths.files = {{call, path}};
  for (const std::string& file : read) paths.words.push_back({"the sweep", file});
  check_outputs(paths);
  if (!folder) return;
  paths.words.clear();
  for (const char* const form : sweep_folder_forms) {
    paths.patterns.push_back({"the sweep", pattern_of(form, *folder)});
  }
  check_outputs(paths);
}

std::string text_of(const std::string& path) {
  std::string text = without_lock([&] { return read_text(path); });
  if (!is_utf8(text)) {
    throw UsageError(fmt::format("cannot read \"{}\": it is not in UTF-8; save it as UTF-8", path));
  }
  return text;
}

}  // namespace

void bind_outputs(nb::module_& module) {
  module.def("check_output", &check_output, "call"_a, "path"_a, "read"_a, "folder"_a,
             "Raises UsageError where a file could not be written, was read, or is the folder's.");
  module.def("read_text", &text_of, "path"_a, "A text in UTF-8, without its mark.");
  module.def("visible", &visible, "text"_a, "As one line that cannot drive a terminal.");
  module.def(
      "write_file",
      [](const std::string& path, const nb::bytes& content) {
        const std::string bytes(content.c_str(), content.size());
        without_lock([&] { return write_file(path, bytes), 0; });
      },
      "path"_a, "content"_a,
      "Writes as the command does: whole or not at all, in place to a FIFO.");
}

}  // namespace stageline::python
