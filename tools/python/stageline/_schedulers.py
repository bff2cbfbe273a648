"""Schedules written in Python."""
from __future__ import annotations

from typing import Any, Callable, Iterable, Tuple, Union, overload

from stageline._amounts import shown, word
from stageline._core import Problem, Program, visible
from stageline._errors import UsageError

Op = Union[str, Tuple[int, str, int]]
Lists = Union[Iterable[Iterable[Op]], str, Program]


class Scheduler:
    """A function from a `Problem` to the ops of each device, with the placement that it is for.

    like: the schedule whose placement of stages and cut it takes.
    """

    def __init__(self, lists: Callable[[Problem], Lists], like: str = "1f1b",
                 name: str = "") -> None:
        if not callable(lists):
            raise UsageError("lists: a function from a Problem to lists of ops belongs there "
                             f"(it is {shown(lists)})")
        self.lists = lists
        self.like = word(like, "like")
        self.name = word(name or getattr(lists, "__name__", "python"), "name")
        Program().schedule = self.name  # refuses what no program can say
        self.__doc__ = lists.__doc__ or type(self).__doc__

    def __call__(self, problem: Problem) -> Lists:
        return self.lists(problem)

    def __repr__(self) -> str:
        return f"<stageline.Scheduler {visible(self.name)}, placed like {visible(self.like)}>"


@overload
def scheduler(lists: Callable[[Problem], Lists], *, like: str = ..., name: str = ...) -> Scheduler:
    ...


@overload
def scheduler(lists: None = None, *, like: str = ..., name: str = ...
              ) -> Callable[[Callable[[Problem], Lists]], Scheduler]:
    ...


def scheduler(lists: Callable[[Problem], Lists] | None = None, *, like: str = "1f1b",
              name: str = "") -> Any:
    """Makes a function a schedule: from a `Problem` to a list of ops for each device.

    An op is "0F3" (stage 0, forward, micro-batch 3) or (0, "F", 3). Kinds: F; B, or I and W apart;
    R before a B that recomputes; U is added where it is left out, and so are messages. The result is
    checked as a given program is. It may also be the text of a program.
    like: the schedule whose placement of stages it takes: "1f1b" (stage s on device s),
    "interleaved_1f1b" (looped), "zb_v" (two stages a device, as a V), …

    >>> import stageline as sl
    >>> @sl.scheduler
    ... def gpipe(problem):
    ...     \"\"\"All forwards, then all backwards.\"\"\"
    ...     batches = range(problem.microbatches)
    ...     return [[(s, "F", m) for m in batches] + [(s, "B", m) for m in reversed(batches)]
    ...             for s in range(problem.stages)]
    >>> mine = sl.simulate("uniform:layers=8", schedule=gpipe, devices=4, microbatches=8)
    >>> mine.step_time_ps
    66000000000
    """
    if lists is None:
        return lambda function: Scheduler(function, like, name)
    return Scheduler(lists, like, name)


def scheduler_of(schedule: Any) -> Scheduler:
    if isinstance(schedule, Scheduler):
        return schedule
    if callable(schedule):
        return Scheduler(schedule)
    raise UsageError(f"schedule: a name, or a function from a Problem to lists of ops "
                     f"(it is {shown(schedule)})")
