"""Meeting of ranks: each says which job it asks for; if all ask for the same, they make an engine together."""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import secrets
import socket
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch.distributed as dist

from hipress import _library
from hipress._engine import Engine, InvalidRequest
from hipress._errors import short
from hipress._group import Group
from hipress._library import Gradient, library
from hipress._store import TorchStore

#: Size of fusion buffers in bytes: gradients of a bucket are submitted together, so small uncompressed ones can be fused.
GROUP_BYTES = 1 << 20


def machine() -> str:
    """Identifier of this machine: the same for all processes with this host name, kernel and network namespace."""
    found = [socket.gethostname()]
    with contextlib.suppress(OSError):
        found.append(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        found.append(os.readlink("/proc/thread-self/ns/net"))  # containers may share all but this
    return " ".join(found)


def gloo_interface() -> str:
    """Interface that PyTorch's gloo would use: the first one in GLOO_SOCKET_IFNAME. Empty if the variable is unset, or begins
    with ^ as lists of interfaces that NCCL excludes do. Raises InvalidRequest if this machine lacks the interface."""
    named = [name.strip() for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")]
    found = next((name for name in named if name and not named[0].startswith("^")), "")
    if found and found not in (name for _, name in socket.if_nameindex()):
        raise InvalidRequest(f"GLOO_SOCKET_IFNAME begins with the interface '{found}', which this machine does not have (ip "
                             "address show lists them): correct it, or give attach() another network")
    return found


def _own_address() -> str:
    """Address from which this machine reaches MASTER_ADDR. Raises InvalidRequest if that is not set."""
    master = os.environ.get("MASTER_ADDR")
    if not master:
        raise InvalidRequest("the ranks are on several machines: say which network they use, with network='eth0' or its address, "
                             "by GLOO_SOCKET_IFNAME, or by MASTER_ADDR")
    with socket.socket(socket.AF_INET6 if ":" in master else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((master, 9))  # sends nothing
        return probe.getsockname()[0]


@dataclasses.dataclass
class Wish:
    """Job that a rank asks for. `same` has the arguments that must be equal on all ranks, such as plan, topology and timeout.
    `plan` is the engine's plan if it differs from the one in `same`. `device` is a CUDA ordinal, or -1 for the host."""

    gradients: List[Gradient]
    device: int
    same: Dict[str, Any]
    network: Optional[str]
    fragments: Optional[List[int]] = None
    plan: Optional[str] = None
    group_bytes: int = GROUP_BYTES

    def card(self) -> Dict[str, Any]:
        """Returns the part of the wish that the other ranks get."""
        library()  # if it is missing, raises an error that the other ranks get, too
        described = [(one.name, one.shape, _library.TYPE_NAMES[one.type]) for one in self.gradients]
        return {"machine": machine(), "same": {**self.same, "gradients": described}}


class Job:
    """Ranks of a process group, and the engine that they have made together."""

    def __init__(self, group: Group, engine: Engine) -> None:
        self.group, self.engine = group, engine
        self.rank, self.ranks = group.place, group.size

    @classmethod
    def meet(cls, group: Any, wish_of: Callable[[], Wish], caller: str = "hipress.attach") -> Tuple["Job", Wish]:
        """Meets the other ranks, and opens the engine. Returns the job and this rank's wish. Raises an error of one rank on all,
        and InvalidRequest, which names `caller`, if ranks ask for different jobs."""
        ranks = Group(group)
        wishes: List[Wish] = []

        def card() -> Dict[str, Any]:
            wishes.append(wish_of())
            return wishes[0].card()

        cards = ranks.exchange(card)
        _require_same(ranks, [one["same"] for one in cards], caller)
        wish = wishes[0]
        options, store = _meeting(ranks, wish, cards)
        same = wish.same
        if wish.fragments is not None:
            options["fragments"] = wish.fragments
        engines: List[Engine] = []
        try:
            ranks.exchange(lambda: engines.append(Engine(
                wish.gradients, ranks.numbers, plan=same["plan"] if wish.plan is None else wish.plan, topology=same["topology"],
                algorithm=same["algorithm"], timeout_s=same["timeout"], silence_s=same["silence"], seed=same["seed"],
                device=wish.device, group_bytes=wish.group_bytes, **options)))
        except BaseException:
            for engine in engines:
                engine.close()
            raise
        del store  # lent to the library while the engine was opened
        return cls(ranks, engines[0]), wish


def _require_same(ranks: Group, all_same: List[Dict[str, Any]], caller: str) -> None:
    for other, theirs in enumerate(all_same):
        for key, value in theirs.items():
            if value != all_same[0][key]:
                difference = _difference(key, value, all_same[0][key], ranks.numbers.of(0))
                raise InvalidRequest(f"{ranks.numbers.name(other)} calls {caller} with {difference}; all ranks must ask for the "
                                     "same")


def _meeting(ranks: Group, wish: Wish, cards: List[Dict[str, Any]]) -> Tuple[Dict[str, Any], Optional[TorchStore]]:
    """Options with which the ranks' engines find each other, and the store that they point to; None without a store."""
    options: Dict[str, Any] = {"rank": ranks.place, "ranks": ranks.size, "network": wish.network or ""}
    if ranks.size == 1:
        return {**options, "transport": "memory", "rendezvous": f"local:{secrets.token_hex(16)}"}, None
    if len({one["machine"] for one in cards}) > 1:
        options["network"] = ranks.exchange(lambda: wish.network or gloo_interface() or _own_address())[ranks.place]
    shared: List[Any] = [(secrets.token_bytes(32), f"pytorch-{secrets.token_hex(8)}") if ranks.place == 0 else None]
    dist.broadcast_object_list(shared, src=ranks.numbers.of(0), group=ranks.group)
    options["secret"], options["job"] = shared[0]
    if wish.same["rendezvous"] is not None:
        return {**options, "rendezvous": wish.same["rendezvous"]}, None
    store = TorchStore(f"hipress/{options['job']}")
    return {**options, "store": ctypes.pointer(store.c)}, store


def _difference(key: str, theirs: Any, first: Any, number: int) -> str:
    """Difference between a rank's call and that of the group's first rank, whose number is `number`, for messages."""
    if key == "model":
        return f"another model ({theirs}) than rank {number} ({first}): attach models in the same order on all ranks"
    if key != "gradients":
        return f"{key}={short(theirs)}, rank {number} with {short(first)}"
    for mine, other in zip(theirs, first):
        if mine != other:
            return (f"gradient {mine[0]} of shape {list(mine[1])} and {mine[2]}, rank {number} with {other[0]} of {list(other[1])} "
                    f"and {other[2]}")
    return f"{len(theirs)} gradients, rank {number} with {len(first)}"
