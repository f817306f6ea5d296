#!/usr/bin/env python3
"""Measures the overhead of hipress's communication hook per step.

usage: bench_hook.py [--ranks 2] [--gradients 1000] [--elements 100] [--repetitions 7] [--mbits N] [--json FILE]

With two or more ranks, it times a backward pass under plain DDP, under PyTorch's all-reduce hook (also in Python) and under hipress
with plan `none`, for many small gradients and for eight of 4 MB each. The goal is at most 1.15 times the time under the all-reduce
hook. Ranks are processes of this machine. With --mbits each has a host of its own in the validation's shaped network (as root
only). With one rank, it compares hipress with a hook that does nothing, once with all gradients in one bucket and once with a
bucket per gradient. The goal is at most 6 us per gradient.

Needs a python3 with torch, and PYTHONPATH and HIPRESS_LIBRARY of a build (docs/pytorch-training.md). Checks the gradients under all
hooks first. Every repetition times several passes under each hook in turn. The report has the median, the minimum and the maximum
over repetitions of each repetition's median. The JSON has the form of the other benchmarks."""

import argparse
import contextlib
import ctypes
import functools
import json
import multiprocessing
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import hipress

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from validation.network import INTERFACE, Network, Unavailable  # noqa: E402

#: Goal for the overhead per gradient over a hook that does nothing: at most this, in us.
TARGET_US = 6.0
#: Goal for the time of a step: at most this multiple of that under PyTorch's all-reduce hook.
TARGET_RATIO = 1.15
LARGE = {"gradients": 8, "elements": 1_000_000}


class Sum(torch.autograd.Function):
    """Passes a value on, and makes the gradient of a parameter: all ones. Backward does hardly any other work."""

    @staticmethod
    def forward(ctx, carried, parameter):
        ctx.shape = parameter.shape
        return carried.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.ones(ctx.shape)


class Many(torch.nn.Module):
    """Module with `gradients` parameters of `elements` elements each."""

    def __init__(self, gradients: int, elements: int):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(elements)) for _ in range(gradients))

    def forward(self, carried):
        for weight in self.weights:
            carried = Sum.apply(carried, weight)
        return carried


def do_nothing(state, bucket):
    """Communication hook that does nothing."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


HOOKS = {"no-op": lambda ddp: ddp.register_comm_hook(None, do_nothing), "ddp": lambda ddp: None,
         "all-reduce": lambda ddp: ddp.register_comm_hook(None, allreduce_hook), "hipress": lambda ddp: hipress.attach(ddp, "none")}


def backward_s(ddp) -> float:
    loss = ddp(torch.zeros(1, requires_grad=True)).sum()
    began = time.perf_counter()
    loss.backward()
    return time.perf_counter() - began


def make(gradients: int, elements: int, bucket_mb: float, hook: str) -> DistributedDataParallel:
    """Makes a model under a hook, and runs it until DDP has rebuilt its buckets. Exits if a gradient is wrong."""
    ddp = DistributedDataParallel(Many(gradients, elements), bucket_cap_mb=bucket_mb)
    HOOKS[hook](ddp)
    for _ in range(5):
        ddp.zero_grad()
        backward_s(ddp)
    for weight in ddp.module.weights:
        if not torch.equal(weight.grad, torch.ones(elements)):
            sys.exit("bench_hook: a gradient is wrong")
    return ddp


def measure(hooks: tuple, gradients: int, elements: int, bucket_mb: float, passes: int, repetitions: int) -> dict:
    """Measures the median time of a backward pass in each repetition, in us, by hook."""
    models = {hook: make(gradients, elements, bucket_mb, hook) for hook in hooks}
    medians = {hook: [] for hook in hooks}
    for _ in range(repetitions):
        for hook, ddp in models.items():
            dist.barrier()
            medians[hook].append(statistics.median(backward_s(ddp) for _ in range(passes)) * 1e6)
    return medians


def alone(options: argparse.Namespace) -> list:
    """Measures one rank's overhead over a hook that does nothing. Returns the rows."""
    rows = []
    # DDP closes a bucket once it is full, so with a limit of one byte each holds one gradient.
    for case, bucket_mb in (("one bucket", 1e6), ("a bucket each", 1e-6)):
        found = measure(("no-op", "hipress"), options.gradients, options.elements, bucket_mb, 100, options.repetitions)
        differences = [(ours - theirs) / options.gradients for ours, theirs in zip(found["hipress"], found["no-op"])]
        steps = {hook: statistics.median(values) for hook, values in found.items()}
        us = statistics.median(differences)
        print(f"hook, {options.gradients} gradients of {options.elements}, {case}: no-op {steps['no-op']:.0f} us a step, hipress "
              f"{steps['hipress']:.0f}: {us:.2f} us a gradient, {min(differences):.2f} to {max(differences):.2f}; wanted: "
              f"{TARGET_US:g} at most", flush=True)
        rows.append({"case": f"hook.{case.replace(' ', '_')}", "metric": "us/gradient", "value": us, "reference_name": "wanted",
                     "reference": TARGET_US, "ratio": us / TARGET_US})
    return rows


def together(options: argparse.Namespace) -> list:
    """Measures several ranks' times as ratios to those under DDP and under PyTorch's hook. Returns the rows."""
    rows = []
    small = {"gradients": options.gradients, "elements": options.elements}
    for case, size, passes in (("small", small, 20), ("large", LARGE, 10)):
        found = measure(("ddp", "all-reduce", "hipress"), **size, bucket_mb=25, passes=passes, repetitions=options.repetitions)
        steps = {hook: statistics.median(values) for hook, values in found.items()}
        ratios = {hook: [ours / theirs for ours, theirs in zip(found["hipress"], found[hook])] for hook in ("ddp", "all-reduce")}
        ratio = statistics.median(ratios["all-reduce"])
        print(f"hook, {options.ranks} ranks, {size['gradients']} gradients of {size['elements']}: ddp {steps['ddp'] / 1e3:.2f} ms a "
              f"step, all-reduce hook {steps['all-reduce'] / 1e3:.2f}, hipress {steps['hipress'] / 1e3:.2f}: {ratio:.2f} times that "
              f"hook, {min(ratios['all-reduce']):.2f} to {max(ratios['all-reduce']):.2f} (wanted: {TARGET_RATIO:g} at most), "
              f"{statistics.median(ratios['ddp']):.2f} times DDP", flush=True)
        for reference, name in (("all-reduce", "all-reduce hook"), ("ddp", "DDP")):
            rows.append({"case": f"hook.{options.ranks}_ranks.{case}", "metric": "us/step", "value": steps["hipress"],
                         "reference_name": name, "reference": steps[reference], "ratio": statistics.median(ratios[reference])})
    return rows


def enter(host: str) -> None:
    """Moves this thread, and those that it starts later, into a network namespace. Raises OSError if the thread cannot enter it."""
    clone_newnet = 0x40000000
    with open(f"/run/netns/{host}", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), clone_newnet) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {host}")
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE


def serve(rank: int, options: argparse.Namespace, folder: str, hosts: list, results) -> None:
    """Runs one rank. Rank 0 puts the rows into the queue `results`."""
    if hosts:
        enter(hosts[rank])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=options.ranks)
    silent = open(os.devnull, "w") if rank > 0 else None
    sys.stdout = silent or sys.stdout
    rows = together(options) if options.ranks > 1 else alone(options)
    if rank == 0:
        results.put(rows)


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = functools.partial(parser.add_argument, type=at_least_one)
    number("--ranks", default=2, help="default: %(default)s")
    number("--gradients", default=1000, help="default: %(default)s")
    number("--elements", default=100, help="of each (default: %(default)s)")
    number("--repetitions", default=7, help="default: %(default)s")
    number("--mbits", help="limit of each rank's host, in Mbit/s (default: loopback)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    return parser.parse_args()


def run(options: argparse.Namespace) -> list:
    """Runs all ranks. Returns the rows, or an empty list if a rank failed."""
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    results = context.Queue()
    with contextlib.ExitStack() as stack:
        folder, hosts = stack.enter_context(tempfile.TemporaryDirectory()), []
        if options.mbits:
            network = stack.enter_context(Network(options.ranks))
            network.shape(options.mbits)
            hosts = network.names
        ranks = [context.Process(target=serve, args=(rank, options, folder, hosts, results)) for rank in range(options.ranks)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return [] if any(rank.exitcode != 0 for rank in ranks) else results.get()


def main() -> int:
    options = parse_arguments()
    try:
        rows = run(options)
    except Unavailable as reason:
        print(f"bench_hook: {reason}", file=sys.stderr)
        return 2
    if not rows:
        return 1
    if options.json:
        temporary = f"{options.json}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"machine": {"name": platform.node(), "cores": os.cpu_count(), "torch": torch.__version__}, "rows": rows}, file,
                      indent=1)
        os.replace(temporary, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
