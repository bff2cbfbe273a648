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

FORMAT = "stageline-torch-steps 1"
GROWTH = 0.0005  # of an error that is still called the same
NOTES = ["An op's two costs: alone, and while the other ranks compute.",
         "Costs are means over a round's micro-batches; predictions take medians over the rounds."]


class EvidenceError(Exception):
    """One sentence."""


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
    """What predictions take, of several rounds."""
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
    """How far the median may be off, as tools/evidence/judge.hpp has it; None of fewer than three."""
    if len(steps) < 3:
        return None
    low, _, high = statistics.quantiles(steps, n=4, method="inclusive")
    halves = abs(statistics.median(steps[::2]) - statistics.median(steps[1::2]))
    return max(halves, 3.72 / math.sqrt(len(steps)) * (high - low) / 2)


def judge(evidence, simulator):
    """The prediction of each run, and the errors of all: above 0, the simulator is too slow."""
    runs = []
    for case in evidence["cases"]:
        measured = medians(case["rounds"])
        for run in case["runs"]:
            took, noise = statistics.median(run["steps"]), noise_of(run["steps"])
            predicted = simulator.step(case, measured, run)
            runs.append({"model": case["model"], "imitated": case["imitated"], "name": run["name"],
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
    """Of each case and layout: how much longer ops take beside others, by their total time."""
    for case in evidence["cases"]:
        for layout, costs in medians(case["rounds"])["costs"].items():
            alone, beside = (sum(cost[i] for cost in costs.values()) for i in (0, 1))
            yield case["model"], layout, beside / alone - 1


def report(evidence, judged):
    """Markdown."""
    percent = lambda share: "–" if share is None else f"{100 * share:.1f} %"  # noqa: E731
    signed = lambda share: f"{100 * share:+.1f} %"  # noqa: E731
    text = f"{evidence['device']} · {evidence['software']} · {evidence['date']}\n\n"
    text += "| model | schedule | measured | noise | predicted | error |\n|---|---|--:|--:|--:|--:|\n"
    for run in judged["runs"]:
        text += (f"| {run['model']}{', imitated' if run['imitated'] else ''} | {run['name']} | "
                 f"{run['measured'] * 1e3:.1f} ms | {percent(run['noise'])} | "
                 f"{run['predicted'] * 1e3:.1f} ms | {signed(run['error'])} |\n")
    text += "\n"
    for label, group in judged["groups"].items():
        text += (f"{label}: mean error {percent(group['mean_error'])} of {group['runs']} schedules "
                 f"({percent(group['mean_error_beyond_noise'])} beyond noise, which is "
                 f"{percent(group['mean_noise'])}), bias {signed(group['bias'])}, worst "
                 f"{signed(group['worst_error'])}\n")
    for model, layout, more in interference(evidence):
        text += f"{model}, {layout}: ops take {signed(more)} beside other ranks that compute\n"
    for case in evidence["cases"]:
        taken = medians(case["rounds"])
        message = taken["message"]
        text += (f"{case['model']}: a message of {case['message_bytes']} bytes takes "
                 f"{message['send'] * 1e6:.0f} us of its sender, {message['receive'] * 1e6:.0f} us of "
                 f"its receiver, {message['latency'] * 1e6:.0f} us and "
                 f"{message['bandwidth'] / 1e6:.0f} MB/s in between; the runtime "
                 f"{statistics.fmean(taken['overhead']) * 1e6:.0f} us an op\n")
    return text


def worse(kept, judged):
    """Sentences: which errors have grown since they were kept."""
    result = []
    for label, old in kept.items():
        new = judged["groups"].get(label)
        if new is None or new["runs"] != old["runs"]:
            result.append(f"the kept errors are of {old['runs']} {label} runs, and there are others")
            continue
        for key, what in (("mean_error", "mean error"), ("worst_error", "worst error"),
                          ("bias", "bias")):
            if abs(new[key]) > abs(old[key]) + GROWTH:
                result.append(f"the {what} of {label} runs grew from {100 * abs(old[key]):.2f} % to "
                              f"{100 * abs(new[key]):.2f} %")
    return result


def micro(seconds):
    return round(seconds * 1e6, 1)


def packed(case):
    """A case as it is in the file."""
    rounds = [{"costs": {layout: {f"{stage} {kind}": [micro(one) for one in cost]
                                  for (stage, kind), cost in table.items()}
                         for layout, table in one["costs"].items()},
               "overhead": [micro(time) for time in one["overhead"]],
               "messages": [{key: value if key == "bytes" else micro(value)
                             for key, value in message.items()} for message in one["messages"]]}
              for one in case["rounds"]]
    runs = [{**run, "steps": [micro(step) for step in run["steps"]]} for run in case["runs"]]
    return {**case, "rounds": rounds, "runs": runs}


def unpacked(case):
    """The reverse."""
    def op_of(text):
        stage, kind = text.split()
        return int(stage), kind

    rounds = [{"costs": {layout: {op_of(op): tuple(one / 1e6 for one in cost)
                                  for op, cost in table.items()}
                         for layout, table in one["costs"].items()},
               "overhead": [time / 1e6 for time in one["overhead"]],
               "messages": [{key: value if key == "bytes" else value / 1e6
                             for key, value in message.items()} for message in one["messages"]]}
              for one in case["rounds"]]
    runs = [{**run, "steps": [step / 1e6 for step in run["steps"]]} for run in case["runs"]]
    return {**case, "rounds": rounds, "runs": runs}


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
    whole = {**evidence, "cases": [packed(case) for case in evidence["cases"]],
             "errors": judged["groups"]}
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
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise EvidenceError(f"{path} is not JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise EvidenceError(f"{path} is not evidence of PyTorch's steps: its format is not \"{FORMAT}\"")
    try:
        kept = whole.pop("errors", None)
        return {**whole, "cases": [unpacked(case) for case in whole["cases"]]}, kept
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvidenceError(f"{path} lacks something that replaying needs: {error}") from None
