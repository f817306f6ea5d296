#!/usr/bin/env python3
"""Trains a model on real data between ranks that average gradients in a given way, and writes the loss by step and second.

    examples/train.py --ranks 2 --model digits --average hipress --plan onebit --log onebit.csv
    torchrun --nproc_per_node 2 examples/train.py --model text --average ddp --log ddp.csv
    scripts/plot.py losses *.csv --output losses.png

Models are those of tasks.py: `digits` is a convolutional network that classifies the 1797 handwritten digits in examples/data;
`text` is a character-level transformer of 10.8 million parameters that learns the licences in /usr/share/common-licenses, which
every Debian has (--text takes other files); the others are smaller. `--average`: ddp is plain DistributedDataParallel, fp16 and
powersgd are PyTorch's hooks (with --rank and --batched), hipress attaches --plan, and none trains a separate model on each rank, to
time the computation of ranks that share a machine. With --local, ranks train by local updates instead, which --plan compresses:

    examples/train.py --ranks 2 --model text --local 'local(steps=20, fragments=4, overlap=1)' --plan int4block
"""

import argparse
import os
import pathlib
import socket
import sys
import time

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from tasks import TASKS


def average(ddp: DistributedDataParallel, options: argparse.Namespace) -> None:
    """Registers the hook that averages the gradients."""
    if options.average == "fp16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    elif options.average == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=options.rank, start_powerSGD_iter=2,
                                            batch_tensors_with_same_shape=options.batched)

        def one_bucket_at_a_time(state, bucket):
            # Over gloo, messages of concurrent buckets would be confused.
            future = powerSGD_hook.powerSGD_hook(state, bucket)
            future.wait()
            return future
        ddp.register_comm_hook(state, one_bucket_at_a_time)
    elif options.average == "hipress":
        import hipress
        hipress.attach(ddp, options.plan, topology=options.topology, model=options.timings, network=options.interface)


def local_updates(model: torch.nn.Module, optimizer: torch.optim.Optimizer, options: argparse.Namespace):
    """Makes the local updates that average the ranks' weights."""
    import hipress
    return hipress.LocalUpdates(model, optimizer, plan=options.plan, schedule=options.local, alpha=options.alpha,
                                topology=options.topology, network=options.interface)


def train(options: argparse.Namespace) -> None:
    """Trains as one rank of the process group, or alone."""
    rank, alone = (0, True) if options.alone else (dist.get_rank(), options.average == "none")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    task = TASKS[options.model](options)
    model = task.make()
    if not alone and not options.local:
        model = DistributedDataParallel(model, bucket_cap_mb=options.bucket_mb or (1 if options.average == "hipress" else 25))
        average(model, options)
    optimizer = task.optimizer(model.parameters())
    local = local_updates(model, optimizer, options) if options.local else None
    generator = torch.Generator().manual_seed(1000 * options.seed + rank)
    rows = []
    barrier(options)
    begin = time.perf_counter()
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = task.loss(model, generator)
        loss.backward()
        optimizer.step()
        rows.append((step, time.perf_counter() - begin, loss.item()))
    if local is not None:
        local.finish()
    if rank == 0:
        seconds = (rows[-1][1] - rows[0][1]) / max(1, len(rows) - 1)
        print(f"{options.model}, {1 if options.alone else dist.get_world_size()} ranks, {describe(options)}: {seconds * 1e3:.1f} ms a step, training loss "
              f"{numpy.mean([loss for *_, loss in rows[-20:]]):.3f}, {task.test(getattr(model, 'module', model))}")
        if options.log:
            with open(options.log, "w", encoding="utf-8") as file:
                file.write("average,step,seconds,loss\n")
                file.writelines(f"\"{describe(options)}\",{step},{seconds:.6f},{loss:.6f}\n" for step, seconds, loss in rows)
    barrier(options)


def barrier(options: argparse.Namespace) -> None:
    if not options.alone:
        dist.barrier()


def describe(options: argparse.Namespace) -> str:
    if options.local:
        return f"{options.local} {pathlib.Path(options.plan).name}"
    if options.average == "hipress":
        return f"hipress {pathlib.Path(options.plan).name}"
    return f"powersgd rank {options.rank}" if options.average == "powersgd" else options.average


def as_rank(rank: int, port: int, options: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.ranks)
    train(options)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(TASKS), default="digits")
    parser.add_argument("--average", choices=["ddp", "fp16", "powersgd", "hipress", "none"], default="ddp")
    parser.add_argument("--local", metavar="SCHEDULE", help="train by local updates, as in local(steps=20, fragments=4, overlap=1)")
    parser.add_argument("--alpha", type=float, help="of --local: a rank's share of its own weights (default: 0, overlapped 0.5)")
    parser.add_argument("--plan", default="none", help="of hipress and --local: a plan file, none, all or an algorithm "
                        "(default: %(default)s)")
    parser.add_argument("--topology", help="of hipress and --local: ring, ps, allreduce or allgather (default: the plan file's, or "
                        "ring)")
    parser.add_argument("--timings", metavar="FILE", help="of hipress: the captured model that the plan was made of")
    parser.add_argument("--rendezvous", metavar="URL", help="file:///folder where the ranks of a launcher meet, instead of MASTER_ADDR")
    parser.add_argument("--interface", help="of hipress and --local: network interface or address to use")
    parser.add_argument("--rank", type=int, default=4, help="of powersgd (default: %(default)s)")
    parser.add_argument("--batched", action="store_true", help="powersgd: tensors of one shape are one")
    parser.add_argument("--ranks", type=int, default=2, help="to start here, unless torchrun has (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=0, help="samples of a rank's step (default: 64 digits, 8 texts)")
    parser.add_argument("--bucket-mb", type=float, help="DDP's buckets (default: 25; with hipress 1, so that gradients go when they are ready)")
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], help="default: what suits the model")
    parser.add_argument("--alone", action="store_true", help="train without a process group, as for hipress.pilot, whose ranks then "
                        "take turns")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--text", nargs="+", help="files to learn instead of the licences")
    parser.add_argument("--log", help="CSV: the loss of rank 0 by step and second")
    options = parser.parse_args()
    if options.steps < 1 or options.ranks < 1:
        parser.error("--steps and --ranks must be at least 1")
    return options


def main() -> None:
    options = parse_arguments()
    if options.alone:
        train(options)
    elif "RANK" in os.environ:  # set by a launcher such as torchrun
        meeting = {} if options.rendezvous is None else {
            "init_method": f"{options.rendezvous}/group", "rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
        dist.init_process_group("gloo", **meeting)
        train(options)
    elif options.ranks == 1:
        as_rank(0, free_port(), options)
    else:
        torch.multiprocessing.spawn(as_rank, (free_port(), options), options.ranks)


if __name__ == "__main__":
    main()
