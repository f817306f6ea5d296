"""hipress.attach(): trains a parallel model with a plan, which is given or made by the job itself."""

import os
from typing import Optional, Union, overload

import torch
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _auto_shards, _ddp, _fsdp, _fsdp1
from hipress._ddp import Hook
from hipress._engine import InvalidRequest
from hipress._fsdp import ShardedHook
from hipress._residuals import EVERY

_Path = Union[str, "os.PathLike[str]"]
#: Value of `plan` for a job that measures itself and makes its own plan.
AUTO = "auto"
#: Arguments of DistributedDataParallel that a model of fully_shard() takes, too, if it makes its own plan.
_OF_AUTO_SHARDS = ("timeout", "silence", "network", "algorithms", "profile")


@overload
def attach(ddp: DistributedDataParallel, plan: _Path = AUTO, *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None, pilot: Optional[_Path] = None,
           log_every: int = EVERY, algorithms: Optional[str] = None, profile: Optional[_Path] = None) -> Hook: ...


@overload
def attach(ddp: torch.nn.Module, plan: _Path = AUTO, *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None, pilot: Optional[_Path] = None,
           log_every: int = EVERY, algorithms: Optional[str] = None,
           profile: Optional[_Path] = None) -> Union[Hook, ShardedHook]: ...


def attach(ddp: torch.nn.Module, plan: _Path = AUTO, *, algorithm: str = "onebit", topology: Optional[str] = None,
           model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
           rendezvous: Optional[str] = None, network: Optional[str] = None, pilot: Optional[_Path] = None,
           log_every: int = EVERY, algorithms: Optional[str] = None, profile: Optional[_Path] = None) -> Union[Hook, ShardedHook]:
    """Trains a model with a plan. Every rank calls it before the first step. Returns the hook. Its state_dict() and
    load_state_dict() serve checkpoints; close() or the end of the process ends it. The hook of a model that plans itself, and of any
    DistributedDataParallel, also has report(), which says how gradients are averaged.

    Without a plan, a DistributedDataParallel or a module of fully_shard() measures itself while it trains, and plans. It keeps a
    plan if steps are faster with it by more than their noise; otherwise PyTorch's own collectives go on (docs/pytorch-training.md).
    It plans anew after a lasting change of the step time.

    ddp         a DistributedDataParallel, a module that fully_shard() was called for, or a FullyShardedDataParallel; also what
                torch.compile returned for one of these
    plan        auto, a plan file of hipress-plan, none, all, or an algorithm such as fp16 or powersgd(rank=4). With auto, the
                shards of a FullyShardedDataParallel are sent uncompressed
    algorithm   codec of plan entries that are compressed but name none
    seed        seed of random draws

    The other arguments are for a DistributedDataParallel only, but timeout, silence, network, algorithms and profile also for a
    module of fully_shard() without a plan:

    topology    ring, ps, allreduce or allgather; default: the plan file's, else ring. With auto, the default is the planner's choice
    model       model YAML from which the plan was made, as hipress.capture writes it. A plan with a rule for bulk groups needs its
                ready times. Without them, gradients are grouped as if all were ready at once, and a warning says so
    timeout     seconds without progress after which the job fails; default: the timeout of DDP's process group. A rank that
                evaluates or saves must return to training within it. A rank whose process ends is noticed at once
    silence     seconds without a heartbeat after which a rank counts as lost; default: 300
    rendezvous  meeting point of the ranks: file:///shared/folder or redis://host:port; default: PyTorch's own key-value store
    network     network interface or address to use; default: loopback on one machine, else the first interface of
                GLOO_SOCKET_IFNAME, else the address from which MASTER_ADDR is reached
    pilot       file of a pilot. With auto, plans use its algorithms. With any other plan but none, the file must have a run of that
                plan, and rank 0 warns of gradients whose residuals leave the run's range
    algorithms  with auto: algorithms that plans may use, as in hipress.plan(); default: the pilot's, else int8block,fp16, which do
                not slow learning
    profile     with auto: file of hipress-profile with the costs of kernels; default: measured once on each machine, and kept in
                the cache folder
    log_every   steps between two lines in which rank 0 logs the ratios of residuals to gradients (statistics()), at level INFO of
                the logger hipress; 0: no lines and no warnings

    The hook of a DistributedDataParallel returns the mean over ranks, as DDP itself does. A program that composes hooks uses
    Hook(ddp, ...) and synchronise() instead of attach().

    Modules of fully_shard() gather parameters and reduce gradients by the plan's gather and algorithm. Each parameter group is sent
    as a whole, in messages of the module's own process groups. PyTorch itself sends uncompressed groups. A plan that is an
    algorithm's name compresses reductions only. Two settings of the plan's schedule are applied: reshard=true or false (for modules
    below the root) and communicators. The others (shard, reshard=M, prefetch, in_flight) must equal the modules' own settings.
    Tensors on a GPU are compressed in host memory; this has not been run on a GPU. A FullyShardedDataParallel with FULL_SHARD or
    SHARD_GRAD_OP reduces by the plan, and gathers as PyTorch does.

    Raises InvalidRequest for a model, plan or argument that cannot be used, RankLost if another rank of a DistributedDataParallel
    fails, and Error for other failures."""
    inner = _ddp.uncompiled(ddp)
    of_ddp = {"topology": topology, "model": model, "timeout": timeout, "silence": silence, "rendezvous": rendezvous,
              "network": network, "pilot": pilot, "algorithms": algorithms, "profile": profile,
              "log_every": None if log_every == EVERY else log_every}
    for is_kind, attach_kind in ((_fsdp.is_sharded, _fsdp.attach_sharded), (_fsdp1.is_fsdp1, _fsdp1.attach_fsdp1)):
        if is_kind(inner):
            given = {name: value for name, value in of_ddp.items() if value is not None}
            if plan == AUTO and is_kind is _fsdp.is_sharded and given.keys() <= set(_OF_AUTO_SHARDS):
                return _auto_shards.AutoShards(inner, seed=seed, **given)
            if given:
                raise InvalidRequest(f"{next(iter(given))} is of DistributedDataParallel, and a {type(inner).__name__} has its shards "
                                     "carried by PyTorch's own process groups: leave it out")
            _arguments.job(seed=seed, plan=str(plan), algorithm=str(algorithm))
            return attach_kind(inner, "none" if plan == AUTO else str(plan), str(algorithm), seed)
    for name in ("model",) if str(plan) == AUTO else ("algorithms", "profile"):
        if of_ddp.pop(name) is not None:
            kind, remedy = ("a plan that is given", "give the plan") if name == "model" else ("plan='auto'", "leave the plan out")
            raise InvalidRequest(f"{name} is of {kind}: leave it out, or {remedy}")
    return _ddp.attach_ddp(ddp, plan=str(plan), algorithm=algorithm, seed=seed, **{**of_ddp, "log_every": log_every})
