#!/usr/bin/env python3
"""Meson, with the project's root for the folder of pyproject.toml.

meson-python configures the folder that pyproject.toml is in, and ours is tools/python.
"""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
words = [str(here.parents[1]) if word == str(here) else word for word in sys.argv[1:]]
sys.exit(subprocess.run(["meson", *words], check=False).returncode)
