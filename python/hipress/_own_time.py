"""Measures the overhead of DistributedDataParallel and hipress's hook: copies into and out of buckets, calls, and hand-overs to
other threads. There is one rank, so nothing is sent."""

import contextlib
import dataclasses
import gc
import statistics
from typing import Iterator, List, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _errors, _model_file
from hipress._clocks import HostClock, HostMark

_clock = HostClock()

#: Measured backward passes of each kind, and warm-up passes before them.
_MEASURED, _WARMUPS = 9, 3
#: Largest size of the parameters, in bytes. The measurement needs memory for three more copies.
_MOST_BYTES = 1 << 30


@dataclasses.dataclass(frozen=True)
class OwnTime:
    """Overhead of the hook in a step, in seconds: before the last gradient was handed over, and after that."""

    before_s: float
    after_s: float

    def lines(self) -> List[str]:
        """Lines of a model file."""
        return [f"hook: {{backward: {_model_file.microseconds(self.before_s)}, after: {_model_file.microseconds(self.after_s)}}}"]


class _Made(torch.autograd.Function):
    """Use of a parameter whose gradient takes no computation."""

    @staticmethod
    def forward(ctx, carried, parameter, gradient):
        ctx.gradient = gradient
        return carried.clone()

    @staticmethod
    def backward(ctx, carried):
        return carried, ctx.gradient.clone(), None


class _Module(torch.nn.Module):
    """Module with parameters of given sizes. The last parameter's gradient is ready first."""

    def __init__(self, like: List[torch.Tensor]):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros_like(one)) for one in like)
        self.gradients = [torch.randn(one.shape).to(one.dtype) for one in like]

    def forward(self, carried: torch.Tensor) -> torch.Tensor:
        for weight, gradient in zip(self.weights, self.gradients):
            carried = _Made.apply(carried, weight, gradient)
        return carried


class _Handed:
    """State of a hook that marks when the last bucket is handed over, and then calls hipress's."""

    def __init__(self, hook):
        self.hook, self.at = hook, _clock.mark()


def _synchronise(handed: _Handed, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    if bucket.is_last():
        handed.at = _clock.mark()
    return handed.hook.synchronise(bucket)


def _at_once(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Communication hook that does nothing."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def measure(parameters: List[torch.Tensor], bucket_bytes: int, within_ddp: bool = False) -> Optional[OwnTime]:
    """Measures the overhead for gradients of these sizes in host memory. `within_ddp` subtracts that of DistributedDataParallel, so
    that only the hook's is left. None if it cannot be measured: the process group has other ranks, which would have to take part,
    or does not move host memory; the gradients are too large; or there is no library."""
    size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    if not dist.is_available() or size > _MOST_BYTES or (dist.is_initialized() and dist.get_world_size() > 1):
        return None
    with _group_of_one(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        try:
            return _measure([parameter.detach() for parameter in parameters], bucket_bytes / (1 << 20), within_ddp)
        except (_errors.HipressError, ImportError, OSError, RuntimeError):
            return None


@contextlib.contextmanager
def _group_of_one() -> Iterator[None]:
    if dist.is_initialized():
        yield
        return
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
        # Ends the group's threads now: a forked worker whose garbage collector found the group would wait for them forever.
        gc.collect()


def _measure(parameters: List[torch.Tensor], bucket_mb: float, within_ddp: bool) -> OwnTime:
    from hipress import _ddp  # needs the library
    alone: torch.nn.Module = _Module(parameters)
    if within_ddp:
        alone = DistributedDataParallel(alone, bucket_cap_mb=bucket_mb)
        alone.register_comm_hook(None, _at_once)
    wrapped = DistributedDataParallel(_Module(parameters), bucket_cap_mb=bucket_mb)
    hook = _ddp.Hook(wrapped)
    handed = _Handed(hook)
    wrapped.register_comm_hook(handed, _synchronise)
    try:
        before, after = [], []
        for index in range(_WARMUPS + _MEASURED):
            bare = _begin(alone), _clock.mark()
            began, ended = _begin(wrapped), _clock.mark()
            if index >= _WARMUPS:
                before.append(_alone_s(began, handed.at) - _alone_s(*bare))
                after.append(_alone_s(handed.at, ended))
    finally:
        hook.close()
    # The subtracted time includes DDP's own part after the last gradient.
    before_s = statistics.median(before)
    return OwnTime(max(0.0, before_s), max(0.0, statistics.median(after) + min(0.0, before_s)))


def _alone_s(first: HostMark, second: HostMark) -> float:
    """Time between two marks, in seconds, without waits for cores. It is the smaller of wall time and core time, so waits of the
    hook's other threads are excluded, too."""
    return min(_clock.seconds(first, second), _clock.core_seconds(first, second))


def _begin(module: torch.nn.Module) -> HostMark:
    """Runs a step to the end of its backward. Returns the mark at which backward began."""
    module.zero_grad(set_to_none=True)
    output = module(torch.zeros(1, requires_grad=True)).sum()
    began = _clock.mark()
    output.backward()
    return began

