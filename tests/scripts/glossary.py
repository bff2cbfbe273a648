#!/usr/bin/env python3
"""Does the glossary explain every column, cause and group of flags? glossary.py STAGELINE ROOT

Columns are those of the tables that compare and plan are made of, causes those of idle time and of a step, groups the
heads of every command's `--help all`. An entry of the glossary is the first cell of a row of its tables; several words
stand there with commas between.
"""
import pathlib
import re
import subprocess
import sys

PAGE = "tools/guide/glossary.md"
# What a word is, the file that has it, and how it stands there.
TABLES = (("column of compare", "tools/report/figure_table.cpp", r'\.title = "([^"]+)"'),
          ("column of plan", "tools/report/text/plan_columns.cpp", r'^ +\{\{"([^"]+)"'),
          ("cause of idle time", "sim/analysis/idle.cpp", r'case IdleKind::\w+:\s+return "([^"]+)"'),
          ("part of a step", "tools/study/whatif/waterfall.cpp", r'case StepCause::\w+:\s+return "([^"]+)"'))
FEWEST = {"column of compare": 20, "column of plan": 15, "cause of idle time": 9, "part of a step": 12,
          "group of flags": 9}
NO_GROUPS = {"Positionals", "Options", "Example", "Subcommands"}


def commands_of(stageline):
    said = subprocess.run([stageline, "--help"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return re.findall(r"^  ([a-z][a-z-]*)  ", said.split("Subcommands:")[1], re.M)


def groups_of(stageline):
    for command in commands_of(stageline):
        said = subprocess.run([stageline, command, "--help", "all"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout
        yield from re.findall(r"^([A-Z][A-Za-z ]*):$", said, re.M)


def entries_of(page):
    cells = re.findall(r"^\| ([^|]+?) \|", page.read_text(encoding="utf-8"), re.M)
    return {word for cell in cells for word in cell.split(", ")}


def main(stageline, root):
    words = {kind: set(re.findall(pattern, (root / file).read_text(encoding="utf-8"), re.M))
             for kind, file, pattern in TABLES}
    words["group of flags"] = set(groups_of(stageline)) - NO_GROUPS
    explained = entries_of(root / PAGE)
    faults = [f"{PAGE}: the {kind} \"{word}\" has no row" for kind, found in words.items()
              for word in sorted(found - explained)]
    faults += [f"{len(found)} words were found of the kind {kind}, and there are at least {FEWEST[kind]}"
               for kind, found in words.items() if len(found) < FEWEST[kind]]
    print("\n".join(faults) or f"{sum(len(found) for found in words.values())} words")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} STAGELINE ROOT")
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))
