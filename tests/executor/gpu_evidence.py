#!/usr/bin/env python3
"""Does gpu_evidence keep what it measured, whole, wherever it is cut short, and does the tree take it up?

gpu_evidence.py STAGELINE SOURCE_ROOT                      with stand-ins for the tools
gpu_evidence.py STAGELINE SOURCE_ROOT BUILD [GPU DRIVER]   with the tools of this build folder, small: on cores, and on
                                                           the stand-in for a GPU (stand_in/)"""
import gzip
import json
import os
import pathlib
import random
import re
import shlex
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

    def call(self, found, *words, seconds=300, on="cpu", env=None):
        return subprocess.run([*self.command, str(self.build), str(found), *words, "--on", on, "--seconds",
                               str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)

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


def is_whole(name, data):
    """Whether a file of an archive is all of one."""
    try:
        data = gzip.decompress(data) if name.endswith(".gz") and data[:1] != b"[" else data
        return not name.endswith((".json", ".json.gz")) or json.loads(data) is not None
    except (OSError, EOFError, ValueError):
        return False


def begin(bench, found, call, how, draw, most):
    """A call that is ended at random, by its clock, a signal, or killed: its exit code."""
    seconds = draw.uniform(1, most) if how == "clock" else 300
    since = time.monotonic()
    running = subprocess.Popen([*bench.command, str(bench.build), str(found), call, "--on", "cpu", "--seconds",
                                f"{seconds:.2f}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if how != "clock":
        time.sleep(draw.uniform(0, most / 2))
        running.send_signal(signal.SIGTERM if how == "signal" else signal.SIGKILL)
    code = running.wait()
    took = time.monotonic() - since
    check(how != "clock" or took < seconds + 5, f"{call} of {seconds:.1f} s took {took:.1f} s")  # with Python's start
    return code


def cut_short(bench, calls, most):
    """Twenty calls that end at random: nothing is half written or lost, and what is done is adopted."""
    draw = random.Random(1)
    found, before = bench.folder / "cut", {}
    cut = {call: 0 for call in calls}
    for number in range(20):
        how, call = ("clock", "signal", "killed")[number % 3], calls[number // 3 % len(calls)]
        code = begin(bench, found, call, how, draw, most)
        cut[call] += 1
        # It may have ended, or not have begun, before the signal came.
        allowed = {"clock": (0,), "signal": (0, 143, -15), "killed": (0, -9)}[how]
        check(code in allowed, f"{call}, {how}, gave {code}")
        archive = found / f"{call}.tar.gz"
        if not archive.exists():
            continue
        index, files = contents(archive)
        done = {one["piece"] for one in index["done"]}
        check(before.get(call, set()) <= done, f"{call}, {how}, lost {before.get(call, set()) - done}")
        for name in done:
            check(any(file.startswith(name + "/") for file in files), f"nothing of {name} is there")
        listed = done | {one["piece"] for one in index["failed"]} | set(index["unfinished"])
        check(all(file.split("/")[0] in listed for file in files), f"there is more than what is done: {sorted(files)}")
        for name, data in files.items():
            check(is_whole(name, data), f"{name} is half written")
        before[call] = done
        adopt_done(bench, found, before)
        if sum(map(len, before.values())) > 16 and number < 15:  # again from the beginning
            shutil.rmtree(found)
            before = {}
    print("cut short:", cut)
    check(all(cut.values()), f"cut short: {cut}")


def adopt_done(bench, found, done):
    """What is done is adopted, into a tree of its own."""
    pieces_done = set().union(*done.values())
    if "facts" not in pieces_done:
        return
    tree = bench.scratch_tree()
    result = bench.adopt(found, tree)
    check(result.returncode == 0, f"what is done is not adopted: {result.stdout}")
    for name in pieces_done:
        if name.startswith("trace-"):
            traces = list((tree / "traces/data").glob(f"*/{name.removeprefix('trace-')}-*.json"))
            check(traces, f"{name} is not adopted")
    check("kernels" not in pieces_done or (tree / "tools/executor/found/cpu/kernels.json").exists(),
          "the kernels are not adopted")


# Golden outputs that name the bundled traces, or did.
OF_TRACES = ("costs_errors", "errors", "help", "list", "sweep", "widths")


def with_traces_of(bench, tree):
    """A `stageline` that carries the traces of this tree: one source is compiled and linked anew."""
    build, folder = bench.stageline.parent.parent, bench.folder / "anew"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    said = subprocess.run(["ninja", "-C", build, "-t", "commands", "tools/stageline"], stdout=subprocess.PIPE, check=True,
                          text=True)
    commands = [shlex.split(line) for line in said.stdout.splitlines() if not line.startswith("ninja:")]
    embed = next(words for words in commands if any(word.endswith("embed.py") for word in words)
                 and "traces/data/embedded_data.cpp" in words)
    embed[embed.index("traces/data/embedded_data.cpp")] = str(folder / "embedded_data.cpp")
    listed = (tree / "traces/data/meson.build").read_text().split("bundled_trace_files = files(")[1].split(")")[0]
    for name in re.findall(r"'([^']+)'", listed):
        if (tree / "traces/data" / name).exists():
            embed.append(str(tree / "traces/data" / name))  # the last table of the command is that of traces
    # The source that has it, by itself or among others.
    for words in commands:
        if "-c" not in words:
            continue
        source = build / words[words.index("-c") + 1]
        if source.name == "embedded_data.cpp" or (source.exists() and "traces/data/embedded_data.cpp" in
                                                  source.read_text(errors="replace")[:4000]):
            break
    text = f"#include <{source}>\n" if source.name == "embedded_data.cpp" else source.read_text()
    (folder / "source.cpp").write_text(re.sub(r"[^<\"]*traces/data/embedded_data\.cpp", f"{folder}/embedded_data.cpp",
                                              text))
    words[words.index("-c") + 1] = str(folder / "source.cpp")
    words[words.index("-o") + 1] = str(folder / "source.o")
    for flag in ("-MF", "-MQ"):
        if flag in words:
            words[words.index(flag) + 1] = str(folder / "source.d")
    link = commands[-1]
    link[link.index("-o") + 1] = str(folder / "stageline")
    link.insert(link.index("-o"), str(folder / "source.o"))
    for one in (embed, words, link):
        made = subprocess.run(one, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(made.returncode == 0, f"{one[0]}: {made.stdout[-1000:]}")
    return folder / "stageline"


def goldens_stay(bench, tree):
    """Traces that are adopted are bundled, and the golden outputs are the same with them."""
    if not (bench.stageline.parent.parent / "build.ninja").exists():
        print("skipped: golden outputs; this stageline is not in a build folder of Ninja")
        return
    anew = with_traces_of(bench, tree)
    traces = subprocess.run([anew, "list", "traces"], stdout=subprocess.PIPE, text=True).stdout
    check("lenet5-cpu-fp32" in traces, f"the trace is not bundled: {traces}")
    tests = bench.root / "tests"
    result = subprocess.run([sys.executable, tests / "golden.py", anew, *(tests / f"golden/{name}.cmd" for name in
                                                                          OF_TRACES)],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(result.returncode == 0, f"golden outputs with the traces: {result.stdout[:3000]}")


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
    cut_short(bench, ("first", "second"), 8)

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
    goldens_stay(bench, tree)
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


def ended_well(found, result):
    """Whether all was done; a study may be stopped by its clock."""
    left = []
    for archive in sorted(found.glob("*.tar.gz")):
        index, _ = contents(archive)
        left += [f"{one['piece']}: {one['why']}" for one in index["left_out"] + index["failed"]]
        print(archive.name, {one["piece"]: one["seconds"] for one in index["done"]})
    unfinished = [one for one in left if one.startswith("staleness: stopped by the clock")]
    check(result.returncode == 0 and left == unfinished, f"exit code {result.returncode}; {left}; {result.stdout}")


def dry_run(bench):
    """All pieces with the real tools on cores: no name, path or flag is wrong."""
    found = bench.folder / "found"
    ended_well(found, bench.call(found, "first", "second", "kernels", seconds=1200))
    tree = bench.scratch_tree()
    result = bench.adopt(found, tree)
    check(result.returncode == 0, f"adopting gave {result.returncode}: {result.stdout}")
    page = (tree / "tools/executor/README.md").read_text()
    check(not re.search("waits for (first|kernels)", page), "an item was not struck")


class OnGpu(Bench):
    """The tools with a LibTorch whose CUDA device is a stand-in, beside a driver that answers as CUDA's does."""

    def __init__(self, bench, gpu, driver):
        super().__init__(bench.stageline, bench.root, bench.folder, bench.folder / "parted")
        for tool in TOOLS:
            path = self.build / tool
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#!/bin/sh\nLD_PRELOAD={gpu} LD_LIBRARY_PATH={driver.parent}:$LD_LIBRARY_PATH '
                            f'exec {bench.build / tool} "$@"\n')
            path.chmod(0o755)
        words = bench.folder / "words"
        words.mkdir()
        (words / "nvidia-smi").write_text('#!/bin/sh\ncase "$1" in --query-gpu=name*) echo "name, driver_version"; '
                                          'echo "NVIDIA H200, 580.65.06";; *) echo "GPU0 X";; esac\n')
        (words / "nvidia-smi").chmod(0o755)
        self.env = os.environ | {"PATH": f"{words}:{os.environ['PATH']}"}


PARTS = {"parts2-1": "2 parts of 64 SMs", "parts2-2": "2 parts of 64 SMs", "parts4": "4 parts of 32 SMs",
         "parts8": "8 parts of 16 SMs"}


def dry_run_on_parts(bench):
    """All pieces but the kernels as a GPU is asked for them, in parts; what is found has its chip's name."""
    found = bench.folder / "found-on-parts"
    ended_well(found, bench.call(found, "first", "second", seconds=1200, on="cuda-small", env=bench.env))
    files = {name: data for archive in found.glob("*.tar.gz") for name, data in contents(archive)[1].items()}
    for piece, parts in PARTS.items():
        device = json.loads(gzip.decompress(files[f"{piece}/evidence.json.gz"]))["device"]
        check(parts in device, f"{piece} ran on {device}")
    log = files["tests-accelerator/log.txt"].decode()
    check("2 parts of 64 SMs" in log and "skipped:" not in log, f"the tests of a GPU's parts did not run: {log[-500:]}")
    check(b"64 SMs" in files["offload-trace/trace.json"], "the trace of half a GPU is of another")

    tree = bench.scratch_tree()
    result = bench.adopt(found, tree)
    check(result.returncode == 0, f"adopting gave {result.returncode}: {result.stdout}")
    for name in ("traces/data/h200/lenet5-h200-tf32.json", "tools/executor/evidence/h200-parts8.summary.json",
                 "tools/executor/found/h200/facts.json", "tools/executor/found/h200/offload-half-run.json"):
        check((tree / name).exists(), f"{name} is not there: {result.stdout}")
    check("# Found on NVIDIA H200" in (tree / "tools/executor/found/h200/README.md").read_text(), "no page of the GPU")

    for devices, said in (("cuda:17", "17 accelerators do not go into one GPU"), ("cuda:3@64", "2 go"),
                          ("cuda:2@12", "an accelerator cannot have 12 SMs")):
        result = subprocess.run([bench.build / TOOLS[2], bench.root / "traces/data/cpu/lenet5-cpu.json", "--model",
                                 "lenet5", "--schedule", "1f1b", "--devices", devices],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(result.returncode == 2 and said in result.stdout and "132 SMs, parted by 8" in result.stdout,
              f"{devices} gave {result.returncode}: {result.stdout[-300:]}")


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
            cut_short(bench, ("first", "second", "kernels"), 20)
            asked_of_a_gpu(bench)
            if len(sys.argv) > 4:
                dry_run_on_parts(OnGpu(bench, *(pathlib.Path(one).resolve() for one in sys.argv[4:6])))
            else:
                print("skipped: parts of a GPU; the stand-in is for LibTorch 2.13 or later without CUDA")
        else:
            stand_ins(bench)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
