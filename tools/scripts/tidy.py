#!/usr/bin/env python3
"""Runs clang-tidy over our sources: tidy.py TIDY BUILD CACHE [MINUTES]

TIDY is the program. BUILD is a folder that Meson and Ninja built with clang 14: its compile_commands.json says how each
file is compiled, alone or in a unit with others, its Ninja log which headers that read. A file found clean is not checked again
until it, one of those headers, its command or .clang-tidy changes: CACHE holds an empty file for
each such state, named by its hash, which is the same wherever the tree lies; those that nobody has asked
for in a month are removed. Prints what clang-tidy found; exit code 1 if anything.

With MINUTES none is begun later than that: the files that were changed last are looked at first, and a line
says how many were not. The next run goes on with these, so that a machine with an empty CACHE is not kept
for an hour.
"""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import time

from units import sources_of_unit

KEPT = 30 * 24 * 3600  # seconds that a marker is kept unused
FINDING = re.compile(r"^(\S.*?)(:\d+:\d+: (?:error|warning): .*)$", re.M)


def headers_read(build):
    """{object file: files it was made from}, paths relative to the build folder."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    found, current = {}, None
    for line in listing.splitlines():
        if line.startswith("    "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


class Contents:
    """What a file holds, as a hash; installed headers by size and time, for there are thousands."""

    def __init__(self, root):
        self.root = os.path.realpath(root) + os.sep
        self.known = {}

    def of(self, path):
        if path not in self.known:
            if not os.path.exists(path):
                self.known[path] = "absent"
            elif path.startswith(self.root):
                with open(path, "rb") as file:
                    self.known[path] = hashlib.sha256(file.read()).hexdigest()
            else:
                status = os.stat(path)
                self.known[path] = f"{status.st_size} {status.st_mtime_ns}"
        return self.known[path]


def state(command, headers, contents, common):
    """The hash of all that decides what clang-tidy says about this file."""
    build = command["directory"]
    said = command.get("command") or " ".join(command["arguments"])
    parts = [common, command["file"], said.replace(contents.root.rstrip(os.sep), "")]
    for path in sorted({command["file"], *headers.get(command["output"], [])}):
        full = os.path.realpath(os.path.join(build, path))
        parts.append(f"{full.removeprefix(contents.root)} {contents.of(full)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def one_by_one(build):
    """The commands of all sources: of a unit's, its own with the file in place of the unit."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    alone = []
    for command in commands:
        unit = os.path.join(command["directory"], command["file"])
        parts = sources_of_unit(unit) if os.path.exists(unit) else []
        for source in parts:
            source = os.path.realpath(source)
            said = command["command"].replace(command["file"], source)
            alone.append(dict(command, file=source, command=said))
        if not parts:
            alone.append(command)
    return alone


def check(tidy, build, apart, file, ends):
    """(Whether it is clean, or None where the time was over; what was said)"""
    if time.monotonic() > ends:
        return None, []
    run = subprocess.run([tidy, "--quiet", "-p", apart, file], text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Without the excerpts, and with paths from the root; each is relative to the build folder.
    found = [os.path.relpath(os.path.realpath(os.path.join(build, path))) + rest
             for path, rest in FINDING.findall(run.stdout)]
    # stderr holds a count of suppressed warnings, and what went wrong if nothing else was said.
    return run.returncode == 0, found or [file + ": " + (run.stdout or run.stderr).strip()]


def forget_unused(cache):
    for entry in os.scandir(cache):
        with contextlib.suppress(FileNotFoundError):  # another run's
            if entry.stat().st_mtime < time.time() - KEPT:
                os.unlink(entry.path)


def changed(root):
    """{file: the time of its last commit}; empty where git does not know."""
    log = subprocess.run(["git", "-C", root, "log", "--format=%x00%ct", "--name-only"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    times, when = {}, 0
    for line in log.stdout.splitlines():
        if line.startswith("\0"):
            when = int(line[1:])
        elif line:
            times.setdefault(os.path.join(root, line), when)
    return times


def main(tidy, build, cache, minutes=None):
    root = os.path.realpath(".")
    ends = time.monotonic() + 60 * float(minutes) if minutes else float("inf")
    os.makedirs(cache, exist_ok=True)
    forget_unused(cache)
    commands = one_by_one(build)
    apart = os.path.join(build, "one_by_one")
    os.makedirs(apart, exist_ok=True)
    with open(os.path.join(apart, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(commands, file)
    version = subprocess.run([tidy, "--version"], check=True, text=True, stdout=subprocess.PIPE)
    common = version.stdout
    for settings in (".clang-tidy", "tests/.clang-tidy"):
        with open(settings, encoding="utf-8") as file:
            common += file.read()
    headers, contents = headers_read(build), Contents(root)
    built = os.path.realpath(build) + os.sep
    waiting = {}  # file: the marker of its present state; one check a file serves all its programs
    files, headers_of = set(), {}
    for command in commands:
        file = os.path.realpath(os.path.join(command["directory"], command["file"]))
        if file.startswith(built) or not file.endswith(".cpp") or file in files:
            continue  # what the build generates is not ours to style
        files.add(file)
        headers_of[file] = headers.get(command["output"], [])
        marker = os.path.join(cache, state(command, headers, contents, common))
        try:
            os.utime(marker)
        except FileNotFoundError:
            waiting[file] = marker
    bad, left, told = 0, 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        # Where all are looked at the longest come first, so that no processor waits at the end.
        times = changed(root) if minutes else {}
        order = sorted(waiting, key=lambda file: (-times.get(file, 0), -len(headers_of[file]), file))
        runs = {workers.submit(check, tidy, build, apart, file, ends): file for file in order}
        try:
            for run in concurrent.futures.as_completed(runs):
                clean, said = run.result()
                if clean is None:
                    left += 1
                elif clean:
                    open(waiting[runs[run]], "w").close()
                else:
                    bad += 1
                    for line in said:
                        if line not in told:  # a header's finding comes with every file it is in
                            print(line, flush=True)
                        told.add(line)
        except KeyboardInterrupt:
            workers.shutdown(cancel_futures=True)
            return 130
    print(f"{len(files)} files: {len(waiting) - left} checked, {bad} with findings, "
          f"{len(files) - len(waiting)} unchanged since they were found clean")
    if left:
        print(f"skipped: clang-tidy: {left} of the files, those changed longest ago, were not looked at in "
              f"{minutes} minutes; `tools/test --only clang-tidy` looks at all")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(f"usage: {sys.argv[0]} TIDY BUILD CACHE [MINUTES]")
    sys.exit(main(*sys.argv[1:]))
