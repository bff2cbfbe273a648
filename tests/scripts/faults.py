#!/usr/bin/env python3
"""Does a file that cannot be written leave what was there, and nothing beside it? faults.py STAGELINE

Every command that writes a file: on a disk that is full at the first byte and in the middle, killed
in the middle of a write, and into a folder that nobody may write.
"""
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


def main(stageline):
    tests = 0
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
    sys.exit(main(sys.argv[1]))
