#!/usr/bin/env python3
"""One rank that trains a model of examples/train.py, while the experiment auto changes the network at given steps.

Needs torch. Started with the RANK and WORLD_SIZE of a launcher. Before the step of change N, rank 0 creates the file `--changes`.N
and waits until it is gone. At the end, it prints one JSON object: {"steps_s": [seconds of each step], "report": the report of
attach(), "loss"}.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples")]
from tasks import TASKS  # noqa: E402  (found through the path above)
from validation import gloo_rank  # noqa: E402
from validation.network import INTERFACE  # noqa: E402


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(TASKS), required=True)
    parser.add_argument("--way", required=True, help="ddp, auto, or a plan")
    parser.add_argument("--profile", help="of auto: costs of kernels")
    parser.add_argument("--sharded", action="store_true", help="fully_shard() divides the model, and ddp is plain FSDP2")
    parser.add_argument("--changes", type=pathlib.Path, required=True, help="file that announces a change of the network")
    parser.add_argument("--at", type=int, nargs="*", default=[], help="steps before which the network changes")
    gloo_rank.add_options(parser)
    return parser.parse_args()


def meet(changes: pathlib.Path, number: int, rank: int) -> None:
    """Asks for change number `number` of the network, and waits until it is made."""
    announced = changes.with_suffix(f".{number}")
    torch.distributed.barrier()
    if rank == 0:
        announced.touch()
        while announced.exists():
            time.sleep(0.01)
    torch.distributed.barrier()


def profile_before(rank: int, ranks: int) -> None:
    """Lets rank 0 measure the costs of kernels before the ranks train: at real-time priority, training ranks leave no core for
    that."""
    from hipress import _planning

    if rank == 0:
        nodes = min(ranks, 4)
        profiling = _planning.Profiling(_planning.profile_path(_planning.ALGORITHMS, nodes), _planning.ALGORITHMS, nodes)
        profiling.join()
        if profiling.failure:
            sys.exit(profiling.failure)
    torch.distributed.barrier()


def sharded(model: torch.nn.Module) -> torch.nn.Module:
    """Divides each child of a model that has parameters, and each child of a list of modules, among the ranks."""
    from torch.distributed.fsdp import fully_shard

    parts = [part for child in model.children() for part in (child if isinstance(child, torch.nn.ModuleList) else [child])]
    for part in parts:
        if any(True for _ in part.parameters()):
            fully_shard(part)
    return fully_shard(model)


def main() -> int:
    options = parse_arguments()
    rank, ranks = gloo_rank.join(options, options.way.replace("/", "-"), 120)
    torch.manual_seed(1)
    task = TASKS[options.model](argparse.Namespace(batch=0, optimizer=None, text=None))
    model = sharded(task.make()) if options.sharded else DistributedDataParallel(task.make(), bucket_cap_mb=1)
    attached = None
    if options.way != "ddp":
        import hipress

        if options.way == "auto" and options.profile is None:
            profile_before(rank, ranks)
        only_auto = {"profile": options.profile} if options.way == "auto" else {}
        if not options.sharded or options.way == "auto":
            only_auto["network"] = INTERFACE
        attached = hipress.attach(model, options.way, **only_auto)
    optimizer = task.optimizer(model.parameters())
    generator = torch.Generator().manual_seed(1000 + rank)
    seconds, losses, number = [], [], 0
    for step in range(options.warmups + options.iterations):
        if step in options.at:
            meet(options.changes, number, rank)
            number += 1
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = task.loss(model, generator)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
        losses.append(loss.item())
    if rank == 0:
        print(json.dumps({"steps_s": seconds, "report": attached.report() if options.way == "auto" else "",
                          "loss": sum(losses[-20:]) / len(losses[-20:])}))
    torch.distributed.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
