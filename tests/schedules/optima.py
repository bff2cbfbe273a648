#!/usr/bin/env python3
"""Is the published table of proved optima right? optima.py STAGELINE ROOT

Its checker finds no fault, and finds those that are put in; a sample of the rows is proved again by
`stageline optimal`; and where STAGELINE_DATA has optima of CP-SAT, rows of both tables agree.
"""
import csv
import gzip
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ASKED_AGAIN = 24
FEWEST_ROWS = 600
# Changes to a row that the checker must find.
CHANGES = {
    "an op less": lambda row: {**row, "order": row["order"][:-1]},
    "an op moved": lambda row: {**row, "order": row["order"][1:] + row["order"][0]},
    "more stashes": lambda row: {**row, "limit": str(int(row["limit"]) - 1)},
    "a longer optimum": lambda row: {**row, "optimum": str(int(row["optimum"]) + 1)},
    "a shorter optimum": lambda row: {**row, "optimum": str(int(row["optimum"]) - 1)},
    "the other proof": lambda row: {**row, "proof": "exhausted" if row["proof"] == "bound met" else "bound met"},
}


def tight(row):
    """A row with stages of equal length whose order holds all the stashes that it may."""
    return row["chunks"] == "1" and row["limit"] in ("2", "3", "4") and int(row["m"]) > int(row["limit"]) and \
        "F" * int(row["limit"]) in row["order"]


def cross_checked(rows):
    """Pairs of optima: ours, and that of a table of CP-SAT where it asks the same."""
    folder = pathlib.Path(os.environ.get("STAGELINE_DATA", "")) / "optimal"
    ours = {tuple(row[name] for name in ("placement", "p", "m", "F", "I", "W", "message", "limit", "goal")):
            int(row["optimum"]) for row in rows if row["chunks"] == "1" or row["placement"] == "v" and row["chunks"] == "2"}
    for table, placement in (("optimal_spans.csv", "straight"), ("optimal_spans_v.csv", "v")):
        if not (folder / table).exists():
            print(f"skipped: STAGELINE_DATA has no optimal/{table}")
            continue
        with (folder / table).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                limit = row.get("limit_stashes") or row.get("limit_chunk_stashes")
                key = (placement, row["p"], row["m"], row["F"], row["I"], row["W"], row.get("comm", "0"), limit,
                       row["goal"])
                if row["proved"] == "yes" and key in ours:
                    yield key, ours[key], int(row.get("optimal") or row["best"])


def main(stageline, root):
    folder = root / "schedulers" / "optima"
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    import check  # pylint: disable=import-outside-toplevel
    import make_optima  # pylint: disable=import-outside-toplevel
    faults = []
    table = folder / "optima.csv.gz"
    if subprocess.run([sys.executable, "-B", folder / "check.py", table], check=False).returncode != 0:
        faults.append("check.py finds a fault")
    rows = check.rows_of(table)
    if f"{len(rows)} small pipelines" not in (folder / "README.md").read_text(encoding="utf-8"):
        faults.append(f"README.md does not say that the table has {len(rows)} rows")
    if len(rows) < FEWEST_ROWS:
        faults.append(f"{len(rows)} rows, fewer than {FEWEST_ROWS}")
    if gzip.decompress(table.read_bytes()).decode() != make_optima.text_of(rows):
        faults.append("the table is not as make_optima.py writes it")
    for row in [row for row in rows if tight(row)][:20]:
        for name, change in CHANGES.items():
            if check.fault_of(change(row)) is None:
                faults.append(f"check.py does not find {name}: {row}")
    with tempfile.TemporaryDirectory() as scratch:
        for row in random.Random(53).sample(rows, ASKED_AGAIN):
            question = {name: row[name] for name in make_optima.KEY}
            again = make_optima.asked(stageline, pathlib.Path(scratch), question, 60, "")
            if again is None or again["optimum"] != row["optimum"]:
                faults.append(f"{question}: {row['optimum']} in the table, now {again and again['optimum']}")
    compared = list(cross_checked(rows))
    faults += [f"{key}: {ours} in the table, {others} by CP-SAT" for key, ours, others in compared if ours != others]
    print(f"{len(rows)} rows, {ASKED_AGAIN} asked again, {len(compared)} compared with CP-SAT's")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
