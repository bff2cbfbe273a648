#!/usr/bin/env python3
"""Holds files against a schema, and the schema against broken copies of them.

usage: schema.py SCHEMA FILE...

Of a Markdown file, every fenced JSON example of the schema's format is taken. Every copy with a key
too many, a number below zero, a value of the wrong type or another version must be refused; without a
key that the schema requires too. Of large files no broken copies are made: they have nothing that the
small ones have not, and each copy costs as much as the file is long.
"""
import copy
import json
import pathlib
import re
import sys

import jsonschema

MOST_PLACES = 400  # of a document that is broken in all ways


def documents(path, wanted):
    """(label, document) of a file."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if not str(path).endswith(".md"):
        yield str(path), json.loads(text)
        return
    found = 0
    for block in re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S):
        document = json.loads(block)
        if document.get("format") == wanted:
            found += 1
            yield f"{path}, example {found}", document
    if not found:
        sys.exit(f"schema.py: {path} has no example of the format {wanted}")


def places(value, path=()):
    """Every (path, value) below and including `value`."""
    yield path, value
    children = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())
    for step, child in children:
        yield from places(child, path + (step,))


def changed(document, path, value):
    result = copy.deepcopy(document)
    if not path:
        return value
    target = result
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return result


def without(document, path, key):
    result = copy.deepcopy(document)
    target = result
    for step in path:
        target = target[step]
    del target[key]
    return result


def broken_copies(document, required):
    """(what was done, the copy): none of them may pass."""
    for path, value in places(document):
        where = "/" + "/".join(map(str, path))
        if isinstance(value, dict):
            yield f"a key too many in {where}", changed(document, path, {**value, "nonsense": 1})
            for key in value:
                if (path[0] if path else "", key) in required:
                    yield f"{where} without {key}", without(document, path, key)
        elif isinstance(value, (int, float)):
            yield f"{where} = -1", changed(document, path, -1)
            yield f"{where} = a text", changed(document, path, "many")
        elif isinstance(value, str):
            yield f"{where} = 1.5", changed(document, path, 1.5)
        elif value:
            yield f"{where} = null", changed(document, path, None)
    yield "another version", {**document, "format": document["format"][:-1] + "2"}
    yield "a list", [document]


def required_keys(schema):
    """(list at the top or "", key) that must be there."""
    keys = {("", key) for key in schema["required"]}
    for name, part in schema["properties"].items():
        items = part.get("items", part)
        if "$ref" in items:
            items = schema["$defs"].get(items["$ref"].split("/")[-1], {})
        keys |= {(name, key) for key in items.get("required", [])}
    return keys


def main(schema_path, *files):
    schema = json.loads(pathlib.Path(schema_path).read_text(encoding="utf-8"))
    checker = jsonschema.Draft202012Validator
    checker.check_schema(schema)
    validator = checker(schema)
    wanted = schema["properties"]["format"]["const"]
    required = required_keys(schema)
    faults, refused, seen = [], 0, 0
    for file in files:
        for label, document in documents(file, wanted):
            seen += 1
            faults += [f"{label}: /{'/'.join(map(str, error.path))}: {error.message[:200]}"
                       for error in validator.iter_errors(document)]
            if sum(1 for _ in places(document)) > MOST_PLACES:
                continue
            for what, broken in broken_copies(document, required):
                refused += 1
                if validator.is_valid(broken):
                    faults.append(f"{label}: the schema takes {what}")
    if not seen:
        faults.append("no file was given")
    for fault in faults:
        print(fault)
    print(f"{seen} documents hold, {refused} broken copies were tried, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
