#!/usr/bin/env python3
"""Checks SVG files with a real XML parser: wellformed.py FILE...

Each must parse, have an svg root with title and desc, hold no script, refer to nothing outside
itself, and give no element a negative size. Exit code 1 and a line for each fault otherwise.
"""
import re
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"


def faults(path):
    try:
        root = tree.parse(path).getroot()
    except tree.ParseError as error:
        return [f"not well-formed: {error}"]
    found = []
    if root.tag != SVG + "svg":
        found.append(f"root is {root.tag}")
    for needed in ("title", "desc"):
        if not (root.findtext(SVG + needed) or "").strip():
            found.append(f"no {needed}")
    for element in root.iter():
        if element.tag in (SVG + "script", SVG + "image", SVG + "foreignObject"):
            found.append(f"holds {element.tag}")
        for name, value in element.attrib.items():
            if name in ("width", "height", "r") and float(value) < 0:
                found.append(f"{element.tag} has {name} {value}")
            if "href" in name or re.search(r"url\((?!#)", value):
                found.append(f"{element.tag} refers to {value}")
            for number in re.findall(r"\d+\.\d+", value) if name != "version" else []:
                if len(number.split(".")[1]) > 2:
                    found.append(f"{element.tag} has {number}: more than two decimals")
    for style in root.iter(SVG + "style"):
        if re.search(r"@import|url\((?!#)", style.text or ""):
            found.append("the style sheet refers to something outside")
    return found


if __name__ == "__main__":
    bad = [(path, fault) for path in sys.argv[1:] for fault in faults(path)]
    for path, fault in bad:
        print(f"{path}: {fault}")
    sys.exit(1 if bad or len(sys.argv) < 2 else 0)
