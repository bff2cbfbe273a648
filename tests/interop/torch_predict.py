"""Predicts a measured step of PyTorch's pipelining from the costs of its stages, by `stageline simulate`.

Needs no torch. Costs are seconds. A layout is how stages lie on ranks: `straight` (one a rank),
`loop` and `v` (two a rank).
"""
import json
import pathlib
import statistics
import subprocess

KINDS = {"F": "forward_us", "I": "input_grad_us", "W": "weight_grad_us", "B": "backward_us",
         "REDUCE_GRAD": "update_us"}
PASSES = 3  # predictions, each with the overlap of the one before


class Failure(Exception):
    """One sentence for the user: bad input, or ranks that failed."""


def stages_on(layout, rank, ranks):
    """The stages of a rank, ascending."""
    if layout == "straight":
        return [rank]
    return sorted([rank, rank + ranks if layout == "loop" else 2 * ranks - 1 - rank])


def stages_of(layout, ranks):
    """The number of all stages."""
    return ranks if layout == "straight" else 2 * ranks


def home_of(layout, stage, ranks):
    """The rank of a stage."""
    if layout == "v" and stage >= ranks:
        return 2 * ranks - 1 - stage
    return stage % ranks


def microseconds(seconds):
    return round(max(0.0, seconds) * 1e6, 6)


def costs_of(costs, overlap):
    """What each op takes, by (stage, kind): `costs` has its time alone and its time beside other
    ranks that compute, `overlap` the share of the op during which another rank computes.

    This is where interference enters."""
    return {op: alone + (beside - alone) * overlap.get(op, 0.0)
            for op, (alone, beside) in costs.items()}


def with_messages(times, layout, stages, ranks, message):
    """Adds to each op the CPU time of the messages that its rank receives for it and sends after it."""
    result = dict(times)
    for stage in range(stages):
        before = stage > 0 and home_of(layout, stage - 1, ranks) != home_of(layout, stage, ranks)
        after = (stage < stages - 1
                 and home_of(layout, stage + 1, ranks) != home_of(layout, stage, ranks))
        for kind in "FBI":
            receives, sends = (before, after) if kind == "F" else (after, before)
            result[stage, kind] += receives * message["receive"] + sends * message["send"]
    return result


def trace_of(times, stages, case):
    """A trace with one layer a stage. Only the bytes of messages are measured; all others are 0."""
    layers = [{"name": f"stage{s}", "kind": "stage",
               **{key: microseconds(times[s, kind]) for kind, key in KINDS.items()},
               "weights_bytes": 0, "output_bytes": case["message_bytes"],
               "stash_input_grad_bytes": 0, "stash_weight_grad_bytes": 0} for s in range(stages)]
    return {"format": "stageline-trace 1", "name": case["model"], "batch": case["batch"],
            "provenance": {"origin": "measured",
                           "method": "Stages of PyTorch's pipelining, measured one rank at a time.",
                           "notes": ["Bytes of weights and stashes are not measured."]},
            "input_bytes": 0, "layers": layers}


def cluster_of(ranks, message, overhead):
    """A cluster with a direct link between any two ranks."""
    bandwidth = message["bandwidth"]
    return {"format": "stageline-cluster 1", "name": "ranks",
            "devices": [{"name": f"gpu{rank}", "op_overhead": f"{overhead[rank] * 1e6:.6f}us"}
                        for rank in range(ranks)],
            "links": [{"from": "gpu*", "to": "gpu*", "latency": f"{message['latency'] * 1e6:.6f}us",
                       "bandwidth": f"{bandwidth / 1e6:.3f}MB/s" if bandwidth else "unlimited"}]}


def link_of(small, large):
    """The link and the CPU time of a message from measurements of two sizes, each {bytes, time, send,
    receive} with the time from sender to receiver and the CPU time of both ends: {latency,
    bandwidth (0: unlimited), send, receive}. The link takes what the CPU times leave."""
    rest = [max(0.0, one["time"] - one["send"] - one["receive"]) for one in (small, large)]
    more = rest[1] - rest[0]
    return {"latency": min(rest), "send": large["send"], "receive": large["receive"],
            "bandwidth": (large["bytes"] - small["bytes"]) / more if more > 1e-7 else 0.0}


def overlap_in(timeline):
    """The share of each op, by (stage, kind), during which another device computes; a mean over
    micro-batches."""
    lanes = {}
    for span in timeline:
        if span["lane"] == "compute":
            lanes.setdefault(span["device"], []).append((span["start_ps"], span["end_ps"],
                                                         span["op"]))
    shares = {}
    for device, spans in lanes.items():
        others = busy_of([span[:2] for other, them in lanes.items() if other != device
                          for span in them])
        for start, end, op in spans:
            if end > start:
                shares.setdefault(op_of(op), []).append(covered(start, end, others) / (end - start))
    return {op: statistics.fmean(all_of) for op, all_of in shares.items()}


def busy_of(spans):
    """The union of spans, in order."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def covered(start, end, busy):
    """How much of a span others cover."""
    return sum(max(0, min(end, until) - max(start, since)) for since, until in busy)


def op_of(text):
    """(stage, kind) of an op of the evidence (0F, 0REDUCE_GRAD) or of the timeline (3F5, 0U0)."""
    kind = text.lstrip("0123456789")
    stage = int(text[:len(text) - len(kind)])
    kind = kind.rstrip("0123456789")
    return stage, "REDUCE_GRAD" if kind == "U" else kind


class Simulator:
    """The command `stageline`, and a folder for its input, which `call` alone does not need."""

    def __init__(self, command, folder="."):
        self.command, self.folder = str(command), pathlib.Path(folder)

    def call(self, *arguments):
        run = subprocess.run([self.command, *map(str, arguments), "--quiet"], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode != 0:
            raise Failure(run.stderr.strip().removeprefix("stageline: "))
        return run.stdout

    def files(self, times, case, message, overhead, stages):
        """Flags for these costs: trace, cluster, cut, size."""
        trace, cluster = self.folder / "trace.json", self.folder / "cluster.json"
        trace.write_text(json.dumps(trace_of(times, stages, case)), encoding="utf-8")
        cluster.write_text(json.dumps(cluster_of(case["ranks"], message, overhead)),
                           encoding="utf-8")
        return [trace, "--cluster", cluster, "--partition", "uniform"]

    def program(self, spec, case, measured, layout):
        """The CSV with messages of a schedule of ours, made for these costs."""
        stages = stages_of(layout, case["ranks"])
        times = with_messages(costs_of(measured["costs"][layout], {}), layout, stages, case["ranks"],
                              measured["message"])
        return self.call("program", *self.files(times, case, measured["message"],
                                                measured["overhead"], stages),
                         "--schedule", spec, "--devices", case["ranks"],
                         "--microbatches", case["microbatches"], "--format", "pytorch-comms")

    def step(self, case, measured, run):
        """The time of one step, seconds: `run` of the case `case`, with the costs `measured`."""
        layout = run["layout"]
        stages = stages_of(layout, case["ranks"])
        message, overlap, result = measured["message"], {}, 0.0
        if "program" in run:
            program = self.folder / "program.csv"
            program.write_text(run["program"], encoding="utf-8")
            which = ["--program", program]
        else:
            which = ["--schedule", run["schedule"], "--messages", run["messages"], "--devices",
                     case["ranks"], "--microbatches", case["microbatches"]]
        for _ in range(PASSES):
            times = with_messages(costs_of(measured["costs"][layout], overlap), layout, stages,
                                  case["ranks"], message)
            answer = json.loads(self.call(
                "simulate", *self.files(times, case, message, measured["overhead"], stages), *which,
                "--json", "-", "--timeline"))
            result = answer["makespan_ps"] / 1e12
            overlap = overlap_in(answer["timeline"])
        return result
