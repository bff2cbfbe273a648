#!/usr/bin/env python3
"""Checks the table of proved optima by itself: check.py TABLE

Replays the order of every row by the rules of README.md: that it has every op once, keeps the limit of
stashes and takes as long as is said. Where the proof is "bound met", makes a lower bound from the row's times
anew and holds it against the optimum. Shares nothing with what made the table, and needs Python alone.
"""
import csv
import gzip
import heapq
import re
import sys


class Row:
    """One question: stages in a line, stage s on device[s]."""

    def __init__(self, row):
        self.p, self.m, self.chunks = int(row["p"]), int(row["m"]), int(row["chunks"])
        self.stages, self.for_span = self.p * self.chunks, row["goal"] == "span"
        self.limit = self.m * self.chunks if row["limit"] == "none" else int(row["limit"])
        self.F, self.I, self.W = (self.times(row[kind]) for kind in "FIW")
        self.device = [self.p - 1 - s % self.p if row["placement"] == "v" and s // self.p % 2 else s % self.p
                       for s in range(self.stages)]
        self.on = [[s for s in range(self.stages) if self.device[s] == d] for d in range(self.p)]
        # From each stage to the next; nothing where both are on one device.
        self.way = [int(row["message"]) * (a != b) for a, b in zip(self.device, self.device[1:])]

    def times(self, text):
        parts = [int(part) for part in text.split("/")]
        return parts if len(parts) > 1 else parts * self.stages


def replayed(row, order):
    """What the order takes: (makespan, longest device span). Raises ValueError where it breaks a rule."""
    lists = []
    for d, text in enumerate(order.split("|")):
        count, held, ops = {}, 0, []
        for chunk, kind in re.findall(r"(\d*)([FIW])", text):
            stage = row.on[d][int(chunk or 0)]
            k = count[stage, kind] = count.get((stage, kind), -1) + 1
            held += (kind == "F") - (kind == "W")
            if held > row.limit:
                raise ValueError(f"device {d} holds {held} stashes")
            ops.append((kind, stage, k))
        if count != {(stage, kind): row.m - 1 for stage in row.on[d] for kind in "FIW"}:
            raise ValueError(f"device {d} lacks an op, or has one too many")
        lists.append(ops)
    end, free, at, first = {}, [0] * row.p, [0] * row.p, [None] * row.p
    moved = True
    while moved:
        moved = False
        for d, ops in enumerate(lists):
            while at[d] < len(ops):
                kind, s, k = ops[at[d]]
                needs = [("F", s, k, 0)] if kind == "I" else [("I", s, k, 0)] if kind == "W" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, k, row.way[s - 1]))
                if kind == "I" and s + 1 < row.stages:
                    needs.append(("I", s + 1, k, row.way[s]))
                if any((other, t, k) not in end for other, t, k, _ in needs):
                    break
                start = max([free[d]] + [end[other, t, k] + way for other, t, k, way in needs])
                first[d] = start if first[d] is None else first[d]
                free[d] = end[kind, s, k] = start + getattr(row, kind)[s]
                at[d] += 1
                moved = True
    if len(end) != 3 * row.m * row.stages:
        raise ValueError("the devices wait for each other")
    return max(free), max(last - begin for last, begin in zip(free, first))


def preemptive(jobs):
    """The end of the last tail of jobs (head, work, tail) on one machine that may interrupt them."""
    jobs, here, now, end = sorted(jobs), [], 0, 0
    while jobs or here:
        now = max(now, jobs[0][0]) if not here else now
        while jobs and jobs[0][0] <= now:
            _, work, tail = jobs.pop(0)
            heapq.heappush(here, (-tail, work))
        tail, work = heapq.heappop(here)
        done = min(work, jobs[0][0] - now) if jobs else work
        now += done
        if work > done:
            heapq.heappush(here, (tail, work - done))
        end = max(end, now - tail)
    return end


class Bound:
    """What no order of the row beats. round(s): from the start of an F until the I of its micro-batch may start."""

    def __init__(self, row):
        self.row = row
        self.ahead, self.back = [0], [0]
        for s in range(1, row.stages):
            self.ahead.append(self.ahead[-1] + row.F[s - 1] + row.way[s - 1])
            self.back.append(self.back[-1] + row.I[s] + row.way[s - 1])

    def round(self, s):
        return self.ahead[-1] - self.ahead[s] + self.row.F[-1] + self.back[-1] - self.back[s]

    def value(self):
        row, best = self.row, 0
        for d, on in enumerate(row.on):
            begins = 0 if row.for_span else self.ahead[on[0]]
            best = max(best, begins + max(self.own(on), self.area(on), self.machine(on, on[0], True)),
                       self.machine(on, 0, row.device[0] == d))
            if row.chunks == 1:
                for r in range(on[0] + 1 if row.for_span else 1):
                    best = max(best, self.until_last_gradient(on[0], r))
        return best

    def idle(self, on):
        """Before its first I a device runs no more forwards than it may hold, and behind its last F no more than the
        I and W of what it still holds."""
        row, first, last = self.row, on[0], on[-1]
        held = min(self.row.limit, row.m * len(on))
        forwards = sorted((row.F[s] for s in on for _ in range(row.m)), reverse=True)[:held]
        warm = max(0, self.ahead[last] - self.ahead[first] + self.round(last) - sum(forwards))
        behind = max(row.I[s] + row.W[s] for s in on) * (held - 1)
        waits = held < row.m * len(on)
        return warm, max(0, self.round(last) - row.F[last] - behind) if waits else 0

    def own(self, on):
        return self.row.m * sum(self.row.F[s] + self.row.I[s] + self.row.W[s] for s in on) + sum(self.idle(on))

    def area(self, on):
        """All stashes, for as long as each is held at least, of as many as there may be."""
        row = self.row
        held = row.m * sum(self.round(s) + row.I[s] + row.W[s] for s in on)
        return -(-held // row.limit)

    def machine(self, on, begin, same):
        """A device's ops as jobs: what comes before them from the first F of stage `begin` on, and what must follow."""
        row, jobs = self.row, []
        for s in on:
            slowest = max(row.F[begin:s + 1])
            slowest_round = max([slowest] + row.F[s:] + row.I[s:])
            slowest_back = max(row.I[begin:s + 1])
            returns = self.back[s] - row.I[s] - (self.back[begin] - row.I[begin])
            for k in range(row.m):
                tail = returns + slowest_back * (row.m - 1 - k) + row.W[begin]
                there = self.ahead[s] - self.ahead[begin]
                jobs.append((there + slowest * k, row.F[s], self.round(s) - row.F[s] + row.I[s] + tail))
                back = there + self.round(s) + slowest_round * k
                jobs.append((back, row.I[s], tail))
                if same:
                    jobs.append((back + row.I[s], row.W[s], 0))
        return preemptive(jobs)

    def until_last_gradient(self, s, r):
        """One stage a device: until the last I of s, and from there back to r; from the first F of r on."""
        row = self.row
        held, warm = min(row.limit, row.m), self.idle([s])[0]
        cool = max(0, self.round(s) - row.F[s] - row.I[s] * (held - 1)) if held < row.m else 0
        work = (row.F[s] + row.I[s]) * row.m + warm + row.W[s] * (row.m - held) + cool
        turns = (row.m - 1) // held  # F k + held waits for W k
        waiting = (self.round(s) + row.I[s]) * (turns + 1) + row.W[s] * turns
        back = self.back[s] - row.I[s] - self.back[r] + row.I[r]
        return self.ahead[s] - self.ahead[r] + max(work, waiting) + back + row.W[r]


def fault_of(fields):
    row, optimum = Row(fields), int(fields["optimum"])
    try:
        makespan, span = replayed(row, fields["order"])
    except ValueError as error:
        return str(error)
    takes = span if row.for_span else makespan
    if takes != optimum:
        return f"its order takes {takes}, not {optimum}"
    bound = Bound(row).value()
    if bound > optimum:
        return f"no order is shorter than {bound}"
    if (fields["proof"] == "bound met") != (bound == optimum):
        return f"proof \"{fields['proof']}\", but no order is shorter than {bound}, by the bound"
    return None


def rows_of(table):
    with (gzip.open if str(table).endswith(".gz") else open)(table, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main(table):
    rows = rows_of(table)
    seen, faults = set(), 0
    for number, fields in enumerate(rows, 2):
        key = tuple(fields.values())[:10]
        fault = "the same question as a row before" if key in seen else fault_of(fields)
        seen.add(key)
        if fault:
            faults += 1
            print(f"line {number} ({','.join(key)}): {fault}")
    met = sum(row["proof"] == "bound met" for row in rows)
    print(f"{len(rows)} rows, {met} by a bound, {len(rows) - met} by exhaustion: {faults} faults")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
