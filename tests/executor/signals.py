#!/usr/bin/env python3
"""Do the programs that measure end soon after SIGTERM and SIGINT, wherever they are?
signals.py STAGELINE_PROFILE STAGELINE_VALIDATE STAGELINE_EXEC STAGELINE_TRAIN

A program that does not end is the failure; a slow machine is not, so the bound is generous."""
import os
import signal
import subprocess
import sys
import tempfile
import time

SOON = 300  # seconds; a program that ignored the signal would go on for ten minutes
BEGUN = 300  # seconds until it has begun

failed = []


def catches(process, number):
    """Whether a process has a handler for the signal."""
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        caught = next((line.split()[1] for line in status if line.startswith("SigCgt:")), "0")
    return int(caught, 16) >> (number - 1) & 1 == 1


def check(name, command, number, after, first_words=None, last_words="was written\n"):
    """Starts a command, waits until it has said its first words and can be interrupted, sends it the signal so many
    seconds later, and looks at how it ends."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        def all_said():  # leaves the place where the process writes
            return os.pread(errors.fileno(), 1 << 20, 0).decode(errors="replace")

        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        begun = time.monotonic()
        while not (catches(process.pid, number) and (first_words or "") in all_said()):
            if process.poll() is not None or time.monotonic() - begun > BEGUN:
                process.kill()
                process.wait()
                failed.append(f"{name}: it has not begun: {process.returncode}, {all_said()[-400:]}")
                return
            time.sleep(0.02)
        time.sleep(after)
        sent = time.monotonic()
        process.send_signal(number)
        try:
            process.wait(timeout=SOON)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            failed.append(f"{name}: it did not end within {SOON} s of the signal")
            return
        said = all_said()
        took = time.monotonic() - sent
        print(f"{name}: ended {took:.2f} s after signal {int(number)}, with {process.returncode}")
        if process.returncode != 128 + number:
            failed.append(f"{name}: exit code {process.returncode}, not {128 + number}: {said[-400:]}")
        if said.count("interrupted; nothing was written") != 1 or not said.endswith(last_words):
            failed.append(f"{name}: it does not say once, and last, that it was interrupted: {said[-400:]!r}")
        if os.listdir(folder):
            failed.append(f"{name}: it left {os.listdir(folder)}")


profile, validate, executor, train = (os.path.abspath(path) for path in sys.argv[1:5])
small = "gpt,layers=2,hidden=64,heads=2,seq=32,vocab=100"
# A training step of this one takes seconds, and an op of it a second or more, so that --rounds will not be reached.
large = "gpt,layers=2,hidden=1024,heads=8,seq=512,vocab=2000"
trace = "model:gpt@cpu-core,batch=2,layers=2,hidden=64,heads=2,seq=32,vocab=100"
endless = [profile, small, "--batch", "2", "--rounds", "100000", "--seconds", "600", "--quiet", "--out", "trace.json"]
check("profile", endless, signal.SIGTERM, 3, "of tensors")
check("profile, Ctrl-C", endless, signal.SIGINT, 3)
check("profile, warming up", [profile, large, "--batch", "8", "--rounds", "1000", "--quiet", "--out", "trace.json"],
      signal.SIGTERM, 3, "of tensors")
grid = [validate, "--devices", "cpu:1", "--schedule", "gpipe", "--rounds", "100000", "--quiet", "--out", "out.json"]
check("validate", grid + ["--model", small + "@2"], signal.SIGTERM, 4, "of tensors")
check("validate, warming up", grid + ["--model", large + "@8"], signal.SIGTERM, 3, "of tensors")
check("exec", [executor, trace, "--model", small, "--devices", "cpu:1", "--runs", "100000", "--quiet", "--json", "out.json"],
      signal.SIGTERM, 3)
check("train, evaluating", [train, "resnet50-cpu", "--schedule", "1f1b", "--devices", "4", "--microbatches", "8",
                            "--steps", "1000", "--data", "textures,train=600,test=8000", "--json", "log.json"],
      signal.SIGTERM, 3, "test images", "was written (--checkpoint keeps it)\n")
for text in failed:
    print("failed:", text)
sys.exit(1 if failed else 0)
