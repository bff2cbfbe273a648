#!/usr/bin/env python3
"""Does every class of our headers have a name of its own?

Two of one name in one program are a silent mistake (the linker keeps the functions of either one), and
only the sanitizers would see it. usage: one_definition.py ROOT
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("sim", "schedulers", "cost_models", "traces", "tools")
HEAD = re.compile(r"(?:template <[^>]*>\s*)?(?:struct|class|enum class) "
                  r"(?:alignas\([^)]*\) )?(\w+)[^;]*\{")
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")


def main():
    root = pathlib.Path(sys.argv[1])
    where = collections.defaultdict(list)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.hpp")):
            namespace = ""
            for line in file.read_text().splitlines():
                if opened := NAMESPACE.match(line):
                    namespace = opened[1]
                found = HEAD.match(line)  # at the margin: not nested in another class
                if found:
                    where[f"{namespace}::{found[1]}"].append(str(file.relative_to(root)))
    twice = {name: files for name, files in where.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in {' and in '.join(files)}")
    if len(where) < 100:
        print(f"only {len(where)} classes were found: this script does not read the headers any more")
        return 1
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
