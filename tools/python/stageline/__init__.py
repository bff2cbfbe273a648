"""Stageline: a simulator of pipeline-parallel training.

>>> import stageline as sl
>>> trace = sl.uniform(layers=8, forward="1ms", input_grad="1ms", weight_grad="1ms")
>>> result = sl.simulate(trace, schedule="1f1b", devices=4, microbatches=8)
>>> round(result.step_time, 6)  # seconds
0.066
>>> result.step_time_ps
66000000000
>>> [row["schedule"] for row in sl.compare(trace, schedules=["gpipe", "zb_h1"], devices=4,
...                                        microbatches=8).rows]
['zb_h1', 'gpipe']

Times are seconds (floats; exact picoseconds in attributes that end in ``_ps``), sizes bytes.
Arguments are those of the command, with underscores: text such as ``"8GB"`` or ``"5us"``, or plain
numbers of bytes and seconds.
"""
from stageline._api import (Cluster, Model, Program, bundled_clusters, bundled_traces, check,
                            cluster, compare, from_arrays, model, program, schedules, simulate, trace,
                            uniform)
from stageline._comparison import Comparison
from stageline._core import (Phase, Problem, Result, StageCosts, Timeline, lane_kinds, op_kinds,
                             version)
from stageline._errors import (ContradictionError, Deadlock, Error, ProgramError, TraceError,
                               UsageError)
from stageline._figure import Figure, draw
from stageline._schedulers import Scheduler, scheduler
from stageline._settings import settings
from stageline._sweep import SweepTable, phase, sweep

__version__ = version().split()[0]

__all__ = [
    "Cluster", "Comparison", "ContradictionError", "Deadlock", "Error", "Figure", "Model", "Phase",
    "Problem", "Program", "ProgramError", "Result", "Scheduler", "StageCosts", "SweepTable",
    "Timeline", "TraceError", "UsageError", "bundled_clusters", "bundled_traces", "check",
    "cluster", "compare", "draw", "from_arrays", "lane_kinds", "model", "op_kinds", "phase",
    "program", "scheduler", "schedules", "settings", "simulate", "sweep", "trace", "uniform",
    "version",
]
