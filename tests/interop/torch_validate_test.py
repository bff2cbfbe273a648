#!/usr/bin/env python3
"""Does torch_validate.py work from profile to replay, refuse bad input and leave nothing behind?

usage: torch_validate_test.py STAGELINE

Seconds are not judged: the model is tiny. Exit code 77 where no torch can be imported.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).with_name("torch_validate.py")
SMALL = ["--model", "mlp", "--microbatches", "4", "--rounds", "1"]
failed = []


def check(holds, what):
    if not holds:
        failed.append(what)
        print("failed:", what)


def run(*arguments):
    done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], check=False, text=True,
                          timeout=240, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def alive(process):
    """Neither gone nor only to be waited for."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check_evidence(path, schedules, imitated):
    whole = json.loads(path.read_text(encoding="utf-8"))
    check(whole["format"] == "stageline-torch-steps 1" and whole["device"] and whole["date"],
          f"{path.name} does not say what it is")
    case = whole["cases"][0]
    check([one["name"] for one in case["runs"]] == schedules, f"{path.name} has other runs")
    check(case["imitated"] == imitated, f"{path.name}: imitated is {case['imitated']}")
    for one in case["runs"]:
        check(len(one["steps"]) == 1 and one["steps"][0] > 0, f"{one['name']} was not timed")
        check(("program" in one) != ("messages" in one), f"{one['name']} cannot be simulated")
        for op in case["measured"]["costs"][one["layout"]].values():
            check(len(op) == 2 and min(op) > 0, f"{one['name']}: an op was not timed")
    return whole


def check_end(stageline, folder, how):
    """Interrupted, the script ends its ranks and writes nothing."""
    out = folder / "never.json"
    script = subprocess.Popen([sys.executable, SCRIPT, stageline, *SMALL[:-1], "1000", "--out", out],
                              text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    line = script.stderr.readline()
    check("round 1 of 1000" in line, f"instead of its progress it says {line}")
    ranks = pathlib.Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text().split()
    check(len(ranks) >= 2, "there are no ranks")
    script.send_signal(how)
    said = script.communicate(timeout=60)[1]
    if how != signal.SIGKILL:
        check(script.returncode == 130 and "nothing was written" in said,
              f"{how.name}: {script.returncode}, {said}")
    end = time.monotonic() + 20
    while any(alive(rank) for rank in ranks) and time.monotonic() < end:
        time.sleep(0.05)
    check(not any(alive(rank) for rank in ranks), f"{how.name} leaves ranks running")
    check(not list(folder.glob("never*")), f"{how.name} leaves a file")


def main():
    stageline = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = folder / "kept.json"
        schedules = ["ScheduleGPipe", "Schedule1F1B", "ScheduleInterleavedZeroBubble",
                     "ScheduleDualPipeV", "list:limit=2,split=no"]
        code, said, wrong = run(stageline, *SMALL, "--schedules", ",".join(schedules), "--out", kept)
        if code == 77:
            print(said, end="")
            return 77
        check(code == 0, f"a whole validation: {code}, {wrong}")
        if code == 0:
            whole = check_evidence(kept, schedules, len(os.sched_getaffinity(0)) < 2)
            check(all(f"| {one} |" in said for one in schedules) and "mean error" in said,
                  f"its report: {said}")

            code, again, wrong = run(stageline, "--replay", kept)
            check(code == 0 and again.splitlines()[2:12] == said.splitlines()[2:12],
                  f"replayed: {code}, {wrong}")
            for group in whole["errors"].values():
                group["mean_error"] -= 0.01
            worse = folder / "worse.json"
            worse.write_text(json.dumps(whole), encoding="utf-8")
            code, _, wrong = run(stageline, "--replay", worse)
            check(code == 1 and "the mean error of" in wrong, f"grown errors: {code}, {wrong}")
            code, _, wrong = run(stageline, "--replay", worse, "--out", worse)
            check(code == 0 and worse.read_text() == kept.read_text(), f"judged anew: {code}, {wrong}")

        many = folder / "many.json"
        ranks = len(os.sched_getaffinity(0)) + 1
        if ranks <= 8:
            code, said, wrong = run(stageline, *SMALL, "--ranks", ranks, "--microbatches", 2 * ranks,
                                    "--schedules", "Schedule1F1B,zb_v", "--out", many)
            check(code == 0 and f"| mlp, {ranks} ranks, imitated |" in said, f"imitated: {code}, {wrong}")
            if code == 0:
                check_evidence(many, ["Schedule1F1B", "zb_v"], True)

        for flags, sentence in ((["--model", "nothing"], "there is no model \"nothing\""),
                                (["--schedules", "ScheduleNothing"], "there is no class"),
                                (["--schedules", "nothing"], "nothing"),
                                (["--schedules", "chimera"], "--schedules chimera"),
                                (["--ranks", "1"], "--ranks must be 2 to 8"),
                                (["--out", folder / "no" / "file"], "there is no folder"),
                                (["--replay", folder / "none"], "cannot be read"),
                                (["--replay", SCRIPT], "is not JSON")):
            code, _, wrong = run(stageline, *SMALL, *flags)
            check(code == 2 and sentence in wrong, f"{flags}: {code}, {wrong}")
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            check_end(stageline, folder, how)
        check(sorted(one.name for one in folder.iterdir()) in (["kept.json", "many.json", "worse.json"],
                                                               ["kept.json", "worse.json"]),
              f"there is more than was asked for: {sorted(folder.iterdir())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
