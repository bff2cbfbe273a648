#!/usr/bin/env python3
"""Do others read the schedule CSVs that `stageline program` writes?

usage: pytorch.py STAGELINE SPECS [--torch | --sample]

--sample: one case in ten, where sanitizers make each call of STAGELINE ten times as slow.
SPECS prints a schedule and a number of devices a line. Each is written in both forms, and so are
the .slp files beside this one. Without --torch: the rules of the format, checked by what stands below alone. With --torch: PyTorch's own
loader, validation, lowering and dry run (torch.distributed.pipelining), the other way round its own
schedules, read by us and written again, and its orders against those of our schedulers; exit code 77
where no torch can be imported.
STAGELINE_TORCH_PYTHON names another interpreter that has it, STAGELINE_TORCH_PACKAGES a folder of
packages where it is looked for last.
"""
import collections
import csv
import io
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ACTION = re.compile(r"(\d+)(F|I|W|B|SEND_F|RECV_F|SEND_B|RECV_B|REDUCE_GRAD)(\d*)")


class Fault(Exception):
    pass


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Fault(what)


def actions_of(cell: str) -> list[tuple[int, str, int | None]]:
    """(stage, word, micro-batch) of each action in the cell."""
    pair = re.fullmatch(r"\(([^;()]+);([^;()]+)\)OVERLAP_F_B", cell)
    actions = []
    for text in pair.groups() if pair else [cell] if cell else []:
        match = ACTION.fullmatch(text)
        expect(match is not None, f"{cell} is no action")
        stage, word, number = match.groups()
        expect((word == "REDUCE_GRAD") == (number == ""), f"{cell}: micro-batch")
        actions.append((int(stage), word, int(number) if number else None))
    return actions


def check_order(text: str, home: dict[int, int]) -> None:
    """Messages carry no name there: all come through when every rank takes one at a time."""
    queues = []
    for row in csv.reader(io.StringIO(text)):
        queue = collections.deque()
        for stage, word, number in (action for cell in row for action in actions_of(cell)):
            if word.startswith(("SEND", "RECV")):
                step = 1 if word.endswith("F") else -1
                sender = stage if word.startswith("SEND") else stage - step
                queue.append((sender, sender + step, number))
        queues.append(queue)
    while any(queues):
        moved = False
        for queue in queues:
            if not queue:
                continue
            ends = [queues[home[stage]] for stage in queue[0][:2]]
            if all(end and end[0] == queue[0] for end in ends):
                for end in ends:
                    end.popleft()
                moved = True
        heads = [queue[0] for queue in queues if queue]
        expect(moved, f"ranks wait for each other with (from, to, micro-batch) {heads}")


def check_rules(text: str, microbatches: int, messages: bool) -> None:
    """Every rule that is documented for the format."""
    home = {}
    done = collections.defaultdict(dict)  # (stage, micro-batch) -> word -> (rank, cell)
    for rank, row in enumerate(csv.reader(io.StringIO(text))):
        expect(any(row), f"rank {rank} does nothing")
        for at, cell in enumerate(row):
            expect(not messages or cell != "", f"rank {rank} has an empty cell")
            for stage, word, number in actions_of(cell):
                expect(home.setdefault(stage, rank) == rank, f"stage {stage} is on two ranks")
                expect(word not in done[stage, number], f"{cell} twice")
                expect(messages or word in "FIWB", f"{cell} in a file without messages")
                done[stage, number][word] = (rank, at)
    if messages:
        check_order(text, home)
    stages = len(home)
    expect(sorted(home) == list(range(stages)), "a stage is missing")
    for stage in range(stages):
        for number in range(microbatches):
            here = done[stage, number]
            work = {word: here[word][1] for word in here}
            expect("F" in work, f"no {stage}F{number}")
            expect(("B" in work) != ("I" in work and "W" in work), f"backward of {stage}F{number}")
            gradient = work.get("B", work.get("I"))
            expect(work["F"] < gradient, f"{stage}: backward of {number} before its forward")
            expect("W" not in work or gradient < work["W"], f"{stage}W{number} before its I")
            if not messages:
                continue
            for word, reader, other, sent in (("RECV_F", "F", stage - 1, "SEND_F"),
                                              ("RECV_B", "B", stage + 1, "SEND_B")):
                crosses = 0 <= other < stages and home[other] != home[stage]
                expect((word in work) == crosses, f"{stage}{word}{number}")
                expect((sent in done[other, number]) == crosses, f"{other}{sent}{number}")
                if crosses:
                    read = work["F"] if reader == "F" else gradient
                    expect(work[word] < read, f"{stage}{word}{number} too late")
                    maker = done[other, number]
                    made = maker["F"] if reader == "F" else maker.get("B", maker.get("I"))
                    expect(made < maker[sent], f"{other}{sent}{number} too early")
        numbers = {number for at, number in done if at == stage and number is not None}
        expect(numbers == set(range(microbatches)), f"stage {stage}: micro-batches {numbers}")
        if messages:
            reduced = done[stage, None].get("REDUCE_GRAD")
            expect(reduced is not None, f"no {stage}REDUCE_GRAD")
            last = max(done[stage, number].get("W", done[stage, number].get("B"))
                       for number in range(microbatches))
            expect(last < reduced, f"{stage}REDUCE_GRAD too early")


class Stage:
    """As much of a PipelineStage as a schedule asks of it before it runs."""

    def __init__(self, index, stages, ranks):
        self.stage_index, self.num_stages, self.group_size = index, stages, ranks
        self.group_rank, self.is_first, self.is_last = 0, index == 0, index == stages - 1
        self.has_backward = True
        self.submod = None


def check_with_torch(only: pathlib.Path, comms: pathlib.Path, microbatches: int) -> None:
    """PyTorch loads both forms, and its own lowering of the one is the other."""
    from torch.distributed.pipelining import schedules

    rows = list(csv.reader(io.StringIO(only.read_text())))
    stages = 1 + max(action[0] for row in rows for cell in row for action in actions_of(cell))

    def runtime():
        all_stages = [Stage(index, stages, len(rows)) for index in range(stages)]
        return schedules._PipelineScheduleRuntime(all_stages, microbatches)

    loaded = runtime()
    loaded._load_csv(str(only), format="compute_only")
    home = loaded.stage_index_to_group_rank
    for rank, row in enumerate(rows):  # its own spelling is ours
        said = [str(action) if action else "" for action in loaded.pipeline_order[rank]]
        expect(said == row, f"rank {rank} is read as {said}")

    ready = runtime()
    ready._load_csv(str(comms), format="compute_comms")
    expect(ready.stage_index_to_group_rank == home, "the forms place stages differently")
    lowered = schedules._add_send_recv(
        {rank: schedules._add_reduce_grad([a for a in row if a is not None], microbatches)
         for rank, row in loaded.pipeline_order.items()},
        stage_to_rank=lambda stage: home[stage], num_stages=stages)
    expect({rank: list(row) for rank, row in ready.pipeline_order_with_comms.items()} == lowered,
           "its own lowering is another")
    dry_run = ("REDUCE_GRAD", "OVERLAP_F_B")
    if not any(word in comms.read_text() for word in dry_run[1:]):
        schedules._simulate_comms_compute(
            {rank: [a for a in row if a.computation_type.value not in dry_run]
             for rank, row in ready.pipeline_order_with_comms.items()},
            lambda stage: home[stage], stages)


def check_torchs_own(stageline: str, folder: pathlib.Path) -> int:
    """What PyTorch writes of its schedules, we read and write again to the letter. How many."""
    from torch.distributed.pipelining import schedules

    theirs, ours = folder / "theirs.csv", folder / "ours.csv"
    checked = 0
    for name, stages in (("LoopedBFS", (0, 4)), ("Interleaved1F1B", (0, 4)),
                         ("InterleavedZeroBubble", (0, 4)), ("ZBVZeroBubble", (0, 7)),
                         ("DualPipeV", (0, 7))):
        kind = getattr(schedules, "Schedule" + name, None)
        if kind is None:
            continue
        schedule = kind([Stage(index, 8, 4) for index in stages], 8,
                        loss_fn=lambda output, target: output)
        for form, option in (("compute_only", "pytorch"), ("compute_comms", "pytorch-comms")):
            schedules._PipelineScheduleRuntime._dump_csv(schedule, str(theirs), form)
            subprocess.run([stageline, "program", "--check", theirs, "--quiet"], check=True)
            subprocess.run([stageline, "program", theirs, "--format", option, "--out", ours,
                            "--quiet"], check=True)
            said, again = ([[cell for cell in row if cell and "SHARD" not in cell]
                            for row in csv.reader(path.open())] for path in (theirs, ours))
            expect(said == again, f"{name}, {form} comes back as another")
            checked += 1
    expect(checked > 0, "PyTorch has none of its schedules")
    return checked


def check_same_orders(stageline: str, folder: pathlib.Path) -> int:
    """Our schedulers write PyTorch's schedules, op by op. How many sizes."""
    from torch.distributed.pipelining import schedules

    ours = folder / "ours.csv"
    checked = 0
    for name, spec in (("LoopedBFS", "looped_bfs:reverse=yes,chunks="),
                       ("Interleaved1F1B", "interleaved_1f1b:chunks="),
                       ("InterleavedZeroBubble", "interleaved_zb:chunks=")):
        kind = getattr(schedules, "Schedule" + name, None)
        if kind is None:
            continue
        # Not a multiple of p: one group, which interleaved_1f1b has to be told.
        odd = [] if name == "Interleaved1F1B" else [1]
        for p, v in itertools.product(range(2, 9), (2, 3, 4)):
            for m in (p, 3 * p, *(p + more for more in odd)):
                schedule = kind([Stage(p * chunk, p * v, p) for chunk in range(v)], m,
                                loss_fn=lambda output, target: output)
                theirs = [[str(action) for action in row if action is not None]
                          for _, row in sorted(schedule.pipeline_order.items())]
                subprocess.run([stageline, "program", "uniform:layers=36", "--schedule",
                                f"{spec}{v}", "--devices", str(p), "--microbatches", str(m),
                                "--format", "pytorch", "--out", ours, "--quiet"], check=True)
                with ours.open() as file:
                    said = [[cell for cell in row if cell] for row in csv.reader(file)]
                expect(said == theirs, f"{spec}{v}, p {p}, m {m} is not PyTorch's {name}")
                checked += 1
    return checked


def torch_is_missing() -> str:
    try:
        import torch
        from torch.distributed.pipelining import schedules
    except ImportError as error:
        return f"no torch.distributed.pipelining: {error}"
    for name in ("_PipelineScheduleRuntime", "_add_send_recv", "_add_reduce_grad",
                 "_simulate_comms_compute"):
        if not hasattr(schedules, name):
            return f"torch {torch.__version__} is too old: it has no {name}"
    return ""


def without_torch() -> str:
    """Goes over to an interpreter that has torch if one is named; why there is none, or nothing."""
    other = os.environ.pop("STAGELINE_TORCH_PYTHON", "")
    if other:
        os.execvp(other, [other, *sys.argv])
    why_not = torch_is_missing()
    packages = os.environ.pop("STAGELINE_TORCH_PACKAGES", "")
    if not why_not or not packages:
        return why_not
    # That of an interpreter goes with it, which has torch's dependencies too.
    folder = pathlib.Path(packages)
    own = folder.parents[2] / "bin" / "python3"
    if folder.name in ("site-packages", "dist-packages") and own.exists():
        os.execv(own, [str(own), *sys.argv])
    sys.path.append(packages)
    return torch_is_missing()


def main() -> int:
    stageline, specs = sys.argv[1:3]
    with_torch = "--torch" in sys.argv[3:]
    if with_torch:
        why_not = without_torch()
        if why_not:
            print(why_not)
            return 77
    faults = 0
    checked = 0
    lines = subprocess.run([specs], check=True, text=True, stdout=subprocess.PIPE).stdout
    cases = [(line, m, [stageline, "program", "uniform:layers=36", "--schedule", line.split()[0],
                        "--devices", line.split()[1], "--microbatches", str(m)])
             for line in lines.splitlines() for m in (1, 3, 8)
             if "vocabulary=" not in line]  # of language models alone, and no schedule of PyTorch's
    if "--sample" in sys.argv[3:]:
        cases = cases[::10]  # no multiple of three: each number of micro-batches has its turn
    for path in sorted(pathlib.Path(__file__).parent.glob("*.slp")):
        microbatches = re.search(r"^microbatches: (\d+)$", path.read_text(), re.MULTILINE)[1]
        cases.append((path.name, int(microbatches), [stageline, "program", path]))
    with tempfile.TemporaryDirectory() as folder:
        only, comms = (pathlib.Path(folder) / name for name in ("only.csv", "comms.csv"))
        for name, microbatches, command in cases:
            written = [subprocess.run([*command, "--quiet", "--format", form, "--out", path],
                                      check=False, stderr=subprocess.PIPE, text=True)
                       for path, form in ((only, "pytorch"), (comms, "pytorch-comms"))]
            if any(one.returncode == 2 and "micro-batches" in one.stderr for one in written):
                continue  # so many do not suit the schedule
            for one in written:
                one.check_returncode()
            try:
                if with_torch:
                    check_with_torch(only, comms, microbatches)
                else:
                    check_rules(only.read_text(), microbatches, messages=False)
                    check_rules(comms.read_text(), microbatches, messages=True)
                checked += 1
            except (Fault, AssertionError, RuntimeError, ValueError) as fault:
                faults += 1
                print(f"{name}, {microbatches} micro-batches: {fault}")
        if with_torch:
            own = check_torchs_own(stageline, pathlib.Path(folder))
            print(f"{own} files of PyTorch's own are read and written again")
            same = check_same_orders(stageline, pathlib.Path(folder))
            print(f"{same} of our schedules are PyTorch's, op by op")
    print(f"{checked} schedules are as the format wants them, {faults} are not")
    return 1 if faults or checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
