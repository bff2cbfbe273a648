#!/usr/bin/env python3
"""Are reports as wide as the terminal, and can one be interrupted? terminal.py STAGELINE

Runs the command on pseudo-terminals of several widths.
"""
import difflib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time

from many_cases import many_cases

failed = []
UNIFORM = ["uniform:layers=8", "--devices", "4", "--microbatches", "12"]


def check(truth, what):
    if not truth:
        failed.append(what)


def start(command, columns, **variables):
    """Starts a command on a terminal of so many columns (0: it does not report them)."""
    pid, terminal = pty.fork()
    if pid == 0:
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ.update(variables, LC_ALL="C.UTF-8")
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50 if columns else 0, columns, 0, 0))
        os.execv(command[0], command)
    return pid, terminal


def read(terminal, word=None):
    """What a command says until it has said the word, or ends; as bytes."""
    said = b""
    while word is None or word.encode() not in said:
        try:
            some = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        said += some
    return said


def until(terminal, word):
    return read(terminal, word).decode(errors="replace")


def end(pid, terminal):
    """What the command said, without colours, and how it ended."""
    said = read(terminal)
    status = os.waitpid(pid, 0)[1]
    said += read(terminal)  # the other end can be seen closed before its last words are here
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).replace("\r\n", "\n")
    return text, status


def said_by(command, columns, **variables):
    text, status = end(*start(command, columns, **variables))
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1),
          f"{' '.join(command[1:])}: status {status}: {text[-300:]}")
    return re.sub(r"[^\r\n]*\x1b\[K\r?", "", text)  # progress, which a busy machine shows


def piped(command, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, env={**environment, **variables}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def same(one, other, what):
    if one != other:
        lines = difflib.unified_diff(one.split("\n"), other.split("\n"), lineterm="", n=0)
        failed.append("\n".join([what, *map(repr, list(lines)[:12])]))


def widest(text):
    return max(text.split("\n"), key=len)


def fits(text, width, what):
    """A line may be wider only for a word that has no room."""
    line = widest("\n".join(line for line in text.split("\n")
                            if max(map(len, line.split()), default=0) <= width - 8))
    check(len(line) <= width, f"{what}: {len(line)} columns, not {width}: {line}")


def main(stageline):
    stageline = os.path.abspath(stageline)
    compare = [stageline, "compare", *UNIFORM]
    reports = [
        ["compare", *UNIFORM], ["compare", *UNIFORM, "--full"],
        ["compare", *UNIFORM[:1], "--devices", "2..4", "--schedule", "1f1b,pipedream"],
        ["simulate", *UNIFORM], ["simulate", *UNIFORM, "--schedule", "pipefb"],
        ["draw", *UNIFORM, "--schedule", "zb_h1"], ["bound", *UNIFORM], ["hybrid", *UNIFORM[:1]],
        ["costs", "resnet50-cpu"], ["costs", "resnet50-cpu", "--against", "resnet50-h100"], ["list"],
    ]
    for report in reports:
        for width in (60, 80, 132):
            text = said_by([stageline, *report], width)
            fits(text, width, f"{' '.join(report)} on {width} columns")
    for report in [[], *({command[0]: [command[0]] for command in reports}.values())]:
        for width in (60, 80):
            for screen in ([], ["all"]):
                text = said_by([stageline, *report, "--help", *screen], width)
                fits(text, width, f"{report} --help {screen}")

    narrow = said_by(compare, 80)
    wide = piped(compare)
    check("… without " in narrow and "--columns" in narrow, "the columns left out are named")
    check("… without " not in wide and len(widest(wide)) > 100, "a pipe has lines of any width")
    check(" more" in narrow and " more" in wide, "the rows left out are counted")
    same(said_by(compare, 0), narrow, "a terminal of unknown size has 80 columns")
    same(said_by(compare, 240), wide, "a wide terminal shows what a pipe does")
    same(said_by(compare, 80, COLUMNS="0"), wide, "COLUMNS=0 is any width")
    same(said_by(compare, 240, COLUMNS="80"), narrow, "COLUMNS overrides the terminal")
    same(said_by(compare, 80, COLUMNS="many"), narrow, "COLUMNS that is no number is ignored")
    same(piped(compare, COLUMNS="80"), narrow, "COLUMNS narrows a pipe")
    same(said_by(compare, 3), said_by(compare, 40), "a terminal has at least 40 columns")
    drawing = [stageline, "draw", *UNIFORM]
    check(len(widest(said_by(drawing, 80)).rstrip()) == 80, "the figure is as wide as the terminal")
    check(len(piped(drawing).split("\n")[1]) == 105, "the figure of a pipe has 100 columns")
    check("\x1b" not in piped(drawing), "a pipe has no colours")

    # Ctrl-C ends a run that would go on for minutes, here once it shows its progress.
    pid, terminal = start([stageline, "compare", "resnet50-cpu", "--devices", "2..32", "--schedule",
                           "list", "--microbatches", "4096"], 80)
    until(terminal, "left")
    os.write(terminal, b"\x03")
    text, status = end(pid, terminal)
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130,
          f"Ctrl-C interrupts (status {status})")
    check("interrupted" in text, "what was interrupted says so")

    # A search shows its progress on a terminal, and Ctrl-C ends it with the best so far.
    plan = [stageline, "plan", "model:gpt@h100,layers=48,hidden=1024,batch=1", "--samples", "1024",
            "--cluster", "h100x8*4"]
    pid, terminal = start(plan, 100)
    text = until(terminal, "best")  # until something was found
    check("tried " in text and " pruned " in text, "a search shows its progress")
    os.write(terminal, b"\x03")
    text, status = end(pid, terminal)
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130,
          f"an interrupted search ends with 130 (status {status})")
    check("best so far" in text and "stageline simulate" in text and "interrupted" in text,
          "an interrupted search shows the best so far")

    # So does the search of an order, with what is proved so far and the time left, and a replay of
    # many cases; where standard error is no terminal, neither.
    order = [stageline, "optimal", "uniform:layers=12", "--devices", "6", "--microbatches", "12",
             "--limit", "8", "--placement", "v"]
    began = time.monotonic()
    pid, terminal = start(order, 100)
    text = until(terminal, "left")
    check(time.monotonic() - began > 1, "the first line of progress comes late")
    check(re.search(r"best .* bound .* below .* states .* at most \d+ s left", text),
          f"the search of an order shows its progress: {text}")
    os.write(terminal, b"\x03")
    text, status = end(pid, terminal)
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130,
          f"an interrupted search of an order ends with 130 (status {status})")
    check("longest device span" in text and "bound: " in text and "stopped before" in text,
          f"an interrupted search shows the best order so far: {text}")
    quiet = subprocess.run([*order, "--time", "3s"], stdin=subprocess.DEVNULL, check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(quiet.stderr == "" and "stopped before" in quiet.stdout, "no progress without a terminal")

    evidence = many_cases()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        json.dump(evidence, file, separators=(",", ":"))
        file.flush()
        pid, terminal = start([stageline, "replay", file.name], 100)
        text = until(terminal, "left")
        os.write(terminal, b"\x03")
        rest, status = end(pid, terminal)
    check(re.search(rf"\d+ % · \d+ of {len(evidence['cases'])} · .* left", text),
          f"a replay shows its progress: {text}")
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130 and "interrupted: only" in rest,
          f"an interrupted replay reports what it has simulated (status {status}): {rest}")

    for text in failed:
        print("failed:", text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
