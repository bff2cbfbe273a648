#!/usr/bin/env python3
"""The headers of the library, a path a line: headers.py ROOT FOLDER…"""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
for folder in sys.argv[2:]:
    for header in sorted((root / folder).rglob("*.hpp")):
        if header.parent.name != "pch":
            print(header.relative_to(root).as_posix())
