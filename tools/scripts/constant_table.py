#!/usr/bin/env python3
"""Writes the constant table of a kind of plug-in, from the list of names in a meson.build.

usage: constant_table.py TYPE FUNCTION HEADER [--suffix=_WORD] NAME...

Each NAME is a constant `extern const TYPE NAME_TYPE` (lower case; or NAME_WORD) in namespace
stageline, or stageline::INNER where FUNCTION is INNER::FUNCTION, defined at the foot of its own .cpp. With
--suffix=::WORD it is WORD of a namespace of its own, stageline::NAME_TYPE. A name that stands twice
is a link error, one that is missing too.
"""
import sys

kind, function, header, *names = sys.argv[1:]
*inner, function = function.split("::")
namespace = "::".join(["stageline", *inner])
suffix = "_" + kind.split("::")[-1].lower()
if names[0].startswith("--suffix="):
    given = names.pop(0).removeprefix("--suffix=")
    suffix = suffix + given if given.startswith("::") else given
print("// Generated from the list in meson.build.")
print(f'#include "{header}"\n\nnamespace {namespace} {{\n')
for name in names:
    space, _, constant = (name + suffix).rpartition("::")
    declared = f"extern const {kind} {constant};"
    print(f"namespace {space} {{\n{declared}\n}}" if space else declared)
print(f"\nstd::span<const {kind}* const> {function}() {{")
print(f"  static constexpr const {kind}* table[] = {{")
for name in names:
    print(f"      &{name}{suffix},")
print(f"  }};\n  return table;\n}}\n\n}}  // namespace {namespace}")
