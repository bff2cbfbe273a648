"""Measured steps of PyTorch's pipelining, kept, judged and reported. Needs no torch.

In memory times are seconds, in the file microseconds, with one decimal.
"""
import json
import math
import os
import pathlib
import platform
import statistics
import tempfile

import torch_predict
from torch_predict import Failure

FORMAT = "stageline-torch-steps 1"
GROWTH = 0.0005  # of an error that is still called the same
NOTES = ["An op's two costs: alone, and while the other ranks compute.",
         "Costs are means over a round's micro-batches; predictions take medians over the rounds."]


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def start(date, command):
    """Evidence without cases, of this machine."""
    import torch

    cores = len(os.sched_getaffinity(0))
    return {"format": FORMAT, "device": f"{cpu()}, {cores} cores", "date": date,
            "software": f"torch {torch.__version__}, Python {platform.python_version()}, Gloo over "
                        "the loopback",
            "settings": "fp32; one thread a rank, each on a core of its own where there are enough; "
                        "glibc keeps freed memory; no garbage collection within a step",
            "command": command, "notes": NOTES, "cases": []}


def medians(rounds):
    """The measurements that predictions use, from those of several rounds."""
    first = rounds[0]
    middle = lambda of: statistics.median(of(one) for one in rounds)  # noqa: E731
    costs = {layout: {op: tuple(middle(lambda one: one["costs"][layout][op][i]) for i in (0, 1))
                      for op in table} for layout, table in first["costs"].items()}
    overhead = [middle(lambda one: one["overhead"][rank]) for rank in range(len(first["overhead"]))]
    small, large = ({key: middle(lambda one: one["messages"][i][key]) for key in first["messages"][i]}
                    for i in (0, 1))
    message = torch_predict.link_of(small, large)
    for end in ("send", "receive"):  # each is an action of the runtime, too
        message[end] += statistics.fmean(overhead)
    return {"costs": costs, "overhead": overhead, "message": message}


def noise_of(steps):
    """How far the median may be off, as tools/lab/evidence/judge.hpp has it; None of fewer than three."""
    if len(steps) < 3:
        return None
    low, _, high = statistics.quantiles(steps, n=4, method="inclusive")
    halves = abs(statistics.median(steps[::2]) - statistics.median(steps[1::2]))
    return max(halves, 3.72 / math.sqrt(len(steps)) * (high - low) / 2)


def judge(evidence, simulator):
    """The prediction of each run, and the errors of all: above 0, the simulator is too slow."""
    runs = []
    for case in evidence["cases"]:
        measured = case["measured"]
        for run in case["runs"]:
            took, noise = statistics.median(run["steps"]), noise_of(run["steps"])
            predicted = simulator.step(case, measured, run)
            runs.append({"title": title_of(case), "imitated": case["imitated"], "name": run["name"],
                         "predicted": predicted, "measured": took,
                         "error": predicted / took - 1,
                         "noise": None if noise is None else noise / took})
    groups = {}
    for label, imitated in (("computed", False), ("imitated", True)):
        errors = [(run["error"], run["noise"] or 0.0) for run in runs if run["imitated"] == imitated]
        if errors:
            groups[label] = {
                "runs": len(errors),
                "mean_error": statistics.fmean(abs(error) for error, _ in errors),
                "mean_error_beyond_noise": statistics.fmean(max(0.0, abs(error) - noise)
                                                            for error, noise in errors),
                "bias": statistics.fmean(error for error, _ in errors),
                "worst_error": max((error for error, _ in errors), key=abs),
                "mean_noise": statistics.fmean(noise for _, noise in errors)}
    return {"runs": runs, "groups": groups}


def interference(evidence):
    """(case, layout, how much longer its ops take beside others, as a share of their total)"""
    for case in evidence["cases"]:
        for layout, costs in case["measured"]["costs"].items():
            alone, beside = (sum(cost[i] for cost in costs.values()) for i in (0, 1))
            yield title_of(case), layout, beside / alone - 1


def title_of(case):
    """The model and the ranks, for people."""
    return f"{case['model']}, {case['ranks']} ranks{', imitated' if case['imitated'] else ''}"


def report(evidence, judged):
    """Markdown."""
    percent = lambda share: "–" if share is None else f"{100 * share:.1f} %"  # noqa: E731
    signed = lambda share: f"{100 * share:+.1f} %"  # noqa: E731
    text = f"{evidence['device']} · {evidence['software']} · {evidence['date']}\n\n"
    text += "| model | schedule | measured | noise | predicted | error |\n|---|---|--:|--:|--:|--:|\n"
    for run in judged["runs"]:
        text += (f"| {run['title']} | {run['name']} | {run['measured'] * 1e3:.1f} ms | "
                 f"{percent(run['noise'])} | {run['predicted'] * 1e3:.1f} ms | "
                 f"{signed(run['error'])} |\n")
    text += "\n"
    for label, group in judged["groups"].items():
        text += (f"{label}: mean error {percent(group['mean_error'])} over {group['runs']} runs "
                 f"({percent(group['mean_error_beyond_noise'])} beyond noise; mean noise "
                 f"{percent(group['mean_noise'])}), bias {signed(group['bias'])}, worst "
                 f"{signed(group['worst_error'])}\n")
    for title, layout, more in interference(evidence):
        text += f"{title}, {layout}: ops take {signed(more)} while other ranks compute\n"
    for case in evidence["cases"]:
        message, overhead = case["measured"]["message"], case["measured"]["overhead"]
        text += (f"{title_of(case)}: a message of {case['message_bytes']} bytes costs its sender "
                 f"{micro(message['send']):.0f} us and its receiver {micro(message['receive']):.0f} us; "
                 f"link latency {micro(message['latency']):.0f} us, bandwidth "
                 + (f"{message['bandwidth'] / 1e6:.0f} MB/s" if message["bandwidth"] else "unlimited")
                 + f"; overhead of an op {micro(statistics.fmean(overhead)):.0f} us\n")
    return text


def worse(kept, judged):
    """Sentences: which errors have grown since they were kept."""
    result = []
    for label, old in kept.items():
        new = judged["groups"].get(label)
        if new is None or new["runs"] != old["runs"]:
            result.append(f"the kept errors are of {old['runs']} {label} runs, and the evidence has "
                          "another number")
            continue
        for key, what in (("mean_error", "mean error"), ("worst_error", "worst error"),
                          ("bias", "bias")):
            if abs(new[key]) > abs(old[key]) + GROWTH:
                result.append(f"the {what} of {label} runs grew from {100 * abs(old[key]):.2f} % to "
                              f"{100 * abs(new[key]):.2f} %")
    return result


def micro(seconds):
    return round(seconds * 1e6, 1)


def scaled(measured, by):
    """Measurements with another unit of time. Bandwidths stay bytes a second."""
    return {"costs": {layout: {op: [by(time) for time in times] for op, times in table.items()}
                      for layout, table in measured["costs"].items()},
            "overhead": [by(time) for time in measured["overhead"]],
            "message": {key: round(value) if key == "bandwidth" else by(value)
                        for key, value in measured["message"].items()}}


def seconds(microseconds):
    return microseconds / 1e6


def packed(evidence):
    """Evidence as it is in the file: microseconds, and each program once."""
    programs, cases = [], []
    for case in evidence["cases"]:
        measured = scaled(case["measured"], micro)
        for layout, table in measured["costs"].items():
            measured["costs"][layout] = {f"{stage}{kind}": times
                                         for (stage, kind), times in table.items()}
        runs = []
        for run in case["runs"]:
            runs.append({**run, "steps": [micro(step) for step in run["steps"]]})
            if "program" in run:
                rows = run["program"].splitlines()
                if rows not in programs:
                    programs.append(rows)
                runs[-1]["program"] = programs.index(rows)
        cases.append({**case, "measured": measured, "runs": runs})
    return {**evidence, "cases": cases, "programs": programs}


def check_complete(case):
    """Raises KeyError or ValueError unless the case has all that a prediction uses."""
    for key in ("model", "batch", "imitated", "microbatches", "message_bytes"):
        case[key]
    if len(case["measured"]["overhead"]) != case["ranks"] or not case["runs"]:
        raise ValueError("ranks or runs are missing")
    for key in ("latency", "bandwidth", "send", "receive"):
        case["measured"]["message"][key]
    for run in case["runs"]:
        run["name"], "program" in run or (run["schedule"], run["messages"])
        costs = case["measured"]["costs"][run["layout"]]
        for stage in range(torch_predict.stages_of(run["layout"], case["ranks"])):
            for kind in torch_predict.KINDS:
                _alone, _beside = costs[stage, kind]
        if not run["steps"] or min(run["steps"]) <= 0:
            raise ValueError(f"{run['name']} has no times")


def unpacked(whole):
    """The reverse."""
    programs = ["".join(row + "\n" for row in rows) for rows in whole["programs"]]
    cases = []
    for case in whole["cases"]:
        measured = scaled(case["measured"], seconds)
        for layout, table in measured["costs"].items():
            measured["costs"][layout] = {torch_predict.op_of(op): times
                                         for op, times in table.items()}
        runs = [{**run, "steps": [seconds(step) for step in run["steps"]],
                 **({"program": programs[run["program"]]} if "program" in run else {})}
                for run in case["runs"]]
        cases.append({**case, "measured": measured, "runs": runs})
        check_complete(cases[-1])
    if not cases:
        raise ValueError("it has no cases")
    evidence = {key: value for key, value in whole.items() if key not in ("programs", "errors")}
    return {**evidence, "cases": cases}


def as_kept(evidence):
    """Evidence with the digits that a file keeps."""
    return unpacked(packed(evidence))


def pretty(value, indent=0):
    """JSON with what fits on a line on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= 110 or not isinstance(value, (dict, list)):
        return flat
    inner = " " * (indent + 1)
    if isinstance(value, list):
        parts, left, right = [pretty(one, indent + 1) for one in value], "[", "]"
    else:
        parts = [f"{json.dumps(key)}: {pretty(one, indent + 1)}" for key, one in value.items()]
        left, right = "{", "}"
    return left + "\n" + ",\n".join(inner + part for part in parts) + "\n" + " " * indent + right


def write(path, evidence, judged):
    """Evidence with its errors, whole or not at all."""
    path = pathlib.Path(path)
    whole = {**packed(evidence), "errors": judged["groups"]}
    with tempfile.NamedTemporaryFile("w", dir=path.resolve().parent, prefix=path.name, suffix=".tmp",
                                     delete=False, encoding="utf-8") as file:
        try:
            file.write(pretty(whole) + "\n")
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def read(path):
    """(evidence, its kept errors or None)"""
    try:
        whole = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Failure(f"{path} is not JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise Failure(f"{path} is not evidence of PyTorch's steps: its format is not \"{FORMAT}\"")
    try:
        return unpacked(whole), whole.get("errors")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Failure(f"{path} is not complete: {error!r}") from None
