#!/usr/bin/env python3
"""Holds that faces ask and do not simulate: faces.py ROOT

A face (FACES) reads a question, hands it to an answer() of tools/answers, and delivers what comes
back. Prints each file of a face that calls a function of CALLS itself, unless STILL lists it with so
many calls. STILL can only shrink: a file with fewer calls than it lists is an error, too. Exit code 1
if there is any.
"""
import pathlib
import re
import sys

FACES = ("tools/commands", "tools/lab/commands", "tools/python", "tools/playground", "tools/executor")
CALLS = ("read_setting", "make_case", "searched_case", "study")
CALL = re.compile(r"(?<![\w.>])(?:stageline::)?(" + "|".join(CALLS) + r")\(")
COMMENT = re.compile(r"//.*")
# Calls that are left, by file.
STILL = {
    "tools/executor/programs/validation.cpp": 4,
    "tools/lab/commands/time_to_accuracy.cpp": 1,
}


def calls_of(file):
    text = COMMENT.sub("", file.read_text(encoding="utf-8"))
    return [found.group(1) for found in CALL.finditer(text)]


def main(root):
    root = pathlib.Path(root)
    findings = []
    files = [file for face in FACES for file in sorted((root / face).rglob("*.[ch]pp"))]
    left = dict(STILL)
    for file in files:
        path = file.relative_to(root).as_posix()
        calls = calls_of(file)
        allowed = left.pop(path, 0)
        if len(calls) > allowed:
            findings.append(f"{path} calls {', '.join(calls)}: {allowed or 'none'} may be left there; "
                            "ask an answer() of tools/answers")
        elif len(calls) < allowed:
            findings.append(f"{path} has {len(calls)} calls and STILL lists {allowed}: list what is left")
    findings += [f"STILL lists {path}, which is no file of a face" for path in left]
    print("\n".join(findings) or f"{len(files)} files of faces, {sum(STILL.values())} calls are left")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
