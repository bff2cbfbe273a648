#!/usr/bin/env python3
"""Joins the modules of the page and embeds them, with the style sheets, in a C++ file.

usage: embed_page.py OUTPUT STYLE.css... MODULE.js...

The style sheets become one, and the modules one script, in the order given: a module stands behind those that it imports.
Imports and the word `export` are left out, so top-level names must be unique over all modules. The
hashes are those that a content security policy names.
"""
import base64
import hashlib
import pathlib
import re
import sys

PIECE = 8000  # bytes in one literal: a compiler need not take more than 65536 characters
IMPORT = re.compile(r"^import\s[^;]*?from\s+'\.[^']*/([^'/]+)';\n", re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:const|let|class|function)\b)", re.M)
NAME = re.compile(r"^(?:export )?(?:async )?(?:const|let|class|function\*?) +(\w+)", re.M)


def joined(modules):
    owner, text, seen = {}, "", set()
    for module in modules:
        source = module.read_text(encoding="utf-8")
        for name in NAME.findall(source):
            if owner.setdefault(name, module.name) != module.name:
                sys.exit(f"embed_page.py: {name} is in {owner[name]} and in {module.name}; "
                         "top-level names are unique over all modules")
        for other in IMPORT.findall(source):
            if other not in seen:
                sys.exit(f"embed_page.py: {module.name} imports {other}, which must stand before "
                         "it in meson.build")
        seen.add(module.name)
        source = EXPORT.sub("", IMPORT.sub("", source))
        left = re.search(r"^(?:import|export)\b.*", source, re.M)
        if left:
            sys.exit(f"embed_page.py: {module.name}: \"{left.group()}\" is no import or export "
                     "that can be joined; see the head of this script")
        text += source
    return text


def literal(data):
    special = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): '\\n"\n      "', ord("?"): "\\?"}
    return '"' + "".join(special.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
                         for byte in data) + '"'


def function(name, text):
    for mark in ("</script", "</style", "<!--", "\r"):
        if mark in text.lower():
            sys.exit(f"embed_page.py: {name}: \"{mark}\" would end or change the element around it")
    data = text.encode("utf-8")
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode("ascii")
    pieces = [data[at:at + PIECE] for at in range(0, len(data), PIECE)] or [b""]
    return [f"const WebText& {name}() {{", "  static const WebText text{join({",
            ",\n".join("      " + literal(piece) for piece in pieces) + "}),",
            f"      \"'sha256-{digest}'\"}};", "  return text;", "}", ""]


def main(output, *sources):
    styles = [pathlib.Path(source) for source in sources if source.endswith(".css")]
    modules = [pathlib.Path(source) for source in sources if not source.endswith(".css")]
    lines = ["// Generated from tools/report/page/web/.", "#include <string_view>", "#include <vector>",
             "", '#include "tools/report/page/web.hpp"', "", "namespace stageline::report {", "namespace {",
             "", "std::string join(const std::vector<std::string_view>& pieces) {",
             "  std::string text;", "  for (const std::string_view piece : pieces) text += piece;",
             "  return text;", "}", "", "}  // namespace", ""]
    lines += function("page_style", "".join(style.read_text(encoding="utf-8") for style in styles))
    lines += function("page_script", joined(modules))
    lines += ["}  // namespace stageline::report"]
    pathlib.Path(output).write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
