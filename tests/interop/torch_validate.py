#!/usr/bin/env python3
"""How near is the simulator to PyTorch's own pipelining runtime?

usage: torch_validate.py STAGELINE [flags], see --help

Profiles a model's stages as PyTorch's runtime runs them, predicts steps of schedules by `stageline
simulate`, runs the same programs by torch.distributed.pipelining on Gloo, a process a rank, and
reports the error of each. Profile and runs take turns, so that both see the same drift. Where ranks
outnumber the cores, stages wait instead of computing: that tests order, messages and the runtime,
not arithmetic, and is labelled "imitated". --replay predicts stored runs anew and needs no torch.

Exit code 0: done. 1: a replayed error has grown. 2: bad input, or ranks that failed. 77: no torch
can be imported, see pytorch.py. 130: interrupted; nothing is written.
"""
import argparse
import datetime
import os
import pathlib
import re
import shlex
import signal
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import pytorch  # noqa: E402  (beside this file)
import torch_evidence  # noqa: E402
import torch_predict  # noqa: E402
from torch_predict import Failure  # noqa: E402

# PyTorch's schedules. Those with one stage a rank have no program of their own: they are simulated as
# the named schedule of Stageline, with messages that block as theirs do.
OF_PYTORCH = {
    "ScheduleGPipe": {"layout": "straight", "schedule": "gpipe", "messages": "batched"},
    "Schedule1F1B": {"layout": "straight", "schedule": "1f1b", "messages": "batched"},
    "ScheduleInterleaved1F1B": {"layout": "loop"},
    "ScheduleLoopedBFS": {"layout": "loop"},
    "ScheduleInterleavedZeroBubble": {"layout": "loop"},
    "ScheduleZBVZeroBubble": {"layout": "v"},
    "ScheduleDualPipeV": {"layout": "v"},
}
USUAL = [*list(OF_PYTORCH)[:6], "zb_auto", "list", "zb_v", "v_half"]
MODELS = ("gpt", "conv", "mlp")


def arguments():
    parser = argparse.ArgumentParser(
        description="Compares the simulator with PyTorch's pipelining runtime.", allow_abbrev=False)
    parser.add_argument("stageline", help="the command stageline")
    parser.add_argument("--ranks", default="2",
                        help="numbers of processes, 2 (default) to 8, separated by commas; where there "
                             "are fewer cores, compute is imitated")
    parser.add_argument("--model", default="gpt,conv",
                        help=f"of {', '.join(MODELS)}, separated by commas; default gpt,conv")
    parser.add_argument("--batch", type=int, help="samples in a micro-batch; default: the model's")
    parser.add_argument("--microbatches", type=int, default=8, help="micro-batches in a step; default 8")
    parser.add_argument("--rounds", type=int, default=7,
                        help="rounds of a profile and a run of each schedule; default 7")
    parser.add_argument("--schedules", default=",".join(USUAL),
                        help="PyTorch's classes and Stageline's schedules, separated by commas; "
                             "default " + ",".join(USUAL))
    parser.add_argument("--out", help="write the evidence to this file")
    parser.add_argument("--replay", metavar="FILE",
                        help="predict the runs in this evidence anew; exit code 1 if the errors have "
                             "grown. With --out: write it with the new errors")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    given = parser.parse_args()
    if any(number not in list("2345678") for number in given.ranks.split(",")):
        raise Failure("--ranks must be 2 to 8")
    given.ranks = [int(number) for number in given.ranks.split(",")]
    for flag, least, most in (("batch", 1, 4096), ("microbatches", 2, 256), ("rounds", 1, 1000)):
        value = getattr(given, flag)
        if value is not None and not least <= value <= most:
            raise Failure(f"--{flag} must be {least} to {most}")
    given.model = given.model.split(",")
    for name in given.model:
        if name not in MODELS:
            raise Failure(f"there is no model \"{name}\"; there are {', '.join(MODELS)}")
    given.schedules = re.split(r",(?![a-z_]+=)", given.schedules)  # a knob follows its schedule
    if len(set(given.schedules)) != len(given.schedules):
        raise Failure("--schedules names one twice")
    for name in given.schedules:
        if name.startswith("Schedule") and name not in OF_PYTORCH:
            raise Failure(f"there is no class \"{name}\"; there are {', '.join(OF_PYTORCH)}")
    if not pathlib.Path(given.stageline).is_file():
        raise Failure(f"there is no program {given.stageline}")
    if given.out and not pathlib.Path(given.out).resolve().parent.is_dir():
        raise Failure(f"there is no folder for {given.out}")
    return given


def layout_of(program, ranks):
    """How the stages of a CSV lie on its ranks."""
    rows = [{action[0] for cell in line.split(",") for action in pytorch.actions_of(cell)}
            for line in program.splitlines()]
    for layout in ("straight", "loop", "v"):
        if [sorted(row) for row in rows] == [torch_predict.stages_on(layout, rank, ranks)
                                             for rank in range(ranks)]:
            return layout
    raise Failure("its stages do not lie on ranks in a way that can be profiled here")


def planned(given, ranks, simulator):
    """The runs to make: name and layout of each."""
    runs = []
    for name in given.schedules:
        run = {"name": name}
        if name in OF_PYTORCH:
            run.update(OF_PYTORCH[name])
        else:
            try:
                run["layout"] = layout_of(simulator.call(
                    "program", "uniform:layers=16", "--schedule", name, "--devices", ranks,
                    "--microbatches", given.microbatches, "--format", "pytorch"), ranks)
            except Failure as error:
                raise Failure(f"--schedules {name}: {error}") from None
        runs.append(run)
    return runs


def profile(world, layouts, floats):
    """One round of measurements: costs by layout, the runtime's time between actions by rank, and
    messages of one float and of the model's."""
    import torch_world

    costs, gaps = {}, [[] for _ in range(world.ranks)]
    for layout in layouts:
        alone, beside = {}, {}
        for rank in range(world.ranks):
            spans = world.ask([rank], "profile", layout, torch_world.soon())[0]
            collect(alone, spans)
            gaps[rank] += [after[2] - before[3] for before, after in zip(spans, spans[1:])]
        together = world.all("profile", layout, torch_world.soon())
        since = max(spans[0][2] for spans in together)
        until = min(spans[-1][3] for spans in together)
        for spans in together:
            collect(beside, [span for span in spans if span[2] >= since and span[3] <= until])
        costs[layout] = {op: (statistics.fmean(times), statistics.fmean(beside.get(op, times)))
                         for op, times in alone.items()}
    messages = []
    for size in (1, floats):
        pair = world.all("messages", size)[:2]
        taken = [end - start for one, other in (pair, pair[::-1])
                 for start, end in zip(one["sent"], other["received"], strict=True)]
        messages.append({"bytes": 4 * size, "time": statistics.median(taken),
                         "send": statistics.fmean(one["send"] for one in pair),
                         "receive": statistics.fmean(one["receive"] for one in pair)})
    return {"costs": costs, "overhead": [statistics.median(rank) for rank in gaps],
            "messages": messages}


def collect(times, spans):
    for stage, kind, start, end in spans:
        times.setdefault((stage, kind), []).append(end - start)


def measure(given, ranks, runs, name, simulator, say):
    """A case: its measurements, and the times of its runs."""
    import torch_models
    import torch_world

    cores = sorted(os.sched_getaffinity(0))
    imitated = ranks > len(cores)
    runs = [dict(run) for run in runs]
    layouts = sorted({run["layout"] for run in runs})
    model = torch_models.model_of(name, given.batch)
    cuts = sorted({torch_predict.stages_of(layout, ranks) for layout in layouts})
    plain = torch_world.apart(lambda: {cut: torch_models.plain_times(model, cut) for cut in cuts})
    floats = plain[cuts[0]][1]
    tables = {cut: table for cut, (table, _) in plain.items()}
    if imitated:
        model = torch_models.waits(model, tables, floats)
    case = {"model": name, "batch": model.batch, "ranks": ranks, "imitated": imitated,
            "microbatches": given.microbatches, "message_bytes": 4 * floats}
    pinned = [None if imitated else cores[rank] for rank in range(ranks)]
    title, rounds = torch_evidence.title_of(case), []
    with tempfile.TemporaryDirectory() as folder, torch_world.World(
            ranks, pinned, model, given.microbatches, folder) as world:
        for layout in layouts:
            world.all("profiling", layout)
        profile(world, layouts, floats)  # warms up, and is not counted
        first = torch_evidence.medians([profile(world, layouts, floats)])
        for run in runs:
            if run["name"] not in OF_PYTORCH:
                run["program"] = simulator.program(run["name"], case, first, run["layout"])
            text = world.all("prepare", run["name"], run["layout"], run.get("program", ""))[0]
            if text:
                run["program"] = text
            run["steps"] = []
        for number in range(given.rounds):
            say(f"{title}: round {number + 1} of {given.rounds}")
            rounds.append(profile(world, layouts, floats))
            turn = number % len(runs)
            for run in runs[turn:] + runs[:turn]:
                world.step(run["name"])  # a step follows one of the same program, as in training
                run["steps"].append(world.step(run["name"]))
    return {**case, "measured": torch_evidence.medians(rounds), "runs": runs}


def main():
    given = arguments()
    say = (lambda text: None) if given.quiet else lambda text: print(text, file=sys.stderr, flush=True)
    if not given.replay:
        plans = {ranks: planned(given, ranks, torch_predict.Simulator(given.stageline))
                 for ranks in given.ranks}
        why_not = pytorch.without_torch()  # may start this script anew
        if why_not:
            print(why_not)
            return 77
    with tempfile.TemporaryDirectory() as folder:
        simulator = torch_predict.Simulator(given.stageline, folder)
        if given.replay:
            evidence, kept = torch_evidence.read(given.replay)
            if kept is None and not given.out:
                raise Failure(f"{given.replay} has no errors to hold new ones against")
        else:
            evidence, kept = torch_evidence.start(
                datetime.date.today().isoformat(),
                "tests/interop/torch_validate.py build/tools/stageline "
                + shlex.join(sys.argv[2:])), None
            for ranks in given.ranks:
                for name in given.model:
                    evidence["cases"].append(measure(given, ranks, plans[ranks], name, simulator,
                                                     say))
        evidence = torch_evidence.as_kept(evidence)
        judged = torch_evidence.judge(evidence, simulator)
        print(torch_evidence.report(evidence, judged), end="")
        if given.out:
            torch_evidence.write(given.out, evidence, judged)
            return 0
        worse = torch_evidence.worse(kept, judged) if kept else []
        for sentence in worse:
            print(sentence, file=sys.stderr)
        return 1 if worse else 0


def interrupted(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    except (Failure, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
