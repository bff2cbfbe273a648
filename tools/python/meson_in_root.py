#!/usr/bin/env python3
"""Meson, with the project's root for the folder of pyproject.toml.

meson-python configures the folder that pyproject.toml is in, and ours is tools/python (the root, in
a source distribution). It would also have a wheel with the stable ABI of every Python, and nanobind
has one from Python 3.12 on.
"""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
words = [str(here.parents[1]) if word == str(here) else word for word in sys.argv[1:]]
if words[:1] == ["setup"] and sys.version_info < (3, 12):
    words.append("-Dpython.allow_limited_api=false")
sys.exit(subprocess.run(["meson", *words], check=False).returncode)
