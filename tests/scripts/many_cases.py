"""Evidence whose replay takes long."""
import json
import os

SMALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "evidence",
                     "small.evidence.json")


def many_cases():
    """The stored small evidence, each case thousands of times and with many micro-batches."""
    with open(SMALL, encoding="utf-8") as file:
        evidence = json.load(file)
    for case in evidence["cases"]:
        case.pop("timeline", None)
        case["microbatches"] = 256
    evidence["cases"] = [case for case in evidence["cases"] * 3000 if "program" not in case]
    return evidence
