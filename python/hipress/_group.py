"""Process group of torch.distributed: names of its ranks, and the exchange between them before a job begins."""

from typing import Any, Callable, List, Optional, Tuple, TypeVar

import torch.distributed as dist

from hipress._engine import Error, InvalidRequest, Numbers, RankLost
from hipress._errors import HipressError

_Made = TypeVar("_Made")


class Group:
    """The ranks of a process group. A rank's place counts from 0 within it; its number is the launcher's."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.place, self.size = dist.get_rank(group), dist.get_world_size(group)
        places = range(self.size)
        self.numbers = Numbers(list(places) if group is dist.group.WORLD else [dist.get_global_rank(group, one) for one in places])

    def exchange(self, make: Callable[[], _Made]) -> List[_Made]:
        """Returns the results of make() on all ranks. If make() raises an exception on one rank, that rank raises it, and all other
        ranks raise an exception with its message."""
        mine, failure = None, None
        try:
            mine = make()
        except RankLost:
            raise  # an exchange would wait for the lost rank
        except Exception as error:
            failure = error
        everyone: List[Any] = [None] * self.size
        dist.all_gather_object(everyone, (mine, said_by(failure)), group=self.group)
        if failure is not None:
            raise failure
        for place, (_, said) in enumerate(everyone):
            raise_said(self.numbers.name(place), said)
        return [made for made, _ in everyone]


def said_by(failure: Optional[Exception]) -> Optional[Tuple[bool, str]]:
    """Message of a failed rank to the others: the failure's text, and True if an argument was wrong. None without a failure."""
    if failure is None:
        return None
    text = str(failure) if isinstance(failure, HipressError) else f"{type(failure).__name__}: {failure}"
    return isinstance(failure, InvalidRequest), text


def raise_said(name: str, said: Optional[Tuple[bool, str]]) -> None:
    """Raises the failure that the rank of that name has sent, if any."""
    if said is not None:
        raise (InvalidRequest if said[0] else Error)(f"{name}: {said[1]}")


__all__ = ["Group", "raise_said", "said_by"]
