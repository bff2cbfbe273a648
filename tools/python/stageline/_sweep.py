"""Thousands of settings, a row each."""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Tuple, Union

from stageline import _amounts, _core
from stageline._api import ClusterLike, TraceLike, _settings
from stageline._core import Model, Phase
from stageline._errors import UsageError
from stageline._progress import Progress, reports
from stageline._settings import documents_settings

if TYPE_CHECKING:
    import distributed
    import pandas as pd

AxisLike = Any  # text such as "1GB/s..400GB/s:log7", a range, or values


class SweepTable:
    """The rows of a sweep, by number of the scenario. They are read when they are asked for, chunk
    by chunk: a table in a folder may be larger than memory.

    columns: number, the axes, step_ps (picoseconds), step_low_ps and step_high_ps (its range, of a
    language model priced for a device), throughput (samples, or micro-batches, a
    second), bubble (0 to 1), peak_bytes (of the fullest device; its
    range is peak_low_bytes and peak_high_bytes), fits ("yes", "no", "unknown"),
    those of the distribution where something is uncertain, why_not (the reason where there is no
    result). Axes are numbers where all their values are. An empty cell is None.
    folder: where the chunks are; None: in memory.
    """

    def __init__(self, sweep: _core.Sweep, chunks: _core.SweepChunks,
                 folder: _core.SweepFolder | None, file: str | None) -> None:
        self._sweep = sweep
        self._read = [os.path.abspath(one) for one in [*sweep.files(), file] if one is not None]
        self._chunks = chunks
        self._folder = folder
        self._last: tuple[int, list[dict[str, Any]]] = (-1, [])
        self.columns: list[str] = sweep.columns
        self.folder: str | None = None if folder is None else folder.path

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, as dicts."""
        return list(self)

    def __len__(self) -> int:
        return self._sweep.scenarios

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for chunk in range(len(self._chunks)):
            yield from self._chunks.rows(chunk)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """The row of a scenario, by its number."""
        if not 0 <= number < len(self):
            raise IndexError(f"scenario {number} of {len(self)}")
        chunk, row = divmod(number, self._sweep.chunk)
        if self._last[0] != chunk:
            self._last = (chunk, self._chunks.rows(chunk))
        return self._last[1][row]

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._chunks.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame (pandas 2.2, or pyarrow)."""
        return self._chunks.to_pandas()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file (needs pyarrow). It is compressed in memory, and written as the
        command writes files: a file that the sweep has read, or one of its folder, is refused."""
        import pyarrow
        from pyarrow import parquet

        name = _amounts.path(path, "path")
        if name == "-":  # a file, and not standard output
            name = os.path.join(os.curdir, name)
        _core.check_output("to_parquet", name, self._read, self.folder)
        packed = pyarrow.BufferOutputStream()
        with pyarrow.RecordBatchReader.from_stream(self) as reader, \
                parquet.ParquetWriter(packed, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        _core.write_file(name, packed.getvalue().to_pybytes())

    def csv(self) -> str:
        """The table as text: what `stageline sweep --merge` compresses into table.csv.gz."""
        texts = (self._chunks.text(chunk) for chunk in range(len(self._chunks)))
        return "".join(text if chunk == 0 else text.split("\n", 1)[1]
                       for chunk, text in enumerate(texts))

    def merge(self) -> str:
        """Joins the chunks of the folder into its table.csv.gz; returns that file's path."""
        if self._folder is None:
            raise UsageError("merge: the chunks are in memory; give sweep a folder: out=…")
        self._folder.merge()
        return os.path.join(self._folder.path, "table.csv.gz")

    def __repr__(self) -> str:
        return f"<stageline.SweepTable: {len(self)} scenarios of {_core.visible(', '.join(self.columns))}>"


def _fixed(source: TraceLike | None, on: ClusterLike, settings: dict[str, Any]) -> dict[str, str]:
    said = _amounts.given(_settings(source, on, settings))
    for name, value in said.items():
        if callable(value):
            raise UsageError(f"{name}: a sweep and a map take schedules by name; a function is for "
                             "simulate and compare")
    return {name: _amounts.text(value, name) for name, value in said.items()}


def _question(source: Any, on: ClusterLike, axes: Mapping[str, AxisLike] | None,
              sizes: dict[str, Any], settings: dict[str, Any]) -> tuple[str, str]:
    """A sweep file, and what errors call it."""
    given = {key: _amounts.said(value, key) for key, value in sizes.items() if value is not None}
    if axes is not None:
        if not isinstance(axes, Mapping):
            raise UsageError("axes: a dict of settings and their values, such as "
                             f"{{\"devices\": range(2, 17)}} (it is {_amounts.shown(axes)})")
        fixed = _fixed(source, on, settings)
        said = {_amounts.word(name, "axes"): _amounts.axis(values, name)
                for name, values in axes.items()}
        return json.dumps({"format": "stageline-sweep 1", "fixed": fixed, "axes": said, **given}), \
            "the request"  # as _core calls what is about arguments
    if on is not None or settings or given:
        raise UsageError("a sweep file says all settings and axes; leave the others out, or give "
                         "axes={…}")
    if isinstance(source, Mapping):
        return json.dumps(_amounts.said(dict(source), "trace")), "the sweep"
    file = None if source is None or isinstance(source, Model) else _amounts.path(source, "trace")
    if file is None or not os.path.isfile(file):
        raise UsageError("axes: a sweep needs an axis, such as axes={\"devices\": range(2, 17)}")
    return _core.read_text(file), file


@documents_settings("sweep")
def sweep(trace: Union[TraceLike, Mapping[str, Any], None], cluster: ClusterLike = None, *,
          axes: Mapping[str, AxisLike] | None = None,
          out: str | os.PathLike[str] | None = None, threads: int | None = None,
          client: distributed.Client | None = None, chunk: int | None = None, retries: int = 3,
          draws: int | None = None, draw_seed: int | None = None,
          progress: Progress = None, **settings: Any) -> SweepTable:
    """Simulates all combinations of the axes: a table with a row for each scenario.

    axes: by setting, or by a variable that stands as {name} in other settings: a range of whole
    numbers, a list, or the text of the command ("1GB/s..400GB/s:log7", "0.8..1.2:random"). The last
    axis is the fastest. trace: None where it is an axis; without axes, a sweep file or its content.
    settings: as in `compare`, of one schedule, and jitter, seed, scenarios, … as the command takes
    them. draws, draw_seed: of random axes.
    out: a folder for the chunks, which is that of `stageline sweep --out`: what is there is not
    made again. chunk: scenarios in one (default: 1000 to 10000). threads: default: all cores.
    client: a distributed.Client: chunks are made by its workers, each on `threads` threads (default:
    1) and with so many retries. They need the same Stageline, and see `out` under the same path; files that
    are named are sent to them.
    progress: True: a bar (of tqdm, where it is installed), False: none, None: one on a terminal; or a
    function, called with the scenarios that are done and those to do.

    >>> import stageline as sl
    >>> table = sl.sweep("uniform:layers=16", axes={"devices": range(2, 5), "schedule": ["1f1b", "zb_h1"]},
    ...                  microbatches=8)
    >>> len(table), table[4]["devices"], table[4]["schedule"]
    (6, 4, '1f1b')
    >>> table[4]["step_ps"] == sl.simulate("uniform:layers=16", devices=4, microbatches=8).step_time_ps
    True
    """
    threads = 0 if threads is None else _amounts.whole(threads, "threads")
    sizes = {"chunk": chunk, "draws": draws, "draw_seed": draw_seed}
    question, called = _question(trace, cluster, axes, sizes, settings)
    asked = _core.Sweep(question, called)
    file = called if axes is None and not isinstance(trace, Mapping) else None
    if client is not None:
        from stageline import _dask
        _dask.check(client)
    folder = None if out is None else \
        _core.SweepFolder(os.path.abspath(_amounts.path(out, "out")), asked)
    todo = list(range(asked.chunks)) if folder is None else folder.missing()
    if len(todo) == asked.chunks:
        asked.probe()
    if folder is not None:
        folder.begin()
    packed: list[bytes] = []
    with reports(progress, "scenarios") as report:
        if client is not None:
            packed = _dask.run(client, asked, folder, todo, threads or 1,
                              _amounts.whole(retries, "retries"), report)
        elif folder is not None:
            asked.write(folder, todo, threads, report)
        else:
            packed = asked.make(todo, threads, report)
    chunks = _core.SweepChunks(asked, packed) if folder is None else \
        _core.SweepChunks(asked, folder)
    return SweepTable(asked, chunks, folder, file)


def _axis_of(which: str, said: Any) -> Tuple[str, Any]:
    if isinstance(said, str) and "=" in said:
        name, values = _amounts.word(said, which).split("=", 1)
        return name.replace("-", "_"), values
    if isinstance(said, Mapping) and len(said) == 1:
        (name, values), = said.items()
        return _amounts.word(name, which), _amounts.axis(values, name)
    raise UsageError(f"{which}: one setting and its values, {{\"link\": \"1GB/s..400GB/s\"}} or "
                     f"\"link=1GB/s..400GB/s\" (it is {_amounts.shown(said)})")


@documents_settings("sweep", without=("schedule",))
def phase(trace: TraceLike, cluster: ClusterLike = None, *, x: AxisLike, y: AxisLike,
          schedules: str | list[str] | None = None, threads: int | None = None, exhaustive: bool = False,
          progress: Progress = None, **settings: Any) -> Phase:
    """Maps which schedule wins where, over two settings; in a notebook, its picture.

    x, y: a setting and its values, {"microbatches": range(4, 65, 4)} or as text
    "link=1GB/s..400GB/s", which without a form has 33 values across and 17 upwards. schedules: a list
    of names; default: all synchronous ones. exhaustive: simulate every cell, and not only around the
    borders of what a coarse grid finds. progress: as of `sweep`, of cells that are known to be wanted.

    >>> import stageline as sl
    >>> map = sl.phase("uniform:layers=16", devices=4, schedules=["1f1b", "zb_h2"],
    ...                x={"microbatches": [8, 16]}, y="memory=60MB..120MB:lin3")
    >>> [cell["winner"] for cell in map.rows]
    ['1f1b', '1f1b', 'zb_h2', 'zb_h2', 'zb_h2', 'zb_h2']
    """
    if trace is None:
        raise UsageError("trace: a map is of one trace (it is None)")
    fixed = _fixed(trace, cluster, settings)
    fixed["trace"] = fixed.pop("trace")  # last, as the command has it
    names: list[str] = []
    if schedules is not None:
        names = _amounts.words([schedules] if isinstance(schedules, str) else schedules, "schedules")
        if not names:
            raise UsageError("schedules: name one, or leave it out for all synchronous ones")
    title = trace.name if isinstance(trace, Model) else ""
    with reports(progress, "cells") as report:
        return _core.phase(list(fixed.items()), _axis_of("x", x), _axis_of("y", y), names,
                           0 if threads is None else _amounts.whole(threads, "threads"), bool(exhaustive), title,
                           report)
