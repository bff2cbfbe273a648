#!/usr/bin/env python3
"""What --only NAME of tools/test means: select_tests.py BUILD NAME

Reads `meson introspect --tests --targets BUILD` from standard input. Prints "test" or "suite",
whichever NAME is, then the files to build for it, a line each. Exit code 2, with the names there
are, where it is neither.
"""
import json
import os
import sys


def suites_of(test):
    return [suite.partition(":")[2] for suite in test["suite"] if ":" in suite]


def main(build, name):
    said = json.load(sys.stdin)
    tests = said["tests"]
    chosen, kind = [test for test in tests if test["name"] == name], "test"
    if not chosen:
        chosen, kind = [test for test in tests if name in suites_of(test)], "suite"
    if not chosen:
        names = [test["name"] for test in tests if "golden" not in suites_of(test)]
        names += {suite: None for test in tests for suite in suites_of(test)}
        print(f"test: there is no test, suite or part \"{name}\"; there are: {', '.join(names)}, and "
              "the golden tests by the names in tests/golden", file=sys.stderr)
        return 2
    files = {target["id"]: target["filename"] for target in said["targets"]}
    needed = [file for test in chosen for target in test["depends"] for file in files.get(target, [])]
    build = os.path.realpath(build)
    print("\n".join([kind, *dict.fromkeys(os.path.relpath(file, build) for file in needed)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
