"""Search for the modules that have the parameters of optimizers."""

import collections.abc
import gc
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch


def held_by(optimizers: Iterable[Any]) -> List[torch.nn.Parameter]:
    """Parameters that optimizers train: those of PyTorch, and others with the same `param_groups`. Each is listed once."""
    found: Dict[int, torch.nn.Parameter] = {}
    for optimizer in optimizers:
        for group in getattr(optimizer, "param_groups", None) or ():
            for one in group.get("params", ()) if isinstance(group, collections.abc.Mapping) else ():
                if isinstance(one, torch.Tensor) and one.requires_grad and one.numel() > 0:
                    found[id(one)] = one
    return list(found.values())


#: Remedy for optimizers that step in hooks of parameters, within backward.
STEPS_IN_HOOKS = "DistributedDataParallel averages after such hooks, so to train with it, step after backward"


def hooked(parameters: Iterable[torch.Tensor]) -> int:
    """Number of parameters with hooks of the user's that run after their gradient is accumulated; 0 if this torch has no such
    hooks."""
    return sum(any(not str(getattr(hook, "__module__", "")).startswith("hipress.") for hook in hooks.values())
               for hooks in (getattr(one, "_post_accumulate_grad_hooks", None) or {} for one in parameters))


def described(parameters: Sequence[torch.Tensor], names: Optional[Sequence[Optional[str]]] = None) -> str:
    """Describes parameters: their number, their elements, and the first four by name and shape."""
    listed = [f"{name or 'without a name'} {list(one.shape)}" for name, one in zip(names or [None] * len(parameters), parameters)]
    more = [f"{len(listed) - 4} more"] if len(listed) > 4 else []
    return (f"{len(parameters)} parameter{'s' if len(parameters) > 1 else ''} ({sum(one.numel() for one in parameters)} elements: "
            f"{', '.join([*listed[:4], *more])})")


class Together(torch.nn.Module):
    """Container of several modules without a common parent, under the script's names for them."""

    def __init__(self, parts: Sequence[torch.nn.Module], name_of: Callable[[torch.nn.Module], Optional[str]]) -> None:
        super().__init__()
        for number, part in enumerate(parts):
            name = (name_of(part) or type(part).__name__.lower()).rpartition(".")[2]
            self.add_module(name if not hasattr(self, name) else f"{name}_{number}", part)

    @property
    def label(self) -> str:
        """Name in a model file."""
        return " + ".join(self._modules)


def holder(called: torch.nn.Module, wanted: Sequence[torch.Tensor],
           name_of: Callable[[torch.nn.Module], Optional[str]]) -> torch.nn.Module:
    """Finds the smallest module that has all wanted parameters and the called module's. Without such a module, returns the called
    one together with disjoint modules, each chosen for the most wanted parameters that are still missing."""
    ids = {id(one) for one in wanted}
    own = {id(one) for one in called.parameters()}
    if ids <= own:
        return called
    modules = [(module, {id(one) for one in module.parameters()}) for module in _modules()]
    whole = [(module, has) for module, has in modules if ids | own <= has]
    containing = [(module, has) for module, has in whole if any(part is called for part in module.modules())]
    if whole:
        return min(containing or whole, key=_size)[0]
    parts, missing = [called], ids - own
    while missing:
        useful = [(module, has) for module, has in modules if has & missing and not has & own]
        if not useful:
            break
        best = max(len(has & missing) for _, has in useful)
        module, has = min(((module, has) for module, has in useful if len(has & missing) == best), key=_size)
        parts.append(module)
        own, missing = own | has, missing - has
    return Together(parts, name_of) if len(parts) > 1 else called


def _size(module: Tuple[torch.nn.Module, Any]) -> Tuple[int, int]:
    """Sort key: number of parameters, then of modules, so that the innermost of several wrappers comes first."""
    return len(module[1]), sum(1 for _ in module[0].modules())


def _modules() -> Iterator[torch.nn.Module]:
    for one in gc.get_objects():
        if issubclass(type(one), torch.nn.Module) and "_modules" in vars(one) and not isinstance(one, Together):
            yield one


def lightning_module_of(module: torch.nn.Module) -> Optional[torch.nn.Module]:
    """Finds the LightningModule that contains a called module; None without one. Lightning wraps the whole in
    DistributedDataParallel."""
    kinds = tuple(kind for name in ("lightning.pytorch", "pytorch_lightning")
                  if (kind := getattr(sys.modules.get(name), "LightningModule", None)) is not None)
    if not kinds or isinstance(module, kinds):
        return None
    return next((one for one in _modules() if isinstance(one, kinds) and any(part is module for part in one.modules())), None)


__all__ = ["Together", "described", "held_by", "holder", "lightning_module_of"]
