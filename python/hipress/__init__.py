"""Trains PyTorch models with gradients that are compressed as a plan says, and captures the timings from which
``hipress-plan`` makes one.

    import hipress
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    hipress.attach(ddp, plan="plan.yaml")

``hipress.capture(model)`` writes the model file for ``hipress-plan``; ``hipress.verify(ddp)`` lays one step beside plain
DDP. Needs a PyTorch of 1.13 or later with ``torch.distributed``; everything goes through the C interface of
``libhipress.so``, so that one package serves all versions.
"""

from hipress.capturing import capture
from hipress.hook import Attached, attach
from hipress.native import Engine, Gradient, HipressError, RankLost
from hipress.verification import verify

__all__ = ["Attached", "Engine", "Gradient", "HipressError", "RankLost", "attach", "capture", "verify"]
