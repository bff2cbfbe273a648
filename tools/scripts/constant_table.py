#!/usr/bin/env python3
"""Writes the constant table of a kind of plug-in, from the list of names in a meson.build.

usage: constant_table.py TYPE FUNCTION HEADER NAME...

Each NAME is a constant `extern const TYPE NAME_TYPE` (lower case) in namespace stageline, defined at
the foot of its own .cpp; a name that stands twice is a link error, one that is missing too.
"""
import sys

kind, function, header, *names = sys.argv[1:]
suffix = "_" + kind.lower()
print("// Generated from the list in meson.build.")
print(f'#include "{header}"\n\nnamespace stageline {{\n')
for name in names:
    print(f"extern const {kind} {name}{suffix};")
print(f"\nstd::span<const {kind}* const> {function}() {{")
print(f"  static constexpr const {kind}* table[] = {{")
for name in names:
    print(f"      &{name}{suffix},")
print("  };\n  return table;\n}\n\n}  // namespace stageline")
