"""Comparison of one step with plain DDP."""

import contextlib
import ctypes
import dataclasses
import random
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
import torch.distributed as dist

from hipress import _arguments, _ddp
from hipress._engine import InvalidRequest
from hipress._library import CTensor


@dataclasses.dataclass(frozen=True)
class Row:
    """Comparison of one gradient.

    name        name in the model
    elements    number of elements
    difference  largest absolute difference from DDP's mean
    relative    norm of the differences over the norm of DDP's mean
    equal       true if all bits are those of DDP's mean
    agreed      true if all ranks have the same bits"""

    name: str
    elements: int
    difference: float
    relative: float
    equal: bool
    agreed: bool


@dataclasses.dataclass(frozen=True)
class Verification:
    """Result of verify(), with a row for every gradient; str() is a table."""

    rows: List[Row]

    @property
    def agreed(self) -> bool:
        """True if all ranks have the same bits of every gradient."""
        return all(row.agreed for row in self.rows)

    @property
    def equal(self) -> bool:
        """True if every gradient has the same bits as DDP's."""
        return all(row.equal for row in self.rows)

    def __str__(self) -> str:
        width = max([8, *(len(row.name) for row in self.rows)])
        lines = [f"{'gradient':{width}} {'elements':>10} {'largest difference':>19} {'relative':>10}  same bits as DDP  "
                 "on all ranks"]
        for row in self.rows:
            lines.append(f"{row.name:{width}} {row.elements:10} {row.difference:19.3e} {row.relative:10.2e}  "
                         f"{'yes' if row.equal else 'no':16}  {'yes' if row.agreed else 'NO'}")
        return "\n".join(lines)


def verify(ddp: torch.nn.Module, step: Optional[Callable[[], object]] = None, *, seed: int = 0) -> Verification:
    """Synchronises one step's gradients by the plan and as plain DDP does (each divided by the number of ranks, then an all-reduce
    of the process group), and compares them. Every rank calls it, between steps.

    ddp   model that attach() was called for, or the result of torch.compile for it
    step  function that computes this rank's loss and calls backward; None: gradients are random, and differ between ranks
    seed  seed of these random gradients

    Restores gradients, buffers such as the statistics of batch normalisation, the random generators of torch, Python and numpy, and the
    state of compression. Raises InvalidRequest if the model has no hook or the step computes no gradient, and RankLost if another
    rank fails."""
    model = _ddp.unwrapped(ddp, "hipress.verify")
    _arguments.whole("seed", seed, least=0, most=(1 << 32) - 1)
    hook = _ddp.hook_of(model)
    parameters = _ddp._parameters_of(model)
    gradients = hook.engine.gradients
    with _undone(model):
        local = _local_gradients(model, parameters, gradients, step, seed)
    ours = [value.clone() for value in local]
    numbers = (ctypes.c_uint32 * len(ours))(*range(len(ours)))
    tensors = (CTensor * len(ours))()
    for tensor, gradient, value in zip(tensors, gradients, ours):
        tensor.data, tensor.elements, tensor.type = value.data_ptr(), value.numel(), gradient.type
        tensor.on_device = int(value.is_cuda)
    if any(value.is_cuda for value in ours):
        torch.cuda.synchronize()
    hook.engine.submit(len(ours), numbers, tensors)
    hook.engine.wait()
    hook.engine.discard()
    rows = []
    for gradient, mine, value in zip(gradients, ours, local):
        mean = value / dist.get_world_size(model.process_group)
        dist.all_reduce(mean, group=model.process_group)
        rows.append(_compare(gradient.name, mine, mean, model.process_group))
    return Verification(rows)


@contextlib.contextmanager
def _undone(ddp: torch.nn.parallel.DistributedDataParallel) -> Iterator[None]:
    """Restores what a step within the block changes besides gradients: buffers, DDP's flag to send these in the next forward pass,
    and random generators."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in ddp.module.buffers()]
    sends = ddp.require_forward_param_sync
    numpy: Any = sys.modules.get("numpy")
    states = random.getstate(), numpy.random.get_state() if numpy else None
    devices = {parameter.device for parameter in ddp.module.parameters() if parameter.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices=sorted(device.index for device in devices)):
            yield
    finally:
        random.setstate(states[0])
        if numpy:
            numpy.random.set_state(states[1])
        ddp.require_forward_param_sync = sends
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _local_gradients(ddp: torch.nn.parallel.DistributedDataParallel, parameters: Dict[str, torch.nn.Parameter],
                     gradients: List[Any], step: Optional[Callable[[], object]], seed: int) -> List[torch.Tensor]:
    """Gradients of this rank in the engine's order, each in its own memory. Raises InvalidRequest if the step computes none."""
    if step is None:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + dist.get_rank(ddp.process_group))
        return [torch.randn(gradient.shape, generator=generator).to(parameters[gradient.name]) for gradient in gradients]
    before = {name: parameter.grad for name, parameter in parameters.items()}
    try:
        for parameter in parameters.values():
            parameter.grad = None
        with ddp.no_sync():
            step()
        missing = [name for name, parameter in parameters.items() if parameter.grad is None]
        if len(missing) == len(parameters):
            raise InvalidRequest("the step computed no gradient: it has to call backward()")
        return [(torch.zeros_like(parameters[gradient.name]) if gradient.name in missing
                 else parameters[gradient.name].grad).detach().contiguous().clone() for gradient in gradients]
    finally:
        for name, parameter in parameters.items():
            parameter.grad = before[name]


def _compare(name: str, ours: torch.Tensor, mean: torch.Tensor, group: Any) -> Row:
    others = [torch.empty_like(ours) for _ in range(dist.get_world_size(group))]
    dist.all_gather(others, ours, group=group)
    difference = (ours.double() - mean.double()).abs()
    norm = mean.double().norm().item()
    relative = difference.norm().item() / (norm if norm > 0 else 1)
    return Row(name, ours.numel(), difference.max().item(), relative, bool(torch.equal(ours, mean)),
               all(bool(torch.equal(ours, other)) for other in others))
