#!/usr/bin/env python3
"""One rank of PyTorch's torch.distributed.broadcast over gloo, of one fp32 tensor from rank 0.

Needs torch. Started by validate_broadcast.py with the RANK and WORLD_SIZE of a launcher; rank 0 prints one JSON object.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from validation.network import INTERFACE  # noqa: E402  (found through the path above)


def broadcast(tensor: torch.Tensor) -> float:
    """Seconds from a barrier until the tensor is here, or has left."""
    torch.distributed.barrier()
    started = time.perf_counter()
    torch.distributed.broadcast(tensor, src=0)
    return time.perf_counter() - started


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--warmups", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--rendezvous", required=True, help="file:///folder that all ranks share")
    parser.add_argument("--interface", help="address; taken for that of the network's interface")
    parser.add_argument("--json", action="store_true", help="taken for granted")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"{options.rendezvous}/broadcast", rank=rank, world_size=size,
                                         timeout=datetime.timedelta(seconds=120))
    torch.manual_seed(0)
    wanted = torch.randn(options.bytes // 4)
    tensor = wanted.clone() if rank == 0 else torch.zeros_like(wanted)
    for _ in range(options.warmups):
        broadcast(tensor)
    seconds = torch.tensor([broadcast(tensor) for _ in range(options.iterations)], dtype=torch.float64)
    torch.distributed.all_reduce(seconds, torch.distributed.ReduceOp.MAX)
    wrong = torch.tensor([0 if torch.equal(tensor, wanted) else 1])
    torch.distributed.all_reduce(wrong)
    if rank == 0:
        print(json.dumps({"iterations_s": seconds.tolist(), "verified": int(wrong) == 0, "torch": torch.__version__}))
    torch.distributed.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
