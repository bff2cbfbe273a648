#!/usr/bin/env python3
"""Does a file that cannot be written leave what was there, and nothing beside it?

usage: faults.py STAGELINE [FAULTY_CALLS.so]

Every command that writes a file: on a disk that is full at the first byte and in the middle, killed
in the middle of a write, and into a folder that nobody may write. With the library of
faulty_calls.cpp also killed, and failing, at each call that writes; and under a clock that jumps.
"""
import errno
import gzip
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

UNIFORM = ["uniform:layers=8", "--devices", "4", "--microbatches", "8", "--link", "1GB/s"]
OUTPUTS = {
    "simulate --json": ["simulate", *UNIFORM, "--timeline", "--json", "FILE"],
    "compare --json": ["compare", *UNIFORM, "--schedule", "gpipe,1f1b", "--json", "FILE"],
    "bound --json": ["bound", *UNIFORM, "--json", "FILE"],
    "draw --svg": ["draw", *UNIFORM, "--svg", "FILE"],
    "draw --chrome": ["draw", *UNIFORM, "--chrome", "FILE"],
    "program --out": ["program", *UNIFORM, "--out", "FILE"],
    "import --out": ["import", "uniform:layers=8", "--out", "FILE"],
    "sensitivity --json": ["sensitivity", *UNIFORM, "--json", "FILE"],
}
KEPT = b"what was there\n"
BESIDE = ".stageline.tmp"  # what a killed writer may leave, until the next one

failed = []


def check(truth, what):
    if not truth:
        failed.append(what)


def limited(most, killed):
    """No file of the process gets longer than so many bytes; the signal kills, or the write fails as
    on a full disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def run(stageline, words, file, before=None):
    command = [stageline, *(str(file) if word == "FILE" else word for word in words)]
    # Without restore_signals Python would set the signal back.
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          preexec_fn=before, restore_signals=False)


def faulty(stageline, library, words, folder, **variables):
    """A run in the folder, with `variables` of faulty_calls.cpp: kill, 28, …"""
    environment = {**os.environ, "LD_PRELOAD": library,
                   **{f"STAGELINE_{name.upper()}": str(value) for name, value in variables.items()}}
    return subprocess.run([stageline, *words], cwd=folder, env=environment, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)


def contents(folder):
    """All files below the folder, a packed table as its text."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found[str(path.relative_to(folder))] = (
                gzip.decompress(data) if path.suffix == ".gz" else data)
    return found


CALLS = {
    "one file": ["simulate", *UNIFORM, "--json", "a"],
    "two files": ["draw", *UNIFORM, "--quiet", "--svg", "a", "--chrome", "b"],
    "a sweep": ["sweep", "uniform:layers=8", "--axis", "devices=2,4", "--threads", "1",
                "--out", "runs", "--merge", "--quiet"],
}


def at_every_call(stageline, library, name, words, whole, unnamed):
    """Killed at the n-th call that writes, for every n: then and after the next run, what is there?
    And with the call failing instead. Returns the number of runs."""
    runs = 0
    system = {} if unnamed else {"no_tmpfile": 1}
    old = {file: KEPT for file in ("a", "b") if file in whole}
    count = 0  # of the calls, once it is known
    for fault in ("kill", errno.ENOSPC):
        at = 0
        while count == 0 or at < count:
            at += 1
            what = f"{name}, {'unnamed' if unnamed else 'named'}, {fault} at call {at}"
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                for file, content in old.items():
                    (folder / file).write_bytes(content)
                done = faulty(stageline, library, words, folder, fault=fault, fault_at=at, **system)
                runs += 1
                there = contents(folder)
                for file in list(there):
                    if fault == "kill" and file.endswith(BESIDE):
                        del there[file]
                for file, content in there.items():
                    check(content == whole.get(file) or content == old.get(file),
                          f"{what}: {file} is neither what was there nor whole")
                check(set(old) <= set(there), f"{what}: only {sorted(there)} are there")
                if done.returncode == 0:
                    check(there == whole, f"{what}: {sorted(there)}")
                    if fault == "kill":  # so many calls there are not
                        count = at - 1
                    continue  # else a named file took the place of one without a name
                if fault == "kill":
                    check(done.returncode == -signal.SIGKILL, f"{what}: exit {done.returncode}")
                else:
                    said = done.stderr.decode()
                    check(done.returncode == 2, f"{what}: exit {done.returncode}")
                    check(said.startswith("stageline: ") and said.count("\n") == 1,
                          f"{what}: says {said!r}")
                again = faulty(stageline, library, words, folder, **system)
                check(again.returncode == 0, f"{what}, then: {again.stderr.decode()!r}")
                check(contents(folder) == whole, f"{what}, then: {sorted(contents(folder))}")
    check(count > 4, f"{name}: {count} calls are too few")
    return runs


def calls(stageline, library):
    runs = 0
    for name, words in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            done = faulty(stageline, library, words, folder)
            check(done.returncode == 0, f"{name}: {done.stderr.decode()!r}")
            whole = contents(folder)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            jumping = faulty(stageline, library, words, folder, clock=1)
            runs += 1
            check((jumping.stdout, jumping.returncode) == (done.stdout, 0) and
                  contents(folder) == whole, f"{name}: a clock that jumps changes it")
        for unnamed in (True, False):
            runs += at_every_call(stageline, library, name, words, whole, unnamed)
    return runs


def without_proc(stageline):
    """A file that replaces another where there is no /proc. Needs a namespace of one's own."""
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    try:
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode != 0:
            return 0
    except FileNotFoundError:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "a"
        file.write_bytes(KEPT)
        words = [file if word == "FILE" else word for word in OUTPUTS["program --out"]]
        ended = subprocess.run([*hidden, stageline, *words], capture_output=True, check=False)
        check(ended.returncode == 0, f"without /proc: {ended.returncode}: {ended.stderr[-300:]}")
        check(b"stageline-program" in file.read_bytes(), "without /proc: the file is not written")
        check(os.listdir(folder) == ["a"], f"without /proc: left {os.listdir(folder)}")
    return 1


def with_a_full_standard_error(stageline):
    """Notes are lost, the result is not."""
    words = ["compare", *UNIFORM, "--schedule", "gpipe,1f1b"]
    whole = subprocess.run([stageline, *words], capture_output=True, check=False)
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([stageline, *words], stdout=subprocess.PIPE, stderr=full, check=False)
    check((ended.returncode, ended.stdout) == (0, whole.stdout), "standard error is full")
    return 1


def main(stageline, library=None):
    stageline = os.path.abspath(stageline)
    tests = calls(stageline, os.path.abspath(library)) if library else 0
    tests += without_proc(stageline) if library else 0
    tests += with_a_full_standard_error(stageline)
    for name, words in OUTPUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a"
            whole = run(stageline, words, file)
            check(whole.returncode == 0, f"{name}: exit {whole.returncode}: {whole.stderr[-300:]}")
            size = file.stat().st_size if file.exists() else 0
            check(size > 0, f"{name}: nothing is written")
            for most in (0, 1, size // 2, size - 1):
                for killed in (False, True):
                    what = f"{name}, {'killed' if killed else 'full'} at byte {most} of {size}"
                    file.write_bytes(KEPT)
                    ended = run(stageline, words, file, lambda m=most, k=killed: limited(m, k))
                    tests += 1
                    check(file.read_bytes() == KEPT, f"{what}: the old file is gone")
                    check(os.listdir(folder) == ["a"], f"{what}: left {os.listdir(folder)}")
                    if killed:
                        check(ended.returncode == -signal.SIGXFSZ, f"{what}: {ended.returncode}")
                        continue
                    said = ended.stderr.decode()
                    check(ended.returncode == 2, f"{what}: exit {ended.returncode}")
                    check(said.count("\n") == 1 and str(file) in said, f"{what}: says {said!r}")
            # Nobody may write in /proc, not even root.
            ended = run(stageline, words, "/proc/stageline-a")
            said = ended.stderr.decode()
            tests += 1
            check(ended.returncode == 2, f"{name}, in /proc: exit {ended.returncode}")
            check(said.count("\n") == 1 and "/proc" in said, f"{name}, in /proc: says {said!r}")
    print(f"{tests} faults")
    for what in failed:
        print(f"FAILED {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
