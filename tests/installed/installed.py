#!/usr/bin/env python3
"""Does what `meson install` puts down work? installed.py BUILD SOURCE VERSION hardened|plain

Installs the build into an empty folder, runs the installed command, reads its man page and
completions, and compiles ranking.cpp against the installed library through pkg-config alone.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def need(truth, what):
    if not truth:
        sys.exit("not so: " + what)


def check_hardened(command):
    """What the flags of a release leave in its program."""
    header, flags, segments = (run("readelf", "-W", what, command) for what in ("-h", "-d", "-l"))
    need("DYN " in header, "the command is loaded at any address")
    need("BIND_NOW" in flags and "GNU_RELRO" in segments, "its table of addresses is read-only")
    need(re.search(r"GNU_STACK.* RW ", segments), "its stack is no code")
    symbols = run("readelf", "-W", "--dyn-syms", command)
    need("__stack_chk_fail" in symbols, "its stack has canaries")
    need("__memcpy_chk" in symbols, "its copies are checked")


def main(build, source, version, hardened):
    with tempfile.TemporaryDirectory() as folder:
        destination = pathlib.Path(folder)
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir", folder)
        command = next(destination.rglob("bin/stageline"))
        prefix = command.parent.parent
        if hardened == "hardened" and shutil.which("readelf"):
            check_hardened(str(command))
        said = run(str(command), "--version").strip()
        need(re.fullmatch(rf"stageline {re.escape(version)}( \([0-9a-f]{{7,}}(-dirty)?\))?", said),
             f"--version says the release and the commit (it says \"{said}\")")
        need("uniform8" in run(str(command), "list"), "the bundled traces are in the command")

        bill = json.loads((prefix / "share/stageline/stageline.spdx.json").read_text(encoding="utf-8"))
        of = {one["name"]: one for one in bill["packages"]}
        need(bill["spdxVersion"] == "SPDX-2.3" and of["stageline"]["versionInfo"] == version,
             "the list of dependencies is SPDX, and of this version")
        need({"Boost", "CLI11", "Eigen", "fmt", "zlib"} <= set(of) and
             all(re.match(r"\d+\.\d+", one["versionInfo"]) and one["licenseConcluded"] != "NOASSERTION"
                 for one in of.values()), f"each dependency has a version and a licence ({of})")
        page = (prefix / "share/man/man1/stageline.1").read_text(encoding="utf-8")
        commands = re.findall(r"^  (\S+) {2,}\S", run(str(command), "--help").split("Subcommands:")[1],
                              re.M)
        need(len(commands) > 10, "--help lists the subcommands")
        for name in commands:
            need(f".SH {name.upper()}".replace("-", "\\-") in page, f"the man page has {name}")
        for script in ("share/bash-completion/completions/stageline",
                       "share/zsh/site-functions/_stageline",
                       "share/fish/vendor_completions.d/stageline.fish"):
            text = (prefix / script).read_text(encoding="utf-8")
            need(all(name in text for name in commands) and "zb_h1" in text,
                 f"{script} has the subcommands and the schedules")
        completion = prefix / "share/bash-completion/completions/stageline"
        completed = run("bash", "-c", f". '{completion}'; COMP_WORDS=(stageline simulate --sched); "
                        "COMP_CWORD=2; _stageline; echo \"${COMPREPLY[@]}\"").strip()
        need(completed == "--schedule", f"bash completes --sched (to \"{completed}\")")
        for file in ("data/uniform8.json", "trace.schema.json", "cluster.schema.json",
                     "request.schema.json"):
            need((prefix / "share/stageline" / file).is_file(), f"{file} is installed")

        metadata = next(destination.rglob("pkgconfig/stageline.pc"))
        flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs",
                    str(metadata)).split()
        program = destination / "ranking"
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror",
            str(pathlib.Path(source) / "tests/installed/ranking.cpp"), *flags, "-o", str(program))
        lines = run(str(program), str(prefix / "share/stageline/data/uniform8.json")).splitlines()
        need(len(lines) == 7 and lines[4].startswith("pipedream ") and lines[6].startswith("{"),
             "the program ranks three and one schedules:\n" + "\n".join(lines))
        print("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
