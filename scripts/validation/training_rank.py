#!/usr/bin/env python3
"""One rank that trains a model of examples/train.py in several ways, in turns of a block of steps, so that other work of the
machine affects all ways alike.

Needs torch. Started by the experiment training with the RANK and WORLD_SIZE of a launcher; rank 0 prints one JSON object:
{"ways": {NAME: {"blocks_s": [[seconds of each step of a block]], "losses": [of each step]}}}.
"""

import argparse
import json
import pathlib
import shlex
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples")]
import train  # noqa: E402  (found through the path above)
from validation import gloo_rank  # noqa: E402


class Way:
    """Model that is trained in a way that arguments of train.py describe."""

    def __init__(self, arguments: list, rank: int):
        sys.argv = ["train.py", *arguments]
        options = train.parse_arguments()
        torch.manual_seed(options.seed)
        self.task = train.TASKS[options.model](options)
        self.model = DistributedDataParallel(self.task.make(), bucket_cap_mb=options.bucket_mb or 25)
        train.average(self.model, options)
        self.optimizer = self.task.optimizer(self.model.parameters())
        self.generator = torch.Generator().manual_seed(1000 * options.seed + rank)
        self.blocks_s, self.losses = [], []

    def run(self, steps: int) -> None:
        """Trains for a block of steps. In the first step, the caches hold data of the models that trained before."""
        torch.distributed.barrier()
        ends = [time.perf_counter()]
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = self.task.loss(self.model, self.generator)
            loss.backward()
            self.optimizer.step()
            ends.append(time.perf_counter())
            self.losses.append(loss.item())
        self.blocks_s.append([end - begin for begin, end in zip(ends, ends[1:])])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", required=True, metavar="NAME=ARGUMENTS", help="of train.py; repeatable")
    parser.add_argument("--block", type=int, required=True, help="steps of a way before the next has its turn")
    gloo_rank.add_options(parser)
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    torch.set_num_threads(1)
    rank, _ = gloo_rank.join(options, "training", 60)
    ways = {}
    for text in options.way:
        name, _, arguments = text.partition("=")
        ways[name] = Way(shlex.split(arguments), rank)
    for way in ways.values():
        way.run(options.warmups)
        way.blocks_s.clear()
    for _ in range(0, options.iterations, options.block):
        for way in ways.values():
            way.run(options.block)
    if rank == 0:
        print(json.dumps({"ways": {name: {"blocks_s": way.blocks_s, "losses": way.losses} for name, way in ways.items()}}))
    torch.distributed.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
