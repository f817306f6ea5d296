"""Common code of ranks of PyTorch over gloo: the options with which a validation starts them, and their rendezvous."""

import argparse
import datetime
import os

import torch
import torch.distributed

from .network import INTERFACE


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--warmups", type=int, required=True, help="iterations that are not measured")
    parser.add_argument("--iterations", type=int, required=True, help="measured")
    parser.add_argument("--rendezvous", required=True, help="file:///folder that all ranks share")
    parser.add_argument("--interface", help="address; taken for that of the network's interface")
    parser.add_argument("--json", action="store_true", help="taken for granted")


def join(options: argparse.Namespace, job: str, timeout_s: float) -> tuple[int, int]:
    """Makes this process a rank of the job, with one thread. Returns the rank and the number of ranks."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"{options.rendezvous}/{job}", rank=rank, world_size=size,
                                         timeout=datetime.timedelta(seconds=timeout_s))
    return rank, size
