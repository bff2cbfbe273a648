#!/usr/bin/env python3
"""How much faster is a sweep on two threads, and where do these spend their time?

sweep_on_threads.py STAGELINE [THREADS…]: 9984 rows of ResNet-50 on 8 devices, all schedules that
take images × micro-batches × links; four minutes of processor time for each number of threads
(default: 1 and 2). On a busy machine the wall time says little: what counts then is the processor
time of all threads, and how long each was blocked, neither running nor waiting for a core. In quiet,
the ratio is that of the processor time to the longest of processor time and blocked time.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

SCHEDULES = ("1f1b,1f1b_v,chimera,dapple,dualpipe,dualpipe_v,eager_1f1b,gems,gpipe,hanayo,"
             "interleaved_1f1b,interleaved_zb,layerpipe,list,looped_bfs,naive,pipedream,"
             "pipedream_2bw,pipefb,stale_weights,v_half,v_min,zb_auto,zb_h1,zb_h2,zb_v")
WORDS = ["resnet50-cpu", "--devices", "8", "--axis", f"schedule={SCHEDULES}", "--axis",
         "microbatches=2..48:2", "--axis", "link=1GB/s..400GB/s:log16", "--quiet"]


def run(command, threads):
    """Wall seconds; by thread, seconds on a core, waiting for one, and until its last sign."""
    with tempfile.TemporaryDirectory() as scratch:
        begun = time.monotonic()
        sweep = subprocess.Popen([command, "sweep", *WORDS, "--out", f"{scratch}/runs", "--threads",
                                  str(threads)])
        seen = {}
        while sweep.poll() is None:
            for task in pathlib.Path(f"/proc/{sweep.pid}/task").glob("*"):
                try:
                    ran, waited, _ = map(int, (task / "schedstat").read_text("ascii").split())
                except (OSError, ValueError):  # it has just ended
                    continue
                seen[task.name] = (ran / 1e9, waited / 1e9, time.monotonic() - begun)
            time.sleep(0.02)
        if sweep.returncode:
            sys.exit(sweep.returncode)
        return time.monotonic() - begun, list(seen.values())


def main(command, counts):
    alone = None
    for threads in counts:
        wall, seen = run(command, threads)
        ran = sum(one[0] for one in seen)
        longest = max(one[2] - one[1] for one in seen)
        alone = alone or (wall, ran)
        print(f"{threads} threads: {wall:.1f} s, {alone[0] / wall:.2f} times as fast; {ran:.1f} s of "
              f"processor time; in quiet {alone[1] / longest:.2f} times as fast", flush=True)
        for on, waited, end in seen:
            print(f"  ran {on:.2f} s, waited for a core {waited:.2f} s, "
                  f"blocked {end - on - waited:.2f} s, ended at {end:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]] or [1, 2])
