#!/usr/bin/env python3
"""What the communication hook of hipress costs a step, beyond one that does nothing: one rank, 160 gradients, in one bucket and in one
bucket each.

usage: bench_hook.py [--gradients 160] [--elements 256] [--repetitions 7] [--json FILE]

Needs a python3 with torch, and PYTHONPATH and HIPRESS_LIBRARY of a build (docs/pytorch-training.md). Every repetition times some
hundred backward passes under each hook in turn; reported are the medians of the repetitions' medians, and the least and largest
difference. Before that, gradients under both hooks must be equal. JSON as of the other benchmarks; the reference is 6 us a gradient.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress

#: Microseconds a gradient may cost more than under a hook that does nothing.
TARGET_US = 6.0
PASSES = 100


class Sum(torch.autograd.Function):
    """Uses parameters whose gradients are all ones; backward does next to nothing else."""

    @staticmethod
    def forward(ctx, carried, parameter):
        ctx.shape = parameter.shape
        return carried.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.ones(ctx.shape)


class Many(torch.nn.Module):
    """So many parameters of so many elements each."""

    def __init__(self, gradients: int, elements: int):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(elements)) for _ in range(gradients))

    def forward(self, carried):
        for weight in self.weights:
            carried = Sum.apply(carried, weight)
        return carried


def do_nothing(state, bucket):
    """A hook whose result is there at once."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def backward_s(ddp) -> float:
    loss = ddp(torch.zeros(1, requires_grad=True)).sum()
    began = time.perf_counter()
    loss.backward()
    return time.perf_counter() - began


def make(options: argparse.Namespace, bucket_mb: float, attach) -> DistributedDataParallel:
    """With its buckets rebuilt, and its gradients looked at."""
    ddp = DistributedDataParallel(Many(options.gradients, options.elements), bucket_cap_mb=bucket_mb)
    attach(ddp)
    for _ in range(5):
        ddp.zero_grad()
        backward_s(ddp)
    for weight in ddp.module.weights:
        if not torch.equal(weight.grad, torch.ones(options.elements)):
            sys.exit("bench_hook: a gradient is wrong")
    return ddp


def measure(options: argparse.Namespace, bucket_mb: float) -> dict:
    """Microseconds a step under each hook, and the difference a gradient."""
    hooks = {"no-op": lambda ddp: ddp.register_comm_hook(None, do_nothing), "hipress": lambda ddp: hipress.attach(ddp, "none")}
    models = {name: make(options, bucket_mb, attach) for name, attach in hooks.items()}
    medians = {name: [] for name in models}
    for _ in range(options.repetitions):
        for name, ddp in models.items():
            medians[name].append(statistics.median(backward_s(ddp) for _ in range(PASSES)) * 1e6)
    differences = [(ours - theirs) / options.gradients for ours, theirs in zip(medians["hipress"], medians["no-op"])]
    return {"step_us": {name: statistics.median(values) for name, values in medians.items()},
            "gradient_us": statistics.median(differences), "least_us": min(differences), "most_us": max(differences)}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradients", type=int, default=160, help="default: %(default)s")
    parser.add_argument("--elements", type=int, default=256, help="of each (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    options = parser.parse_args()
    if min(options.gradients, options.elements, options.repetitions) < 1:
        parser.error("--gradients, --elements and --repetitions must be at least 1")
    return options


def main() -> int:
    options = parse_arguments()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        # Buckets are closed once they are full: with one byte each holds one gradient.
        for case, bucket_mb in (("one bucket", 1e6), ("a bucket each", 1e-6)):
            found = measure(options, bucket_mb)
            steps = found["step_us"]
            print(f"hook, {options.gradients} gradients of {options.elements}, {case}: no-op {steps['no-op']:.0f} us a step, hipress "
                  f"{steps['hipress']:.0f} us: {found['gradient_us']:.2f} us a gradient ({found['least_us']:.2f} to "
                  f"{found['most_us']:.2f}), at most {TARGET_US:.0f} wanted", flush=True)
            rows.append({"case": f"hook.{case.replace(' ', '_')}", "metric": "us/gradient", "value": found["gradient_us"],
                         "reference_name": "wanted", "reference": TARGET_US, "ratio": found["gradient_us"] / TARGET_US})
    if options.json:
        temporary = f"{options.json}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"machine": {"name": platform.node(), "cores": os.cpu_count(), "torch": torch.__version__}, "rows": rows}, file,
                      indent=1)
        os.replace(temporary, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
