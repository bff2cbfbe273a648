#!/usr/bin/env python3
"""Counts the test cases in one of Meson's logs: count_tests.py SUITE .../meson-logs/testlog.json

Meson counts programs; a doctest program holds many test cases and prints how many passed. A
program that does not is one case. Prints the output of what failed, names what was skipped and why,
and ends with "N passed, M failed" or "N passed, M failed, K skipped". Exit code 1 if anything
failed or nothing ran.
"""
import json
import re
import sys

COUNTS = re.compile(
    r"^\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped", re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What doctest prints above the messages of a test case, and a message in which it gives up.
CASE = re.compile(r"^TEST CASE: +(.*)$")
SKIPPED = re.compile(r"MESSAGE: skipped:? *(.*)$")
# A program told to run a part of its cases reports the others as skipped; that is no news.
FILTER = re.compile(r"^--?(dt-)?(tc|tce|ts|tse|sf|sfe|test-case|test-suite|source-file)")
LINES_SHOWN = 60


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gives no reason"


def given_up(output):
    """The test cases that printed a MESSAGE "skipped: why", as {name: why}."""
    found, case = {}, "a test case"
    for line in output.splitlines():
        if match := CASE.search(line):
            case = match[1].strip()
        elif match := SKIPPED.search(line):
            found.setdefault(case, match[1].strip() or "it gives no reason")
    return found


def count(test):
    """(passed, failed, [(name, why) of the skipped]) of one line of the log."""
    name, result = test["name"], test["result"]
    output = COLOUR.sub("", test.get("stdout") or "")
    if result == "SKIP":
        return 0, 0, [(name, last_line(output + "\n" + (test.get("stderr") or "")))]
    good = result in ("OK", "EXPECTEDFAIL")
    summaries = COUNTS.findall(output)
    if not summaries:
        return (1, 0, []) if good else (0, 1, [])
    passed = sum(int(summary[1]) for summary in summaries)
    failed = sum(int(summary[2]) for summary in summaries)
    skipped = [(f"{name}: {case}", why) for case, why in given_up(output).items()]
    passed -= min(passed, len(skipped))
    if not any(FILTER.match(word) for word in test.get("command") or []):
        left_out = sum(int(summary[3]) for summary in summaries)
        skipped += [(name, "a test case is marked skip")] * left_out
    # A program can also fail after its last test case: a crash, a leak, a time limit.
    return passed, failed if good else max(failed, 1), skipped


def main(suite, path):
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except (OSError, ValueError) as error:
        print(f"{suite}: cannot read what its tests said: {error}")
        tests = []
    passed = failed = 0
    skipped = []
    for test in tests:
        here_passed, here_failed, here_skipped = count(test)
        passed += here_passed
        failed += here_failed
        skipped += here_skipped
        if here_failed:
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            print(f"{suite}: failed: {test['name']} ({test['result']}); the end of its output:")
            for line in output.splitlines()[-LINES_SHOWN:]:
                print(f"  {line}")
    for name, why in skipped:
        print(f"{suite}: skipped: {name}: {why}")
    if passed + failed + len(skipped) == 0:
        print(f"{suite}: failed: no test ran")
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} SUITE TESTLOG")
    sys.exit(main(sys.argv[1], sys.argv[2]))
