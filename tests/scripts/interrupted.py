#!/usr/bin/env python3
"""Does a long question say what it knows when it is interrupted, and leave no half-written file?
interrupted.py STAGELINE [--sample]

--sample: every third question, where sanitizers make STAGELINE ten times as slow.

Sends a signal after some processor time: later where nothing was known yet, earlier where all was done, since on a
busy machine the signal comes late.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from many_cases import many_cases

failed = []

SLOW = ["uniform:layers=32", "--devices", "32", "--microbatches", "256", "--link", "1GB/s,10us",
        "--schedule", "1f1b"]
MANY = ["uniform:layers=64", "--devices", "2..64", "--microbatches", "256", "--schedule", "list,1f1b",
        "--link", "1GB/s,10us"]
# The file beside the JSON, if any; of the others a picture.
BESIDE = {"compare": [], "report": ["--html", "a.html"]}
QUESTIONS = {
    "whatif": ["whatif", *SLOW, "--jitter", "5%", "--scenarios", "10000000", "--threads", "2"],
    "whatif of two schedules": [
        "whatif", "uniform:layers=64", "--devices", "32", "--microbatches", "256", "--schedule",
        "1f1b,gpipe", "--jitter", "5%", "--scenarios", "5000000"],
    "whatif of a long run": [
        "whatif", "uniform:layers=8", "--devices", "4", "--schedule", "1f1b", "--mtbf", "2h",
        "--checkpoint", "60s", "--run", "300d", "--scenarios", "100000", "--threads", "1"],
    "compare": ["compare", *SLOW, "--jitter", "5%", "--scenarios", "10000000"],
    "compare of many": ["compare", *MANY], "report": ["report", *MANY],
    "sensitivity": ["sensitivity", *SLOW, "--threads", "2"],
    "phase": ["phase", "uniform:layers=32", "--devices", "8", "--schedule", "1f1b,gpipe,zb_h1", "--x",
              "link=10MB/s..400GB/s:log257", "--y", "memory=2GB..200GB:log257", "--microbatches",
              "32", "--threads", "2"],
}
# It would take minutes to prove, and to simulate.
HARD = ["optimal", "uniform:layers=12", "--devices", "6", "--microbatches", "12", "--limit", "8",
        "--placement", "v", "--time", "600s"]
INTERRUPTED = re.compile(r"interrupted: (--run is played in )?only ")
TICKS = os.sysconf("SC_CLK_TCK")


def check(truth, what):
    if not truth:
        failed.append(what)
    return truth


def used(pid):
    """Processor time of a process in seconds; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / TICKS


def interrupted(command, seconds, how, folder):
    """What the command says that gets the signal after so much processor time."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while (now := used(process.pid)) is not None and now < seconds:
        time.sleep(0.01)
    process.send_signal(how)
    out, err = process.communicate()
    return process.returncode, out, err


def is_whole(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".json"):
        return text.rstrip().endswith(("</svg>", "</html>"))
    said = json.loads(text)
    if isinstance(said, list) and "uncertainty" not in said[0]:  # rows, of which none is cut short
        return all("step_time_ps" in row or "error" in row for row in said)
    if isinstance(said, list):
        return said[0]["uncertainty"]["partial"] is True
    return said["partial"] is True


def moments(what):
    """Processor times to send a signal after. Each is answered by send("early") where nothing was known, "late" where
    all was done; ends with a failure where no time lies between."""
    early, late, seconds, tries = 0, None, 0.25, 0
    while True:
        if (yield seconds) == "early":
            early = max(early, seconds)
        else:
            late = min(late or seconds, seconds)
        # What is early once may be late another time, by the load.
        if late is not None and late <= early * 1.01:
            early = late / 2
        seconds = early * 1.5 if late is None else (early + late) / 2
        tries += late is not None
        if tries > 16:
            check(False, f"{what}: nothing is known before all is done, after {seconds:.2f} s")
            return


def ask(stageline, name, words, how):
    """What is known when the signal comes."""
    when = moments(name)
    seconds = next(when)
    while True:
        with tempfile.TemporaryDirectory() as folder:
            outputs = ["--json", "a.json", *BESIDE.get(name, ["--svg", "a.svg"])]
            files = sorted(outputs[1::2])
            code, out, err = interrupted([stageline, *words, *outputs], seconds, how, folder)
            left = sorted(os.listdir(folder))
            what = f"{name}, {how.name} after {seconds} s"
            if code == 128 + how and out:
                check(left == files, f"{what}: files {left}")
                for file in left:
                    check(is_whole(os.path.join(folder, file)), f"{what}: {file} is not whole")
                check("interrupted: borders" in out if name == "phase" else
                      "→ " in out and INTERRUPTED.search(out.replace("\n", " ")),
                      f"{what}: it does not say what is known, and how much that is: {out[-400:]}")
                return
            if code == 0:
                came = "late"
            else:
                came = "early"
                held = check(not out and not left, f"{what}: {out[-400:]}, files {left}")
                if code != -how:  # it had not begun
                    held &= check(code == 128 + how, f"{what}: exit code {code}: {err}")
                    held &= check("interrupted; no " in err and "nothing was written" in err, f"{what}: {err}")
                if not held:
                    return
        try:
            seconds = when.send(came)
        except StopIteration:
            return


def until_known(command, how, folder, nothing):
    """What the command says that gets the signal when something is known; None where that failed. Before: `nothing`."""
    when = moments(command[1])
    seconds = next(when)
    while True:
        code, out, err = interrupted(command, seconds, how, folder)
        if code == 128 + how and out:
            return out
        if code == 0:
            came = "late"
            for file in os.listdir(folder):
                os.unlink(os.path.join(folder, file))
        else:
            came = "early"
            held = check(not out and not os.listdir(folder), f"{command[1]} after {seconds} s: {out[-400:]}")
            if code != -how:  # it had not begun
                held &= check(code == 128 + how and nothing in err, f"{command[1]}: {code}: {err}")
            if not held:
                return None
        try:
            seconds = when.send(came)
        except StopIteration:
            return None


def ask_for_an_order(stageline, how):
    """The best order known, with what no order is shorter than."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*HARD, "--json", "a.json", "--out", "a.slp"]
        out = until_known([stageline, *words], how, folder, "interrupted; nothing")
        if out is None:
            return
        check("stopped before it was proved" in out and "bound: " in out, f"optimal: {out[-400:]}")
        with open(os.path.join(folder, "a.json"), encoding="utf-8") as file:
            said = json.load(file)
        check(said["stopped"] and not said["optimal"], "an order that was not proved says so")
        check(0 < said["bound_ps"] < said["value_ps"], "an order comes with its bound")
        again = subprocess.run([stageline, "simulate", HARD[1], "--program", "a.slp", "--json", "-"],
                               cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
        check(json.loads(again)["step_time_ps"] == said["step_ps"], "the order is a whole program")


def replay_of_many(stageline, how):
    """The errors of the cases until then, and no summary of them to compare with."""
    evidence = many_cases()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as beside:
        path = os.path.join(beside, "evidence.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(evidence, file, separators=(",", ":"))
        words = ["replay", path, "--json", "a.json", "--summary", "b.json"]
        out = until_known([stageline, *words], how, folder, "interrupted; no case")
        if out is None:
            return
        check("interrupted: only" in out, f"replay: {out[-400:]}")
        check(os.listdir(folder) == ["a.json"], f"replay: files {os.listdir(folder)}")
        with open(os.path.join(folder, "a.json"), encoding="utf-8") as file:
            said = json.load(file)
        check(0 < len(said["cases"]) < len(evidence["cases"]), "some cases were simulated")
        check(f"only {len(said['cases'])} of" in said["notes"][-1], f"notes: {said['notes']}")


def main(stageline, every):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where a script starts this with &
    stageline = os.path.abspath(stageline)
    for name, words in list(QUESTIONS.items())[::every]:
        ask(stageline, name, words, signal.SIGINT)
    ask(stageline, "whatif", QUESTIONS["whatif"], signal.SIGTERM)
    ask_for_an_order(stageline, signal.SIGINT)
    replay_of_many(stageline, signal.SIGINT)
    for text in failed:
        print("failed:", text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], 3 if "--sample" in sys.argv[2:] else 1))
