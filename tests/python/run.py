#!/usr/bin/env python3
"""Runs the tests of the Python package: run.py [FILE...]

Names what was skipped and why, shows what failed, and ends with "N passed, M failed[, K skipped]".
Exit code 1 if anything failed or nothing ran; 77, with the first reason as the last line, if all was
skipped. In the environment:
STAGELINE_COMMAND, the command of the same build.
"""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main(names):
    sys.path.insert(0, str(HERE))
    modules = [pathlib.Path(name).stem for name in names] or sorted(
        file.stem for file in HERE.glob("test_*.py"))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(
        unittest.defaultTestLoader.loadTestsFromNames(modules))
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.testsRun - failed - skipped
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    if failed or not result.testsRun:
        return 1
    if passed:
        return 0
    print(result.skipped[0][1])  # Meson shows the last line
    return 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
