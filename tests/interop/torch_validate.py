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
import json
import os
import pathlib
import shlex
import signal
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import pytorch  # noqa: E402  (beside this file)
import torch_evidence  # noqa: E402
import torch_predict  # noqa: E402

# PyTorch's schedules. Those of one stage a rank have no program of their own: they are simulated by
# this schedule of ours, with messages that wait for each other as PyTorch's do there.
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


class BadInput(Exception):
    """One sentence."""


def arguments():
    parser = argparse.ArgumentParser(
        description="Holds the simulator against PyTorch's pipelining runtime.", allow_abbrev=False)
    parser.add_argument("stageline", help="the command stageline")
    parser.add_argument("--ranks", type=int, default=2, help="2 (default) to 8; more than cores: imitated")
    parser.add_argument("--model", default="gpt,conv", help=f"{', '.join(MODELS)}; default gpt,conv")
    parser.add_argument("--batch", type=int, default=0, help="samples in a micro-batch; default: the model's")
    parser.add_argument("--microbatches", type=int, default=8, help="of a step; default 8")
    parser.add_argument("--rounds", type=int, default=7, help="each a profile and a run of each schedule; default 7")
    parser.add_argument("--schedules", default=",".join(USUAL),
                        help="classes of PyTorch and schedules of ours, separated by commas; default: "
                             + ",".join(USUAL))
    parser.add_argument("--out", help="write the evidence to this file")
    parser.add_argument("--replay", metavar="FILE",
                        help="predict the runs of this evidence anew; exit code 1 if the error has grown. "
                             "With --out: keep the new errors")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    given = parser.parse_args()
    for flag, least, most in (("ranks", 2, 8), ("batch", 0, 4096), ("microbatches", 1, 256),
                              ("rounds", 1, 1000)):
        if not least <= getattr(given, flag) <= most:
            raise BadInput(f"--{flag} must be {least} to {most}")
    given.model = given.model.split(",")
    for name in given.model:
        if name not in MODELS:
            raise BadInput(f"there is no model \"{name}\"; there are {', '.join(MODELS)}")
    given.schedules = [name for name in given.schedules.split(",") if name]
    if not given.schedules:
        raise BadInput("--schedules names none")
    for name in given.schedules:
        if name.startswith("Schedule") and name not in OF_PYTORCH:
            raise BadInput(f"there is no class \"{name}\"; there are {', '.join(OF_PYTORCH)}")
    if not pathlib.Path(given.stageline).is_file():
        raise BadInput(f"there is no program {given.stageline}")
    if given.out and not pathlib.Path(given.out).resolve().parent.is_dir():
        raise BadInput(f"there is no folder for {given.out}")
    return given


def layout_of(program, ranks):
    """How the stages of a CSV lie on its ranks."""
    import torch_world

    rows = [{action[0] for cell in line.split(",") for action in pytorch.actions_of(cell)}
            for line in program.splitlines()]
    for layout in ("straight", "loop", "v"):
        if [sorted(row) for row in rows] == [torch_world.stages_on(layout, rank, ranks)
                                             for rank in range(ranks)]:
            return layout
    raise BadInput("its stages do not lie on ranks in a way that can be profiled here")


def sources(given, simulator):
    """The runs to make: name and layout of each."""
    runs = []
    for name in given.schedules:
        run = {"name": name}
        if name in OF_PYTORCH:
            run.update(OF_PYTORCH[name])
        else:
            try:
                run["layout"] = layout_of(simulator.call(
                    "program", "uniform:layers=16", "--schedule", name, "--devices", given.ranks,
                    "--microbatches", given.microbatches, "--format", "pytorch"), given.ranks)
            except (BadInput, torch_predict.PredictionError) as error:
                raise BadInput(f"--schedules {name}: {error}") from None
        runs.append(run)
    return runs


def profile(world, case, layouts, floats):
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


def measure(given, simulator, name, say):
    """A case: every round's measurements, and every run's times."""
    import torch_models
    import torch_world

    cores = sorted(os.sched_getaffinity(0))
    imitated = given.ranks > len(cores)
    runs = sources(given, simulator)
    layouts = sorted({run["layout"] for run in runs})
    plain = torch_world.apart(lambda: {
        layout: torch_models.plain_times(torch_models.model_of(name, given.batch),
                                         torch_world.stages_of(layout, given.ranks))
        for layout in layouts})
    floats = next(iter(plain.values()))[1]
    tables = {torch_world.stages_of(layout, given.ranks): table
              for layout, (table, _) in plain.items()}

    def make_model():
        model = torch_models.model_of(name, given.batch)
        return torch_models.waits(model, tables, floats) if imitated else model

    case = {"model": name, "batch": torch_models.model_of(name, given.batch).batch,
            "ranks": given.ranks, "imitated": imitated, "microbatches": given.microbatches,
            "message_bytes": 4 * floats, "rounds": [], "runs": runs}
    pinned = [None if imitated else cores[rank] for rank in range(given.ranks)]
    with tempfile.TemporaryDirectory() as folder, torch_world.World(
            given.ranks, pinned, make_model, given.microbatches, folder) as world:
        for layout in layouts:
            world.all("profiling", layout)
        profile(world, case, layouts, floats)  # warms up, and is not counted
        first = torch_evidence.medians([profile(world, case, layouts, floats)])
        for run in runs:
            if run["name"] not in OF_PYTORCH:
                run["program"] = simulator.program(run["name"], case, first, run["layout"])
            text = world.all("prepare", run["name"], run["layout"], run.get("program", ""))[0]
            if text:
                run["program"] = text
            run["steps"] = []
        for number in range(given.rounds):
            say(f"{name}: round {number + 1} of {given.rounds}")
            case["rounds"].append(profile(world, case, layouts, floats))
            turn = number % len(runs)
            for run in runs[turn:] + runs[:turn]:
                world.step(run["name"])  # a step follows one of the same program, as in training
                run["steps"].append(world.step(run["name"]))
    return case


def main():
    given = arguments()
    say = (lambda text: None) if given.quiet else lambda text: print(text, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        simulator = torch_predict.Simulator(given.stageline, folder)
        if given.replay:
            evidence, kept = torch_evidence.read(given.replay)
            if kept is None and not given.out:
                raise BadInput(f"{given.replay} has no errors to hold new ones against")
        else:
            why_not = pytorch.without_torch()
            if why_not:
                print(why_not)
                return 77
            evidence, kept = torch_evidence.start(
                datetime.date.today().isoformat(),
                "tests/interop/torch_validate.py build/tools/stageline "
                + shlex.join(sys.argv[2:])), None
            for name in given.model:
                evidence["cases"].append(measure(given, simulator, name, say))
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
    except (BadInput, torch_evidence.EvidenceError, torch_predict.PredictionError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except Exception as error:  # a rank's
        if type(error).__name__ != "WorldError":
            raise
        print(error, file=sys.stderr)
        sys.exit(2)
