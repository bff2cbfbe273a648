#!/usr/bin/env python3
"""Every schedule on the same problems: writes or checks schedulers/README.md.

usage: schedule_tables.py STAGELINE FILE            write FILE
       schedule_tables.py --check STAGELINE FILE    exit 1, with the difference, if FILE says otherwise

What it says comes from `stageline list` and `stageline compare --json`, with every schedule's defaults.
"""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROBLEMS = [
    ("Equal stages", "Free links: what the order alone costs.",
     ["uniform:layers=96"]),
    ("ResNet-110 as measured on one CPU core", "Behind equal links of 2 GB/s.",
     ["resnet110-cpu", "--link", "2GB/s,20us"]),
    ("GPT-2 priced for the H100", "A roofline, so a lower bound on time, over the links of `h100x8`.",
     ["gpt2-h100", "--cluster", "h100x8"]),
]
SIZE = ["--devices", "8", "--microbatches", "32"]
HEAD = """# Every schedule on the same problems

Made by `python3 tools/scripts/schedule_tables.py build/tools/stageline schedulers/README.md`, and held to what
`stageline compare` says by a test. 8 devices, 32 micro-batches a step, every schedule with its defaults.
*Bubble*: the share of the devices' time in a step in which they do not compute. *Exposed*: the share of
the step that free links would save. *Peak*: of the device that holds most. *Versions*: of a stage's
weights, at most; *stale*: updates between the weights that a forward read and its own update, at most,
with F≠B where a backward reads other weights than its forward. What is called rebuilt was reconstructed
from abstracts and sibling papers. `layerpipe` leaves out the first stage's input gradient, which nobody
reads and one device would compute, so its speed-up can pass the number of devices by a little.

"""


def run(stageline, *arguments):
    done = subprocess.run([stageline, *arguments], capture_output=True, text=True, check=False,
                          env=dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8"))
    if done.returncode != 0:
        sys.exit(f"schedule_tables.py: stageline {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def schedules(stageline):
    """[(name, summary, synchronous or asynchronous, source, [knob])] in the order of --help."""
    text = run(stageline, "list")
    found = []
    for line in text[:text.index("\nPartitioners")].splitlines():
        head = re.fullmatch(r"  (\S+) +(\S.*) \[(synchronous|asynchronous)\]", line)
        if head:
            found.append((*head.groups(), [], []))
        elif line.startswith("   ") and found:
            source, knobs = found[-1][3:]
            (knobs if source else source).append(line.strip())
    if not found:
        sys.exit("schedule_tables.py: `stageline list` names no schedule")
    return found


def in_a_cell(text):
    return text.replace("|", "\\|")


def knob_text(line):
    """"reverse=no|yes  (backwards ...; default no)": the choice as code, then what it means."""
    choice, _, meaning = line.partition("  ")
    return f"`{in_a_cell(choice)}` {in_a_cell(meaning.strip())}"


def scaled(value, units):
    for unit, size in units:
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:g} {units[-1][0]}"


def row(result):
    peak = max(device["peak_bytes"] for device in result["per_device"])
    versions = max(stage["weight_versions"] for stage in result["per_stage"])
    stale = max(stage["staleness_updates"]["max"] for stage in result["per_stage"])
    same = all(stage["consistent_weights"] for stage in result["per_stage"])
    return [f"`{result['schedule']}`",
            scaled(result["step_time_s"], [("s", 1), ("ms", 1e-3), ("µs", 1e-6)]),
            f"{result['speedup']:.2f}×",
            f"{100 * result['bubble_fraction']:.1f} %",
            f"{100 * result['exposed_communication_fraction']:.1f} %",
            scaled(peak, [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)]),
            f"{versions}", f"{stale:g}{'' if same else ' F≠B'}"]


def table(stageline, problem):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "out.json"
        run(stageline, "compare", *problem, *SIZE, "--quiet", "--json", str(file))
        results = json.loads(file.read_text())
    lines = ["| schedule | step | speed-up | bubble | exposed | peak | versions | stale |",
             "|---|---|---|---|---|---|---|---|"]
    refused = []
    for synchronous in (True, False):
        lines.append(f"| **{'synchronous' if synchronous else 'asynchronous'}** | | | | | | | |")
        for result in results:
            if "step_time_s" in result and result["synchronous"] == synchronous:
                lines.append("| " + " | ".join(row(result)) + " |")
    for result in results:
        if "step_time_s" not in result:
            refused.append(f"\nNot possible here: `{result['schedule']}`: {result['error']}\n")
    return "\n".join(lines) + "\n" + "".join(refused)


def page(stageline):
    text = HEAD
    text += "| schedule | what | knobs | source |\n|---|---|---|---|\n"
    for name, summary, synchrony, source, knobs in schedules(stageline):
        text += (f"| `{name}` | {in_a_cell(summary)}; {synchrony} | "
                 f"{'<br>'.join(knob_text(knob) for knob in knobs)} | {in_a_cell(' '.join(source))} |\n")
    for title, says, problem in PROBLEMS:
        command = "stageline compare " + " ".join([*problem, *SIZE])
        text += f"\n## {title}\n\n{says} `{command}`\n\n{table(stageline, problem)}"
    return text


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    if check:
        arguments = arguments[1:]
    if len(arguments) != 2:
        sys.exit(__doc__)
    stageline, file = arguments
    says = page(str(pathlib.Path(stageline).resolve()))
    path = pathlib.Path(file)
    if not check:
        beside = path.with_name(path.name + ".part")
        beside.write_text(says)
        beside.replace(path)
        return 0
    kept = path.read_text() if path.exists() else ""
    print("".join(difflib.unified_diff(kept.splitlines(True), says.splitlines(True), file, "now")))
    return 0 if kept == says else 1


if __name__ == "__main__":
    sys.exit(main())
