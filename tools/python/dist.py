#!/usr/bin/env python3
"""Makes of the project's archive one that pip builds: a script of `meson dist`.

There pyproject.toml is in the root, beside meson.build; the commit is written down, since there is
no history to look it up in; and what tests alone use is left out.
"""
import os
import pathlib
import re
import shutil
import subprocess

root = pathlib.Path(os.environ["MESON_DIST_ROOT"])
here = "tools/python"


def edit(file, *changes):
    text = (root / file).read_text(encoding="utf-8")
    for pattern, by in changes:
        text, count = re.subn(pattern, by, text, flags=re.M)
        assert count, f"{file} has no {pattern}"
    return text


whole = edit(f"{here}/pyproject.toml", (r"^readme = '", f"readme = '{here}/"),
             (r"^meson = '", f"meson = '{here}/"))
(root / "pyproject.toml").write_text(whole, encoding="utf-8")
commit = subprocess.run(["git", "describe", "--always", "--abbrev=10", "--exclude=*"], check=True,
                        cwd=os.environ["MESON_SOURCE_ROOT"], stdout=subprocess.PIPE, text=True)
version = edit("tools/base/version.cpp.in", ("@COMMIT@", commit.stdout.strip()))
(root / "tools/base/version.cpp.in").write_text(version, encoding="utf-8")
shutil.rmtree(root / "tests")
