#!/usr/bin/env python3
"""One rank of a job whose parameters fully_shard() divides, over gloo.

Needs PyTorch 2. Started by the experiment sharded with the RANK and WORLD_SIZE of a launcher; rank 0 prints one JSON object. It
trains the text model of examples/train.py. With --paced, it trains layers that sleep instead of computing, as a JSON file says:
[{"name", "elements", "forward_s", "backward_s"}] in the order of forward. With --sizes, it times gloo's collectives instead. With
--plan, hipress gathers and reduces by that plan; without it, PyTorch does so alone.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples")]
import tasks  # noqa: E402  (found through the path above)
from validation import gloo_rank  # noqa: E402

#: Number of measurements of a collective, by largest size in bytes: the larger the collective, the fewer.
REPEATED = ((1 << 20, 20), (8 << 20, 8), (1 << 40, 4))


class Sleep(torch.autograd.Function):
    """Layer whose passes take given times, and whose gradients are the same in every step."""

    @staticmethod
    def forward(ctx, values, weight, layer):
        ctx.layer = layer
        ctx.shape = weight.shape
        time.sleep(layer.forward_s)
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.layer.backward_s)
        return gradient, ctx.layer.gradient.view(ctx.shape), None


class Layer(torch.nn.Module):
    """Layer whose parameters are one matrix."""

    def __init__(self, described: dict):
        super().__init__()
        self.forward_s, self.backward_s = described["forward_s"], described["backward_s"]
        self.weight = torch.nn.Parameter(torch.randn(described["elements"]))
        self.gradient = torch.randn(described["elements"])

    def forward(self, values):
        return Sleep.apply(values, self.weight, self)


def paced(path: pathlib.Path) -> torch.nn.Module:
    model = torch.nn.Sequential()
    for described in json.loads(path.read_text(encoding="utf-8")):
        model.add_module(described["name"], Layer(described))
    return model


def sharded(model: torch.nn.Module, blocks) -> torch.nn.Module:
    from torch.distributed.fsdp import fully_shard
    for block in blocks:
        fully_shard(block)
    return fully_shard(model)


def steps(model: torch.nn.Module, options: argparse.Namespace, loss_of, optimizer) -> dict:
    """Seconds of each step on the slowest rank, and losses averaged over ranks."""
    seconds, losses = [], []
    for step in range(options.warmups + options.iterations):
        dist.barrier()
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
        losses.append(float(loss.detach()))
        if options.verbose and dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step}: {seconds[-1]:.3f} s, loss {losses[-1]:.3f}", file=sys.stderr, flush=True)
    found = torch.tensor([seconds, losses], dtype=torch.float64)
    slowest = found[0].clone()
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    dist.all_reduce(found[1])
    means = found[1] / dist.get_world_size()
    return {"iterations_s": slowest[options.warmups:].tolist(), "losses": means[options.warmups:].tolist()}


def run_model(options: argparse.Namespace) -> dict:
    torch.manual_seed(1)
    if options.paced:
        model = paced(options.paced)
        sharded(model, list(model))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        values = torch.zeros(1, requires_grad=True)
        loss_of = lambda one: one(values).sum()  # noqa: E731
    else:
        task = tasks.Text(argparse.Namespace(text=None, batch=options.batch, optimizer=None))
        model = task.make()
        sharded(model, list(model.blocks))
        optimizer = task.optimizer(model.parameters())
        generator = torch.Generator().manual_seed(1000 + dist.get_rank())
        loss_of = lambda one: task.loss(one, generator)  # noqa: E731
    if options.plan is not None:
        import hipress
        hipress.attach(model, options.plan)
    return steps(model, options, loss_of, optimizer)


def time_of(collective, size_bytes: int) -> float:
    """Median over repetitions of the slowest rank's seconds."""
    repeated = next(times for most, times in REPEATED if size_bytes <= most)
    found = []
    for _ in range(repeated + 1):
        dist.barrier()
        began = time.perf_counter()
        collective()
        found.append(time.perf_counter() - began)
    slowest = torch.tensor(found[1:], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return statistics.median(slowest.tolist())


def run_collectives(options: argparse.Namespace) -> dict:
    """Seconds by collective and by bytes of all shards together."""
    ranks = dist.get_world_size()
    found = {"all_gather": [], "reduce_scatter": [], "all_to_all": [], "all_reduce": []}
    for size in options.sizes:
        shard = size // ranks // 4
        whole, part = torch.zeros(shard * ranks), torch.zeros(shard)
        sent, arrived = torch.zeros(size // ranks * ranks, dtype=torch.uint8), torch.zeros(size // ranks * ranks, dtype=torch.uint8)
        for name, collective in (("all_gather", lambda: dist.all_gather_into_tensor(whole, part)),
                                 ("reduce_scatter", lambda: dist.reduce_scatter_tensor(part, whole)),
                                 ("all_to_all", lambda: dist.all_to_all_single(arrived, sent)),
                                 ("all_reduce", lambda: dist.all_reduce(whole))):
            found[name].append([size, time_of(collective, size)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gloo_rank.add_options(parser)
    parser.add_argument("--paced", type=pathlib.Path, metavar="FILE", help="layers that sleep, as JSON")
    parser.add_argument("--plan", help="of hipress: a plan file, or a plan's name")
    parser.add_argument("--batch", type=int, default=0, help="of the text model (default: its own)")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], metavar="BYTES,...",
                        help="time collectives of so many")
    parser.add_argument("--verbose", action="store_true", help="say how far it is")
    options = parser.parse_args()
    rank, _ = gloo_rank.join(options, "sharded", timeout_s=600)
    found = run_collectives(options) if options.sizes else run_model(options)
    if rank == 0:
        print(json.dumps(found))
    dist.barrier()


if __name__ == "__main__":
    main()
