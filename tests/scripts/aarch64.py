#!/usr/bin/env python3
"""Are the bytes of another processor the same? aarch64.py BUILD SOURCE [--jobs N]

Compiles sim/, schedulers/, the draws and tests/determinism/timelines.cpp for aarch64 (in
BUILD/aarch64, with ccache where it is there; minutes the first time), runs it by qemu, and holds
what it prints against BUILD/tests/timelines. Exit code 77 where the cross compiler
(g++-aarch64-linux-gnu) or qemu-user is not there.
"""
import argparse
import difflib
import os
import pathlib
import shutil
import subprocess
import sys

COMPILER, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
FLAGS = ["-std=c++20", "-O0", "-DNDEBUG", "-ffp-contract=off", "-w"]
TARGETS = ["stageline_sim", "schedulers", "draws"]


def compile_all(build, source, jobs):
    sys.path.insert(0, str(source / "tools" / "scripts"))
    import wasm
    folder = build / "aarch64"
    folder.mkdir(exist_ok=True)
    wasm.link_headers(folder, ["c++"])
    files = wasm.sources_of(build, TARGETS, []) + [
        str(source / "tools" / "playground" / "src" / "fmt.cpp"),
        str(source / "tests" / "determinism" / "timelines.cpp")]
    launcher = ["ccache"] if shutil.which("ccache") else []
    command = " ".join([*launcher, COMPILER, *FLAGS, f"-I{source}", f"-isystem{folder}/include"])
    lines = [f"rule compile\n  command = {command} -MD -MF $out.d -c $in -o $out\n"
             "  depfile = $out.d\n  deps = gcc",
             f"rule link\n  command = {COMPILER} -static $in -o $out"]
    objects = []
    for number, file in enumerate(files):
        objects.append(f"{number}-{pathlib.Path(file).stem}.o")
        lines.append(f"build {objects[-1]}: compile {file}")
    lines.append(f"build timelines: link {' '.join(objects)}\n")
    (folder / "build.ninja").write_text("\n".join(lines), encoding="utf-8")
    subprocess.run(["ninja", "-C", folder, "-j", str(jobs), "--quiet"], check=True)
    return folder / "timelines"


def said(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    for program in (COMPILER, QEMU):
        if shutil.which(program) is None:
            print(f"{program} is not there")
            return 77
    build = asked.build.resolve()
    foreign = compile_all(build, asked.source.resolve(), asked.jobs)
    ours, theirs = said(build / "tests" / "timelines"), said(QEMU, foreign)
    differences = list(difflib.unified_diff(ours, theirs, "here", "aarch64", n=0, lineterm=""))
    print("\n".join(differences[:40]))
    print(f"{len(ours)} lines, {sum(line.startswith('-') for line in differences[2:])} differ")
    return 1 if differences or len(ours) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
