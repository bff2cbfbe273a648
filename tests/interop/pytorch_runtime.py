#!/usr/bin/env python3
"""Does PyTorch's runtime train rightly by the schedule CSVs that `stageline program` writes?

usage: pytorch_runtime.py STAGELINE SPECS [--all] [WORD...]

SPECS prints a schedule and a number of devices a line. Each is written in both forms, from the
trace, from a program text with messages and from one without, and run by PyTorch's
_PipelineScheduleRuntime: a process a rank, Gloo over the loopback, a Linear and a tanh a stage, in
double precision. The gradients must be those of plain autograd on the whole batch. Files that are
the same to the letter run once. Without --all: every order of computing that 2 ranks have for one
number of micro-batches, and on 4 ranks every schedule with its own knobs. A WORD keeps the schedules
that contain it. Exit code 77 where no torch can be imported, see pytorch.py.
"""
import csv
import datetime
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import pytorch  # noqa: E402  (beside this file)

WIDTH = 4  # features of every stage
ROWS = 2  # samples of a micro-batch
MOST_ERROR = 1e-5  # of a gradient, by the largest of its tensor
TIMEOUT = 20  # seconds that one schedule may take; most take a hundredth
MOST_STUCK = 3  # so many that take longer end the test


class Case:
    """A CSV and what it is of."""

    def __init__(self, path, form, ranks, microbatches):
        self.path, self.form, self.ranks, self.microbatches = str(path), form, ranks, microbatches
        with open(path, newline="", encoding="utf-8") as file:
            rows = [[action for cell in row for action in pytorch.actions_of(cell)]
                    for row in csv.reader(file)]
        self.stages_of = [sorted({action[0] for action in row}) for row in rows]
        self.stages = 1 + max(max(stages) for stages in self.stages_of)


def problem_of(case):
    """Stages, input and target, the same in every process."""
    import torch

    torch.manual_seed(case.stages * 100 + case.microbatches)
    stages = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()).double()
              for _ in range(case.stages)]
    batch = case.microbatches * ROWS
    return stages, *(torch.randn(batch, WIDTH, dtype=torch.double) for _ in range(2))


def worst_error(rank, case):
    """Of the gradients of this rank's stages, relative."""
    import torch
    from torch.distributed.pipelining import PipelineStage, schedules

    modules, given, target = problem_of(case)
    loss = torch.nn.functional.mse_loss
    loss(torch.nn.Sequential(*modules)(given), target).backward()
    mine = case.stages_of[rank]
    right = {s: [one.grad.clone() for one in modules[s].parameters()] for s in mine}
    for module in modules:
        module.zero_grad(set_to_none=True)
    schedule = schedules._PipelineScheduleRuntime(
        [PipelineStage(modules[s], s, case.stages, torch.device("cpu")) for s in mine],
        case.microbatches, loss_fn=loss)
    schedule._load_csv(case.path, format=case.form)
    # Its own lowering leaves the reductions, which scale the gradients, where they belong.
    schedule.step(*([given] if mine[0] == 0 else []),
                  target=target if mine[-1] == case.stages - 1 else None)
    worst = 0.0
    for s in mine:
        for one, expected in zip(modules[s].parameters(), right[s]):
            if one.grad is None:
                return float("inf")
            worst = max(worst, ((one.grad - expected).abs().max() / expected.abs().max()).item())
    return worst


def serve(rank, ranks, store, pipe):
    """One rank: runs what comes through the pipe, and answers with an error or a sentence."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=TIMEOUT))
    while (case := pipe.recv()) is not None:
        try:
            pipe.send(worst_error(rank, case))
        except Exception as error:  # whatever it is, the case has failed
            pipe.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    dist.destroy_process_group()


class World:
    """Processes that run schedules one after another, until one fails."""

    def __init__(self, ranks, folder):
        context = multiprocessing.get_context("fork")  # importing torch takes seconds
        store = tempfile.mktemp(dir=folder)
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(rank, ranks, store, there), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, case):
        """The worst error of all ranks, or why there is none."""
        for pipe in self.pipes:
            pipe.send(case)
        end = time.monotonic() + TIMEOUT
        waiting, worst = list(self.pipes), 0.0
        while waiting:
            ready = multiprocessing.connection.wait(waiting, max(0.0, end - time.monotonic()))
            if not ready:
                stuck = [str(self.pipes.index(pipe)) for pipe in waiting]
                return f"rank {' and '.join(stuck)} is not done after {TIMEOUT} s"
            for pipe in ready:
                waiting.remove(pipe)
                try:
                    answer = pipe.recv()
                except EOFError:
                    answer = "the process has ended"
                if isinstance(answer, str):
                    return f"rank {self.pipes.index(pipe)}: {answer}"
                worst = max(worst, answer)
        return worst

    def end(self, kindly):
        for pipe, process in zip(self.pipes, self.processes):
            if kindly:
                pipe.send(None)
                process.join(TIMEOUT)
            process.kill()
            process.join()
            pipe.close()


class Exports:
    """What `stageline program` writes."""

    def __init__(self, stageline, folder):
        self.stageline, self.folder = stageline, folder

    def program(self, *arguments):
        run = subprocess.run([self.stageline, "program", *arguments, "--quiet"], check=False,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode == 2 and "micro-batches" in run.stderr:
            return ""  # so many do not suit the schedule
        pytorch.expect(run.returncode == 0, f"{' '.join(arguments)}: {run.stderr}")
        return run.stdout

    def of(self, spec, ranks, microbatches, known):
        """(source, form, CSV); but the first where its order of computing is known."""
        trace = ["uniform:layers=36", "--schedule", spec, "--devices", str(ranks),
                 "--microbatches", str(microbatches)]
        forms = (("compute_only", "pytorch"), ("compute_comms", "pytorch-comms"))
        text = self.program(*trace, "--format", "pytorch")
        if not text:
            return
        yield "trace", "compute_only", text
        if text in known:
            return
        known.add(text)
        yield "trace", "compute_comms", self.program(*trace, "--format", "pytorch-comms")
        for source, link in (("text with messages", ["--link", "12GB/s,5us"]),
                             ("text without messages", [])):
            path = self.folder / "program.slp"
            path.write_text(self.program(*trace, *link), encoding="utf-8")
            for form, option in forms:
                yield source, form, self.program(str(path), "--format", option)


def wanted(specs, words, everything):
    """(schedule with its knobs, ranks, micro-batches)"""
    lines = subprocess.run([specs], check=True, text=True, stdout=subprocess.PIPE).stdout
    seen = set()
    for line in lines.splitlines():
        spec, devices = line.split()
        if not all(word in spec for word in words):
            continue
        schedule, ranks = spec.split(":")[0], int(devices)
        numbers = {1: (4,), 2: (2, 5, 8), 4: (4, 6, 8), 5: (10,)} if everything else {2: (8,), 4: (8,)}
        if ranks == 4 and not everything:  # the first of a schedule has its own knobs
            if schedule in seen:
                continue
            seen.add(schedule)
        for microbatches in numbers.get(ranks, ()):
            yield spec, ranks, microbatches


def main():
    stageline, specs = sys.argv[1:3]
    everything = "--all" in sys.argv[3:]
    words = [word for word in sys.argv[3:] if not word.startswith("--")]
    why_not = pytorch.without_torch()
    if why_not:
        print(why_not)
        return 77
    began = time.monotonic()
    results, known, schedules = {}, set(), set()  # of files; orders of computing; names
    tried, faults, stuck, worst = 0, 0, 0, 0.0
    world, in_world = None, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        exports = Exports(stageline, folder)
        for spec, ranks, microbatches in wanted(specs, words, everything):
            for source, form, text in exports.of(spec, ranks, microbatches,
                                                 set() if everything else known):
                tried += 1
                schedules.add(spec.split(":")[0])
                key = (form, text)
                if key not in results:
                    if world and in_world != ranks:
                        world.end(kindly=True)
                        world = None
                    world, in_world = world or World(ranks, folder), ranks
                    path = folder / "schedule.csv"
                    path.write_text(text, encoding="utf-8")
                    results[key] = world.run(Case(path, form, ranks, microbatches))
                    if isinstance(results[key], str):  # messages may be left over
                        world.end(kindly=False)
                        world = None
                        stuck += "is not done" in results[key]
                result = results[key]
                if not isinstance(result, str) and result <= MOST_ERROR:
                    worst = max(worst, result)
                    continue
                faults += 1
                said = result if isinstance(result, str) else f"gradients are off by {result:.2g}"
                print(f"{spec}, {ranks} ranks, {microbatches} micro-batches, {source}, {form}: "
                      f"{said}")
            if stuck >= MOST_STUCK:
                print(f"{stuck} schedules are not done; the rest was not tried")
                break
        if world:
            world.end(kindly=True)
    print(f"{tried} exports of {len(schedules)} schedules, {len(results)} different files, in "
          f"{time.monotonic() - began:.1f} s: {tried - faults} train as autograd does (worst error "
          f"{worst:.2g}), {faults} do not")
    return 1 if faults or (len(schedules) < 15 and not words) else 0


if __name__ == "__main__":
    sys.exit(main())
