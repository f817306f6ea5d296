#!/usr/bin/env python3
"""One rank of PyTorch's torch.distributed.broadcast over gloo, of one fp32 tensor from rank 0.

Needs torch. Started by the experiment broadcast with the RANK and WORLD_SIZE of a launcher; rank 0 prints one JSON object.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.distributed

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from validation import gloo_rank  # noqa: E402  (found through the path above)


def broadcast(tensor: torch.Tensor) -> float:
    """Seconds from a barrier until this rank has received the tensor; on rank 0, until it has sent it."""
    torch.distributed.barrier()
    started = time.perf_counter()
    torch.distributed.broadcast(tensor, src=0)
    return time.perf_counter() - started


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, required=True)
    gloo_rank.add_options(parser)
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    rank, _ = gloo_rank.join(options, "broadcast", 120)
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
