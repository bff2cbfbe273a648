"""From what a user has to what the engine is asked."""
from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence, Union

from stageline import _amounts, _core
from stageline._comparison import Comparison
from stageline._core import (Compared, Model, Program, Result, bundled_clusters, bundled_traces,
                             schedules)
from stageline._errors import UsageError
from stageline._progress import Progress, reports
from stageline._schedulers import Scheduler, scheduler_of
from stageline._settings import documents_settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Cluster", "Model", "Program", "bundled_clusters", "bundled_traces", "check", "cluster",
           "compare", "from_arrays", "model", "program", "schedules", "simulate", "trace",
           "uniform"]

TraceLike = Union[Model, str, "os.PathLike[str]"]
ClusterLike = Union["Cluster", str, "os.PathLike[str]", None]
ScheduleLike = Union[str, "os.PathLike[str]", Program, Scheduler, Callable[..., Any]]


class Cluster:
    """The devices of a run and their links: a name or file, or equal devices.

    >>> import stageline as sl
    >>> h100 = sl.cluster("h100x8", reserve="2GB")
    >>> h100
    stageline.cluster('h100x8', reserve='2GB')
    >>> len(h100.devices), h100.devices[0]["kind"]
    (8, 'h100')

    devices: of a cluster with a name, as the file says: dicts with name, kind, memory and reserve
    (bytes; None: unknown), rate, host. Empty for equal devices.
    """

    def __init__(self, name: str | None, settings: dict[str, Any]) -> None:
        self.name = name
        self.devices: list[dict[str, Any]] = [] if name is None else _core.cluster_devices(name)
        self._settings = settings

    def settings(self) -> dict[str, Any]:
        """As keyword arguments of `simulate`."""
        named = {} if self.name is None else {"cluster": self.name}
        return {**named, **self._settings}

    def __repr__(self) -> str:
        said = [] if self.name is None else [repr(self.name)]
        said += [f"{key}={value!r}" for key, value in self._settings.items()]
        return f"stageline.cluster({', '.join(said)})"


def trace(source: TraceLike, *, microbatch_size: int = 0, profile_batch: int = 0) -> Model:
    """Opens a trace: a bundled name, a file, a spelled cost model, or the text of a trace.

    microbatch_size: samples in a micro-batch (0: as in the trace). profile_batch: of a PipeDream
    profile, which does not state it.

    >>> import stageline as sl
    >>> sl.trace("resnet50-h100")
    <stageline.Model resnet50: 56 layers, 4.742 ms a micro-batch, estimated>
    """
    if isinstance(source, Model):
        source = source.text
    return _core.open_trace(_amounts.path(source, "trace"),
                            _amounts.whole(microbatch_size, "microbatch_size"),
                            _amounts.whole(profile_batch, "profile_batch"))


def _opened(text: str, microbatch_size: int, profile_batch: int) -> Model:
    """What pickle calls for a Model: what asks for it travels, not its layers."""
    return _core.open_trace(text, microbatch_size, profile_batch)


def _spelled(head: str, options: dict[str, Any]) -> str:
    said = [f"{key}={_amounts.text(value, key)}" for key, value in options.items()
            if value is not None]
    return head + ",".join(said)


def model(shape: str, *, device: str, **options: Any) -> Model:
    """Prices a shape of layers on a device by its data sheet: "model:SHAPE@DEVICE,…".

    shape: "gpt", "llama3-8b", "resnet50", …, or a config.json. options: those of the spelling, such
    as batch, layers, hidden, seq, dtype.

    >>> import stageline as sl
    >>> len(sl.model("gpt", device="h100", layers=32)) > 32
    True
    """
    return trace(_spelled(f"model:{shape}@{device}" + ("," if options else ""), options))


_UNIFORM_TIMES = ("forward", "input_grad", "weight_grad", "update")
_UNIFORM_SIZES = ("output", "weights", "stash")


def uniform(layers: int = 8, **costs: Any) -> Model:
    """A chain of equal layers.

    forward, input_grad, weight_grad (1 ms each), update (0): seconds, or text such as "1ms".
    output (1 MB), weights (4 MB), stash (as output): bytes, or text such as "1MB". batch: samples.

    >>> import stageline as sl
    >>> sl.uniform(layers=4, forward=2e-3).forward.tolist()  # seconds
    [0.002, 0.002, 0.002, 0.002]
    """
    options: dict[str, Any] = {"layers": layers}
    for name, value in costs.items():
        if name in _UNIFORM_TIMES:
            value = _amounts.time(value, name)
        elif name in _UNIFORM_SIZES:
            value = _amounts.size(value, name)
        options[name] = value
    return trace(_spelled("uniform:", options))


def from_arrays(forward: ArrayLike, input_grad: ArrayLike | None = None,
                weight_grad: ArrayLike | None = None, *, backward: ArrayLike | None = None,
                update: ArrayLike | None = None, weights: ArrayLike | None = None,
                gradients: ArrayLike | None = None, optimizer_state: ArrayLike | None = None,
                output: ArrayLike | None = None, stash: ArrayLike | None = None,
                stash_input_grad: ArrayLike | None = None, workspace: ArrayLike | None = None,
                names: Sequence[str] = (), name: str = "model", batch: int = 1,
                method: str = "") -> Model:
    """A model of arrays, one value a layer, for one micro-batch of `batch` samples.

    Seconds: forward (F), input_grad (I), weight_grad (W), backward (B, where I and W are one op;
    default: their sum), update (the optimizer's step). With a backward alone, I and W are half of it
    each.
    Bytes: weights, gradients (default: as weights), optimizer_state, output (read by the next layer;
    the gradient sent back is as large), stash (held from F to W), stash_input_grad (held from F to I
    alone), workspace. A single number is the same for all layers.
    method: how the costs were measured; without it they are called synthetic.

    >>> import numpy as np, stageline as sl
    >>> m = sl.from_arrays(forward=np.full(8, 1e-3), backward=2e-3, weights=4e6, output=1e6)
    >>> sl.simulate(m, devices=4, microbatches=8).step_time_ps
    66000000000
    """
    first = _amounts.column(forward, "forward", 1)
    layers = len(first)

    def column(value: ArrayLike | None, name: str) -> Any:
        return None if value is None else _amounts.column(value, name, layers)

    if backward is not None and input_grad is None and weight_grad is None:
        half = column(backward, "backward") / 2
        if len(half) != layers:
            raise UsageError(f"backward: {len(half)} values for {layers} layers "
                             "(as many as forward has)")
        input_grad = weight_grad = half
    return _core.from_arrays(
        forward=first, input_grad=column(input_grad, "input_grad"),
        weight_grad=column(weight_grad, "weight_grad"),
        backward=column(backward, "backward"), update=column(update, "update"),
        weights=column(weights, "weights"), gradients=column(gradients, "gradients"),
        optimizer_state=column(optimizer_state, "optimizer_state"), output=column(output, "output"),
        stash_input_grad=column(stash_input_grad, "stash_input_grad"), stash=column(stash, "stash"),
        workspace=column(workspace, "workspace"),
        names=_amounts.words(names, "names"), name=_amounts.word(name, "name"),
        batch=_amounts.whole(batch, "batch"), method=_amounts.word(method, "method"))


def cluster(name: str | os.PathLike[str] | None = None, *,
            devices: int | None = None, link: Any = None, memory: _amounts.Size | None = None,
            reserve: _amounts.Size | None = None, host_link: Any = None,
            host_memory: _amounts.Size | None = None,
            pair_overlap: float | None = None) -> Cluster:
    """A bundled cluster ("h100x8", "h100x8*4" for four such machines), a file, or equal devices.

    devices: how many of them a run takes. link: of equal devices, "12GB/s,5us" or (bytes per second,
    seconds). memory, reserve, host_memory: bytes, or text such as "16GB".
    """
    settings = {"devices": devices, "link": link, "memory": memory, "reserve": reserve,
                "host_link": host_link, "host_memory": host_memory, "pair_overlap": pair_overlap}
    given = {key: value for key, value in settings.items() if value is not None}
    return Cluster(None if name is None else _amounts.path(name, "name"), given)


def program(source: str | os.PathLike[str]) -> Program:
    """A program from its text, or from a file in any format that the command reads."""
    if isinstance(source, str) and "\n" in source:
        return Program.parse(_amounts.word(source, "program"))
    return Program.read(_amounts.path(source, "program"))


def check(program: Program | str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What is wrong with a program, or unwise: errors, warnings and notes.

    Findings are dicts with severity, rule, message, device and position (from 0), stage, line and
    column (from 1, of a text), each None where it has no such place; figure: an excerpt, or "".

    >>> import stageline as sl
    >>> text = str(sl.simulate("uniform8", devices=2, microbatches=2).program)
    >>> [found["severity"] for found in sl.check(text)]
    []
    >>> found = sl.check(text.replace("0B0", ""))[0]
    >>> found["severity"], found["rule"], found["stage"], found["line"]
    ('error', 'missing', 0, 7)
    """
    if isinstance(program, Program):
        return _core.lint(program)
    if isinstance(program, str) and "\n" in program:
        return _core.lint_text(_amounts.word(program, "program"))
    return _core.lint(Program.read(_amounts.path(program, "program")))


def _settings(source: TraceLike | None, on: ClusterLike, given: dict[str, Any]) -> dict[str, Any]:
    """source: None where the trace is an axis."""
    settings: dict[str, Any] = {}
    if isinstance(source, Model):
        settings.update(trace=source.text, **source.opened_with)
    elif source is not None:
        settings["trace"] = _amounts.path(source, "trace")
    if isinstance(on, Cluster):
        settings.update(on.settings())
    elif on is not None:
        settings["cluster"] = _amounts.path(on, "cluster")
    settings.update((key, value) for key, value in given.items() if value is not None)
    return settings


# Flags of the command that are no settings of a call, and what stands for them.
_VARIES = "what varies is for sweep, with settings as axes or fixed: axes={\"jitter\": [0.05, 0.1]}"
_PRINTS = "the command prints by it; a call prints nothing, and gives the numbers"
_ELSEWHERE = {
    **dict.fromkeys((row["name"] for row in _core.settings() if not row["call"]), _VARIES),
    **dict.fromkeys(("quiet", "full", "top", "columns"), _PRINTS),
    **dict.fromkeys(("pdf", "png"), "the command makes it; a result has .svg()"),
    **{name: f"of a picture: .svg({name}=…) of the result"
       for name in ("theme", "width", "aspect", "title", "plain", "numbers", "rows", "arrows")},
    "memory_snapshot": "stageline draw writes it",
    "svg": "a result has .svg()", "html": "a result has .html()",
    "json": "a result and a comparison have .json()",
    "timeline": "a result has .timeline, and .json(timeline=True)",
    "why": "a result has .waterfall() and .sensitivity()",
    "no_changes": "nothing is searched before it is asked for: .json(changes=False)",
    "batch": "the mini-batch of a PipeDream profile is profile_batch=…",
    "by": "the rows of a comparison can be sorted: .to_pandas().sort_values(…)",
    "jobs": "compare takes all cores; sweep and phase have threads=…",
}


def _of_a_call(source: TraceLike | None, on: ClusterLike, given: dict[str, Any]) -> dict[str, Any]:
    if source is None:
        raise UsageError("trace: a name or a path belongs there (it is None)")
    for name in given:
        if name in _ELSEWHERE:
            raise UsageError(f"{name}: this is no setting of a call; {_ELSEWHERE[name]}")
    return _settings(source, on, given)


def _named(schedule: Any) -> str | None:
    """The name of a schedule, or the path or text of a program; None: it is a function."""
    if isinstance(schedule, str):
        return schedule
    if isinstance(schedule, Program):
        return str(schedule)
    if isinstance(schedule, os.PathLike):
        path = _amounts.path(schedule, "schedule")
        return path if "/" in path or path.endswith((".slp", ".csv")) else os.path.join(".", path)
    return None


@documents_settings("call", without=("schedules", "timeline", "within"))
def simulate(trace: TraceLike, cluster: ClusterLike = None, *,
             schedule: ScheduleLike | None = None,
             program: Program | str | os.PathLike[str] | None = None,
             **settings: Any) -> Result:
    """Simulates one schedule.

    schedule: "1f1b" (default), "zb_auto:limit=8", "mine.slp" or a `Program`, or a function (see
    `scheduler`). program: likewise, and the text of one. settings: the flags of `stageline simulate` with underscores, of what is
    simulated, listed below. What the command prints and writes has methods of the result; what
    varies (jitter, seed, …) is for `sweep`.

    >>> import stageline as sl
    >>> r = sl.simulate("uniform:layers=8", schedule="zb_h1", devices=4, microbatches=8)
    >>> r.step_time_ps <= sl.simulate("uniform:layers=8", devices=4, microbatches=8).step_time_ps
    True
    """
    asked = _of_a_call(trace, cluster, settings)
    if program is not None:
        if schedule is not None:
            raise UsageError("a program runs instead of a schedule; leave one of them out")
        if not isinstance(program, Program):
            program = _program(program)
        return _core.simulate(_amounts.request(asked), program)
    named = _named(schedule)
    if schedule is None or named is not None:
        return _core.simulate(_amounts.request({**asked, "schedule": named}))
    return _simulated_by(scheduler_of(schedule), asked)


def _simulated_by(own: Scheduler, asked: dict[str, Any]) -> Result:
    return _core.simulate_by(_amounts.request({**asked, "schedule": own.like}), own.lists, own.name)


_program = program


def _each_of_several(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The settings with each of their numbers of devices and their cuts, as `compare` takes them."""
    several = {}
    for name in ("devices", "partition"):
        values = _amounts.said(asked.get(name), name)
        if isinstance(values, list) and values:
            several[name] = [one for i, one in enumerate(values) if one not in values[:i]]
    for values in itertools.product(*several.values()):
        yield {**asked, **dict(zip(several, values))}


@documents_settings("call", without=("schedule", "program", "timeline"))
def compare(trace: TraceLike, cluster: ClusterLike = None, *,
            schedules: ScheduleLike | Iterable[ScheduleLike] | None = None,
            progress: Progress = None, **settings: Any) -> Comparison:
    """Simulates many schedules: a table, the fastest first.

    schedules: names, with knobs where wanted, files of programs and `Program`s, and functions (see
    `scheduler`), or one; default: all that exist. devices: a number, or several. partition: a cut, or several. progress: as of
    `sweep`, of schedules. settings: as in `simulate`.

    >>> import stageline as sl
    >>> table = sl.compare("uniform:layers=8", devices=4, microbatches=8)
    >>> table.best.step_time_ps == min(r.step_time_ps for r in table.results if r and r.synchronous)
    True
    """
    asked = _of_a_call(trace, cluster, settings)

    def compared(named: Any) -> Compared:
        with reports(progress, "schedules") as report:
            return _core.compare(_amounts.request({**asked, "schedules": named}), report)

    if schedules is None or isinstance(schedules, str):
        return Comparison(compared(schedules), [])
    if callable(schedules) or not isinstance(schedules, Iterable):
        schedules = [schedules]
    named: list[str] = []
    own: list[Scheduler] = []
    for one in schedules:
        name = _named(one)
        if name is None:
            own.append(scheduler_of(one))
        else:
            named.append(name)
    if not named and not own:
        raise UsageError("schedules: name one, or leave it out for all that exist")
    return Comparison(compared(named) if named else None,
                      [_simulated_by(one, case) for one in own for case in _each_of_several(asked)])
