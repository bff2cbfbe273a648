#!/usr/bin/env python3
"""Is the table of evidence up to date, and does one command make the evidence of a machine, and one all pages?
make_evidence.py MAKE_EVIDENCE STAGELINE SMALL_EVIDENCE

Its stageline-validate is a stand-in, which writes a small evidence file."""
import gzip
import json
import os
import pathlib
import re
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


def check_page(page, figures):
    """It shows these pictures and has them all beside it, and nothing else."""
    shown = re.findall(r"^!\[.*\]\((.*)\)$", page.read_text(encoding="utf-8"), re.M) if page.exists() else []
    drawn = {path.name for path in page.parent.glob("*") if path != page}
    check(set(figures) <= set(shown) and drawn == set(shown), f"{page} shows {shown}, beside it are {sorted(drawn)}")
    for name in drawn:
        check((page.parent / name).read_text(encoding="utf-8").endswith("</svg>\n"), f"{name} of {page} is no picture")


code, said = run(stageline, "--check")
check(code == 0, f"the stored table: {said}")

with tempfile.TemporaryDirectory() as scratch:
    pages = pathlib.Path(scratch) / "pages"
    code, said = run(stageline, "--pages", pages)
    names = {path.name.removesuffix(".json.gz")
             for path in (pathlib.Path(make).parent / "evidence").glob("*.json.gz")}
    check(code == 0 and names and {path.name for path in pages.iterdir()} == names | {"staleness"},
          f"the pages of {sorted(names)}: {code}, {said}")
    for name in names:
        check_page(pages / name / "report.md", ("errors.svg", "diagonal.svg"))
    check_page(pages / "staleness/staleness.md", ("staleness-depth.svg", "staleness-share.svg"))

with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    build, evidence, page = folder / "build", folder / "evidence", folder / "page.md"
    (build / "tools/executor").mkdir(parents=True)
    (build / "tools/stageline").symlink_to(stageline)
    validate = build / "tools/executor/stageline-validate"
    # The flags of stageline-validate, then --out FILE: FILE and FILE's summary are written.
    validate.write_text("#!/bin/sh\n[ \"$1\" = --fail ] && exit 143\nwhile [ $# -gt 2 ]; do shift; done\n"
                        f"gzip -c '{folder}/source.json' >\"$2\"\n"
                        f"'{stageline}' replay \"$2\" --summary \"${{2%.json.gz}}.summary.json\" >/dev/null\n")
    validate.chmod(0o755)
    stored = json.loads(pathlib.Path(small).read_text(encoding="utf-8"))
    stored["device"] = "AMD EPYC(R) Processor, cpu:2"
    (folder / "source.json").write_text(json.dumps(stored), encoding="utf-8")
    page.write_text("before\n\n" + "\nold\n".join(MARKS) + "\n\nbehind\n", encoding="utf-8")
    where = ("--folder", evidence, "--page", page)

    code, said = run(build, *where, "--", "--quiet")
    check(code == 0 and "made amd-epyc-cpu2" in said, f"the first evidence: {code}, {said}")
    files = {str(path.relative_to(evidence)) for path in evidence.rglob("*") if path.is_file()}
    check(files == {"amd-epyc-cpu2.json.gz", "amd-epyc-cpu2.summary.json"}, f"the files are {sorted(files)}")
    check(gzip.decompress((evidence / "amd-epyc-cpu2.json.gz").read_bytes()) == (folder / "source.json").read_bytes(),
          "what was measured is not what is stored")
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
    order = [text.find(words) for words in ("Never calibrated", "| `other` |", "Calibrated on other",
                                            "| `amd-epyc-cpu2` |", "imitated: order")]
    check(-1 not in order and order == sorted(order), f"three groups: {order} in {text}")
    check(run(build, *where, "--check")[0] == 0, "the table is not up to date behind a run")

    # A table that is not that of the folder; a validation that is interrupted changes nothing.
    (evidence / "other.json.gz").unlink()
    code, said = run(build, *where, "--check")
    check(code == 1 and "out of date" in said, f"an old table: {code}, {said}")
    check(run(build, *where, "--table")[0] == 0 and "`other`" not in page.read_text(encoding="utf-8"), "--table")
    before = sorted(evidence.rglob("*"))
    code, said = run(build, *where, "--", "--fail")
    check(code == 143 and sorted(evidence.rglob("*")) == before, f"an interrupted validation: {code}, {said}")
    (evidence / "cut.json.gz").write_bytes(gzip.compress(b"{}")[:-4])
    code, said = run(build, *where, "--table")
    check(code == 2 and "cut.json.gz at byte" in said and "Traceback" not in said, f"a cut recording: {code}, {said}")
    for words in ((folder / "nowhere",), (build, *where, "--name", "A b"), (build, *where, "--", "--out", "x")):
        code, said = run(*words)
        check(code == 2 and said.startswith("make_evidence: "), f"{words}: {code}, {said}")

for words in failed:
    print("failed:", words)
sys.exit(1 if failed else 0)
