"""One step beside plain DDP."""

import ctypes
import dataclasses

import torch
import torch.distributed as dist

from hipress import _ddp
from hipress._engine import InvalidRequest
from hipress._library import CTensor


@dataclasses.dataclass(frozen=True)
class Row:
    """One gradient. `difference` is the largest absolute one, `relative` the norm of all differences over that of DDP's mean."""

    name: str
    elements: int
    difference: float
    relative: float
    equal: bool  #: to DDP's, bit for bit
    agreed: bool  #: all ranks have the same bits


@dataclasses.dataclass(frozen=True)
class Verification:
    """What verify() found; print it for a table."""

    rows: list

    @property
    def agreed(self) -> bool:
        """All ranks have the same bits of every gradient."""
        return all(row.agreed for row in self.rows)

    @property
    def equal(self) -> bool:
        """Every gradient has the bits of DDP's."""
        return all(row.equal for row in self.rows)

    def __str__(self) -> str:
        width = max([8, *(len(row.name) for row in self.rows)])
        lines = [f"{'gradient':{width}} {'elements':>10} {'largest difference':>19} {'relative':>10}  same bits as DDP  on all ranks"]
        for row in self.rows:
            lines.append(f"{row.name:{width}} {row.elements:10} {row.difference:19.3e} {row.relative:10.2e}  "
                         f"{'yes' if row.equal else 'no':16}  {'yes' if row.agreed else 'NO'}")
        return "\n".join(lines)


def verify(ddp, step=None, *, seed: int = 0) -> Verification:
    """Synchronises one step's gradients with the plan and as plain DDP does (each divided by the number of ranks, then an all-reduce
    of the process group), and compares them. Every rank calls it, between steps. `step()` computes this rank's loss and calls
    backward; without it gradients are drawn, others on each rank. Gradients, and what compression keeps, are as before
    afterwards."""
    hook = _ddp.hook_of(ddp)
    parameters = _ddp._parameters_of(ddp)
    gradients = hook.engine.gradients
    local = _local_gradients(ddp, parameters, gradients, step, seed)
    kept = hook.state_dict()
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
    hook.load_state_dict(kept)
    rows = []
    for gradient, mine, value in zip(gradients, ours, local):
        mean = value / dist.get_world_size(ddp.process_group)
        dist.all_reduce(mean, group=ddp.process_group)
        rows.append(_compare(gradient.name, mine, mean, ddp.process_group))
    return Verification(rows)


def _local_gradients(ddp, parameters: dict, gradients: list, step, seed: int) -> list:
    """This rank's, in the engine's order, each in memory of its own."""
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


def _compare(name: str, ours, mean, group) -> Row:
    others = [torch.empty_like(ours) for _ in range(dist.get_world_size(group))]
    dist.all_gather(others, ours, group=group)
    difference = (ours.double() - mean.double()).abs()
    norm = mean.double().norm().item()
    return Row(name, ours.numel(), difference.max().item(), difference.norm().item() / norm if norm > 0 else difference.norm().item(),
               bool(torch.equal(ours, mean)), all(bool(torch.equal(ours, other)) for other in others))
