#!/usr/bin/env python3
"""Holds what newer libraries and compilers want included, which those of Debian 12 do not miss: includes.py ROOT

Prints each file that uses a name of NEEDS without its header; exit code 1 if any.
"""
import pathlib
import re
import sys

# A name that moved: its header, and since when.
POSIX = "access|chdir|close|dup2|execv|execvp|fork|fsync|ftruncate|getcwd|gethostname|getpid|getuid|isatty" \
        "|lseek|pipe|read|readlink|rmdir|setsid|sysconf|unlink|usleep|write"
NEEDS = {r"\bfmt::join\(": ("fmt/ranges.h", "fmt 11"),
         # Other headers of libstdc++ brought it.
         rf"(?<![\w>])::({POSIX})\(|\bSTD(IN|OUT|ERR)_FILENO\b": ("unistd.h", "g++ 16")}


def main(root):
    root = pathlib.Path(root)
    files = [file for top in ("sim", "schedulers", "cost_models", "traces", "tools", "tests")
             for file in sorted((root / top).rglob("*.[ch]pp"))]
    findings = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        for name, (header, since) in NEEDS.items():
            if re.search(name, text) and f"#include <{header}>" not in text:
                findings.append(f"{file.relative_to(root)}: {re.search(name, text).group()} needs <{header}> "
                                f"since {since}")
    print("\n".join(findings) or f"{len(files)} files include what newer libraries want")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
