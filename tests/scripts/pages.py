#!/usr/bin/env python3
"""Do the commands in our pages work as they are printed, and say what the pages show?

usage: pages.py [--rewrite] STAGELINE ROOT

A page is README.md, or one of tools/guide. In a fenced block, a line that begins with "$ " is a command, and so are the
lines after it while they end in a backslash; what follows is its output. There, a line of "…" alone is any number of
lines, and a line that ends in " …" is the beginning of one. A command of which the page shows nothing but "…" must end
with exit code 0 all the same, and one whose exit code is another says so in a last line "exit 1". The commands of a
page run one after the other in one folder, in which the repository's files lie under their names. A block marked
`console` is as on a terminal of 100 columns, others are as long as they need.

The questions of README's first table run too, on a bundled trace, and must end with exit code 0.
--rewrite puts in what is said now, where a block leaves nothing out: read the diff before you commit it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(.*)$")
FEWEST = 40  # commands in all pages: if fewer are found, the pages are read wrongly


def pages_of(root):
    return [root / "README.md"] + sorted((root / "tools" / "guide").glob("*.md"))


def commands_of(lines):
    """Of a page: (first line of the output, line behind it, columns, command) of each command."""
    found, inside, columns = [], False, ""
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence:
            if found and inside and found[-1][1] is None:
                found[-1][1] = number
            inside, columns = not inside, "100" if fence.group(1).strip() == "console" else ""
        elif inside and line.startswith("$ "):
            if found and found[-1][1] is None:
                found[-1][1] = number
            found.append([number + 1, None, columns, line[2:]])
        elif inside and found and found[-1][1] is None and found[-1][0] == number and found[-1][3].endswith("\\"):
            found[-1][3] += "\n" + line
            found[-1][0] = number + 1
    return found


def folder_of(root, name):
    """An empty folder in which the names of the repository's top lie as links."""
    folder = pathlib.Path(name)
    for entry in root.iterdir():
        if not entry.name.startswith((".", "build")):
            (folder / entry.name).symlink_to(entry)
    return folder


def said_by(stageline, folder, command, columns):
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    env.update(PATH=f"{stageline.parent}:{os.environ['PATH']}", NO_COLOR="1", LC_ALL="C.UTF-8")
    if columns:
        env["COLUMNS"] = columns
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.split("\n")[:-1] if done.stdout.endswith("\n") else done.stdout.split("\n")
    return [line for line in lines if line or len(lines) > 1] + ([f"exit {done.returncode}"] if done.returncode else [])


def equal(shown, said):
    return said.startswith(shown[:-2]) if shown.endswith(" …") else shown == said


def agree(shown, said):
    """Whether what the page shows is what was said, "…" for any number of lines."""
    if not shown:
        return not said
    if shown[0] == "…":
        return any(agree(shown[1:], said[skipped:]) for skipped in range(len(said) + 1))
    return bool(said) and equal(shown[0], said[0]) and agree(shown[1:], said[1:])


def failed(said):
    return bool(said) and re.fullmatch(r"exit \d+", said[-1]) is not None


def without_ends(lines):
    """The lines without empty ones before and after them."""
    while lines and not lines[0]:
        lines = lines[1:]
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def faults_of_page(stageline, root, page, rewrite):
    lines = page.read_text(encoding="utf-8").split("\n")
    commands = commands_of(lines)
    faults, renewed = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = folder_of(root, name)
        for first, behind, columns, command in commands:
            shown = without_ends(lines[first:behind])
            said = without_ends(said_by(stageline, folder, command, columns))
            as_shown = agree(shown, said) and (failed(said) == failed(shown))
            if not as_shown and rewrite and not any(line.endswith("…") for line in shown):
                renewed.append((first, first + len(lines[first:behind]), said + [""] * (lines[behind] != "```")))
            elif not as_shown:
                faults.append("\n".join([f"{page.relative_to(root)}:{first}: $ {command}", "shown:", *shown, "said:",
                                         *said]))
    for first, behind, said in reversed(renewed):
        lines[first:behind] = said
    if renewed:
        page.write_text("\n".join(lines), encoding="utf-8")
    return len(commands), faults


def questions_of(page):
    """The commands of the table under the heading "… questions", with a bundled trace."""
    section = re.search(r"^## \w+ questions$(.*?)^## ", page.read_text(encoding="utf-8"), re.M | re.S)
    for row in re.findall(r"^\|.*\|(.*)\|$", section.group(1) if section else "", re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row).replace("` `", " ")
        for command in re.findall(r"`(stageline [^`]*)`", plain):
            yield command.replace("TRACE", "resnet50-cpu")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--rewrite"]
    if len(arguments) != 2:
        sys.exit("usage: pages.py [--rewrite] STAGELINE ROOT")
    stageline, root = (pathlib.Path(argument).resolve() for argument in arguments)
    ran, faults = 0, []
    for page in pages_of(root):
        of_page, wrong = faults_of_page(stageline, root, page, "--rewrite" in sys.argv)
        ran += of_page
        faults += wrong
    with tempfile.TemporaryDirectory() as name:
        folder = folder_of(root, name)
        said_by(stageline, folder, "stageline program resnet50-cpu --schedule 1f1b --devices 4 --out mine.slp", "")
        for question in questions_of(root / "README.md"):
            ran += 1
            said = said_by(stageline, folder, question, "")
            if failed(said):
                faults.append("\n".join([f"README.md: {question}", *said]))
    if ran < FEWEST:
        faults.append(f"{ran} commands were found, and there are at least {FEWEST}")
    print("\n\n".join(faults) or f"{ran} commands")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
