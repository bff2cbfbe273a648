#!/usr/bin/env python3
"""Makes the table of proved optima: make_optima.py STAGELINE TABLE [--seconds N] [--date YYYY-MM-DD]

Asks `stageline optimal` every question of questions() and writes the rows that it proves. Rows that TABLE
has already are kept, and not asked again: remove TABLE to make all of it anew. README.md says what the
columns are.
"""
import argparse
import csv
import datetime
import gzip
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

COLUMNS = ["placement", "chunks", "p", "m", "F", "I", "W", "message", "limit", "goal", "optimum", "proof", "order",
           "found_by", "date"]
KEY = COLUMNS[:10]
# F, I and W of equal stages: all alike, about a transformer's, W short, and W long.
TIMES = [(1, 1, 1), (10, 11, 9), (7, 6, 3), (2, 2, 5)]
# By stage: a head on the last one, a light first and last one, one slow device, and no two alike.
UNEQUAL = [("2/2/2/3", "2/2/2/4", "1/1/1/2"), ("1/2/2/1", "1/2/2/1", "1/2/2/1"), ("3/3/6/3", "4/4/8/4", "2/2/4/2"),
           ("4/5/7/3", "6/4/5/7", "3/5/2/4")]
GOALS = ["makespan", "span"]


def straight():
    """One stage a device; limits from half of what 1F1B holds to none."""
    sizes = [(2, 4), (3, 6), (4, 4), (4, 8), (4, 12), (6, 12), (8, 8), (8, 16)]
    for (p, m), times in itertools.product(sizes, TIMES[:4]):
        for message, goal in ((0, "makespan"), (0, "span"), (max(times[0] // 3, 1), "makespan")):
            for limit in sorted({(p + 1) // 2, p, (3 * p + 1) // 2} & set(range(1, m))) + ["none"]:
                yield "straight", 1, p, m, *times, message, limit, goal
    for (p, m), goal in itertools.product([(8, 32), (16, 32)], GOALS):
        for limit in (p, (3 * p + 1) // 2, 2 * p - 1, "none"):
            yield "straight", 1, p, m, *TIMES[1], 0, limit, goal
    for m, times, goal, limit in itertools.product((4, 8), UNEQUAL, GOALS, (2, 3, 4, 6)):
        yield "straight", 1, 4, m, *times, 0, limit, goal


def several():
    """Several stages a device: limits are of stashes of single stages."""
    for placement, p in itertools.product(("v", "looped"), (2, 3, 4)):
        for m, times, goal in itertools.product((p, 2 * p), TIMES[:3], GOALS):
            for limit in sorted({p, (4 * p + 2) // 3, 2 * p}):
                yield placement, 2, p, m, *times, 0, limit, goal
        for limit in (2 * p, 3 * p):
            yield placement, 2, p, p, 10, 11, 9, 3, limit, "makespan"
    for placement, m, limit in itertools.product(("v", "looped"), (2, 3, 4), (4, 6, 8)):
        yield placement, 4 if placement == "v" else 3, 2, m, 1, 1, 1, 0, limit, "makespan"


def questions():
    return [dict(zip(KEY, map(str, one))) for one in itertools.chain(straight(), several())]


def each(times, stages):
    """The time of each stage: "2/2/3", or one for all."""
    parts = [int(part) for part in str(times).split("/")]
    return parts if len(parts) == stages else parts * stages


def trace_of(row):
    stages = int(row["p"]) * int(row["chunks"])
    layers = [{"name": f"stage{s}", "kind": "any", "forward_us": f, "input_grad_us": i, "weight_grad_us": w,
               "weights_bytes": 0, "output_bytes": 0, "stash_input_grad_bytes": 0, "stash_weight_grad_bytes": 1}
              for s, (f, i, w) in enumerate(zip(*(each(row[kind], stages) for kind in "FIW")))]
    return {"format": "stageline-trace 1", "name": "stages", "batch": 1, "input_bytes": 0, "layers": layers,
            "provenance": {"origin": "synthetic", "method": "A row of the table of proved optima."}}


def order_of(program, p, chunks):
    """By device its ops in short: "FFIWIW", and with several stages "0F0F1F…", the chunk ahead of each."""
    devices = []
    for line in re.findall(r"^gpu\d+: (.*)$", program.replace("\n  ", " "), re.M):
        # A B is an I with its W right behind it. Messages go by themselves.
        ops = [(int(stage), kind.replace("B", "IW")) for stage, kind in re.findall(r"\b(\d+)([FIWB])\d+", line)]
        chunk = {stage: str(c) if chunks > 1 else "" for c, stage in enumerate(sorted({stage for stage, _ in ops}))}
        devices.append("".join(chunk[stage] + one for stage, kinds in ops for one in kinds))
    assert len(devices) == p
    return "|".join(devices)


def asked(stageline, folder, row, seconds, version):
    """The row with its optimum; None where that was not proved."""
    trace = folder / "trace.json"
    trace.write_text(json.dumps(trace_of(row)), encoding="utf-8")
    p, chunks, message = int(row["p"]), int(row["chunks"]), int(row["message"])
    command = [stageline, "optimal", trace, "--devices", p, "--microbatches", row["m"], "--limit", row["limit"],
               "--goal", row["goal"], "--placement", row["placement"], "--partition", "uniform",
               "--time", f"{seconds}s", "--json", "-", "--quiet"]
    command += ["--chunks", chunks] if chunks > 1 else []
    command += ["--link", f"1TB/s,{message}us"] if message else []
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 2:
        raise SystemExit(f"{row}: {done.stderr}")
    answer = json.loads(done.stdout) if done.stdout else {"optimal": False}
    if not answer["optimal"] or answer["value_ps"] % 10**6:
        return None
    met = answer["bound_by"].startswith("in closed form")
    return {**row, "optimum": str(answer["value_ps"] // 10**6), "proof": "bound met" if met else "exhausted",
            "order": order_of(answer["program"], p, chunks), "found_by": version}


def kept(table):
    if not table.exists():
        return {}
    with gzip.open(table, "rt", encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in KEY): row for row in csv.DictReader(file)}


def text_of(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stageline", type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=3, help="for each row; default: 3")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    given = parser.parse_args()
    stageline = given.stageline.resolve()
    version = subprocess.run([stageline, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = " ".join(version.split()[:2])
    rows = kept(given.table)
    wanted = questions()
    with tempfile.TemporaryDirectory() as name:
        for number, row in enumerate(wanted):
            key = tuple(row.values())
            if key in rows:
                continue
            found = asked(stageline, pathlib.Path(name), row, given.seconds, version)
            if found:
                rows[key] = {**found, "date": given.date}
            if number % 50 == 49:
                print(f"{number + 1} of {len(wanted)} asked, {len(rows)} proved", file=sys.stderr)
    in_order = {tuple(row.values()): None for row in wanted}
    in_order.update(dict.fromkeys(rows))  # rows that others brought come last
    text = text_of(rows[key] for key in in_order if key in rows)
    given.table.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(wanted)} questions, {len(rows)} rows")


if __name__ == "__main__":
    main()
