"""What a PyTorch job gives an engine: its ranks, a place to meet, a secret, a network interface."""

import datetime
import os
import secrets
import socket
import typing

import torch
import torch.distributed as dist

from hipress.native import Engine, Gradient


class _TorchStore:
    """The job's key-value store, under a prefix of its own."""

    def __init__(self, store: dist.Store, prefix: str):
        self._store = dist.PrefixStore(prefix, store)

    def add(self, name: str, data: bytes) -> None:
        self._store.set(name, data.hex())

    def wait(self, name: str, seconds: float) -> typing.Optional[bytes]:
        # At least a millisecond: 0 means no limit to some stores.
        try:
            self._store.wait([name], datetime.timedelta(seconds=max(seconds, 1e-3)))
        except RuntimeError as error:  # DistStoreError in PyTorch 2, which is one
            if "imeout" in str(error) or "imed out" in str(error):
                return None
            raise
        return bytes.fromhex(self._store.get(name).decode())


def default_store() -> dist.Store:
    """The store that init_process_group() made."""
    return dist.distributed_c10d._get_default_store()


def _own_address(hosts: typing.Sequence[str]) -> str:
    """The address from which this host reaches rank 0's; "", which is loopback, where all ranks are on one host."""
    if len(set(hosts)) == 1:
        return ""
    master = os.environ.get("MASTER_ADDR")
    if not master:
        raise ValueError("ranks are on several hosts: give attach() the network interface, such as interface='eth0'")
    with socket.socket(socket.AF_INET6 if ":" in master else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((master, 9))  # sends nothing
        return probe.getsockname()[0]


def open_engine(gradients: typing.Sequence[Gradient], group: dist.ProcessGroup, interface: typing.Optional[str],
                **options) -> Engine:
    """An engine over the ranks of the group, all of which call this together. `options` as Engine's."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    said = [None] * ranks
    dist.all_gather_object(said, (secrets.token_bytes(32), secrets.token_hex(8), socket.gethostname()), group=group)
    secret, job, _ = said[0]
    network = _own_address([host for _, _, host in said]) if interface is None else interface
    return Engine(gradients, rank=rank, ranks=ranks, store=_TorchStore(default_store(), f"hipress/{job}"), job=job,
                  secret=secret, network=network, **options)


def agree(group: dist.ProcessGroup, problem: str) -> None:
    """Raises ValueError on all ranks if one of them has a problem, which it describes; so that none waits for it."""
    said = [None] * dist.get_world_size(group)
    dist.all_gather_object(said, problem, group=group)
    for rank, text in enumerate(said):
        if text:
            raise ValueError(text if rank == dist.get_rank(group) else f"rank {rank}: {text}")


def type_of(tensor: torch.Tensor) -> int:
    """As the library has it; ValueError for what it does not average."""
    types = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
    if tensor.dtype not in types:
        raise ValueError(f"gradients of {tensor.dtype} cannot be averaged; there are float32, float16 and bfloat16")
    return types[tensor.dtype]
