"""Checks of states before any part of them is loaded: a checkpoint may have changed what state_dict() returned."""

import collections.abc
import contextlib
import copy
import os
import pathlib
import tempfile
from typing import Any, Callable, Dict, Iterator, Mapping, NoReturn, Sequence, Type

import torch

from hipress._engine import InvalidRequest
from hipress._errors import short

_REMEDY = "load what its state_dict() returned on this rank, or nothing, and begin with zeros"


def saved(save: Callable[[str], object]) -> torch.Tensor:
    """Returns the bytes that the library writes to a file, as a tensor of uint8."""
    with tempfile.TemporaryDirectory(prefix="hipress-state-") as folder:
        path = os.path.join(folder, "state")
        save(path)
        return torch.from_file(path, shared=False, size=os.path.getsize(path), dtype=torch.uint8).clone()


def restore(state: torch.Tensor, load: Callable[[str], object]) -> None:
    """Makes the library read the bytes that saved() returned. Raises InvalidRequest for any other bytes, and changes nothing
    then."""
    with tempfile.TemporaryDirectory(prefix="hipress-state-") as folder:
        path = os.path.join(folder, "state")
        pathlib.Path(path).write_bytes(state.cpu().numpy().tobytes())
        try:
            load(path)
        except InvalidRequest as error:  # names the temporary file, which the user does not know
            raise InvalidRequest(f"the state {str(error).replace(path, '').lstrip(': ')}") from None


def refuse(what: str) -> NoReturn:
    """Raises InvalidRequest with the remedy."""
    raise InvalidRequest(f"{what}: {_REMEDY}")


def require(state: Any, owner: str, kinds: Mapping[str, Type[Any]]) -> None:
    """Raises InvalidRequest unless a state is a mapping with these keys, whose values are of these types."""
    if not isinstance(state, collections.abc.Mapping):
        refuse(f"a state of {owner} is a dictionary, and this is a {type(state).__name__}")
    for key, kind in kinds.items():
        if key not in state:
            refuse(f"this is no state of {owner}, which has '{key}'")
        value = state[key]
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
            noun = "whole number from 0" if kind is int else kind.__name__
            refuse(f"'{key}' of a state of {owner} is a {noun}, and here it is {_short(value)}")


def require_bytes(owner: str, key: str, value: Any) -> None:
    """Raises InvalidRequest unless the value is a tensor of bytes with one dimension."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.uint8 or value.dim() != 1:
        refuse(f"'{key}' of a state of {owner} is a tensor of bytes, and here it is {_short(value)}")


def require_numbers(owner: str, name: str, values: Any, like: torch.Tensor) -> None:
    """Raises InvalidRequest unless the values are a tensor of finite numbers with the type and shape of `like`."""
    if not isinstance(values, torch.Tensor) or values.dtype != like.dtype or values.shape != like.shape:
        refuse(f"the state of {owner} has for '{name}' {_short(values)}, where {_short(like)} belongs")
    if not bool(torch.isfinite(values).all()):
        refuse(f"the state of {owner} has numbers for '{name}' that are not finite")


@torch.no_grad()
def require_of_optimizer(optimizer: torch.optim.Optimizer, state: Any) -> Dict[str, Any]:
    """Returns a copy of the state. Raises InvalidRequest unless a copy of the optimizer loads the state, and then takes a step with
    zero gradients that leaves finite numbers."""
    with _explained(optimizer):
        taken: Dict[str, Any] = copy.deepcopy(state)
        trial = copy.deepcopy(optimizer)
        trial.load_state_dict(copy.deepcopy(taken))
        for before, after in zip(optimizer.param_groups, trial.param_groups):
            if before.keys() != after.keys():
                differing = sorted(before.keys() ^ after.keys())[0]
                raise KeyError(f"'{differing}' is only in one of the two")
            for one in after["params"]:
                one.grad = torch.zeros_like(one)
        trial.step()
        for group in trial.param_groups:
            for one in group["params"]:
                if not bool(torch.isfinite(one).all()):
                    raise ValueError("a step with it makes numbers that are not finite")
    return taken


@contextlib.contextmanager
def _explained(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # optimizers raise any kind for a wrong state
        refuse(f"the state of the outer optimizer is none of {type(optimizer).__name__} for these weights "
               f"({type(error).__name__}: {error})")


def require_counts(owner: str, key: str, values: Sequence[Any], count: int, most: int) -> None:
    """Raises InvalidRequest unless these are that many whole numbers from 0 to `most`."""
    if len(values) != count or not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= most for one in values):
        refuse(f"'{key}' of a state of {owner} are {count} whole numbers from 0 to {most}, and here it is {_short(list(values))}")


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    return short(value)


__all__ = ["refuse", "require", "require_bytes", "require_counts", "require_numbers", "require_of_optimizer", "restore", "saved"]
