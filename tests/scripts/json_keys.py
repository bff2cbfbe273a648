#!/usr/bin/env python3
"""Is every key that a command writes as JSON in the table of its heading?

json_keys.py STAGELINE SOURCE_ROOT

Keys are collected from answers to questions that have all of them, and looked up between backquotes below the
heading "### `COMMAND --json`" of tools/report/json/README.md."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# The words of each command.
COMMANDS = {
    "list": [["list", "--json", "-"]],
    "import": [["import", "lenet5-cpu", "--out", "OUT/trace.json", "--json", "-"]],
    "calibrate": [["calibrate", "GOLDEN/points.csv", "--kind", "a100", "--quiet", "--json", "-"],
                  ["calibrate", "OUT/few.csv", "--quiet", "--json", "-"]],
    "calibrate --kernels": [["calibrate", "--kernels", "OUT/kernels.json", "--json", "-"]],
    "reproduce": [["reproduce", "--only", "hybrid", "--json", "-"]],
    "staleness": [["staleness", "ROOT/tools/executor/studies/staleness.json.gz", "--json", "-"]],
}


def keys_of(value):
    """All names of members, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def few_runs(golden):
    """A file of one run, which a calibration rests on (golden/calibrate.cmd)."""
    lines = [line for line in (golden / "points.csv").read_text().splitlines() if re.match("id|a", line)]
    lines[0] = lines[0].replace(",precision,", ",framework,precision,")
    lines[1:] = [line.replace(",2,,1,2,", ",2,Megatron-Core,,1,2,") for line in lines[1:]]
    return "\n".join(lines) + "\n"


def timed_kernels():
    """A table of products in bf16."""
    rows = [{"id": f"product-{m}", "what": "product", "precision": "bf16", "m": m, "n": 4096, "k": 4096,
             "flops": 2 * m * 4096 * 4096, "bytes": 1, "us": m / 20, "low_us": m / 21, "high_us": m / 19,
             "samples": 9} for m in (1024, 2048, 3072, 4096, 6144, 8192, 12288)]
    return {"format": "stageline-kernels 1", "device": "NVIDIA H100", "kind": "h100", "torch": "2.11.0",
            "date": "2026-11-30", "on": "cuda", "small": False, "rows": rows, "left_out": [], "failed": []}


def section(page, command):
    """What is below the heading of this command."""
    heading = f"### `{command} --json`\n"
    if heading not in page:
        return None
    return re.split(r"\n##+ ", page.split(heading, 1)[1])[0]


def main():
    stageline, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    page = (root / "tools/report/json/README.md").read_text()
    golden = root / "tests/golden"
    failed = 0
    with tempfile.TemporaryDirectory() as out:
        pathlib.Path(out, "few.csv").write_text(few_runs(golden))
        pathlib.Path(out, "kernels.json").write_text(json.dumps(timed_kernels()))
        for command, questions in COMMANDS.items():
            keys = set()
            for words in questions:
                words = [word.replace("OUT", out).replace("GOLDEN", str(golden)).replace("ROOT", str(root))
                         for word in words]
                done = subprocess.run([stageline, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                if done.returncode != 0:
                    print(f"{' '.join(words)} gave {done.returncode}: {done.stderr}")
                    failed += 1
                    continue
                keys |= keys_of(json.loads(done.stdout))
            text = section(page, command)
            words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text or ""))))
            # A time stands as X where X_s and X_ps are written.
            missing = {key for key in keys if key not in words and key.removesuffix("_s").removesuffix("_ps") not in
                       words}
            if text is None or missing or not keys:
                print(f"{command} --json: not in the page: {sorted(missing) if text else 'its heading'}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
