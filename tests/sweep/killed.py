#!/usr/bin/env python3
"""Does a sweep survive kill -9? killed.py STAGELINE [KILLS]

Kills a sweep at random moments, KILLS times (default 20) over several folders, and runs it again
until it is done: the merged table must be that of an undisturbed sweep, byte for byte.
"""
import gzip
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

QUESTION = ["uniform:layers=16,forward=1ms,weights=1MB,output=1MB,stash=2MB",
            "--axis", "schedule=1f1b,zb_h1,gpipe,interleaved_1f1b,gems", "--axis", "devices=2..8",
            "--axis", "microbatches=4..64:4", "--axis", "link=1GB/s..400GB/s:log4",
            "--chunk", "40"]


def sweep(stageline, folder, *more):
    return [stageline, "sweep", *QUESTION, "--out", str(folder), "--quiet", *more]


def table(stageline, folder):
    subprocess.run([stageline, "sweep", "--merge", "--out", str(folder), "--quiet"], check=True)
    return (folder / "table.csv.gz").read_bytes()


def main(stageline, kills=20):
    chance = random.Random(22)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        begun = time.monotonic()
        subprocess.run(sweep(stageline, scratch / "undisturbed"), check=True)
        whole = time.monotonic() - begun
        expected = table(stageline, scratch / "undisturbed")
        rows = gzip.decompress(expected).decode().splitlines()[1:]
        assert len({row.split(",", 1)[0] for row in rows}) == len(rows) == 5 * 7 * 16 * 4

        killed = 0
        last = 0
        left = 0
        while killed < kills:
            folder = scratch / f"killed{last}"
            run = subprocess.Popen(sweep(stageline, folder, "--threads", str(chance.randint(1, 3))))
            try:
                run.wait(timeout=chance.uniform(0.02, whole * 0.6))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.wait()
                killed += 1
                left += len(list(folder.glob("*.tmp")))
                continue
            assert run.returncode == 0, run.returncode
            assert table(stageline, folder) == expected, f"{folder} differs"
            assert not list(folder.glob("*.tmp")), "half-written files stay"
            last += 1
        folder = scratch / f"killed{last}"
        subprocess.run(sweep(stageline, folder), check=True)
        assert table(stageline, folder) == expected, f"{folder} differs"

        # An interrupt ends it with the finished chunks, and the exit code of a signal.
        folder = scratch / "interrupted"
        run = subprocess.Popen(sweep(stageline, folder), stderr=subprocess.PIPE, text=True)
        while not list(folder.glob("chunk-*.csv.gz")) and run.poll() is None:
            time.sleep(0.002)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)[1]
        if run.returncode != 0:  # else it was done first
            assert run.returncode == 130, run.returncode
            assert "same command goes on" in said, said
        subprocess.run(sweep(stageline, folder), check=True)
        assert table(stageline, folder) == expected, f"{folder} differs"
        print(f"{killed} kills, {last + 1} sweeps, {left} files left half written: the table is the "
              "same")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
