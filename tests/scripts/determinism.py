#!/usr/bin/env python3
"""Are the bytes the same, wherever and however often they are made?

usage: determinism.py STAGELINE [OTHER...]

Asks a fixed list of questions (every schedule, shared links, draws, cuts, maps, plans, pages) and
hashes all that is said and written: once more, at addresses that are not random, with 2 and 7
threads, in other locales and time zones. OTHER is a command that must say the same: of another
compiler or optimization, or "qemu-aarch64 -L /usr/aarch64-linux-gnu BUILD/tools/stageline".
"""
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

CHAIN = "uniform:layers=12,forward=1300us,input_grad=1.1ms,weight_grad=900us,weights=3MB,output=1MB,stash=2MB"
SIZE = ["--devices", "4", "--microbatches", "8"]
ASKED = [CHAIN, *SIZE]
LINKED = [*ASKED, "--link", "3GB/s"]
DRAWN = [*LINKED, "--schedule", "1f1b,zb_h1", "--jitter", "7%", "--scenarios", "60"]
ORDERS = ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "chimera", "pipedream", "zb_auto", "cyclic"]
QUESTIONS = [
    ["list"],
    ["compare", *LINKED, "--schedule", "all", "--json", "FILE"],
    ["compare", CHAIN, "--devices", "2..3", "--microbatches", "6", "--schedule", "all", "--html", "FILE"],
    ["compare", "resnet50-cpu", *SIZE, "--link", "1GB/s"],
    ["compare", "model:gpt@a100,layers=8,hidden=512,heads=8", "--cluster", "a100x8", "--devices", "8",
     "--microbatches", "16", "--json", "FILE"],
    ["costs", "resnet50-cpu", "--json", "FILE"],
    ["costs", "model:gpt@h100,layers=4,hidden=512,heads=8"],
    *(["simulate", *LINKED, "--schedule", name, "--timeline", "--json", "FILE"] for name in ORDERS),
    *(["draw", *LINKED, "--schedule", name, "--svg", "FILE"] for name in ORDERS),
    *(["program", *ASKED, "--schedule", name] for name in ORDERS),
    ["draw", *ASKED, "--schedule", "1f1b", "--chrome", "FILE"],
    ["bound", *LINKED, "--schedule", "1f1b", "--json", "FILE"],
    ["whatif", *DRAWN, "--json", "FILE", "THREADS"],
    ["whatif", *DRAWN, "--svg", "FILE", "THREADS"],
    ["compare", *DRAWN[:-2], "--scenarios", "40"],
    ["sensitivity", *LINKED, "--json", "FILE", "THREADS"],
    ["phase", CHAIN, "--devices", "4", "--schedule", "1f1b,zb_h1,gpipe", "--x",
     "link=100MB/s..100GB/s:log9", "--y", "microbatches=4,6,8", "--json", "FILE", "THREADS"],
    ["plan", "uniform:layers=6,weights=3MB,stash=8MB,output=1MB", "--devices", "4", "--samples", "8",
     "--json", "FILE", "THREADS"],
    ["sweep", CHAIN, "--axis", "schedule=1f1b,zb_h1,chimera", "--axis", "devices=2..4", "--axis",
     "link=1GB/s..100GB/s:log3", "--microbatches", "6", "--out", "FOLDER", "--merge", "--quiet",
     "THREADS"],
]


def hash_of(command, question, threads, environment):
    """Of the output and each file; or how it ended, where it did not end well."""
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for word in question:
            words += ["--threads", str(threads)] if word == "THREADS" else [
                {"FILE": "file", "FOLDER": "folder"}.get(word, word)]
        done = subprocess.run([*command, *words], cwd=folder, env=environment, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
        digest.update(done.stdout + b"\0" + done.stderr)
        for path in sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file()):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def made_locales(folder):
    """The names of those locales that can be made here: with decimal commas, and a dotless i."""
    made = []
    if shutil.which("localedef"):
        for name in ("de_DE", "tr_TR"):
            # Exit code 1: with warnings.
            subprocess.run(["localedef", "-i", name, "-f", "UTF-8", f"{folder}/{name}.UTF-8"],
                           check=False, capture_output=True)
            if os.path.isdir(f"{folder}/{name}.UTF-8"):
                made.append(f"{name}.UTF-8")
    return made


def main(stageline, *others):
    own = [os.path.abspath(stageline)]
    plain = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TZ": "UTC"}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        locales = made_locales(folder)
        variants = {"again": (own, 1, {}), "2 threads": (own, 2, {"TZ": "Asia/Kathmandu"}),
                    "7 threads": (own, 7, {"LC_ALL": "C"})}
        if shutil.which("setarch"):
            variants["addresses not random"] = (["setarch", "-R", *own], 3, {})
        for name in locales:
            variants[name] = (own, 1, {"LC_ALL": name, "LOCPATH": folder, "LANG": name})
        for other in others:
            variants[other] = (shlex.split(other), 2, {})
        for question in QUESTIONS:
            expected = hash_of(own, question, 1, plain)
            if expected.startswith("exit"):
                failed += 1
                print(f"failed: {shlex.join(question)}: {expected}")
                continue
            for name, (command, threads, more) in variants.items():
                said = hash_of(command, question, threads, {**plain, **more})
                if said != expected:
                    failed += 1
                    print(f"failed: {name}: {shlex.join(question)}: {said} for {expected}")
    if not locales:
        print("no locales were made: localedef or its sources (Debian: locales) are not here")
    print(f"{len(QUESTIONS)} questions, {len(variants)} variants, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
