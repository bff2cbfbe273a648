"""The processes of PyTorch's ranks on Gloo: one thread of compute each, pinned to one core."""
import contextlib
import ctypes
import datetime
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import time

import torch
import torch.distributed as dist

from torch_predict import Failure
from torch_rank import Rank

TIMEOUT = 300  # seconds that one command may take


def apart(work):
    """What `work` returns, run in a process of its own, on one thread."""
    here, there = multiprocessing.Pipe()

    def run():
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        torch.set_num_threads(1)
        there.send(work())

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise Failure("the model could not be run") from None
    finally:
        process.kill()
        process.join()


def die_with_parent():
    """Makes Linux kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() == 1:
        os._exit(1)


def keep_memory():
    """Makes glibc keep freed memory, so that no op pays for getting it from the system again."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def serve(rank, ranks, core, model, microbatches, store, pipe):
    """The main function of a rank's process: answers the calls that come through the pipe."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its ranks
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if core is not None:
        os.sched_setaffinity(0, {core})  # before there are other threads, which inherit it
    ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK: 1 ns, so that sleeping is exact
    keep_memory()
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=TIMEOUT))
        this = Rank(rank, ranks, model, microbatches)
        while (command := pipe.recv()) is not None:
            pipe.send((True, getattr(this, command[0])(*command[1:])))
    except EOFError:
        return
    except Exception as error:  # the caller reports it
        pipe.send((False, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))
        return
    dist.destroy_process_group()


class World:
    """All ranks. A context manager: it ends them on the way out, by force after an exception."""

    def __init__(self, ranks, cores, model, microbatches, folder):
        self.ranks, self.cores, self.model = ranks, cores, model
        self.microbatches, self.folder = microbatches, folder
        self.pipes, self.processes = [], []

    def __enter__(self):
        context = multiprocessing.get_context("fork")  # importing torch takes seconds
        store = pathlib.Path(self.folder) / f"store{os.getpid()}-{time.monotonic_ns()}"
        for rank in range(self.ranks):
            here, there = context.Pipe()
            process = context.Process(target=serve, daemon=True,
                                      args=(rank, self.ranks, self.cores[rank], self.model,
                                            self.microbatches, store, there))
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)
        return self

    def __exit__(self, kind, value, traceback):
        for pipe, process in zip(self.pipes, self.processes):
            if kind is None:
                with contextlib.suppress(OSError):
                    pipe.send(None)
                process.join(5)
            process.kill()
            process.join()
            pipe.close()

    def ask(self, ranks, *command):
        """Calls a method of `Rank`, given with its arguments, on these ranks at once. Returns their
        answers."""
        for rank in ranks:
            self.pipes[rank].send(command)
        end = time.monotonic() + TIMEOUT
        waiting, answers = {self.pipes[rank]: rank for rank in ranks}, {}
        while waiting:
            ready = multiprocessing.connection.wait(list(waiting), max(0.0, end - time.monotonic()))
            if not ready:
                stuck = " and ".join(str(rank) for rank in waiting.values())
                raise Failure(f"rank {stuck} is not done with {command[0]} after {TIMEOUT} s")
            for pipe in ready:
                rank = waiting.pop(pipe)
                try:
                    done, answers[rank] = pipe.recv()
                except EOFError:
                    raise Failure(f"rank {rank} ended unexpectedly") from None
                if not done:
                    raise Failure(f"rank {rank}: {command[0]}: {answers[rank]}")
        return [answers[rank] for rank in ranks]

    def all(self, *command):
        """The same on all ranks."""
        return self.ask(range(self.ranks), *command)

    def step(self, name):
        """How long a step takes, seconds: from a common start until the last rank is done."""
        for attempt in range(30):
            start = soon(attempt)
            ends = self.all("run", name, start)
            if None not in ends:
                return max(ends) - start
        raise Failure("the ranks do not begin in time: is the machine busy?")


def soon(attempt=0):
    """A common start, early enough for every rank to be ready."""
    return time.perf_counter() + 0.01 * (1 + attempt)
