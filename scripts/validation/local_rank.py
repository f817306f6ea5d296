#!/usr/bin/env python3
"""One rank that alternates, in turns of some steps, between two models: it trains the text model of examples/train.py by local
updates, and a second such model alone.

Needs torch. Started by the experiment local with the RANK and WORLD_SIZE of a launcher; rank 0 prints one JSON object with the
seconds that a step of each turn took on the slowest rank.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples")]
import hipress  # noqa: E402
import tasks  # noqa: E402  (found through the path above)
from validation import gloo_rank  # noqa: E402


class Training:
    """Model and its optimizer, with the same initial weights on all ranks."""

    def __init__(self, task: tasks.Text):
        torch.manual_seed(1)
        self.task, self.model = task, task.make()
        self.optimizer = task.optimizer(self.model.parameters())
        self.generator = torch.Generator().manual_seed(1000 + dist.get_rank())

    def step_s(self, steps: int) -> float:
        """Trains for `steps` steps. Returns the seconds of each on the slowest rank."""
        dist.barrier()
        began = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.task.loss(self.model, self.generator).backward()
            self.optimizer.step()
        seconds = torch.tensor((time.perf_counter() - began) / steps)
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        return float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    gloo_rank.add_options(parser)
    parser.add_argument("--turns", type=int, required=True, help="of --iterations steps, each alone and by local updates")
    parser.add_argument("--schedule", required=True)
    parser.add_argument("--plan", required=True)
    options = parser.parse_args()
    rank, _ = gloo_rank.join(options, "local", timeout_s=600)
    task = tasks.Text(argparse.Namespace(text=None, batch=0, optimizer=None))
    trainings = {"alone": Training(task), "local": Training(task)}
    averaged = trainings["local"]
    with hipress.LocalUpdates(averaged.model, averaged.optimizer, plan=options.plan, schedule=options.schedule,
                              network=options.interface):
        for training in trainings.values():
            training.step_s(options.warmups)
        found = {name: [] for name in trainings}
        for turn in range(options.turns):
            for name in sorted(trainings, reverse=turn % 2 == 1):
                found[name].append(trainings[name].step_s(options.iterations))
                if rank == 0:
                    print(f"turn {turn + 1} {name}: {found[name][-1]:.3f} s a step", file=sys.stderr, flush=True)
    if rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
