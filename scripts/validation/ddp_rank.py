#!/usr/bin/env python3
"""One rank of PyTorch's DistributedDataParallel over gloo, with made-up gradients that become ready at the times in a file.

Needs torch. Started by the experiments ddp, buckets, lowrank and training with the RANK and WORLD_SIZE of a launcher; rank 0 prints
one JSON object. With --powersgd, PyTorch's powerSGD_hook compresses. Gradients are then random, because constant gradients would
make all columns of a factor but the first zero, and the means are not checked. The same holds for plans that compress. With --fp16,
PyTorch's fp16_compress_hook compresses. With --plan, hipress's hook does; its gradients are named weights.0, weights.1 and so on in
the order of forward.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: PyTorch's default of bucket_cap_mb.
DDP_CAP_MB = 25
sys.path.insert(0, str(ROOT))
from validation import gloo_rank  # noqa: E402  (found through the path above)
from validation.network import INTERFACE  # noqa: E402


class Clock:
    """Time since the beginning of forward or of backward, in seconds."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.began = time.perf_counter()

    def wait_until(self, seconds: float) -> None:
        time.sleep(max(0.0, self.began + seconds - time.perf_counter()))


class Layer(torch.autograd.Function):
    """Use of one parameter. Its gradient is made by `make`, and is complete `ready_s` after the beginning of backward."""

    @staticmethod
    def forward(ctx, carried, parameter, clock, ready_s, make):
        ctx.clock, ctx.ready_s, ctx.make = clock, ready_s, make
        return carried.clone()

    @staticmethod
    def backward(ctx, gradient):
        made = ctx.make()
        ctx.clock.wait_until(ctx.ready_s)
        return gradient, made, None, None, None


class Model(torch.nn.Module):
    """Model with gradients {"shape", "ready_s"} in the order of backward; the first layer of forward has the last of them. The
    elements of a gradient are all `value`, or random and the same in every iteration."""

    def __init__(self, gradients: list[dict], value: float, random: bool):
        super().__init__()
        self.layers = [*reversed(gradients)]
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(layer["shape"])) for layer in self.layers)
        self.clock = Clock()
        self.makers = [self.maker(layer["shape"], value, random) for layer in self.layers]

    @staticmethod
    def maker(shape, value, random):
        if not random:
            return lambda: torch.full(shape, value)
        made = torch.randn(shape)
        return lambda: made.clone()

    def forward(self, carried):
        for weight, layer, make in zip(self.weights, self.layers, self.makers):
            carried = Layer.apply(carried, weight, self.clock, layer["ready_s"], make)
        return carried


def one_bucket_at_a_time(state, bucket):
    """PyTorch's powerSGD_hook, but waits for each bucket. PyTorch's own hook starts a bucket's second and third all-reduce in
    callbacks, which ranks run in different orders. With two buckets under way, gloo would get messages of unexpected lengths, and
    end the process."""
    future = powerSGD_hook.powerSGD_hook(state, bucket)
    future.wait()
    return future


def iterate(model: DistributedDataParallel, forward_s: float) -> float:
    """Seconds from the start of forward until all gradients are synchronised on this rank."""
    for weight in model.module.weights:
        weight.grad = None
    torch.distributed.barrier()
    started = time.perf_counter()
    model.module.clock.begin()
    loss = model(torch.zeros(1, requires_grad=True)).sum()
    model.module.clock.wait_until(forward_s)
    model.module.clock.begin()
    loss.backward()
    return time.perf_counter() - started


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help='JSON: {"forward_s", "gradients"}')
    parser.add_argument("--powersgd", type=int, metavar="RANK", help="compress with powerSGD_hook; the first two iterations are not")
    parser.add_argument("--batched", action="store_true", help="with it, tensors of one shape are one")
    parser.add_argument("--fp16", action="store_true", help="compress with fp16_compress_hook")
    parser.add_argument("--plan", metavar="FILE", help="synchronise with hipress, as this plan says")
    parser.add_argument("--timings", metavar="FILE", help="of hipress: the model YAML that the plan was made of")
    parser.add_argument("--bucket-mb", type=float, action="append",
                        help="of DDP's buckets but the first; default: DDP's. Given several times, as many models take turns")
    gloo_rank.add_options(parser)
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    rank, size = gloo_rank.join(options, "ddp", 60)
    described = json.loads(options.model.read_text())
    torch.manual_seed(rank)
    caps = options.bucket_mb or [DDP_CAP_MB]
    random = options.powersgd is not None or options.plan is not None
    models = {cap: DistributedDataParallel(Model(described["gradients"], float(rank), random), bucket_cap_mb=cap) for cap in caps}
    model = models[caps[0]]
    if options.plan is not None:
        import hipress

        hipress.attach(model, options.plan, model=options.timings, rendezvous=options.rendezvous, network=INTERFACE,
                       timeout=60)
    elif options.fp16:
        model.register_comm_hook(torch.distributed.group.WORLD, default_hooks.fp16_compress_hook)
    if options.powersgd is not None:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=options.powersgd, start_powerSGD_iter=2,
                                            batch_tensors_with_same_shape=options.batched)
        model.register_comm_hook(state, one_bucket_at_a_time)
    for _ in range(options.warmups):
        for one in models.values():
            iterate(one, described["forward_s"])
    seconds = torch.tensor([[iterate(one, described["forward_s"]) for one in models.values()] for _ in range(options.iterations)],
                           dtype=torch.float64)
    mean = (size - 1) / 2  # mean of the ranks' values 0, 1, …
    verified = random or all(bool(torch.all(weight.grad == mean)) for one in models.values() for weight in one.module.weights)
    torch.distributed.all_reduce(seconds, torch.distributed.ReduceOp.MAX)
    if rank == 0:
        by_cap = {str(cap): of_cap.tolist() for cap, of_cap in zip(models, seconds.T)}
        buckets = model._get_ddp_logging_data()["rebuilt_bucket_sizes"]
        print(json.dumps({"iterations_s": by_cap[str(caps[0])], "by_bucket_mb": by_cap, "verified": verified,
                          "torch": torch.__version__, "bucket_bytes": [int(size) for size in buckets.split(",")]}))
    torch.distributed.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
