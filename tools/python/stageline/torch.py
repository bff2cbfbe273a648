"""Measures a PyTorch model into a `Model`, layer by layer.

PyTorch is imported when `measure` is called.
"""
from __future__ import annotations

import functools
import statistics
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Tuple

from stageline._api import from_arrays
from stageline._core import Model
from stageline._errors import UsageError

if TYPE_CHECKING:
    import torch

__all__ = ["measure"]

Named = List[Tuple[str, Any]]


def _layers_of(module: Any) -> Named:
    """A Sequential, a list of modules, or what torch.distributed.pipelining makes of a model."""
    import torch

    if hasattr(module, "get_stage_module"):
        layers = [(f"stage{i}", module.get_stage_module(i)) for i in range(module.num_stages)]
    elif isinstance(module, torch.nn.Sequential):
        layers = list(module.named_children())
    elif isinstance(module, (list, tuple)) and module and hasattr(module[0], "submod"):
        stages = sorted(module, key=lambda one: int(one.stage_index))
        if [one.stage_index for one in stages] != list(range(stages[0].num_stages)):
            raise UsageError("module: these are not all stages of a pipeline, from 0 to "
                             f"{stages[0].num_stages - 1}, each once")
        layers = [(f"stage{one.stage_index}", one.submod) for one in stages]
    elif isinstance(module, (list, tuple, torch.nn.ModuleList)):
        layers = [(f"layer{i}", one) for i, one in enumerate(module)]
    else:
        raise UsageError("module: a torch.nn.Sequential, a list of modules, or a Pipe or all "
                         f"PipelineStages of torch.distributed.pipelining (it is {type(module).__name__})")
    if not layers:
        raise UsageError("module: there is no layer to measure")
    return [(f"{name}.{type(one).__name__.lower()}", one) for name, one in layers]


class _Clock:
    """Seconds of a call, with all that it asks of the device."""

    def __init__(self, device: torch.device) -> None:
        import torch

        self._wait: Callable[[], Any] = (
            (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else lambda: None)

    def __call__(self, call: Callable[[], Any]) -> Tuple[float, Any]:
        self._wait()
        begin = time.perf_counter()
        result = call()
        self._wait()
        return time.perf_counter() - begin, result


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


class _Layer:
    """One layer with its samples."""

    def __init__(self, name: str, module: Any, make_optimizer: Callable[[Any], Any]) -> None:
        self.name = name
        self.module = module
        self.parameters = [one for one in module.parameters() if one.requires_grad]
        self.optimizer = make_optimizer(self.parameters) if self.parameters else None
        self.times: dict[str, list[float]] = {
            kind: [] for kind in ("forward", "input_grad", "weight_grad", "backward", "update")}
        self.output = self.stash = 0

    def run(self, given: torch.Tensor, clock: _Clock, saved: dict[int, torch.Tensor]
            ) -> torch.Tensor:
        """One F, I, W, B and U; returns what the next layer reads.

        saved: what earlier layers have saved, by address; gets what this one saves. They stay
        alive, since a freed tensor would lend its address to another.
        """
        import torch

        x = given.detach()
        if given.requires_grad:
            x.requires_grad_()
        own = {one.untyped_storage().data_ptr() for one in self.module.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own and storage.data_ptr() not in saved:
                saved[storage.data_ptr()] = tensor.detach()
                self.stash += storage.nbytes()
            return tensor

        self.stash = 0
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            taken, y = clock(lambda: self.module(x))
        if not isinstance(y, torch.Tensor):
            raise UsageError(f"{self.name} returns {type(y).__name__}; only layers from one tensor "
                             "to one tensor are measured")
        self.times["forward"].append(taken)
        self.output = _bytes([y])
        gradient = torch.randn_like(y)
        into = {"input_grad": [x] if x.requires_grad else [], "weight_grad": self.parameters}
        into["backward"] = into["input_grad"] + into["weight_grad"]
        found: Any = ()
        for kind, leaves in into.items():
            if not leaves or not y.requires_grad:
                self.times[kind].append(0.0)
                continue
            taken, found = clock(functools.partial(torch.autograd.grad, y, leaves, gradient,
                                                   retain_graph=True, allow_unused=True))
            self.times[kind].append(taken)
        self._update(found, clock)
        return y.detach().requires_grad_(y.requires_grad)

    def _update(self, gradients: Any, clock: _Clock) -> None:
        if self.optimizer is None:
            self.times["update"].append(0.0)
            return
        for parameter, gradient in zip(reversed(self.parameters), reversed(gradients)):
            parameter.grad = gradient
        self.times["update"].append(clock(self.optimizer.step)[0])
        self.optimizer.zero_grad(set_to_none=True)

    def state(self) -> int:
        """Of the optimizer, bytes."""
        import torch

        if self.optimizer is None:
            return 0
        return _bytes(value for state in self.optimizer.state.values() for value in state.values()
                      if isinstance(value, torch.Tensor) and value.numel() > 1)

    def median(self, kind: str, warm_up: int) -> float:
        return statistics.median(self.times[kind][warm_up:])


def measure(module: Any, batch: torch.Tensor, *, rounds: int = 10, warm_up: int = 3,
            optimizer: Callable[[Any], Any] | None = None, name: str = "") -> Model:
    """Measures each layer on the device of `batch`, which is one micro-batch.

    module: a torch.nn.Sequential, a list of modules that follow each other, or a Pipe or
    a list of all PipelineStages of torch.distributed.pipelining; in each, a tensor in, a tensor out. rounds: medians are over so
    many, after warm_up. optimizer: from parameters to a torch.optim.Optimizer; default: SGD with
    momentum. Weights are left as they were; running statistics of norms move.
    Times are wall seconds: F, I (none of a first layer, unless batch.requires_grad) and W by
    torch.autograd.grad, B of both at once. The stash is what autograd saves, each tensor at the
    first layer that saves it; all of it is held until W (of a layer without weights until I).
    Workspaces are not measured.
    """
    import torch

    if rounds < 1 or warm_up < 0:
        raise UsageError(f"rounds is 1 or more and warm_up 0 or more (they are {rounds}, {warm_up})")
    make = optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.0, momentum=0.9))
    layers = [_Layer(layer, one, make) for layer, one in _layers_of(module)]
    before = [one.detach().clone() for layer in layers for one in layer.parameters]
    clock = _Clock(batch.device)
    try:
        for _ in range(warm_up + rounds):
            saved: dict[int, torch.Tensor] = {}
            given = batch
            for layer in layers:
                given = layer.run(given, clock, saved)
    finally:
        with torch.no_grad():
            for parameter, value in zip((one for layer in layers for one in layer.parameters),
                                        before):
                parameter.copy_(value)

    def times(kind: str) -> list[float]:
        return [layer.median(kind, warm_up) for layer in layers]

    with_weights = [bool(layer.parameters) for layer in layers]
    stash = [layer.stash for layer in layers]
    weights = [_bytes(layer.module.parameters()) for layer in layers]
    return from_arrays(
        forward=times("forward"), input_grad=times("input_grad"),
        weight_grad=times("weight_grad"), backward=times("backward"), update=times("update"),
        weights=weights, gradients=[_bytes(layer.parameters) for layer in layers],
        optimizer_state=[layer.state() for layer in layers],
        output=[layer.output for layer in layers],
        stash=[held if heavy else 0 for held, heavy in zip(stash, with_weights)],
        stash_input_grad=[0 if heavy else held for held, heavy in zip(stash, with_weights)],
        names=[layer.name for layer in layers], name=name or type(module).__name__.lower(),
        batch=int(batch.shape[0]) if batch.dim() else 1,
        method=f"torch {torch.__version__} on {batch.device}: medians of {rounds} rounds, each layer "
               "alone")
