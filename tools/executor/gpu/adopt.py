"""Puts what was found on a GPU into the tree, and renews the pages that show it.

    traces/data/CHIP/NAME-CHIP.json             traces, which traces/data/meson.build then names
    tools/executor/evidence/CHIP-PIECE.json.gz  predicted and measured, with summary
    tools/executor/found/CHIP/                  facts, what the tests said, copies to the host, kernels, the study
    tools/executor/README.md                    the table of evidence; an item of "Waiting for a GPU" that is done goes
"""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import course
import pieces
from prepare import Failure, ROOT

CHIPS = ("gb300", "gb200", "b300", "b200", "h200", "h100", "a100", "l40s", "a10")  # longer names first
WAITS = re.compile(r"<!-- waits for (\S+) -->\n(.*?)<!-- end -->\n", re.S)


def name_of(facts):
    """The GPU's, as LibTorch or else nvidia-smi says it; empty without one."""
    told = facts.get("gpu", [])  # a line of titles, and one for each GPU: "NVIDIA H100 80GB HBM3, 580.65, …"
    return facts.get("torch", {}).get("name", "") or (told[1].split(",")[0] if len(told) > 1 else "")


def chip_of(facts):
    """"NVIDIA H100 80GB HBM3" → "h100"; of no GPU the machine's "cpu"."""
    name = name_of(facts)
    if not name:
        return "cpu"
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return next((chip for chip in CHIPS if chip in words.split("-")), words)


def read(path, form):
    """A JSON file of that format, plain or gzip."""
    data = path.read_bytes()
    value = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    if value.get("format") != form:
        raise Failure(f"{path.name} is of format {value.get('format')!r}, not {form!r}")
    return value


def put(source, target, said):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    said.append(target)


def adopt_trace(piece, work, root, chip, said):
    for source in sorted((work / piece).glob("*.json")):
        trace = read(source, "stageline-trace 1")
        # Traces without a dtype in their name are fp32; those of the bundled shapes have the plain names.
        dtype = trace["provenance"]["settings"].split(",")[0]
        target = root / f"traces/data/{chip}/{source.stem}-{chip}-{dtype}.json"
        put(source, target, said)
        listing = root / "traces/data/meson.build"
        text = listing.read_text(encoding="utf-8")
        entry = f"'{chip}/{target.name}'"
        if entry not in text:
            head, names = text.split("bundled_trace_files = files(", 1)
            listing.write_text(f"{head}bundled_trace_files = files({entry},\n  {names}", encoding="utf-8")


def adopt_evidence(piece, work, root, chip, said):
    source = work / piece / "evidence.json.gz"
    read(source, "stageline-evidence 1")
    folder = root / "tools/executor/evidence"
    name = f"{chip}-{piece}"
    put(source, folder / f"{name}.json.gz", said)
    put(work / piece / "evidence.summary.json", folder / f"{name}.summary.json", said)


def adopt_kernels(here, stageline, said, tell):
    """The rates that follow from timed kernels, and a page of them; of a kind without a data sheet the table alone."""
    done = subprocess.run([stageline, "calibrate", "--kernels", here / "kernels.json", "--page", here / "kernels.md",
                           "--out", here / "calibration.json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        tell(f"kernels.json gives no rates: {done.stderr.strip()}")
        return
    said += [here / "calibration.json", here / "kernels.md"]


def seconds(picoseconds):
    return f"{picoseconds / 1e9:.2f} ms"


def offload_row(piece, work):
    """| way | predicted | measured | error |"""
    run = json.loads((work / piece / "run.json").read_text(encoding="utf-8"))
    measured = sorted(run["measured"]["makespan_ps"])
    middle = measured[len(measured) // 2]
    predicted = run["makespan_ps"]
    return (f"| {piece.removeprefix('offload-')} | {seconds(predicted)} | {seconds(middle)} | "
            f"{100 * (predicted / middle - 1):+.1f} % |")


def tests_row(piece, work):
    log = (work / piece / "log.txt").read_text(encoding="utf-8", errors="replace")
    summary = re.findall(r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped", log)
    return f"| {piece} | " + (" | ".join(summary[-1]) if summary else "? | ? | ? | ?") + " |"


def page_of(chip, facts, found, work, here):
    """What was found, for a reader."""
    text = [f"# Found on {name_of(facts) or facts.get('system', chip)}", "",
            "Made by `tools/executor/gpu_evidence --adopt` from what its calls measured.", "",
            f"LibTorch {facts.get('torch', {}).get('version', '?')}, "
            f"CUDA {facts.get('torch', {}).get('cuda') or 'none'}, {facts.get('cores', '?')} cores; "
            "all facts: [facts.json](facts.json).", "",
            "| piece | date | seconds | estimated |", "|---|---|--:|--:|"]
    text += [f"| {name} | {one['date']} | {one['seconds']:.0f} | {one['estimated']:.0f} |"
             for name, one in sorted(found.items())]
    rows = [offload_row(f"offload-{mode}", work) for mode in pieces.COPIES if f"offload-{mode}" in found]
    if rows:
        text += ["", "## Stashes by way of the host", "", "PipeFB, forwards on one part and backwards on the other; "
                 "makespan of twelve micro-batches, median of the runs.", "",
                 "| way to copy | predicted | measured | error |", "|---|--:|--:|--:|", *rows]
    if "kernels" in found:
        text += ["", "Kernels: [their table](kernels.json)." + (
            " What follows from them: [kernels.md](kernels.md), [calibration.json](calibration.json)."
            if (here / "kernels.md").exists() else "")]
    rows = [tests_row(name, work) for name in sorted(found) if name.startswith("tests-")]
    if rows:
        text += ["", "## Tests", "", "| program | cases | passed | failed | skipped |", "|---|--:|--:|--:|--:|", *rows]
    return "\n".join(text) + "\n"


def strike(root, have, on, said):
    """Takes the items whose pieces are all there out of "Waiting for a GPU"."""
    page = root / "tools/executor/README.md"
    text = page.read_text(encoding="utf-8")

    def kept(match):
        wanted = [one for one in pieces.pieces_of(match[1], on) if one not in
                  (pieces.pieces_of("first", on) if match[1] == "second" else ())]
        missing = [one.name for one in wanted if one.name not in have and not (
            one.singly and all(single.name in have for single in one.singly))]
        return match[0] if missing else ""
    new = WAITS.sub(kept, text)
    if new != text:
        page.write_text(new, encoding="utf-8")
        said.append(page)


def adopt(folder, build, tell, root=ROOT):
    stageline = build / "tools/stageline"
    if not stageline.exists():
        raise Failure(f"{build} has no tools/stageline; --build names a build folder that has")
    try:
        all_of = course.archives([folder])
    except ValueError as error:
        raise Failure(str(error)) from error
    if not all_of:
        raise Failure(f"{folder} holds no archive of gpu_evidence (first.tar.gz, say)")
    places = {index["on"] for _, index in all_of}
    if len(places) > 1:
        raise Failure(f"{folder} holds archives of {' and '.join(sorted(places))}; adopt them one by one")
    found, said = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        for path, index in all_of:
            for one in index["done"]:
                found[one["piece"]] = one | {"date": index["date"]}
            course.unpack(path, {one["piece"] for one in index["done"]}, work)
        if "facts" not in found:
            raise Failure(f"the archives in {folder} do not say what the machine is: the piece facts is missing")
        facts = json.loads((work / "facts/facts.json").read_text(encoding="utf-8"))
        chip = chip_of(facts)
        here = root / "tools/executor/found" / chip
        for piece in sorted(found):
            if piece.startswith("trace-"):
                adopt_trace(piece, work, root, chip, said)
            elif (work / piece / "evidence.json.gz").exists():
                adopt_evidence(piece, work, root, chip, said)
            else:
                for source in sorted((work / piece).iterdir()):
                    if source.name == "log.txt" and not piece.startswith("tests-"):
                        continue
                    name = source.name if piece in ("facts", "kernels") else f"{piece}-{source.name}"
                    put(source, here / name.replace("-log.txt", ".txt"), said)
        here.mkdir(parents=True, exist_ok=True)
        if (here / "kernels.json").exists():
            adopt_kernels(here, stageline.resolve(), said, tell)
        (here / "README.md").write_text(page_of(chip, facts, found, work, here), encoding="utf-8")
        said.append(here / "README.md")
    table = subprocess.run([sys.executable, ROOT / "tools/executor/make_evidence", build, "--table", "--folder",
                            root / "tools/executor/evidence", "--page", root / "tools/executor/README.md"],
                           stderr=subprocess.PIPE, text=True)
    if table.returncode != 0:
        raise Failure(f"the table of evidence: {table.stderr.strip()}")
    strike(root, set(found), places.pop(), said)
    for path in said:
        tell(f"wrote {path.relative_to(root)}")
    if any("traces/data" in str(path) for path in said):
        tell("new traces are bundled: build again, and `tests/golden.py --rewrite` renews what lists them")
    for _, index in all_of:
        for what in ("failed", "left_out"):
            for one in index[what]:
                if one["piece"] not in found:
                    tell(f"{what.replace('_', ' ')}: {one['piece']} ({one['why']})")
    return 0
