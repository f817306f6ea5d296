"""hipress.attach: a plan for whatever a model is trained in parallel by."""

import os
from typing import Optional, Union, overload

import torch
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _ddp, _fsdp, _fsdp1
from hipress._ddp import Hook
from hipress._engine import InvalidRequest
from hipress._fsdp import ShardedHook

_Path = Union[str, "os.PathLike[str]"]


@overload
def attach(ddp: DistributedDataParallel, plan: _Path = "none", *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None) -> Hook: ...


@overload
def attach(ddp: torch.nn.Module, plan: _Path = "none", *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None) -> Union[Hook, ShardedHook]: ...


def attach(ddp: torch.nn.Module, plan: _Path = "none", *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None) -> Union[Hook, ShardedHook]:
    """Trains a model as a plan says, and returns the hook, which holds what a checkpoint needs (state_dict, load_state_dict) and
    ends with close(), or with the process. Every rank calls it, before the first step.

    ddp         the DistributedDataParallel; or the module that fully_shard() was called for, or a FullyShardedDataParallel; or what
                torch.compile made of one
    plan        a file of hipress-plan, or none, all, or an algorithm such as fp16 or powersgd(rank=4)
    algorithm   of plan entries that are compressed but name none
    seed        of random draws

    What follows is of DistributedDataParallel alone:

    topology    ring, ps, allreduce or allgather; default: the plan file's, or ring
    model       the model YAML that the plan was made of, as hipress.capture writes it. A plan with a rule for bulk groups needs its
                ready times: without them it groups gradients as if all were ready at once, which a warning says
    timeout     seconds without progress after which the job has failed: a rank that evaluates or saves meanwhile must come
                back within it; default: that of DDP's process group. A rank whose process ends is noticed at once
    rendezvous  where ranks meet: file:///shared/folder or redis://host:port; default: PyTorch's own key-value store
    network     network interface or address to use; default: loopback on one machine, else the first interface of
                GLOO_SOCKET_IFNAME, else the address from which MASTER_ADDR is reached

    A DistributedDataParallel's gradients are averaged as DDP does. In a program that composes hooks, Hook(ddp, ...) and synchronise
    are the two parts of it.

    fully_shard() modules gather parameters and reduce gradients as the plan's gather and algorithm say, each parameter group as
    one, by messages that the module's own process groups carry; what goes raw is PyTorch's. A named plan is of reductions alone.
    Of the plan's schedule, reshard=true or false (of modules below the root) and communicators are set; shard, reshard=M, prefetch
    and in_flight must be what the modules have. Tensors on a GPU are compressed in host memory; no GPU has run it. A
    FullyShardedDataParallel reduces so with FULL_SHARD and SHARD_GRAD_OP, and gathers as PyTorch does.

    InvalidRequest for what cannot be trained so, RankLost if another rank of a DistributedDataParallel fails, Error for what else
    goes wrong."""
    inner = _ddp.uncompiled(ddp)
    of_ddp = {"topology": topology, "model": model, "timeout": timeout, "silence": silence, "rendezvous": rendezvous,
              "network": network}
    for is_kind, attach_kind in ((_fsdp.is_sharded, _fsdp.attach_sharded), (_fsdp1.is_fsdp1, _fsdp1.attach_fsdp1)):
        if is_kind(inner):
            given = [name for name, value in of_ddp.items() if value is not None]
            if given:
                raise InvalidRequest(f"{given[0]} is of DistributedDataParallel, and a {type(inner).__name__} has its shards "
                                     "carried by PyTorch's own process groups: leave it out")
            _arguments.job(seed=seed, plan=str(plan), algorithm=str(algorithm))
            return attach_kind(inner, str(plan), str(algorithm), seed)
    return _ddp.attach_ddp(ddp, plan=plan, algorithm=algorithm, seed=seed, **of_ddp)
