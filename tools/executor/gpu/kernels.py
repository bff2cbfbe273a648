#!/usr/bin/env python3
"""Times the kernels of a transformer's training step on one GPU and writes them as one table.

  python3 kernels.py --out FILE.json [--seconds 150] [--on cuda|cpu] [--small]

Needs PyTorch 2.6 or later and nothing else. It keeps to --seconds, PyTorch's start included: rows come in the order
of their worth, one that would not end in time is left out, and FILE is written whole after each. SIGTERM and SIGINT
end it with exit code 143 or 130 and leave what is measured. A process of its own measures the rows; it is begun anew
after a row that stops it, hangs, or leaves CUDA unusable, and which is then among the failed.

FILE: {"format": "stageline-kernels 1", "device", "kind" (h100, …; "" where the name is unknown; cpu), "sms",
"memory_bytes", "driver", "torch", "cuda", "date", "on", "small", "seconds", "rows": […], "left_out": [ids],
"failed": [{"id", "why"}]}. A row has id, what, precision, its extents, and
  us, low_us, high_us  median, 16th and 84th percentile of `samples` samples, in microseconds
  issue_us             median time that the CPU takes to issue the call (on cuda)
  flops                of the useful products: 2mnk of a product; of causal attention those of the pairs below the
                       diagonal only, forward 2·2·b·h·(s·s/2)·d and backward 2.5 times that
  bytes                that the work must at least read and write, or move over the link
what:
  product      m x k by k x n into bf16. fp8 is e4m3 with a scale a tensor and fp32 accumulation, without fast_accum
               unless the row says so; cast: amax, scale and cast of both bf16 operands, eager, are part of it
  grouped      products of `experts` experts with `rows` rows each. pass: forward, data (gradient of the input) or
               weight; accumulate: the bf16 gradient of the weights is then added to an fp32 buffer
  attention    scaled_dot_product_attention, causal; how: the kernel that is forced
  elementwise  op on tensors of size_bytes; optimizer: a step of AdamW in fp32, 28 bytes a parameter
  launch       side: the CPU's time to issue, or the device's; per: a kernel, or a launch of a graph of `kernels`
  block_issue  the CPU's time to issue a pass of a small pre-norm transformer block
  copy         size_bytes between host and device; direction both: that much each way at once
On cuda a sample is the device's time between two events around one call, after 256 MB are written to empty the L2
cache. The device first waits as long as the CPU takes to issue the call, so that the CPU is not what is timed.
Samples are short bursts: under lasting load a chip can clock lower. On the cpu a sample is the time of the call.
"""
import argparse
import datetime
import itertools
import json
import math
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time
import types
import warnings

START = time.monotonic()
STATE = struct.Struct("qd")  # shared by the two processes: the row in progress, and when it must have ended
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
KINDS = "gb300 gb200 gh200 b300 b200 h800 h200 h100 h20 a800 a100 a40 a30 a10 l40s l40 l4 v100 t4".split()
BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
# Cautious rates, to estimate the first row of a sort: FLOP/s, bytes/s of memory, of random numbers and of the link to
# the host (locking memory included), and the seconds that a first row takes longer.
RATES = {"cuda": {"bf16": 3e14, "fp8": 4e14, "memory": 1.2e12, "fill": 1e11, "link": 6e9, "first": 0.8},
         "cpu": {"bf16": 1e10, "fp8": 1e9, "memory": 2e9, "fill": 2e8, "link": 1e9, "first": 0.1}}
RESTART, LATE, STUCK = 75, -1000, -1001  # outcomes of the measuring process beside its exit code or -signal


# Rows: what there is to measure, in plain numbers.

def row(prepare, tier, memory, what, precision, flops=0, moved=0, needs_cuda=False, **extents):
    words = [key if value is True else value if isinstance(value, str) else f"{key}={value}"
             for key, value in extents.items()]
    work = {key: value for key, value in (("flops", flops), ("bytes", moved)) if value}
    spec = {"id": " ".join([what, precision, *words]), "what": what, "precision": precision, **extents, **work}
    return {"spec": spec, "prepare": prepare, "tier": tier, "memory": memory, "needs_cuda": needs_cuda}


def product_rows(small):
    first = [(4096, 4096, 4096), (128, 4096, 4096), (16384, 28672, 8192), (1024, 4096, 4096), (16384, 4096, 4096),
             (4096, 14336, 4096), (4096, 4096, 14336), (512, 28672, 8192), (2048, 1024, 4096), (4096, 768, 768),
             (16384, 3072, 768), (8192, 2048, 2048), (256, 8192, 8192), (8192, 8192, 8192), (512, 768, 3072)]
    layers = [(4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (28672, 8192), (8192, 28672), (1024, 4096),
              (768, 768), (3072, 768), (768, 3072), (2048, 2048)]
    odd = [(50257, 768), (4096, 4095), (4095, 4096), (4080, 4080), (6400, 1600), (1000, 4096)]
    all_m, few_m = [2 ** power for power in range(7, 15)], [4096, 1024, 16384]
    if small:
        first, layers, all_m, odd, few_m = [(64, 128, 128), (128, 256, 64)], [(128, 64)], [32], [(127, 64)], [64]
    rest = [(m, n, k) for n, k in layers for m in all_m if (m, n, k) not in first]
    aligned = [(n, k) for n, k in odd if n % 16 == k % 16 == 0]
    for tier, precision, sizes, more in (
            (0, "bf16", first, {}), (0, "fp8", first, {}), (1, "fp8", first, {"cast": True}),
            (1, "bf16", [(m, n, k) for n, k in odd for m in few_m], {}),
            (1, "fp8", [(m, n, k) for n, k in aligned for m in few_m], {}),
            (1, "bf16", rest, {}), (1, "fp8", rest, {}), (2, "fp8", first, {"fast_accum": True})):
        for m, n, k in sizes:
            operands, size = m * k + n * k, 1 if precision == "fp8" else 2
            moved = size * operands + 2 * m * n + (5 * operands if more.get("cast") else 0)
            yield row(prepare_product, tier, 4 * operands + 2 * m * n, "product", precision, 2 * m * n * k, moved,
                      m=m, n=n, k=k, **more)


def grouped_rows(small):
    layers, groups = [(2048, 7168), (14336, 4096), (7168, 2048), (1536, 2048)], [8, 64]
    each = [128, 512, 2048, 64, 256, 1024, 4096]  # rows an expert
    if small:
        layers, groups, each = [(64, 128)], [4], [32, 16]
    for how, experts, (n, k), rows in itertools.product(("grouped_mm", "loop"), groups, layers, each):
        spread = (n, k) in layers[:2] and rows in each[:3]
        if how == "loop" and not spread and (experts != groups[0] or rows not in each[:3]):
            continue
        tier = (1 if how == "loop" else 0) + (0 if spread and experts == groups[0] else 1)
        weights, tokens = experts * n * k, experts * rows
        moved = 2 * (tokens * (n + k) + weights)
        for kind, accumulate in (("forward", {}), ("data", {}), ("weight", {}), ("weight", {"accumulate": True})):
            yield row(prepare_grouped, tier, moved + 6 * weights, "grouped", "bf16", 2 * tokens * n * k,
                      moved + (10 * weights if accumulate else 0),
                      **{"how": how, "pass": kind, **accumulate, "experts": experts, "rows": rows, "n": n, "k": k})


def attention_rows(small):
    lengths, tokens, shapes = [2048, 8192, 512, 1024, 4096, 16384], 16384, [(16, 128), (32, 128), (16, 64), (32, 64)]
    if small:
        lengths, tokens, shapes = [128, 64], 128, [(2, 32)]
    for how, (heads, width), length in itertools.product(BACKENDS, shapes, lengths):
        batch, first = max(1, tokens // length), (heads, width) == shapes[0]
        if how == "math" and (not first or length > 2048):
            continue
        tier = 2 if how in ("efficient", "math") else 0 if first and length in lengths[:3] else 1
        flops, tensor = 2 * batch * heads * length * length * width, 2 * batch * heads * length * width
        memory = 9 * tensor + (10 * batch * heads * length * length if how == "math" else 0)
        for kind, share, tensors in (("forward", 1, 4), ("backward", 2.5, 8)):
            yield row(prepare_attention, tier, memory, "attention", "bf16", int(share * flops), tensors * tensor,
                      **{"how": how, "pass": kind, "sequence": length, "batch": batch, "heads": heads, "width": width})


def memory_rows(small):
    sizes = [1 << 20] if small else [mega << 20 for mega in (64, 1024, 16, 256, 2048)]
    for size, (op, passes) in itertools.product(sizes, (("copy", 2), ("add", 3), ("gelu", 2), ("layer_norm", 2))):
        yield row(prepare_elementwise, 0 if size in sizes[:2] else 1, passes * size, "elementwise", "bf16", 0,
                  passes * size, op=op, size_bytes=size)
    count = 20_000 if small else 100_000_000
    for how, tensors in itertools.product(("fused", "foreach"), (10, 40 if small else 400)):
        yield row(prepare_optimizer, 0, 24 * count, "optimizer", "fp32", 0, 28 * count, how=how, tensors=tensors,
                  parameters=count, bytes_a_parameter=28)


def launch_rows(small):
    for how, side, per, kernels in (("eager", "cpu", "kernel", 2000), ("eager", "device", "kernel", 800),
                                    ("graph", "cpu", "kernel", 1000), ("graph", "device", "kernel", 1000),
                                    ("graph", "cpu", "launch", 100), ("graph", "device", "launch", 100)):
        yield row(prepare_launch, 0, 0, "launch", "fp32", needs_cuda=(how, side) != ("eager", "cpu"), how=how,
                  side=side, per=per, kernels=kernels)
    hidden, heads, tokens = (64, 2, 16) if small else (1024, 16, 64)
    for how, kind in itertools.product(("eager", "graph"), ("forward", "backward")):
        yield row(prepare_block, 0, 480 * hidden * hidden, "block_issue", "bf16", needs_cuda=how == "graph",
                  **{"how": how, "pass": kind, "hidden": hidden, "heads": heads, "tokens": tokens})


def copy_rows(small):
    sizes = [64 << 10, 1 << 20] if small else [64 << 10, 16 << 20, 1 << 30, 1 << 20, 256 << 20]
    ways = (("host_to_device", "pinned", 1), ("device_to_host", "pinned", 1), ("both", "pinned", 2),
            ("device_to_device", "device", 2), ("host_to_device", "pageable", 1), ("device_to_host", "pageable", 1))
    for (direction, how, passes), size in itertools.product(ways, sizes):
        yield row(prepare_copy, 0 if how == "pinned" and size in sizes[:3] else 1, 2 * passes * size, "copy", "uint8",
                  0, passes * size, needs_cuda=True, direction=direction, how=how, size_bytes=size)


def all_rows(small):
    makers = (product_rows, grouped_rows, attention_rows, memory_rows, launch_rows, copy_rows)
    return sorted((one for maker in makers for one in maker(small)), key=lambda one: one["tier"])


# What a row does: each returns {"call": what is timed} and, where it needs them, before, count, mode and flush.

def normal(env, *shape, grad=False):
    return env.torch.empty(*shape, dtype=env.torch.bfloat16, device=env.on).normal_().requires_grad_(grad)


def prepare_product(env, spec):
    t, left, weight = env.torch, normal(env, spec["m"], spec["k"]), normal(env, spec["n"], spec["k"])
    if spec["precision"] == "bf16":
        out = t.empty(spec["m"], spec["n"], dtype=t.bfloat16, device=env.on)
        return {"call": lambda: t.mm(left, weight.t(), out=out)}

    def quantized(tensor):
        scale = 448 / t.linalg.vector_norm(tensor, math.inf).float()
        return (tensor * scale).to(t.float8_e4m3fn), scale.reciprocal()

    def multiply(one, other):
        return t._scaled_mm(one[0], other[0].t(), scale_a=one[1], scale_b=other[1], out_dtype=t.bfloat16,
                            use_fast_accum=spec.get("fast_accum", False))
    if spec.get("cast"):
        return {"call": lambda: multiply(quantized(left), quantized(weight))}
    left, weight = quantized(left), quantized(weight)
    return {"call": lambda: multiply(left, weight)}


def prepare_grouped(env, spec):
    t, experts, rows, n, k = env.torch, spec["experts"], spec["rows"], spec["n"], spec["k"]
    main = t.zeros(experts, n, k, device=env.on) if spec.get("accumulate") else None
    if spec["pass"] == "forward":
        left, right = normal(env, experts, rows, k), normal(env, experts, n, k).transpose(1, 2)
    elif spec["pass"] == "data":
        left, right = normal(env, experts, rows, n), normal(env, experts, n, k)
    else:
        left, right = normal(env, experts, rows, n).transpose(1, 2), normal(env, experts, rows, k)
    if spec["how"] == "grouped_mm":
        ends = rows * t.arange(1, experts + 1, dtype=t.int32, device=env.on)
        if spec["pass"] == "weight":
            left, right = left.transpose(1, 2).flatten(0, 1).t(), right.flatten(0, 1)
        else:
            left = left.flatten(0, 1)
        if main is not None:
            return {"call": lambda: main.add_(t._grouped_mm(left, right, offs=ends))}
        return {"call": lambda: t._grouped_mm(left, right, offs=ends)}
    out = t.empty(experts, left.shape[1], right.shape[2], dtype=t.bfloat16, device=env.on)

    def loop():
        for one in range(experts):
            t.mm(left[one], right[one], out=out[one])
            if main is not None:
                main[one].add_(out[one])
    return {"call": loop}


def prepare_attention(env, spec):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    t, backend = env.torch, getattr(SDPBackend, BACKENDS[spec["how"]])
    shape = spec["batch"], spec["sequence"], spec["heads"], spec["width"]
    inputs = [normal(env, *shape, grad=True).transpose(1, 2) for _ in range(3)]

    def forward():
        with sdpa_kernel(backend):
            return t.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
    if spec["pass"] == "forward":
        return {"call": forward}
    out, gradient = forward(), normal(env, *shape).transpose(1, 2)
    return {"call": lambda: t.autograd.grad(out, inputs, gradient, retain_graph=True)}


def prepare_elementwise(env, spec):
    t, width = env.torch, 4096
    one = normal(env, spec["size_bytes"] // 2 // width, width)
    other, out = (normal(env, *one.shape), t.empty_like(one)) if spec["op"] in ("copy", "add") else (None, None)
    return {"call": {"copy": lambda: out.copy_(one), "add": lambda: t.add(one, other, out=out),
                     "gelu": lambda: t.nn.functional.gelu(one),
                     "layer_norm": lambda: t.nn.functional.layer_norm(one, (width,), one[0], one[1])}[spec["op"]]}


def prepare_optimizer(env, spec):
    t = env.torch
    parameters = [t.randn(spec["parameters"] // spec["tensors"], device=env.on) for _ in range(spec["tensors"])]
    for one in parameters:
        one.grad = t.randn_like(one)
    return {"call": t.optim.AdamW(parameters, lr=1e-4, **{spec["how"]: True}).step}


def prepare_launch(env, spec):
    t, tiny = env.torch, env.torch.zeros(32, device=env.on)

    def kernels_in_a_row():
        for _ in range(spec["kernels"]):
            tiny.add_(1)
    call = kernels_in_a_row
    if spec["how"] == "graph":
        kernels_in_a_row()
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            kernels_in_a_row()
        call = graph.replay
    return {"call": call, "mode": "issue" if spec["side"] == "cpu" else "device", "flush": False,
            "count": spec["kernels"] if spec["per"] == "kernel" else 1}


def transformer_block(torch, hidden, heads):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            split = self.qkv(self.norm1(x)).view(*x.shape[:2], 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*split.unbind(), is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
    return Block()


def prepare_block(env, spec):
    t, outputs = env.torch, []
    block = transformer_block(t, spec["hidden"], spec["heads"]).to(env.on, t.bfloat16)
    x = normal(env, 1, spec["tokens"], spec["hidden"], grad=True)
    gradient, leaves = normal(env, *x.shape), [x, *block.parameters()]
    if spec["how"] == "graph":
        block = t.cuda.make_graphed_callables(block, (x,))

    def forward_first():
        for tensor in leaves:
            tensor.grad = None
        outputs[:] = [block(x)]
    if spec["pass"] == "forward":
        return {"call": lambda: block(x), "mode": "issue"}
    return {"call": lambda: outputs[0].backward(gradient), "before": forward_first, "mode": "issue"}


def prepare_copy(env, spec):
    t, size, direction, pinned = env.torch, spec["size_bytes"], spec["direction"], spec["how"] == "pinned"
    device = [t.zeros(size, dtype=t.uint8, device="cuda") for _ in range(2)]
    if direction == "device_to_device":
        return {"call": lambda: device[0].copy_(device[1])}
    host = [t.empty(size, dtype=t.uint8, pin_memory=pinned).fill_(1) for _ in range(2 if direction == "both" else 1)]
    if direction != "both":
        target, source = (device[0], host[0]) if direction == "host_to_device" else (host[0], device[0])
        return {"call": lambda: target.copy_(source, non_blocking=pinned)}
    ways = [(t.cuda.Stream(), device[0], host[0]), (t.cuda.Stream(), host[1], device[1])]

    def both():
        current = t.cuda.current_stream()
        for stream, target, source in ways:
            stream.wait_stream(current)
            with t.cuda.stream(stream):
                target.copy_(source, non_blocking=True)
        for stream, _, _ in ways:
            current.wait_stream(stream)
    return {"call": both}


# Timing.

def once(env, work, wait=None):
    """(seconds to issue the call, seconds of it): until it has ended, or by events after the device waited a while."""
    if "before" in work:
        work["before"]()
    env.synchronize()
    if wait is not None:
        start, end = (env.torch.cuda.Event(enable_timing=True) for _ in range(2))
        env.torch.cuda._sleep(int(wait * 2e9))  # cycles
        if work.get("flush", True):
            env.scratch.zero_()
        start.record()
    begin = time.perf_counter()
    work["call"]()
    issued = time.perf_counter() - begin
    if wait is not None:
        end.record()
    env.synchronize()
    return issued, start.elapsed_time(end) / 1e3 if wait is not None else time.perf_counter() - begin


def time_row(env, work):
    """The fields of the times; a TimeoutError once they would not end in time."""
    by_events, count = env.on == "cuda" and work.get("mode") != "issue", work.get("count", 1)
    once(env, work)
    begin = time.perf_counter()
    issued, _ = once(env, work)
    wait = min(10e-3, 1.3 * issued + 20e-6) if by_events else None
    each = time.perf_counter() - begin + ((wait + 3e-4) if by_events else 0)
    samples, pairs = max(5, min(30, int(env.budget / each))), []
    while len(pairs) < samples:
        if time.monotonic() + (samples - len(pairs)) * each > env.end:
            raise TimeoutError
        pairs.append(once(env, work, wait))

    def percentile(which, share):
        ordered = sorted(pair[which] for pair in pairs)
        low, part = divmod(share * (samples - 1), 1)
        rise = part * (ordered[min(int(low) + 1, samples - 1)] - ordered[int(low)])
        return round(1e6 / count * (ordered[int(low)] + rise), 3)
    which = 0 if work.get("mode") == "issue" else 1
    return {"us": percentile(which, 0.5), "low_us": percentile(which, 0.16), "high_us": percentile(which, 0.84),
            **({"issue_us": percentile(0, 0.5)} if by_events else {}), "samples": samples}


def sort_of(spec):
    return tuple(str(spec.get(key)) for key in ("what", "precision", "how", "pass", "op", "direction", "cast"))


def estimate(one, on, budget, seen):
    """(seconds by the rates alone, seconds by what rows of its sort took)."""
    spec, rates = one["spec"], RATES[on]
    link = "host" in spec.get("direction", "") or spec.get("direction") == "both"
    call = (5e-4 + 1e-5 * spec.get("kernels", 3) + spec.get("flops", 0) / rates.get(spec["precision"], 1e12)
            + spec.get("bytes", 0) / rates["link" if link else "memory"])
    plain = 5e-3 + one["memory"] / rates["link" if link else "fill"] + call * (2 + max(5, min(30, budget / call)))
    factor = seen.get(sort_of(spec))
    return plain, plain * factor if factor else 1.5 * plain + rates["first"]


# The process that measures.

def driver_version():
    ask = "cat /proc/driver/nvidia/version || nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    try:
        said = subprocess.run(ask, shell=True, timeout=3, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return ""
    found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", said.stdout)
    return found[0] if found else ""


def open_device(options, table):
    """Imports PyTorch, fills in the head of the table and warms the device up."""
    try:
        import torch
    except ImportError as error:
        refuse(f"PyTorch does not load here: {first_line(error)}")
    on = options.on or ("cuda" if torch.cuda.is_available() else "cpu")
    if on == "cuda" and not torch.cuda.is_available():
        refuse("--on cuda needs a GPU that PyTorch can use, and it finds none here")
    env = types.SimpleNamespace(torch=torch, on=on, budget=0.05 if options.small else 0.3, synchronize=lambda: None,
                                end=START + options.seconds - (0.4 if on == "cuda" else 0.1))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    table.update(device="CPU", kind="cpu", memory_bytes=memory, torch=torch.__version__.split("+")[0],
                 cuda=torch.version.cuda or "", on=on)
    if on == "cpu":
        if options.small:
            torch.set_num_threads(1)  # several would mostly wait for one another on tiny extents
        return env
    chip = torch.cuda.get_device_properties(0)
    words = re.split(r"[^a-z0-9]+", chip.name.lower())
    table.update(device=chip.name, kind=next((kind for kind in KINDS if kind in words), ""), driver=driver_version(),
                 sms=chip.multi_processor_count, memory_bytes=chip.total_memory)
    env.synchronize, env.scratch = torch.cuda.synchronize, torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    square, begin = normal(env, 4096, 4096), time.monotonic()
    while time.monotonic() < min(begin + 0.3, env.end):  # until the clocks are up
        torch.mm(square, square)
        torch.cuda.synchronize()
    return env


def measure_row(env, one, table):
    """Adds the row to the measured or the failed, or to neither for want of time; True where CUDA is lost."""
    spec = one["spec"]
    try:
        if one["needs_cuda"] and env.on != "cuda":
            raise RuntimeError("no CUDA here")
        if one["memory"] > 0.9 * table["memory_bytes"]:
            raise MemoryError(f"needs some {one['memory'] / 1e9:.0f} GB of memory")
        table["rows"].append({**spec, **time_row(env, one["prepare"](env, spec))})
        return False
    except TimeoutError:
        return False
    except Exception as error:  # of whatever sort: the others go on
        table["failed"].append({"id": spec["id"], "why": first_line(error)})
    try:
        env.synchronize()
        if env.on == "cuda":
            env.torch.cuda.empty_cache()
        return False
    except Exception:
        return True


def measure(options, rows, first, state, table):
    """Measures the rows from `first` on; returns the exit code."""
    warnings.simplefilter("ignore")
    parent, seen, env = os.getppid(), {}, open_device(options, table)
    write_table(options.out, table, rows)
    for index in range(first, len(rows)):
        sort, begin = sort_of(rows[index]["spec"]), time.monotonic()
        plain, expected = estimate(rows[index], env.on, env.budget, seen)
        if begin + expected > env.end or os.getppid() != parent:
            continue
        STATE.pack_into(state, 0, index, begin + max(20, 4 * expected))
        lost = measure_row(env, rows[index], table)
        seen[sort] = max(0.1, 1.1 * (time.monotonic() - begin) / plain, 0.7 * seen.get(sort, 0))
        write_table(options.out, table, rows)
        if lost:
            return RESTART
    return 0


# The process that watches over it.

def first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def refuse(why):
    print(f"kernels.py: {why}", file=sys.stderr, flush=True)
    raise SystemExit(2)


def write_table(path, table, rows):
    done = {one["id"] for one in table["rows"] + table["failed"]}
    table["left_out"] = [one["spec"]["id"] for one in rows if one["spec"]["id"] not in done]

    def text(value):
        if not isinstance(value, list) or not value:
            return json.dumps(value, ensure_ascii=False)
        return "[\n  " + ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in value) + "\n ]"
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write("{\n " + ",\n ".join(f'"{key}": {text(value)}' for key, value in table.items()) + "\n}\n")
    os.replace(path + ".part", path)


def wait_for(child, state, end):
    """Its exit code or -signal, LATE or STUCK, or 128 + a signal that came here; it has ended then."""
    while True:
        came, (done, status) = signal.sigtimedwait(SIGNALS, 0.1), os.waitpid(child, os.WNOHANG)
        asked = 128 + came.si_signo if came and came.si_signo != signal.SIGCHLD else 0
        if done:
            return asked or os.waitstatus_to_exitcode(status)
        now, limit = time.monotonic(), STATE.unpack_from(state)[1]
        outcome = asked or (LATE if now > end else STUCK if now > limit else 0)
        if outcome:
            os.kill(child, signal.SIGKILL)
            while time.monotonic() < now + 0.4 and not os.waitpid(child, os.WNOHANG)[0]:
                time.sleep(0.01)
            return outcome


def watch(options, rows, table):
    """Starts the measuring process, again after a row that ended it; returns the exit code."""
    state, end, first, started = mmap.mmap(-1, STATE.size), START + options.seconds + 0.3, 0, False
    while first < len(rows):
        STATE.pack_into(state, 0, -1, end)
        child = os.fork()
        if not child:
            code = 1
            try:
                code = measure(options, rows, first, state, table)
            except SystemExit as asked:
                code = asked.code
            except BaseException as error:
                print(f"kernels.py: {type(error).__name__}: {first_line(error)}", file=sys.stderr, flush=True)
            os._exit(code)
        outcome, index = wait_for(child, state, end), STATE.unpack_from(state)[0]
        started = started or index >= 0
        if outcome == 2:
            return 2
        if outcome in (0, LATE, 130, 143) or index < 0:
            break
        with open(options.out, encoding="utf-8") as file:
            table, first = json.load(file), index + 1
        if outcome != RESTART:
            why = "did not end, and was stopped" if outcome == STUCK else f"ended the process with {outcome}"
            table["failed"].append({"id": rows[index]["spec"]["id"], "why": why})
            write_table(options.out, table, rows)
    if os.path.exists(options.out + ".part"):
        os.remove(options.out + ".part")
    if not started:
        write_table(options.out, table, rows)
    with open(options.out, encoding="utf-8") as file:
        left = json.load(file)["left_out"]
    if left:
        more = f"; and {len(left) - 12} more, see left_out in {options.out}" if len(left) > 12 else ""
        print(f"kernels.py: left out {len(left)} of {len(rows)} rows: {'; '.join(left[:12])}{more}", file=sys.stderr)
    if index < 0 and outcome not in (0, LATE, 130, 143):
        print(f"kernels.py: PyTorch did not start: its process ended with {outcome}", file=sys.stderr)
        return 1
    return outcome if outcome in (130, 143) else 0


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = refuse
    parser.add_argument("--out", required=True, metavar="FILE.json", help="the table, replaced after each row")
    parser.add_argument("--seconds", type=float, default=150, help="that it may take in all (150)")
    parser.add_argument("--on", choices=("cuda", "cpu"), help="cuda where there is one, else cpu")
    parser.add_argument("--small", action="store_true", help="a few tiny rows of each sort, to try the program")
    options = parser.parse_args()
    folder = os.path.dirname(os.path.abspath(options.out))
    if not 0 < options.seconds < 1e6:
        refuse(f"--seconds must be a number of seconds above 0 and below 1,000,000, not {options.seconds:g}")
    if os.path.isdir(options.out) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        refuse(f"--out {options.out} is no file that can be written: its folder must exist and be writable")
    return options


def main():
    options = read_arguments()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # watch() waits for them; the measuring process ignores them
    table = {"format": "stageline-kernels 1", "device": "", "kind": "", "sms": 0, "memory_bytes": 0, "driver": "",
             "torch": "", "cuda": "", "date": datetime.date.today().isoformat(), "on": options.on or "",
             "small": options.small, "seconds": options.seconds, "rows": [], "left_out": [], "failed": []}
    return watch(options, all_rows(options.small), table)


if __name__ == "__main__":
    sys.exit(main())
