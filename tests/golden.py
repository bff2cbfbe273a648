#!/usr/bin/env python3
"""Does the command still say this?

usage: golden.py [--rewrite] STAGELINE CASE.cmd...

Each case is a shell script, run in the folder of the case with `stageline` on the PATH; its output,
errors and exit code must equal CASE.expect to the letter. --rewrite makes what it says now the
expectation: read the diff before you commit it.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile


def output_of(stageline: pathlib.Path, case: pathlib.Path) -> str:
    with tempfile.TemporaryDirectory() as out:
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        env = dict(inherited, PATH=f"{stageline.parent}:{os.environ['PATH']}", OUT=out,
                   NO_COLOR="1", LC_ALL="C.UTF-8")
        done = subprocess.run(["sh", case.name], cwd=case.parent, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False)
        return f"{done.stdout}exit {done.returncode}\n".replace(out, "OUT")


def main() -> int:
    arguments = sys.argv[1:]
    rewrite = "--rewrite" in arguments
    stageline, *cases = [pathlib.Path(a).resolve() for a in arguments if a != "--rewrite"]
    failed = 0
    for case in cases:
        expectation = case.with_suffix(".expect")
        said = output_of(stageline, case)
        if rewrite:
            expectation.write_text(said)
            continue
        expected = expectation.read_text() if expectation.exists() else ""
        if said == expected:
            continue
        failed += 1
        print("".join(difflib.unified_diff(expected.splitlines(True), said.splitlines(True),
                                           str(expectation.name), "said now")))
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
