#!/usr/bin/env python3
"""The man page and the shell completions of a command, made from what its --help and list say.

usage: help_pages.py man|bash|zsh|fish COMMAND

COMMAND is the built stageline. Prints the page or script. Raises ValueError where the help is not in
the form that this script reads, so that a page is never silently empty.
"""
import os
import re
import subprocess
import sys

VALUES = {  # flag: the section of `stageline list` that has its values
    "--schedule": "Schedules", "--partition": "Partitioners", "--cluster": "Clusters",
    "TRACE": "Bundled traces",
}


def said_by(command, *arguments):
    run = subprocess.run([command, *arguments], text=True, stdout=subprocess.PIPE, check=True,
                         stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "0"})
    return run.stdout.replace(command, "stageline").rstrip("\n").split("\n")


class Page:
    """One help page. positionals, options, subcommands: lists of (name, text). groups: the options, by heading."""

    def __init__(self, command, path):
        self.path = path
        self.summary, self.usage, self.footer = "", "", []
        self.positionals, self.subcommands, self.groups = [], [], {}
        lists = {"Positionals:": self.positionals, "Subcommands:": self.subcommands}
        items = None
        lines = said_by(command, *path, "--help", "all")
        for number, line in enumerate(lines):
            if number == 0:
                self.summary = line
            elif line.startswith("Usage: "):
                self.usage = line[len("Usage: "):]
            elif line in lists:
                items = lists[line]
            elif re.match(r"\w.*:$", line) and lines[number + 1:number + 2] and lines[number + 1].startswith("  -"):
                items = self.groups.setdefault(line[:-1], [])
            elif re.match(r"\S", line):
                self.footer = lines[number:]
                break
            elif not line.strip():
                items = None
            elif items is not None and re.match(r"  \S", line):
                name, _, text = line[2:].partition("  ") if len(line) > 30 else (line[2:], "", "")
                items.append([name.strip(), text.strip()])
            elif items and line.startswith(" " * 20):
                items[-1][1] = (items[-1][1] + " " + line.strip()).strip()
            else:
                raise ValueError(f"{' '.join(path)} --help, line {number + 1}: not understood: {line}")
        self.options = [option for options in self.groups.values() for option in options]
        if not self.summary or not self.usage or not self.options:
            raise ValueError(f"{' '.join(path)} --help has no summary, usage or options")

    def flags(self):
        """[(["-o", "--out"], takes a value, text)]"""
        rows = []
        for name, text in self.options:
            names, _, kind = name.partition(" ")
            takes = bool(kind) and not kind.startswith(("Needs", "Excludes"))
            rows.append((names.split(","), takes, text))
        return rows


def pages_of(command):
    top = Page(command, [])
    pages = [top]
    for name, _ in top.subcommands:
        page = Page(command, [name])
        pages.append(page)
        pages += [Page(command, [name, inner]) for inner, _ in page.subcommands]
    return pages


def values_of(command):
    found, section = {}, None
    for line in said_by(command, "list"):
        if re.match(r"\S", line):
            section = next((s for s in VALUES.values() if line.startswith(s)), None)
        elif section and (name := re.match(r"  (\S+)", line)) and line[2] != " ":
            found.setdefault(section, []).append(name[1])
    for section in VALUES.values():
        if not found.get(section):
            raise ValueError(f"stageline list has no names under {section}")
    return {flag: found[section] for flag, section in VALUES.items()}


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found.group()):04X}]", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def man(pages, version):
    out = ['.\\" Made from --help.', f'.TH STAGELINE 1 "" "stageline {roff(version)}" ""', ".SH NAME",
           "stageline \\- simulate pipeline\\-parallel training of neural networks", ".SH SYNOPSIS"]
    out += [f".B {roff(pages[0].usage)}", ".SH DESCRIPTION", roff(pages[0].summary)]
    for page in pages:
        if page.path:
            out += [".SH " + roff(" ".join(page.path).upper()), roff(page.summary), ".PP",
                    f".B {roff(page.usage)}"]
        for name, text in page.positionals + page.subcommands:
            out += [".TP", f".B {roff(name)}", roff(text)]
        for heading, options in page.groups.items():
            out += [f".SS {roff(heading)}"] if page.path else []
            for name, text in options:
                out += [".TP", f".B {roff(name)}", roff(text)]
        if page.footer:
            out += [".PP", ".nf", *map(roff, page.footer), ".fi"]
    out += [".SH EXIT STATUS", "0 on success; 1 where the answer is no (it does not fit, the programs "
            "differ); 2 on bad input; 3 where an answer contradicted itself and was not shown."]
    return out


def words(path):
    return "_".join(["stageline", *path]).replace("-", "_")


def bash(pages, values):
    out = ["# bash completion for stageline; made from --help.", "_stageline() {",
           '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}',
           '  local path= word words', '  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do',
           '    case "$path $word" in']
    for page in pages:
        for name, _ in page.subcommands:
            before = "_".join(page.path)
            out.append(f'      "{before} {name}") path={"_".join([*page.path, name])} ;;')
    out += ["    esac", "  done", '  case "$previous" in']
    for flag, names in {**values, "--help": ["all"]}.items():
        if flag.startswith("-"):
            out.append(f'    {flag}) words="{" ".join(names)}" ;;')
    out += ["    *)", '      case "$path" in']
    for page in pages:
        flags = [flag for names, _, _ in page.flags() for flag in names]
        rest = [name for name, _ in page.subcommands]
        if any(name.startswith("TRACE") for name, _ in page.positionals):
            rest += values["TRACE"]
        out.append(f'        "{"_".join(page.path)}") words="{" ".join(rest + flags)}" ;;')
    out += ["      esac", "      ;;", "  esac",
            "  # shellcheck disable=SC2207  # names without blanks",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}", "complete -o default -o bashdefault -F _stageline stageline"]
    return out


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(pages, values):
    out = ["#compdef stageline", "# zsh completion for stageline; made from --help."]
    escape = lambda text: re.sub(r"([\[\]:\\])", r"\\\1", text)
    for page in reversed(pages):
        out.append(f"_{words(page.path)}() {{")
        arguments = []
        for names, takes, text in page.flags():
            value = f":value:({' '.join(values[names[-1]])})" if names[-1] in values else ":value:_files"
            for name in names:
                arguments.append(quoted(f"{name}[{escape(text)}]" + (value if takes else "")))
        if page.subcommands:
            out += ["  local -a commands", "  commands=("]
            out += ["    " + quoted(f"{escape(name)}:{escape(text)}") for name, text in page.subcommands]
            out += ["  )"]
            arguments += ["'1: :->command'", "'*::argument:->rest'"]
        for name, _ in page.positionals:
            trace = name.startswith("TRACE")
            if not page.subcommands:
                arguments.append(quoted("*:file:" + (
                    f"{{_files || compadd {' '.join(values['TRACE'])}}}" if trace else "_files")))
        out.append("  _arguments -C " + " \\\n    ".join(arguments))
        if page.subcommands:
            out += ["  case $state in", "    command) _describe command commands ;;",
                    "    rest)", "      case $words[1] in"]
            out += [f"        {name}) _{words([*page.path, name])} ;;" for name, _ in page.subcommands]
            out += ["      esac", "      ;;", "  esac"]
        out.append("}")
    return out + ['_stageline "$@"']


def fish(pages, values):
    out = ["# fish completion for stageline; made from --help."]
    for page in pages:
        if page.path:
            inner = "".join(f"; and not __fish_seen_subcommand_from {name}"
                            for name, _ in page.subcommands)
            when = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in page.path) + inner
        else:
            when = "__fish_use_subcommand"
        head = f"complete -c stageline -n {quoted(when)}"
        for name, text in page.subcommands:
            out.append(f"{head} -f -a {quoted(name)} -d {quoted(text)}")
        for names, takes, text in page.flags():
            line = head
            for name in names:
                line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
            if takes:
                line += " -r"
            if names[-1] in values:
                line += f" -f -a {quoted(' '.join(values[names[-1]]))}"
            out.append(f"{line} -d {quoted(text)}")
        if any(name.startswith("TRACE") for name, _ in page.positionals):
            out.append(f"{head} -a {quoted(' '.join(values['TRACE']))}")
    return out


def main(kind, command):
    pages = pages_of(command)
    if kind == "man":
        lines = man(pages, said_by(command, "--version")[0].split(" ", 1)[1].split(" ")[0])
    else:
        lines = {"bash": bash, "zsh": zsh, "fish": fish}[kind](pages, values_of(command))
    print("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
