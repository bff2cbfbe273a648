"""Chunks of sweeps on the workers of a Dask cluster."""
from __future__ import annotations

import contextlib
import functools
import os
import uuid
from typing import Any, Callable, NamedTuple

from stageline import _core
from stageline._errors import UsageError

try:
    from distributed import Client, WorkerPlugin, as_completed
except ImportError:
    raise UsageError("client: sweeps on many machines need Dask, which is not installed: "
                     "pip install distributed") from None


class Luggage(WorkerPlugin):
    """What the tasks of one sweep share: a plugin of the workers, which each gets once, also one
    that joins late. The files that the question names travel with it."""

    def __init__(self, question: str, wanted: str, files: dict[str, bytes]) -> None:
        self.question = question
        self.hash = wanted
        self.files = files
        self.name = f"stageline-{wanted}-{uuid.uuid4().hex}"

    def setup(self, worker: Any) -> None:
        _at_hand.setdefault(self.name, []).append(self)

    def teardown(self, worker: Any) -> None:
        _at_hand[self.name].pop()
        if not _at_hand[self.name]:
            del _at_hand[self.name]
        if not _at_hand:
            _folder_of.cache_clear()
            _sweep_of.cache_clear()


# By name; once for each worker of this process.
_at_hand: dict[str, list[Luggage]] = {}


class Job(NamedTuple):
    """What each task is told."""

    luggage: str
    folder: str | None
    threads: int


@functools.lru_cache(maxsize=4)
def _sweep_of(question: str, wanted: str) -> _core.Sweep:
    """Kept by the worker: its chunks share traces and compiled orders."""
    sweep = _core.Sweep(question, "the sweep")
    if sweep.hash != wanted:
        raise UsageError(
            f"client: a worker with Stageline {_core.version()} would make other rows than the "
            "caller, who has another version; install one version everywhere")
    return sweep


@functools.lru_cache(maxsize=4)
def _folder_of(path: str, sweep: _core.Sweep) -> _core.SweepFolder:
    if not os.path.isfile(os.path.join(path, "sweep.json")):
        raise UsageError(f"out: a worker does not see the folder {path}; it has to be one that all "
                         "machines share, or leave out away, and the rows come back")
    return _core.SweepFolder(path, sweep)


def make_chunk(chunk: int, job: Job) -> bytes | None:
    """The task: the chunk in its folder, or as bytes."""
    luggage = _at_hand[job.luggage][0]
    provided = _core.ProvidedFiles(luggage.files)
    try:
        sweep = _sweep_of(luggage.question, luggage.hash)
        if job.folder is None:
            return sweep.make([chunk], job.threads)[0]
        folder = _folder_of(job.folder, sweep)
        if not folder.has(chunk):  # another worker may have ended it and died since
            sweep.write(folder, [chunk], job.threads)
        return None
    finally:
        del provided  # a traceback would keep it


def check(client: Any) -> None:
    """Refuses what is no client that can wait."""
    if not isinstance(client, Client) or client.asynchronous:
        raise UsageError("client: a distributed.Client that is not asynchronous "
                         f"(it is {type(client).__name__})")


def _collect(futures: list[Any], rows: list[int], progress: Callable[[int, int], Any] | None
             ) -> list[bytes]:
    place = {future.key: i for i, future in enumerate(futures)}
    made: list[bytes] = [b""] * len(futures)
    done = 0
    for future, value in as_completed(futures, with_results=True):
        at = place[future.key]
        if value is not None:
            made[at] = value
        future.release()  # the worker forgets the bytes
        done += rows[at]
        if progress is not None:
            progress(done, sum(rows))
    return made


def run(client: Client, sweep: _core.Sweep, folder: _core.SweepFolder | None,
        todo: list[int], threads: int, retries: int,
        progress: Callable[[int, int], Any] | None) -> list[bytes]:
    """Has these chunks made; returns them in order where there is no folder."""
    if not todo:
        return []
    rows = [min(sweep.chunk, sweep.scenarios - chunk * sweep.chunk) for chunk in todo]
    luggage = Luggage(sweep.question, sweep.hash, sweep.files())
    job = Job(luggage.name, None if folder is None else folder.path, threads)
    client.register_plugin(luggage, name=luggage.name)
    futures: list[Any] = []
    try:
        futures = client.map(make_chunk, todo, job=job, pure=False, retries=retries)
        made = _collect(futures, rows, progress)
    except BaseException:
        client.cancel(futures, force=True)
        raise
    finally:
        with contextlib.suppress(OSError):  # there may be no scheduler any more
            client.unregister_worker_plugin(luggage.name)
    if folder is not None and folder.missing():
        raise UsageError(f"out: the workers made chunks that are not in {folder.path} here; the folder "
                         "has to be one that all machines share")
    return [] if folder is not None else made
