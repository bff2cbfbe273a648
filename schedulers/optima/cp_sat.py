#!/usr/bin/env python3
"""Proves rows of the table once more, by another method: cp_sat.py TABLE [--seconds N] [--ops N] [--all]

Asks OR-tools' CP-SAT (pip install ortools) for an order that is shorter than a row's optimum. It must say that
there is none. Without --all, only the rows that no bound proves; --ops leaves out what has more ops.
"""
import argparse
import collections
import sys

from ortools.sat.python import cp_model

from check import Row, rows_of


def shorter(row, optimum, seconds):
    """Whether an order is shorter than that: True, False or None where time was over."""
    model = cp_model.CpModel()
    start, at = {}, collections.defaultdict(list)
    for s in range(row.stages):
        for kind in "FIW":
            for k in range(row.m):
                start[kind, s, k] = model.new_int_var(0, optimum, "")
                at[row.device[s]].append(
                    model.new_fixed_size_interval_var(start[kind, s, k], getattr(row, kind)[s], ""))

    def end(kind, s, k):
        return start[kind, s, k] + getattr(row, kind)[s]

    for s in range(row.stages):
        for k in range(row.m):
            if s > 0:
                model.add(start["F", s, k] >= end("F", s - 1, k) + row.way[s - 1])
                model.add(start["I", s - 1, k] >= end("I", s, k) + row.way[s - 1])
            model.add(start["I", s, k] >= end("F", s, k))
            model.add(start["W", s, k] >= end("I", s, k))
            for kind in "FIW" if k > 0 else "":
                model.add(start[kind, s, k] >= end(kind, s, k - 1))
    for d, on in enumerate(row.on):
        model.add_no_overlap(at[d])
        held = [model.new_interval_var(start["F", s, k], model.new_int_var(0, optimum, ""), end("W", s, k), "")
                for s in on for k in range(row.m)]
        model.add_cumulative(held, [1] * len(held), row.limit)
        begin = start["F", on[0], 0] if row.for_span else 0
        for s in on:
            model.add(end("W", s, row.m - 1) - begin <= optimum - 1)
            model.add(end("I", s, row.m - 1) - begin <= optimum - 1)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    answer = solver.solve(model)
    if answer in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return True
    return False if answer == cp_model.INFEASIBLE else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--seconds", type=float, default=60, help="for each row; default: 60")
    parser.add_argument("--ops", type=int, default=10**9, help="rows with no more ops than that")
    parser.add_argument("--all", action="store_true", help="also rows that a bound proves")
    given = parser.parse_args()
    count = collections.Counter()
    for fields in rows_of(given.table):
        row = Row(fields)
        if (fields["proof"] == "bound met" and not given.all) or 3 * row.stages * row.m > given.ops:
            continue
        found = shorter(row, int(fields["optimum"]), given.seconds)
        count[found] += 1
        if found is not False:
            print(",".join(list(fields.values())[:10]), "has a shorter order" if found else "not proved", flush=True)
    print(f"{count[False]} rows proved once more, {count[None]} not in time, {count[True]} with a shorter order")
    return 1 if count[True] else 0


if __name__ == "__main__":
    sys.exit(main())
