#include "tools/commands/deliver.hpp"

#include <algorithm>

#include "tools/base/files.hpp"
#include "tools/commands/terminal.hpp"

namespace stageline::cli {

bool is_silent(const Outputs& outputs) {
  std::vector<OutputFile> files{{"--json", outputs.json}};
  for (const OutputFile& picture : picture_files(outputs.svg)) files.push_back(picture);
  files.insert(files.end(), outputs.others.begin(), outputs.others.end());
  files.push_back({"--html", outputs.html});
  return to_stdout(files);
}

void check_outputs(const Outputs& outputs) {
  check_pictures(outputs.svg);
  is_silent(outputs);
}

std::string note_lines(const std::vector<std::string>& notes) {
  std::string lines;
  for (const std::string& note : notes) lines += "note: " + note + "\n";
  return lines;
}

void deliver(const Outputs& outputs, const Forms& forms) {
  if (!outputs.json.empty()) write_file(outputs.json, forms.json());
  if (any_picture(outputs.svg) && forms.svg) {
    write_pictures(outputs.svg, picture(outputs.svg, forms.svg));
  }
  if (!outputs.html.empty()) write_file(outputs.html, report::page_html(forms.page()));
  if (is_silent(outputs)) return;
  if (forms.text) show("{}", forms.text());
  if (outputs.quiet) return;
  if (forms.notes) print_notes(forms.notes());
  if (!forms.hint.empty()) print_wrapped("hint: " + forms.hint + "\n");
  std::vector<OutputFile> files = picture_files(outputs.svg);
  files.push_back({"--html", outputs.html});
  for (const OutputFile& one : files) {
    const bool named =
        std::find(forms.wrote.begin(), forms.wrote.end(), one.flag) != forms.wrote.end();
    if (named && !one.file.empty()) show("wrote {}\n", one.file);
  }
}

}  // namespace stageline::cli
