#!/usr/bin/env python3
"""Whether the playground's page has all its parts. The engine is a stand-in: no emscripten is needed.

usage: page.py MAKE_PAGE --styles CSS... --modules JS...   as tools/playground/meson.build lists them
"""
import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("make_page", type=pathlib.Path)
parser.add_argument("--styles", nargs="+", type=pathlib.Path)
parser.add_argument("--modules", nargs="+", type=pathlib.Path)
args = parser.parse_args()


def make(folder, styles, modules):
    engine = [folder / "engine.js", folder / "engine.wasm", folder / "worker.js"]
    for file in engine:
        file.write_bytes(b"0")
    page = folder / "playground.html"
    made = subprocess.run([sys.executable, args.make_page, page, *engine, "--styles", *styles,
                           "--modules", *modules], capture_output=True, text=True)
    return made, page.read_text(encoding="utf-8") if page.exists() else ""


with tempfile.TemporaryDirectory() as name:
    made, page = make(pathlib.Path(name), args.styles, args.modules)
    assert made.returncode == 0, made.stderr
style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
for file in args.styles:
    assert file.read_text(encoding="utf-8") in style, f"{file.name} is not in the page"
# What only the playground's own sheet says of what only its own modules make.
sheets = [file.name for file in args.styles]
assert sheets == ["page.css", "charts.css", "playground.css"], sheets
assert ".playground { display: grid;" in style
# The policy lets this style and this script alone run.
script = re.search(r'<script type="module">(.*?)</script>', page, re.S).group(1)
for kind, text in (("style", style), ("script", script)):
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert f"{kind}-src 'sha256-{digest}'" in page, f"the policy is of another {kind}"

for left_out in args.styles:
    with tempfile.TemporaryDirectory() as name:
        made, page = make(pathlib.Path(name), [file for file in args.styles if file != left_out],
                          args.modules)
    assert made.returncode != 0 and not page, f"a page without {left_out.name}"
    assert left_out.name in made.stderr, made.stderr
print("the page has its style sheets and its modules")
