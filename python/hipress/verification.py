"""verify(): one step with the attached hook beside plain DDP."""

import dataclasses
import typing

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress.hook import Attached, attached_to


@dataclasses.dataclass(frozen=True)
class Row:
    """A gradient's mean over ranks as the hook made it, beside plain DDP's."""

    name: str
    elements: int
    norm: float  #: of plain DDP's
    difference: float  #: norm of the difference, relative to `norm`
    same_bits: bool


class Report(typing.List[Row]):
    """The rows, in the order in which gradients became ready; prints as a table."""

    def __str__(self) -> str:
        width = max([len("gradient"), *(len(row.name) for row in self)])
        lines = [f"{'gradient':{width}} {'elements':>12} {'norm':>11} {'difference':>11}"]
        for row in self:
            difference = "none" if row.same_bits else f"{row.difference:.3g}"
            lines.append(f"{row.name:{width}} {row.elements:12} {row.norm:11.4g} {difference:>11}")
        lines.append(f"{sum(row.same_bits for row in self)} of {len(self)} gradients have the bits of plain DDP")
        return "\n".join(lines)


def verify(ddp: DistributedDataParallel, step: typing.Callable[[], object]) -> Report:
    """Calls `step`, which runs forward and backward of one step, and compares each gradient's mean with what DDP without a hook
    makes of the same gradients (all ranks' divided by their number, then added by the process group). All ranks together.
    With lossy compression differences are what it loses in this step; error feedback sends them later. The step counts: codecs
    keep its residuals. ValueError if nothing is attached, or if `step` ran no backward or several."""
    attached = attached_to(ddp)
    seen: list = []
    attached.observer = lambda bucket: seen.append(_copies(attached, bucket))
    try:
        step()
    finally:
        attached.observer = None
    copies = [copy for bucket in seen for copy in bucket]
    names = [name for name, _, _ in copies]
    if not copies or len(set(names)) < len(names):
        raise ValueError("verify() needs a step with exactly one backward that synchronises gradients")
    report = Report()
    for name, mean, plain in copies:
        dist.all_reduce(plain, group=ddp.process_group)
        expected, got = plain.double(), mean.double()
        norm = expected.norm().item()
        difference = (got - expected).norm().item()
        report.append(Row(name, plain.numel(), norm, difference / norm if norm > 0 else difference,
                          torch.equal(mean, plain)))
    return report


def _copies(attached: Attached, bucket: dist.GradBucket) -> list:
    """Per gradient: its name, where its mean will be, and what this rank adds to plain DDP's mean."""
    return [(attached.name_of(weight), gradient, gradient.detach().clone().div_(dist.get_world_size(attached.group)))
            for weight, gradient in zip(bucket.parameters(), bucket.gradients())]
