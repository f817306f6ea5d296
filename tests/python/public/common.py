"""Common parts of the scripts: DistributedDataParallel under a launcher, and timing of steps."""

import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 16
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
IS_LAUNCHED = "RANK" in os.environ

torch.set_num_threads(1)
torch.manual_seed(1)


def wrapped(module):
    """Wraps the model in DistributedDataParallel if a launcher started this process."""
    if not IS_LAUNCHED:
        return module
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return DistributedDataParallel(module, bucket_cap_mb=1)


class Steps:
    """Timer of steps, from the end of one to the end of the next."""

    def __init__(self):
        self.ends = []

    def end(self) -> None:
        self.ends.append(time.perf_counter())

    def report(self) -> None:
        lengths = sorted(after - before for before, after in zip(self.ends[2:], self.ends[3:]))
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"step {statistics.median(lengths):.6f}")
        if dist.is_initialized():
            dist.destroy_process_group()
