#!/usr/bin/env python3
"""Does gpu_evidence keep what it measured, whole, wherever it is cut short, and does the tree take it up?

gpu_evidence.py STAGELINE SOURCE_ROOT          with stand-ins for the tools
gpu_evidence.py STAGELINE SOURCE_ROOT BUILD    with the tools of this build folder, small, on cores"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

STAND_IN = '''#!{python}
# Writes what the tool of this name would, in two halves.
import json, os, pathlib, shutil, signal, sys, time
name, here, words = os.path.basename(sys.argv[0]), pathlib.Path({here!r}), sys.argv[1:]
text = " ".join(words)
def state(what):
    path = here / what
    return path.exists() and path.read_text() in text
if state("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
if state("fails"):
    print("this one cannot")
    sys.exit(3)
if name.startswith("test_"):
    time.sleep(0.1)
    print("[doctest] test cases: 5 | 4 passed | 0 failed | 1 skipped")
    sys.exit()
out = pathlib.Path(words[words.index("--json" if name == "stageline-exec" else "--out") + 1])
def write(file, content):
    with open(file, "wb") as stream:
        stream.write(content[:len(content) // 2])
        stream.flush()
        time.sleep(0.1)
        stream.write(content[len(content) // 2:])
if name == "stageline-profile":
    write(out, (here / "trace.json").read_bytes())
elif name == "stageline-validate":
    write(out, (here / "evidence.json.gz").read_bytes())
    write(out.with_name("evidence.summary.json"), (here / "evidence.summary.json").read_bytes())
elif name == "stageline-exec":
    write(out, json.dumps({{"makespan_ps": 990, "measured": {{"makespan_ps": [1000, 1010, 1001]}}}}).encode())
else:  # the study: goes on from what is there
    file = out / "staleness.json.gz"
    done = json.loads(file.read_text()) if file.exists() else []
    while len(done) < 5:
        time.sleep(600 if done and (here / "slow").exists() else 0.2)
        done.append(len(done))
        (out / "new").write_text(json.dumps(done))
        os.replace(out / "new", file)
'''
TOOLS = ("tools/executor/stageline-profile", "tools/executor/stageline-validate", "tools/executor/stageline-exec",
         "tools/executor/stageline-study", "tests/executor/test_executor", "tests/executor/test_train")

failed = []


def check(true, what):
    if not true:
        failed.append(what)
        print("failed:", what, flush=True)


def contents(archive):
    """(index, {name: bytes}); every member is read to its end."""
    with tarfile.open(archive, "r:gz") as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar.getmembers() if one.isfile()}
    return json.loads(files.pop("index.json")), files


def done_in(archive):
    return {one["piece"] for one in contents(archive)[0]["done"]} if archive.exists() else set()


class Bench:
    def __init__(self, stageline, root, folder, build=None):
        self.stageline, self.root, self.folder = stageline, root, folder
        self.build = build or folder / "tools"
        self.command = [sys.executable, str(root / "tools/executor/gpu_evidence")]
        if build:
            return
        for tool in TOOLS:
            path = self.build / tool
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(STAND_IN.format(python=sys.executable, here=str(folder)))
            path.chmod(0o755)
        kept = root / "tools/executor/evidence/process4-imitated"
        shutil.copy(f"{kept}.json.gz", folder / "evidence.json.gz")
        shutil.copy(f"{kept}.summary.json", folder / "evidence.summary.json")
        shutil.copy(root / "traces/data/cpu/lenet5-cpu.json", folder / "trace.json")

    def call(self, found, *words, seconds=300):
        return subprocess.run([*self.command, str(self.build), str(found), *words, "--on", "cpu", "--seconds",
                               str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def scratch_tree(self):
        """What --adopt changes, copied."""
        tree = self.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name in ("traces/data/meson.build", "tools/executor/README.md"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.root / name, tree / name)
        (tree / "tools/executor/evidence").mkdir()
        return tree

    def adopt(self, found, tree):
        """--adopt into a copy of the tree."""
        words = ("import pathlib, sys; sys.path.insert(0, sys.argv[1]); import adopt; "
                 "adopt.adopt(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), print, pathlib.Path(sys.argv[4]))")
        build = self.folder / "stageline-build"
        (build / "tools").mkdir(parents=True, exist_ok=True)
        if not (build / "tools/stageline").exists():
            os.symlink(self.stageline, build / "tools/stageline")
        return subprocess.run([sys.executable, "-c", words, str(self.root / "tools/executor/gpu"), str(found),
                               str(build), str(tree)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def cut_short(bench):
    """Twenty calls that end at random: by their clock, a signal, or killed."""
    draw = random.Random(1)
    found, before = bench.folder / "cut", set()
    whole = bench.folder / "evidence.json.gz"
    ends = {"clock": 0, "signal": 0, "killed": 0}
    for number in range(20):
        how = ("clock", "signal", "killed")[number % 3]
        began = subprocess.Popen([*bench.command, str(bench.build), str(found), "first", "--on", "cpu", "--seconds",
                                  f"{draw.uniform(1, 9) if how == 'clock' else 60:.2f}"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if how != "clock":
            time.sleep(draw.uniform(0, 1.5))
            began.send_signal(signal.SIGTERM if how == "signal" else signal.SIGKILL)
        code = began.wait()
        # It may have ended, or not have begun, before the signal came.
        check(code in ((0,) if how == "clock" else (0, 143, -15) if how == "signal" else (0, -9)), f"{how} gave {code}")
        ends[how] += 1
        archive = found / "first.tar.gz"
        if not archive.exists():
            continue
        index, files = contents(archive)
        done = {one["piece"] for one in index["done"]}
        check(before <= done, f"{how} lost {before - done}")
        for name in done:
            if f"{name}/evidence.json.gz" in files:
                check(files[f"{name}/evidence.json.gz"] == whole.read_bytes(), f"{name} is half written")
            check(any(file.startswith(name + "/") for file in files), f"nothing of {name} is there")
        check(all(file.split("/")[0] in done | {one["piece"] for one in index["failed"]} for file in files),
              f"there is more than what is done: {sorted(files)}")
        before = done
        if len(done) > 8 and number < 17:  # again from the beginning
            shutil.rmtree(found)
            before = set()
    tree = bench.scratch_tree()
    if before and "facts" in before:
        result = bench.adopt(found, tree)
        check(result.returncode == 0, f"what is done is not adopted: {result.stdout}")
        for name in before:
            if name.startswith("trace-"):
                traces = list((tree / "traces/data").glob(f"*/{name.removeprefix('trace-')}-*.json"))
                check(traces, f"{name} is not adopted")


def cuts(bench):
    """Each program that is predicted and measured on a GPU can be: its model has the layers, its schedule the devices."""
    sys.path.insert(0, str(bench.root / "tools/executor/gpu"))
    import pieces
    asked = 0
    for piece in pieces.pieces_of("second", "cuda"):
        for command in piece.commands if piece.kind == "validation" else ():
            model, batch = command[command.index("--model") + 1].split("@")
            name, _, options = model.partition(",")
            trace = f"model:{name}@cpu-core,batch={batch}" + (f",{options}" if options else "")
            for at, word in enumerate(command):
                if word != "--schedule":
                    continue
                asked += 1
                result = subprocess.run(
                    [bench.stageline, "simulate", trace, "--schedule", command[at + 1], "--devices",
                     command[command.index("--devices") + 1].split(":")[1], "--host-link", pieces.HOST_LINK,
                     "--microbatches", "8"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                check(result.returncode == 0, f"{piece.name}: {command[at + 1]}: {result.stdout[-200:]}")
    check(asked > 30, f"{asked} programs are asked for")


def stand_ins(bench):
    cuts(bench)
    cut_short(bench)

    # A group of which one fails is run one by one; what reads a failed piece is left out; the others are there.
    found = bench.folder / "found"
    (bench.folder / "fails").write_text("pipefb --")  # of the validations
    result = bench.call(found, "first")
    index, files = contents(found / "first.tar.gz")
    done = {one["piece"] for one in index["done"]}
    check(result.returncode == 1, f"a failed piece gave {result.returncode}: {result.stdout}")
    check({one["piece"] for one in index["failed"]} == {"parts2-2", "parts2-2-pipefb"}, f"failed: {index['failed']}")
    check("parts2-2-chimera" in done and "parts2-1" in done, f"done: {done}")
    check(all("this one cannot" in one["why"] for one in index["failed"]), f"why: {index['failed']}")
    check("parts2-2-pipefb/log.txt" in files, "the log of what failed is not there")
    check("parts2-2-pipefb" in result.stdout, "what failed is not said")

    tree = bench.scratch_tree()
    result = bench.adopt(found, tree)
    check(result.returncode == 0, f"adopting gave {result.returncode}: {result.stdout}")
    page = (tree / "tools/executor/README.md").read_text()
    check("waits for first" in page, "an item was struck although a piece of it is missing")
    check("cpu-parts2-1" in page, "the table of evidence does not have the new one")
    check("'cpu/lenet5-cpu-" in (tree / "traces/data/meson.build").read_text(), "meson.build does not name the trace")
    check("| full | 0.00 ms |" in (tree / "tools/executor/found/cpu/README.md").read_text(), "no row of a copy")

    # Another call goes on where it ended, from another folder, too; then the item goes. A study whose time is over
    # keeps what it has.
    (bench.folder / "fails").unlink()
    more = bench.folder / "more"
    (bench.folder / "slow").touch()
    result = bench.call(more, "second", "--done", str(found))
    index, files = contents(more / "second.tar.gz")
    check(index["unfinished"] == ["staleness"], f"unfinished: {index['unfinished']}, {result.stdout}")
    kept = files.get("staleness/staleness.json.gz")
    check(kept == b"[0]", f"the study has {kept}")
    (bench.folder / "slow").unlink()
    before = {one["piece"] for one in index["done"]}
    result = bench.call(more, "second", "--done", str(found))
    index, files = contents(more / "second.tar.gz")
    check(result.returncode == 0, f"second gave {result.returncode}: {result.stdout}")
    again = {one["piece"] for one in index["done"]}
    check(before < again and not index["unfinished"], f"before: {before}, after: {again}")
    check(files.get("staleness/staleness.json.gz") == b"[0, 1, 2, 3, 4]", "the study did not go on")
    check(not again & done, f"done again: {again & done}")
    check({"parts2-2-pipefb", "tests-train", "staleness"} <= again, f"second did {again}")
    shutil.copy(found / "first.tar.gz", more)
    result = bench.adopt(more, tree)
    page = (tree / "tools/executor/README.md").read_text()
    check("waits for first" not in page and "waits for second" not in page, f"nothing was struck: {result.stdout}")
    check("waits for kernels" in page, "kernels were struck, and have not run")

    # A program that does not end, not even when asked, is ended by the clock; a study keeps what it has.
    (bench.folder / "deaf").write_text("offload-trace")
    result = bench.call(bench.folder / "deaf-found", "first", seconds=12)
    index, _ = contents(bench.folder / "deaf-found/first.tar.gz")
    left = {one["piece"]: one["why"] for one in index["left_out"]}
    check(result.returncode == 0 and "offload-full" in left, f"left out: {left}, {result.returncode}")
    check("offload-trace" not in {one["piece"] for one in index["done"]}, "a program that never ended is done")
    (bench.folder / "deaf").unlink()

    # Refusals.
    (found / "first.tar.gz").write_bytes((found / "first.tar.gz").read_bytes()[:200])
    for words, said in ((("first",), "is no archive of gpu_evidence"), (("third",), "there is no call 'third'"),
                        (("first", "--done", "/nowhere"), "there is no such folder")):
        result = bench.call(found if words == ("first",) else bench.folder / "new", *words)
        check(result.returncode == 2 and said in result.stdout and "Traceback" not in result.stdout,
              f"{words} gave {result.returncode}: {result.stdout}")
    result = bench.adopt(bench.folder / "nothing", tree)
    check(result.returncode != 0 and "holds no archive" in result.stdout, f"adopting nothing gave {result.stdout}")


def dry_run(bench):
    """All pieces with the real tools on cores: no name, path or flag is wrong."""
    found = bench.folder / "found"
    result = bench.call(found, "first", "second", "kernels", seconds=1200)
    left = []
    for archive in sorted(found.glob("*.tar.gz")):
        index, _ = contents(archive)
        left += [f"{one['piece']}: {one['why']}" for one in index["left_out"] + index["failed"]]
        print(archive.name, {one["piece"]: one["seconds"] for one in index["done"]})
    unfinished = [one for one in left if one.startswith("staleness: stopped by the clock")]
    check(result.returncode == 0 and left == unfinished, f"exit code {result.returncode}; {left}; {result.stdout}")
    tree = bench.scratch_tree()
    result = bench.adopt(found, tree)
    check(result.returncode == 0, f"adopting gave {result.returncode}: {result.stdout}")
    page = (tree / "tools/executor/README.md").read_text()
    check(not re.search("waits for (first|kernels)", page), "an item was not struck")


def asked_of_a_gpu(bench):
    """Each command as it is asked of a GPU: where there is none its words are understood, and the GPU is missed."""
    sys.path.insert(0, str(bench.root / "tools/executor/gpu"))
    import pieces
    put = {"tools": bench.build / "tools/executor", "out": bench.folder, "python": "", "here": "", "tests": "",
           "before": bench.root / "traces/data/cpu/lenet5-cpu.json", "left": 30, "jobs": 1}
    commands = {command for call in ("first", "second") for piece in pieces.pieces_of(call, "cuda")
                for one in (piece, *piece.singly) for command in one.commands
                if command[0].startswith("{tools}") and any("cuda" in word for word in command)}
    check(len(commands) > 15, f"{len(commands)} commands are asked of a GPU")
    for command in sorted(commands):
        words = [word.format(**put).replace("lenet5-cpu.json/trace.json", "lenet5-cpu.json") for word in command]
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder)
        check(result.returncode == 2 and "there is no cuda" in result.stdout,
              f"{' '.join(command)} gave {result.returncode}: {result.stdout[-300:]}")


def main():
    stageline, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    build = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # a call that is killed leaves its work there
        bench = Bench(stageline, root, pathlib.Path(folder), build)
        if build:
            dry_run(bench)
            asked_of_a_gpu(bench)
        else:
            stand_ins(bench)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
