#!/usr/bin/env python3
"""Holds the order of the rooms: rooms.py ROOT

ORDER lists the folders from the bottom up. A file may include files of its own folder, and of
folders in lower rows; never of a folder in its own row or above. Within a folder's inner rooms
includes are free, unless INNER says otherwise. A file in a folder that ORDER does not know is an
error, and so is anything flat in tools/ beyond FLAT, or committed at the top beyond TOP. A room of NAMESPACES
has all it defines in a namespace of its own, and no other room opens one. Prints each forbidden include with both
names, each line that opens a namespace of others; exit code 1 if any.
"""
import pathlib
import re
import shutil
import subprocess
import sys

# One row a floor: what stands in a row sees all rows above it in this list, not its neighbours.
ORDER = [
    ["sim"],
    ["schedulers", "cost_models", "traces", "tools/base"],
    ["tools/study"],
    ["tools/inputs"],
    ["tools/planner"],
    ["tools/compare"],
    ["tools/answers"],
    ["tools/report"],
    ["tools/published", "tools/sweep", "tools/launch"],
    ["tools/commands", "tools/python", "tools/playground"],
    ["tools/lab"],
    ["tools/executor"],
]
# Rooms whose names stand in a namespace of their own; all others' in stageline. A header may declare a class of
# another room in that room's.
NAMESPACES = {
    "tools/planner": "planner",
    "tools/answers": "answers",
    "tools/report": "report",
    "tools/commands": "cli",
    "tools/lab": "lab",
}
OPENED = re.compile(r"^namespace stageline(?:::(\w+))?[\w:]* \{\n((?:(?:struct|class) \w+;.*\n)*\})?", re.M)
# Hands: the only ones that see the terminal. Folders, and the one file.
HANDS = ("tools/commands", "tools/lab/commands", "tools/lab/stageline_lab.cpp", "tools/executor", "tools/stageline.cpp")
TERMINAL = re.compile(r"^\s*#\s*include\s*[<\"](CLI/|tools/commands/)|\bargv\b|\bisatty\b|"
                      r"\bstd::exit\b", re.M)
# Below the roots of the library: what an inner room may see of its neighbours.
INNER = {
    "sim/base": [],
    "sim/fair": ["sim/base"],
    "sim/batch": ["sim/base"],
    "sim/text": ["sim/base"],
    "sim/lower": ["sim/base", "sim/text"],
    "sim/check": ["sim/base", "sim/lower", "sim/text"],
    "sim/analysis": ["sim/base", "sim/lower", "sim/text", "sim/check"],
    "schedulers/parts": ["schedulers/partition"],
    "schedulers/search": ["schedulers/parts"],
    "schedulers/partition": [],
    "traces/json": [],
    "traces/native": ["traces/json"],
    "traces/nccl": ["traces/json"],
    "traces/chrome": ["traces/json"],
    "traces/kineto": ["traces/json", "traces/chrome"],
    "traces/logs": ["traces/json"],
    "traces/pipedream": ["traces/json"],
    "traces/pytorch": ["traces/json"],
    "traces/chakra": [],
    "tools/study/run": [],
    "tools/study/evidence": [],
    "tools/study/pace": ["tools/study/run"],
    "tools/study/figures": ["tools/study/run", "tools/study/pace"],
    "tools/study/whatif": ["tools/study/run", "tools/study/pace", "tools/study/figures"],
    "tools/planner/cuts": [],
    "tools/published/kernels": [],
    "tools/lab/datasets": [],
    "tools/lab/training": ["tools/lab/datasets"],
    "tools/lab/evidence": [],
    "tools/lab/papers": ["tools/lab/training", "tools/lab/evidence"],
    "tools/report/svg": [],
    "tools/report/charts": ["tools/report/svg", "tools/report/timeline"],
    "tools/report/timeline": ["tools/report/svg"],
    "tools/report/page": ["tools/report/svg", "tools/report/charts", "tools/report/timeline",
                          "tools/report/text", "tools/report/json"],
    "tools/report/text": ["tools/report/svg", "tools/report/charts", "tools/report/timeline"],
    "tools/report/json": ["tools/report/text", "tools/report/timeline"],
}
FLAT = {"README.md", "demo", "meson.build", "release", "setup", "stageline.cpp", "test"}
TOP = {"LICENSE", "README.md", "cost_models", "meson.build", "meson_options.txt", "schedulers", "sim",
       "tests", "tools", "traces"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def room_of(path):
    """The folder of ORDER that holds the file, and its floor."""
    for floor, row in enumerate(ORDER):
        for room in row:
            if path.startswith(room + "/"):
                return room, floor
    return None, len(ORDER)


def inner_of(path):
    return next((room for room in INNER if path.startswith(room + "/")), None)


def committed(root):
    """Names at the top that git knows: files of one's own may lie there, too. None without git or
    its folder."""
    if not (root / ".git").exists() or not shutil.which("git"):
        return set()
    listed = subprocess.run(["git", "-C", root, "-c", f"safe.directory={root.resolve()}", "ls-files",
                             "-z"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name.split("/")[0] for name in listed.split("\0") if name}


def main(root):
    root = pathlib.Path(root)
    findings = []
    for name in sorted(committed(root) - TOP):
        if not name.startswith("."):
            findings.append(f"{name}: no file or folder but {', '.join(sorted(TOP))} is committed at "
                            "the top")
    for entry in sorted((root / "tools").iterdir()):
        if entry.is_file() and entry.name not in FLAT:
            findings.append(f"tools/{entry.name}: no file but {', '.join(sorted(FLAT))} is flat here")
    files = [file for top in ("sim", "schedulers", "cost_models", "traces", "tools")
             for file in sorted((root / top).rglob("*.[ch]pp"))]
    for file in files:
        path = file.relative_to(root).as_posix()
        room, floor = room_of(path)
        if room is None and path not in HANDS:
            findings.append(f"{path}: its folder is not in the order of rooms")
            continue
        text = file.read_text(encoding="utf-8")
        for included in INCLUDE.findall(text):
            other, other_floor = room_of(included)
            if other is None:
                continue
            if other != room and other_floor >= floor:
                findings.append(f"{path} includes {included}: {room} must not see {other}")
            inner, other_inner = inner_of(path), inner_of(included)
            if inner and other_inner and inner != other_inner and other == room and \
                    other_inner not in INNER[inner]:
                findings.append(f"{path} includes {included}: {inner} must not see {other_inner}")
        own = NAMESPACES.get(room)
        for found in OPENED.finditer(text):
            if found[2] is None and found[1] != own and (own or found[1] in NAMESPACES.values()):
                findings.append(f"{path}: \"{found[0].strip()}\", where {room} has stageline{'::' + own if own else ''}")
        if not path.startswith(HANDS):
            for found in TERMINAL.finditer(text):
                findings.append(f"{path}: \"{found.group().strip()}\" is for hands alone: "
                                f"{', '.join(HANDS)}")
    print("\n".join(findings) or f"{len(files)} files, every include goes down, every name stands in the namespace of its room")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
