"""One rank of PyTorch's pipelining: makes schedules, runs their steps, and measures stages and messages.

torch_world.py runs it in a process of its own and asks for its methods by name.
"""
import contextlib
import csv
import gc
import io
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

from torch_predict import stages_of, stages_on

SPIN = 0.0003  # seconds before a common start in which a rank with its own core no longer sleeps
LATE = 0.001  # seconds that a rank with its own core may begin late; such a step is run again
SLICE = 0.008  # the same of one that shares cores: a scheduler lets the others go on for so long
MESSAGES = 16  # messages in each direction that measure one
BLOCKS = 3  # blocks of as many messages
IN_FLIGHT = 2  # micro-batches in flight while stages are profiled


@contextlib.contextmanager
def begun_at(start):
    """From `start` on, by the clock that all processes of a host share, without the garbage
    collector, whose runs fall on any op. Yields whether the rank was ready in time."""
    gc.disable()
    alone = len(os.sched_getaffinity(0)) == 1
    spin = SPIN if alone else 0.0
    time.sleep(max(0.0, start - time.perf_counter() - spin))
    ready = time.perf_counter() < start + (LATE if alone else SLICE)
    while time.perf_counter() < start:
        pass
    try:
        yield ready
    finally:
        gc.enable()
        gc.collect()


def keep_objects():
    """Excludes all present objects from later collections: torch's own take 0.3 s each time."""
    gc.collect()
    gc.freeze()


def own_row(stages, microbatches):
    """The order in which a rank is profiled: forwards and backwards alternate, and so do B and I with W;
    a W runs after the next forward."""
    row, late = [], []

    def backward(m):
        for s in reversed(stages):
            if m % 2 == 0:
                row.append(f"{s}B{m}")
            else:
                row.append(f"{s}I{m}")
                late.append(f"{s}W{m}")

    for m in range(microbatches):
        row += [f"{s}F{m}" for s in stages]
        row += late
        late.clear()
        if m + 1 >= IN_FLIGHT:
            backward(m + 1 - IN_FLIGHT)
    for m in range(max(0, microbatches + 1 - IN_FLIGHT), microbatches):
        row += late
        late.clear()
        backward(m)
    return row + late + [f"{s}REDUCE_GRAD" for s in stages]


class Rank:
    """The schedules of one rank, by name, and the stages that they share."""

    def __init__(self, rank, ranks, model, microbatches):
        self.rank, self.ranks, self.microbatches = rank, ranks, microbatches
        self.model = model
        self.modules, self.ready, self.profiled = {}, {}, {}
        torch.manual_seed(0)
        self.given, self.target = model.data(model.batch * microbatches)

    def _stages(self, layout):
        stages = stages_of(layout, self.ranks)
        for s in stages_on(layout, self.rank, self.ranks):
            if (s, stages) not in self.modules:
                self.modules[s, stages] = self.model.stage(s, stages)
        return [PipelineStage(self.modules[s, stages], s, stages, torch.device("cpu"))
                for s in stages_on(layout, self.rank, self.ranks)]

    def _step(self, schedule, layout):
        mine = stages_on(layout, self.rank, self.ranks)
        last = stages_of(layout, self.ranks) - 1
        schedule.step(*([self.given] if 0 in mine else []),
                      target=self.target if last in mine else None, return_outputs=False)

    def prepare(self, name, layout, source):
        """Makes a schedule and runs one step: a class of PyTorch's by its name, any other name from
        `source`, a CSV with messages. Returns its program as such a CSV, empty for a class of one
        stage a rank, which has none."""
        stages = self._stages(layout)
        if name.startswith("Schedule"):
            kind = getattr(schedules, name)
            single = issubclass(kind, schedules.PipelineScheduleSingle)
            schedule = kind(stages[0] if single else stages, self.microbatches,
                            loss_fn=self.model.loss)
        else:
            single = False
            schedule = schedules._PipelineScheduleRuntime(stages, self.microbatches,
                                                          loss_fn=self.model.loss)
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                file.write(source)
                file.flush()
                schedule._load_csv(file.name, format="compute_comms")
        self.ready[name] = (schedule, layout)
        self._step(schedule, layout)
        keep_objects()
        if single:
            return ""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            schedule.pipeline_order_with_comms[rank] for rank in range(self.ranks))
        return text.getvalue()

    def run(self, name, start):
        """Runs a step that begins at `start`. Returns when it ended, by the common clock; None if it
        began late."""
        schedule, layout = self.ready[name]
        with begun_at(start) as ready:
            self._step(schedule, layout)
            return time.perf_counter() if ready else None

    def profiling(self, layout):
        """Makes the schedule that measures the stages of a layout, and runs a step of one
        micro-batch after the other, which fills the buffers of the messages."""
        stages = stages_of(layout, self.ranks)
        schedule = schedules._PipelineScheduleRuntime(self._stages(layout), self.microbatches,
                                                      loss_fn=self.model.loss)
        action = schedules._Action.from_str
        rows = {}
        for rank in range(self.ranks):
            mine = stages_on(layout, rank, self.ranks)
            rows[rank] = [action(f"{s}{kind}{m}") for m in range(self.microbatches)
                          for kind, order in (("F", range(stages)), ("B", reversed(range(stages))))
                          for s in order if s in mine]
        schedule._prepare_schedule_with_comms(rows)
        self._step(schedule, layout)
        mine = stages_on(layout, self.rank, self.ranks)
        schedule.pipeline_order_with_comms[self.rank] = [
            action(text) for text in own_row(mine, self.microbatches)]
        self.profiled[layout] = schedule
        keep_objects()

    def profile(self, layout, start):
        """Runs the rank's own stages by PyTorch's runtime from `start` on, without messages. Returns
        (stage, kind, start, end) of each op in order."""
        schedule = self.profiled[layout]
        received = {(s, m): [] for s in stages_on(layout, self.rank, self.ranks)
                    for m in range(self.microbatches)}
        schedule.fwd_recv_ops, schedule.bwd_recv_ops = dict(received), dict(received)
        spans = []
        plain = schedules.record_function

        class Timed(plain):
            """PyTorch's range of an action, and its times."""

            def __enter__(self):
                result = super().__enter__()
                self.began = time.perf_counter()
                return result

            def __exit__(self, *raised):
                spans.append((self.began, time.perf_counter()))
                return super().__exit__(*raised)

        schedules.record_function = Timed
        try:
            with begun_at(start):
                self._step(schedule, layout)
        finally:
            schedules.record_function = plain
        actions = schedule.pipeline_order_with_comms[self.rank]
        return [(a.stage_index, a.computation_type.value, *span)
                for a, span in zip(actions, spans, strict=True)]

    def messages(self, floats):
        """Measures messages between the ranks of a pair (0 and 1, 2 and 3) that compute in between.
        Returns when each was sent and when each was received, by the common clock, and how many
        seconds a message adds to the computing of its sender and of its receiver. None for a rank
        without a pair."""
        peer = self.rank ^ 1
        if peer >= self.ranks:
            return None
        buffers = [torch.zeros(floats) for _ in range(self.microbatches)]

        def post(operation, at):
            return schedules._batch_p2p([dist.P2POp(operation, buffers[at % len(buffers)], peer,
                                                    dist.group.WORLD)])

        def meet():
            works = [post(operation, 0) for operation in (dist.irecv, dist.isend)]
            for one in works:
                schedules._wait_batch_p2p(one)

        sent, received = [], []

        def send(at):
            self.model.work()
            sent.append(time.perf_counter())
            schedules._wait_batch_p2p(post(dist.isend, at))

        def receive(at):
            schedules._wait_batch_p2p(post(dist.irecv, at))
            received.append(time.perf_counter())

        def block(operation):
            """The time of some rounds of computing, each with a message, which the next waits for."""
            pending = []
            began = time.perf_counter()
            for at in range(MESSAGES):
                if operation is dist.irecv:
                    pending.append(post(operation, at))
                self.model.work()
                if operation is dist.isend:
                    pending.append(post(operation, at))
                if len(pending) > 1:
                    schedules._wait_batch_p2p(pending.pop(0))
            took = time.perf_counter() - began
            for works in pending:
                schedules._wait_batch_p2p(works)
            return took / MESSAGES

        first = self.rank < peer
        with begun_at(0.0):
            meet()
            for at in range(2 * MESSAGES):
                send(at) if (at % 2 == 0) == first else receive(at)
            more = {dist.isend: [], dist.irecv: []}
            for _ in range(BLOCKS):
                for mine, theirs in ((dist.isend, dist.irecv), (dist.irecv, dist.isend)):
                    operation = mine if first else theirs
                    meet()
                    without = block(None)
                    meet()
                    more[operation].append(block(operation) - without)
        return {"sent": sent, "received": received,
                "send": statistics.median(more[dist.isend]),
                "receive": statistics.median(more[dist.irecv])}
