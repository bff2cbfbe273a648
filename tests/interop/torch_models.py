"""Models for PyTorch's pipelining: eight equal blocks with a first and a last layer, cut into stages.

Every stage but the last returns one tensor of the same shape, the message between stages.
`waits` has no arithmetic: its stages wait for the times they are given, for more ranks than cores.
"""
import dataclasses
import time
import typing

import torch

torch.set_num_threads(1)  # torch must have no threads when ranks are forked

BLOCKS = 8


@dataclasses.dataclass
class Model:
    """A model that can be cut: batch is the number of samples in a micro-batch."""

    name: str
    batch: int
    stage: typing.Callable  # (stage, stages) -> module
    data: typing.Callable  # samples -> (input, target)
    loss: typing.Callable  # (output, target) -> scalar
    work: typing.Callable  # computes for a millisecond or two, as its ops do


def blocks_of(stage, stages):
    """The number of blocks of a stage; the first stages have one more if they do not divide."""
    if stages > BLOCKS:
        raise ValueError(f"{BLOCKS} blocks cannot be cut into {stages} stages")
    return BLOCKS // stages + (stage < BLOCKS % stages)


class Attention(torch.nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                       torch.nn.Linear(4 * width, width))

    def forward(self, given):
        batch, tokens, width = given.shape
        q, k, v = (part.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(given)).chunk(3, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        given = given + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return given + self.mlp(self.norm2(given))


class Residual(torch.nn.Module):
    """A basic block of a residual network."""

    def __init__(self, width):
        super().__init__()
        conv = lambda: torch.nn.Conv2d(width, width, 3, padding=1, bias=False)  # noqa: E731
        self.body = torch.nn.Sequential(conv(), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                                        conv(), torch.nn.BatchNorm2d(width))

    def forward(self, given):
        return torch.relu(given + self.body(given))


class Mean(torch.nn.Module):
    """The mean over height and width."""

    def forward(self, given):
        return given.mean((2, 3))


def cut(first, block, last):
    """A stage builder from builders of the first layer, of a block and of the last layer."""

    def stage(index, stages):
        torch.manual_seed(index)
        layers = [block() for _ in range(blocks_of(index, stages))]
        return torch.nn.Sequential(*(first() if index == 0 else []), *layers,
                                   *(last() if index == stages - 1 else []))

    return stage


def arithmetic(size=256):
    """A function that multiplies matrices for a millisecond or two."""
    left, right = torch.ones(size, size), torch.ones(size, 4 * size)
    return lambda: torch.mm(left, right)


def gpt(batch, width=256, tokens=64, words=512):
    nn = torch.nn

    def data(samples):
        given = torch.randint(words, (samples, tokens))
        return given, given.roll(-1, 1)

    return Model("gpt", batch,
                 cut(lambda: [nn.Embedding(words, width)], lambda: Attention(width, width // 64),
                     lambda: [nn.LayerNorm(width), nn.Linear(width, words)]),
                 data,
                 lambda out, target: nn.functional.cross_entropy(out.flatten(0, 1), target.flatten()),
                 arithmetic())


def conv(batch, width=48, side=32, classes=10):
    nn = torch.nn
    return Model("conv", batch,
                 cut(lambda: [nn.Conv2d(3, width, 3, padding=1)], lambda: Residual(width),
                     lambda: [Mean(), nn.Linear(width, classes)]),
                 lambda samples: (torch.randn(samples, 3, side, side),
                                  torch.randint(classes, (samples,))),
                 nn.functional.cross_entropy, arithmetic())


def mlp(batch, width=64):
    """A model whose ops take microseconds, for a test of the script."""
    nn = torch.nn
    return Model("mlp", batch,
                 cut(lambda: [], lambda: nn.Sequential(nn.Linear(width, width), nn.Tanh()),
                     lambda: []),
                 lambda samples: (torch.randn(samples, width), torch.randn(samples, width)),
                 nn.functional.mse_loss, arithmetic())


def model_of(name, batch):
    """The model of that name, with its usual batch unless one is given."""
    builder, usual = {"gpt": (gpt, 4), "conv": (conv, 4), "mlp": (mlp, 8)}[name]
    return builder(batch or usual)


def median_time(work, times=5):
    """The median of its times, seconds, after one that does not count."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return sorted(taken[1:])[times // 2]


def plain_times(model, stages):
    """({F, I, W in seconds} of each stage, floats of a message), by plain autograd."""
    given, target = model.data(model.batch)
    result, message = [], 0
    for index in range(stages):
        module = model.stage(index, stages)
        last = index == stages - 1
        if index > 0:
            given = given.detach().requires_grad_(True)
        parameters = list(module.parameters())

        def forward():
            out = module(given)
            return model.loss(out, target) if last else out

        out = forward()
        slope = torch.ones_like(out)
        backward = lambda wanted: torch.autograd.grad(out, wanted, slope, retain_graph=True)  # noqa: E731
        inputs = [given] if index > 0 else []
        whole = median_time(lambda: backward(inputs + parameters))
        half = median_time(lambda: backward(inputs)) if inputs else 0.0
        result.append({"F": median_time(forward), "I": half, "W": max(0.0, whole - half)})
        if not last:
            given, message = out.detach(), out.numel()
    return result, message


class Wait(torch.autograd.Function):
    """Takes some time in each direction, and returns what it is given."""

    @staticmethod
    def forward(context, given, forward, backward):
        context.backward_time = backward
        if forward > 0:
            time.sleep(forward)
        return given.view_as(given)

    @staticmethod
    def backward(context, given):
        if context.backward_time > 0:
            time.sleep(context.backward_time)
        return given, None, None


class Waiting(torch.nn.Module):
    """A stage that waits: F in its forward, I on the way to its input, W on that to its weight."""

    def __init__(self, times, features):
        super().__init__()
        self.times = times
        self.weight = torch.nn.Parameter(torch.zeros(features))

    def forward(self, given):
        return (Wait.apply(given, self.times["F"], self.times["I"])
                + Wait.apply(self.weight, 0.0, self.times["W"]))


def waits(model, tables, message):
    """The model with its compute imitated; tables has the times of its stages by their number."""
    features = message // model.batch
    return Model(model.name, model.batch,
                 lambda index, stages: Waiting(tables[stages][index], features),
                 lambda samples: (torch.zeros(samples, features), torch.zeros(samples)),
                 lambda out, target: out.mean() + target.mean(),
                 lambda: time.sleep(0.002))
