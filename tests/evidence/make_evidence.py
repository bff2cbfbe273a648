#!/usr/bin/env python3
"""Is the table of evidence up to date, and does one command make the evidence of a machine?
make_evidence.py MAKE_EVIDENCE STAGELINE SMALL_EVIDENCE

Its stageline-validate is a stand-in, which writes a small evidence file."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

make, stageline, small = (os.path.abspath(path) for path in sys.argv[1:4])
MARKS = ("<!-- evidence: written by tools/executor/make_evidence -->", "<!-- end of evidence -->")
failed = []


def check(good, what):
    if not good:
        failed.append(what)


def run(*words):
    done = subprocess.run([sys.executable, make, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


code, said = run(stageline, "--check")
check(code == 0, f"the stored table: {said}")

with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    build, evidence, page = folder / "build", folder / "evidence", folder / "page.md"
    (build / "tools/executor").mkdir(parents=True)
    (build / "tools/stageline").symlink_to(stageline)
    validate = build / "tools/executor/stageline-validate"
    # The flags of stageline-validate, then --out FILE: FILE and FILE's summary are written.
    validate.write_text("#!/bin/sh\n[ \"$1\" = --fail ] && exit 143\nwhile [ $# -gt 2 ]; do shift; done\n"
                        f"cp '{folder}/source.json' \"$2\"\n"
                        f"'{stageline}' replay \"$2\" --summary \"${{2%.json}}.summary.json\" >/dev/null\n")
    validate.chmod(0o755)
    stored = json.loads(pathlib.Path(small).read_text(encoding="utf-8"))
    stored["device"] = "AMD EPYC(R) Processor, cpu:2"
    (folder / "source.json").write_text(json.dumps(stored), encoding="utf-8")
    page.write_text("before\n\n" + "\nold\n".join(MARKS) + "\n\nbehind\n", encoding="utf-8")
    where = ("--folder", evidence, "--page", page)

    code, said = run(build, *where, "--", "--quiet")
    check(code == 0 and "made amd-epyc-cpu2" in said, f"the first evidence: {code}, {said}")
    files = {str(path.relative_to(evidence)) for path in evidence.rglob("*") if path.is_file()}
    wanted = {"amd-epyc-cpu2.json", "amd-epyc-cpu2.summary.json", "amd-epyc-cpu2/report.md",
              "amd-epyc-cpu2/errors.svg", "amd-epyc-cpu2/diagonal.svg"}
    check(wanted <= files and not any(".making" in name for name in files), f"the files are {sorted(files)}")
    text = page.read_text(encoding="utf-8")
    check("old" not in text and text.startswith("before\n\n" + MARKS[0]) and text.endswith(MARKS[1] + "\n\nbehind\n"),
          f"the page around the table: {text}")
    check("| Calibrated on other cases |" in text and "Never calibrated" not in text, f"a calibrated machine: {text}")

    # Another machine, which was not calibrated, and one whose compute was imitated.
    stored["cases"] = [case for case in stored["cases"] if case["held_out"]]
    (folder / "source.json").write_text(json.dumps(stored), encoding="utf-8")
    check(run(build, *where, "--name", "other")[0] == 0, "another machine")
    stored["imitated"] = True
    (folder / "source.json").write_text(json.dumps(stored), encoding="utf-8")
    code, said = run(build, *where)
    check("made amd-epyc-cpu2-imitated" in said, f"imitated: {code}, {said}")
    text = page.read_text(encoding="utf-8")
    order = [text.find(words) for words in ("Never calibrated", "(evidence/other/report.md)", "Calibrated on other",
                                            "(evidence/amd-epyc-cpu2/report.md)", "imitated: order")]
    check(-1 not in order and order == sorted(order), f"three groups: {order} in {text}")
    check(run(build, *where, "--check")[0] == 0, "the table is not up to date behind a run")

    # A table that is not that of the folder; a validation that is interrupted changes nothing.
    (evidence / "other.json").unlink()
    code, said = run(build, *where, "--check")
    check(code == 1 and "out of date" in said, f"an old table: {code}, {said}")
    check(run(build, *where, "--table")[0] == 0 and "evidence/other/" not in page.read_text(encoding="utf-8"), "--table")
    before = sorted(evidence.rglob("*"))
    code, said = run(build, *where, "--", "--fail")
    check(code == 143 and sorted(evidence.rglob("*")) == before, f"an interrupted validation: {code}, {said}")
    for words in ((folder / "nowhere",), (build, *where, "--name", "A b"), (build, *where, "--", "--out", "x")):
        code, said = run(*words)
        check(code == 2 and said.startswith("make_evidence: "), f"{words}: {code}, {said}")

for words in failed:
    print("failed:", words)
sys.exit(1 if failed else 0)
