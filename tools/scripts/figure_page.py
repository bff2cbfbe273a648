#!/usr/bin/env python3
"""The table of figures: writes it into tools/report/json/README.md, or checks that it is there.

usage: figure_page.py STAGELINE FILE            write the table into FILE, between its two marks
       figure_page.py --check STAGELINE FILE    exit 1, with the difference, if FILE has another one

The table is that of `stageline list --figures`.
"""
import difflib
import pathlib
import subprocess
import sys

BEGIN = "<!-- Written by `python3 tools/scripts/figure_page.py build/tools/stageline tools/report/json/README.md`. -->\n"
END = "<!-- End of the table of figures. -->\n"


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != (3 if check else 2):
        sys.exit(__doc__)
    stageline, file = arguments[-2:]
    table = subprocess.run([stageline, "list", "--figures"], capture_output=True, text=True, check=True).stdout
    page = pathlib.Path(file)
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"figure_page.py: {file} lacks the marks of the table, {BEGIN.strip()} and {END.strip()}")
    head, rest = text.split(BEGIN)
    wanted = head + BEGIN + table + END + rest.split(END)[1]
    if not check:
        page.write_text(wanted, encoding="utf-8")
        return
    if text != wanted:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True), file, "written anew"))
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
