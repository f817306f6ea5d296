"""A process group of torch.distributed: what its ranks are called, and what they tell each other before they begin."""

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
        """What make() returns on every rank. If it raises on one, all raise: that rank what it was, the others what it said."""
        mine, failure = None, None
        try:
            mine = make()
        except RankLost:
            raise  # the lost rank would be waited for
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
    """What a rank tells the others that it was refused, and whether for a wrong argument; None: it was not."""
    if failure is None:
        return None
    text = str(failure) if isinstance(failure, HipressError) else f"{type(failure).__name__}: {failure}"
    return isinstance(failure, InvalidRequest), text


def raise_said(name: str, said: Optional[Tuple[bool, str]]) -> None:
    """Raises here what the rank of that name has told."""
    if said is not None:
        raise (InvalidRequest if said[0] else Error)(f"{name}: {said[1]}")


__all__ = ["Group", "raise_said", "said_by"]
