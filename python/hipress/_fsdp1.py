"""FSDP1 (FullyShardedDataParallel): its communication hook reduces gradients by a plan. Gathers are PyTorch's own."""

import math
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from hipress._ddp import is_of
from hipress._engine import InvalidRequest
from hipress._fsdp import Plan, ShardedHook, plain_name
from hipress._library import Gradient
from hipress._shards import Reduction, Unit

#: Plans' names for BackwardPrefetch.
_PREFETCHES = {"BACKWARD_PRE": "pre", "BACKWARD_POST": "post", "None": "none"}
_INSTEAD = "shard the model by fully_shard(), which gathers and reduces as a plan says"


def is_fsdp1(model: Any) -> bool:
    """True if a module is a FullyShardedDataParallel."""
    return is_of(model, "FullyShardedDataParallel")


def _wrapped(model: Any) -> Iterator[Tuple[str, Any]]:
    """Yields name and module of each FullyShardedDataParallel with parameters of its own."""
    for name, module in model.named_modules():
        if is_fsdp1(module) and getattr(module, "_handle", None) is not None:
            yield plain_name(name), module


def _parameters_of(name: str, module: Any) -> List[Tuple[str, Tuple[int, ...]]]:
    flat = module._handle.flat_param
    return [(plain_name(f"{name}.{one}" if name else one), tuple(shape)) for one, shape in zip(flat._fqns, flat._shapes)]


class _Plain:
    """Reduction that FSDP1 does without a hook."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, **_unused: Any) -> None:
        before, after = self._module._gradient_predivide_factor, self._module._gradient_postdivide_factor
        if before > 1:
            input_tensor.div_(before)
        dist.reduce_scatter_tensor(output_tensor, input_tensor, group=self._module.process_group)
        if after > 1:
            output_tensor.div_(after)


def _reduce(state: Tuple[Reduction, Any], gradient: torch.Tensor, shard: torch.Tensor) -> None:
    """Communication hook: reduce-scatters the mean of the gradients."""
    reduction, group = state
    reduction(output_tensor=shard, input_tensor=gradient, group=group, op=dist.ReduceOp.AVG)


def _refuse_strategy(modules: Sequence[Tuple[str, Any]]) -> None:
    for name, module in modules:
        strategy = getattr(module.sharding_strategy, "name", str(module.sharding_strategy))
        if strategy == "NO_SHARD":
            raise InvalidRequest(f"module '{name}' has NO_SHARD, which divides nothing: "
                                 "use DistributedDataParallel(model), which averages the same, with a plan of schedule ddp")
        if strategy not in ("FULL_SHARD", "SHARD_GRAD_OP"):
            raise InvalidRequest(f"module '{name}' has {strategy}, for which FSDP1 takes no hook: {_INSTEAD}")
        if getattr(module, "_comm_hook", None) is not None:
            raise InvalidRequest(f"module '{name}' has a communication hook, and FSDP1 takes one: wrap the model again, without it")


def _check(plan: Plan, units: Sequence[Unit], modules: Sequence[Tuple[str, Any]]) -> None:
    """Raises InvalidRequest unless the modules' own settings are those of the plan: FSDP1 has no setters."""
    for unit in units:
        plan.decide(unit)
        if unit.gather is not None:
            raise InvalidRequest(f"{plan.file} gathers group '{unit.name}' as {unit.gather}, "
                                 f"and FSDP1 lets nobody gather otherwise: {_INSTEAD}")
    if plan.schedule is None:
        return
    where = f"{plan.file} is for schedule {plan.schedule}"
    if plan.separate or plan.in_flight != 2:
        raise InvalidRequest(f"{where}, and FSDP1 has one communicator and two layers in flight: {_INSTEAD}")
    for name, module in modules:
        whole = module.sharding_strategy.name == "SHARD_GRAD_OP"
        if plan.reshard != (1 if whole else plan.shard):
            raise InvalidRequest(f"{where}, and module '{name}' has {module.sharding_strategy.name}: "
                                 "FULL_SHARD is reshard=true, and SHARD_GRAD_OP reshard=false")
        prefetch = _PREFETCHES[str(getattr(module.backward_prefetch, "name", None))]
        if prefetch != plan.prefetch:
            raise InvalidRequest(f"{where}, and module '{name}' gathers ahead as prefetch={prefetch}: "
                                 "give it the backward_prefetch that was planned "
                                 "(pre: BACKWARD_PRE, post: BACKWARD_POST, none: None)")


def attach_fsdp1(model: Any, plan: str, algorithm: str, seed: int) -> ShardedHook:
    """Registers a plan's reductions as the hook of a FullyShardedDataParallel. Every rank calls it, before the first step. Raises
    InvalidRequest for a model or plan that cannot be attached."""
    modules = list(_wrapped(model))
    if not modules or not hasattr(model, "_comm_hook") or not model.check_is_root():
        raise InvalidRequest("this FullyShardedDataParallel takes no hook "
                             f"(it is not the outermost, or torch {torch.__version__} has another one): {_INSTEAD}")
    _refuse_strategy(modules)
    shapes = [_parameters_of(name, module) for name, module in modules]
    units = [Unit(number, name, [(one, math.prod(shape)) for one, shape in shapes[number]])
             for number, (name, _) in enumerate(modules)]
    group = model.process_group
    hook = ShardedHook(units, seed, group, plan)

    def read() -> Optional[Plan]:
        if plan == "none":
            return None
        gradients = [Gradient(name, shape) for group_shapes in shapes for name, shape in group_shapes]
        found = Plan(plan, algorithm, hook.shard, gradients)
        _check(found, units, modules)
        return found

    try:
        decided = hook.decide(read)
    except BaseException:
        hook.close()
        raise
    if decided is None:
        return hook
    for module in filter(is_fsdp1, model.modules()):  # includes modules without parameters of their own
        hook.restores(module, "_comm_hook")
        hook.restores(module, "_comm_hook_state")
    model.register_comm_hook(None, _reduce)
    for unit, (_, module) in zip(units, modules):
        module._comm_hook_state = (Reduction(hook.messages, unit, _Plain(module)), group)
    return hook


__all__ = ["attach_fsdp1", "is_fsdp1"]
