"""Chunks of sweeps on the workers of a Dask cluster."""
from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from stageline import _core
from stageline._errors import UsageError

if TYPE_CHECKING:
    import distributed


class Job(NamedTuple):
    """What the tasks of one sweep share."""

    question: str
    hash: str
    folder: str | None
    threads: int


@functools.lru_cache(maxsize=4)
def _sweep_of(question: str, wanted: str) -> _core.Sweep:
    """Kept by the worker: its chunks share traces and compiled orders."""
    sweep = _core.Sweep(question, "the sweep")
    if sweep.hash != wanted:
        raise UsageError(
            f"client: a worker with Stageline {_core.version()} would make other rows: it has another "
            "version than the caller, or sees other files; install one version everywhere, and name "
            "files by absolute paths that all machines share")
    return sweep


@functools.lru_cache(maxsize=4)
def _folder_of(job: Job) -> _core.SweepFolder:
    assert job.folder is not None
    if not os.path.isfile(os.path.join(job.folder, "sweep.json")):
        raise UsageError(f"out: a worker does not see the folder {job.folder}; it has to be one that "
                         "all machines share")
    return _core.SweepFolder(job.folder, _sweep_of(job.question, job.hash))


def make_chunk(chunk: int, job: Job) -> bytes | None:
    """The task: the chunk in its folder, or as bytes."""
    sweep = _sweep_of(job.question, job.hash)
    if job.folder is None:
        return sweep.make([chunk], job.threads)[0]
    folder = _folder_of(job)
    if not folder.has(chunk):  # another worker may have ended it and died since
        sweep.write(folder, [chunk], job.threads)
    return None


def check(client: Any) -> None:
    """Refuses what is no client that can wait."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("client: sweeps on many machines need Dask, which is not installed: "
                         "pip install distributed") from None
    if not isinstance(client, Client) or client.asynchronous:
        raise UsageError("client: a distributed.Client that is not asynchronous "
                         f"(it is {type(client).__name__})")


def run(client: distributed.Client, sweep: _core.Sweep, folder: _core.SweepFolder | None,
        todo: list[int], threads: int, retries: int,
        progress: Callable[[int, int], Any] | None) -> list[bytes]:
    """Has these chunks made; returns them in order where there is no folder."""
    from distributed import as_completed

    rows = [min(sweep.chunk, sweep.scenarios - chunk * sweep.chunk) for chunk in todo]
    # By value: a task that waits for the data of no other worker. Dask itself makes large ones a task.
    job = Job(sweep.question, sweep.hash, None if folder is None else folder.path, threads)
    futures = client.map(make_chunk, todo, job=job, pure=False, retries=retries)
    place = {future.key: i for i, future in enumerate(futures)}
    made: list[bytes] = [b""] * len(todo)
    done = 0
    try:
        for future, value in as_completed(futures, with_results=True):
            at = place[future.key]
            if value is not None:
                made[at] = value
            future.release()  # the worker forgets the bytes
            done += rows[at]
            if progress is not None:
                progress(done, sum(rows))
    except BaseException:
        client.cancel(futures, force=True)
        raise
    if folder is not None and folder.missing():
        raise UsageError(f"out: the workers made chunks that are not in {folder.path} here; the folder "
                         "has to be one that all machines share")
    return [] if folder is not None else made
