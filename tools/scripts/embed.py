#!/usr/bin/env python3
"""Writes the C++ tables of the bundled clusters and traces, from their files.

usage: embed.py OUTPUT HEADER [--table FUNCTION FILE...]...

Each --table becomes `const std::vector<Bundled>& FUNCTION()`, an entry per file, named like the file
without its folder and ending. A compiler need not take string literals past 65536 characters, so a
text is written as short pieces, which are joined when the table is first asked for.
"""
import pathlib
import sys

PIECE = 8000  # bytes of a file in one literal


def literal(data):
    """The bytes as a C++ string literal, broken after each line of the file."""
    text = ""
    for byte in data:
        character = chr(byte)
        if character in '"\\':
            text += "\\" + character
        elif character == "\n":
            text += '\\n"\n         "'
        elif 32 <= byte < 127:
            text += character
        else:
            text += f"\\{byte:03o}"
    return f'"{text}"'


def table(function, files):
    lines = [f"const std::vector<Bundled>& {function}() {{"]
    names = [pathlib.Path(file).stem for file in files]
    if len(set(names)) != len(names):
        sys.exit(f"embed.py: two files of {function} have the same name")
    if not files:
        return lines + ["  static const std::vector<Bundled> table;", "  return table;", "}", ""]
    lines.append("  static const std::vector<std::string> texts{")
    for file in files:
        data = pathlib.Path(file).read_bytes()
        pieces = [data[at:at + PIECE] for at in range(0, len(data), PIECE)] or [b""]
        lines.append("      join({" + ",\n         ".join(literal(piece) for piece in pieces) + "}),")
    lines.append("  };")
    lines.append("  static const std::vector<Bundled> table{")
    lines += [f'      {{"{name}", texts[{index}]}},' for index, name in enumerate(names)]
    return lines + ["  };", "  return table;", "}", ""]


def main(output, header, *rest):
    lines = ["// Generated from the files listed in traces/data/meson.build.", "#include <string>",
             "", f'#include "{header}"', "", "namespace stageline {", "namespace {", "",
             "[[maybe_unused]] std::string join(const std::vector<std::string_view>& pieces) {",
             "  std::string text;", "  for (const std::string_view piece : pieces) text += piece;",
             "  return text;", "}", "", "}  // namespace", ""]
    tables = []
    for word in rest:
        if word == "--table":
            tables.append([])
        else:
            tables[-1].append(word)
    for function, *files in tables:
        lines += table(function, files)
    lines += ["}  // namespace stageline"]
    pathlib.Path(output).write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
