#!/usr/bin/env python3
"""Compiles the library to WebAssembly: wasm.py OPTIONS...

The files are those of the native targets, as Meson lists them (meson-info/intro-targets.json), so
there is no second list. Writes a build.ninja with a rule for em++ and runs it: what changed is
compiled again, as in the native build. Needs no network, and writes to the folder alone.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from units import sources_of_unit

HEADERS = {"fmt": "fmt/core.h", "boost": "boost/version.hpp", "nlohmann": "nlohmann/json.hpp",
           "Eigen": "Eigen/Core"}
COMPILE = ["-std=c++20", "-O2", "-fwasm-exceptions", "-ffp-contract=off", "-DNDEBUG",
           "-D_LIBCPP_ENABLE_CXX20_REMOVED_FEATURES", "-Wall", "-Wextra"]
LINK = ["-O2", "-fwasm-exceptions", "-sWASM_BIGINT=1", "-sALLOW_MEMORY_GROWTH=1",
        "-sMODULARIZE=1", "-sEXPORT_NAME=stagelineEngine", "-sENVIRONMENT=web,worker,node",
        "-sTOTAL_STACK=4MB", "-sFORCE_FILESYSTEM=1", "-sEXPORTED_FUNCTIONS=_malloc,_free",
        "-sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8,lengthBytesUTF8,FS"]
PRECOMPILED = "precompiled.pch"


def folder_of(header, compiler, arguments):
    """The include folder in which the native compiler finds a header of a library."""
    said = subprocess.run([*compiler, *arguments, "-x", "c++", "-std=c++20", "-M", "-"],
                          input=f"#include <{header}>\n", capture_output=True, text=True, check=True)
    for word in said.stdout.replace("\\\n", " ").split():
        if word.endswith("/" + header):
            return pathlib.Path(word[:-len(header) - 1])
    raise SystemExit(f"wasm.py: the compiler does not say where {header} is")


def link_headers(folder, compiler):
    """Header-only libraries alone: the folder of the system's headers would hide em++'s own."""
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    for name, header in HEADERS.items():
        link = include / name
        if link.is_symlink() and (include / header).exists():
            continue
        link.unlink(missing_ok=True)
        arguments = ["-I/usr/include/eigen3"] if name == "Eigen" else []
        link.symlink_to(folder_of(header, compiler, arguments).absolute() / name)


def instead_of(source, replaced):
    for old, new in replaced:
        if source.endswith("/" + old):
            return source[:-len(old)] + new
    return source


def united(unit, sources, replaced, folder):
    """Writes such a unit to the folder, with some of its sources replaced and all of them named from there."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / pathlib.Path(unit).name
    text = "".join(f'#include "{os.path.relpath(instead_of(source, replaced), folder)}"\n' for source in sources)
    if not made.exists() or made.read_text(encoding="utf-8") != text:
        made.write_text(text, encoding="utf-8")
    return str(made)


def sources_of(build, names, replaced, folder):
    """The C++ sources of static libraries, in the order of Meson's lists. Units go to the folder."""
    targets = json.loads((build / "meson-info" / "intro-targets.json").read_text(encoding="utf-8"))
    found = []
    for target in targets:
        if target["type"] != "static library" or target["name"] not in names:
            continue
        for group in target["target_sources"]:
            found += group["sources"] + group["generated_sources"]
    files = []
    for source in found:
        if not source.endswith(".cpp"):
            continue
        parts = sources_of_unit(source)
        source = united(source, parts, replaced, folder) if parts else instead_of(source, replaced)
        if source not in files:
            files.append(source)
    return files


def escaped(path):
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def rules(args, files):
    # Relative names all: the same file is then the same command in each checkout.
    def relative(path):
        return os.path.relpath(path, args.folder)

    defines = [f"-DSTAGELINE_VERSION=\"{args.version}\""]
    compile_words = [args.emxx, *COMPILE, *defines, "-I" + relative(args.source), "-isysteminclude"]
    # Without its time of making, the same headers give the same file, by which ccache knows the objects.
    timeless = ["-Xclang", "-fno-pch-timestamp"]
    header_words = [*compile_words, *timeless, "-fpch-instantiate-templates", "-x", "c++-header"]
    link_words = [args.emxx, *LINK]

    def command(words):
        return "  command = " + shlex.join(words).replace("$", "$$")

    lines = ["ninja_required_version = 1.8", "",
             # Never from ccache: clang writes the headers' whole names into the file, and a copy made in
             # another checkout asks for headers that are gone.
             "rule header", command(["env", "CCACHE_DISABLE=1", *header_words]) + " -MD -MF $out.d $in -o $out",
             "  depfile = $out.d", "  deps = gcc",
             "  description = Precompiling to WebAssembly $in", "",
             "rule compile", command([*compile_words, *timeless, "-include-pch", PRECOMPILED]) +
             " -MD -MF $out.d -c $in -o $out", "  depfile = $out.d", "  deps = gcc",
             "  description = Compiling to WebAssembly $in", "",
             "rule link", command(link_words) + " @$out.rsp -o $out",
             "  rspfile = $out.rsp", "  rspfile_content = $in",
             "  description = Linking $out", "",
             f"build {PRECOMPILED}: header {escaped(relative(args.header))}"]
    objects = []
    for file in files:
        path = pathlib.Path(file)
        base = args.build if args.build in path.parents else args.source
        made = "objects/" + path.relative_to(base).as_posix() + ".o"
        objects.append(made)
        lines.append(f"build {escaped(made)}: compile {escaped(relative(path))} | {PRECOMPILED}")
    lines += ["", f"build {escaped(args.out)}: link {' '.join(escaped(o) for o in objects)}", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="Meson's build folder")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for objects")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JavaScript file")
    parser.add_argument("--emxx", required=True)
    parser.add_argument("--compiler", required=True, help="the native one, as shell words")
    parser.add_argument("--version", required=True)
    parser.add_argument("--header", type=pathlib.Path, required=True, help="to be precompiled")
    parser.add_argument("--target", action="append", required=True, help="a static library")
    parser.add_argument("--instead", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("more", nargs="*", help="further sources")
    args = parser.parse_args()
    args.source, args.build = args.source.absolute(), args.build.absolute()
    args.out = args.out.absolute()
    args.folder, args.header = args.folder.absolute(), args.header.absolute()
    args.folder.mkdir(parents=True, exist_ok=True)
    link_headers(args.folder, shlex.split(args.compiler))
    replaced = [pair.split("=", 1) for pair in args.instead]
    files = sources_of(args.build, args.target, replaced, args.folder / "units")
    files += [str(pathlib.Path(file).absolute()) for file in args.more]
    text = rules(args, files)
    ninja = args.folder / "build.ninja"
    if not ninja.exists() or ninja.read_text(encoding="utf-8") != text:
        ninja.write_text(text, encoding="utf-8")
    environment = dict(os.environ, EMCC_SKIP_SANITY_CHECK="1")
    # Debian's Emscripten looks for Debian's node modules, which another node does not know.
    debian = "/usr/share/nodejs"
    if os.path.isdir(debian):
        environment["NODE_PATH"] = os.pathsep.join(
            filter(None, [os.environ.get("NODE_PATH"), debian]))
    if shutil.which("ccache"):
        environment["EM_COMPILER_WRAPPER"] = "ccache"
        # As for the native build: what a precompiled header defines does not change unnoticed.
        environment.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,"
                               "include_file_ctime")
    return subprocess.run(["ninja", "-C", str(args.folder)], env=environment,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
